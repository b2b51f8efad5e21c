/* SPDX-License-Identifier: MIT */
/*
 * A process dies in the middle of a change of names, with a descriptor table's lock; another that attached for tables
 * alone (shelf/fdtable.h) needs that lock.  It gets it, goes on, harms nothing, and leaves the rest to one that knows.
 */
#include "harness.h"

#include <fcntl.h>
#include <signal.h>

#include <shelf/fdtable.h>
#include <shelf/shelf.h>

#include "fd/fd.h"
#include "ramfs/names_priv.h"
#include "task/task.h"

static char name[TEST_NAME_SIZE];
static struct shelf *shelf;
static const char *program;

/* Dies as one that has written a record of a new name and not come further, and has the table's lock. */
static int victim(void *arg)
{
	struct shelf_fdspace *space = arg;
	struct slot *self = slot_self((struct segment *)(void *)shelf);
	struct fd_table *tab = (struct fd_table *)shelf_fdspace_anchor(space, 0);
	struct inode *root = vfs_root_of(self)->root;
	uint64_t args[NAMES_ARGS] = {0};

	lock_acquire(&root->lock, &self->locker, LOCK_DIR);
	lock_acquire(&tab->lock, &self->locker, LOCK_TABLE);
	epoch_enter(self);
	args[NA_DIR] = na_word(root);
	intent_begin(self, INTENT_CREATE, NAMES_ARGS, args);
	raise(SIGKILL);
	return 0;
}

/* Another program: it knows of no names. */
static int tables_alone(const char *of)
{
	struct shelf_fdspace *space;
	struct shelf_fdtable *tab;
	struct shelf_file *file;

	CHECK(shelf_fdspace_attach(of, &space, NULL) == 0);
	tab = shelf_fdspace_anchor(space, 0);
	CHECK(shelf_file_alloc(space, SHELF_FILE_USER, 8, &file) == 0);
	CHECK(shelf_fd_install(space, tab, file, 0, 100, 0) == 0);
	CHECK(shelf_fd_dup2(space, tab, 0, 1, 100, 0) == 1);
	CHECK(shelf_fd_close(space, tab, 0) == 0 && shelf_fd_close(space, tab, 1) == 0);
	CHECK(slot_reap(slot_self((struct segment *)space)) == 0); /* not its business */
	CHECK(!segment_poisoned((struct segment *)space));
	shelf_fdspace_detach(space);
	return 0;
}

static int run_other_program(void *arg)
{
	(void)arg;
	execl(program, program, name, (char *)NULL);
	return 1;
}

static void a_process_without_the_layers_goes_on_and_leaves_the_dead_to_one_that_has_them(void **state)
{
	const struct shelf_options options = {.size = 16 << 20, .mode = 01777};
	struct shelf_check_report r;
	struct shelf_fdspace *space;
	struct shelf_fdtable *tab;
	struct shelf_task *t;

	(void)state;
	CHECK(shelf_create(fresh_name(name), &options, &shelf, NULL) == 0);
	space = (struct shelf_fdspace *)shelf;
	CHECK(shelf_fdtable_create(space, &tab) == 0 && shelf_fdspace_set_anchor(space, 0, tab) == 0);
	CHECK(test_in_child(victim, space) == 128 + SIGKILL);
	CHECK(test_in_child(run_other_program, NULL) == 0);
	/* The rest is done by us, who know names. */
	CHECK(shelf_task_create(shelf, &(struct shelf_cred){.caps = SHELF_CAP_ALL}, &t) == 0);
	CHECK(shelf_mkdir(t, "/a", 0755) == 0);
	CHECK(shelf_verify(shelf, NULL, &r) == 0 && r.alone && !r.faults);
	shelf_task_exit(t);
	shelf_remove(name, NULL);
	shelf_detach(shelf);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_without_the_layers_goes_on_and_leaves_the_dead_to_one_that_has_them),
	};

	program = argv[0];
	if (argc > 1)
		return tables_alone(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
