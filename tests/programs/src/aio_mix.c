/* SPDX-License-Identifier: MIT */
/*
 * aio_mix DIR: the kernel's asynchronous requests on a file in DIR and on one that is not, in one context; and POSIX's.  What
 * it prints is the same on every file system.
 */
#define _GNU_SOURCE
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static aio_context_t ctx;

static struct iocb request(int fd, int op, void *buf, size_t n, long off, uint64_t data)
{
	return (struct iocb){
		.aio_fildes = (uint32_t)fd,
		.aio_lio_opcode = (uint16_t)op,
		.aio_buf = (uintptr_t)buf,
		.aio_nbytes = n,
		.aio_offset = off,
		.aio_data = data,
	};
}

static long submit(struct iocb **list, long n)
{
	long done = syscall(SYS_io_submit, ctx, n, list);

	return done < 0 ? -errno : done;
}

static int by_data(const void *a, const void *b)
{
	return (int)((const struct io_event *)a)->data - (int)((const struct io_event *)b)->data;
}

static void events(long min, struct iocb *base)
{
	struct io_event e[16];
	long n = syscall(SYS_io_getevents, ctx, min, 16L, e, NULL);

	qsort(e, (size_t)n, sizeof(e[0]), by_data);
	for (long i = 0; i < n; i++)
		printf("event %llu of request %ld: %lld %lld\n", (unsigned long long)e[i].data,
		       (long)((struct iocb *)(uintptr_t)e[i].obj - base), (long long)e[i].res, (long long)e[i].res2);
}

static void mixed(int ours, int host)
{
	char a[100] = "", b[100] = "", c[100] = "", text[] = "written by a request";
	struct iovec iov[2] = {{c, 3}, {c + 50, 5}};
	struct iocb q[8] = {
		request(ours, IOCB_CMD_PWRITE, text, sizeof(text), 0, 1), request(host, IOCB_CMD_PREAD, b, 50, 0, 2),
		request(ours, IOCB_CMD_PREAD, a, 50, 8, 3),		  request(ours, IOCB_CMD_PREADV, iov, 2, 0, 4),
		request(ours, IOCB_CMD_FSYNC, NULL, 0, 0, 5),		  request(ours, IOCB_CMD_POLL, (void *)POLLIN, 0, 0, 6),
		request(ours, IOCB_CMD_PREAD, a + 60, 10, 100000, 7),	  request(host, IOCB_CMD_PREAD, b + 60, 5, 1, 8),
	};
	struct iocb *list[8];

	q[5].aio_buf = POLLIN;
	for (int i = 0; i < 8; i++)
		list[i] = &q[i];
	printf("submitted %ld\n", submit(list, 8));
	events(8, q);
	printf("read %s, %s, %s %s, %s\n", a, b, c, c + 50, b + 60);
	printf("left as it was: %d %d\n", q[0].aio_lio_opcode == IOCB_CMD_PWRITE, (int)q[0].aio_nbytes == (int)sizeof(text));
}

static void refused(int ours, const char *dir)
{
	char b[10];
	int wo = open("aio", O_WRONLY);
	struct iocb q[2] = {request(ours, IOCB_CMD_PREAD, b, 5, 0, 1), request(wo, IOCB_CMD_PREAD, b, 5, 0, 2)};
	struct iocb *list[2] = {&q[0], &q[1]}, *second = &q[1];

	(void)dir;
	printf("second is refused: %ld\n", submit(list, 2));
	events(1, q);
	printf("alone: %ld\n", submit(&second, 1));
	q[1] = request(ours, 99, b, 1, 0, 0);
	printf("unknown: %ld\n", submit(&second, 1));
	q[1] = request(999, IOCB_CMD_PREAD, b, 1, 0, 0);
	printf("closed: %ld\n", submit(&second, 1));
	close(wo);
}

static void *wait_for_one(void *base)
{
	events(1, base);
	return NULL;
}

/* A thread waits in the kernel while the request is made; and an event descriptor is told. */
static void waiting(int ours)
{
	char b[10];
	int efd = eventfd(0, 0);
	uint64_t count = 0;
	struct iocb q = request(ours, IOCB_CMD_PREAD, b, 7, 0, 9), *list = &q;
	pthread_t t;

	q.aio_flags = IOCB_FLAG_RESFD;
	q.aio_resfd = (uint32_t)efd;
	pthread_create(&t, NULL, wait_for_one, &q);
	submit(&list, 1);
	pthread_join(t, NULL);
	printf("told %d", (int)read(efd, &count, sizeof(count)));
	printf(" %d\n", (int)count);
	close(efd);
}

static void posix(int ours)
{
	char a[32] = "", b[32] = "from a list";
	struct aiocb r = {.aio_fildes = ours, .aio_buf = a, .aio_nbytes = 12, .aio_offset = 200, .aio_lio_opcode = LIO_READ};
	struct aiocb w = {.aio_fildes = ours, .aio_buf = b, .aio_nbytes = 12, .aio_offset = 200, .aio_lio_opcode = LIO_WRITE};
	struct aiocb *list[1] = {&w};
	const struct aiocb *one[1] = {&r};

	printf("lio_listio %d", lio_listio(LIO_WAIT, list, 1, NULL));
	printf(" %zd\n", aio_return(&w));
	aio_read(&r);
	while (aio_error(&r) == EINPROGRESS)
		aio_suspend(one, 1, NULL);
	printf("aio_read %zd %s\n", aio_return(&r), a);
}

int main(int argc, char **argv)
{
	int ours, host = open("/etc/passwd", O_RDONLY);
	char none[1];
	struct iocb q, *list = &q;

	if (argc < 2 || chdir(argv[1]) || syscall(SYS_io_setup, 32, &ctx))
		return 2;
	ours = open("aio", O_RDWR | O_CREAT | O_TRUNC, 0600);
	mixed(ours, host);
	refused(ours, argv[1]);
	waiting(ours);
	posix(ours);
	q = request(ours, IOCB_CMD_PWRITE, none, 0, 0, 1);
	printf("nothing: %ld\n", submit(&list, 1));
	events(1, &q);
	return 0;
}
