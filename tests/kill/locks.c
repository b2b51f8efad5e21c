/* SPDX-License-Identifier: MIT */
/*
 * A process dies after its n-th instruction inside a change of record locks, of an extended attribute or of
 * a mode with its ACL, for n all over the change.  Afterwards it has happened or it has not, in whole.
 */
#include "kill/lib/step.h"

#include <fcntl.h>

#include "vfs/attr_priv.h"
#include "vfs/flock_priv.h"

enum { POINTS = 120 };

static struct segment *seg;
static struct shelf_cred cred = {.caps = SHELF_CAP_ALL};
static struct inode *inode;
static struct file *file;
static char *owners; /* in the segment: addresses that stand for descriptor tables */

static struct who who_is(unsigned owner)
{
	return (struct who){.self = slot_self(seg), .cred = &cred, .files = (void *)(owners + 64 * owner)};
}

static void setup(char *name)
{
	struct segment_options opt = {.size = 32UL << 20, .max_slots = 32};
	struct who w;
	int err;

	CHECK(segment_create(fresh_name(name), &opt, &seg, NULL) == 0);
	CHECK(epoch_init(seg) == 0 && epoch_attach(seg) == 0);
	CHECK(fd_layer_init(seg) == 0 && fd_layer_attach(seg) == 0);
	CHECK(vfs_attach(seg) == 0 && vfs_init(slot_self(seg), 0755, 0, 0) == 0);
	segment_set_ready(seg);
	owners = mem_alloc(slot_self(seg), 256);
	CHECK(owners);
	w = who_is(0);
	inode = inode_new(&w, S_IFREG | 0644, 0, 0);
	file = file_new(w.self, inode, FD_TYPE_REG, O_RDWR, &err);
	CHECK(inode && file);
}

static void warm_up(void *arg)
{
	(void)arg;
	slot_self(seg);
	cache_free(slot_self(seg), CACHE_128, cache_alloc(slot_self(seg), CACHE_128));
}

/* Kills `run` at points spread over its length; `check` looks at what is left and makes the start again. */
static void kill_all_over(void (*run)(void *), void (*before)(void), void (*check)(void))
{
	struct step_job job = {.prepare = warm_up, .run = run};
	struct step_path path = {0};
	uint64_t rng = test_seed();
	unsigned long n = 1, points = test_scaled(POINTS), length = 64, k;

	if (!step_possible())
		skip();
	for (before(); step_kill(&job, &path, length); before()) {
		check();
		length *= 2;
	}
	check();
	for (k = 0; k < points; k++) {
		before();
		n = 1 + (unsigned long)(test_random(&rng) % length);
		step_kill(&job, &path, n);
		check();
		slot_reap(slot_self(seg));
	}
	step_path_end(&path);
}

/* ---- record locks: another owner's table outlives the process that dies ---------------------------------- */

static int lock_call(unsigned owner, int cmd, int type, off_t start, off_t len)
{
	struct flock fl = {.l_type = (short)type, .l_whence = SEEK_SET, .l_start = start, .l_len = len};
	struct who w = who_is(owner);

	return flock_posix(&w, file, cmd, &fl);
}

static void locks_before(void)
{
	CHECK(lock_call(1, F_SETLK, F_UNLCK, 0, 0) == 0);
	CHECK(lock_call(2, F_SETLK, F_UNLCK, 0, 0) == 0);
	CHECK(lock_call(1, F_SETLK, F_WRLCK, 0, 100) == 0);
	CHECK(lock_call(1, F_SETLK, F_RDLCK, 100, 100) == 0);
	CHECK(lock_call(2, F_SETLK, F_RDLCK, 300, 10) == 0);
}

static void locks_run(void *arg)
{
	(void)arg;
	lock_call(1, F_SETLK, F_RDLCK, 40, 80); /* shrinks one, swallows part of the other, merges */
}

static void locks_check(void)
{
	struct flocks *fs = load_acquire(&inode->flocks);
	struct slot *self = slot_self(seg);
	struct range *r;
	uint64_t edge;

	flocks_lock(self, fs);
	CHECK(flocks_sane_locked(fs));
	CHECK(fs->count[SPACE_POSIX] == 3);
	r = range_of_owner_locked(fs, SPACE_POSIX, owners + 64, 0);
	edge = r->end + 1;
	CHECK(r->start == 0 && range_type(r) == F_WRLCK && (edge == 100 || edge == 40));
	r = range_next_of_owner(r);
	CHECK(r->start == edge && r->end == 199 && range_type(r) == F_RDLCK);
	flocks_unlock(self, fs);
}

static void a_change_of_locks_is_whole(void **state)
{
	(void)state;
	kill_all_over(locks_run, locks_before, locks_check);
}

/* ---- attributes ------------------------------------------------------------------------------------------------ */

static void attr_before(void)
{
	static const struct {
		uint32_t version;
		struct {
			uint16_t tag, perm;
			uint32_t id;
		} e[5];
	} acl = {2, {{1, 6, ~0u}, {2, 6, 1001}, {4, 6, ~0u}, {16, 6, ~0u}, {32, 6, ~0u}}};
	struct who w = who_is(0);

	CHECK(xattr_set(&w, inode, "system.posix_acl_access", &acl, sizeof(acl), 0) == 0);
	CHECK(xattr_set(&w, inode, "user.a", "old", 3, 0) == 0);
	CHECK((load_acquire(&inode->mode) & 0777) == 0666);
}

static void chmod_run(void *arg)
{
	struct who w = who_is(0);

	(void)arg;
	attr_chmod(&w, inode, 0440);
}

static void setxattr_run(void *arg)
{
	struct who w = who_is(0);

	(void)arg;
	xattr_set(&w, inode, "user.a", "newer", 5, 0);
}

static void attr_check(void)
{
	char value[64];
	struct who w = who_is(0);
	uint16_t mask;
	uint32_t mode;
	ssize_t n;

	attr_lock(w.self, inode); /* takes over what the dead one had */
	attr_unlock(w.self, inode);
	CHECK(!(seq_read_begin(&inode->seq) & 1));
	mode = load_acquire(&inode->mode) & 0777;
	CHECK(mode == 0666 || mode == 0440);
	CHECK(xattr_get(&w, inode, "system.posix_acl_access", value, sizeof(value)) == 44);
	memcpy(&mask, value + 4 + 3 * 8 + 2, 2);
	CHECK(mask == (mode >> 3 & 7));
	n = xattr_get(&w, inode, "user.a", value, sizeof(value));
	CHECK((n == 3 && !memcmp(value, "old", 3)) || (n == 5 && !memcmp(value, "newer", 5)));
}

static void a_chmod_takes_its_acl_along(void **state)
{
	(void)state;
	kill_all_over(chmod_run, attr_before, attr_check);
}

static void an_xattr_is_old_or_new(void **state)
{
	(void)state;
	kill_all_over(setxattr_run, attr_before, attr_check);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_change_of_locks_is_whole),
		cmocka_unit_test(a_chmod_takes_its_acl_along),
		cmocka_unit_test(an_xattr_is_old_or_new),
	};
	char name[TEST_NAME_SIZE];
	int failed;

	setup(name);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	CHECK(!segment_poisoned(seg));
	segment_remove(name, NULL);
	segment_detach(seg);
	return failed;
}
