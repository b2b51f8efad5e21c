/* SPDX-License-Identifier: MIT */
/* Attributes: snapshots while others write, stat and statx as tmpfs fills them, relatime, death in a change. */
#include "lib/attr_world.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

static struct attr_world world;

static void read_attr(struct slot *self, struct inode *inode, struct attr *a)
{
	epoch_enter(self);
	attr_read_epoch(self, inode, a);
	epoch_exit(self);
}

/* ---- forms ---------------------------------------------------------------------------- */

static void stat_splits_times_and_counts_blocks(void **state)
{
	struct attr a = {.mode = S_IFREG | 0640, .uid = 1, .gid = 2, .nlink = 3, .ino = 4, .size = 5, .blocks = 8};
	struct stat st;

	(void)state;
	a.mtime = (uint64_t)-1;
	a.atime = 1500000000;
	attr_to_stat(world.w.self, &a, &st);
	assert_int_equal(st.st_mode, S_IFREG | 0640);
	assert_int_equal(st.st_uid, 1);
	assert_int_equal(st.st_gid, 2);
	assert_int_equal(st.st_nlink, 3);
	assert_int_equal(st.st_ino, 4);
	assert_int_equal(st.st_size, 5);
	assert_int_equal(st.st_blocks, 8);
	assert_int_equal(st.st_blksize, 4096);
	assert_int_equal(st.st_mtim.tv_sec, -1);
	assert_int_equal(st.st_mtim.tv_nsec, 999999999);
	assert_int_equal(st.st_atim.tv_sec, 1);
	assert_int_equal(st.st_atim.tv_nsec, 500000000);
	assert_true(minor(st.st_dev) < 256);
}

static void statx_fills_what_tmpfs_fills(void **state)
{
	static const unsigned masks[] = {0, STATX_TYPE, STATX_BASIC_STATS, STATX_BTIME, STATX_ALL, STATX_MNT_ID, 0xfff};
	char dir[64], path[80];
	struct statx k, s;
	struct stat st;
	struct attr a;
	struct inode *inode;
	unsigned i;

	(void)state;
	if (!attr_kernel_dir(dir))
		skip();
	snprintf(path, sizeof(path), "%s/n", dir);
	CHECK(mknod(path, S_IFCHR | 0600, makedev(259, 1234)) == 0);
	inode = attr_inode(&world.w, S_IFCHR | 0600, 0, 0);
	store_relaxed(&inode->rdev, makedev(259, 1234));
	read_attr(world.w.self, inode, &a);
	attr_to_stat(world.w.self, &a, &st);
	for (i = 0; i < ARRAY_SIZE(masks); i++) {
		CHECK(statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, masks[i], &k) == 0);
		attr_to_statx(world.w.self, &a, masks[i], &s);
		assert_int_equal(s.stx_mask, k.stx_mask);
		assert_int_equal(s.stx_attributes, k.stx_attributes);
		assert_int_equal(s.stx_attributes_mask, k.stx_attributes_mask);
		assert_int_equal(s.stx_blksize, k.stx_blksize);
		assert_int_equal(s.stx_rdev_major, k.stx_rdev_major);
		assert_int_equal(s.stx_rdev_minor, k.stx_rdev_minor);
		assert_int_equal(s.stx_mode, k.stx_mode);
		assert_int_equal(!!s.stx_btime.tv_sec, !!k.stx_btime.tv_sec);
		assert_int_equal(makedev(s.stx_dev_major, s.stx_dev_minor), st.st_dev);
		assert_int_equal(s.stx_mnt_id, VFS_MNT_ID);
	}
	CHECK(unlink(path) == 0 && rmdir(dir) == 0);
	inode_put(world.w.self, inode);
}

