// SPDX-License-Identifier: MIT
/*
 * fdtable.c - a tiny server whose connections are descriptors of its own kind.
 *
 *	cc -o fdtable fdtable.c $(pkg-config --cflags --libs shelf) -pthread && ./fdtable
 *
 * A connection is an account number with a balance, made up here; a real
 * server would keep its TCP state in it.  Two threads and a forked process serve
 * the same table at once: each request looks its connection up by number, without
 * lock and without count, and adds to the balance.  Meanwhile the main thread
 * replaces one connection again and again with dup2; nobody ever finds that number
 * closed.  At the end the sum of all balances equals the requests served.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <shelf/fdtable.h>

#define CONN_TYPE SHELF_FILE_USER
#define CONNECTIONS 8
#define REQUESTS 100000
#define REPLACED 3 /* the number that is taken over while it is served */
#define NO_LIMIT SHELF_FD_MAX

/* ---- our kind of file ------------------------------------------------------------------ */

struct conn {
	int peer;
	unsigned long balance; /* any process adds to it, by atomic add */
	unsigned long *total; /* in the same segment: where the balance goes when the connection ends */
};

struct conn_ops {
	void (*request)(struct conn *c);
};

static void conn_request(struct conn *c)
{
	__atomic_fetch_add(&c->balance, 1, __ATOMIC_RELAXED);
}

/* Nobody can look at it any more, so the balance is final. */
static void conn_reclaim(void *payload)
{
	struct conn *c = payload;

	__atomic_fetch_add(c->total, c->balance, __ATOMIC_RELAXED);
}

static const struct conn_ops conn_ops = {.request = conn_request};
static const struct shelf_file_type conn_type = {
	.name = "connection",
	.reclaim = conn_reclaim,
	.operations = &conn_ops,
};

/* ---- the server ------------------------------------------------------------------------- */

static struct shelf_fdspace *space;
static struct shelf_fdtable *table;
static unsigned long *total;

static void fail(const char *what, int err)
{
	fprintf(stderr, "fdtable: %s: %s\n", what, strerror(-err));
	exit(1);
}

static int conn_open(int peer)
{
	struct shelf_file *file;
	struct conn *c;
	int err = shelf_file_alloc(space, CONN_TYPE, sizeof(*c), &file);

	if (err)
		fail("cannot make a connection", err);
	c = shelf_file_payload(file);
	c->peer = peer;
	c->total = total;
	err = shelf_fd_install(space, table, file, 0, NO_LIMIT, SHELF_FD_CLOEXEC);
	if (err < 0)
		fail("cannot install a connection", err);
	return err;
}

static void serve(int fd)
{
	struct shelf_file *file;
	const struct conn_ops *ops;
	int err = shelf_fd_borrow(space, table, fd, &file);

	if (err)
		fail("a number that is open was not found", err);
	ops = shelf_file_operations(file); /* this process's own functions */
	ops->request(shelf_file_payload(file));
	shelf_fd_return(space, table, file);
}

static void *serve_many(void *unused)
{
	unsigned k;

	(void)unused;
	for (k = 0; k < REQUESTS; k++)
		serve(k % CONNECTIONS);
	return NULL;
}

/* A child inherits the mapping, so the table's address is good in it.  It leaves without exit handlers. */
static pid_t serve_in_process(void)
{
	pid_t pid;

	shelf_fdtable_share(space, table); /* one more user of the table */
	pid = fork();
	if (pid < 0)
		fail("fork", -1);
	if (pid == 0) {
		serve_many(NULL);
		shelf_fdtable_leave(space, table);
		_exit(0);
	}
	return pid;
}

static void replace_a_connection(int times)
{
	while (times--) {
		int fd = conn_open(100 + times);
		int err = shelf_fd_dup2(space, table, fd, REPLACED, NO_LIMIT, SHELF_FD_CLOEXEC);

		if (err < 0)
			fail("dup2", err);
		shelf_fd_close(space, table, fd);
	}
}

static void run_server(void)
{
	pthread_t threads[2];
	int k, status;
	pid_t pid = serve_in_process();

	for (k = 0; k < 2; k++)
		if (pthread_create(&threads[k], NULL, serve_many, NULL))
			fail("pthread_create", -1);
	replace_a_connection(1000);
	for (k = 0; k < 2; k++)
		pthread_join(threads[k], NULL);
	if (waitpid(pid, &status, 0) != pid || status)
		fail("the child did not end well", -1);
}

/* Balances still in the table; those of closed connections are in *total. */
static unsigned long sum_of_open(void)
{
	unsigned long sum = 0;
	int fd;

	for (fd = shelf_fd_next(space, table, 0); fd >= 0; fd = shelf_fd_next(space, table, fd + 1)) {
		struct shelf_file *file;

		if (shelf_fd_borrow(space, table, fd, &file))
			continue;
		sum += ((struct conn *)shelf_file_payload(file))->balance;
		shelf_fd_return(space, table, file);
	}
	return sum;
}

int main(void)
{
	char name[64], why[SHELF_FD_WHY];
	struct shelf_file *ledger = NULL;
	int k, err;

	snprintf(name, sizeof(name), "example-%ld", (long)getpid());
	err = shelf_fdspace_create(name, 32 << 20, &space, why);
	if (err) {
		fprintf(stderr, "fdtable: %s\n", why);
		return 1;
	}
	shelf_fdspace_remove(name, NULL); /* nobody else needs to find it */
	shelf_file_type_register(CONN_TYPE, &conn_type);
	err = shelf_fdtable_create(space, &table);
	if (!err)
		err = shelf_file_alloc(space, CONN_TYPE + 1, sizeof(*total), &ledger);
	if (err)
		fail("cannot start", err);
	total = shelf_file_payload(ledger);
	for (k = 0; k < CONNECTIONS; k++)
		conn_open(k);
	run_server();
	shelf_fdspace_quiesce(space, 1000);
	printf("requests %d, served %lu\n", 3 * REQUESTS, sum_of_open() + *total);
	k = sum_of_open() + *total == 3UL * REQUESTS ? 0 : 1;
	shelf_fdtable_leave(space, table);
	shelf_file_type_register(CONN_TYPE, NULL);
	shelf_fd_put(space, ledger);
	shelf_fdspace_detach(space);
	return k;
}
