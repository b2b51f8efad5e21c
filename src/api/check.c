/* SPDX-License-Identifier: MIT */
/*
 * check.c - shelf_check, shelf_verify: all that can be reached is followed, and what is stored twice compared.
 *
 * Order, when alone: the allocator and the slots are judged (segment/judge.h), since all else relies on them; what the
 * dead left is cleared away, once a child has shown on a copy that it can be (check_trial.c); then everything is
 * followed, without locks.  Where one of the first two finds what it cannot mend, or may not, nothing is changed any more:
 * the rest is looked at as it lies, and only what cannot be followed is told.
 * Faults that nothing mends poison the shelf: calls give EIO, for what they would follow leads anywhere.
 * Data: private tables of this call, mapped for its time.  Each directory is looked at under its lock, so its
 * own entries are judged at one moment.
 * Alone: when no other thread has the shelf, none gets it before the check has ended.  Only then is it told, and
 * with VERIFY_REPAIR mended, how often things are counted and what is nobody's: a call that was killed
 * between taking a reference, an object or a page and writing that down leaves those over.
 * Otherwise such things are left alone, and counts may be reported falsely for what is being changed.
 * Cost: memory of 24 bytes an inode and 8 bytes a page for the time of the call.
 */
#include <stdarg.h>
#include <stdio.h>

#include "api/check_priv.h"
#include "segment/count.h"
#include "segment/judge.h"
#include "special/inotify.h"

#define BARRIER_NS 1000000000L
#define PROGRESS_STEP 4096u

static void say(struct check *c, const char *format, va_list args)
{
	char text[200];

	if (!c->o->say)
		return;
	vsnprintf(text, sizeof(text), format, args);
	c->o->say(c->o->ctx, text);
}

bool check_fault(struct check *c, bool mends, const char *format, ...)
{
	va_list args;

	c->report->faults++;
	c->report->mended += mends && c->repair;
	if (!mends && !c->hopeless++) {
		va_start(args, format);
		vsnprintf(c->first, sizeof(c->first), format, args);
		va_end(args);
	}
	va_start(args, format);
	say(c, format, args);
	va_end(args);
	return mends && c->repair;
}

void check_left(struct check *c, const char *format, ...)
{
	va_list args;

	if (!c->settled)
		return; /* what a dead thread was doing is half done */
	c->report->left++;
	va_start(args, format);
	say(c, format, args);
	va_end(args);
}

void check_progress(struct check *c)
{
	if (c->o->progress && ++c->step % PROGRESS_STEP == 0)
		c->o->progress(c->o->ctx, c->step, max_of(c->expected, c->step));
}

/* Too many: somebody died with one in hand.  Too few: damage, for it would go while it is in use. */
void check_tally(struct check *c, struct tally *count, uint32_t should, const char *what, uint64_t number)
{
	uint32_t says = tally_read(count);

	if (says == should || !c->settled)
		return;
	if (says > should && says < REF_SATURATED)
		check_left(c, "%s %llu is counted %u times and held %u times", what, (unsigned long long)number, says, should);
	else
		check_fault(c, true, "%s %llu is counted %u times and held %u times", what, (unsigned long long)number, says,
			    should);
	if (c->repair)
		tally_init(count, should); /* nobody else is there */
}

void check_lock(struct check *c, struct lock *l, const char *what, uint64_t number)
{
	if (!c->alone || !c->settled || !load_relaxed(&l->word)) /* nobody else is there */
		return;
	if (check_fault(c, true, "%s %llu: locked by nobody", what, (unsigned long long)number))
		store_relaxed(&l->word, 0);
}

void check_seq(struct check *c, struct seqcount *s, const char *what, uint64_t number)
{
	if (!c->alone || !c->settled || !(load_relaxed(&s->n) & 1)) /* nobody else is there */
		return;
	if (check_fault(c, true, "%s %llu: nobody is changing it, and it says so", what, (unsigned long long)number))
		store_relaxed(&s->n, load_relaxed(&s->n) + 1);
}

