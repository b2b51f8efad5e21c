/* SPDX-License-Identifier: MIT */
/*
 * attr.c - mode, owner and times of an inode: one consistent picture for
 * readers, Linux's rules for those who change them.
 *
 * Data: the [i] fields of struct inode.  Changed under inode.lock inside inode.seq.
 * Fast path: attr_read_epoch() loads; it writes only the caller's buffer.
 * Progress: reading is wait-free (bounded tries, then field by field); changes block on inode.lock.
 * Death: a change is an intent with the final values; recovery stores them again.
 * Exception to [i]: atime after a read is moved on by one CAS without the lock, as
 * Linux does too; a picture with the old or the new atime is a picture of some moment.
 * Limits: times outside 1677..2262 are moved to the nearest end of that range.
 */
#include "segment/hand.h"
#include "vfs/attr_priv.h"

#define NS_PER_SEC 1000000000L
#define ATTR_SEC_MAX (INT64_MAX / NS_PER_SEC)

/* ---- permission pieces ----------------------------------------------------------- */

uint32_t attr_strip_setgid(struct who *w, uint32_t mode, uint32_t gid)
{
	if ((mode & S_ISGID) && !in_group(w->cred, gid) && !capable(w, SHELF_CAP_FSETID))
		mode &= ~(uint32_t)S_ISGID;
	return mode;
}

/* Which of the two bits go when the file changes hands or content. */
static uint32_t attr_sxid_to_kill(struct who *w, uint32_t mode, uint32_t gid)
{
	uint32_t kill = mode & S_ISUID;

	if ((mode & S_ISGID) && ((mode & S_IXGRP) || attr_strip_setgid(w, mode, gid) != mode))
		kill |= S_ISGID;
	return kill;
}

/* ---- changes ----------------------------------------------------------------------- */

/* Repeatable: recovery runs it again.  Mode before owner: setuid is gone before the file is another's. */
static void attr_apply_locked(struct attr_change *c)
{
	struct inode *inode = c->inode;

	seq_write_begin(&inode->seq);
	if (c->valid & ATTR_LINK)
		tracked_store(c->link, c->target);
	if (c->valid & ATTR_MODE)
		tracked_store(&inode->mode, c->mode);
	if (c->valid & ATTR_UID)
		tracked_store(&inode->uid, c->uid);
	if (c->valid & ATTR_GID)
		tracked_store(&inode->gid, c->gid);
	if (c->valid & ATTR_ATIME)
		tracked_store(&inode->atime, c->atime);
	if (c->valid & ATTR_MTIME)
		tracked_store(&inode->mtime, c->mtime);
	if (c->flags_set | c->flags_clear) {
		uint32_t flags = load_relaxed(&inode->flags); /* lock held */

		tracked_store(&inode->flags, (flags & ~c->flags_clear) | c->flags_set);
	}
	tracked_store(&inode->ctime, c->ctime);
	seq_write_end(&inode->seq);
}

static void attr_intent_begin(struct slot *self, const struct attr_change *c)
{
	const uint64_t args[] = {
		(uintptr_t)c->inode,
		(uint64_t)c->flags_set << 48 | (uint64_t)c->flags_clear << 32 | c->valid,
		(uint64_t)c->uid << 32 | c->mode,
		c->gid,
		c->atime,
		c->mtime,
		c->ctime,
		(uintptr_t)c->link,
		(uintptr_t)c->target,
		(uintptr_t)c->gone,
	};

	intent_begin(self, INTENT_ATTR, ARRAY_SIZE(args), args);
	if (c->target)
		hand_forget(self, hand_entry(self, c->target)); /* the record has it now, if it is a new one */
}

/* Inside a section: what is retired here is not freed before the intent has ended. */
static void attr_retire_gone(struct slot *self, struct xattr *gone)
{
	if (gone)
		epoch_retire_noted(self, &gone->retired, retire_note(self, &gone->retired, RETIRE_MEM, gone->bytes));
}

void attr_commit_locked(struct slot *self, struct attr_change *c)
{
	c->ctime = vfs_now();
	epoch_enter(self);
	attr_intent_begin(self, c);
	attr_apply_locked(c);
	attr_retire_gone(self, c->gone);
	intent_end(self);
	epoch_exit(self);
}

/* ---- recovery ----------------------------------------------------------------------- */

/* Had the dead thread retired it already? */
static bool attr_in_bags(const struct slot *dead, const struct retired *r)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(dead->bags); i++) {
		const struct retired *at;

		for (at = dead->bags[i].head; at; at = at->next)
			if (at == r)
				return true;
	}
	return false;
}

