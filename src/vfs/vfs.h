/* SPDX-License-Identifier: MIT */
/*
 * vfs.h - inodes, dentries, open files, path walk: the structures and what the
 * layers above (ramfs, special, task, api) may call.
 *
 * What protects what (the letters stand on the fields below):
 *	[c]  constant from the moment the object is published until it is freed
 *	[d]  written under the lock of the directory; read in a section
 *	[i]  written under inode.lock inside inode.seq; read in a section, checked with seq
 *	[n]  as [d], and inside name_seq of both directories when a rename moves or swaps names
 *	[a]  atomic by itself
 *	[p]  the file's pos_lock
 *
 * A dentry *is* the directory entry, and its key (directory, name) never changes:
 *	create	publishes a new dentry by one store into a hash chain;
 *	unlink	takes it out by one store and retires it;
 *	rename over an existing name stores the new inode into the target's dentry
 *		(one store: no looker finds the name absent), then takes the source out;
 *	rename to a free name publishes a new dentry and takes the source out.
 * The moment in which both names could be seen is covered by name_seq of both
 * directories: lookers in either of them retry while it is odd or has changed.
 * A dentry counts as an entry while dentry.inode is not NULL: one store makes it
 * appear in, or vanish from, lookups and listings together; it is in the hash and the index
 * before and a little longer.
 * The hash of a directory is complete, so a miss is an answer: there are no
 * negative dentries.  Subdirectories point at their parent's inode, not at a dentry,
 * so a rename of a directory touches none of its children.
 *
 * Lifetime: inodes are counted.  While nlink > 0 all names together hold one
 * reference; open files, cwd and root of tasks, and a directory's link to its
 * parent hold one each.  The last put frees data and retires the inode.
 * A directory whose lock is held and whose INODE_DEAD is clear cannot go away.
 */
#ifndef SHELF_VFS_VFS_H
#define SHELF_VFS_VFS_H

#include <shelf/shelf.h>

#include "base/clock.h"
#include "base/refcount.h"
#include "epoch/radix.h"
#include "fd/fd.h"
#include "lock/lock.h"
#include "segment/tally.h"

#define NAME_LIMIT 255
#define PATH_LIMIT 4096
#define SYMLINK_LIMIT 40
#define MAX_FILE_BYTES INT64_MAX /* as tmpfs on x86-64 */

struct inode;
struct dentry;
struct xattrs;
struct flocks;

/* Hash table of one directory: buckets of chains linked through dentry.next[which]. */
struct dir_table {
	struct retired retired;
	uint64_t born; /* [d] global epoch when it was published */
	uint32_t buckets; /* [c] */
	uint32_t which; /* [c] which of the two links the chains use: growing builds the other one */
	atomic_ptr(struct dentry) bucket[];
};

#define DIR_FIRST_COOKIE 3 /* as positions: 0 start, 1 behind ".", 2 behind ".." */
#define DIR_ENTRY_SIZE 20 /* what tmpfs counts in a directory's size */
#define DIR_EMPTY_SIZE 40
struct dir_part {
	atomic_ptr(struct dir_table) table; /* [d] NULL: empty directory */
	struct radix index; /* [d] cookie - DIR_FIRST_COOKIE -> dentry, for readdir */
	atomic_u64 next_cookie; /* [d] above every cookie in use; falls back when the last entries go */
	atomic_ptr(struct inode) parent; /* [n] counted */
	struct seqcount name_seq;
};

struct file_part {
	struct radix pages; /* [i] page number -> page */
	atomic_u64 page_count; /* [i] pages held, for st_blocks */
	struct radix shadow; /* [i] a tree being built or taken apart: ramfs/shift.c */
	atomic_u32 data_flags; /* [i] ramfs/data_priv.h */
	atomic_u32 maps; /* [a] files that keep a map; a death may leave it too high, never too low: ramfs/map.c */
	atomic_u32 kept; /* [i] page_number() of the first page that is out of the file and perhaps mapped */
	atomic_u32 drops; /* [i] how often pages were kept */
};

enum inode_flag {
	INODE_DEAD = 1, /* removed directory: no new entries */
	INODE_HAS_ACL = 2,
	INODE_HAS_DEFAULT_ACL = 4,
	INODE_HAS_XATTR = 8,
	INODE_TMPFILE = 16, /* O_TMPFILE without O_EXCL: linkat may name it */
};

