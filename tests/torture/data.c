/* SPDX-License-Identifier: MIT */
/*
 * Threads on the data of files: reads are atomic against writes, recycled pages never shine through,
 * appends do not mix, and a freed file is noticed.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>

#include "unit/ramfs/lib/data_world.c"

#define THREADS_MAX 8

struct crew {
	struct data_world *world;
	struct inode *file[2];
	atomic_ptr(struct inode) current;
	atomic_u32 stop;
	atomic_u64 reads;
	uint64_t seed;
	unsigned long rounds;
};

struct member {
	struct crew *crew;
	pthread_t thread;
	unsigned nr;
	uint64_t random;
	struct who w;
};

typedef void work_fn(struct member *m);
struct job {
	work_fn *work;
	struct member *m;
};

static void *member_run(void *arg)
{
	struct job *job = arg;

	job->m->w = world_who(job->m->crew->world);
	CHECK(job->m->w.self);
	job->work(job->m);
	slot_release(job->m->w.self);
	return NULL;
}

/* `writers` threads run `write` to its end, meanwhile `readers` threads run `read` until stop. */
static void crew_run(struct crew *c, work_fn *write, unsigned writers, work_fn *read, unsigned readers)
{
	struct member m[THREADS_MAX];
	struct job job[THREADS_MAX];
	unsigned i;

	c->seed = test_seed();
	for (i = 0; i < writers + readers; i++) {
		m[i] = (struct member){.crew = c, .nr = i, .random = c->seed + i};
		job[i] = (struct job){i < writers ? write : read, &m[i]};
		CHECK(pthread_create(&m[i].thread, NULL, member_run, &job[i]) == 0);
	}
	for (i = 0; i < writers; i++)
		CHECK(pthread_join(m[i].thread, NULL) == 0);
	store_release(&c->stop, 1);
	for (; i < writers + readers; i++)
		CHECK(pthread_join(m[i].thread, NULL) == 0);
}

/* ---- reads are atomic -------------------------------------------------------------------------- */

#define ATOMIC_AT 4000u

static void write_blocks_of_one_value(struct member *m)
{
	static __thread char block[DATA_ATOMIC];
	unsigned long i;

	for (i = 0; i < m->crew->rounds; i++) {
		uint64_t r = test_random(&m->random);

		memset(block, (int)(r & 0xff), sizeof(block));
		CHECK(world_pwrite(&m->w, m->crew->file[0], block, DATA_ATOMIC, ATOMIC_AT) == DATA_ATOMIC);
		if (r >> 60 == 0) /* the pages come anew */
			CHECK(ramfs_truncate(&m->w, m->crew->file[0], 0) == 0);
		else if (r >> 60 == 1)
			CHECK(ramfs_fallocate(&m->w, m->crew->file[0], FALLOC_FL_COLLAPSE_RANGE, 0, 4096) <= 0);
	}
}

static void read_blocks_of_one_value(struct member *m)
{
	static __thread char got[DATA_ATOMIC];

	while (!load_acquire(&m->crew->stop)) {
		uint64_t r = test_random(&m->random);
		uint64_t off = r % 3 ? r % (DATA_ATOMIC - 1) : 0, n = DATA_ATOMIC - off;
		ssize_t len, i;

		if (r >> 63)
			n = min_of(n, (uint64_t)4096);
		len = world_pread(&m->w, m->crew->file[0], got, n, ATOMIC_AT + off);
		/* Collapsed: the file ends one page earlier. */
		CHECK(len >= 0);
		for (i = 1; i < len; i++)
			CHECK(got[i] == got[0]);
		add_relaxed(&m->crew->reads, 1);
	}
}

static void reads_never_see_a_mix_of_two_writes(void **state)
{
	struct data_world world;
	struct crew c = {.world = &world, .rounds = test_scaled(20000)};

	(void)state;
	world_open(&world, 0);
	c.file[0] = world_file(&world.w);
	crew_run(&c, write_blocks_of_one_value, 2, read_blocks_of_one_value, 2);
	CHECK(load_relaxed(&c.reads) > 0);
	inode_put(world.self, c.file[0]);
	CHECK(world_data_pages(&world) == 0);
	world_close(&world);
}

