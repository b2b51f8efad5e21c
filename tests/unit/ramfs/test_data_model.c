/* SPDX-License-Identifier: MIT */
/* Random changes of one file, next to a model: a flat buffer and a note of which pages are there. */
#include "data_world.h"

#include <fcntl.h>
#include <sys/mman.h>

#define MODEL_PAGES 600
#define MODEL_BYTES (MODEL_PAGES * PAGE_BYTES)
#define STEP_MAX (80 * PAGE_BYTES)

enum model_page { HOLE, UNWRITTEN, WRITTEN };

struct model {
	struct data_world world;
	struct inode *file, *other;
	unsigned char *data; /* bytes behind the size are zero */
	unsigned char *buf, *got;
	uint64_t size;
	uint64_t random;
	unsigned char page[MODEL_PAGES];
};

static uint64_t pick(struct model *m, uint64_t below)
{
	return test_random(&m->random) % below;
}

/* Small, page-sized and large ones, often on page boundaries. */
static uint64_t pick_length(struct model *m)
{
	switch (pick(m, 4)) {
	case 0:
		return 1 + pick(m, 64);
	case 1:
		return 1 + pick(m, 3 * PAGE_BYTES);
	case 2:
		return PAGE_BYTES * (1 + pick(m, 40));
	default:
		return 1 + pick(m, STEP_MAX);
	}
}

static uint64_t pick_offset(struct model *m, uint64_t len)
{
	uint64_t at = pick(m, MODEL_BYTES - len);

	switch (pick(m, 4)) {
	case 0:
		return m->size + len < MODEL_BYTES ? m->size : at;
	case 1:
		return ALIGN_DOWN(at, PAGE_BYTES);
	case 2:
		return at % (m->size + 1);
	default:
		return at;
	}
}

static void model_pages(struct model *m, uint64_t from, uint64_t end, int what)
{
	for (; from < end; from++)
		m->page[from] = (unsigned char)what;
}

static void model_written(struct model *m, uint64_t off, uint64_t len)
{
	memcpy(m->data + off, m->buf, len);
	model_pages(m, off / PAGE_BYTES, data_pages_of(off + len), WRITTEN);
	m->size = max_of(m->size, off + len);
}

static void step_write(struct model *m)
{
	uint64_t len = pick_length(m), off = pick_offset(m, len), i, cut = pick(m, len + 1);
	struct iovec iov[] = {{m->buf, cut}, {NULL, 0}, {m->buf + cut, len - cut}};
	unsigned char first = (unsigned char)(1 + pick(m, 250));
	uint64_t pos = off;

	for (i = 0; i < len; i++)
		m->buf[i] = (unsigned char)(first + i % 5 + i / PAGE_BYTES);
	CHECK(ramfs_write(&m->world.w, m->file, iov, 3, &pos, len, 0) == (ssize_t)len);
	model_written(m, off, len);
}

static void step_append(struct model *m)
{
	uint64_t len = pick_length(m);

	if (m->size + len > MODEL_BYTES)
		return;
	memset(m->buf, (int)(1 + pick(m, 255)), len);
	CHECK(world_append(&m->world.w, m->file, m->buf, len) == (ssize_t)len);
	model_written(m, m->size, len);
}

static void step_read(struct model *m)
{
	uint64_t len = pick_length(m), off = pick_offset(m, len);
	uint64_t expect = off < m->size ? min_of(len, m->size - off) : 0;
	struct iovec iov[] = {{m->got, len / 3}, {m->got + len / 3, len - len / 3}};
	ssize_t n;

	memset(m->got, 0xee, len);
	if (pick(m, 4)) {
		n = world_pread(&m->world.w, m->file, m->got, len, off);
	} else {
		epoch_enter(m->world.self);
		n = ramfs_read_epoch(m->world.self, m->file, iov, 2, off, len);
		epoch_exit(m->world.self);
	}
	CHECK(n == (ssize_t)expect);
	CHECK(memcmp(m->got, m->data + off, expect) == 0);
	for (; expect < len; expect++)
		CHECK(m->got[expect] == 0xee);
}

