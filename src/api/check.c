/* SPDX-License-Identifier: MIT */
/*
 * check.c - shelf_check, shelf_verify: all that can be reached is followed, and what is stored twice compared.
 *
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

void check_fault(struct check *c, bool mended, const char *format, ...)
{
	va_list args;

	c->report->faults++;
	c->report->mended += mended;
	va_start(args, format);
	say(c, format, args);
	va_end(args);
}

void check_left(struct check *c, const char *format, ...)
{
	va_list args;

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
void check_count(struct check *c, struct ref *count, uint32_t should, const char *what, uint64_t number)
{
	uint32_t says = ref_read(count);

	if (says == should)
		return;
	if (says > should && says < REF_SATURATED)
		check_left(c, "%s %llu is counted %u times and held %u times", what, (unsigned long long)number, says, should);
	else
		check_fault(c, c->repair, "%s %llu is counted %u times and held %u times", what, (unsigned long long)number,
			    says, should);
	if (c->repair)
		ref_init(count, should); /* nobody else is there */
}

/* ---- what is nobody's ------------------------------------------------------------------------------ */

static void check_roots(struct check *c)
{
	struct segment *seg = c->self->seg;

	marks_add(&c->marks, seg->hdr->epoch, sizeof(struct epoch_root));
	marks_add(&c->marks, segment_root(seg, SEG_ROOT_VFS), sizeof(struct vfs_root));
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
	store_relaxed(&c->self->inodes, load_relaxed(&c->self->inodes) + found - inodes); /* own slot */
	store_relaxed(&c->self->files, load_relaxed(&c->self->files) + open - files);
}

static void check_leftovers(struct check *c)
{
	struct marks_left left;

	/* Of a damaged shelf what could not be followed is not nobody's. */
	if (c->report->faults != c->report->mended || c->grew)
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

static void check_allocator(struct check *c)
{
	struct segment_counts counts;

	if (segment_check(c->self, &counts))
		check_fault(c, false, "allocator: %s", counts.first_error);
	if (counts.kind[PAGE_DATA] < c->report->data_pages)
		check_fault(c, false, "files have %llu pages, and the allocator knows of %llu",
			    (unsigned long long)c->report->data_pages, (unsigned long long)counts.kind[PAGE_DATA]);
}

/* ---- the whole --------------------------------------------------------------------------------------- */

/* What dead processes had, and what waits to be freed. */
static int check_settle(struct check *c)
{
	slot_reap(c->self);
	task_sweep(c->self);
	inotify_settle(c->self);
	return epoch_barrier(c->self, BARRIER_NS);
}

static int check_begin(struct check *c)
{
	int err;

	check_settle(c);
	c->alone = segment_alone_begin(c->self);
	/* Again: somebody may have died since.  And without it objects that wait are nobody's yet. */
	if (c->alone && check_settle(c)) {
		segment_alone_end(c->self);
		c->alone = false;
	}
	if (c->alone)
		marks_flush(c->self);
	c->report->alone = c->alone;
	c->repair = c->alone && c->o->flags & SHELF_VERIFY_REPAIR;
	c->expected = 2 * (uint64_t)max_of(vfs_inodes(c->self->seg), (int64_t)0);
	err = marks_begin(c->self, &c->marks);
	return err ? err : check_seen_begin(c, c->expected / 2);
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
	if (c->alone)
		check_leftovers(c);
	check_allocator(c);
}

int shelf_verify(struct shelf *shelf, const struct shelf_check_options *options, struct shelf_check_report *report)
{
	static const struct shelf_check_options nothing;
	struct segment *seg = (struct segment *)(void *)shelf;
	struct shelf_check_report unwanted;
	struct check c = { .self = slot_self(seg), .o = options ? options : &nothing };
	int err;

	if (!c.self)
		return -ENOMEM;
	if (seg->read_only)
		return -EROFS;
	if (c.o->flags & ~SHELF_VERIFY_REPAIR)
		return -EINVAL;
	c.report = report ? report : &unwanted;
	*c.report = (struct shelf_check_report){ 0 };
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
