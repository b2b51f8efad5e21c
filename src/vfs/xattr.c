/* SPDX-License-Identifier: MIT */
/*
 * xattr.c - extended attributes, with the answers that Linux gives on tmpfs.
 *
 * Data, protection and death: attr_priv.h.
 * Fast path: getxattr and listxattr follow the list inside a read section; they
 * write nothing shared.
 * Progress: reading is wait-free; changes block on inode.lock.
 * Look at it: the names as `getfattr -d -m -` shows them.
 * Limits: names to 255 bytes, values to 64 KiB, a listing to 64 KiB; the list is searched from
 * its start, so hundreds of attributes on one inode get slow.  security.capability
 * asks for SYS_ADMIN (there is no SETFCAP) and knows no user namespaces.
 */
#include "base/copy.h"
#include "base/fault.h"
#include "segment/hand.h"
#include "vfs/attr_priv.h"

#define CAPABILITY_NAME "security.capability"
#define CAPABILITY_REVISION_MASK 0xff000000u
#define CAPABILITY_EFFECTIVE 1u
#define CAPABILITY_REVISION_2 0x02000000u /* 20 bytes */
#define CAPABILITY_REVISION_3 0x03000000u /* 24 bytes */

enum xattr_space { XATTR_USER, XATTR_TRUSTED, XATTR_SECURITY, XATTR_ACL, XATTR_UNKNOWN };

struct xattr_name {
	const char *name;
	enum xattr_space space;
	enum acl_type acl;
	bool unguarded; /* an empty security.capability: anybody may set it, as in Linux */
};

/* ---- names ----------------------------------------------------------------------------- */

static size_t name_length(const char *s, size_t limit)
{
	size_t n = 0;

	while (n < limit && s[n])
		n++;
	return n;
}

static int name_compare(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return (unsigned char)*a - (unsigned char)*b;
}

static bool name_starts(const char *name, const char *prefix)
{
	while (*prefix)
		if (*name++ != *prefix++)
			return false;
	return true;
}

int xattr_check_name(const char *name)
{
	size_t n = name_length(name, XATTR_NAME_MAX + 1);

	return n == 0 || n > XATTR_NAME_MAX ? -ERANGE : 0;
}

int xattr_check_set(const char *name, size_t size, int flags)
{
	int err;

	if (flags & ~(XATTR_CREATE | XATTR_REPLACE))
		return -EINVAL;
	err = xattr_check_name(name);
	if (err)
		return err;
	return size > XATTR_SIZE_MAX ? -E2BIG : 0;
}

static void xattr_parse(const char *name, struct xattr_name *out)
{
	static const struct {
		const char *prefix;
		size_t len;
		enum xattr_space space;
	} spaces[] = {
		{"user.", 5, XATTR_USER},
		{"trusted.", 8, XATTR_TRUSTED},
		{"security.", 9, XATTR_SECURITY},
	};
	size_t i;

	out->name = name;
	out->space = XATTR_UNKNOWN;
	out->unguarded = false;
	for (i = 0; i < ARRAY_SIZE(spaces); i++)
		if (name_starts(name, spaces[i].prefix))
			out->space = spaces[i].space;
	for (i = 0; i < ACL_KINDS; i++) {
		if (name_compare(name, acl_names[i]))
			continue;
		out->space = XATTR_ACL;
		out->acl = (enum acl_type)i;
	}
}

/* "user." alone names nothing; asked after the permissions, as in Linux. */
static int xattr_space_ok(const struct xattr_name *n)
{
	if (n->space == XATTR_UNKNOWN)
		return -EOPNOTSUPP;
	return name_compare(n->name, "user.") && name_compare(n->name, "trusted.") &&
			       name_compare(n->name, "security.") ?
		       0 :
		       -EINVAL;
}

/* ---- permissions ------------------------------------------------------------------------- */

/* user. attributes are for files and directories; in a sticky directory they are its owner's to write. */
static int xattr_user_permission(struct who *w, struct inode *inode, unsigned mask)
{
	uint32_t mode = load_acquire(&inode->mode); /* a snapshot: as if asked a moment earlier */

	if (!S_ISREG(mode) && !S_ISDIR(mode))
		return mask & MAY_WRITE ? -EPERM : -ENODATA;
	if (S_ISDIR(mode) && (mode & S_ISVTX) && (mask & MAY_WRITE) && !owner_or_capable(w, inode))
		return -EPERM;
	return 0;
}

