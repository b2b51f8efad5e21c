/* SPDX-License-Identifier: MIT */
/*
 * A process dies after its n-th instruction inside a change of file data, for n all over the change.
 * Afterwards every byte is as before or as after it, the sizes and counts agree, no page is lost,
 * no lock is held, and the file can be used on.
 */
#include <fcntl.h>
#include <sys/mman.h>

#include "kill/lib/step.h"
#include "unit/ramfs/lib/data_world.c"

#define BYTES (64 * PAGE_BYTES)
#define OLD 'o'
#define NEW 'n'

struct state {
	char data[BYTES];
	uint64_t size;
};

struct scene {
	struct data_world world;
	struct inode *file, *source, *scratch;
	const struct deed *deed;
	struct step_path path;
	struct state before, after, found;
};

/* One change: the file before, and what the child does to it. */
struct deed {
	const char *name;
	bool whole; /* all of it or nothing, not byte for byte */
	void (*make)(struct who *w, struct inode *f);
	void (*change)(struct who *w, struct inode *f, struct inode *source);
};

static char fresh_data[BYTES];

static void put(struct who *w, struct inode *f, int value, uint64_t off, size_t n)
{
	memset(fresh_data, value, n);
	CHECK(world_pwrite(w, f, fresh_data, n, off) == (ssize_t)n);
}

static void make_empty(struct who *w, struct inode *f)
{
	(void)w, (void)f;
}

static void make_three_pages(struct who *w, struct inode *f)
{
	put(w, f, OLD, 0, 3 * PAGE_BYTES - 100);
}

/* Pages 0, 2, 4 and two allocated ones behind the end. */
static void make_holes(struct who *w, struct inode *f)
{
	put(w, f, OLD, 0, 100);
	put(w, f, OLD, 2 * PAGE_BYTES, PAGE_BYTES);
	put(w, f, OLD, 4 * PAGE_BYTES + 5, 50);
	CHECK(!ramfs_fallocate(w, f, FALLOC_FL_KEEP_SIZE, 5 * PAGE_BYTES, 2 * PAGE_BYTES));
}

/* Each page with a letter of its own. */
static void make_letters(struct who *w, struct inode *f)
{
	int i;

	for (i = 0; i < 7; i++)
		put(w, f, 'a' + i, (uint64_t)i * PAGE_BYTES, i == 6 ? 99 : PAGE_BYTES);
}

/* Without put(): what the child writes must be there before the count begins. */
static void change_write(struct who *w, struct inode *f, uint64_t off, size_t n)
{
	CHECK(world_pwrite(w, f, fresh_data, n, off) == (ssize_t)n);
}

static void overwrite_a_few_bytes(struct who *w, struct inode *f, struct inode *source)
{
	(void)source;
	change_write(w, f, 10, 20);
}

/* The short cut, as a borrower takes it. */
static void overwrite_without_a_count(struct who *w, struct inode *f, struct inode *source)
{
	(void)source;
	epoch_enter(w->self);
	CHECK(ramfs_overwrite_epoch(w->self, f, fresh_data, 600, PAGE_BYTES + 9) == 600);
	epoch_exit(w->self);
}

static void overwrite_two_pages(struct who *w, struct inode *f, struct inode *source)
{
	(void)source;
	change_write(w, f, 4000, 200);
}

static void write_the_first_byte(struct who *w, struct inode *f, struct inode *source)
{
	(void)source;
	change_write(w, f, 0, 1);
}

static void append_over_pages(struct who *w, struct inode *f, struct inode *source)
{
	(void)source;
	CHECK(world_append(w, f, fresh_data, 2 * PAGE_BYTES) == 2 * PAGE_BYTES);
}

static void write_over_holes(struct who *w, struct inode *f, struct inode *source)
{
	(void)source;
	change_write(w, f, 50, 6 * PAGE_BYTES);
}

static void write_far_behind_the_end(struct who *w, struct inode *f, struct inode *source)
{
	(void)source;
	change_write(w, f, 40 * PAGE_BYTES, 10);
}

static void write_a_run(struct who *w, struct inode *f, struct inode *source)
{
	(void)source;
	change_write(w, f, 0, 20 * PAGE_BYTES + 10);
}

static void shrink(struct who *w, struct inode *f, struct inode *source)
{
	(void)source;
	CHECK(!ramfs_truncate(w, f, PAGE_BYTES + 7));
}

/* Somebody maps it: what leaves the file is kept. */
static void make_mapped(struct who *w, struct inode *f)
{
	make_letters(w, f);
	ramfs_map_get(f);
}

static void make_mapped_and_cut(struct who *w, struct inode *f)
{
	make_mapped(w, f);
	CHECK(!ramfs_truncate(w, f, PAGE_BYTES));
}