struct inode {
	/* line 0: what a walk reads */
	_Alignas(CACHE_LINE) atomic_u32 mode; /* [i] type and permission bits; the type is [c] */
	atomic_u32 uid, gid; /* [i] */
	atomic_u32 flags; /* [i] enum inode_flag */
	union {
		struct dir_part dir;
		struct file_part file;
		struct { /* symlink */
			char *target; /* [c] NUL-terminated, from mem_alloc(len + 1) */
			uint32_t target_len;
		};
		atomic_u64 rdev; /* [c] device node */
	};

	/* line 1: what stat reads beside it */
	_Alignas(CACHE_LINE) struct seqcount seq;
	atomic_u32 nlink; /* [i] for directories also [d] */
	atomic_u64 size; /* [i] directories: 40 + 20 an entry, as tmpfs */
	uint64_t ino; /* [c] */
	atomic_u64 atime, mtime, ctime; /* [i] ns since 1970, signed */
	uint64_t btime; /* [c] */

	/* line 2: what writers dirty */
	_Alignas(CACHE_LINE) struct lock lock; /* LOCK_DIR for directories, LOCK_INODE else */
	atomic_u32 write_denied; /* programs executing it (ETXTBSY) */
	struct tally refs;
	atomic_ptr(struct dentry) alias; /* [d] one of its names, for getcwd and /proc/self/fd; may be NULL */
	atomic_ptr(struct xattrs) xattrs; /* [i] */
	atomic_ptr(struct flocks) flocks; /* record locks, OFD locks, flock: LOCK_FLOCKS */
	atomic_u64 watches; /* what inotify watches on this inode want, perhaps more: special/inotify_watch.c */
	atomic_u32 hints; /* [a] F_SET_RW_HINT, FS_IOC_SETFLAGS: api/fcntl_priv.h */

	/* line 3 */
	_Alignas(CACHE_LINE) struct retired retired;
	atomic_ptr(struct opened) was; /* [i] the name that was removed while it was open and watched; stays until the end */
};
_Static_assert(sizeof(struct inode) <= 256, "an empty file costs an inode and a dentry: at most 512 bytes");

#define DENTRY_SHORT_NAME 63 /* fits CACHE_128 */
struct dentry {
	atomic_ptr(struct dentry) next[2]; /* [d] chain links, see dir_table.which */
	atomic_ptr(struct inode) inode; /* [n] NULL: not an entry yet, or no more */
	struct inode *parent; /* [c] the directory; valid while the dentry is linked */
	uint64_t cookie; /* [c] its position in the directory */
	uint32_t hash; /* [c] */
	uint16_t len; /* [c] */
	uint16_t pad;
	struct retired retired;
	char name[]; /* [c] zeros up to the next multiple of 8; CACHE_128 or CACHE_384 by length */
};
_Static_assert(sizeof(struct dentry) <= 128 - 0, "short dentries are two lines");

/* ---- credentials and the file-system side of a task ------------------------------- */

/* Immutable once published: setcred makes a new one and retires the old (RETIRE_MEM). */
struct cred;
typedef atomic_ptr(struct cred) cred_link;
struct cred {
	struct retired retired;
	cred_link older; /* of the same task */
	struct shelf_cred c;
};

/* Shared by CLONE_FS tasks; count by task/. */
struct fs_context {
	struct lock lock; /* LOCK_LEAF: changes of root and cwd */
	struct tally users;
	atomic_ptr(struct inode) root, cwd; /* counted; read in a section */
	atomic_u32 umask;
	struct retired retired;
};

/* Who asks: built on the stack by each public call. */
struct who {
	struct slot *self;
	const struct shelf_cred *cred;
	struct fs_context *fs;
	struct fd_table *files;
	void *task; /* struct shelf_task *, for locks' owners */
	uint64_t fsize_not; /* the complement of RLIMIT_FSIZE; 0: none */
};

/* A size of `end` is beyond RLIMIT_FSIZE (vfs_init.c).  Who must send SIGXFSZ registers a function: locks may be held. */
bool vfs_beyond_limit(const struct who *w, uint64_t end);
void vfs_register_beyond_limit(void (*fn)(void));

