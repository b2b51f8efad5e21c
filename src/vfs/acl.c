/* SPDX-License-Identifier: MIT */
/*
 * acl.c - POSIX access control lists (POSIX.1e draft 17, as Linux implements it).
 *
 * Data: xattrs.acl[], an immutable block in the wire form of setxattr(2): a version
 * and entries of tag, permissions and id, little-endian, in the order of tags.
 * An access ACL that says no more than the mode is not kept.
 * Protection, death: attr_priv.h; mode and access ACL change inside one turn of inode.seq.
 * Fast path: a permission check loads mode, owner and list, and checks seq.
 * Progress: checks are wait-free (bounded tries, then word by word, see stat.c).
 */
#include "base/copy.h"
#include "base/fault.h"
#include "segment/hand.h"
#include "vfs/attr_priv.h"

#define ACL_VERSION 2u
#define ACL_TRIES 64
#define ACL_NO_ID UINT32_MAX

enum acl_tag {
	ACL_USER_OBJ = 1,
	ACL_USER = 2,
	ACL_GROUP_OBJ = 4,
	ACL_GROUP = 8,
	ACL_MASK = 16,
	ACL_OTHER = 32,
};

struct acl_entry {
	uint16_t tag, perm;
	uint32_t id;
};

struct acl {
	uint32_t version;
	struct acl_entry entry[];
};

const char *const acl_names[ACL_KINDS] = {"system.posix_acl_access", "system.posix_acl_default"};

static const struct acl *acl_of(const struct xattr *x)
{
	return xattr_value(x);
}

static size_t acl_count(const struct xattr *x)
{
	return (x->size - sizeof(struct acl)) / sizeof(struct acl_entry);
}

/* ---- what setxattr brings --------------------------------------------------------------- */

/* The form alone; the block is the caller's own copy.  Ids of tags without one are made the same for all. */
static int acl_parse(struct xattr *x)
{
	struct acl *acl = (struct acl *)(x->data + x->value_at);
	size_t i;

	if (x->size < sizeof(struct acl))
		return -EINVAL;
	if (acl->version != ACL_VERSION)
		return -EOPNOTSUPP;
	if ((x->size - sizeof(struct acl)) % sizeof(struct acl_entry))
		return -EINVAL;
	for (i = 0; i < acl_count(x); i++) {
		struct acl_entry *e = &acl->entry[i];

		switch (e->tag) {
		case ACL_USER:
		case ACL_GROUP:
			if (e->id == ACL_NO_ID)
				return -EINVAL;
			break;
		case ACL_USER_OBJ:
		case ACL_GROUP_OBJ:
		case ACL_MASK:
		case ACL_OTHER:
			e->id = ACL_NO_ID;
			break;
		default:
			return -EINVAL;
		}
	}
	return 0;
}

/* Which tag may follow which: user, named users, group, named groups, mask, other. */
static bool acl_order_ok(unsigned last, unsigned tag)
{
	switch (tag) {
	case ACL_USER_OBJ:
		return last == 0;
	case ACL_USER:
	case ACL_GROUP_OBJ:
		return last == ACL_USER_OBJ || last == ACL_USER;
	case ACL_GROUP:
		return last == ACL_GROUP_OBJ || last == ACL_GROUP;
	case ACL_MASK:
		return last == ACL_GROUP_OBJ || last == ACL_GROUP;
	case ACL_OTHER:
		return last == ACL_GROUP_OBJ || last == ACL_GROUP || last == ACL_MASK;
	}
	return false;
}

static int acl_valid(const struct xattr *x)
{
	const struct acl *acl = acl_of(x);
	bool needs_mask = false, has_mask = false;
	unsigned last = 0;
	size_t i;

	for (i = 0; i < acl_count(x); i++) {
		const struct acl_entry *e = &acl->entry[i];
		bool named = e->tag == ACL_USER || e->tag == ACL_GROUP;

		if ((e->perm & ~07u) || !acl_order_ok(last, e->tag))
			return -EINVAL;
		needs_mask |= named;
		has_mask |= e->tag == ACL_MASK;
		last = e->tag;
	}
	return last == ACL_OTHER && (has_mask || !needs_mask) ? 0 : -EINVAL;
}

