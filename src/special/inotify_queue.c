/* SPDX-License-Identifier: MIT */
/*
 * inotify_queue.c - the events that wait in an instance.
 *
 * Data: a list of struct watch_event, its end, its length in events and in bytes as a reader counts them.
 * Protection: the root's lock.  An event that was taken is the taker's alone, so it is copied out without the lock.
 * Merging, padding and overflow are the kernel's: an event equal to the last one is dropped; a name takes a multiple of
 * sizeof(struct inotify_event); what comes to a full queue is told by one IN_Q_OVERFLOW, which comes on top.
 */
#include <limits.h>
#include <string.h>

#include "base/copy.h"
#include "base/fault.h"
#include "segment/hand.h"
#include "special/inotify_priv.h"

/* ---- in ----------------------------------------------------------------------------------------- */

/* A new event is in the ledger until it is in the queue. */
static void queue_link(struct slot *self, struct inotify_root *root, struct inotify *inst, struct watch_event *e)
{
	uint32_t given = hand_bit(hand_entry(self, e));
	void *at = load_relaxed(&inst->head) ? (void *)&inst->tail->next : (void *)&inst->head; /* [w], as all in this file */

	store_relaxed(&e->next, NULL);
	tracked_store(&root->dirty, 1u);
	token_poke(inst); /* first: dying in between wakes somebody for nothing, not the other way round */
	hand_begin(self, at, (uintptr_t)e, given, 0);
	if (load_relaxed(&inst->head))
		tracked_store(&inst->tail->next, e);
	else
		tracked_store(&inst->head, e);
	hand_end(self, given);
	inst->tail = e;
	inst->count++;
	inst->bytes += event_bytes(e->len);
	tracked_store(&root->dirty, 0u);
	/* Under the lock, for the instance may go behind it; who waits looks under the lock too, so either sees the other. */
	waitq_wake(&inst->readers, INT_MAX);
}

static bool same_as_last(const struct inotify *inst, const struct watch_event *e, const char *name)
{
	const struct watch_event *last = inst->tail;

	if (!load_relaxed(&((struct inotify *)(uintptr_t)inst)->head) || last->mask & IN_IGNORED)
		return false;
	return last->mask == e->mask && last->wd == e->wd && last->len == e->len && (!e->len || !memcmp(last->name, name, e->len));
}

/* Its `cookie` says whether it waits; a reader sees 0. */
static void queue_overflow(struct slot *self, struct inotify_root *root, struct inotify *inst)
{
	if (inst->overflow->cookie)
		return;
	inst->overflow->cookie = 1;
	queue_link(self, root, inst, inst->overflow);
}

static struct watch_event *event_new(struct slot *self, const struct watch_event *e, const char *name)
{
	int k;
	struct watch_event *copy = page_room(self, 0, PAGE_FOR_NAMES) ? mem_alloc_noted(self, event_size(e), &k) : NULL;

	if (!copy)
		return NULL;
	copy->wd = e->wd;
	copy->mask = e->mask;
	copy->cookie = e->cookie;
	copy->len = e->len;
	if (e->len)
		copy_bytes(copy->name, name, e->len);
	copy->name[e->len] = '\0';
	return copy;
}

void queue_add(struct slot *self, struct inotify_root *root, struct inotify *inst, const struct watch_event *e, const char *name)
{
	struct watch_event *copy;

	if (inst->count >= INOTIFY_EVENTS_MAX) {
		queue_overflow(self, root, inst);
		return;
	}
	if (same_as_last(inst, e, name))
		return;
	copy = event_new(self, e, name);
	if (copy)
		queue_link(self, root, inst, copy);
	else
		queue_overflow(self, root, inst);
}

void queue_tell(struct slot *self, struct inotify_root *root, const struct watch *w, uint32_t mask, uint32_t cookie,
		const char *name)
{
	struct watch_event e = {
		.wd = w->wd,
		.mask = mask & (IN_DELETE_SELF | IN_MOVE_SELF) ? mask & ~(uint32_t)IN_ISDIR : mask,
		.cookie = cookie,
		.len = name ? (uint32_t)strlen(name) : 0,
	};

	queue_add(self, root, w->inst, &e, name);
}

