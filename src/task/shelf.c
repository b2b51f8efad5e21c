/* SPDX-License-Identifier: MIT */
/*
 * shelf.c - making and attaching a shelf: the layers' set-up in their order.
 *
 * Data owned: the list of segments that this process has attached, by which a task's
 * address finds its segment on a thread's first call.  Written by attach and detach, read by CAS-free loads.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ramfs/ramfs.h"
#include "special/inotify.h"
#include "task/task_priv.h"

#define SHELVES_MAX 64

static atomic_ptr(struct segment) attached[SHELVES_MAX];

struct segment *attached_segment(const struct seg_header *hdr)
{
	for (unsigned i = 0; i < SHELVES_MAX; i++) {
		struct segment *seg = load_acquire(&attached[i]); /* pairs with attached_add */

		if (seg && seg->hdr == hdr)
			return seg;
	}
	return NULL;
}

static int attached_add(struct segment *seg)
{
	for (unsigned i = 0; i < SHELVES_MAX; i++) {
		struct segment *none = NULL;

		if (load_acquire(&attached[i]) == seg) /* attached a second time: one handle */
			return 0;
		if (cas_acq_rel(&attached[i], &none, seg)) /* pairs with attached_segment */
			return 0;
	}
	return -EMFILE;
}

static void attached_remove(struct segment *seg)
{
	for (unsigned i = 0; i < SHELVES_MAX; i++) {
		struct segment *it = seg;

		if (cas_acq_rel(&attached[i], &it, (struct segment *)NULL))
			return;
	}
}

static int layers_attach(struct segment *seg)
{
	int err = epoch_attach(seg);

	if (!err)
		err = fd_layer_attach(seg);
	if (!err)
		err = vfs_attach(seg);
	if (!err)
		err = ramfs_attach(seg);
	if (!err)
		err = inotify_attach(seg);
	if (!err)
		err = task_layer_attach(seg);
	return err;
}

/* What is attached here must have been made by layers_init, and not by a test of a lower layer. */
static bool layers_are_there(const struct segment *seg)
{
	return segment_root(seg, SEG_ROOT_EPOCH) && segment_root(seg, SEG_ROOT_VFS) &&
	       segment_root(seg, SEG_ROOT_TASKS) && segment_root(seg, SEG_ROOT_SPECIAL);
}

static int layers_init(struct segment *seg, const struct shelf_options *o)
{
	uint32_t uid = o && o->uid != (uint32_t)-1 ? o->uid : (uint32_t)geteuid();
	uint32_t gid = o && o->gid != (uint32_t)-1 ? o->gid : (uint32_t)getegid();
	uint32_t mode = o && o->mode ? o->mode & 07777 : 01777;
	struct slot *self;
	int err = epoch_init(seg);

	if (!err)
		err = layers_attach(seg);
	if (err)
		return err;
	self = slot_self(seg);
	if (!self)
		return -ENOMEM;
	slots_note_layers(seg);
	err = fd_layer_init(seg);
	if (!err)
		err = vfs_init(self, mode, uid, gid);
	if (!err)
		err = inotify_init_root(self);
	if (!err)
		err = task_layer_init(self);
	return err;
}

static void explain(char *why, const char *name, const char *what, int err)
{
	if (why)
		snprintf(why, SHELF_WHY, "shelf %.150s: %s%s%s", name, what, err ? ": " : "",
			 err ? strerrordesc_np(-err) : "");
}

int shelf_create(const char *name, const struct shelf_options *options, struct shelf **out, char why[SHELF_WHY])
{
	struct segment_options so = { .size = options ? options->size : 0 };
	struct segment *seg;
	int err;

	if (!name || !out)
		return -EFAULT;
	err = segment_create(name, &so, &seg, why);
	if (err)
		return err;
	err = layers_init(seg, options);
	if (!err)
		err = attached_add(seg);
	if (err) {
		explain(why, name, "cannot set it up in the memory it has; ask for a larger size", err);
		segment_detach(seg);
		segment_remove(name, NULL);
		return err;
	}
	segment_set_ready(seg);
	*out = (struct shelf *)(void *)seg;
	return 0;
}

int shelf_attach(const char *name, unsigned flags, struct shelf **out, char why[SHELF_WHY])
{
	struct segment *seg;
	struct slot *self;
	int err;

	if (!name || !out)
		return -EFAULT;
	if (flags & ~(SHELF_READ_ONLY | SHELF_TO_CHECK) || flags == (SHELF_READ_ONLY | SHELF_TO_CHECK)) {
		explain(why, name, "unknown flag for shelf_attach", -EINVAL);
		return -EINVAL;
	}
	err = segment_attach(name, flags & SHELF_READ_ONLY ? SEGMENT_READ : flags & SHELF_TO_CHECK ? SEGMENT_CHECK : SEGMENT_USE, &seg,
			     why);
	if (err)
		return err;
	err = layers_are_there(seg) ? layers_attach(seg) : -EINVAL;
	if (!err)
		err = attached_add(seg);
	if (err) {
		if (err == -EINVAL)
			explain(why, name, "has no file tree, so it is no shelf; remove it with `shelf rm`", 0);
		else
			explain(why, name, "cannot attach this process", err);
		segment_detach(seg);
		return err;
	}
	self = seg->read_only ? NULL : slot_self(seg);
	if (self) {
		slots_note_layers(seg);
		if (!(flags & SHELF_TO_CHECK)) {
			slot_reap_quick(self);
			task_sweep_quick(self);
		}
	}
	*out = (struct shelf *)(void *)seg;
	return 0;
}

int shelf_remove(const char *name, char why[SHELF_WHY])
{
	return name ? segment_remove(name, why) : -EFAULT;
}

void shelf_detach(struct shelf *shelf)
{
	struct segment *seg = shelf_segment(shelf);

	attached_remove(seg);
	segment_detach(seg);
}