/* The mode bits that go with the list; true when they say all that it says. */
static bool acl_to_mode(const struct xattr *x, uint32_t *mode)
{
	const struct acl *acl = acl_of(x);
	uint32_t bits = 0;
	bool same = true;
	size_t i;

	for (i = 0; i < acl_count(x); i++) {
		const struct acl_entry *e = &acl->entry[i];

		switch (e->tag) {
		case ACL_USER_OBJ:
			bits |= (uint32_t)e->perm << 6;
			break;
		case ACL_GROUP_OBJ:
			bits |= (uint32_t)e->perm << 3;
			break;
		case ACL_OTHER:
			bits |= e->perm;
			break;
		case ACL_MASK:
			bits = (bits & ~070u) | (uint32_t)e->perm << 3;
			same = false;
			break;
		default:
			same = false;
		}
	}
	*mode = (*mode & ~0777u) | bits;
	return same;
}

/* ---- get and set ------------------------------------------------------------------------------ */

ssize_t acl_get(struct who *w, struct inode *inode, enum acl_type type, void *value, size_t size)
{
	struct xattrs *xs;
	struct xattr *x;
	ssize_t ret;

	if (inode_type(inode) == S_IFLNK)
		return -EOPNOTSUPP;
	epoch_enter(w->self);
	xs = load_acquire(&inode->xattrs); /* pairs with xattrs_of_locked */
	x = xs ? load_acquire(&xs->acl[type]) : NULL; /* pairs with attr_apply_locked */
	if (!x)
		ret = -ENODATA;
	else if (!size)
		ret = x->size;
	else if (size < x->size)
		ret = -ERANGE;
	else
		ret = copy_to_user(value, xattr_value(x), x->size) ? -EFAULT : (ssize_t)x->size;
	epoch_exit(w->self);
	return ret;
}

static uint32_t acl_flag(enum acl_type type)
{
	return type == ACL_ACCESS ? INODE_HAS_ACL : INODE_HAS_DEFAULT_ACL;
}

/* x (NULL: none) becomes the list of that type. */
static int acl_replace_locked(struct who *w, struct inode *inode, enum acl_type type, struct xattr *x, uint32_t mode)
{
	struct attr_change c = {.inode = inode, .target = x};
	struct xattrs *xs = load_relaxed(&inode->xattrs); /* lock held */

	if (type == ACL_ACCESS) {
		c.valid |= ATTR_MODE;
		c.mode = mode;
	}
	if (!xs && x) {
		xs = xattrs_of_locked(w->self, inode);
		if (!xs)
			return -ENOSPC;
	}
	if (xs) {
		c.valid |= ATTR_LINK;
		c.link = &xs->acl[type];
		c.gone = load_relaxed(c.link); /* lock held */
	}
	if (x)
		c.flags_set = acl_flag(type);
	else
		c.flags_clear = acl_flag(type);
	attr_commit_locked(w->self, &c);
	return 0;
}

/* Takes *x over when it sets it to NULL. */
static int acl_set_locked(struct who *w, struct inode *inode, enum acl_type type, struct xattr **x)
{
	uint32_t mode = load_relaxed(&inode->mode); /* lock held */
	struct xattr *list = *x;
	int err;

	if (type == ACL_DEFAULT && !S_ISDIR(mode))
		return list ? -EACCES : 0;
	if (!owner_or_capable(w, inode))
		return -EPERM;
	err = list ? acl_valid(list) : 0;
	if (err)
		return err;
	if (type == ACL_ACCESS) {
		if (list && acl_to_mode(list, &mode))
			list = NULL; /* the mode says it all */
		mode = attr_strip_setgid(w, mode, load_relaxed(&inode->gid)); /* lock held */
	}
	err = acl_replace_locked(w, inode, type, list, mode);
	if (!err && list)
		*x = NULL;
	return err;
}

int acl_set(struct who *w, struct inode *inode, enum acl_type type, const void *value, size_t size)
{
	struct xattr *x = NULL;
	int err = 0;

	if (value && size) {
		x = xattr_new(w->self, acl_names[type], value, size, &err);
		err = x ? acl_parse(x) : err;
		if (err)
			goto out;
		if (x->size == sizeof(struct acl)) { /* no entries: as if there were no list */
			xattr_free(w->self, x);
			x = NULL;
		}
	}
	err = -EOPNOTSUPP;
	if (inode_type(inode) == S_IFLNK)
		goto out;
	attr_lock(w->self, inode);
	err = acl_set_locked(w, inode, type, &x);
	attr_unlock(w->self, inode);
out:
	xattr_free(w->self, x);
	return err;
}