/* ---- recycled pages ---------------------------------------------------------------------------------- */

#define CHURN_BYTES (48 * PAGE_BYTES)

/* Each writer fills the file of its number with its mark, and cuts and punches it, so that pages wander. */
static void churn(struct member *m)
{
	static __thread char block[CHURN_BYTES];
	unsigned which = m->nr % 2;
	struct inode *f = m->crew->file[which];
	unsigned long i;

	memset(block, 'A' + (int)which, sizeof(block));
	for (i = 0; i < m->crew->rounds; i++) {
		uint64_t r = test_random(&m->random), len = 1 + (r >> 8) % (CHURN_BYTES / 2), off = (r >> 32) % (CHURN_BYTES / 2);
		int punch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;

		switch (r % 8) {
		case 0:
			CHECK(ramfs_truncate(&m->w, f, off) == 0);
			break;
		case 1:
			CHECK(ramfs_fallocate(&m->w, f, punch, off, len) == 0);
			break;
		case 2:
			CHECK(ramfs_fallocate(&m->w, f, 0, off, len) == 0);
			break;
		case 3:
			ramfs_fallocate(&m->w, f, r >> 63 ? FALLOC_FL_COLLAPSE_RANGE : FALLOC_FL_INSERT_RANGE, off & ~PAGE_MASK,
					PAGE_BYTES);
			break;
		case 4:
			CHECK(ramfs_truncate(&m->w, f, 0) == 0);
			break;
		default:
			CHECK(world_pwrite(&m->w, f, block, len, off) == (ssize_t)len);
		}
		if (world_size(f) > 4 * CHURN_BYTES)
			CHECK(ramfs_truncate(&m->w, f, 0) == 0);
	}
}

static void read_own_marks(struct member *m)
{
	static __thread char got[CHURN_BYTES];

	while (!load_acquire(&m->crew->stop)) {
		uint64_t r = test_random(&m->random);
		unsigned which = r & 1;
		uint64_t off = (r >> 8) % CHURN_BYTES, n = 1 + (r >> 32) % (r & 2 ? 100 : CHURN_BYTES);
		ssize_t len = world_pread(&m->w, m->crew->file[which], got, n, off), i;
		int64_t at;

		CHECK(len >= 0);
		for (i = 0; i < len; i++)
			CHECK(got[i] == 0 || got[i] == (char)('A' + which));
		at = world_seek(&m->w, m->crew->file[which], off, r & 4 ? SEEK_DATA : SEEK_HOLE);
		CHECK(at == -ENXIO || at >= (int64_t)off || at >= 0);
		add_relaxed(&m->crew->reads, 1);
	}
}

static void pages_of_one_file_never_shine_through_another(void **state)
{
	struct data_world world;
	struct crew c = {.world = &world, .rounds = test_scaled(20000)};
	unsigned i;

	(void)state;
	world_open(&world, 0);
	for (i = 0; i < 2; i++)
		c.file[i] = world_file(&world.w);
	crew_run(&c, churn, 4, read_own_marks, 2);
	for (i = 0; i < 2; i++) {
		CHECK(world_pages(c.file[i]) == data_count_pages(&c.file[i]->file.pages, 0, DATA_INDEX_END));
		inode_put(world.self, c.file[i]);
	}
	CHECK(world_data_pages(&world) == 0);
	CHECK(world_nodes(&world) == 0);
	world_close(&world);
}

/* ---- files that are freed while they are read ------------------------------------------------------------- */

static struct inode *marked_file(struct who *w, unsigned mark)
{
	struct inode *f = world_file(w);
	char block[3 * PAGE_BYTES];

	CHECK(f);
	memset(block, (int)mark, sizeof(block));
	CHECK(world_pwrite(w, f, block, sizeof(block), 0) == (ssize_t)sizeof(block));
	return f;
}