static void model_cut(struct model *m, uint64_t size)
{
	if (size > m->size) {
		m->size = size;
		return;
	}
	memset(m->data + size, 0, MODEL_BYTES - size);
	model_pages(m, data_pages_of(size), MODEL_PAGES, HOLE);
	m->size = size;
}

static void step_truncate(struct model *m)
{
	uint64_t size = pick_offset(m, 1);

	if (!pick(m, 8))
		size = 0;
	CHECK(ramfs_truncate(&m->world.w, m->file, size) == 0);
	model_cut(m, size);
}

static void step_punch(struct model *m)
{
	uint64_t len = pick_length(m), off = pick_offset(m, len);
	uint64_t first = data_pages_of(off), last = (off + len) / PAGE_BYTES;

	CHECK(ramfs_fallocate(&m->world.w, m->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off, len) == 0);
	memset(m->data + off, 0, len);
	if (first < last)
		model_pages(m, first, last, HOLE);
}

static void step_allocate(struct model *m)
{
	uint64_t len = pick_length(m), off = pick_offset(m, len), i;
	int keep = pick(m, 2) ? FALLOC_FL_KEEP_SIZE : 0, zero = pick(m, 2) ? FALLOC_FL_ZERO_RANGE : 0;

	CHECK(ramfs_fallocate(&m->world.w, m->file, keep | zero, off, len) == 0);
	if (zero)
		memset(m->data + off, 0, len);
	/* Allocated twice is as good as written, as on tmpfs. */
	for (i = off / PAGE_BYTES; i < data_pages_of(off + len); i++)
		m->page[i] = m->page[i] == HOLE ? UNWRITTEN : WRITTEN;
	if (!keep)
		m->size = max_of(m->size, off + len);
}

static void step_collapse(struct model *m)
{
	uint64_t pages = m->size / PAGE_BYTES, off, len;

	if (pages < 3)
		return;
	off = pick(m, pages - 1);
	len = 1 + pick(m, pages - off);
	if ((off + len) * PAGE_BYTES >= m->size) {
		CHECK(ramfs_fallocate(&m->world.w, m->file, FALLOC_FL_COLLAPSE_RANGE, off * PAGE_BYTES,
				      len * PAGE_BYTES) == -EINVAL);
		return;
	}
	CHECK(ramfs_fallocate(&m->world.w, m->file, FALLOC_FL_COLLAPSE_RANGE, off * PAGE_BYTES, len * PAGE_BYTES) ==
	      0);
	memmove(m->data + off * PAGE_BYTES, m->data + (off + len) * PAGE_BYTES, MODEL_BYTES - (off + len) * PAGE_BYTES);
	memset(m->data + MODEL_BYTES - len * PAGE_BYTES, 0, len * PAGE_BYTES);
	memmove(m->page + off, m->page + off + len, MODEL_PAGES - off - len);
	memset(m->page + MODEL_PAGES - len, HOLE, len);
	if (m->page[0] == UNWRITTEN)
		m->page[0] = WRITTEN; /* the first page has no room for that note while it moves */
	m->size -= len * PAGE_BYTES;
}

static void step_insert(struct model *m)
{
	uint64_t pages = m->size / PAGE_BYTES, off, len = 1 + pick(m, 20), i;

	for (i = 0; i < len; i++) /* what lies behind the end must not be pushed out of the model */
		if (m->page[MODEL_PAGES - 1 - i] != HOLE)
			return;
	if (!pages || m->size + len * PAGE_BYTES > MODEL_BYTES)
		return;
	off = pick(m, pages);
	CHECK(ramfs_fallocate(&m->world.w, m->file, FALLOC_FL_INSERT_RANGE, off * PAGE_BYTES, len * PAGE_BYTES) == 0);
	memmove(m->data + (off + len) * PAGE_BYTES, m->data + off * PAGE_BYTES, MODEL_BYTES - (off + len) * PAGE_BYTES);
	memset(m->data + off * PAGE_BYTES, 0, len * PAGE_BYTES);
	memmove(m->page + off + len, m->page + off, MODEL_PAGES - off - len);
	memset(m->page + off, HOLE, len);
	if (off && m->page[0] == UNWRITTEN)
		m->page[0] = WRITTEN;
	m->size += len * PAGE_BYTES;
}

