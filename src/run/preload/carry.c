/* SPDX-License-Identifier: MIT */
/*
 * carry.c - numbers of the shelf's in messages (SCM_RIGHTS), and taken from other processes (pidfd_getfd).
 *
 * What travels is a carrier: a socket of the kernel's that is bound to the hidden name c-PID-N and does nothing else. The
 * open file itself waits at number N of the keeper, the task that the process `shelf run`, PID, has for this. So
 * it lives although its sender closes it or ends, and the receiver gets the same open file, offset and all, at the
 * number that the kernel gave. To a program that is not on this shelf a carrier is a socket without a peer.
 *
 * A carrier that nobody has any more refuses connections: whoever finds that takes its name and the keeper's
 * number away. The receiver looks at its own, each 64th sender at all. Both, and sending, hold the folder's flock,
 * which ends with its holder; so a number of the keeper's is not given out again while its old name is being
 * removed. A number without a name is what a sender left that died in between: it goes too.
 *
 * Limits: if `shelf run` itself is killed, what is in flight is lost. Ancillary data of more than 2 KiB is not looked into.
 */
#include <stddef.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>

#include "run/preload/nodes.h"

#define CONTROL_ROOM 2048u
#define RIGHTS_MAX 253u /* as SCM_MAX_FD */
#define SWEEP_EACH 64

/* ---- the keeper ------------------------------------------------------------------------------- */

static struct shelf_task *keeper_of(uint32_t pid)
{
	struct shelf_task *t = NULL;

	call_enter();
	if (!pid || shelf_task_find(load_acquire(&runtime.shelf), (pid_t)pid, &t)) /* pairs with attach_now */
		t = NULL;
	call_leave();
	return t;
}

static void carrier_name(struct sockaddr_un *un, uint32_t pid, int n)
{
	char folder[NODE_FOLDER];

	memset(un, 0, sizeof(*un));
	un->sun_family = AF_UNIX;
	if (!nodes_folder(folder, true))
		snprintf(un->sun_path, sizeof(un->sun_path), "%s/c-%u-%d", folder, pid, n);
}

