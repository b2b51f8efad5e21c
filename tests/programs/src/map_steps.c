/* SPDX-License-Identifier: MIT */
/*
 * map_steps DIR SEED STEPS: random reads, writes, truncates, holes, and loads and stores through maps that stay while all that
 * happens.  After every 1000 steps it prints a sum of the file, so that two file systems can be compared.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE 4096L
#define PAGES 96L
#define SIZE (PAGES * PAGE)
#define MAPS 6

static uint64_t state;
static sigjmp_buf jump;
static char buf[SIZE];
static int fd;
static struct {
	char *at;
	int prot;
} maps[MAPS];

static uint64_t below(uint64_t n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (state >> 33) % n;
}

static void on_bus(int sig)
{
	(void)sig;
	siglongjmp(jump, 1);
}

static long size_now(void)
{
	struct stat st;

	fstat(fd, &st);
	return st.st_size;
}

/* What is stored behind the end of the file in its last page is nobody's: it is not done. */
static int spills(long at, long n)
{
	long size = size_now();

	return at < (size + PAGE - 1) / PAGE * PAGE && at + n > size;
}

static uint64_t through_map(int k, long at, long n, int store)
{
	volatile uint64_t sum = 0, got = 0;
	char fill = (char)below(256);

	if (!maps[k].at)
		return 0;
	if (store && (!(maps[k].prot & PROT_WRITE) || spills(at, n)))
		return 0;
	if (sigsetjmp(jump, 1))
		return sum * 31 + 1000000007; /* how far it came shows in the file */
	for (long i = 0; i < n; i++) {
		if (store)
			((volatile char *)maps[k].at)[at + i] = (char)(fill + i);
		else
			sum = sum * 131 + (unsigned char)((volatile char *)maps[k].at)[at + i];
		got++;
	}
	return sum + got;
}

static void remap(int k)
{
	if (maps[k].at)
		munmap(maps[k].at, SIZE);
	maps[k].prot = below(3) ? PROT_READ | PROT_WRITE : PROT_READ;
	maps[k].at = mmap(NULL, SIZE, maps[k].prot, MAP_SHARED, fd, 0);
	if (maps[k].at == MAP_FAILED)
		exit(3);
}

static uint64_t step(void)
{
	long at = (long)below(SIZE), n = (long)below(3 * PAGE) + 1;
	int k = (int)below(MAPS);

	n = n < SIZE - at ? n : SIZE - at;
	switch (below(12)) {
	case 0:
	case 1:
		memset(buf, (int)below(256), (size_t)n);
		return (uint64_t)pwrite(fd, buf, (size_t)n, at);
	case 2:
		memset(buf, 0, (size_t)n);
		n = pread(fd, buf, (size_t)n, at);
		for (long i = 0; i < n; i++)
			state = state * 31 + (unsigned char)buf[i];
		return (uint64_t)n;
	case 3:
		return (uint64_t)(below(4) ? 0 : ftruncate(fd, at));
	case 4:
		return (uint64_t)fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, n);
	case 5:
		return (uint64_t)(below(4) ? 0 : fallocate(fd, 0, at, n));
	case 6:
		remap(k);
		return 1;
	case 7: /* from the map into the file, but not onto itself */
		if (!maps[k].at || at + n > size_now() || at < 4 * PAGE)
			return 0;
		return (uint64_t)pwrite(fd, maps[k].at + at, (size_t)n, (off_t)below((uint64_t)(at - 3 * PAGE)));
	case 8: /* and the other way */
		if (!maps[k].at || !(maps[k].prot & PROT_WRITE) || at + n > size_now() || at < 4 * PAGE)
			return 0;
		return (uint64_t)pread(fd, maps[k].at + at, (size_t)n, (off_t)below((uint64_t)(at - 3 * PAGE)));
	case 9:
	case 10:
		return through_map(k, at, n, 1);
	default:
		return through_map(k, at, n, 0);
	}
}

static uint64_t sum_of_file(void)
{
	long n = pread(fd, buf, SIZE, 0);
	uint64_t sum = (uint64_t)n;

	for (long i = 0; i < n; i++)
		sum = sum * 131 + (unsigned char)buf[i];
	return sum;
}

int main(int argc, char **argv)
{
	uint64_t sum = 0;
	long steps;

	if (argc < 4 || chdir(argv[1]))
		return 2;
	state = strtoull(argv[2], NULL, 0);
	steps = strtol(argv[3], NULL, 0);
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGBUS, on_bus);
	fd = open("steps", O_RDWR | O_CREAT | O_TRUNC, 0600);
	for (long i = 0; i < steps; i++) {
		sum = sum * 31 + step();
		if (i % 1000 == 999)
			printf("%ld: size %ld, file %016lx, results %016lx\n", i + 1, size_now(), sum_of_file(), sum);
	}
	return 0;
}