static void replace_files(struct member *m)
{
	unsigned long i;

	for (i = 0; i < m->crew->rounds; i++) {
		struct inode *f = marked_file(&m->w, 1 + (unsigned)i % 250);

		f = xchg_acq_rel(&m->crew->current, f); /* pairs with itself and with the readers' acquire */
		inode_put(m->w.self, f);
	}
}

/* Borrowed as a descriptor is: the file may lose its last reference at any moment of the read. */
static void read_borrowed(struct member *m)
{
	char got[3 * PAGE_BYTES];

	while (!load_acquire(&m->crew->stop)) {
		struct inode *f;
		unsigned k;

		epoch_enter(m->w.self);
		f = load_acquire(&m->crew->current); /* pairs with replace_files */
		for (k = 0; k < 64; k++) {
			ssize_t n = ramfs_pread_epoch(m->w.self, f, got, sizeof(got), 0), i;

			CHECK(n == (ssize_t)sizeof(got) || n == DATA_AGAIN);
			for (i = 1; i < n; i++)
				CHECK(got[i] == got[0] && got[i]);
		}
		epoch_exit(m->w.self);
		add_relaxed(&m->crew->reads, 1);
	}
}

static void a_borrowed_file_is_read_whole_or_known_to_be_gone(void **state)
{
	struct data_world world;
	struct crew c = {.world = &world, .rounds = test_scaled(20000)};

	(void)state;
	world_open(&world, 0);
	store_release(&c.current, marked_file(&world.w, 1)); /* before the threads */
	crew_run(&c, replace_files, 2, read_borrowed, 2);
	inode_put(world.self, load_acquire(&c.current));
	CHECK(world_data_pages(&world) == 0);
	CHECK(vfs_inodes(world.seg) == 1);
	world_close(&world);
}

/* ---- files that are freed while they are written to ------------------------------------------------------ */

enum { STRAY = 255, OWN_FILES = 128 };

/* No byte but the mark: pages that another file gave back are nobody else's. */
static void check_own(struct who *w, struct inode *f)
{
	unsigned char block[3 * PAGE_BYTES];
	size_t i;

	CHECK(world_pread(w, f, block, sizeof(block), 0) == (ssize_t)sizeof(block));
	for (i = 0; i < sizeof(block); i++)
		CHECK(block[i] == block[0] && block[i] != STRAY);
}

/* Each file that goes leaves its pages to one that nobody else writes to, which is looked at much later. */
static void replace_and_keep(struct member *m)
{
	struct inode *own[OWN_FILES] = {NULL}, **at;
	unsigned long i;

	for (i = 0; i < m->crew->rounds; i++) {
		struct inode *f = marked_file(&m->w, 1 + (unsigned)i % 250);

		f = xchg_acq_rel(&m->crew->current, f); /* pairs with itself and with the writers' acquire */
		at = &own[i % OWN_FILES];
		if (*at) {
			check_own(&m->w, *at);
			inode_put(m->w.self, *at);
		}
		inode_put(m->w.self, f);
		*at = marked_file(&m->w, 1 + (unsigned)i % 250);
	}
	for (i = 0; i < OWN_FILES; i++)
		if (own[i]) {
			check_own(&m->w, own[i]);
			inode_put(m->w.self, own[i]);
		}
}

/* Borrowed, without a count. */
static void overwrite_borrowed(struct member *m)
{
	char stray[PAGE_BYTES];

	memset(stray, STRAY, sizeof(stray));
	while (!load_acquire(&m->crew->stop)) {
		struct inode *f;
		unsigned k;

		epoch_enter(m->w.self);
		f = load_acquire(&m->crew->current); /* pairs with replace_and_keep */
		for (k = 0; k < 16; k++)
			add_relaxed(&m->crew->reads,
				    ramfs_overwrite_epoch(m->w.self, f, stray, sizeof(stray), k % 3 * PAGE_BYTES) != 0);
		epoch_exit(m->w.self);
	}
}

