/* SPDX-License-Identifier: MIT */
/*
 * walk.c - from a path to an inode.
 *
 * Data: none of its own; reads dentries, inodes, symlink targets, the task's root and cwd.
 * Shared writes: none.  The whole walk is one read section, which the caller holds.
 * Guarantees: each component is looked up in one instant (its directory's name_seq is unchanged around
 * the lookup), as in Linux; the path as a whole is not one instant.
 * Progress: a component is looked at again while a rename is busy in its directory, WALK_SPIN times at most; then the
 * walk leaves the section, waits for the directory's lock (which finishes what a dead thread left there) and
 * starts again; from the second time on it holds rename_lock, and as renames that find that lock taken
 * queue for it, only renames that had begun before can disturb the walk once more.  That half is in ramfs/rename_lock.c; the waiting in walk_wait.c.
 * Limits: 40 symlinks, 255 bytes a name, 4095 bytes a path.
 */
#include "vfs/vfs_priv.h"

#include "vfs/lookup.h"

#define WALK_SPIN 64u

struct walker {
	struct who *w;
	uint64_t seed;
	struct inode *root; /* ".." stops here, "/" starts here */
	struct inode *dir;
	const char *path, *at;
	unsigned flags;
	unsigned links; /* symlinks followed so far */
	unsigned depth; /* of rest[] */
	bool whole; /* `at` is in a symlink's target that stands for the last component, or `path` was measured */
	const char *rest[SYMLINK_LIMIT]; /* what follows the symlinks that we are inside of */
};

static inline int may_search(struct walker *k, struct inode *dir)
{
	/* Relaxed: as in perm.c. */
	if (likely((load_relaxed(&dir->mode) & 0111) == 0111 && !(load_relaxed(&dir->flags) & INODE_HAS_ACL)))
		return 0;
	return inode_permission_epoch(k->w, dir, MAY_EXEC);
}

/* 0 with *d (NULL: no such name) and *inode, or WALK_RESTART. */
static inline_always int lookup_step(struct inode *dir, const struct component *c, struct dentry **d, struct inode **inode)
{
	unsigned n;

	for (n = 0; n < WALK_SPIN; n++) {
		uint32_t seq = seq_read_begin(&dir->dir.name_seq); /* pairs with rename's seq_write_end */

		*d = dentry_find_component(dir, c, inode);
		if (likely(seq_read_ok(&dir->dir.name_seq, seq)))
			return 0;
		cpu_relax();
	}
	return WALK_RESTART;
}

/* Is `top` still above `dir`?  After ".." in a tree that is being moved the walk might have left it. */
static bool is_below_epoch(struct inode *dir, struct inode *top)
{
	struct inode *up;

	for (; dir != top; dir = up) {
		up = load_acquire(&dir->dir.parent); /* pairs with rename's store */
		if (up == dir)
			return false;
	}
	return true;
}

/* Out of the shelf, with `rest` still to go. */
static int leave(struct walker *k, const char *first, const char *rest)
{
	if (k->flags & (WALK_BENEATH | WALK_NO_XDEV))
		return -EXDEV;
	walk_border->origin = k->path;
	walk_border->followed = k->links;
	return walk_border_leave(first, rest, k->rest, k->depth, k->flags & WALK_DIRECTORY);
}

static int step_up_at_root(struct walker *k, const char *rest)
{
	if (k->flags & WALK_BENEATH)
		return -EXDEV;
	return walk_border && !(k->flags & WALK_IN_ROOT) ? leave(k, NULL, rest) : 0;
}

static int step_up(struct walker *k, const char *rest)
{
	if (k->dir == k->root)
		return step_up_at_root(k, rest);
	k->dir = load_acquire(&k->dir->dir.parent); /* pairs with rename's store */
	if ((k->flags & (WALK_BENEATH | WALK_IN_ROOT)) && !is_below_epoch(k->dir, k->root))
		return -EAGAIN;
	return 0;
}

static bool too_many_links(const struct walker *k)
{
	return k->links + (walk_border ? walk_border->links : 0) >= SYMLINK_LIMIT;
}