/* The folder's lock: a descriptor to close, or -errno. */
static long folder_lock(void)
{
	char folder[NODE_FOLDER];
	long fd = nodes_folder(folder, true), err;

	if (!fd)
		fd = sys_call3(SYS_open, (long)folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (fd < 0)
		return fd;
	while ((err = sys_call3(SYS_flock, fd, LOCK_EX, 0)) == -EINTR)
		;
	if (!err)
		return fd;
	sys_call3(SYS_close, fd, 0, 0);
	return err;
}

/* Locked.  Nobody has a socket of this name: it is gone then. */
static bool name_is_dead(const struct sockaddr_un *un)
{
	/* Of another type, so that one that lives says EPROTOTYPE: one that does not listen would refuse too. */
	long err, fd = sys_call3(SYS_socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return false;
	err = sys_call3(SYS_connect, fd, (long)un, sizeof(*un));
	sys_call3(SYS_close, fd, 0, 0);
	return err == -ECONNREFUSED || err == -ENOENT;
}

/* Locked. */
static void sweep_one(struct shelf_task *keeper, uint32_t pid, int n)
{
	struct sockaddr_un un;

	carrier_name(&un, pid, n);
	if (!name_is_dead(&un))
		return;
	sys_call3(SYS_unlink, (long)un.sun_path, 0, 0);
	SERVED((task_take_back(keeper, n), 0));
}

static void sweep(struct shelf_task *keeper, uint32_t pid)
{
	for (int n = task_next_number(keeper, 0); n >= 0; n = task_next_number(keeper, n + 1))
		sweep_one(keeper, pid, n);
}

/* ---- sending ------------------------------------------------------------------------------------ */

/* Locked. */
static long carrier_bind(int n)
{
	struct sockaddr_un un;
	long err, fd = sys_call3(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return fd;
	carrier_name(&un, runtime.keeper, n);
	err = sys_call3(SYS_bind, fd, (long)&un, sizeof(un));
	if (err == -EADDRINUSE) { /* of one that died before it took the name away */
		sys_call3(SYS_unlink, (long)un.sun_path, 0, 0);
		err = sys_call3(SYS_bind, fd, (long)&un, sizeof(un));
	}
	if (!err)
		return fd;
	sys_call3(SYS_close, fd, 0, 0);
	return err;
}

/* Of our own run, under the folder's lock: where the shelf was only promised, who first sends makes the keeper. */
static struct shelf_task *keeper_locked(void)
{
	struct shelf_task *t = keeper_of(runtime.keeper);

	if (t || !runtime.promised)
		return t;
	call_enter();
	if (shelf_task_create((struct shelf *)(void *)load_acquire(&runtime.shelf), NULL, &t) || /* pairs with attach_now */
	    task_adopt_as(t, runtime.keeper, slot_start_time_of(runtime.keeper)))
		t = NULL;
	call_leave();
	return t;
}

static long make_once(int fd)
{
	long n, carrier, lock = folder_lock();
	struct shelf_task *keeper = lock < 0 ? NULL : keeper_locked();

	if (lock < 0)
		return lock;
	if (!keeper) {
		sys_call3(SYS_close, lock, 0, 0);
		return -EBADF;
	}
	n = SERVED(task_give(task_here(), fd, keeper, 0));
	carrier = n < 0 ? n : carrier_bind((int)n);
	if (n >= 0 && carrier < 0)
		SERVED((task_take_back(keeper, (int)n), 0));
	if (n >= 0 && n % SWEEP_EACH == SWEEP_EACH - 1)
		sweep(keeper, runtime.keeper);
	sys_call3(SYS_close, lock, 0, 0);
	return carrier;
}

long carry_make(int fd)
{
	struct rlimit old;
	long carrier = make_once(fd);

	if (carrier == -EMFILE && numbers_stretch(&old)) {
		carrier = make_once(fd);
		numbers_shrink(&old);
	}
	return carrier;
}

/* ---- receiving ------------------------------------------------------------------------------------ */

static const char *behind(const char *text, const char *start)
{
	size_t n = strlen(start);

	return strncmp(text, start, n) ? NULL : text + n;
}

static unsigned take_digits(const char **p)
{
	unsigned n = 0;

	for (; **p >= '0' && **p <= '9'; ++*p)
		n = n * 10 + (unsigned)(**p - '0');
	return n;
}

/* Is `fd` a carrier of this shelf? */
static bool carrier_read(int fd, uint32_t *pid, int *n)
{
	char folder[NODE_FOLDER];
	struct sockaddr_un un = {0};
	uint32_t len = sizeof(un) - 1;
	const char *p;

	if (sys_call3(SYS_getsockname, fd, (long)&un, (long)&len) || un.sun_family != AF_UNIX || !strchr(un.sun_path, '/') ||
	    !strrchr(un.sun_path, '/') || !behind(strrchr(un.sun_path, '/'), "/c-"))
		return false;
	if (!attached() && !run_attach_try())
		return false; /* with other rights than the shelf's owner's: what it got is no file of the shelf's to it */
	if (nodes_folder(folder, false) || !(p = behind(un.sun_path, folder)) || !(p = behind(p, "/c-")))
		return false;
	*pid = take_digits(&p);
	p += *p == '-';
	*n = (int)take_digits(&p);
	return !*p;
}

/* Number `from` of task `t` comes to number `fd`, where the kernel has something. */
static long bring(struct shelf_task *t, int from, int fd, bool cloexec)
{
	struct shelf_task *me = task_here();
	long n = task_give(t, from, me, HIDDEN_NUMBERS), at;

	if (n < 0)
		return n;
	at = shelf_dup3(me, (int)n, fd, cloexec ? O_CLOEXEC : 0);
	shelf_close(me, (int)n);
	return at;
}

/* The kernel's number becomes a placeholder: numbers.c. */
static long put_placeholder(int fd)
{
	long at, null = sys_call3(SYS_open, (long)"/dev/null", O_PATH, 0);

	if (null < 0)
		return null;
	at = sys_call3(SYS_dup3, null, fd, 0);
	sys_call3(SYS_close, null, 0, 0);
	return at;
}

/* Ours by now: the carrier goes, and what it was sent by. */
static bool carrier_goes(struct shelf_task *keeper, uint32_t pid, int n, int fd)
{
	long lock = put_placeholder(fd) < 0 ? -1 : folder_lock();

	if (lock < 0)
		return false;
	sweep_one(keeper, pid, n);
	sys_call3(SYS_close, lock, 0, 0);
	return true;
}

void carry_take(int fd, bool cloexec)
{
	struct shelf_task *keeper;
	struct rlimit old;
	uint32_t pid;
	int n;

	if (!carrier_read(fd, &pid, &n) || !(keeper = keeper_of(pid)) || SERVED(bring(keeper, n, fd, cloexec)) < 0) {
		number_mark(fd);
		return;
	}
	if (!carrier_goes(keeper, pid, n, fd) && numbers_stretch(&old)) {
		carrier_goes(keeper, pid, n, fd);
		numbers_shrink(&old);
	}
}

/* ---- messages ---------------------------------------------------------------------------------------- */

struct outgoing {
	struct msghdr m;
	struct name_in name;
	unsigned carriers;
	int carrier[RIGHTS_MAX];
	_Alignas(8) char control[CONTROL_ROOM];
};

/* Numbers in one SCM_RIGHTS. */
static long replace_numbers(struct outgoing *o, struct cmsghdr *c)
{
	int *fds = (int *)CMSG_DATA(c);
	size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

	for (size_t i = 0; i < count; i++) {
		long fd = fds[i];

		if (number_parked((int)fd))
			return -EBADF;
		if (watch_is_armed((int)fd))
			return -EINVAL; /* half of it is the shelf's */
		if (!number_is_ours((int)fd))
			continue;
		if (o->carriers == RIGHTS_MAX)
			return -EINVAL;
		fd = carry_make((int)fd);
		if (fd < 0)
			return fd;
		o->carrier[o->carriers++] = fds[i] = (int)fd;
	}
	return 0;
}

static struct cmsghdr *next_header(const struct msghdr *m, struct cmsghdr *c)
{
	char *end = (char *)m->msg_control + m->msg_controllen, *next = (char *)c + CMSG_ALIGN(c->cmsg_len);

	if (c->cmsg_len < sizeof(*c) || next + sizeof(*c) > end)
		return NULL;
	c = (struct cmsghdr *)next;
	return next + c->cmsg_len > end ? NULL : c;
}

static long outgoing_control(struct outgoing *o)
{
	long err = 0;

	if (!o->m.msg_control || o->m.msg_controllen < sizeof(struct cmsghdr) || o->m.msg_controllen > CONTROL_ROOM || !attached())
		return 0;
	if (copy_from_user(o->control, o->m.msg_control, o->m.msg_controllen))
		return -EFAULT;
	o->m.msg_control = o->control;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&o->m); c && !err; c = next_header(&o->m, c)) {
		if ((char *)c + c->cmsg_len > o->control + o->m.msg_controllen)
			break; /* the kernel says what is wrong */
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len >= CMSG_LEN(0))
			err = replace_numbers(o, c);
	}
	return err;
}