/* SEG_ROOT_VFS */
struct vfs_root {
	struct inode *root;
	uint64_t dev; /* st_dev: one per segment, minor < 256 */
	_Alignas(CACHE_LINE) struct lock rename_lock; /* LOCK_RENAME; read by every rename */
	/* who waits for whose record lock, in the whole segment; zero at the start: flock_wait.c */
	_Alignas(CACHE_LINE) struct lock flock_graph_lock; /* LOCK_WAITQ */
	struct flock_waiter *flock_graph; /* under flock_graph_lock */
};
#define VFS_MNT_ID 0x5e1fu /* statx's stx_mnt_id: a shelf is one mount */
int64_t vfs_inodes(struct segment *seg); /* in use: a sum over the threads' own counts */
struct vfs_root *vfs_root_of(struct slot *self);
int vfs_init(struct slot *self, uint32_t mode, uint32_t uid, uint32_t gid); /* creator */
int vfs_attach(struct segment *seg); /* every process: registers types and hooks */

/* ---- inodes ---------------------------------------------------------------------------- */

/* refs 1 (the caller's), nlink 0, owner and mode as given, times now. NULL: full. */
struct inode *inode_new(struct who *w, uint32_t mode, uint32_t uid, uint32_t gid);
/* The same; its reference is in the ledger. */
struct inode *inode_new_noted(struct who *w, uint32_t mode, uint32_t uid, uint32_t gid);
static inline uint64_t inode_entry(const struct inode *inode)
{
	return hand_entry_of(inode, LEDGER_INODE);
}
/* One reference more, in entry *k of the ledger.  In a section.  False: it is being freed: look again. */
static inline bool inode_get_epoch(struct slot *self, struct inode *inode, int *k)
{
	return tally_get(self, &inode->refs, inode_entry(inode), k);
}
/* In a section, without a reference: is the last one gone? */
static inline bool inode_gone(const struct inode *inode)
{
	return tally_read(&inode->refs) >= REF_DEAD;
}
/* The last reference is gone, and is entry `k` of the ledger still (-1: none is). */
void inode_put_dead(struct slot *self, struct inode *inode, int k);
void inode_entry_gone(struct slot *self, struct slot *gone, int k); /* entry `k` of a thread that is gone: let go */
/* True: that was the last reference; then the entry stays. */
static inline bool inode_put_last(struct slot *self, struct inode *inode, int k)
{
	bool last;

	epoch_enter(self); /* as tally.h asks */
	last = tally_put(self, &inode->refs, k);
	epoch_exit(self);
	return last;
}
/* A reference that is entry `k` of the ledger. */
static inline void inode_put_entry(struct slot *self, struct inode *inode, int k)
{
	if (inode_put_last(self, inode, k))
		inode_put_dead(self, inode, k);
}
/* The same where the entry is not at hand. */
static inline void inode_put(struct slot *self, struct inode *inode)
{
	bool first = load_relaxed(&self->ledger[0]) == inode_entry(inode); /* own */

	inode_put_entry(self, inode, likely(first) ? 0 : hand_find(self, inode, LEDGER_INODE));
}
uint64_t inode_number(struct slot *self); /* unique in the segment; from the thread's own range */
/* nlink 0 -> 1 takes the names' reference, 1 -> 0 drops it.  Inode's seq is written by the caller. */
static inline uint32_t inode_type(const struct inode *i)
{
	return load_relaxed(&((struct inode *)(uintptr_t)i)->mode) & S_IFMT; /* constant bits */
}
uint64_t vfs_now(void); /* coarse clock, ns */
/* ctime (and mtime) now, inside the inode's seq; lock held. */
void inode_touch_locked(struct inode *inode, bool mtime);
/* ramfs and special register how the data of a dying inode is freed: by type, S_IFREG or S_IFREG >> 12. */
typedef void inode_drop_fn(struct slot *self, struct inode *inode);
void inode_register_drop(uint32_t s_ifmt, inode_drop_fn *fn);
void xattrs_drop(struct slot *self, struct inode *inode);
void flocks_drop(struct slot *self, struct inode *inode);

/* ---- directories (dentry.c): the hash and the index of one directory -------------------- */

