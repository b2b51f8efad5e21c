/* SPDX-License-Identifier: MIT */
/*
 * flock_wait.c - waiting for a lock, and who waits for whom.
 *
 * Data: flocks.waiters in order of arrival; vfs_root.flock_graph, the waiting
 * record locks of the whole segment.  Edges lead from want.owner to blocked_by.
 * Protection: see the letters in flock_priv.h; flock_graph_lock is taken below flocks.lock.
 * Waking: who frees a range wakes, in order of arrival, the waiters whose range it is and who
 * had it in their way; of those that exclude one another only the first, the others are `behind` it from
 * then on, which is no edge: it has nothing yet.  The woken try again and keep their place until they have the lock;
 * one that finds another in the way has those behind it woken, for they may be able to go on.
 * An edge is gone from the moment its reason is, so a cycle that is found is a cycle.
 * Progress: blocking.  Each waiter looks again every WAIT_NAP_NS, for a holder or a waker may have died.
 * Death: lists are single links, changed by one store each.  The place of a dead waiter blocks
 * nobody; it is taken off when a neighbour naps or when a cycle seems to lead through it.
 * Limits: only record locks take part in the search for cycles, as in Linux; the search is
 * linear in the waiters of the segment.
 */
#include "segment/hand.h"
#include "vfs/flock_priv.h"
#include "vfs/waitq.h"

#define WAIT_NAP_NS 200000000L

/* ---- the graph ------------------------------------------------------------------------------- */

LOCK_NO_ANALYSIS static struct vfs_root *graph_lock(struct slot *self)
{
	struct vfs_root *root = vfs_root_of(self);

	lock_acquire(&root->flock_graph_lock, &self->locker, LOCK_WAITQ);
	return root;
}

LOCK_NO_ANALYSIS static void graph_unlock(struct slot *self, struct vfs_root *root)
{
	lock_release(&root->flock_graph_lock, &self->locker, LOCK_WAITQ);
}

static void graph_remove_locked(struct vfs_root *root, const struct flock_waiter *w)
{
	struct flock_waiter **at = &root->flock_graph;

	while (*at && *at != w)
		at = &(*at)->graph;
	if (*at)
		*at = w->graph;
}

/* Puts those who wait in the name of `owner` and are not marked yet on the queue; true: one waits for `goal`. */
static bool graph_expand(struct vfs_root *root, const void *owner, const void *goal, struct flock_waiter **queue)
{
	struct flock_waiter *w;

	for (w = root->flock_graph; w; w = w->graph) {
		if (w->mark || w->want.owner != owner || !w->blocked_by)
			continue;
		if (w->blocked_by == goal)
			return true;
		w->mark = 1;
		w->queue = *queue;
		*queue = w;
	}
	return false;
}

/* Does `from` wait, over any number of others, for `goal`? */
static bool graph_leads(struct vfs_root *root, const void *from, const void *goal)
{
	struct flock_waiter *queue = NULL, *w;
	bool found;

	for (w = root->flock_graph; w; w = w->graph)
		w->mark = 0;
	found = graph_expand(root, from, goal, &queue);
	while (!found && queue) {
		w = queue;
		queue = w->queue;
		found = graph_expand(root, w->blocked_by, goal, &queue);
	}
	return found;
}

/* Rare: a cycle has been found, which may lead through the dead. */
static void graph_prune(struct vfs_root *root)
{
	struct flock_waiter **at = &root->flock_graph, *w;

	while ((w = *at)) {
		if (flock_process_dead(w->want.pid, w->want.start_time))
			*at = w->graph;
		else
			at = &w->graph;
	}
}

static bool graph_closes_cycle(struct vfs_root *root, const void *from, const void *goal)
{
	if (likely(!graph_leads(root, from, goal)))
		return false;
	graph_prune(root);
	return graph_leads(root, from, goal);
}

/* ---- the queue of one inode ----------------------------------------------------------------------- */

/* Where it hangs in the queue, or would. */
static struct flock_waiter **queue_place_locked(struct flocks *fs, const struct flock_waiter *w)
{
	struct flock_waiter **at = &fs->waiters;

	while (*at && *at != w)
		at = &(*at)->next;
	return at;
}

static void waiter_free(struct slot *self, struct flocks *fs, struct flock_waiter *w)
{
	struct vfs_root *root = graph_lock(self);
	struct flock_waiter **at = queue_place_locked(fs, w);

	graph_remove_locked(root, w);
	graph_unlock(self, root);
	if (*at)
		hand_free_from(self, (void **)at, w->next, w, sizeof(*w));
	else
		mem_free_held(self, w, sizeof(*w)); /* it did not get there */
}

static bool requests_exclude(const struct lock_request *a, const struct lock_request *b)
{
	return kind_space(a->kind) == kind_space(b->kind) && a->owner != b->owner &&
	       (a->type == F_WRLCK || b->type == F_WRLCK) && ranges_overlap(a->start, a->end, b->start, b->end);
}

/* Somebody before w in the queue has been woken and wants what w wants. */
static const struct flock_waiter *woken_before(const struct flocks *fs, const struct flock_waiter *w)
{
	const struct flock_waiter *u;

	for (u = fs->waiters; u != w; u = u->next)
		if (!u->blocked_by && !u->behind && requests_exclude(&u->want, &w->want))
			return u;
	return NULL;
}

static void wakes_add(struct flock_wakes *out, atomic_u32 *word)
{
	if (out->count == ARRAY_SIZE(out->word))
		flock_wakes_send(out);
	out->word[out->count++] = word;
}

void flock_wakes_send(struct flock_wakes *wakes)
{
	/* The waiter may be gone by now; then this wakes nobody, or somebody who looks again. */
	while (wakes->count)
		futex_wake(wakes->word[--wakes->count], 1);
}

