/* SPDX-License-Identifier: MIT */
/*
 * inotify.c - instances as open files, and what is heard from vfs/notify.c.
 *
 * Data: the root's list of instances.  A file of type FD_TYPE_INOTIFY has its instance in private_[0] and ends it with
 * its last reference.  Readers wait on the instance's own queue.
 * Death: before the instance is in the list it is in its maker's ledger; between the last reference's end and the mark `ending` the
 * instance is, with its watches: shelf_verify() ends it.
 */
#include <sys/ioctl.h>

#include "base/copy.h"
#include "base/fault.h"
#include "base/syscall.h"
#include "segment/hand.h"
#include "special/inotify_priv.h"
#include "vfs/file_ops.h"

/* ---- what is heard ------------------------------------------------------------------------------ */

static void inotify_hear(struct slot *self, struct inode *inode, struct inode *dir, const char *name, uint32_t mask,
			 uint32_t cookie)
{
	struct inode *own = mask & (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO) ? NULL : inode;
	struct inotify_root *root;

	if (self->seg->read_only || !(watch_wanted(dir, mask) || watch_wanted(own, mask)))
		return;
	shelf_assert(!epoch_inside(self));
	root = inotify_lock(self);
	if (dir)
		watch_tell(self, root, dir, mask, cookie, name);
	if (own)
		watch_tell(self, root, own, mask, cookie, NULL);
	if (own && mask & IN_DELETE_SELF)
		watch_end_inode(self, root, own);
	inotify_unlock(self, root);
}

/* ---- instances ------------------------------------------------------------------------------------ */

/* In the ledger, entries `given`, until it is published. */
static struct inotify *instance_new(struct slot *self, struct file *f, uint32_t *given)
{
	static const struct watch_event none;
	int k, k_overflow;
	struct inotify *inst = mem_alloc_noted(self, sizeof(*inst), &k);
	struct watch_event *overflow = inst ? mem_alloc_noted(self, event_size(&none), &k_overflow) : NULL;

	if (!overflow) {
		if (inst)
			mem_free_noted(self, inst, sizeof(*inst), k);
		return NULL;
	}
	*given = hand_bit(k) | hand_bit(k_overflow);
	zero_bytes(inst, sizeof(*inst));
	zero_bytes(overflow, event_size(&none));
	overflow->wd = -1;
	overflow->mask = IN_Q_OVERFLOW;
	inst->overflow = overflow;
	inst->id = inode_number(self);
	inst->file = f;
	return inst;
}

static void instance_publish(struct slot *self, struct inotify *inst, uint32_t given)
{
	struct inotify_root *root = inotify_lock(self);

	store_relaxed(&inst->next, load_relaxed(&root->instances)); /* [w] */
	hand_begin(self, &root->instances, (uintptr_t)inst, given, 0);
	tracked_store(&root->instances, inst);
	hand_end(self, given);
	inotify_unlock(self, root);
}

struct file *inotify_new(struct slot *self, uint32_t flags, int *err)
{
	struct file *f = file_new_empty(self, flags, err);
	uint32_t given;
	struct inotify *inst = f ? instance_new(self, f, &given) : NULL;

	if (!inst) {
		if (f)
			fd_put(self, &f->head);
		*err = f ? -ENOMEM : *err;
		return NULL;
	}
	f->private_[0] = (uint64_t)(uintptr_t)inst;
	kill_point();
	fence_compiler(); /* the type makes it the file's */
	f->head.type = FD_TYPE_INOTIFY;
	kill_point();
	instance_publish(self, inst, given);
	return f;
}

/* Not when a release that died had ended it: then its memory is another's, perhaps another instance. */
static bool instance_is_of(struct inotify_root *root, const struct inotify *inst, const struct file *f)
{
	struct inotify *at = load_relaxed(&root->instances); /* [w] */

	while (at && at != inst)
		at = load_relaxed(&at->next);
	return at && at->file == f;
}

static void inotify_release(struct slot *self, struct fd_file *head)
{
	struct file *f = container_of(head, struct file, head);
	struct inotify *inst = inotify_of(f);
	struct inotify_root *root = inotify_lock(self);
	char token[INOTIFY_TOKEN_PATH] = "";

	if (instance_is_of(root, inst, f)) {
		if (load_acquire(&inst->token_wd)) /* pairs with inotify_token_set */
			copy_bytes(token, inst->token, sizeof(token));
		tracked_store(&inst->ending, 1u); /* release, both: pair with inotify_lock and end_instances */
		tracked_add(&root->ended, 1u);
	}
	inotify_unlock(self, root);
	inotify_unlock(self, inotify_lock(self)); /* ends it, if nobody has by now */
	if (token[0])
		sys_call3(SYS_unlink, (long)token, 0, 0);
	fd_retire(self, head, RETIRE_FILE, NULL);
}

/* ---- watches ---------------------------------------------------------------------------------------- */