static long send_one(int fd, const struct msghdr *user, unsigned flags)
{
	struct outgoing o;
	long n;

	if (copy_from_user(&o.m, user, sizeof(o.m)))
		return -EFAULT;
	o.carriers = 0;
	o.name.ours = false;
	n = o.m.msg_name ? name_take(&o.name, (uint64_t)(uintptr_t)o.m.msg_name, o.m.msg_namelen) : 0;
	if (!n && o.name.ours) {
		o.m.msg_name = &o.name.addr;
		o.m.msg_namelen = o.name.len;
	}
	if (!n)
		n = outgoing_control(&o);
	if (!n)
		n = sys_call3(SYS_sendmsg, fd, (long)&o.m, flags);
	while (o.carriers)
		sys_call3(SYS_close, o.carrier[--o.carriers], 0, 0);
	return n == -ENOENT && o.name.ours ? -ECONNREFUSED : n;
}

/* Nothing in it for us? */
static bool is_plain(const struct msghdr *user)
{
	struct msghdr m;

	return copy_from_user(&m, user, sizeof(m)) || (!m.msg_name && !m.msg_control);
}

static long not_socket(int fd)
{
	if (!attached())
		return 0;
	return number_is_ours(fd) ? -ENOTSOCK : number_parked(fd) ? -EBADF : 0;
}

static long serve_sendmsg(struct run_regs *r)
{
	const struct msghdr *user = (const struct msghdr *)r->si;
	long err = not_socket((int)r->di);

	if (err || is_plain(user))
		return err ? err : run_pass(r);
	return send_one((int)r->di, user, (unsigned)r->dx);
}

static long serve_sendmmsg(struct run_regs *r)
{
	struct mmsghdr *user = (struct mmsghdr *)r->si;
	unsigned count = min_of((unsigned)r->dx, 1024u), done = 0, len;
	long n = not_socket((int)r->di);
	bool plain = true;

	for (unsigned i = 0; i < count && plain; i++)
		plain = is_plain(&user[i].msg_hdr);
	if (n || plain)
		return n ? n : run_pass(r);
	for (; done < count; done++) {
		n = send_one((int)r->di, &user[done].msg_hdr, (unsigned)r->r10);
		len = (unsigned)n;
		if (n >= 0 && copy_to_user(&user[done].msg_len, &len, sizeof(len)))
			n = -EFAULT;
		if (n < 0)
			break;
	}
	return done ? (long)done : n;
}