/* In a section.  The dentry or NULL; a NULL is an answer only if name_seq did not change (dir_lookup does that). */
struct dentry *dentry_find_epoch(struct inode *dir, uint32_t hash, const char *name, size_t len);
uint32_t dentry_hash(struct slot *self, const char *name, size_t len);
/* Lock held, or nobody else sees the directory: no need for name_seq. */
struct dentry *dentry_find_locked(struct inode *dir, uint32_t hash, const char *name, size_t len);
/*
 * Memory for an entry, before any lock; NULL: full.  dentry_free() takes it back if it was never reserved.  It is entry *k
 * of the ledger until a record names it: then dentry_noted().
 */
struct dentry *dentry_new(struct slot *self, const char *name, size_t len, uint32_t hash, int *k);
void dentry_noted(struct slot *self, int *k);
/* That is about to end, and d was not reserved. */
void dentry_return(struct slot *self, struct dentry *d, int *k);
void dentry_free(struct slot *self, struct dentry *d, int k);
/*
 * Lock held.  reserve: a place in hash and index, still invisible; 0 or -ENOSPC.  Storing d->inode makes it an entry,
 * storing NULL ends it.  detach: out of hash and index; may be repeated.
 */
int dentry_reserve_locked(struct slot *self, struct inode *dir, struct dentry *d);
void dentry_detach_locked(struct slot *self, struct inode *dir, struct dentry *d);
/* Its memory, once, in two parts: from the first on a death does it.  `owner` is self, or a dead thread, whose ledger is to have it. */
int dentry_retire_note(struct slot *owner, struct dentry *d);
void dentry_retire_noted(struct slot *self, struct dentry *d, int k);
/*
 * Lock held, after a create: the directory waits for its readers in order to grow.  Who created helps them along, by
 * epoch_reclaim() outside of locks, where the directory may be gone already.
 */
bool dentry_waits_locked(struct inode *dir);
uint64_t dir_entries(struct inode *dir);
size_t dentry_table_bytes(const struct dir_table *t); /* 0: no table has so many buckets */

/* ---- path walk (walk.c) ----------------------------------------------------------------------- */

enum walk_flag {
	WALK_FOLLOW = 1, /* follow a symlink in the last component */
	WALK_DIRECTORY = 2, /* the result must be a directory */
	WALK_EMPTY_PATH = 4, /* "" names the start itself */
	WALK_CREATE = 8, /* the last component may be missing: parent and name are returned */
	WALK_PARENT = 16, /* do not look at the last component at all, nor at its length: unlink, rename, mkdir */
	/* openat2 */
	WALK_NO_SYMLINKS = 256,
	WALK_BENEATH = 512,
	WALK_IN_ROOT = 1024,
	WALK_NO_MAGICLINKS = 2048,
	WALK_NO_XDEV = 4096,
	WALK_CACHED = 8192,
};
enum last_kind { LAST_NAME, LAST_DOT, LAST_DOTDOT, LAST_ROOT };

struct walk {
	struct inode *inode; /* NULL: the last component does not exist (WALK_CREATE) */
	struct inode *parent; /* directory in which the last component was looked up */
	struct dentry *dentry; /* of the last component, if it has one */
	const char *last; /* the last component: in the caller's path or in a symlink's target */
	uint32_t last_len;
	uint32_t last_hash;
	enum last_kind last_kind;
	bool trailing_slash;
};
#define WALK_OPENAT2 (WALK_NO_SYMLINKS | WALK_BENEATH | WALK_IN_ROOT | WALK_NO_MAGICLINKS | WALK_NO_XDEV | WALK_CACHED)

/*
 * Entered and left inside one read section, which the CALLER holds around the
 * call and for as long as it uses the result.  `start`: inode of dirfd, or NULL for cwd.
 * No lock, no count, no shared store; may ask to restart, at most a bounded number
 * of times, then walks under rename_lock (which leaves and re-enters the section).
 * 0, -ENOENT, -ENOTDIR, -EISDIR (WALK_CREATE of "name/"), -EACCES, -ELOOP, -ENAMETOOLONG, -EXDEV, -EAGAIN
 * (WALK_CACHED; ".." in a moved tree below WALK_BENEATH or WALK_IN_ROOT).
 */
int walk_epoch(struct who *w, struct inode *start, const char *path, unsigned flags, struct walk *out);

/*
 * The short cut of walk_epoch() for whoever wants the inode alone (walk_common.c): 0, -ENOENT, or WALK_UNCOMMON: walk_epoch()
 * is to decide.
 */