/* Within the file, through another file and back, or refused. */
static void step_copy(struct model *m)
{
	uint64_t len = pick_length(m), in = pick_offset(m, len), out = pick_offset(m, len), pos = out;
	uint64_t n = in < m->size ? min_of(len, m->size - in) : 0;
	bool same = pick(m, 2);

	if (same && n && out + n > in && out < in + n) {
		CHECK(ramfs_copy_range(&m->world.w, m->file, in, m->file, &pos, len, 0) == -EINVAL);
		return;
	}
	if (same) {
		CHECK(ramfs_copy_range(&m->world.w, m->file, in, m->file, &pos, len, 0) == (ssize_t)n);
	} else {
		pos = 0;
		CHECK(ramfs_copy_range(&m->world.w, m->file, in, m->other, &pos, len, 0) == (ssize_t)n);
		CHECK(pos == n && world_size(m->other) == n);
		pos = out;
		CHECK(ramfs_copy_range(&m->world.w, m->other, 0, m->file, &pos, MODEL_BYTES, 0) == (ssize_t)n);
		CHECK(ramfs_truncate(&m->world.w, m->other, 0) == 0);
	}
	CHECK(pos == out + n);
	if (n) {
		memcpy(m->buf, m->data + in, n);
		model_written(m, out, n);
	}
}

static void step_seek(struct model *m)
{
	uint64_t off = pick_offset(m, 1), i = off / PAGE_BYTES, end = data_pages_of(m->size);
	int64_t data = -ENXIO, hole = -ENXIO;

	if (off < m->size) {
		while (i < end && m->page[i] == WRITTEN)
			i++;
		hole = (int64_t)min_of(m->size, max_of(off, i * PAGE_BYTES));
		for (i = off / PAGE_BYTES; i < end && m->page[i] != WRITTEN; i++)
			;
		data = i < end ? (int64_t)max_of(off, i * PAGE_BYTES) : -ENXIO;
	}
	CHECK(world_seek(&m->world.w, m->file, off, SEEK_HOLE) == hole);
	CHECK(world_seek(&m->world.w, m->file, off, SEEK_DATA) == data);
}

static void model_check(struct model *m)
{
	uint64_t i, pages = 0;

	for (i = 0; i < MODEL_PAGES; i++)
		pages += m->page[i] != HOLE;
	CHECK(world_size(m->file) == m->size);
	CHECK(world_pages(m->file) == pages);
	CHECK(data_count_pages(&m->file->file.pages, 0, DATA_INDEX_END) == pages);
}

static void model_check_all(struct model *m)
{
	CHECK(world_pread(&m->world.w, m->file, m->got, MODEL_BYTES, 0) == (ssize_t)m->size);
	CHECK(memcmp(m->got, m->data, m->size) == 0);
	model_check(m);
	CHECK(world_data_pages(&m->world) == world_pages(m->file));
}

typedef void model_step(struct model *m);

static void a_file_behaves_as_the_model_for_100000_random_steps(void **state)
{
	static model_step *const steps[] = {step_write, step_write, step_append, step_read, step_read, step_truncate,
					    step_punch, step_allocate, step_collapse, step_insert, step_copy, step_seek};
	unsigned long i, n = test_scaled(100000);
	static struct model m;

	(void)state;
	m.random = test_seed();
	world_open(&m.world, 0);
	m.file = world_file(&m.world.w);
	m.other = world_file(&m.world.w);
	m.data = calloc(1, MODEL_BYTES);
	m.buf = calloc(1, MODEL_BYTES);
	m.got = calloc(1, MODEL_BYTES);
	for (i = 0; i < n; i++) {
		steps[pick(&m, ARRAY_SIZE(steps))](&m);
		model_check(&m);
		if (i % 2000 == 0)
			model_check_all(&m);
	}
	model_check_all(&m);
	inode_put(m.world.self, m.file);
	inode_put(m.world.self, m.other);
	CHECK(world_data_pages(&m.world) == 0);
	CHECK(world_nodes(&m.world) == 0);
	world_close(&m.world);
	free(m.data), free(m.buf), free(m.got);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_behaves_as_the_model_for_100000_random_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
