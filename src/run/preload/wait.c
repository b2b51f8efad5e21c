/* SPDX-License-Identifier: MIT */
/*
 * wait.c - poll, select, epoll with files of the shelf among what is waited for.
 *
 * A file is always ready, so a set with one of ours in it does not wait: the kernel is asked about the rest with no
 * timeout, and both answers are put together.  A set without goes to the kernel as it came.
 */
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/select.h>

#include "run/preload/serve.h"

#define POLL_STACK 64 /* more entries lie in memory of their own */
#define ALWAYS (POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM)

/* ---- poll ------------------------------------------------------------------------------------- */

struct poll_set {
	struct pollfd *fds, own[POLL_STACK];
	unsigned n;
	int ready; /* of ours, and numbers that are none */
};

static bool poll_begin(struct poll_set *s, const struct pollfd *from, unsigned n)
{
	long at = (long)s->own;

	if (n > POLL_STACK)
		at = sys_call6(SYS_mmap, 0, (long)(n * sizeof(*from)), PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at < 0 && at > -4096)
		return false;
	s->fds = (struct pollfd *)at;
	s->n = n;
	s->ready = 0;
	return true;
}

static void poll_end(struct poll_set *s)
{
	if (s->fds != s->own)
		sys_call3(SYS_munmap, (long)s->fds, (long)(s->n * sizeof(*s->fds)), 0);
}

/* What of the set the kernel must not see is answered and hidden as ~fd. */
static void poll_answer_ours(struct poll_set *s)
{
	for (unsigned i = 0; i < s->n; i++) {
		struct pollfd *p = &s->fds[i];

		p->revents = 0;
		if (p->fd < 0)
			continue;
		if (number_parked(p->fd))
			p->revents = POLLNVAL;
		else if (number_is_ours(p->fd))
			p->revents = p->events & ALWAYS;
		else
			continue;
		s->ready += p->revents != 0;
		p->fd = ~p->fd;
	}
}

/* Hidden ones among them have their answer already. */
static int poll_merge(struct poll_set *s, struct pollfd *user, const struct pollfd *asked)
{
	for (unsigned i = 0; i < s->n; i++)
		if (copy_to_user(&user[i].revents, &asked[i].revents, sizeof(asked[i].revents)))
			return -EFAULT;
	return 0;
}

static long poll_call(const struct run_regs *r, struct poll_set *s, struct pollfd *user)
{
	static const struct timespec now = {0, 0};
	struct pollfd *keep = s->fds;
	short mine[POLL_STACK];
	uint64_t a[6];
	long n;

	regs_args(r, a);
	a[0] = (uint64_t)(uintptr_t)keep;
	if (s->ready)
		a[2] = r->nr == SYS_poll ? 0 : (uint64_t)(uintptr_t)&now;
	for (unsigned i = 0; i < s->n && i < POLL_STACK; i++)
		mine[i] = keep[i].revents;
	n = host_call((long)r->nr, a);
	if (n < 0)
		return n;
	for (unsigned i = 0; i < s->n; i++)
		if (keep[i].fd < -1 || (keep[i].fd == -1 && i < POLL_STACK && mine[i]))
			keep[i].revents = i < POLL_STACK ? mine[i] : (short)(keep[i].events & ALWAYS);
	return poll_merge(s, user, keep) ? -EFAULT : n + s->ready;
}

static bool any_of_ours(const struct pollfd *fds, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (fds[i].fd >= 0 && (number_is_ours(fds[i].fd) || number_parked(fds[i].fd)))
			return true;
	return false;
}

static long serve_poll(struct run_regs *r)
{
	struct pollfd *user = (struct pollfd *)r->di;
	unsigned n = (unsigned)r->si;
	struct poll_set s;
	long result;

	if (!attached() || !n || n > (unsigned)FD_NUMBER_MAX)
		return run_pass(r);
	if (!poll_begin(&s, user, n))
		return -ENOMEM;
	if (copy_from_user(s.fds, user, n * sizeof(*user))) {
		poll_end(&s);
		return -EFAULT;
	}
	if (!any_of_ours(s.fds, n)) {
		poll_end(&s);
		return run_pass(r);
	}
	poll_answer_ours(&s);
	result = poll_call(r, &s, user);
	poll_end(&s);
	return result;
}

