/* SPDX-License-Identifier: MIT */
/* Words and bytes read under a sequence count are never torn. */
#include "base/copy.h"
#include "harness.h"
#include "lock/lock.h"

#include <pthread.h>

enum { WORDS = 4, BYTES = 500 };

static struct object {
	struct lock lock;
	struct seqcount seq;
	atomic_u64 word[WORDS]; /* all equal when the count is even */
	unsigned char bytes[BYTES]; /* the same */
} obj;

static atomic_u32 stop;

static void write_object(struct locker *self, uint64_t n)
{
	unsigned char fresh[BYTES];
	unsigned i;

	memset(fresh, (int)n, BYTES);
	lock_acquire(&obj.lock, self, LOCK_INODE);
	seq_write_begin(&obj.seq);
	for (i = 0; i < WORDS; i++)
		seq_store(&obj.word[i], n);
	copy_bytes(obj.bytes, fresh, BYTES);
	seq_write_end(&obj.seq);
	lock_release(&obj.lock, self, LOCK_INODE);
}

/* False: torn, and the count said so. */
static bool read_object_once(void)
{
	uint32_t begin = seq_read_begin(&obj.seq);
	unsigned char got[BYTES];
	uint64_t word[WORDS];
	unsigned i;

	for (i = 0; i < WORDS; i++)
		word[i] = seq_load(&obj.word[i]);
	copy_bytes(got, obj.bytes, BYTES);
	if (!seq_read_ok(&obj.seq, begin))
		return false;
	for (i = 1; i < WORDS; i++)
		CHECK(word[i] == word[0]);
	for (i = 0; i < BYTES; i++)
		CHECK(got[i] == (unsigned char)word[0]);
	return true;
}

static void *reader(void *arg)
{
	unsigned long *whole = arg;

	while (!load_acquire(&stop))
		*whole += read_object_once();
	return NULL;
}

static void readers_see_whole_objects_only(void **state)
{
	struct locker self;
	unsigned long whole[2] = {0, 0};
	pthread_t thread[2];
	uint64_t n;
	unsigned i;

	(void)state;
	locker_init(&self, 1, NULL);
	for (i = 0; i < 2; i++)
		CHECK(!pthread_create(&thread[i], NULL, reader, &whole[i]));
	for (n = 1; n <= test_scaled(300000); n++)
		write_object(&self, n);
	usleep(1000); /* a quiet object can be read */
	store_release(&stop, 1);
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	assert_true(whole[0] + whole[1] > 0);
	assert_true(read_object_once());
}

static void a_count_left_odd_is_refused_until_repaired(void **state)
{
	struct seqcount s = {0};
	uint32_t begin;

	(void)state;
	seq_write_begin(&s); /* the writer dies here */
	begin = seq_read_begin(&s);
	assert_false(seq_read_ok(&s, begin));
	seq_write_begin(&s); /* the next writer: still odd, and another number */
	assert_true(load_relaxed(&s.n) & 1);
	assert_int_not_equal(load_relaxed(&s.n), begin);
	seq_write_end(&s);
	begin = seq_read_begin(&s);
	assert_true(seq_read_ok(&s, begin));
	seq_write_begin(&s);
	seq_repair(&s);
	seq_repair(&s);
	assert_false(seq_read_ok(&s, begin));
	assert_true(seq_read_ok(&s, seq_read_begin(&s)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(readers_see_whole_objects_only),
		cmocka_unit_test(a_count_left_odd_is_refused_until_repaired),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
