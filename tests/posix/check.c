/* SPDX-License-Identifier: MIT */
/* What the check finds in a shelf that was damaged, or left with things that are nobody's, and what it mends. */
#include "fixture.h"

#include <pthread.h>
#include <sys/mman.h>

#include "api/check_priv.h"
#include "segment/intent_ops.h"
#include "segment/segment_priv.h"
#include "vfs/flock_priv.h"

#define CRED (&(struct shelf_cred){.caps = SHELF_CAP_ALL})

static char name[TEST_NAME_SIZE], said[4096];
static struct shelf *shelf;
static struct shelf_task *t;
static struct slot *self;

static void say(void *ctx, const char *sentence)
{
	(void)ctx;
	strncat(said, sentence, sizeof(said) - strlen(said) - 2);
	strcat(said, "\n");
}

static struct shelf_check_report verify(unsigned flags)
{
	struct shelf_check_options o = {.flags = flags, .say = say};
	struct shelf_check_report r;

	said[0] = 0;
	assert_int_equal(shelf_verify(shelf, &o, &r), 0);
	return r;
}

static int setup(void **state)
{
	const struct shelf_options options = {.size = 16 << 20, .mode = 01777};

	(void)state;
	assert_int_equal(shelf_create(fresh_name(name), &options, &shelf, NULL), 0);
	assert_int_equal(shelf_task_create(shelf, CRED, &t), 0);
	self = slot_self((struct segment *)(void *)shelf);
	assert_int_equal(shelf_mkdir(t, "/dir", 0755), 0);
	assert_int_equal(shelf_open(t, "/dir/file", O_CREAT | O_RDWR, 0644), 0);
	assert_int_equal(shelf_pwrite(t, 0, "text", 4, 10000), 4);
	assert_int_equal(shelf_symlink(t, "dir/file", "/link"), 0);
	assert_int_equal(shelf_setxattr(t, "/dir/file", "user.a", "b", 1, 0), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	shelf_task_exit(t);
	shelf_remove(name, NULL);
	shelf_detach(shelf);
	return 0;
}

static struct inode *inode_at(const char *path)
{
	struct who w;
	struct walk k;

	assert_int_equal(who_init(&w, t), 0);
	epoch_enter(self);
	assert_int_equal(walk_epoch(&w, NULL, path, 0, &k), 0);
	epoch_exit(self);
	return k.inode;
}

/* Told, mended, and then all is good. */
static void is_mended(uint64_t faults, uint64_t left, const char *sentence)
{
	struct shelf_check_report r = verify(0);

	assert_true(r.alone);
	assert_int_equal(r.faults, faults);
	assert_int_equal(r.left, left);
	assert_non_null(strstr(said, sentence));
	r = verify(SHELF_VERIFY_REPAIR);
	assert_int_equal(r.faults, faults);
	assert_int_equal(r.mended, faults);
	assert_int_equal(r.left, left);
	r = verify(0);
	assert_int_equal(r.faults + r.left, 0);
}

static void a_good_shelf_has_no_faults_and_all_of_it_is_found(void **state)
{
	struct shelf_check_report r = verify(0);

	(void)state;
	assert_string_equal(said, "");
	assert_int_equal(r.inodes, 4);
	assert_int_equal(r.directories, 2);
	assert_int_equal(r.open_files, 1);
	assert_int_equal(r.data_pages, 1);
	assert_true(r.alone);
}

static void a_wrong_number_of_links_is_told_and_mended(void **state)
{
	(void)state;
	store_relaxed(&inode_at("/dir/file")->nlink, 7);
	is_mended(1, 0, "has 7 links and 1 names");
	store_relaxed(&inode_at("/dir")->nlink, 9);
	is_mended(1, 0, "has 9 links, should have 2");
	store_relaxed(&inode_at("/dir")->size, 1000);
	is_mended(1, 0, "says 1000 bytes for 1 entries");
	store_relaxed(&inode_at("/dir/file")->file.page_count, 5);
	is_mended(1, 0, "has 1 pages and says 5");
}

static void a_count_too_high_is_left_over_and_one_too_low_is_a_fault(void **state)
{
	struct inode *file = inode_at("/dir/file");

	(void)state;
	tally_init(&file->refs, 5); /* its names and a descriptor */
	is_mended(0, 1, "is counted 5 times and held 2 times");
	tally_init(&file->refs, 1);
	is_mended(1, 0, "is counted 1 times and held 2 times");
}

static void a_count_of_maps_that_a_death_left_is_found_and_mended(void **state)
{
	struct inode *inode = inode_at("/dir/file");

	(void)state;
	store_relaxed(&inode->file.maps, 2);
	is_mended(0, 1, "mapped 2 times");
	assert_int_equal(load_relaxed(&inode->file.maps), 0);
}

static void what_is_nobody_s_is_taken_back(void **state)
{
	struct shelf_counters before, after;

	(void)state;
	assert_int_equal(shelf_counters(shelf, &before), 0);
	assert_non_null(cache_alloc(self, CACHE_576));
	assert_non_null(mem_alloc(self, 100000));
	is_mended(0, 2, "objects are nobody's");
	assert_int_equal(shelf_counters(shelf, &after), 0);
	assert_true(after.used_pages <= before.used_pages);
	assert_int_equal(shelf_pread(t, 0, said, 4, 10000), 4);
	assert_memory_equal(said, "text", 4);
}

static void an_inode_that_no_name_and_no_file_holds_goes_with_its_pages(void **state)
{
	struct inode *file = inode_at("/dir/file");

	(void)state;
	tally_init(&file->refs, 3);
	assert_int_equal(shelf_unlink(t, "/dir/file"), 0);
	assert_int_equal(shelf_close(t, 0), 0);
	assert_int_equal(verify(0).inodes, 3);
	is_mended(0, 3, "1 pages are nobody's"); /* it and its attribute; its page; the counter of inodes */
}

static void a_pointer_that_leads_nowhere_is_not_followed(void **state)
{
	struct inode *file = inode_at("/dir/file"), *dir = inode_at("/dir");
	uint64_t pages = load_relaxed(&file->file.pages.root), index = load_relaxed(&dir->dir.index.root);

	(void)state;
	store_relaxed(&file->file.pages.root, (uint64_t)(uintptr_t)self->seg->hdr + (15 << 20) + 2);
	assert_int_equal(verify(SHELF_VERIFY_REPAIR).mended, 1); /* the number of pages, not the tree */
	store_relaxed(&file->file.pages.root, pages);
	store_relaxed(&dir->dir.index.root, 0x123456789000 + 1);
	assert_true(verify(0).faults >= 1);
	assert_non_null(strstr(said, "its index is damaged"));
	store_relaxed(&dir->dir.index.root, index);
	verify(SHELF_VERIFY_REPAIR);
	assert_int_equal(verify(0).faults, 0);
}

/* ---- others ---------------------------------------------------------------------------------------- */

static atomic_u32 stage;

static void *other(void *arg)
{
	(void)arg;
	slot_self((struct segment *)(void *)shelf);
	store_release(&stage, 1); /* pairs with the loads below */
	while (load_acquire(&stage) == 1)
		usleep(1000);
	return NULL;
}

static void while_others_have_the_shelf_nothing_is_taken_back(void **state)
{
	struct shelf_check_report r;
	pthread_t thread;

	(void)state;
	assert_non_null(cache_alloc(self, CACHE_2048));
	store_release(&stage, 0); /* these pair with the loads in other() */
	assert_int_equal(pthread_create(&thread, NULL, other, NULL), 0);
	while (!load_acquire(&stage))
		usleep(1000);
	r = verify(SHELF_VERIFY_REPAIR);
	assert_false(r.alone);
	assert_int_equal(r.left + r.faults, 0);
	store_release(&stage, 2);
	pthread_join(thread, NULL);
	is_mended(0, 1, "1 objects are nobody's");
}

/* The number of slots, one too small to have the last in it. */
static void forget_slots_from(const struct slot *first)
{
	store_release(&slot_local(self)->alloc->slots_made, slot_id(first) - 1);
}

static void a_living_thread_is_there_whatever_the_number_of_slots_says(void **state)
{
	struct shelf_check_report r;
	pthread_t thread;

	(void)state;
	store_release(&stage, 0); /* these pair with the loads in other() */
	assert_int_equal(pthread_create(&thread, NULL, other, NULL), 0);
	while (!load_acquire(&stage))
		usleep(1000);
	forget_slots_from(self);
	r = verify(SHELF_VERIFY_REPAIR);
	assert_false(r.alone);
	store_release(&stage, 2);
	pthread_join(thread, NULL);
	is_mended(1, 0, "fewer slots than are somebody's");
	assert_int_equal(slot_limit(self->seg), 2);
}

static int die_with_a_slot(void *arg)
{
	struct shelf *mine;

	(void)arg;
	CHECK(shelf_attach(name, 0, &mine, NULL) == 0);
	CHECK(slot_id(slot_self((struct segment *)(void *)mine)) == 2);
	raise(SIGKILL);
	return 0;
}

static void slots_of_the_dead_that_are_not_counted_are_found(void **state)
{
	(void)state;
	assert_int_equal(test_in_child(die_with_a_slot, NULL), 128 + SIGKILL);
	forget_slots_from(slot_by_id(self->seg, 2));
	is_mended(1, 0, "fewer slots than are somebody's");
	assert_int_equal(slot_limit(self->seg), 2);
	assert_int_equal(slot_state_of(slot_by_id(self->seg, 2)), SLOT_IDLE);
}

static void *comer(void *arg)
{
	(void)arg;
	CHECK(slot_self((struct segment *)(void *)shelf));
	store_release(&stage, 1);
	return NULL;
}

static void who_comes_meanwhile_waits_for_the_end(void **state)
{
	pthread_t thread;

	(void)state;
	store_release(&stage, 0);
	assert_true(segment_alone_begin(self));
	assert_int_equal(pthread_create(&thread, NULL, comer, NULL), 0);
	usleep(50000);
	assert_int_equal(load_acquire(&stage), 0);
	segment_alone_end(self);
	pthread_join(thread, NULL);
	assert_int_equal(load_acquire(&stage), 1);
}

static int shut_and_die(void *arg)
{
	struct shelf *mine;

	(void)arg;
	CHECK(shelf_attach(name, 0, &mine, NULL) == 0);
	CHECK(segment_alone_begin(slot_self((struct segment *)(void *)mine)));
	raise(SIGKILL);
	return 0;
}

static void a_gate_that_a_dead_process_shut_is_opened(void **state)
{
	(void)state;
	shelf_task_exit(t);
	slot_release(self);
	assert_int_equal(test_in_child(shut_and_die, NULL), 128 + SIGKILL);
	assert_int_equal(shelf_task_create(shelf, CRED, &t), 0);
	self = slot_self((struct segment *)(void *)shelf);
	assert_true(verify(0).alone);
}

/* ---- damage ------------------------------------------------------------------------------------------ */

static struct shelf_counters counters(void)
{
	struct shelf_counters now;

	assert_int_equal(shelf_counters(shelf, &now), 0);
	return now;
}

static void a_lock_that_is_nobody_s_is_told_and_freed(void **state)
{
	struct inode *dir = inode_at("/dir");

	(void)state;
	store_relaxed(&dir->lock.word, 77);
	is_mended(1, 0, "locked by nobody");
	store_relaxed(&slot_local(self)->alloc->lock.word, slot_id(self));
	is_mended(1, 0, "a lock is nobody's");
	assert_int_equal(shelf_mkdir(t, "/dir/sub", 0755), 0);
}

static void lists_of_the_allocator_are_made_anew(void **state)
{
	struct alloc_state *a = slot_local(self)->alloc;
	unsigned k;

	(void)state;
	for (k = 0; k <= PAGE_MAX_ORDER; k++)
		a->runs[k] = (struct run_list){.head = 5, .tail = 0x70000000};
	a->classes[CACHE_128].partial.head = UINT32_MAX;
	is_mended(1, 0, "listed run is not free");
	assert_int_equal(shelf_pwrite(t, 0, "text", 4, 100000), 4);
}

static void what_is_not_mended_poisons_until_it_is_good_again(void **state)
{
	struct dir_table *table = load_relaxed(&inode_at("/dir")->dir.table);
	struct dentry *d = load_relaxed(&inode_at("/dir/file")->alias);
	struct stat st;

	(void)state;
	store_relaxed(&d->next[table->which], d);
	assert_int_equal(verify(SHELF_VERIFY_REPAIR).mended, 0);
	assert_non_null(strstr(said, "its hash leads elsewhere"));
	assert_int_equal(shelf_stat(t, "/dir/none", &st), -EIO);
	assert_true(counters().poisoned);
	assert_non_null(strstr(counters().poison_reason, "its hash leads elsewhere"));
	store_relaxed(&d->next[table->which], NULL);
	assert_int_equal(verify(SHELF_VERIFY_REPAIR).faults, 0);
	assert_false(counters().poisoned);
	assert_int_equal(shelf_stat(t, "/dir/none", &st), -ENOENT);
}

static void trees_of_locks_follow_their_list(void **state)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 10};
	struct inode *file = inode_at("/dir/file");

	(void)state;
	for (; l.l_start < 100; l.l_start += 20)
		assert_int_equal(shelf_fcntl(t, 0, F_SETLK, (uintptr_t)&l), 0);
	load_relaxed(&file->flocks)->trees[0].writers.top->child[1]->child[0] = load_relaxed(&file->flocks)->trees[0].writers.top;
	is_mended(1, 0, "its locks are damaged");
	load_relaxed(&file->flocks)->all->all->all = load_relaxed(&file->flocks)->all; /* no end */
	is_mended(1, 1, "its locks are damaged"); /* all are forgotten, and what they were is nobody's */
}

