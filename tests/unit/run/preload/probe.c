// SPDX-License-Identifier: MIT
/*
 * A preloaded library that patches every site, passes every call, and counts them by number.
 *
 *   PROBE_TABLES   folder of site tables
 *   PROBE_OUT      file to which lines are added: "count NR N" when the process ends or executes
 *                  another program, "attach SITES PATCHED LEFT NANOSECONDS" when it starts,
 *                  "missed NR ADDRESS" for a call that went past the dispatcher, "wrong NR ADDRESS"
 *                  for a site that asks for another number than its table says
 *   PROBE_STRICT   set: look for such calls, with Syscall User Dispatch.  Only calls made from
 *                  this library's text are let through by the kernel.
 *   PROBE_LEAVE    set: openat is left unpatched, to see that it is missed
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>
#include <ucontext.h>
#include <sys/prctl.h>

#include "base/syscall.h"
#include "run/attach.h"
#include "run/numbers.h"
#include "run/slots.h"

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#define PR_SYS_DISPATCH_ON 1
#endif
#define GENERAL_REGS __attribute__((target("general-regs-only")))
#define OWN_SA_RESTORER 0x04000000ul

struct kernel_sigaction {
	void (*handler)(int, siginfo_t *, void *);
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};

static uint64_t counts[RUN_NUMBERS];
static int16_t numbers[SLOTS_OWN]; /* by slot, what the tables say; -1 if they do not */
static uint8_t concerns[RUN_NUMBERS];
static const char *out_path;
static bool strict;
static struct run_image own;
static char allow_none = 1; /* the selector: SYSCALL_DISPATCH_FILTER_BLOCK */
static __thread int armed __attribute__((tls_model("initial-exec")));

extern const char run_slots[] __attribute__((visibility("hidden")));
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
void probe_sigreturn(void);

__asm__(".text\n.globl probe_sigreturn\n.hidden probe_sigreturn\n"
	"probe_sigreturn:\n\tmov $15, %rax\n\tsyscall\n");

static GENERAL_REGS char *put_number(char *to, uint64_t n, unsigned int base)
{
	char text[24];
	unsigned int len = 0;

	do
		text[len++] = "0123456789abcdef"[n % base];
	while ((n /= base));
	*to++ = ' ';
	while (len)
		*to++ = text[--len];
	return to;
}

static GENERAL_REGS char *put_word(char *to, const char *word)
{
	while (*word)
		*to++ = *word++;
	return to;
}