#define MASK_KNOWN                                                                                                \
	(IN_ALL_EVENTS | IN_UNMOUNT | IN_Q_OVERFLOW | IN_IGNORED | IN_ONLYDIR | IN_DONT_FOLLOW | IN_EXCL_UNLINK | \
	 IN_MASK_CREATE | IN_MASK_ADD | IN_ISDIR | IN_ONESHOT)
#define MASK_KEPT (IN_ALL_EVENTS | IN_EXCL_UNLINK | IN_ONESHOT)

int inotify_check_mask(uint32_t mask)
{
	return mask & ~(uint32_t)MASK_KNOWN || !mask ? -EINVAL : 0;
}

static int add_locked(struct slot *self, struct inotify_root *root, struct inotify *inst, struct inode *inode, uint32_t mask)
{
	struct watch *w = watch_by_key(root, inst, inode->ino);
	uint32_t keep = mask & MASK_KEPT;

	if (!w) {
		w = watch_new(self, root, inst, inode, inode->ino, keep);
		return w ? w->wd : -ENOSPC;
	}
	if (mask & IN_MASK_CREATE)
		return -EEXIST;
	if (mask & IN_MASK_ADD)
		keep |= load_relaxed(&w->mask); /* [w] */
	/* The hint may stay wider than the masks are. */
	tracked_store(&inode->watches, load_relaxed(&inode->watches) | keep);
	tracked_store(&w->mask, keep);
	return w->wd;
}

int inotify_add(struct slot *self, struct file *f, struct inode *inode, uint32_t mask)
{
	struct inotify_root *root = inotify_lock(self);
	int wd = add_locked(self, root, inotify_of(f), inode, mask);

	inotify_unlock(self, root);
	return wd;
}

int inotify_remove(struct slot *self, struct file *f, int wd, int *host)
{
	struct inotify_root *root = inotify_lock(self);
	struct inotify *inst = inotify_of(f);
	struct watch *w = watch_by_wd(root, inst, wd);
	int token = (int)load_relaxed(&inst->token_wd); /* [w] */
	int result = w && w->inode ? 0 : w || (token && wd < token) ? 1 : -EINVAL;

	if (!result)
		watch_remove(self, root, w);
	else if (result == 1)
		*host = w ? (int)(w->key & ~KEY_HOST) : wd;
	inotify_unlock(self, root);
	return result;
}

/* ---- reading ------------------------------------------------------------------------------------------ */

/* As the kernel does where a file has no read of its own for several buffers. */
static ssize_t take_all(struct slot *self, struct file *f, const struct iovec *iov, int iovcnt)
{
	size_t done = 0;
	ssize_t n = 0;

	for (int k = 0; k < iovcnt; k++) {
		n = inotify_take(self, f, iov[k].iov_base, iov[k].iov_len);
		if (n < 0)
			break;
		done += (size_t)n;
		if ((size_t)n < iov[k].iov_len)
			break;
	}
	return done ? (ssize_t)done : n;
}

static ssize_t inotify_read(struct who *w, struct file *f, const struct iovec *iov, int iovcnt, size_t total)
{
	struct inotify *inst = inotify_of(f);
	uint32_t ticket;
	ssize_t n;

	(void)total;
	for (;;) {
		ticket = waitq_prepare(&inst->readers);
		n = take_all(w->self, f, iov, iovcnt);
		if (n != -EAGAIN || load_relaxed(&f->flags) & O_NONBLOCK) /* relaxed: a flag */
			return n;
		n = waitq_sleep(w->self, &inst->readers, ticket, -1);
		if (n)
			return n;
	}
}

static int inotify_ioctl(struct who *w, struct file *f, unsigned long request, uintptr_t arg)
{
	int n;

	if (request != FIONREAD)
		return -ENOTTY;
	n = (int)inotify_bytes(w->self, f);
	return arg ? copy_to_user((void *)arg, &n, sizeof(n)) : -EFAULT;
}

/* As the kernel's anonymous files. */
static void inotify_attr(struct who *w, struct file *f, struct attr *out)
{
	(void)w, (void)f;
	*out = (struct attr){.mode = 0600, .nlink = 1};
}

/* ---- the layer ------------------------------------------------------------------------------------------ */

int inotify_init_root(struct slot *self)
{
	struct inotify_root *root = mem_alloc(self, sizeof(*root));
	struct watch_table *table = mem_alloc(self, sizeof(*table));

	if (!root || !table)
		return -ENOSPC; /* the segment goes */
	zero_bytes(root, sizeof(*root));
	zero_bytes(table, sizeof(*table));
	root->table = table;
	segment_set_root(self->seg, SEG_ROOT_SPECIAL, root);
	return 0;
}

int inotify_attach(struct segment *seg)
{
	static const struct file_ops ops = {.read = inotify_read, .ioctl = inotify_ioctl, .attr = inotify_attr};

	(void)seg;
	fd_register_type(FD_TYPE_INOTIFY, inotify_release);
	file_ops_register(FD_TYPE_INOTIFY, &ops);
	notify_register(inotify_hear);
	return 0;
}