static int die_in_the_middle(void *arg)
{
	struct shelf *mine;
	struct shelf_task *task;

	(void)arg;
	CHECK(shelf_attach(name, 0, &mine, NULL) == 0 && shelf_task_create(mine, CRED, &task) == 0);
	raise(SIGKILL);
	return 0;
}

static struct slot *slot_of_the_dead(void)
{
	struct slot *s;
	uint32_t id = 0;

	while ((s = slot_each(self->seg, &id)))
		if (s != self && slot_state_of(s) == SLOT_LIVE)
			return s;
	return NULL;
}

static void a_dead_thread_s_senseless_record_is_given_up(void **state)
{
	struct slot *dead;

	(void)state;
	assert_int_equal(test_in_child(die_in_the_middle, NULL), 128 + SIGKILL);
	dead = slot_of_the_dead();
	assert_non_null(dead);
	for (unsigned k = 0; k < INTENT_ARGS; k++)
		store_relaxed(&dead->intent.arg[k], 0x4141414141414100);
	store_release(&dead->intent.op, INTENT_RENAME);
	assert_int_equal(verify(0).mended, 0);
	assert_non_null(strstr(said, "cannot be brought to an end"));
	assert_int_equal(counters().poisoned, 0);
	assert_int_equal(verify(SHELF_VERIFY_REPAIR).mended, 1);
	assert_int_equal(verify(0).faults + verify(0).left, 0);
	assert_int_equal(shelf_rename(t, "/dir/file", "/dir/other"), 0);
}