#define WALK_UNCOMMON 2
int walk_common_epoch(struct who *w, const char *path, bool follow, struct inode **out);
/* walk_epoch() with WALK_PARENT, by the short way where there is one. */
int walk_parent_epoch(struct who *w, struct inode *start, const char *path, struct walk *out);

/*
 * Where the tree is not all there is (shelf run): a thread that set its walk_border gets WALK_LEFT from a walk that leaves
 * the tree, by ".." above the root or by an absolute symbolic link, with the path that is still to be walked outside
 * in `left`.  An absolute link that begins with `prefix` stays inside.  NULL: the tree's root is the root.
 */
#define WALK_LEFT (-4100)
struct walk_border {
	const char *prefix; /* canonical: no "//", no slash at its end */
	size_t prefix_len;
	const char *origin; /* which path it was that left */
	char *left; /* PATH_LIMIT bytes */
	unsigned links; /* symbolic links that were followed before this walk */
	unsigned followed; /* and in the one that left */
};
extern __thread struct walk_border *walk_border __attribute__((tls_model("initial-exec")));
/* Behind the prefix, or NULL: the path does not begin with it. */
const char *walk_border_inside(const char *path);
/* WALK_LEFT, or -ENAMETOOLONG.  `first` NULL: what is above the root. */
int walk_border_leave(const char *first, const char *rest, const char *const *behind, unsigned depth, bool directory);

/* What a last component of more than NAME_LIMIT gets, which WALK_PARENT lets through: -ENAMETOOLONG or -ENOENT. */
int walk_name_too_long(struct inode *dir);

/* Take the lock of out->parent found by a walk.  In a section; tries first, else counts, leaves, waits, re-enters
 * (then the walk's other results are stale: returns 1 and the caller looks the name up again under the lock).
 * -ENOENT: the directory has been removed meanwhile; not locked. */
int dir_lock_epoch(struct who *w, struct inode *dir);

/* ---- permissions (perm.c) ------------------------------------------------------------------------ */

#define MAY_EXEC 1u
#define MAY_WRITE 2u
#define MAY_READ 4u
int inode_permission_epoch(struct who *w, struct inode *inode, unsigned mask); /* -EACCES; ACLs included */
int may_create_epoch(struct who *w, struct inode *dir);
int may_delete_epoch(struct who *w, struct inode *dir, struct inode *victim, bool is_dir); /* sticky: EPERM; ENOTDIR, EISDIR */
bool owner_or_capable(struct who *w, struct inode *inode); /* CAP_FOWNER */
bool capable(struct who *w, uint32_t cap);
bool in_group(const struct shelf_cred *c, gid_t gid);
/* Mode of a new inode: umask or default ACL, setgid directory; owner and group. */
struct new_owner {
	uint32_t mode, uid, gid;
};
void new_inode_owner_epoch(struct who *w, struct inode *dir, uint32_t mode, struct new_owner *out);

/* ---- open files ------------------------------------------------------------------------------------- */

/* A name that is told of what happens through a file, also when it is gone: notify.c. */
struct opened {
	struct inode *dir; /* counted */
	uint32_t len;
	char name[]; /* NUL-terminated */
};

