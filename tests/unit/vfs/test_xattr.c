/* SPDX-License-Identifier: MIT */
/* Extended attributes and ACLs: limits, a full segment, readers during changes, a table of ACL decisions. */
#include "lib/attr_world.h"

#include <pthread.h>
#include <sys/xattr.h>

static struct attr_world world;
static struct inode *inode;

static int setup(void **state)
{
	(void)state;
	inode = attr_inode(&world.w, S_IFREG | 0644, 0, 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	inode_put(world.w.self, inode);
	return 0;
}

static void a_value_is_kept_replaced_and_removed(void **state)
{
	char buf[8];

	(void)state;
	assert_int_equal(xattr_get(&world.w, inode, "user.a", buf, sizeof(buf)), -ENODATA);
	assert_int_equal(xattr_set(&world.w, inode, "user.a", "1", 1, XATTR_REPLACE), -ENODATA);
	assert_int_equal(xattr_set(&world.w, inode, "user.a", "1", 1, XATTR_CREATE), 0);
	assert_int_equal(xattr_set(&world.w, inode, "user.a", "1", 1, XATTR_CREATE), -EEXIST);
	assert_int_equal(xattr_set(&world.w, inode, "user.a", "twenty", 6, XATTR_REPLACE), 0);
	assert_int_equal(xattr_get(&world.w, inode, "user.a", NULL, 0), 6);
	assert_int_equal(xattr_get(&world.w, inode, "user.a", buf, 5), -ERANGE);
	assert_int_equal(xattr_get(&world.w, inode, "user.a", buf, 6), 6);
	assert_memory_equal(buf, "twenty", 6);
	assert_true(load_relaxed(&inode->flags) & INODE_HAS_XATTR);
	assert_int_equal(xattr_remove(&world.w, inode, "user.a"), 0);
	assert_int_equal(xattr_remove(&world.w, inode, "user.a"), -ENODATA);
	assert_false(load_relaxed(&inode->flags) & INODE_HAS_XATTR);
	assert_int_equal(xattr_list(&world.w, inode, NULL, 0), 0);
}

static void names_and_values_have_their_limits(void **state)
{
	static char value[XATTR_SIZE_MAX + 1];
	char name[300] = "user.";

	(void)state;
	memset(name + 5, 'n', 251);
	assert_int_equal(xattr_check_name(name), -ERANGE);
	name[255] = 0;
	assert_int_equal(xattr_set(&world.w, inode, name, value, XATTR_SIZE_MAX + 1, 0), -E2BIG);
	assert_int_equal(xattr_set(&world.w, inode, name, value, XATTR_SIZE_MAX, 0), 0);
	assert_int_equal(xattr_get(&world.w, inode, name, value, sizeof(value)), XATTR_SIZE_MAX);
	assert_int_equal(xattr_check_set("user.x", 1, 4), -EINVAL);
	assert_int_equal(xattr_check_name(""), -ERANGE);
}

static void a_listing_beyond_64k_is_e2big(void **state)
{
	static char list[XATTR_LIST_MAX + 1000];
	char name[256];
	int i;

	(void)state;
	for (i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "user.%0249d", i);
		assert_int_equal(xattr_set(&world.w, inode, name, "", 0, 0), 0);
	}
	assert_int_equal(xattr_list(&world.w, inode, NULL, 0), 300 * 255);
	assert_int_equal(xattr_list(&world.w, inode, list, 1000), -ERANGE);
	assert_int_equal(xattr_list(&world.w, inode, list, sizeof(list)), -E2BIG);
}

static void a_full_segment_keeps_the_old_value(void **state)
{
	static char value[XATTR_SIZE_MAX];
	struct attr_world small;
	struct inode *i;
	char name[32], buf[4];
	int err = 0, n = 0;

	(void)state;
	attr_world_open(&small, 4UL << 20);
	i = attr_inode(&small.w, S_IFREG | 0644, 0, 0);
	assert_int_equal(xattr_set(&small.w, i, "user.kept", "old", 3, 0), 0);
	while (!err) {
		snprintf(name, sizeof(name), "user.%d", n++);
		err = xattr_set(&small.w, i, name, value, sizeof(value), 0);
	}
	assert_int_equal(err, -ENOSPC);
	assert_int_equal(xattr_set(&small.w, i, "user.kept", value, sizeof(value), 0), -ENOSPC);
	assert_int_equal(xattr_get(&small.w, i, "user.kept", buf, sizeof(buf)), 3);
	assert_int_equal(xattr_get(&small.w, i, name, NULL, 0), -ENODATA);
	assert_int_equal(xattr_remove(&small.w, i, "user.0"), 0);
	epoch_barrier(small.w.self, 1000000000);
	assert_int_equal(xattr_set(&small.w, i, "user.kept", value, sizeof(value), 0), 0);
	inode_put(small.w.self, i);
	attr_world_close(&small);
}