static GENERAL_REGS void add_to_file(const char *text, const char *end)
{
	long fd;

	if (!out_path)
		return;
	fd = sys_call3(SYS_open, (long)out_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	sys_call3(SYS_write, fd, (long)text, end - text);
	sys_call3(SYS_close, fd, 0, 0);
}

/* Adds the counts to the file and starts again at zero: a child of vfork shares them. */
static GENERAL_REGS void report(void)
{
	char text[4096], *to = text;

	for (unsigned int nr = 0; nr < RUN_NUMBERS && to < text + sizeof(text) - 64; nr++) {
		uint64_t n = __atomic_exchange_n(&counts[nr], 0, __ATOMIC_RELAXED);

		if (!n)
			continue;
		to = put_number(put_number(put_word(to, "count"), nr, 10), n, 10);
		*to++ = '\n';
	}
	add_to_file(text, to);
}

/* A thread and a child start without dispatch; armed holds the thread for which it is on. */
static GENERAL_REGS void arm(void)
{
	int tid = (int)sys_call3(SYS_gettid, 0, 0, 0);

	if (armed == tid)
		return;
	/* Allowed: all of this library's text, which holds the slots. */
	if (sys_call6(SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON,
		      (long)(own.bias + own.text), own.text_len, (long)&allow_none, 0) == 0)
		armed = tid;
}

static GENERAL_REGS void add_line(const char *word, uint64_t nr, uint64_t address)
{
	char text[128], *to = put_number(put_number(put_word(text, word), nr, 10), address, 16);

	*to++ = '\n';
	add_to_file(text, to);
}

/* A call past the dispatcher: note it, then make it. */
static GENERAL_REGS void on_sigsys(int sig, siginfo_t *info, void *context)
{
	greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
	long nr = info->si_syscall;

	(void)sig;
	if (nr >= 0 && nr < RUN_NUMBERS && concerns[nr])
		add_line("missed", (uint64_t)nr, (uint64_t)info->si_call_addr);
	r[REG_RAX] =
		sys_call6(nr, r[REG_RDI], r[REG_RSI], r[REG_RDX], r[REG_R10], r[REG_R8], r[REG_R9]);
}

static GENERAL_REGS void watch(void)
{
	struct kernel_sigaction sa = {on_sigsys, SA_SIGINFO | SA_NODEFER | OWN_SA_RESTORER,
				      probe_sigreturn, 0};

	sys_call6(SYS_rt_sigaction, SIGSYS, (long)&sa, 0, 8, 0, 0);
	arm();
}

/* Handlers return through our own text, and SIGSYS stays ours. */
static GENERAL_REGS long sigaction_strict(const struct run_regs *r)
{
	struct kernel_sigaction sa;

	if (r->di == SIGSYS)
		return 0;
	if (!r->si)
		return sys_call6(SYS_rt_sigaction, (long)r->di, 0, (long)r->dx, (long)r->r10, 0, 0);
	sa = *(const struct kernel_sigaction *)r->si;
	sa.restorer = probe_sigreturn;
	sa.flags |= OWN_SA_RESTORER;
	sa.mask &= ~(1ul << (SIGSYS - 1));
	return sys_call6(SYS_rt_sigaction, (long)r->di, (long)&sa, (long)r->dx, (long)r->r10, 0, 0);
}

/* SIGSYS is never blocked: the kernel ends a process that cannot take it. */
static GENERAL_REGS long sigprocmask_strict(const struct run_regs *r)
{
	uint64_t mask;

	if (!r->si)
		return sys_call6(SYS_rt_sigprocmask, (long)r->di, 0, (long)r->dx, (long)r->r10, 0,
				 0);
	mask = *(const uint64_t *)r->si;
	if (r->di != SIG_UNBLOCK)
		mask &= ~(1ul << (SIGSYS - 1));
	return sys_call6(SYS_rt_sigprocmask, (long)r->di, (long)&mask, (long)r->dx, (long)r->r10, 0,
			 0);
}

static GENERAL_REGS void check_number(const struct run_regs *r)
{
	uint64_t slot = (r->raw - (uintptr_t)run_slots) / SLOT_BYTES;

	if (slot < SLOTS_OWN && numbers[slot] >= 0 && numbers[slot] != (int)r->nr)
		add_line("wrong", r->nr, slots_own_site((uint32_t)slot));
}

GENERAL_REGS long run_syscall(struct run_regs *r)
{
	uint32_t nr = (uint32_t)r->nr;

	check_number(r);

	__atomic_fetch_add(&counts[nr], 1, __ATOMIC_RELAXED);
	if (nr == SYS_exit_group || nr == SYS_execve || nr == SYS_execveat)
		report();
	if (!strict)
		return run_pass(r);
	arm();
	if (nr == SYS_rt_sigaction)
		return sigaction_strict(r);
	if (nr == SYS_rt_sigprocmask)
		return sigprocmask_strict(r);
	return run_pass(r);
}

static const char *env_value(char **envp, const char *name)
{
	for (; envp && *envp; envp++) {
		const char *at = *envp, *want = name;

		while (*want && *at == *want) {
			at++;
			want++;
		}
		if (!*want && *at == '=')
			return at + 1;
	}
	return NULL;
}

static uint64_t now(void)
{
	struct timespec ts;

	sys_call3(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&ts, 0);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* The sites of one image, in the order in which they were given slots from number I on; ready copies begin a page. */
static unsigned int take_numbers(const char *name, const char *dir, bool ready, unsigned int i)
{
	struct table_cursor c;
	struct run_image im;
	struct run_site site;
	const void *buf;
	size_t size;

	if (!dir || run_find_image(name, &im) || table_load(&im, dir, &buf, &size))
		return i;
	if (table_open(&im, buf, size, &c) == 0)
		while (table_next(&c, &site) > 0)
			if (site.why == SITE_OK && i < SLOTS_OWN)
				numbers[i++] = site.nr;
	table_unload(buf, size);
	return ready ? ALIGN_UP(i + 1, (unsigned int)(PAGE_BYTES / SLOT_BYTES)) : i;
}

__attribute__((constructor)) static void probe_start(int argc, char **argv, char **envp)
{
	struct attach_result result;
	const char *tables = env_value(envp, "PROBE_TABLES");
	char text[256], *to = text;
	uint64_t start, end;
	int rc;

	(void)argc;
	(void)argv;
	out_path = env_value(envp, "PROBE_OUT");
	strict = env_value(envp, "PROBE_STRICT");
	run_numbers_of_files(concerns);
	image_at(&own, __ehdr_start);
	start = now();
	for (unsigned int i = 0; i < RUN_NUMBERS; i++)
		run_wanted[i] = 1;
	for (unsigned int i = 0; i < SLOTS_OWN; i++)
		numbers[i] = -1;
	if (env_value(envp, "PROBE_LEAVE"))
		run_wanted[SYS_openat] = 0;
	rc = run_attach(tables, run_wanted, &result);
	end = now();
	take_numbers("ld-linux-x86-64.so.2", tables, result.ready, take_numbers("libc.so.6", tables, result.ready, 0));
	to = put_number(put_word(to, rc ? "failed" : "attach"), result.count.sites, 10);
	to = put_number(to, result.count.patched, 10);
	to = put_number(to, result.count.left, 10);
	to = put_number(to, rc ? (uint64_t)-rc : end - start, 10);
	*to++ = '\n';
	add_to_file(text, to);
	if (strict)
		watch();
}