/* ---- chmod and new inodes ------------------------------------------------------------------------- */

static struct xattr *acl_clone(struct slot *self, const struct xattr *from, enum acl_type type)
{
	int err;
	struct xattr *x = xattr_new(self, acl_names[type], NULL, from->size, &err);

	if (x)
		copy_bytes(x->data + x->value_at, xattr_value(from), from->size);
	return x;
}

/* The class that the mode's group bits stand for: the mask where there is one. */
static struct acl_entry *acl_group_class(struct xattr *x)
{
	struct acl *acl = (struct acl *)(x->data + x->value_at);
	struct acl_entry *group = NULL;
	size_t i;

	for (i = 0; i < acl_count(x); i++) {
		if (acl->entry[i].tag == ACL_MASK)
			return &acl->entry[i];
		if (acl->entry[i].tag == ACL_GROUP_OBJ)
			group = &acl->entry[i];
	}
	return group;
}

static void acl_set_classes(struct xattr *x, uint32_t mode)
{
	struct acl *acl = (struct acl *)(x->data + x->value_at);

	acl->entry[0].perm = (mode >> 6) & 7;
	acl_group_class(x)->perm = (mode >> 3) & 7;
	acl->entry[acl_count(x) - 1].perm = mode & 7;
}

int acl_chmod_locked(struct who *w, struct inode *inode, uint32_t mode)
{
	struct xattrs *xs = load_relaxed(&inode->xattrs); /* lock held */
	struct xattr *old = xs ? load_relaxed(&xs->acl[ACL_ACCESS]) : NULL;
	struct xattr *x = old ? acl_clone(w->self, old, ACL_ACCESS) : NULL;

	if (old && !x)
		return -ENOSPC;
	if (x)
		acl_set_classes(x, mode);
	return acl_replace_locked(w, inode, ACL_ACCESS, x, inode_type(inode) | (mode & 07777));
}

/* What open or mkdir asked for, narrowed by the list, and the list by it.  True: the mode says it all. */
static bool acl_narrow(struct xattr *x, uint32_t *mode)
{
	struct acl *acl = (struct acl *)(x->data + x->value_at);
	struct acl_entry *user = &acl->entry[0], *group = acl_group_class(x);
	struct acl_entry *other = &acl->entry[acl_count(x) - 1];

	user->perm &= (*mode >> 6) & 7;
	group->perm &= (*mode >> 3) & 7;
	other->perm &= *mode & 7;
	*mode = (*mode & ~0777u) | (uint32_t)user->perm << 6 | (uint32_t)group->perm << 3 | other->perm;
	return acl_count(x) == 3;
}

static void acl_hang(struct slot *self, xattr_link *link, struct xattr *x)
{
	uint32_t given = x ? hand_bit(hand_entry(self, x)) : 0;

	hand_begin(self, link, (uintptr_t)x, given, 0);
	tracked_store(link, x);
	hand_end(self, given);
}

/* The inode is not published: plain order, no intent. */
static int acl_give(struct slot *self, struct inode *inode, struct xattr *access, struct xattr *dflt)
{
	struct xattrs *xs = xattrs_of_locked(self, inode);
	uint32_t flags = load_relaxed(&inode->flags); /* nobody else sees it yet, here and below */

	if (!xs)
		return -ENOSPC;
	acl_hang(self, &xs->acl[ACL_ACCESS], access);
	acl_hang(self, &xs->acl[ACL_DEFAULT], dflt);
	flags |= access ? INODE_HAS_ACL : 0u;
	flags |= dflt ? INODE_HAS_DEFAULT_ACL : 0u;
	store_relaxed(&inode->flags, flags);
	return 0;
}