/* Go on with the target; `rest` (what stood behind the link) comes afterwards. */
static int step_link(struct walker *k, struct inode *link, const char *rest)
{
	if (too_many_links(k) || (k->flags & WALK_NO_SYMLINKS))
		return -ELOOP;
	k->links++;
	attr_touch_atime(k->w->self, link); /* relatime: a store at most once a day */
	if (*rest)
		k->rest[k->depth++] = rest;
	else if (!k->depth)
		k->whole = true;
	k->at = link->target;
	if (*k->at != '/')
		return 0;
	if (k->flags & WALK_BENEATH)
		return -EXDEV;
	if (unlikely(walk_border != NULL) && !(k->flags & WALK_IN_ROOT)) {
		k->at = walk_border_inside(link->target);
		if (!k->at)
			return leave(k, link->target, "");
	}
	k->dir = k->root;
	return 0;
}

/* The next component's first byte, or the end of everything. */
static inline bool next_component(struct walker *k)
{
	for (;;) {
		while (*k->at == '/')
			k->at++;
		if (likely(*k->at))
			return true;
		if (!k->depth)
			return false;
		k->at = k->rest[--k->depth];
	}
}

static inline enum last_kind component_kind(const char *name, size_t len)
{
	if (likely(name[0] != '.' || len > 2))
		return LAST_NAME;
	if (len == 1)
		return LAST_DOT;
	return name[1] == '.' ? LAST_DOTDOT : LAST_NAME;
}

/* "" or only slashes: the directory where we are. */
static int end_at_root(struct walker *k, struct walk *out)
{
	if (!k->whole && k->at - k->path >= PATH_LIMIT)
		return -ENAMETOOLONG; /* slashes */
	out->inode = out->parent = k->dir;
	out->dentry = NULL;
	out->last = "";
	out->last_len = out->last_hash = 0;
	out->last_kind = LAST_ROOT;
	out->trailing_slash = false;
	return 0;
}

/* "." or "..", last or not; the caller has looked at permissions. */
static int step_dots(struct walker *k, enum last_kind kind, const char *rest)
{
	return kind == LAST_DOTDOT ? step_up(k, rest) : 0;
}

static int end_at_dots(struct walker *k, struct walk *out)
{
	int err = step_dots(k, out->last_kind, "");

	out->inode = k->dir;
	return err;
}

/* The last component.  0, an error, or WALK_RESTART; *link is set when a symlink is to be followed. */
static inline_always int end_at_name(struct walker *k, struct walk *out, const struct component *c, struct inode **link)
{
	unsigned flags = k->flags;
	int err;

	if (out->trailing_slash) {
		if (flags & WALK_CREATE)
			return -EISDIR;
		k->flags = flags |= WALK_FOLLOW | WALK_DIRECTORY;
	}
	err = lookup_step(out->parent, c, &out->dentry, &out->inode);
	if (unlikely(err))
		return err;
	if (!out->inode)
		return flags & WALK_CREATE ? 0 : -ENOENT;
	if (unlikely(inode_type(out->inode) == S_IFLNK) && (flags & WALK_FOLLOW)) {
		*link = out->inode;
		return 0;
	}
	if ((flags & WALK_DIRECTORY) && inode_type(out->inode) != S_IFDIR)
		return -ENOTDIR;
	return 0;
}

/* In a removed directory nothing is looked up, however long. */
int walk_name_too_long(struct inode *dir)
{
	return load_relaxed(&dir->flags) & INODE_DEAD ? -ENOENT : -ENAMETOOLONG; /* relaxed: before or after */
}

/* A component with more behind it, `rest`.  *inode is the directory to go on in; NULL: a symlink's target, see `k`. */
static inline_always int step_name(struct walker *k, struct walk *out, struct inode *dir, const struct component *c,
				   const char *rest, struct inode **inode)
{
	struct dentry *d;
	struct inode *found;

	if (unlikely(lookup_step(dir, c, &d, &found))) {
		out->parent = dir;
		return WALK_RESTART;
	}
	if (unlikely(!found))
		return -ENOENT;
	*inode = found;
	if (likely(inode_type(found) == S_IFDIR))
		return 0;
	*inode = NULL;
	return inode_type(found) == S_IFLNK ? step_link(k, found, rest) : -ENOTDIR;
}

static inline_always int walk_last(struct walker *k, struct walk *out, const struct component *c, const char *end,
			    struct inode **link)
{
	size_t len = c->len;