static bool waits_for(const struct flock_waiter *w, const struct lock_request *rq)
{
	return (w->blocked_by == rq->owner || w->behind == rq->owner) &&
	       kind_space(w->want.kind) == kind_space(rq->kind) &&
	       ranges_overlap(w->want.start, w->want.end, rq->start, rq->end);
}

void flocks_taken_locked(struct slot *self, struct flocks *fs, const struct lock_request *rq)
{
	struct vfs_root *root = graph_lock(self);
	struct flock_waiter *w;

	for (w = fs->waiters; w; w = w->next) {
		if (w->behind != rq->owner || !requests_exclude(&w->want, rq))
			continue;
		w->blocked_by = rq->owner;
		w->behind = NULL;
	}
	graph_unlock(self, root);
}

void flocks_freed_locked(struct slot *self, struct flocks *fs, const struct lock_request *rq, struct flock_wakes *out)
{
	struct vfs_root *root;
	struct flock_waiter *w;

	if (likely(!fs->waiters))
		return;
	root = graph_lock(self);
	for (w = fs->waiters; w; w = w->next) {
		const struct flock_waiter *first;

		if (!waits_for(w, rq))
			continue;
		first = woken_before(fs, w);
		w->blocked_by = NULL;
		w->behind = first ? first->want.owner : NULL;
		if (first)
			continue;
		store_release(&w->woken, 1u); /* pairs with the kernel's look in futex_wait */
		wakes_add(out, &w->woken);
	}
	graph_unlock(self, root);
}

/* ---- waiting ------------------------------------------------------------------------------------------ */

static struct flock_waiter *waiter_new(struct slot *self, const struct lock_request *rq)
{
	int k;
	struct flock_waiter *w = mem_alloc_noted(self, sizeof(*w), &k); /* in the ledger until it is in the queue */

	if (!w)
		return NULL;
	w->next = NULL;
	w->graph = NULL;
	w->blocked_by = NULL;
	w->behind = NULL;
	w->want = *rq;
	w->mark = 0;
	w->queued = false;
	store_relaxed(&w->woken, 0); /* published under the lock */
	return w;
}

/* At the end: order of arrival. */
static void queue_append_locked(struct slot *self, struct flocks *fs, struct flock_waiter *w)
{
	struct flock_waiter **at = queue_place_locked(fs, NULL);
	uint32_t given = hand_bit(hand_entry(self, w));

	w->queued = true;
	hand_begin(self, at, (uintptr_t)w, given, 0);
	*at = w;
	fence_compiler(); /* a death leaves it in the queue or in the ledger */
	hand_end(self, given);
}

/* Only record locks take part, and only they can be waited for in a cycle. */
static int waiter_block(struct slot *self, struct flocks *fs, struct flock_waiter *w, const struct range *in_way)
{
	bool counts = w->want.kind == FLOCK_POSIX && in_way->kind == FLOCK_POSIX;
	struct vfs_root *root = graph_lock(self);

	if (counts && graph_closes_cycle(root, in_way->owner, w->want.owner)) {
		graph_unlock(self, root);
		return -EDEADLK;
	}
	/* In the queue first: whoever finds a dead waiter there takes it off the graph too. */
	if (!w->queued)
		queue_append_locked(self, fs, w);
	w->blocked_by = in_way->owner;
	w->behind = NULL;
	store_relaxed(&w->woken, 0); /* wakers come under the lock that we hold */
	graph_remove_locked(root, w); /* it may have been there for another holder */
	if (counts) {
		w->graph = root->flock_graph;
		fence_compiler(); /* whole before it is on the list */
		root->flock_graph = w;
	}
	graph_unlock(self, root);
	return 0;
}

/* The one behind us, or the first: if its process is dead it is taken off. */
static void neighbour_check(struct slot *self, struct flocks *fs, struct flock_waiter *w)
{
	struct flock_waiter *next = w->next ? w->next : fs->waiters;
	struct lock_request want;
	struct flock_wakes wakes = {0};

	if (next == w || !flock_process_dead(next->want.pid, next->want.start_time))
		return;
	want = next->want;
	waiter_free(self, fs, next);
	flocks_freed_locked(self, fs, &want, &wakes); /* who had been told to wait for it */
	flock_wakes_send(&wakes);
}

LOCK_NO_ANALYSIS int flocks_wait_locked(struct slot *self, struct flocks *fs, const struct lock_request *rq,
					const struct range *in_way, struct flock_waiter **waiter)
{
	struct flock_waiter *w = *waiter ? *waiter : waiter_new(self, rq);
	struct flock_wakes wakes = {0};
	int err;

	if (!w)
		return -ENOLCK;
	*waiter = w;
	err = waiter_block(self, fs, w, in_way);
	if (err)
		return err;
	flocks_freed_locked(self, fs, rq, &wakes); /* who is behind us must not wait for whom we wait for */
	flocks_unlock(self, fs);
	flock_wakes_send(&wakes);
	shelf_assert(!epoch_inside(self));
	err = futex_wait(&w->woken, 0, WAIT_NAP_NS);
	flocks_lock(self, fs);
	if (err == -ETIMEDOUT)
		neighbour_check(self, fs, w);
	return wait_ends(self, err) ? -EINTR : 0;
}

/* With the lock or without it; the caller tells those who are behind us (flocks_taken or _freed). */
void flocks_leave_queue_locked(struct slot *self, struct flocks *fs, struct flock_waiter *w)
{
	if (w)
		waiter_free(self, fs, w);
}

void waiters_drop_all(struct slot *self, struct flocks *fs)
{
	while (fs->waiters)
		waiter_free(self, fs, fs->waiters); /* of dead processes: the living hold the inode */
}