static uint64_t attr_arg(struct intent *dead, unsigned k)
{
	return load_acquire(&dead->arg[k]); /* pairs with intent_begin; its owner is dead */
}

LOCK_NO_ANALYSIS static void attr_recover(struct slot *self, struct intent *dead)
{
	struct slot *slot = intent_slot(dead);
	uint64_t what = attr_arg(dead, 1);
	struct attr_change c = {
		.inode = (struct inode *)attr_arg(dead, 0),
		.valid = (uint32_t)what,
		.flags_clear = (what >> 32) & 0xffff,
		.flags_set = (uint32_t)(what >> 48),
		.mode = (uint32_t)attr_arg(dead, 2),
		.uid = (uint32_t)(attr_arg(dead, 2) >> 32),
		.gid = (uint32_t)attr_arg(dead, 3),
		.atime = attr_arg(dead, 4),
		.mtime = attr_arg(dead, 5),
		.ctime = attr_arg(dead, 6),
		.link = (xattr_link *)attr_arg(dead, 7),
		.target = (struct xattr *)attr_arg(dead, 8),
		.gone = (struct xattr *)attr_arg(dead, 9),
	};

	lock_adopt(&c.inode->lock, &slot->locker, &self->locker, inode_lock_class(c.inode));
	attr_apply_locked(&c);
	if (c.target)
		hand_forget(slot, hand_entry(slot, c.target)); /* it is in its place */
	if (c.gone && !attr_in_bags(slot, &c.gone->retired) && !hand_has(slot, &c.gone->retired, LEDGER_RETIRED))
		retire_note(slot, &c.gone->retired, RETIRE_MEM, c.gone->bytes);
	attr_unlock(self, c.inode);
}

void attr_attach(void)
{
	intent_register(INTENT_ATTR, attr_recover);
}

/* ---- chmod, chown ----------------------------------------------------------------------- */

static int attr_chmod_locked(struct who *w, struct inode *inode, uint32_t mode)
{
	struct attr_change c = {.inode = inode, .valid = ATTR_MODE};
	uint32_t type = inode_type(inode);

	if (!owner_or_capable(w, inode))
		return -EPERM;
	mode = attr_strip_setgid(w, mode & 07777, load_relaxed(&inode->gid)); /* lock held */
	c.mode = type | mode;
	if (load_relaxed(&inode->flags) & INODE_HAS_ACL) /* lock held */
		return acl_chmod_locked(w, inode, c.mode);
	attr_commit_locked(w->self, &c);
	return 0;
}

int attr_chmod(struct who *w, struct inode *inode, uint32_t mode)
{
	int err;

	if (inode_type(inode) == S_IFLNK)
		return -EOPNOTSUPP;
	attr_lock(w->self, inode);
	err = attr_chmod_locked(w, inode, mode);
	attr_unlock(w->self, inode);
	return err;
}

static bool attr_chown_ok(struct who *w, struct inode *inode, uint32_t uid)
{
	uint32_t now = load_relaxed(&inode->uid); /* lock held */

	return (w->cred->fsuid == now && uid == now) || capable(w, SHELF_CAP_CHOWN);
}

static bool attr_chgrp_ok(struct who *w, struct inode *inode, uint32_t gid)
{
	if (w->cred->fsuid == load_relaxed(&inode->uid) && /* lock held */
	    (gid == load_relaxed(&inode->gid) || in_group(w->cred, gid)))
		return true;
	return capable(w, SHELF_CAP_CHOWN);
}

/* Who hands a file over takes away what would run with the new owner's rights. */
static int attr_chown_privileges(struct who *w, struct inode *inode, struct attr_change *c)
{
	uint32_t mode = load_relaxed(&inode->mode); /* lock held */
	uint32_t gid = load_relaxed(&inode->gid);
	uint32_t kill = attr_sxid_to_kill(w, mode, gid);

	if (kill) {
		if (!owner_or_capable(w, inode))
			return -EPERM;
		c->valid |= ATTR_MODE;
		c->mode = attr_strip_setgid(w, mode & ~kill, c->valid & ATTR_GID ? c->gid : gid);
	}
	c->link = xattr_find_capability_locked(inode, &c->gone);
	if (c->link) {
		c->valid |= ATTR_LINK;
		c->target = load_relaxed(&c->gone->next); /* lock held */
	}
	return 0;
}

static int attr_chown_locked(struct who *w, struct inode *inode, uint32_t uid, uint32_t gid)
{
	struct attr_change c = {.inode = inode, .uid = uid, .gid = gid};
	int err;

	if (uid != UINT32_MAX) {
		c.valid |= ATTR_UID;
		if (!attr_chown_ok(w, inode, uid))
			return -EPERM;
	}
	if (gid != UINT32_MAX) {
		c.valid |= ATTR_GID;
		if (!attr_chgrp_ok(w, inode, gid))
			return -EPERM;
	}
	if (inode_type(inode) != S_IFDIR) {
		err = attr_chown_privileges(w, inode, &c);
		if (err)
			return err;
	}
	attr_commit_locked(w->self, &c);
	return 0;
}