static int xattr_permission_epoch(struct who *w, struct inode *inode, const struct xattr_name *n, unsigned mask)
{
	int err = 0;

	if (n->space == XATTR_SECURITY)
		return (mask & MAY_WRITE) && !n->unguarded && !capable(w, SHELF_CAP_SYS_ADMIN) ? -EPERM : 0;
	if (name_starts(n->name, "system."))
		return 0; /* left to the ACLs' own rules */
	if (n->space == XATTR_TRUSTED) {
		if (capable(w, SHELF_CAP_SYS_ADMIN))
			return 0;
		return mask & MAY_WRITE ? -EPERM : -ENODATA;
	}
	if (n->space == XATTR_USER)
		err = xattr_user_permission(w, inode, mask);
	return err ? err : inode_permission_epoch(w, inode, mask);
}

static int xattr_permission(struct who *w, struct inode *inode, const struct xattr_name *n, unsigned mask)
{
	int err;

	epoch_enter(w->self);
	err = xattr_permission_epoch(w, inode, n, mask);
	epoch_exit(w->self);
	return err ? err : xattr_space_ok(n);
}

static int xattr_capability_ok(const struct xattr *x)
{
	uint32_t magic;

	if (name_compare(x->data, CAPABILITY_NAME) || !x->size)
		return 0;
	if (x->size != 20 && x->size != 24)
		return -EINVAL;
	copy_bytes(&magic, xattr_value(x), sizeof(magic));
	magic &= CAPABILITY_REVISION_MASK;
	return magic == (x->size == 20 ? CAPABILITY_REVISION_2 : CAPABILITY_REVISION_3) ? 0 : -EINVAL;
}

/* ---- blocks and the list ----------------------------------------------------------------------- */

struct xattr *xattr_new(struct slot *self, const char *name, const void *value, size_t size, int *err)
{
	size_t name_len = name_length(name, XATTR_NAME_MAX);
	uint32_t value_at = (uint32_t)ALIGN_UP(name_len + 1, (size_t)8);
	size_t bytes = sizeof(struct xattr) + value_at + size;
	int k;
	struct xattr *x = mem_alloc_noted(self, bytes, &k);

	*err = -ENOSPC;
	if (!x)
		return NULL;
	store_relaxed(&x->next, NULL); /* all of it is published with the link */
	x->bytes = (uint32_t)bytes;
	x->size = (uint32_t)size;
	x->name_len = (uint32_t)name_len;
	x->value_at = value_at;
	copy_bytes(x->data, name, name_len);
	x->data[name_len] = 0;
	*err = value ? copy_from_user(x->data + value_at, value, size) : 0;
	if (!*err)
		return x;
	xattr_free(self, x);
	return NULL;
}

void xattr_free(struct slot *self, struct xattr *x)
{
	if (x)
		mem_free_held(self, x, x->bytes);
}

struct xattrs *xattrs_of_locked(struct slot *self, struct inode *inode)
{
	struct xattrs *xs = load_relaxed(&inode->xattrs); /* lock held */
	size_t i;
	int k;

	if (xs)
		return xs;
	xs = mem_alloc_noted(self, sizeof(*xs), &k);
	if (!xs)
		return NULL;
	for (i = 0; i < ACL_KINDS; i++)
		store_relaxed(&xs->acl[i], NULL); /* published by the next store */
	store_relaxed(&xs->list, NULL);
	hand_begin(self, &inode->xattrs, (uintptr_t)xs, hand_bit(k), 0);
	tracked_store(&inode->xattrs, xs); /* release: pairs with xattr_copy_epoch */
	hand_end(self, hand_bit(k));
	return xs;
}

/* The link at which `name` hangs, or would (the greatest first, as Linux lists them).  *found: what hangs
 * there if it is the name, else NULL. */
static xattr_link *xattr_find(struct xattrs *xs, const char *name, struct xattr **found)
{
	xattr_link *link = &xs->list;

	for (;;) {
		struct xattr *x = load_acquire(link); /* pairs with the store in attr_apply_locked */
		int order = x ? name_compare(x->data, name) : -1;

		if (order <= 0) {
			*found = order ? NULL : x;
			return link;
		}
		link = &x->next;
	}
}

