/* SPDX-License-Identifier: MIT */
/*
 * hello.c - make a shelf, write a file, let another process read it.
 *
 *	cc hello.c $(pkg-config --cflags --libs shelf) && ./a.out
 */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <shelf/shelf.h>

static int complain(const char *what, int err)
{
	fprintf(stderr, "%s: %s\n", what, strerror(-err));
	return 1;
}

/* In the child: the segment is mapped already; the task its parent made for it is now its own. */
static int read_it(struct shelf_task *task)
{
	char text[100];
	ssize_t n;
	int fd;

	shelf_task_adopt(task);
	fd = shelf_open(task, "/greetings/hello", O_RDONLY, 0);
	n = fd < 0 ? fd : shelf_read(task, fd, text, sizeof(text));
	if (n < 0)
		return complain("read", (int)n);
	printf("process %d reads: %.*s", getpid(), (int)n, text);
	fflush(stdout);
	return shelf_task_exit(task) ? 1 : 0;
}

static int write_it(struct shelf_task *task)
{
	static const char text[] = "hello from shared memory\n";
	int err = shelf_mkdir(task, "/greetings", 0755), fd;

	if (err)
		return complain("mkdir", err);
	fd = shelf_open(task, "/greetings/hello", O_CREAT | O_WRONLY, 0644);
	if (fd < 0)
		return complain("open", fd);
	err = (int)shelf_write(task, fd, text, sizeof(text) - 1);
	return err < 0 ? complain("write", err) : 0;
}

static int run(struct shelf *shelf)
{
	struct shelf_task *task, *childs;
	int status = 1, err = shelf_task_create(shelf, NULL, &task);
	pid_t pid;

	if (err)
		return complain("task", err);
	if (write_it(task))
		return 1;
	err = shelf_task_fork(task, 0, &childs);
	if (err)
		return complain("fork of the task", err);
	pid = fork();
	if (!pid)
		_exit(read_it(childs));
	waitpid(pid, &status, 0);
	shelf_task_exit(task);
	return status ? 1 : 0;
}

int main(void)
{
	struct shelf_options options = { .size = 16 << 20, .uid = (uint32_t)-1, .gid = (uint32_t)-1 };
	char name[40], why[SHELF_WHY];
	struct shelf *shelf;
	int failed;

	snprintf(name, sizeof(name), "hello-%d", getpid());
	if (shelf_create(name, &options, &shelf, why)) {
		fprintf(stderr, "%s\n", why);
		return 1;
	}
	failed = run(shelf);
	shelf_detach(shelf);
	shelf_remove(name, NULL);
	return failed;
}