static int acl_inherit_epoch(struct slot *self, const struct xattr *from, struct inode *inode, uint32_t *mode)
{
	bool dir = inode_type(inode) == S_IFDIR;
	struct xattr *access = acl_clone(self, from, ACL_ACCESS);
	struct xattr *dflt = dir && access ? acl_clone(self, from, ACL_DEFAULT) : NULL;
	uint32_t narrowed = *mode;
	int err = -ENOSPC;

	if (!access || (dir && !dflt))
		goto fail;
	if (acl_narrow(access, &narrowed)) {
		xattr_free(self, access);
		access = NULL;
	}
	err = access || dflt ? acl_give(self, inode, access, dflt) : 0;
	if (err)
		goto fail;
	*mode = narrowed;
	store_relaxed(&inode->mode, inode_type(inode) | (narrowed & 07777)); /* not published yet */
	return 0;
fail:
	xattr_free(self, dflt);
	xattr_free(self, access);
	return err;
}

int acl_inherit(struct who *w, struct inode *dir, struct inode *inode, uint32_t *mode)
{
	struct xattrs *xs;
	struct xattr *from;
	int err = 0;

	if (inode_type(inode) == S_IFLNK)
		return 0;
	epoch_enter(w->self);
	xs = load_acquire(&dir->xattrs); /* pairs with xattrs_of_locked */
	from = xs ? load_acquire(&xs->acl[ACL_DEFAULT]) : NULL; /* pairs with attr_apply_locked */
	if (from)
		err = acl_inherit_epoch(w->self, from, inode, mode);
	epoch_exit(w->self);
	return err;
}

/* ---- permission --------------------------------------------------------------------------------------- */

struct acl_subject { /* of one moment */
	uint32_t mode, uid, gid;
	const struct xattr *list;
};

static void acl_subject_load(struct inode *inode, struct acl_subject *s)
{
	struct xattrs *xs = seq_load(&inode->xattrs);

	s->mode = seq_load(&inode->mode);
	s->uid = seq_load(&inode->uid);
	s->gid = seq_load(&inode->gid);
	s->list = xs ? seq_load(&xs->acl[ACL_ACCESS]) : NULL;
}

static void acl_subject_read_epoch(struct inode *inode, struct acl_subject *s)
{
	unsigned i;

	for (i = 0; i < ACL_TRIES; i++) {
		uint32_t begin = seq_read_begin(&inode->seq);

		acl_subject_load(inode, s);
		if (seq_read_ok(&inode->seq, begin))
			return;
		cpu_relax();
	}
}

static int acl_allows(unsigned perm, unsigned mask)
{
	return (perm & mask) == mask ? 0 : -EACCES;
}

/* The mask bounds named users and all groups. */
static int acl_allows_masked(const struct xattr *x, size_t i, unsigned mask)
{
	const struct acl *acl = acl_of(x);
	unsigned perm = acl->entry[i].perm;

	for (; i < acl_count(x); i++)
		if (acl->entry[i].tag == ACL_MASK)
			perm &= acl->entry[i].perm;
	return acl_allows(perm, mask);
}

/* The caller is not the owner. */
static int acl_check(const struct shelf_cred *cred, const struct acl_subject *s, unsigned mask)
{
	const struct acl *acl = acl_of(s->list);
	bool in_some_group = false;
	size_t i;

	for (i = 0; i < acl_count(s->list); i++) {
		const struct acl_entry *e = &acl->entry[i];

		if (e->tag == ACL_USER && e->id == cred->fsuid)
			return acl_allows_masked(s->list, i, mask);
		if (e->tag == ACL_OTHER)
			return in_some_group ? -EACCES : acl_allows(e->perm, mask);
		if ((e->tag == ACL_GROUP_OBJ && in_group(cred, s->gid)) || (e->tag == ACL_GROUP && in_group(cred, e->id))) {
			in_some_group = true;
			if (!acl_allows(e->perm, mask)) /* the first group that would do decides */
				return acl_allows_masked(s->list, i, mask);
		}
	}
	return -EIO; /* cannot be: a list ends with ACL_OTHER */
}

int acl_permission_epoch(struct who *w, struct inode *inode, unsigned mask)
{
	struct acl_subject s;

	mask &= MAY_READ | MAY_WRITE | MAY_EXEC;
	acl_subject_read_epoch(inode, &s);
	if (w->cred->fsuid == s.uid)
		return acl_allows(s.mode >> 6, mask);
	/* With an empty group class Linux does not look at the list at all. */
	if (s.list && (s.mode & 070))
		return acl_check(w->cred, &s, mask);
	return acl_allows(in_group(w->cred, s.gid) ? s.mode >> 3 : s.mode, mask);
}
