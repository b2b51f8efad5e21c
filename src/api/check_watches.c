/* SPDX-License-Identifier: MIT */
/* check_watches.c - what inotify's check asks of ours: special/inotify_check.c. */
#include "api/check_priv.h"
#include "special/inotify.h"

static bool mark_object(void *ctx, const void *obj, size_t bytes)
{
	struct check *c = ctx;

	return marks_add_exact(&c->marks, obj, bytes) == MARK_NEW;
}

static size_t room_of(void *ctx, const void *obj)
{
	struct check *c = ctx;

	return marks_room(&c->marks, obj);
}

static bool mark_instance(void *ctx, void *inst, size_t bytes)
{
	return check_first(ctx, inst, SEEN_INSTANCE, bytes);
}

static bool mark_watch(void *ctx, void *watch, size_t bytes)
{
	return check_first(ctx, watch, SEEN_WATCH, bytes);
}

static bool known_instance(void *ctx, const void *inst)
{
	return check_known(ctx, inst, SEEN_INSTANCE);
}

static bool known_watch(void *ctx, const void *watch)
{
	return check_known(ctx, watch, SEEN_WATCH);
}

static bool known_file(void *ctx, const struct file *f)
{
	return check_known(ctx, f, SEEN_FILE) && f->head.type == FD_TYPE_INOTIFY;
}

static bool watched(void *ctx, struct inode *inode, uint64_t wants)
{
	struct check *c = ctx;
	struct seen *s = check_known(c, inode, SEEN_INODE);

	if (s)
		s->watched |= wants;
	return s;
}

/* Instances of files: whoever reads such a file follows it. */
static void check_files(struct check *c)
{
	uint64_t n;

	for (n = 0; n <= c->seen_mask; n++) {
		const struct seen *s = check_seen_at(c, n);
		struct fd_file *head = s && s->kind == SEEN_FILE ? s->obj : NULL;

		if (head && head->type == FD_TYPE_INOTIFY && !inotify_check_file(known_instance, c, head))
			check_fault(c, false, "an inotify descriptor leads to no instance");
	}
}

/* What an inode says that is watched, perhaps more. */
static void check_wants(struct check *c)
{
	uint64_t n;

	for (n = 0; c->alone && n <= c->seen_mask; n++) {
		const struct seen *s = check_seen_at(c, n);
		struct inode *inode = s && s->kind == SEEN_INODE ? s->obj : NULL;

		if (inode && s->watched & ~load_relaxed(&inode->watches) && /* nobody else is there */
		    check_fault(c, true, "inode %llu does not know that it is watched", ino_of(inode)))
			store_relaxed(&inode->watches, s->watched);
	}
}

void check_watches(struct check *c)
{
	struct inotify_check w = {
		.mark = mark_object,
		.room = room_of,
		.mark_instance = mark_instance,
		.mark_watch = mark_watch,
		.known_instance = known_instance,
		.known_watch = known_watch,
		.known_file = known_file,
		.watched = watched,
		.ctx = c,
		.alone = c->alone,
		.repair = c->repair,
	};
	struct lock *lock = inotify_check_lock(c->self);

	if (!lock)
		return;
	if (!mark_object(c, segment_root(c->self->seg, SEG_ROOT_SPECIAL), inotify_root_bytes())) {
		check_fault(c, false, "the root of watches is none");
		return;
	}
	check_lock(c, lock, "watches", 0);
	if (!c->settled)
		return;
	inotify_check_each(c->self, &w);
	if (w.damaged)
		check_fault(c, false, "watches or their events are damaged");
	if (w.derived)
		check_fault(c, true, "watches or their events do not add up");
	check_files(c);
	check_wants(c);
	if (c->alone && !w.damaged)
		inotify_check_orphans(c->self, &w);
	if (w.orphans)
		check_left(c, "%u inotify instances are nobody's", w.orphans);
}