	if (!k->whole && !k->depth) {
		k->whole = true;
		if (end - k->path >= PATH_LIMIT)
			return -ENAMETOOLONG;
	}
	out->parent = k->dir;
	out->inode = NULL;
	out->dentry = NULL;
	out->last = k->at;
	out->last_len = (uint32_t)len;
	out->last_hash = component_hash(c);
	out->last_kind = component_kind(k->at, len);
	out->trailing_slash = end != k->at + len;
	if (k->flags & WALK_PARENT)
		return 0;
	if (unlikely(len > NAME_LIMIT))
		return out->trailing_slash && k->flags & WALK_CREATE ? -EISDIR : walk_name_too_long(k->dir);
	if (likely(out->last_kind == LAST_NAME))
		return end_at_name(k, out, c, link);
	return end_at_dots(k, out);
}

/* Where we are, `dir` and `at`, stays in registers while one directory follows another; the walker has it for the rest. */
static int walk_run(struct walker *k, struct walk *out)
{
	struct inode *dir = k->dir;
	const uint64_t seed = k->seed;
	int err;

	while (next_component(k)) {
		const char *at = k->at;

		do {
			struct inode *link = NULL, *inode;
			const char *end;
			struct component c;

			err = may_search(k, dir);
			if (unlikely(err))
				return err;
			component_scan(&c, seed, at);
			for (end = at + c.len; *end == '/'; end++)
				;
			k->at = at;
			if (!*end && !k->depth) {
				err = walk_last(k, out, &c, end, &link);
				if (!err && unlikely(link != NULL))
					err = step_link(k, link, end);
				if (err || !link)
					return err;
				break;
			}
			if (unlikely(c.len > NAME_LIMIT))
				return walk_name_too_long(dir);
			k->at = end;
			if (unlikely(component_kind(at, c.len) != LAST_NAME)) {
				err = step_dots(k, component_kind(at, c.len), end);
				if (err)
					return err;
				break;
			}
			err = step_name(k, out, dir, &c, end, &inode);
			if (unlikely(err))
				return err;
			if (unlikely(inode == NULL))
				break; /* a symlink's target comes next */
			k->dir = dir = inode;
			at = end;
		} while (likely(*at));
		dir = k->dir;
	}
	return end_at_root(k, out);
}

/* The directory a walk begins in. */
static int walk_start(struct walker *k, struct who *w, struct inode *start, const char *path, unsigned flags)
{
	k->w = w;
	k->seed = w->self->seg->hdr->hash_seed;
	k->path = k->at = path;
	k->flags = flags;
	k->links = k->depth = 0;
	k->whole = false;
	k->root = load_acquire(&w->fs->root); /* pairs with the store of chroot */
	if (*path == '/' && !(flags & (WALK_BENEATH | WALK_IN_ROOT))) {
		k->dir = k->root;
		return 0;
	}
	k->dir = start ? start : load_acquire(&w->fs->cwd); /* pairs with the store of chdir */
	if (unlikely(!*path))
		return flags & WALK_EMPTY_PATH ? 0 : -ENOENT;
	if (*path == '/' && (flags & WALK_BENEATH))
		return -EXDEV;
	if (unlikely(inode_type(k->dir) != S_IFDIR))
		return -ENOTDIR;
	if (unlikely(flags & (WALK_BENEATH | WALK_IN_ROOT)))
		k->root = k->dir;
	return 0;
}

static bool path_too_long(const char *path)
{
	unsigned n;

	for (n = 0; path[n]; n++)
		if (n == PATH_LIMIT - 1)
			return true;
	return false;
}

static int end_at_start(struct walker *k, struct walk *out)
{
	end_at_root(k, out);
	out->parent = NULL;
	out->last_kind = LAST_DOT;
	return (k->flags & WALK_DIRECTORY) && inode_type(k->dir) != S_IFDIR ? -ENOTDIR : 0;
}

int walk_once(struct who *w, struct inode *start, const char *path, unsigned flags, struct walk *out)
{
	struct walker k;
	int err = walk_start(&k, w, start, path, flags);

	if (likely(!err))
		err = likely(*path) ? walk_run(&k, out) : end_at_start(&k, out);
	/* Linux measures a path before it looks at it. */
	if (unlikely(err < 0) && !k.whole && path_too_long(path))
		return -ENAMETOOLONG;
	return err;
}

int walk_epoch(struct who *w, struct inode *start, const char *path, unsigned flags, struct walk *out)
{
	int err = walk_once(w, start, path, flags, out);

	return likely(err != WALK_RESTART) ? err : walk_slow(w, start, path, flags, out);
}