/* ---- after a death -------------------------------------------------------------------------------- */

void queue_recount(struct inotify *inst)
{
	struct watch_event *e = load_relaxed(&inst->head);

	inst->count = 0;
	inst->bytes = 0;
	if (!inst->overflow) /* its end was begun */
		return;
	inst->overflow->cookie = 0;
	for (; e; e = load_relaxed(&e->next)) {
		inst->count++;
		inst->bytes += event_bytes(e->len);
		inst->tail = e;
		if (e == inst->overflow)
			e->cookie = 1;
	}
}

static void event_free(struct slot *self, struct inotify *inst, struct watch_event *e)
{
	if (e != inst->overflow)
		mem_free_held(self, e, event_size(e));
}

/* The first event is the caller's, in the ledger but for the one that is the instance's. */
static void queue_unlink(struct slot *self, struct inotify *inst, struct watch_event *e)
{
	struct watch_event *next = load_relaxed(&e->next);

	if (e == inst->overflow)
		hand_begin(self, &inst->head, (uintptr_t)next, 0, 0);
	else
		hand_begin_got(self, &inst->head, (uintptr_t)next, 0, e, LEDGER_MEM);
	tracked_store(&inst->head, next);
	hand_end(self, 0);
}

void queue_free(struct slot *self, struct inotify *inst)
{
	struct watch_event *e;

	while ((e = load_relaxed(&inst->head))) {
		queue_unlink(self, inst, e);
		event_free(self, inst, e);
	}
}

/* ---- out ------------------------------------------------------------------------------------------- */

/* The first event, if it fits: off the queue, the reader's; else -EAGAIN, -EINVAL. */
static int queue_pop(struct slot *self, struct inotify *inst, size_t room, struct watch_event **out)
{
	struct inotify_root *root = inotify_lock(self);
	struct watch_event *e = load_relaxed(&inst->head);
	int err = !e ? -EAGAIN : event_bytes(e->len) > room ? -EINVAL : 0;

	if (!err) {
		tracked_store(&root->dirty, 1u);
		queue_unlink(self, inst, e);
		inst->count--;
		inst->bytes -= event_bytes(e->len);
		if (e == inst->overflow)
			e->cookie = 0;
		tracked_store(&root->dirty, 0u);
	}
	inotify_unlock(self, root);
	*out = e;
	return err;
}

static const char zeros[sizeof(struct inotify_event)];

static int event_copy(char *to, const struct watch_event *e, bool overflow)
{
	size_t n = event_bytes(e->len) - sizeof(struct inotify_event);
	struct inotify_event head = {.wd = e->wd, .mask = e->mask, .cookie = overflow ? 0 : e->cookie, .len = (uint32_t)n};
	int err = copy_to_user(to, &head, sizeof(head));

	if (err || !n)
		return err;
	err = copy_to_user(to + sizeof(head), e->name, e->len);
	return err ? err : copy_to_user(to + sizeof(head) + e->len, zeros, n - e->len);
}

ssize_t inotify_take(struct slot *self, struct file *f, void *buf, size_t size)
{
	struct inotify *inst = inotify_of(f);
	struct watch_event *e;
	size_t done = 0;
	int err;

	while (!(err = queue_pop(self, inst, size - done, &e))) {
		size_t n = event_bytes(e->len);

		err = event_copy((char *)buf + done, e, e == inst->overflow);
		event_free(self, inst, e);
		if (err)
			break; /* the event is lost, as the kernel's */
		done += n;
	}
	return done && err != -EFAULT ? (ssize_t)done : err;
}

int64_t inotify_bytes(struct slot *self, struct file *f)
{
	struct inotify_root *root = inotify_lock(self);
	struct inotify *inst = inotify_of(f);
	int64_t n = (int64_t)inst->bytes - (load_relaxed(&inst->poked) ? (int64_t)sizeof(struct inotify_event) : 0);

	inotify_unlock(self, root);
	return n;
}
