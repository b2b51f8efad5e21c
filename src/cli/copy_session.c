/* SPDX-License-Identifier: MIT */
/* copy_session.c - attaches the shelf for a copy, with a task of its own, and opens the directory there. */
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli.h"
#include "copy.h"

static int attach(struct session *s, const struct session_options *o)
{
	const struct shelf_options options = {
		.size = o->size, .uid = (uint32_t)-1, .gid = (uint32_t)-1};
	char why[SHELF_WHY];
	int err = cli_attach(o->name, 0, &s->shelf, why);

	if (err == -ENOENT && o->create) {
		err = shelf_create(o->name, &options, &s->shelf, why);
		s->place.fresh = err >= 0;
	}
	if (err >= 0)
		return EXIT_OK;
	cli_error("%s%s", why,
		  err == -ENOENT && o->to_shelf ?
			  "; `shelf create` makes one, and so does `shelf put --create`" :
			  "");
	return EXIT_FAILED;
}

/* A descriptor for each level of a deep tree. */
static void raise_limits(struct session *s)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	shelf_task_setrlimit_nofile(s->task, limit.rlim_cur);
}

static int open_place(struct session *s, const struct session_options *o)
{
	const char *dir = o->dir ? o->dir : "/";
	bool fresh_root = s->place.fresh;
	int err;

	s->place.calls = &shelf_calls;
	s->place.task = s->task;
	s->place.label = s->label;
	s->place.fresh = fresh_root && !dir[strspn(dir, "/")];
	snprintf(s->label, sizeof(s->label), "%.255s:%s%.3800s%s", o->name, *dir == '/' ? "" : "/",
		 dir, dir[strlen(dir) - 1] == '/' ? "" : "/");
	err = place_open(&s->place, dir, o->to_shelf);
	if (err >= 0)
		return EXIT_OK;
	cli_error("%.255s:%s: open directory: %s", o->name, dir, strerror(-err));
	return EXIT_FAILED;
}

int session_open(struct session *s, const struct session_options *o)
{
	int err, status;

	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		setlocale(LC_CTYPE, "");
	status = attach(s, o);
	if (status)
		return status;
	err = shelf_task_create(s->shelf, NULL, &s->task);
	if (err < 0) {
		cli_error("%s: no task can be made in the shelf: %s", o->name, strerror(-err));
		shelf_detach(s->shelf);
		return EXIT_FAILED;
	}
	shelf_task_set_threads(s->task, 1);
	raise_limits(s);
	status = open_place(s, o);
	if (status) {
		session_close(s);
		return status;
	}
	umask(0);
	shelf_umask(s->task, 0);
	s->copy.shelf = s->shelf;
	s->copy.name = o->name;
	s->copy.to_shelf = o->to_shelf;
	s->copy.uid = geteuid();
	s->copy.gid = getegid();
	s->copy.keep_owner = !o->no_owner && s->copy.uid == 0;
	return EXIT_OK;
}

void session_close(struct session *s)
{
	shelf_task_exit(s->task);
	shelf_detach(s->shelf);
}
