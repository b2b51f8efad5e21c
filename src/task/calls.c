/* SPDX-License-Identifier: MIT */
/* calls.c - the small public calls on a task: credentials, limits, threads. */
#include "task/task_priv.h"

static int who_writes(struct who *w, struct shelf_task *t)
{
	int err = who_init(w, t);

	return err ? err : w->self->seg->read_only ? -EROFS : 0;
}

int shelf_task_set_threads(struct shelf_task *t, unsigned threads)
{
	struct who w;
	int err = who_writes(&w, t);

	if (err)
		return err;
	store_relaxed(&t->threads, threads); /* the caller says that no other thread is here */
	fd_table_set_users(w.self, w.files, threads);
	return 0;
}

int shelf_task_setcred(struct shelf_task *t, const struct shelf_cred *cred)
{
	struct who w;
	int err = who_writes(&w, t);

	if (err)
		return err;
	return cred ? cred_set(w.self, t, cred) : -EFAULT;
}

int shelf_task_getcred(struct shelf_task *t, struct shelf_cred *out)
{
	struct who w;
	int err = who_init(&w, t);

	if (err)
		return err;
	if (!out)
		return -EFAULT;
	epoch_enter(w.self);
	*out = load_acquire(&t->cred)->c; /* pairs with the store in cred_set */
	epoch_exit(w.self);
	return 0;
}

int shelf_task_setrlimit_nofile(struct shelf_task *t, uint64_t soft)
{
	struct who w;
	int err = who_writes(&w, t);

	if (err)
		return err;
	store_relaxed(&t->nofile, soft); /* a number */
	return 0;
}

int shelf_task_setrlimit_fsize(struct shelf_task *t, uint64_t soft)
{
	struct who w;
	int err = who_writes(&w, t);

	if (err)
		return err;
	store_relaxed(&t->fsize_not, ~soft); /* a number */
	return 0;
}