static void the_root_is_marked_as_one(void **state)
{
	struct inode *root = vfs_root_of(world.w.self)->root;
	struct statx s;
	struct attr a;

	(void)state;
	read_attr(world.w.self, root, &a);
	attr_to_statx(world.w.self, &a, STATX_BASIC_STATS, &s);
	assert_true(s.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

/* ---- times ------------------------------------------------------------------------------ */

static void atime_moves_when_relatime_says_so(void **state)
{
	struct inode *inode = attr_inode(&world.w, S_IFREG | 0644, 0, 0);
	uint64_t now = vfs_now(), day = 86400000000000;

	(void)state;
	assert_true(attr_atime_due(inode)); /* not later than mtime */
	store_relaxed(&inode->mtime, now - 10);
	store_relaxed(&inode->ctime, now - 10);
	store_relaxed(&inode->atime, now - 5);
	assert_false(attr_atime_due(inode));
	attr_touch_atime(world.w.self, inode);
	assert_int_equal(load_relaxed(&inode->atime), now - 5);
	store_relaxed(&inode->ctime, now - 5);
	assert_true(attr_atime_due(inode));
	store_relaxed(&inode->mtime, now - 3 * day);
	store_relaxed(&inode->ctime, now - 3 * day);
	store_relaxed(&inode->atime, now - 2 * day);
	attr_touch_atime(world.w.self, inode);
	assert_true(load_relaxed(&inode->atime) >= now);
	inode_put(world.w.self, inode);
}

static void times_beyond_the_range_stop_at_its_ends(void **state)
{
	struct inode *inode = attr_inode(&world.w, S_IFREG | 0644, 0, 0);
	struct timespec ts[2] = {{INT64_MAX, 0}, {INT64_MIN, 5}};
	struct stat st;
	struct attr a;

	(void)state;
	assert_int_equal(attr_utimens(&world.w, inode, ts, false), 0);
	read_attr(world.w.self, inode, &a);
	attr_to_stat(world.w.self, &a, &st);
	assert_true(st.st_atim.tv_sec > 9000000000);
	assert_true(st.st_mtim.tv_sec < -9000000000);
	inode_put(world.w.self, inode);
}

/* ---- setuid ------------------------------------------------------------------------------- */

static void a_write_takes_setuid_away_unless_privileged(void **state)
{
	struct inode *inode = attr_inode(&world.w, S_IFREG | 06755, 1, 1);
	struct shelf_cred user = attr_user(1, 1, 0, NULL);
	struct who w = world.w;

	(void)state;
	attr_lock(w.self, inode);
	attr_kill_suid_locked(&w, inode);
	assert_int_equal(load_relaxed(&inode->mode), S_IFREG | 06755);
	w.cred = &user;
	attr_kill_suid_locked(&w, inode);
	assert_int_equal(load_relaxed(&inode->mode), S_IFREG | 0755);
	attr_unlock(w.self, inode);
	inode_put(w.self, inode);
}

static void a_write_takes_file_capabilities_away(void **state)
{
	struct inode *inode = attr_inode(&world.w, S_IFREG | 0755, 1, 1);
	uint32_t cap[5] = {0x02000000, 1};
	char list[64];

	(void)state;
	assert_int_equal(xattr_set(&world.w, inode, "security.capability", cap, sizeof(cap), 0), 0);
	assert_int_equal(xattr_set(&world.w, inode, "user.a", "1", 1, 0), 0);
	attr_lock(world.w.self, inode);
	attr_kill_suid_locked(&world.w, inode);
	attr_unlock(world.w.self, inode);
	assert_int_equal(xattr_list(&world.w, inode, list, sizeof(list)), 7);
	inode_put(world.w.self, inode);
}

static void capabilities_of_the_readers_own_root_are_shown_as_version_2(void **state)
{
	struct inode *inode = attr_inode(&world.w, S_IFREG | 0755, 1, 1);
	uint32_t cap[6] = {0x03000001, 1, 0, 0, 0, 0}, back[6] = {0};

	(void)state;
	assert_int_equal(xattr_set(&world.w, inode, "security.capability", cap, sizeof(cap), 0), 0);
	assert_int_equal(xattr_get(&world.w, inode, "security.capability", NULL, 0), 20);
	assert_int_equal(xattr_get(&world.w, inode, "security.capability", back, 19), -ERANGE);
	assert_int_equal(xattr_get(&world.w, inode, "security.capability", back, sizeof(back)), 20);
	assert_int_equal(back[0], 0x02000001);
	assert_int_equal(back[1], 1);
	cap[5] = 1001; /* another's */
	assert_int_equal(xattr_set(&world.w, inode, "security.capability", cap, sizeof(cap), 0), 0);
	assert_int_equal(xattr_get(&world.w, inode, "security.capability", back, sizeof(back)), 24);
	assert_memory_equal(back, cap, sizeof(cap));
	inode_put(world.w.self, inode);
}

/* ---- readers and writers at once ------------------------------------------------------------ */

static struct inode *contended;
static atomic_u32 stop;

/* uid, gid and the permission bits always agree. */
static void *write_pairs(void *arg)
{
	struct who w = attr_world_who(&world, arg);
	uint32_t i;

	for (i = 0; !load_acquire(&stop); i++) {
		struct attr_change c = {.inode = contended, .valid = ATTR_MODE | ATTR_UID | ATTR_GID};

		c.uid = c.gid = i & 0777;
		c.mode = S_IFREG | c.uid;
		attr_lock(w.self, contended);
		attr_commit_locked(w.self, &c);
		attr_unlock(w.self, contended);
	}
	return NULL;
}

/* Torn ones come only from a writer that was held up in the middle for longer than the tries last. */
static void a_snapshot_is_of_one_moment(void **state)
{
	unsigned long i, n = test_scaled(200000), torn = 0;
	struct slot *self = world.w.self;
	pthread_t t;

	(void)state;
	contended = attr_inode(&world.w, S_IFREG, 0, 0);
	store_relaxed(&stop, 0u);
	CHECK(pthread_create(&t, NULL, write_pairs, NULL) == 0);
	for (i = 0; i < n || load_acquire(&contended->seq.n) < 1000; i++) {
		struct attr a;

		read_attr(self, contended, &a);
		torn += (a.uid != a.gid || (a.mode & 07777) != a.uid) && !(load_acquire(&contended->seq.n) & 1);
	}
	store_release(&stop, 1u);
	CHECK(pthread_join(t, NULL) == 0);
	assert_true(torn <= i / 1000 + 1);
	inode_put(self, contended);
}

/* ---- death ------------------------------------------------------------------------------------ */

static void *die_target;

/* Leaves the lock held, the count odd, the intent open and the change half made. */
static int die_in_a_change(void *arg)
{
	struct who w = attr_world_who(&world, arg);
	struct inode *inode = die_target;
	const uint64_t args[] = {(uintptr_t)inode, ATTR_MODE | ATTR_UID | ATTR_GID, (uint64_t)7 << 32 | S_IFREG | 0123,
				 8, 0, 0, 12345, 0, 0, 0};

	attr_lock(w.self, inode);
	intent_begin(w.self, INTENT_ATTR, ARRAY_SIZE(args), args);
	seq_write_begin(&inode->seq);
	store_release(&inode->mode, S_IFREG | 0123);
	raise(SIGKILL);
	return 0;
}

static void a_writer_that_dies_inside_holds_nobody_up(void **state)
{
	struct inode *inode = attr_inode(&world.w, S_IFREG | 0644, 1, 1);
	struct attr a;

	(void)state;
	die_target = inode;
	assert_int_equal(test_in_child(die_in_a_change, NULL), 128 + SIGKILL);
	read_attr(world.w.self, inode, &a); /* comes back although the count is odd */
	assert_true(seq_read_begin(&inode->seq) & 1);
	attr_lock(world.w.self, inode); /* takes the lock over and finishes the change */
	attr_unlock(world.w.self, inode);
	assert_false(seq_read_begin(&inode->seq) & 1);
	read_attr(world.w.self, inode, &a);
	assert_int_equal(a.mode, S_IFREG | 0123);
	assert_int_equal(a.uid, 7);
	assert_int_equal(a.gid, 8);
	assert_int_equal(a.ctime, 12345);
	inode_put(world.w.self, inode);
}

/* A replaced xattr's old block is freed once, whether the writer died before or after it retired it. */
static int die_in_a_replace(void *arg)
{
	struct who w = attr_world_who(&world, arg);
	struct inode *inode = die_target;
	struct xattrs *xs = load_acquire(&inode->xattrs);
	struct xattr *old = load_acquire(&xs->list);
	bool retired = arg;
	int err;
	struct xattr *fresh = xattr_new(w.self, "user.a", "new", 3, &err);
	const uint64_t args[] = {(uintptr_t)inode,
				 (uint64_t)INODE_HAS_XATTR << 48 | ATTR_LINK,
				 0, 0, 0, 0, 1, (uintptr_t)&xs->list, (uintptr_t)fresh, (uintptr_t)old};

	attr_lock(w.self, inode);
	epoch_enter(w.self);
	intent_begin(w.self, INTENT_ATTR, ARRAY_SIZE(args), args);
	if (retired) {
		store_release(&xs->list, fresh);
		epoch_retire(w.self, &old->retired, RETIRE_MEM, old->bytes);
	}
	raise(SIGKILL);
	return 0;
}

static uint64_t objects_in_use(void)
{
	struct segment_counts c;

	slot_reap(world.w.self);
	CHECK(epoch_barrier(world.w.self, 2000000000) == 0);
	CHECK(segment_check(world.w.self, &c) == 0);
	return c.objects[CACHE_64] - c.magazine[CACHE_64];
}

static void an_xattr_whose_writer_died_is_replaced_and_freed_once(void **state)
{
	uint64_t before;
	char value[8];
	int round;

	(void)state;
	for (round = 0; round < 2; round++) {
		struct inode *inode = attr_inode(&world.w, S_IFREG | 0644, 0, 0);

		die_target = inode;
		assert_int_equal(xattr_set(&world.w, inode, "user.a", "old", 3, 0), 0);
		before = objects_in_use();
		assert_int_equal(test_in_child(die_in_a_replace, round ? &round : NULL), 128 + SIGKILL);
		attr_lock(world.w.self, inode);
		attr_unlock(world.w.self, inode);
		assert_int_equal(xattr_get(&world.w, inode, "user.a", value, sizeof(value)), 3);
		assert_memory_equal(value, "new", 3);
		assert_int_equal(objects_in_use(), before);
		inode_put(world.w.self, inode);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stat_splits_times_and_counts_blocks),
		cmocka_unit_test(statx_fills_what_tmpfs_fills),
		cmocka_unit_test(the_root_is_marked_as_one),
		cmocka_unit_test(atime_moves_when_relatime_says_so),
		cmocka_unit_test(times_beyond_the_range_stop_at_its_ends),
		cmocka_unit_test(a_write_takes_setuid_away_unless_privileged),
		cmocka_unit_test(capabilities_of_the_readers_own_root_are_shown_as_version_2),
		cmocka_unit_test(a_write_takes_file_capabilities_away),
		cmocka_unit_test(a_snapshot_is_of_one_moment),
		cmocka_unit_test(a_writer_that_dies_inside_holds_nobody_up),
		cmocka_unit_test(an_xattr_whose_writer_died_is_replaced_and_freed_once),
	};
	int failed;

	attr_world_open(&world, 0);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	attr_world_close(&world);
	return failed;
}
