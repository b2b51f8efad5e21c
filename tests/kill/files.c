/* SPDX-License-Identifier: MIT */
/*
 * A process dies after its n-th instruction while it makes an open file of an inode that it has counted, for
 * every n.  Afterwards the inode has lost that reference, once.
 */
#include "kill/lib/step.h"

#include "vfs/vfs_priv.h"

static struct segment *seg;
static struct inode *inode; /* one reference is the test's */

static void warm_up(void *arg)
{
	struct slot *self = slot_self(seg);
	int err, k;

	(void)arg;
	fd_put(self, &file_new_empty(self, 0, &err)->head); /* lazy binding */
	epoch_enter(self);
	CHECK(inode_get_epoch(self, inode, &k) && k >= 0);
	epoch_exit(self);
}

static void make_file(void *arg)
{
	int err;

	(void)arg;
	file_new(slot_self(seg), inode, FD_TYPE_REG, O_RDWR, &err);
}

static void a_file_in_the_making_drops_its_inode_once(void **state)
{
	struct step_job job = {.prepare = warm_up, .run = make_file};
	struct step_path path = {0};
	struct segment_options opt = {.size = 16UL << 20, .max_slots = 16};
	struct who w = {0};
	char name[TEST_NAME_SIZE];
	unsigned long n;
	bool killed = true;

	(void)state;
	if (!step_possible())
		skip();
	CHECK(segment_create(fresh_name(name), &opt, &seg, NULL) == 0);
	CHECK(epoch_init(seg) == 0 && epoch_attach(seg) == 0);
	CHECK(fd_layer_init(seg) == 0 && fd_layer_attach(seg) == 0);
	CHECK(vfs_attach(seg) == 0 && vfs_init(slot_self(seg), 0755, 0, 0) == 0);
	segment_set_ready(seg);
	w.self = slot_self(seg);
	inode = inode_new(&w, S_IFREG | 0644, 0, 0);
	CHECK(inode);
	for (n = 1; killed; n++) {
		killed = step_kill(&job, &path, n);
		slot_reap(w.self);
		assert_int_equal(tally_read(&inode->refs), 1);
	}
	step_path_end(&path);
	segment_detach(seg);
	segment_remove(name, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_in_the_making_drops_its_inode_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