/* ---- what is nobody's ------------------------------------------------------------------------------ */

static void check_roots(struct check *c)
{
	struct segment *seg = c->self->seg;

	if (marks_add(&c->marks, seg->hdr->epoch, sizeof(struct epoch_root)) != MARK_NEW)
		check_fault(c, false, "the root of the epoch is none");
	if (marks_add_exact(&c->marks, segment_root(seg, SEG_ROOT_VFS), sizeof(struct vfs_root)) != MARK_NEW)
		check_fault(c, false, "the root of the tree is none");
}

/* The counters are sums over the slots: what is missing, or too much, goes to ours. */
static void check_counters(struct check *c)
{
	int64_t inodes = vfs_inodes(c->self->seg), files = fd_files_open(c->self->seg);
	int64_t found = (int64_t)c->report->inodes, open = (int64_t)c->report->open_files;

	if (inodes != found)
		check_left(c, "%lld inodes are there and %lld counted", (long long)found, (long long)inodes);
	if (files != open)
		check_left(c, "%lld files are open and %lld counted", (long long)open, (long long)files);
	if (!c->repair)
		return;
	count_set(&c->self->inodes, count_read(&c->self->inodes) + found - inodes); /* own slot */
	count_set(&c->self->files, count_read(&c->self->files) + open - files);
}

static void check_leftovers(struct check *c)
{
	struct marks_left left;

	/* Of a damaged shelf what could not be followed is not nobody's. */
	if (c->hopeless || c->grew)
		return;
	marks_sweep(&c->marks, c->repair, &left);
	c->report->left_objects = left.objects;
	c->report->left_pages = left.pages;
	if (left.objects)
		check_left(c, "%llu objects are nobody's", (unsigned long long)left.objects);
	if (left.pages)
		check_left(c, "%llu pages are nobody's", (unsigned long long)left.pages);
	check_counters(c);
}

static void judge_said(void *ctx, bool mends, const char *what, uint64_t number)
{
	check_fault(ctx, mends, "allocator: %s %llu", what, (unsigned long long)number);
}

/* What of it was judged before is so again, unless something was freed that is in use. */
static void check_allocator(struct check *c)
{
	struct segment_counts counts;

	if (!c->settled)
		return;
	if (segment_check(c->self, &counts))
		check_fault(c, false, "allocator: %s %llu", counts.first_error, (unsigned long long)counts.error_at);
	if (counts.kind[PAGE_DATA] < c->report->data_pages)
		check_fault(c, false, "files have %llu pages, and the allocator knows of %llu",
			    (unsigned long long)c->report->data_pages, (unsigned long long)counts.kind[PAGE_DATA]);
}

/* Whoever clears away what the dead left takes these. */
static void judge_roots(struct check *c, struct judge *j)
{
	struct task_root *tasks = segment_root(c->self->seg, SEG_ROOT_TASKS);
	struct lock *watches = inotify_check_lock(c->self);

	judge_lock(j, &vfs_root_of(c->self)->rename_lock, SEG_ROOT_VFS);
	judge_lock(j, &vfs_root_of(c->self)->flock_graph_lock, SEG_ROOT_VFS);
	if (tasks)
		judge_lock(j, &tasks->lock, SEG_ROOT_TASKS);
	if (watches)
		judge_lock(j, watches, SEG_ROOT_SPECIAL);
}

/* False: what the rest relies on is wrong, and stays so. */
static bool check_ground(struct check *c)
{
	struct judge j = {.self = c->self, .repair = c->repair, .fault = judge_said, .ctx = c};
	uint64_t before = c->report->faults - c->report->mended;

	if (marks_begin(c->self, &j.marks))
		return false;
	if (!judge_allocator(&j))
		judge_slots(&j);
	judge_roots(c, &j);
	marks_end(&j.marks);
	return before == c->report->faults - c->report->mended;
}

/* ---- the whole --------------------------------------------------------------------------------------- */