int attr_chown(struct who *w, struct inode *inode, uint32_t uid, uint32_t gid)
{
	int err;

	attr_lock(w->self, inode);
	err = attr_chown_locked(w, inode, uid, gid);
	attr_unlock(w->self, inode);
	return err;
}

/* Part of a write's own intent and turn of seq: single stores, each valid by itself. */
void attr_kill_suid_locked(struct who *w, struct inode *inode)
{
	uint32_t mode = load_relaxed(&inode->mode); /* lock held */
	struct xattr *gone = NULL;
	xattr_link *link;
	uint32_t kill;

	if (likely(!(mode & (S_ISUID | S_ISGID)) && !(load_relaxed(&inode->flags) & INODE_HAS_XATTR)))
		return;
	if ((mode & S_IFMT) != S_IFREG)
		return;
	kill = attr_sxid_to_kill(w, mode, load_relaxed(&inode->gid));
	if (kill && !capable(w, SHELF_CAP_FSETID))
		tracked_store(&inode->mode, mode & ~kill);
	link = xattr_find_capability_locked(inode, &gone);
	if (!link)
		return;
	tracked_store(link, load_relaxed(&gone->next)); /* lock held */
	attr_retire_gone(w->self, gone);
}

/* ---- times ------------------------------------------------------------------------------------ */

static bool attr_nsec_valid(long nsec)
{
	return nsec == UTIME_NOW || nsec == UTIME_OMIT || (nsec >= 0 && nsec < NS_PER_SEC);
}

static uint64_t attr_time_of(const struct timespec *ts, uint64_t now)
{
	int64_t sec = ts->tv_sec;

	if (ts->tv_nsec == UTIME_NOW)
		return now;
	if (sec >= ATTR_SEC_MAX)
		return INT64_MAX;
	if (sec < -ATTR_SEC_MAX)
		return (uint64_t)(-ATTR_SEC_MAX * NS_PER_SEC);
	return (uint64_t)(sec * NS_PER_SEC + ts->tv_nsec);
}

/* Setting both to now asks for write permission; anything else is the owner's business. */
static int attr_utimens_permission(struct who *w, struct inode *inode, bool touch)
{
	int err;

	if (owner_or_capable(w, inode))
		return 0;
	if (!touch)
		return -EPERM;
	epoch_enter(w->self);
	err = inode_permission_epoch(w, inode, MAY_WRITE);
	epoch_exit(w->self);
	return err;
}

static int attr_utimens_locked(struct who *w, struct inode *inode, const struct timespec t[2], bool touch)
{
	struct attr_change c = {.inode = inode};
	uint64_t now = vfs_now();
	int err = attr_utimens_permission(w, inode, touch);

	if (err)
		return err;
	if (t[0].tv_nsec != UTIME_OMIT) {
		c.valid |= ATTR_ATIME;
		c.atime = attr_time_of(&t[0], now);
	}
	if (t[1].tv_nsec != UTIME_OMIT) {
		c.valid |= ATTR_MTIME;
		c.mtime = attr_time_of(&t[1], now);
	}
	attr_commit_locked(w->self, &c);
	return 0;
}

/* has_write_access does not matter: Linux asks the inode even for a descriptor that is open for writing. */
int attr_utimens(struct who *w, struct inode *inode, const struct timespec times[2], bool has_write_access)
{
	static const struct timespec both_now[2] = {{0, UTIME_NOW}, {0, UTIME_NOW}};
	const struct timespec *t = times ? times : both_now;
	bool touch = t[0].tv_nsec == UTIME_NOW && t[1].tv_nsec == UTIME_NOW;
	int err;

	(void)has_write_access;
	if (!attr_nsec_valid(t[0].tv_nsec) || !attr_nsec_valid(t[1].tv_nsec))
		return -EINVAL;
	if (t[0].tv_nsec == UTIME_OMIT && t[1].tv_nsec == UTIME_OMIT)
		return 0;
	attr_lock(w->self, inode);
	err = attr_utimens_locked(w, inode, t, touch);
	attr_unlock(w->self, inode);
	return err;
}

void attr_set_atime(struct slot *self, struct inode *inode, uint64_t old)
{
	/* Fails when utimens or another reader was first: theirs is as good. */
	if (!self->seg->read_only)
		cas_acq_rel(&inode->atime, &old, vfs_now());
}