xattr_link *xattr_find_capability_locked(struct inode *inode, struct xattr **found)
{
	struct xattrs *xs = load_relaxed(&inode->xattrs); /* lock held */
	xattr_link *link;

	*found = NULL;
	if (!xs || !(load_relaxed(&inode->flags) & INODE_HAS_XATTR))
		return NULL;
	link = xattr_find(xs, CAPABILITY_NAME, found);
	if (*found && !(*found)->size)
		*found = NULL; /* empty: gives nothing, and Linux leaves it */
	return *found ? link : NULL;
}

/* To be repeated after a death. */
static void xattrs_drop_chain(struct slot *self, xattr_link *link)
{
	struct xattr *x, *next;
	int k;

	while ((x = load_acquire(link))) { /* nobody changes it any more */
		next = load_acquire(&x->next);
		k = retire_begin(self, link, (uintptr_t)next, 0, &x->retired, RETIRE_MEM, x->bytes);
		tracked_store(link, next);
		hand_end(self, 0);
		epoch_retire_noted(self, &x->retired, k);
	}
}

/* Last put: readers in sections may still be looking. */
void xattrs_drop(struct slot *self, struct inode *inode)
{
	struct xattrs *xs = load_acquire(&inode->xattrs); /* nobody changes it any more */
	size_t i;
	int k;

	if (!xs)
		return;
	for (i = 0; i < ACL_KINDS; i++)
		xattrs_drop_chain(self, &xs->acl[i]);
	xattrs_drop_chain(self, &xs->list);
	k = retire_begin(self, &inode->xattrs, 0, 0, &xs->retired, RETIRE_MEM, sizeof(*xs));
	tracked_store(&inode->xattrs, NULL);
	hand_end(self, 0);
	epoch_retire_noted(self, &xs->retired, k);
}

/* ---- get and list -------------------------------------------------------------------------------- */

/* Version 3 says whose root it is for; where that is the reader's own, Linux shows version 2: in OUT.  The size of what is shown. */
static uint32_t xattr_shown(const struct xattr *x, char out[20])
{
	uint32_t magic, root;

	if (x->size != 24 || name_compare(x->data, CAPABILITY_NAME))
		return x->size;
	copy_bytes(&magic, xattr_value(x), sizeof(magic));
	copy_bytes(&root, (const char *)xattr_value(x) + 20, sizeof(root));
	if (root)
		return x->size;
	copy_bytes(out, xattr_value(x), 20);
	magic = CAPABILITY_REVISION_2 | (magic & CAPABILITY_EFFECTIVE);
	copy_bytes(out, &magic, sizeof(magic));
	return 20;
}

static ssize_t xattr_copy_epoch(struct inode *inode, const char *name, void *value, size_t size)
{
	struct xattrs *xs = load_acquire(&inode->xattrs); /* pairs with xattrs_of_locked */
	struct xattr *x = NULL;
	char shown[20];
	uint32_t n;
	int err;

	if (xs)
		xattr_find(xs, name, &x);
	if (!x)
		return -ENODATA;
	if (!x->size && !name_compare(name, CAPABILITY_NAME))
		return -EINVAL; /* Linux decodes it, and cannot */
	n = xattr_shown(x, shown);
	if (!size)
		return n;
	if (size < n)
		return -ERANGE;
	err = copy_to_user(value, n == x->size ? xattr_value(x) : shown, n);
	return err ? err : (ssize_t)n;
}

ssize_t xattr_get(struct who *w, struct inode *inode, const char *name, void *value, size_t size)
{
	struct xattr_name n;
	ssize_t ret = xattr_check_name(name);

	if (ret)
		return ret;
	xattr_parse(name, &n);
	if (n.space == XATTR_ACL)
		return acl_get(w, inode, n.acl, value, size);
	epoch_enter(w->self);
	ret = xattr_permission_epoch(w, inode, &n, MAY_READ);
	if (!ret)
		ret = xattr_space_ok(&n);
	if (!ret)
		ret = xattr_copy_epoch(inode, name, value, size);
	epoch_exit(w->self);
	return ret;
}

/* A listing under way; size 0 only counts. */
struct listing {
	char *at;
	size_t size, used;
	bool trusted;
};

static int listing_add(struct listing *l, const struct xattr *x)
{
	size_t n = x->name_len + 1;
	size_t at = l->used;

	if (!l->trusted && name_starts(x->data, "trusted."))
		return 0;
	l->used += n;
	if (!l->size)
		return 0;
	if (l->used > l->size)
		return l->size >= XATTR_LIST_MAX ? -E2BIG : -ERANGE;
	return copy_to_user(l->at + at, x->data, n);
}