static void let_go(struct who *w, struct inode *f, struct inode *source)
{
	(void)source;
	if (load_relaxed(&f->file.maps))
		ramfs_map_put(w->self, f);
}

static void empty(struct who *w, struct inode *f, struct inode *source)
{
	(void)source;
	CHECK(!ramfs_truncate(w, f, 0));
}

static void grow(struct who *w, struct inode *f, struct inode *source)
{
	(void)source;
	CHECK(!ramfs_truncate(w, f, 10 * PAGE_BYTES));
}

static void punch(struct who *w, struct inode *f, struct inode *source)
{
	(void)source;
	CHECK(!ramfs_fallocate(w, f, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 500, 4 * PAGE_BYTES));
}

static void zero(struct who *w, struct inode *f, struct inode *source)
{
	(void)source;
	CHECK(!ramfs_fallocate(w, f, FALLOC_FL_ZERO_RANGE, 500, 8 * PAGE_BYTES));
}

static void allocate(struct who *w, struct inode *f, struct inode *source)
{
	(void)source;
	CHECK(!ramfs_fallocate(w, f, 0, 0, 40 * PAGE_BYTES));
}

static void collapse(struct who *w, struct inode *f, struct inode *source)
{
	(void)source;
	CHECK(!ramfs_fallocate(w, f, FALLOC_FL_COLLAPSE_RANGE, PAGE_BYTES, 2 * PAGE_BYTES));
}

static void insert(struct who *w, struct inode *f, struct inode *source)
{
	(void)source;
	CHECK(!ramfs_fallocate(w, f, FALLOC_FL_INSERT_RANGE, PAGE_BYTES, 2 * PAGE_BYTES));
}

static void copy(struct who *w, struct inode *f, struct inode *source)
{
	uint64_t pos = 100;

	CHECK(ramfs_copy_range(w, source, 0, f, &pos, 3 * PAGE_BYTES, 0) == 3 * PAGE_BYTES);
}

static void drop(struct who *w, struct inode *f, struct inode *source)
{
	(void)source;
	inode_put(w->self, f);
}

static const struct deed deeds[] = {
	{"overwrite a few bytes", false, make_three_pages, overwrite_a_few_bytes},
	{"overwrite without a count", false, make_three_pages, overwrite_without_a_count},
	{"overwrite two pages", false, make_three_pages, overwrite_two_pages},
	{"write the first byte", false, make_empty, write_the_first_byte},
	{"append over pages", false, make_three_pages, append_over_pages},
	{"write over holes", false, make_holes, write_over_holes},
	{"write far behind the end", false, make_three_pages, write_far_behind_the_end},
	{"write a run", false, make_empty, write_a_run},
	{"shrink", false, make_letters, shrink},
	{"empty", false, make_holes, empty},
	{"grow", false, make_holes, grow},
	{"punch", false, make_letters, punch},
	{"zero", false, make_holes, zero},
	{"allocate", false, make_holes, allocate},
	{"collapse", true, make_letters, collapse},
	{"insert", true, make_letters, insert},
	{"copy", false, make_holes, copy},
	{"shrink, mapped", false, make_mapped, shrink},
	{"punch, mapped", false, make_mapped, punch},
	{"the last map goes", true, make_mapped_and_cut, let_go},
};
/* The last map goes, and with it what was kept: also what a death between the two has left. */
static void unmap(struct scene *s, struct inode *f)
{
	if (!load_relaxed(&f->file.maps))
		ramfs_map_get(f);
	ramfs_map_put(s->world.self, f);
	CHECK(!load_relaxed(&f->file.maps) && !load_relaxed(&f->file.kept));
}

static const struct deed dropping = {"drop", true, make_letters, drop};

static void state_read(struct scene *s, struct inode *f, struct state *to)
{
	memset(to->data, 0, BYTES);
	to->size = world_size(f);
	CHECK(to->size <= BYTES);
	CHECK(world_pread(&s->world.w, f, to->data, BYTES, 0) == (ssize_t)to->size);
}

/* What the change does when nobody dies. */
static void scene_plan(struct scene *s)
{
	struct who *w = &s->world.w;

	s->file = world_file(w);
	s->deed->make(w, s->file);
	state_read(s, s->file, &s->before);
	memset(fresh_data, NEW, BYTES);
	s->deed->change(w, s->file, s->source);
	if (s->deed == &dropping)
		return;
	state_read(s, s->file, &s->after);
	inode_put(w->self, s->file);
}

static void child_prepare(void *arg)
{
	struct scene *s = arg;

	s->world.w = world_who(&s->world);
	CHECK(s->world.w.self);
	memset(fresh_data, NEW, BYTES);
	/* Lazy binding, and the thread's stocks. */
	s->deed->change(&s->world.w, s->scratch, s->source);
}

static void child_run(void *arg)
{
	struct scene *s = arg;

	s->deed->change(&s->world.w, s->file, s->source);
}