static uint64_t small_objects(void)
{
	struct segment_counts c;

	CHECK(epoch_barrier(world.w.self, 2000000000) == 0);
	CHECK(segment_check(world.w.self, &c) == 0);
	return c.objects[CACHE_64] - c.magazine[CACHE_64] + c.used;
}

static void make_and_drop(int rounds)
{
	for (; rounds; rounds--) {
		struct inode *i = attr_inode(&world.w, S_IFREG | 0644, 0, 0);

		assert_int_equal(xattr_set(&world.w, i, "user.a", "1", 1, 0), 0);
		assert_int_equal(xattr_set(&world.w, i, "user.b", "2", 1, 0), 0);
		assert_int_equal(xattr_set(&world.w, i, "user.a", "3", 1, 0), 0);
		inode_put(world.w.self, i);
	}
}

static void the_last_reference_frees_everything(void **state)
{
	uint64_t before;

	(void)state;
	make_and_drop(3000); /* a thread keeps up to a batch of each size warm */
	before = small_objects();
	make_and_drop(3000);
	assert_in_range(small_objects(), before - 4, before + 8);
}

/* ---- readers during changes ------------------------------------------------------------ */

static atomic_u32 stop, bad;

static void *read_values(void *arg)
{
	struct who w = attr_world_who(&world, arg);

	while (!load_acquire(&stop)) {
		char buf[256], list[64];
		ssize_t n = xattr_get(&w, inode, "user.m", buf, sizeof(buf)), i;

		if (n <= 0)
			store_release(&bad, 1u); /* it is always there */
		for (i = 1; i < n; i++)
			if (buf[i] != buf[0] || n != 1 + buf[0])
				store_release(&bad, 2u);
		if (xattr_list(&w, inode, list, sizeof(list)) < 7)
			store_release(&bad, 3u);
	}
	return NULL;
}

static void a_reader_sees_old_or_new_never_a_mixture(void **state)
{
	unsigned long i, n = test_scaled(20000);
	char value[128];
	pthread_t t;

	(void)state;
	store_relaxed(&stop, 0u);
	store_relaxed(&bad, 0u);
	value[0] = 0;
	assert_int_equal(xattr_set(&world.w, inode, "user.m", value, 1, 0), 0);
	CHECK(pthread_create(&t, NULL, read_values, NULL) == 0);
	for (i = 0; i < n; i++) {
		int size = 1 + (int)(i % 100);

		memset(value, size - 1, (size_t)size);
		CHECK(xattr_set(&world.w, inode, "user.m", value, (size_t)size, 0) == 0);
		CHECK(xattr_set(&world.w, inode, i % 2 ? "user.a" : "user.z", value, 1, 0) == 0);
		CHECK(xattr_remove(&world.w, inode, i % 2 ? "user.a" : "user.z") == 0);
	}
	store_release(&stop, 1u);
	CHECK(pthread_join(t, NULL) == 0);
	assert_int_equal(load_relaxed(&bad), 0);
}

/* ---- ACLs -------------------------------------------------------------------------------- */

struct entry {
	uint16_t tag, perm;
	uint32_t id;
};

static size_t acl_wire(char *out, const struct entry *e, size_t n)
{
	uint32_t version = 2;

	memcpy(out, &version, 4);
	memcpy(out + 4, e, n * sizeof(*e));
	return 4 + n * sizeof(*e);
}

static int may(uid_t uid, gid_t gid, gid_t second, unsigned mask)
{
	struct shelf_cred c = attr_user(uid, gid, second ? 1 : 0, &second);
	struct who w = world.w;
	int err;

	w.cred = &c;
	epoch_enter(w.self);
	err = inode_permission_epoch(&w, inode, mask);
	epoch_exit(w.self);
	return err;
}