struct file {
	struct fd_file head; /* type FD_TYPE_REG, _DIR, _PATH, _NODE for inodes of the tree */
	atomic_u32 flags; /* [a] O_APPEND, O_NONBLOCK, O_DIRECT, O_NOATIME and the access mode */
	bool created; /* [c] this open made it */
	struct inode *inode; /* [c] counted */
	atomic_u64 pos; /* [p] */
	struct lock pos_lock; /* LOCK_FILEPOS */
	atomic_u32 has_flocks; /* [a] this description has taken flock or OFD locks */
	uint64_t opened_by; /* [c] for `shelf fds` */
	uint64_t cred_id; /* [c] the opener's credentials, as a number: linkat by descriptor */
	atomic_u64 owner; /* [a] F_SETOWN, F_SETSIG: api/owner.c */
	uint64_t private_[2]; /* [p] a directory's: where its listing ends; [c] an inotify's: its instance */
	atomic_ptr(struct opened) opened; /* [c] by which of several names, if somebody watched its directory then */
};
static inline bool file_readable(struct file *f)
{
	uint32_t fl = load_relaxed(&f->flags);

	/* Access mode 3 is Linux's "neither": good for ioctl only. */
	return !(fl & O_PATH) && ((fl & O_ACCMODE) == O_RDONLY || (fl & O_ACCMODE) == O_RDWR);
}
static inline bool file_writable(struct file *f)
{
	uint32_t fl = load_relaxed(&f->flags);

	return !(fl & O_PATH) && ((fl & O_ACCMODE) == O_WRONLY || (fl & O_ACCMODE) == O_RDWR);
}
/* Takes over the caller's reference on inode. NULL with *err. */
struct file *file_new(struct slot *self, struct inode *inode, uint32_t type, uint32_t flags, int *err);
/* In two steps, for an open that must not fail once it has created something: type FD_TYPE_NONE in between. */
struct file *file_new_empty(struct slot *self, uint32_t flags, int *err);
void file_fill(struct slot *self, struct file *f, struct inode *inode, uint32_t type);
void file_unfill(struct slot *self, struct file *f); /* back: the inode is in the ledger again */

/* ---- file locks (flock.c) --------------------------------------------------------------------------------- */

enum lock_owner_kind { FLOCK_POSIX, FLOCK_OFD, FLOCK_BSD };
/* POSIX owner: the descriptor table; OFD and BSD: the file. */
int flock_posix(struct who *w, struct file *f, int cmd, struct flock *fl); /* F_GETLK..F_OFD_SETLKW; may sleep */
int flock_bsd(struct who *w, struct file *f, int operation);
void flock_close_posix(struct who *w, struct inode *inode); /* any close of the file by this owner */
void flock_close_file(struct slot *self, struct file *f); /* last put */
/*
 * From task/, per process: the process that a lock names is dead; drop what it left behind (tables, files).
 * Called with no lock held and outside sections.  Its POSIX locks are dropped without this.
 */
typedef void flock_reap_fn(struct slot *self, uint32_t pid, uint64_t start_time);
void flock_register_reap(flock_reap_fn *fn);

/* ---- attributes (attr.c, xattr.c, acl.c) ----------------------------------------------------------------------- */

struct attr { /* one consistent snapshot */
	uint32_t mode, uid, gid, nlink;
	uint64_t ino, size, blocks, rdev;
	uint64_t atime, mtime, ctime, btime;
};
void attr_read_epoch(struct slot *self, struct inode *inode, struct attr *out); /* no shared store */
void attr_to_stat(struct slot *self, const struct attr *a, struct stat *st);
void attr_to_statx(struct slot *self, const struct attr *a, unsigned mask, struct statx *stx);
void attr_attach(void); /* from vfs_attach: registers what recovers a change of attributes */
/* The inode is counted or known to stay; each takes the inode's lock. */
int attr_chmod(struct who *w, struct inode *inode, uint32_t mode);
int attr_chown(struct who *w, struct inode *inode, uint32_t uid, uint32_t gid);
int attr_utimens(struct who *w, struct inode *inode, const struct timespec times[2], bool has_write_access);
/* write and truncate take setuid and setgid bits away; inode locked, inside seq. */
void attr_kill_suid_locked(struct who *w, struct inode *inode);
#define ATIME_DAY_NS (INT64_C(86400) * 1000000000)
/* relatime.  The clock is asked only where atime is later than both others: nothing else knows whether a day has passed. */
static inline bool attr_atime_is_due(struct inode *inode, int64_t atime)
{
	/* Relaxed: single words; being one read early or late is what relatime is about. */
	if (unlikely(atime <= (int64_t)load_relaxed(&inode->mtime) || atime <= (int64_t)load_relaxed(&inode->ctime)))
		return true;
	return clock_now_coarse() - atime >= ATIME_DAY_NS;
}
static inline bool attr_atime_due(struct inode *inode)
{
	return attr_atime_is_due(inode, (int64_t)load_relaxed(&inode->atime)); /* the same */
}
void attr_set_atime(struct slot *self, struct inode *inode, uint64_t old) __attribute__((cold)); /* now, if it still is `old` */
static inline void attr_touch_atime(struct slot *self, struct inode *inode)
{
	uint64_t old = load_relaxed(&inode->atime); /* the CAS decides */

	if (unlikely(attr_atime_is_due(inode, (int64_t)old)))
		attr_set_atime(self, inode, old);
}

