/* SPDX-License-Identifier: MIT */
/*
 * names_priv.h - what the changes of directories share: one record of what is to become of everything,
 * which is at the same time the intent that a dead thread leaves.
 *
 * A change holds all its locks, makes everything that can fail, and writes its record; then one
 * store (the commit, into a dentry's inode) decides, and names_finish() brings all the rest to the
 * values in the record.  These are final values, not differences, so finishing may be repeated.  Recovery looks at
 * the dentry: committed, then it finishes; else it takes back what was prepared.
 * References that the change gives up (NAMES_OWED) are dropped when the record is gone and the locks are released.
 */
#ifndef SHELF_RAMFS_NAMES_PRIV_H
#define SHELF_RAMFS_NAMES_PRIV_H

#include <sys/inotify.h>

#include "ramfs/ramfs.h"
#include "segment/header.h"
#include "segment/intent_ops.h"

/* intent.arg[] of INTENT_CREATE ... INTENT_EXCHANGE.  0: not in this change. */
enum names_arg {
	NA_DIR, /* the directory; of a rename: the one left */
	NA_DIR2, /* of a rename: the one entered; may be the same */
	NA_DENTRY, /* of NA_INODE; of a rename: the old name */
	NA_DENTRY2, /* of a rename: the new name */
	NA_INODE, /* what is created, linked, removed, renamed */
	NA_VICTIM, /* of a rename: what the new name stood for */
	NA_WHITEOUT, /* inode that the old name gets */
	NA_SIZE, /* of NA_DIR afterwards */
	NA_SIZE2,
	NA_NLINKS, /* of NA_DIR and, << 32, of NA_DIR2 afterwards */
	NA_NLINK, /* of NA_INODE and, << 32, of NA_VICTIM afterwards */
	NA_NOW,
	NA_GAINS, /* a directory that becomes somebody's parent: counted before the commit */
	NA_LOSES, /* a directory that is no longer somebody's parent */
	NAMES_ARGS
};
_Static_assert(NAMES_ARGS <= INTENT_ARGS, "the record fits");

/* intent.step, as bits */
enum names_step { NS_COUNTED = 1, NS_NEW_DENTRY = 2, NS_DONE = 4 };

static inline struct inode *na_inode(struct intent *i, enum names_arg k)
{
	return (struct inode *)(uintptr_t)load_relaxed(&i->arg[k]); /* relaxed: own, or ordered by the owner's death */
}

static inline struct dentry *na_dentry(struct intent *i, enum names_arg k)
{
	return (struct dentry *)(uintptr_t)load_relaxed(&i->arg[k]); /* as above */
}

static inline uint64_t na_word(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

/* What is dropped after the record: at most the old parent and one victim. */
struct names_owed {
	struct inode *inode[2];
};

/* In a section: what gains a reference (NA_GAINS, it is not dead) is counted, and with that the record says `step`. */
void names_count(struct slot *self, uint32_t step);
/* The record says what is to be; commit and finish it.  Locks of all that it names are held. */
void names_commit(struct intent *i);
void names_finish(struct slot *self, struct intent *i);
/* Ends the record: retires what left, notes what is owed in the ledger. */
void names_end(struct slot *self, struct intent *i, struct names_owed *owed);
/* Outside locks and sections. */
void names_pay(struct slot *self, struct names_owed *owed);
void names_recovery_attach(void);

/* ---- new inodes (names_birth.c) ---------------------------------------------------------------- */

struct birth {
	uint32_t mode; /* with its type */
	uint64_t rdev;
	const char *target; /* symlink */
	uint32_t target_len;
	bool keep; /* one reference for the caller */
	bool want_dir; /* "name/" is fine */
	struct inode *inode; /* out, with keep */
};
/* In a section.  An inode with one reference, which is in the ledger, and nlink set. */
int birth_new_epoch(struct who *w, struct inode *dir, struct birth *b, struct inode **out);
void birth_undo(struct slot *self, struct inode *inode);
/* A record that has it is about to end with nothing done: it is in the ledger again. */
void birth_return(struct slot *self, struct inode *inode);
/* It is to have no name: one reference is left.  May be repeated. */
void birth_forget(struct inode *inode);

/* ---- creation (names_create.c) ------------------------------------------------------------------- */

/* In a section, which it may leave and re-enter, and has left when it returns.  -EEXIST: look again. */
int names_create_epoch(struct who *w, struct walk *k, struct birth *b);

/* ---- locks ------------------------------------------------------------------------------------------ */

static inline enum lock_class names_lock_class(const struct inode *inode)
{
	return inode_type(inode) == S_IFDIR ? LOCK_DIR : LOCK_INODE;
}

LOCK_NO_ANALYSIS static inline bool names_try(struct slot *self, struct inode *inode)
{
	return lock_try(&inode->lock, &self->locker, names_lock_class(inode));
}

LOCK_NO_ANALYSIS static inline void names_unlock(struct slot *self, struct inode *inode)
{
	lock_release(&inode->lock, &self->locker, names_lock_class(inode));
}

/* In a section, the directory of `inode` locked, which keeps it alive: leaves the section if it must wait. */
LOCK_NO_ANALYSIS static inline void names_lock_epoch(struct slot *self, struct inode *inode)
{
	if (likely(names_try(self, inode)))
		return;
	epoch_exit(self);
	lock_acquire(&inode->lock, &self->locker, names_lock_class(inode));
	epoch_enter(self);
}

static inline uint32_t names_isdir(const struct inode *inode)
{
	return S_ISDIR(inode_type(inode)) ? IN_ISDIR : 0;
}

#endif