static int listing_add_chain(struct listing *l, xattr_link *link)
{
	struct xattr *x;

	for (x = load_acquire(link); x; x = load_acquire(&x->next)) { /* pairs with attr_apply_locked */
		int err = listing_add(l, x);

		if (err)
			return err;
	}
	return 0;
}

ssize_t xattr_list(struct who *w, struct inode *inode, char *list, size_t size)
{
	struct listing l = {.at = list, .size = min_of(size, (size_t)XATTR_LIST_MAX)};
	struct xattrs *xs;
	int err = 0;
	size_t i;

	l.trusted = capable(w, SHELF_CAP_SYS_ADMIN);
	epoch_enter(w->self);
	xs = load_acquire(&inode->xattrs); /* pairs with xattrs_of_locked */
	for (i = 0; xs && !err && i <= ACL_KINDS; i++)
		err = listing_add_chain(&l, i < ACL_KINDS ? &xs->acl[i] : &xs->list);
	epoch_exit(w->self);
	return err ? err : (ssize_t)l.used;
}

/* ---- set and remove ---------------------------------------------------------------------------------- */

static int xattr_set_locked(struct who *w, struct inode *inode, const struct xattr_name *n, struct xattr *x, int flags)
{
	struct attr_change c = {.inode = inode, .valid = ATTR_LINK, .target = x, .flags_set = INODE_HAS_XATTR};
	struct xattrs *xs;
	int err = xattr_permission(w, inode, n, MAY_WRITE);

	if (err)
		return err;
	xs = x ? xattrs_of_locked(w->self, inode) : NULL;
	if (!xs)
		return -ENOSPC;
	c.link = xattr_find(xs, n->name, &c.gone);
	if (c.gone ? flags & XATTR_CREATE : flags & XATTR_REPLACE)
		return c.gone ? -EEXIST : -ENODATA;
	/* Relaxed: lock held, and x is published by the link. */
	store_relaxed(&x->next, c.gone ? load_relaxed(&c.gone->next) : load_relaxed(c.link));
	attr_commit_locked(w->self, &c);
	return 0;
}

int xattr_set(struct who *w, struct inode *inode, const char *name, const void *value, size_t size, int flags)
{
	struct xattr_name n;
	struct xattr *x;
	int err = xattr_check_set(name, size, flags);

	if (err)
		return err;
	xattr_parse(name, &n);
	if (n.space == XATTR_ACL)
		return acl_set(w, inode, n.acl, value, size);
	n.unguarded = !size && !name_compare(name, CAPABILITY_NAME);
	x = xattr_new(w->self, name, size ? value : "", size, &err);
	if (x)
		err = xattr_capability_ok(x);
	else if (err == -ENOSPC)
		err = 0; /* first whether the caller may at all */
	if (!err) {
		attr_lock(w->self, inode);
		err = xattr_set_locked(w, inode, &n, x, flags);
		attr_unlock(w->self, inode);
	}
	if (err)
		xattr_free(w->self, x);
	return err;
}

static int xattr_remove_locked(struct who *w, struct inode *inode, const struct xattr_name *n)
{
	struct attr_change c = {.inode = inode, .valid = ATTR_LINK};
	struct xattrs *xs;
	int err = xattr_permission(w, inode, n, MAY_WRITE);

	if (err)
		return err;
	xs = load_relaxed(&inode->xattrs); /* lock held */
	if (!xs)
		return -ENODATA;
	c.link = xattr_find(xs, n->name, &c.gone);
	if (!c.gone)
		return -ENODATA;
	c.target = load_relaxed(&c.gone->next); /* lock held */
	if (c.link == &xs->list && !c.target)
		c.flags_clear = INODE_HAS_XATTR;
	attr_commit_locked(w->self, &c);
	return 0;
}

int xattr_remove(struct who *w, struct inode *inode, const char *name)
{
	struct xattr_name n;
	int err = xattr_check_name(name);

	if (err)
		return err;
	xattr_parse(name, &n);
	if (n.space == XATTR_ACL)
		return acl_set(w, inode, n.acl, NULL, 0);
	attr_lock(w->self, inode);
	err = xattr_remove_locked(w, inode, &n);
	attr_unlock(w->self, inode);
	return err;
}