/* What dead processes had, and what waits to be freed. */
int check_settle(struct check *c)
{
	slot_reap(c->self);
	task_sweep(c->self);
	inotify_settle(c->self);
	return epoch_barrier(c->self, BARRIER_NS);
}

/* Nobody else is there.  False: things stay as they are. */
static bool settle_alone(struct check *c)
{
	if (!check_ground(c))
		return false;
	if (!check_trial(c)) {
		if (!check_fault(c, true, "what dead processes were doing cannot be brought to an end"))
			return false;
		slots_forget_dead(c->self);
		if (!check_trial(c)) {
			check_fault(c, false, "what dead processes had cannot be cleared away");
			return false;
		}
	}
	return !check_settle(c);
}

/* The counters may say anything. */
static uint64_t expected_inodes(struct segment *seg)
{
	struct segment_space space;

	segment_space(seg, &space);
	return min_of((uint64_t)max_of(vfs_inodes(seg), (int64_t)0), space.total_pages * (PAGE_BYTES / sizeof(struct inode)));
}

static int check_begin(struct check *c)
{
	int err;

	c->settled = true;
	c->alone = segment_alone_begin(c->self);
	if (c->alone) {
		c->repair = c->o->flags & SHELF_VERIFY_REPAIR;
		c->settled = settle_alone(c);
		c->self->seg->hands_off = !c->settled;
	} else {
		check_settle(c);
	}
	if (c->alone && c->settled)
		marks_flush(c->self);
	c->repair &= c->settled;
	c->report->alone = c->alone;
	c->expected = expected_inodes(c->self->seg);
	err = marks_begin(c->self, &c->marks);
	err = err ? err : check_seen_begin(c, c->expected);
	c->expected *= 2;
	return err;
}

/* Damage that nothing mends, or none at all any more. */
static void check_judged(struct check *c)
{
	if (!c->alone)
		return;
	if (c->hopeless && (c->settled || c->o->flags & SHELF_VERIFY_REPAIR))
		segment_poison(c->self->seg, c->first);
	else if (c->repair && c->report->faults == c->report->mended)
		segment_unpoison(c->self->seg);
}

static void check_end(struct check *c)
{
	if (c->seen)
		check_seen_end(c);
	marks_end(&c->marks);
	if (c->alone)
		segment_alone_end(c->self);
}

static void check_all(struct check *c)
{
	check_roots(c);
	check_tree(c);
	check_open(c);
	check_inodes(c);
	if (c->alone && c->settled)
		check_leftovers(c);
	check_allocator(c);
	check_judged(c);
}

int shelf_verify(struct shelf *shelf, const struct shelf_check_options *options, struct shelf_check_report *report)
{
	static const struct shelf_check_options nothing;
	struct segment *seg = (struct segment *)(void *)shelf;
	const char *beyond = segment_bounds(seg);
	struct shelf_check_report unwanted;
	struct check c = { .o = options ? options : &nothing, .report = report ? report : &unwanted };
	int err;

	*c.report = (struct shelf_check_report){ 0 };
	if (seg->read_only)
		return -EROFS;
	if (c.o->flags & ~SHELF_VERIFY_REPAIR)
		return -EINVAL;
	if (beyond) { /* not even a slot can be had */
		check_fault(&c, false, "allocator: %s", beyond);
		c.report->alone = 1;
		segment_poison(seg, c.first);
		return 0;
	}
	c.self = slot_self(seg);
	if (!c.self)
		return -ENOMEM;
	err = check_begin(&c);
	if (!err)
		check_all(&c);
	check_end(&c);
	return err ? err : c.grew ? -ENOMEM : 0;
}

int64_t shelf_check(struct shelf *shelf, void (*say_fault)(void *ctx, const char *fault), void *ctx)
{
	struct shelf_check_options options = { .say = say_fault, .ctx = ctx };
	struct shelf_check_report report;
	int err = shelf_verify(shelf, &options, &report);

	return err ? err : (int64_t)report.faults;
}