static int check_it(void *arg)
{
	struct shelf_check_report r;
	struct shelf *mine;
	char why[SHELF_WHY];

	(void)arg;
	shelf_detach(shelf); /* as inherited */
	CHECK(shelf_attach(name, 0, &mine, why) == -EIO && strstr(why, "a test says so"));
	CHECK(shelf_attach(name, SHELF_READ_ONLY | SHELF_TO_CHECK, &mine, why) == -EINVAL);
	CHECK(shelf_attach(name, SHELF_TO_CHECK, &mine, why) == 0);
	CHECK(shelf_verify(mine, NULL, &r) == 0 && r.faults == 0);
	shelf_detach(mine);
	return 0;
}

static void a_poisoned_shelf_can_be_checked(void **state)
{
	(void)state;
	segment_poison(self->seg, "a test says so");
	assert_int_equal(test_in_child(check_it, NULL), 0);
	assert_true(counters().poisoned); /* others had it: it may be what they were doing */
	assert_int_equal(verify(SHELF_VERIFY_REPAIR).faults, 0);
	assert_false(counters().poisoned);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(a_good_shelf_has_no_faults_and_all_of_it_is_found),
		CASE(a_wrong_number_of_links_is_told_and_mended),
		CASE(a_count_too_high_is_left_over_and_one_too_low_is_a_fault),
		CASE(a_count_of_maps_that_a_death_left_is_found_and_mended),
		CASE(what_is_nobody_s_is_taken_back),
		CASE(an_inode_that_no_name_and_no_file_holds_goes_with_its_pages),
		CASE(a_pointer_that_leads_nowhere_is_not_followed),
		CASE(while_others_have_the_shelf_nothing_is_taken_back),
		CASE(a_living_thread_is_there_whatever_the_number_of_slots_says),
		CASE(slots_of_the_dead_that_are_not_counted_are_found),
		CASE(who_comes_meanwhile_waits_for_the_end),
		CASE(a_gate_that_a_dead_process_shut_is_opened),
		CASE(a_lock_that_is_nobody_s_is_told_and_freed),
		CASE(lists_of_the_allocator_are_made_anew),
		CASE(what_is_not_mended_poisons_until_it_is_good_again),
		CASE(trees_of_locks_follow_their_list),
		CASE(a_dead_thread_s_senseless_record_is_given_up),
		CASE(a_poisoned_shelf_can_be_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