ssize_t xattr_get(struct who *w, struct inode *inode, const char *name, void *value, size_t size);
int xattr_set(struct who *w, struct inode *inode, const char *name, const void *value, size_t size, int flags);
ssize_t xattr_list(struct who *w, struct inode *inode, char *list, size_t size);
int xattr_remove(struct who *w, struct inode *inode, const char *name);
/* What the system call checks before it looks at the path: ERANGE, EINVAL, E2BIG. */
int xattr_check_name(const char *name);
int xattr_check_set(const char *name, size_t size, int flags);
/* acl.c: -EACCES or 0 as the ACL says; called when INODE_HAS_ACL. */
int acl_permission_epoch(struct who *w, struct inode *inode, unsigned mask);
/* A new inode inherits dir's default ACL; mode is narrowed. The inode is not published yet. 0 or -ENOSPC */
int acl_inherit(struct who *w, struct inode *dir, struct inode *inode, uint32_t *mode);
int acl_chmod_locked(struct who *w, struct inode *inode, uint32_t mode); /* the mask entry follows chmod */

/* ---- notification hooks (notify.c) -------------------------------------------------------------------------------- */

/*
 * One load when nobody watches anything in the segment.  special/inotify registers the function.
 * IN_CREATE, IN_DELETE, IN_MOVED_*: `dir` hears of `name`.  All else: `dir`, if there is one, hears of `name`, then
 * `inode` of itself.  IN_DELETE_SELF ends the inode's watches.  IN_EXCL_UNLINK beside an event: through a name that is gone.
 * Outside sections; locks down to LOCK_INODE may be held.
 */
typedef void notify_fn(struct slot *self, struct inode *inode, struct inode *dir, const char *name, uint32_t mask,
		       uint32_t cookie);
void notify_register(notify_fn *fn);
/* A watch added at this moment may miss an event, as in Linux: relaxed. */
static inline bool notify_wanted(struct slot *self)
{
	return unlikely(load_relaxed(&self->seg->hdr->watchers));
}
void notify_slow(struct slot *self, struct inode *inode, struct inode *dir, const char *name, uint32_t mask,
		 uint32_t cookie);
static inline void notify(struct slot *self, struct inode *inode, struct inode *dir, const char *name, uint32_t mask,
			  uint32_t cookie)
{
	if (notify_wanted(self))
		notify_slow(self, inode, dir, name, mask, cookie);
}
/* A name has gone, and the locks are still held.  Of the last one, whom nobody has open hears of its end now. */
void notify_removed_slow(struct slot *self, struct inode *inode, struct inode *dir, const char *name) __attribute__((cold));
/* What was done to an inode by one of its names, whichever. */
void notify_inode_slow(struct slot *self, struct inode *inode, uint32_t mask) __attribute__((cold));
static inline void notify_inode(struct slot *self, struct inode *inode, uint32_t mask)
{
	if (notify_wanted(self))
		notify_inode_slow(self, inode, mask);
}
/* In a section: may anybody hear of what is done through the file?  Then the caller keeps it, and says so. */
bool notify_hears_epoch(const struct file *f) __attribute__((cold));
/* What was done through a file that the caller keeps. */
void notify_file_slow(struct slot *self, struct file *f, uint32_t mask) __attribute__((cold));
static inline void notify_file(struct slot *self, struct file *f, uint32_t mask)
{
	if (notify_wanted(self))
		notify_file_slow(self, f, mask);
}
/* What was done by a name that the caller kept. */
void notify_kept(struct slot *self, struct inode *inode, const struct opened *o, uint32_t mask);
/* In a section: the name that a walk found, to be kept; NULL: the inode has no other, or nobody watches there, or no memory. */
struct opened *opened_new_epoch(struct slot *self, const struct walk *k);
/* It is in the caller's ledger until opened_set() gives it to what keeps it in the segment, or opened_put() lets it go. */
void opened_set(struct slot *self, atomic_ptr(struct opened) * at, struct opened *o);
void opened_put(struct slot *self, struct opened *o);
/* What is kept there.  May be repeated after a death. */
void opened_drop(struct slot *self, atomic_ptr(struct opened) * at);

#endif
