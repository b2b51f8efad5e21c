/* SPDX-License-Identifier: MIT */
/*
 * walk_common.c - the common walk: plain names, one slash between them, directories that all may search, no symlink.
 *
 * What walk.c says of data, shared writes and guarantees holds here.  All else - "." and "..", more slashes, a link, an
 * ACL, a rename at work, a path or name that is too long - is left to walk_epoch(), from the start, so no
 * state of a walk is kept but where it is.
 * walk_parent_epoch() is the same for whoever changes a name: its directory, and the name not looked up.
 * Progress: wait-free.
 */
#include "vfs/lookup.h"
#include "vfs/vfs_priv.h"

/* One word for three questions.  Relaxed: as in perm.c. */
static inline bool is_open_dir(struct inode *inode)
{
	return (load_relaxed(&inode->mode) & (S_IFMT | 0111)) == (S_IFDIR | 0111) &&
	       !(load_relaxed(&inode->flags) & INODE_HAS_ACL);
}

/* One instant of the directory: what the name meant, NULL for nothing; false: a rename is at work. */
static inline_always bool lookup_once(struct inode *dir, const struct component *c, struct inode **inode)
{
	uint32_t seq = seq_read_begin(&dir->dir.name_seq); /* pairs with rename's seq_write_end */

	dentry_find_component(dir, c, inode);
	return seq_read_ok(&dir->dir.name_seq, seq);
}

static inline bool is_plain_name(const struct component *c)
{
	return c->len - 1 < NAME_LIMIT && (c->name[0] != '.' || c->len > 2);
}

int walk_common_epoch(struct who *w, const char *path, bool follow, struct inode **out)
{
	const uint64_t seed = w->self->seg->hdr->hash_seed;
	struct inode *dir = load_acquire(*path == '/' ? &w->fs->root : &w->fs->cwd); /* pairs with chroot, chdir */
	const char *at = path + (*path == '/');
	struct component c;

	for (;; at = c.name + c.len + 1) {
		struct inode *inode;

		component_scan(&c, seed, at);
		if (unlikely(!is_open_dir(dir) || !is_plain_name(&c) || !lookup_once(dir, &c, &inode)))
			return WALK_UNCOMMON;
		if (!c.name[c.len]) {
			dir = inode;
			break;
		}
		if (unlikely(!inode))
			return WALK_UNCOMMON;
		dir = inode;
	}
	if (unlikely(c.name + c.len - path >= PATH_LIMIT || (dir && follow && inode_type(dir) == S_IFLNK)))
		return WALK_UNCOMMON;
	*out = dir;
	return likely(dir != NULL) ? 0 : -ENOENT;
}

/* The directory and the last name, not looked up.  False: uncommon. */
static inline bool parent_common_epoch(struct who *w, const char *path, struct walk *out)
{
	const uint64_t seed = w->self->seg->hdr->hash_seed;
	struct inode *dir = load_acquire(*path == '/' ? &w->fs->root : &w->fs->cwd); /* pairs with chroot, chdir */
	const char *at = path + (*path == '/');
	struct component c;

	for (;; at = c.name + c.len + 1) {
		component_scan(&c, seed, at);
		if (unlikely(!is_open_dir(dir) || !is_plain_name(&c)))
			return false;
		if (!c.name[c.len])
			break;
		if (unlikely(!lookup_once(dir, &c, &dir) || !dir))
			return false;
	}
	*out = (struct walk){.parent = dir, .last = c.name, .last_len = (uint32_t)c.len, .last_hash = component_hash(&c),
			     .last_kind = LAST_NAME};
	return c.name + c.len - path < PATH_LIMIT;
}

int walk_parent_epoch(struct who *w, struct inode *start, const char *path, struct walk *out)
{
	if (likely(!start) && likely(parent_common_epoch(w, path, out)))
		return 0;
	return walk_epoch(w, start, path, WALK_PARENT, out);
}