static void check_state(struct scene *s)
{
	const struct state *b = &s->before, *a = &s->after, *f = &s->found;
	uint64_t i;

	CHECK(f->size >= min_of(b->size, a->size) && f->size <= max_of(b->size, a->size));
	if (s->deed->whole)
		CHECK((f->size == b->size && !memcmp(f->data, b->data, BYTES)) ||
		      (f->size == a->size && !memcmp(f->data, a->data, BYTES)));
	for (i = 0; i < f->size; i++)
		CHECK(f->data[i] == b->data[i] || f->data[i] == a->data[i]);
}

/* No lock, no odd count, no page too many; and nothing shines through when the file grows. */
static void check_usable(struct scene *s)
{
	struct who *w = &s->world.w;
	uint64_t i, size = s->found.size;

	CHECK(!(load_acquire(&s->file->seq.n) & 1));
	CHECK(!load_acquire(&s->file->lock.word));
	CHECK(!load_acquire(&s->source->lock.word));
	CHECK(world_pages(s->file) == data_count_pages(&s->file->file.pages, 0, DATA_INDEX_END));
	CHECK(world_data_pages(&s->world) ==
	      world_pages(s->file) + world_pages(s->source) + (s->scratch ? world_pages(s->scratch) : 0));
	CHECK(!ramfs_truncate(w, s->file, BYTES));
	state_read(s, s->file, &s->found);
	for (i = size; i < BYTES; i++)
		CHECK(!s->found.data[i]);
	put(w, s->file, 'x', 100, BYTES - 100);
}

static void scene_check(struct scene *s)
{
	slot_reap(s->world.self);
	CHECK(!segment_poisoned(s->world.seg));
	state_read(s, s->file, &s->found);
	check_state(s);
	unmap(s, s->file);
	unmap(s, s->scratch);
	check_usable(s);
}

/* A dropped inode's pages are all there, or gone. */
static void scene_check_dropped(struct scene *s)
{
	uint64_t before = s->before.size / PAGE_BYTES + 1, others = world_pages(s->source), pages;

	slot_reap(s->world.self);
	CHECK(!segment_poisoned(s->world.seg));
	pages = world_data_pages(&s->world) - others;
	CHECK(pages == 0 || pages == before);
	if (pages && tally_read(&s->file->refs) == 1) /* not put at all */
		inode_put(s->world.self, s->file);
	else if (pages) /* vfs/inode.c: dead between the last put and the intent */
		CHECK(data_erase_range(s->world.self, s->file, &s->file->file.pages, 0, DATA_INDEX_END) == before);
	CHECK(world_data_pages(&s->world) == others);
}

/* False: the change was done before the n-th instruction. */
static bool scene_run(struct scene *s, unsigned long n)
{
	struct step_job job = {child_prepare, child_run, s};
	struct who *w = &s->world.w;
	bool killed;

	s->file = world_file(w);
	s->scratch = world_file(w);
	s->deed->make(w, s->file);
	s->deed->make(w, s->scratch);
	killed = step_kill(&job, &s->path, n);
	if (s->deed == &dropping) {
		scene_check_dropped(s);
		return killed;
	}
	scene_check(s);
	inode_put(w->self, s->file);
	inode_put(w->self, s->scratch);
	return killed;
}

static void die_all_over(const struct deed *deed, uint64_t *random)
{
	static struct scene s;
	unsigned long n, kills = 0, stride = max_of(1000 / test_scaled(15), 1ul);

	s.deed = deed;
	world_open(&s.world, 16UL << 20);
	s.source = world_file(&s.world.w);
	put(&s.world.w, s.source, 's', 0, 2 * PAGE_BYTES + 10);
	put(&s.world.w, s.source, 't', 2 * PAGE_BYTES + 10, PAGE_BYTES);
	scene_plan(&s);
	for (n = test_random(random) % stride; scene_run(&s, n); n += 1 + test_random(random) % (2 * stride))
		kills++;
	printf("%-28s killed %lu times in about %lu instructions\n", deed->name, kills, n);
	CHECK(kills > 3);
	inode_put(s.world.self, s.source);
	world_close(&s.world);
	step_path_end(&s.path);
}

static void a_writer_s_death_leaves_each_byte_old_or_new_and_loses_no_page(void **state)
{
	uint64_t random = test_seed();
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(deeds); i++)
		die_all_over(&deeds[i], &random);
}

static void a_death_while_a_file_is_freed_loses_no_page(void **state)
{
	uint64_t random = test_seed();

	(void)state;
	die_all_over(&dropping, &random);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_writer_s_death_leaves_each_byte_old_or_new_and_loses_no_page),
		cmocka_unit_test(a_death_while_a_file_is_freed_loses_no_page),
	};

	if (!step_possible())
		test_skip("ptrace is not allowed here");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