static void a_write_without_a_count_never_lands_in_anothers_page(void **state)
{
	struct data_world world;
	struct crew c = {.world = &world, .rounds = test_scaled(20000)};

	(void)state;
	world_open(&world, 0);
	store_release(&c.current, marked_file(&world.w, 1)); /* before the threads */
	crew_run(&c, replace_and_keep, 2, overwrite_borrowed, 3);
	inode_put(world.self, load_acquire(&c.current));
	CHECK(load_acquire(&c.reads) > 0);
	CHECK(world_data_pages(&world) == 0);
	CHECK(vfs_inodes(world.seg) == 1);
	world_close(&world);
}

/* ---- appends ------------------------------------------------------------------------------------------------ */

#define LINE 50

static void append_lines(struct who *w, struct inode *f, unsigned who, unsigned long lines)
{
	char line[100];
	unsigned long i;

	for (i = 0; i < lines; i++) {
		snprintf(line, sizeof(line), "writer %2u line %8lu %*s\n", who, i, LINE - 25, "end");
		CHECK(strlen(line) == LINE);
		CHECK(world_append(w, f, line, LINE) == LINE);
	}
}

static void append_lines_in_thread(struct member *m)
{
	append_lines(&m->w, m->crew->file[0], m->nr, m->crew->rounds);
}

/* Every line whole, each writer's in order. */
static void check_lines(struct data_world *world, struct inode *f, unsigned writers, unsigned long lines)
{
	unsigned long next[16] = {0}, at;
	char line[LINE + 1] = "";

	CHECK(world_size(f) == (uint64_t)writers * lines * LINE);
	for (at = 0; at < writers * lines; at++) {
		unsigned who;
		unsigned long nr;

		CHECK(world_pread(&world->w, f, line, LINE, at * LINE) == LINE);
		CHECK(sscanf(line, "writer %u line %lu", &who, &nr) == 2 && line[LINE - 1] == '\n');
		CHECK(who < writers && nr == next[who]++);
	}
}

static void lines_appended_by_threads_stay_whole(void **state)
{
	struct data_world world;
	struct crew c = {.world = &world, .rounds = test_scaled(10000)};

	(void)state;
	world_open(&world, 0);
	c.file[0] = world_file(&world.w);
	crew_run(&c, append_lines_in_thread, 4, NULL, 0);
	check_lines(&world, c.file[0], 4, c.rounds);
	inode_put(world.self, c.file[0]);
	world_close(&world);
}

struct child {
	struct data_world *world;
	struct inode *file;
	unsigned nr;
	unsigned long lines;
};

static int append_lines_in_child(void *arg)
{
	struct child *c = arg;
	struct who w = world_who(c->world);

	append_lines(&w, c->file, c->nr, c->lines);
	slot_release(w.self);
	return 0;
}

static void lines_appended_by_processes_stay_whole(void **state)
{
	struct data_world world;
	struct child c = {.world = &world, .lines = test_scaled(10000)};
	pid_t pid[4];

	(void)state;
	world_open(&world, 0);
	c.file = world_file(&world.w);
	for (c.nr = 0; c.nr < 4; c.nr++)
		pid[c.nr] = test_fork(append_lines_in_child, &c);
	while (c.nr--)
		CHECK(test_wait(pid[c.nr]) == 0);
	check_lines(&world, c.file, 4, c.lines);
	inode_put(world.self, c.file);
	CHECK(world_data_pages(&world) == 0);
	world_close(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_never_see_a_mix_of_two_writes),
		cmocka_unit_test(pages_of_one_file_never_shine_through_another),
		cmocka_unit_test(a_borrowed_file_is_read_whole_or_known_to_be_gone),
		cmocka_unit_test(a_write_without_a_count_never_lands_in_anothers_page),
		cmocka_unit_test(lines_appended_by_threads_stay_whole),
		cmocka_unit_test(lines_appended_by_processes_stay_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