static void an_acl_decides_by_the_first_class_that_fits(void **state)
{
	static const struct entry list[] = {{1, 6, ~0u}, {2, 4, 10}, {2, 7, 11}, {4, 4, ~0u},
					    {8, 6, 20},	 {8, 1, 21}, {16, 6, ~0u}, {32, 1, ~0u}};
	static const struct {
		uid_t uid;
		gid_t gid, second;
		unsigned mask;
		int err;
	} cases[] = {
		{5, 9, 0, MAY_READ | MAY_WRITE, 0}, {5, 9, 0, MAY_EXEC, -EACCES}, /* the owner */
		{10, 20, 0, MAY_READ, 0}, {10, 20, 0, MAY_WRITE, -EACCES}, /* named: its groups do not count */
		{11, 9, 0, MAY_WRITE, 0}, {11, 9, 0, MAY_EXEC, -EACCES}, /* the mask bounds it */
		{12, 7, 0, MAY_READ, 0}, {12, 7, 0, MAY_WRITE, -EACCES}, /* the owning group */
		{12, 7, 20, MAY_WRITE, 0}, {12, 7, 20, MAY_READ | MAY_WRITE, 0}, /* any group that allows all */
		{12, 21, 0, MAY_EXEC, -EACCES}, /* allowed, but for the mask */
		{12, 21, 7, MAY_READ | MAY_EXEC, -EACCES}, /* no single group allows both */
		{12, 30, 0, MAY_EXEC, 0}, {12, 30, 0, MAY_READ, -EACCES}, /* others: no mask */
		{0, 30, 0, MAY_READ | MAY_WRITE, 0}, /* capable */
	};
	char wire[128];
	size_t i, n = acl_wire(wire, list, ARRAY_SIZE(list));

	(void)state;
	assert_int_equal(attr_chown(&world.w, inode, 5, 7), 0);
	assert_int_equal(xattr_set(&world.w, inode, "system.posix_acl_access", wire, n, 0), 0);
	assert_int_equal(load_relaxed(&inode->mode), S_IFREG | 0661);
	for (i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(may(cases[i].uid, cases[i].gid, cases[i].second, cases[i].mask), cases[i].err);
	assert_int_equal(attr_chmod(&world.w, inode, 0640), 0); /* narrows the mask */
	assert_int_equal(may(11, 9, 0, MAY_WRITE), -EACCES);
	assert_int_equal(may(11, 9, 0, MAY_READ), 0);
	assert_int_equal(xattr_get(&world.w, inode, "system.posix_acl_access", wire, sizeof(wire)), (int)n);
	assert_int_equal(xattr_remove(&world.w, inode, "system.posix_acl_access"), 0);
	assert_false(load_relaxed(&inode->flags) & INODE_HAS_ACL);
}

static void an_acl_that_says_what_the_mode_says_is_not_kept(void **state)
{
	static const struct entry list[] = {{1, 7, ~0u}, {4, 5, ~0u}, {32, 0, ~0u}};
	char wire[64];
	size_t n = acl_wire(wire, list, ARRAY_SIZE(list));

	(void)state;
	assert_int_equal(xattr_set(&world.w, inode, "system.posix_acl_access", wire, n, 0), 0);
	assert_int_equal(load_relaxed(&inode->mode), S_IFREG | 0750);
	assert_int_equal(xattr_get(&world.w, inode, "system.posix_acl_access", NULL, 0), -ENODATA);
	assert_int_equal(xattr_set(&world.w, inode, "system.posix_acl_default", wire, n, 0), -EACCES);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_value_is_kept_replaced_and_removed),
		T(names_and_values_have_their_limits),
		T(a_listing_beyond_64k_is_e2big),
		T(a_full_segment_keeps_the_old_value),
		T(the_last_reference_frees_everything),
		T(a_reader_sees_old_or_new_never_a_mixture),
		T(an_acl_decides_by_the_first_class_that_fits),
		T(an_acl_that_says_what_the_mode_says_is_not_kept),
	};
	int failed;

	attr_world_open(&world, 0);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	attr_world_close(&world);
	return failed;
}