/* ---- select -------------------------------------------------------------------------------------- */

#define SELECT_WORDS (65536 / 64) /* numbers above go to the kernel unseen */
#define SETS 3

struct select_sets {
	uint64_t *user[SETS];
	uint64_t ours[SETS][FD_SETSIZE / 64]; /* of ours in each: ready, but for exceptions */
	uint64_t rest[SETS][FD_SETSIZE / 64];
	unsigned words;
	int ready;
};

static long select_split(struct select_sets *s)
{
	for (int k = 0; k < SETS; k++) {
		memset(s->ours[k], 0, sizeof(s->ours[k]));
		if (s->user[k] && copy_from_user(s->rest[k], s->user[k], s->words * 8))
			return -EFAULT;
		for (unsigned w = 0; s->user[k] && w < s->words; w++)
			for (uint64_t bits = s->rest[k][w]; bits; bits &= bits - 1) {
				unsigned fd = w * 64 + (unsigned)__builtin_ctzll(bits);

				if (number_parked((int)fd))
					return -EBADF;
				if (!number_is_ours((int)fd))
					continue;
				s->ours[k][w] |= bits & -bits;
				s->rest[k][w] &= ~(bits & -bits);
				s->ready += k < 2;
			}
	}
	return 0;
}

static bool select_has_ours(const struct select_sets *s)
{
	for (int k = 0; k < SETS; k++)
		for (unsigned w = 0; w < s->words; w++)
			if (s->ours[k][w])
				return true;
	return false;
}

static long select_merge(struct select_sets *s)
{
	for (int k = 0; k < SETS; k++) {
		for (unsigned w = 0; k < 2 && w < s->words; w++)
			s->rest[k][w] |= s->ours[k][w];
		if (s->user[k] && copy_to_user(s->user[k], s->rest[k], s->words * 8))
			return -EFAULT;
	}
	return 0;
}

static long serve_select(struct run_regs *r)
{
	static const struct timespec now = {0, 0};
	struct timeval none = {0, 0};
	struct select_sets s = {.user = {(uint64_t *)r->si, (uint64_t *)r->dx, (uint64_t *)r->r10}};
	uint64_t a[6];
	long n;

	if (!attached() || (int)r->di <= 0 || (int)r->di > FD_SETSIZE)
		return run_pass(r);
	s.words = ((unsigned)r->di + 63) / 64;
	n = select_split(&s);
	if (n)
		return n;
	if (!select_has_ours(&s))
		return run_pass(r);
	regs_args(r, a);
	for (int k = 0; k < SETS; k++)
		a[1 + k] = s.user[k] ? (uint64_t)(uintptr_t)s.rest[k] : 0;
	if (s.ready)
		a[4] = r->nr == SYS_select ? (uint64_t)(uintptr_t)&none : (uint64_t)(uintptr_t)&now;
	n = host_call((long)r->nr, a);
	if (n < 0)
		return n;
	return select_merge(&s) ? -EFAULT : n + s.ready;
}

/* ---- epoll ------------------------------------------------------------------------------------------ */

static long serve_epoll_ctl(struct run_regs *r)
{
	int fd = (int)r->dx;

	if (!attached())
		return run_pass(r);
	if (number_parked(fd))
		return -EBADF;
	if (number_is_ours((int)r->di))
		return -EINVAL;
	return number_is_ours(fd) ? -EPERM : run_pass(r);
}

/* Programs do without when there is none: liburing's users ask first. */
static long serve_no_uring(struct run_regs *r)
{
	(void)r;
	return -ENOSYS;
}

AT_START void serve_wait_init(void)
{
	serve_table[SYS_poll] = serve_poll;
	serve_table[SYS_ppoll] = serve_poll;
	serve_table[SYS_select] = serve_select;
	serve_table[SYS_pselect6] = serve_select;
	serve_table[SYS_epoll_ctl] = serve_epoll_ctl;
	serve_table[SYS_io_uring_setup] = serve_no_uring;
}