/* What came: numbers, in memory of the program's that the kernel has just written. */
static void incoming_control(const struct msghdr *m, bool cloexec)
{
	struct cmsghdr c;
	int fd;

	for (size_t at = 0; m->msg_control && at + sizeof(c) <= m->msg_controllen; at += CMSG_ALIGN(c.cmsg_len)) {
		const char *from = (const char *)m->msg_control + at;

		if (copy_from_user(&c, from, sizeof(c)) || c.cmsg_len < sizeof(c))
			return;
		if (c.cmsg_level != SOL_SOCKET || c.cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = CMSG_LEN(0); i + sizeof(fd) <= c.cmsg_len && at + i + sizeof(fd) <= m->msg_controllen; i += sizeof(fd))
			if (!copy_from_user(&fd, from + i, sizeof(fd)))
				carry_take(fd, cloexec);
	}
}

static void incoming(struct msghdr *user, uint32_t room, bool cloexec)
{
	struct msghdr m;

	if (copy_from_user(&m, user, sizeof(m)))
		return;
	if (m.msg_name)
		name_give((uint64_t)(uintptr_t)m.msg_name, room, (uint64_t)(uintptr_t)&user->msg_namelen);
	incoming_control(&m, cloexec);
}

static long serve_recvmsg(struct run_regs *r)
{
	struct msghdr m, *user = (struct msghdr *)r->si;
	uint64_t a[6];
	long n = not_socket((int)r->di);

	if (n || is_plain(user))
		return n ? n : run_pass(r);
	if (copy_from_user(&m, user, sizeof(m)))
		return -EFAULT;
	if (attached())
		numbers_release();
	regs_args(r, a);
	n = host_call(SYS_recvmsg, a);
	if (n >= 0)
		incoming(user, m.msg_namelen, r->dx & MSG_CMSG_CLOEXEC);
	return n;
}

static long serve_recvmmsg(struct run_regs *r)
{
	struct mmsghdr *user = (struct mmsghdr *)r->si;
	uint64_t a[6];
	long n = not_socket((int)r->di);

	if (n)
		return n;
	if (attached())
		numbers_release();
	regs_args(r, a);
	n = host_call(SYS_recvmmsg, a);
	for (long i = 0; i < n; i++)
		incoming(&user[i].msg_hdr, sizeof(struct sockaddr_un), r->r10 & MSG_CMSG_CLOEXEC);
	return n;
}

/* ---- pidfd_getfd --------------------------------------------------------------------------------------- */

/* The process of a pidfd, 0: not to be had. */
static uint32_t pid_of(int pidfd)
{
	char path[64], text[512];
	const char *p = text;
	long n, fd;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	fd = sys_call3(SYS_open, (long)path, O_RDONLY | O_CLOEXEC, 0);
	n = fd < 0 ? fd : sys_call3(SYS_read, fd, (long)text, sizeof(text) - 1);
	if (fd >= 0)
		sys_call3(SYS_close, fd, 0, 0);
	text[max_of(n, 0L)] = '\0';
	while (*p && !behind(p, "Pid:"))
		p++;
	p = behind(p, "Pid:");
	while (p && (*p == '\t' || *p == ' '))
		p++;
	return p ? take_digits(&p) : 0;
}

/* The kernel has copied the other one's number; if it was a placeholder, the file comes after it. */
static long serve_pidfd_getfd(struct run_regs *r)
{
	struct shelf_task *other;
	uint32_t pid;
	long fd;

	if (attached() && (number_is_ours((int)r->di) || number_parked((int)r->di)))
		return -EBADF;
	pid = pid_of((int)r->di);
	if (!attached() && !(pid && run_attach_try()))
		return run_pass(r);
	fd = number_host_call(r);
	other = fd < 0 ? NULL : keeper_of(pid);
	if (other)
		watch_follows(other, (int)r->si, (int)fd);
	if (!other || SERVED(bring(other, (int)r->si, (int)fd, true)) < 0)
		return fd;
	sys_call3(SYS_fcntl, fd, F_SETFD, 0); /* as all placeholders: numbers.c */
	return fd;
}

AT_START void serve_carry_init(void)
{
	serve_table[SYS_sendmsg] = serve_sendmsg;
	serve_table[SYS_sendmmsg] = serve_sendmmsg;
	serve_table[SYS_recvmsg] = serve_recvmsg;
	serve_table[SYS_recvmmsg] = serve_recvmmsg;
	serve_table[SYS_pidfd_getfd] = serve_pidfd_getfd;
}
