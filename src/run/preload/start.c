/* SPDX-License-Identifier: MIT */
/*
 * start.c - what the runtime does when a process starts, and when it first needs the shelf.
 *
 *   SHELF_RUN          S PID + , KEY : NAME PREFIX, written together: S is 0, or 1 if the image before exec had something of the shelf, or 2
 *                      if it stood in it, and 4 more for `--strict`; PID is `shelf run`'s; '+' is there if the shelf is only promised
 *                      (promise.h), ", KEY" as key.h says; a name has no '/', a prefix begins with one
 *   SHELF_RUN_DIR      where the shelves are, if not in /dev/shm
 *   SHELF_RUN_EXE      the program's own path, if it lies in the shelf
 *   SHELF_RUN_LOADED   N:PATH if the loader was run by its name: the descriptor that it found its program by, and the name it was given
 *   SHELF_RUN_TABLES   folder of site tables and ready copies; without it each start scans
 *   SHELF_RUN_DOCTOR   `shelf doctor` asks: "calls" or "attach" is answered on standard output, and the process ends
 *
 * All are copied: programs write over their environment.  Linked with -z initfirst, so the constructor runs before those of
 * all other libraries, libc's own included; as the loader's auditor (audit.c, run/library.h) it runs before there is any, and they are patched
 * when they are there.  No libc call here, and no thread yet.  The segment is attached when something of the shelf is first used, or at once if
 * the process has something of it from the image before, so a program that never does pays for the patching only.
 */
#include <elf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "run/attach.h"
#include "run/preload/calls.h"
#include "run/alone/libc.h"
#include "run/preload/strict.h"
#include "run/promise.h"

/* ---- messages -------------------------------------------------------------------------------- */

static void say(const char *format, va_list ap)
{
	char text[512];
	int n = vsnprintf(text, sizeof(text), format, ap);

	n = min_of(n, (int)sizeof(text) - 1);
	if (number_is_ours(2))
		SERVED(shelf_write(task_here(), 2, text, (size_t)n));
	else
		sys_call3(SYS_write, 2, (long)text, n);
}

void run_say(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	say(format, ap);
	va_end(ap);
}

void run_die(const char *format, ...)
{
	va_list ap;

	run_say("shelf run: ");
	va_start(ap, format);
	say(format, ap);
	va_end(ap);
	run_say("\n");
	for (;;)
		sys_call3(SYS_exit_group, 126, 0, 0);
}

/* ---- the shelf ---------------------------------------------------------------------------------- */

/* The number behind NAME in this thread's status; -1: there is no /proc. */
static long status_octal(const char *name)
{
	char text[256]; /* it is among the first lines */
	long fd = sys_call3(SYS_open, (long)"/proc/thread-self/status", O_RDONLY | O_CLOEXEC, 0), n, value = 0;
	const char *at = text;

	if (fd < 0)
		return -1;
	n = sys_call3(SYS_read, fd, (long)text, sizeof(text) - 1);
	sys_call3(SYS_close, fd, 0, 0);
	text[max_of(n, 0L)] = '\0';
	while (at && strncmp(at, name, strlen(name))) {
		at = strchr(at, '\n');
		at += at != NULL;
	}
	if (!at)
		return -1;
	for (at += strlen(name); *at == ' ' || *at == '\t'; at++)
		;
	for (; *at >= '0' && *at <= '7'; at++)
		value = value * 8 + (*at - '0');
	return value;
}

/* The call that tells it sets another: where other threads may make a file meanwhile it is the last resort, and takes rights away. */
static void take_umask(struct shelf_task *t)
{
	long mask = load_relaxed(&runtime.threads) == 1 ? -1 : status_octal("Umask:"); /* only we exist */

	if (mask < 0) {
		mask = sys_call3(SYS_umask, 077, 0, 0);
		sys_call3(SYS_umask, mask, 0, 0);
	}
	shelf_umask(t, (mode_t)mask);
}

/* The kernel's numbers are learnt again; which of them exec closed is not known. */
static void forget_marks(struct shelf_task *t)
{
	for (int fd = task_next_number(t, 0); fd >= 0; fd = task_next_number(t, fd + 1))
		task_unmark_host(t, fd);
}

/* After exec: the task that this process had before.  False: it had none. */
static bool take_up(struct shelf *shelf, struct shelf_task **t)
{
	uint32_t pid = (uint32_t)sys_call3(SYS_getpid, 0, 0, 0);

	if (shelf_task_find(shelf, (pid_t)pid, t) ||
	    load_relaxed(&(*t)->owner) != task_owner_word(pid, slot_start_time())) /* ours: nobody else changes it */
		return false;
	forget_marks(*t);
	if (shelf_task_exec(*t))
		return false;
	task_refresh_cred(*t); /* exec takes capabilities away from who is not root */
	return true;
}

/* A child in its parent's memory, on the parent's slot: the parent has attached (fork.c). */
static int task_for_borrower(struct shelf *shelf, struct shelf_task **t)
{
	int err = shelf_task_create(shelf, NULL, t);
	uint32_t pid = proc_here()->pid;

	return err ? err : task_adopt_as(*t, pid, slot_start_time_of(pid));
}

static void task_make(struct shelf *shelf, struct shelf_task **t)
{
	if (proc_here()->borrowed ? task_for_borrower(shelf, t) : shelf_task_create(shelf, NULL, t))
		run_die("shelf %s has no room for another process", runtime.name);
	take_umask(*t);
}

/* Who gave up the rights to make what was promised, or may not make a file of that size, asks `shelf run`, which makes it before it answers. */
static int attach_promised(struct shelf **shelf, char why[SHELF_WHY])
{
	int err = promise_attach(runtime.shm_dir, runtime.name, shelf, why);
	long fd;

	if (err != -EACCES && err != -EPERM && (err != -EFBIG || !runtime.key[0]))
		return err;
	fd = run_ask_segment();
	if (fd == -ETIMEDOUT)
		snprintf(why, SHELF_WHY, "shelf %s: its `shelf run` (pid %u) does not answer", runtime.name, runtime.keeper);
	if (fd < 0)
		return (int)fd;
	sys_call3(SYS_close, fd, 0, 0);
	return shelf_attach(runtime.name, 0, shelf, why);
}

static int attach_shelf(struct shelf **shelf, char why[SHELF_WHY])
{
	return runtime.promised ? attach_promised(shelf, why) : shelf_attach(runtime.name, 0, shelf, why);
}

/* The program may have no number left. */
static int attach_shelf_anyhow(struct shelf **shelf, char why[SHELF_WHY])
{
	int err = attach_shelf(shelf, why);
	struct rlimit old;

	if (err == -EMFILE && numbers_stretch(&old)) {
		err = attach_shelf(shelf, why);
		numbers_shrink(&old);
	}
	return err;
}

/* False, if that is to be said: the shelf cannot be attached. */
static bool attach_now(bool must)
{
	struct run_proc *p = proc_here();
	struct shelf *shelf = load_acquire(&runtime.shelf); /* pairs with the store below; ours already if a fork copied it */
	char why[SHELF_WHY] = "";
	struct shelf_task *t;

	runtime.unanswered = false;
	nodes_attach();
	signal_attach();
	segment_register_opener(run_ask_segment);
	if (!shelf && attach_shelf_anyhow(&shelf, why)) {
		if (!must)
			return false;
		run_die("%s", why);
	}
	if (p->borrowed || !take_up(shelf, &t))
		task_make(shelf, &t);
	shelf_task_set_threads(t, load_relaxed(&runtime.threads)); /* changed only before a thread starts */
	p->pid = (uint32_t)sys_call3(SYS_getpid, 0, 0, 0);
	numbers_init();
	store_release(&runtime.shelf, shelf); /* pairs with run_attach_shelf in another thread */
	watches_look(t);
	p->task = t;
	return true;
}

static atomic_u32 attaching;

void run_attach_after_fork(void)
{
	store_release(&attaching, 0u); /* another thread of the parent's may have been at it */
}

void run_attach_lock(void)
{
	uint32_t none = 0;

	call_enter();
	while (!cas_acq_rel(&attaching, &none, 1u)) { /* pairs with run_attach_unlock */
		none = 0;
		sys_call3(SYS_sched_yield, 0, 0, 0);
	}
}

void run_attach_unlock(void)
{
	store_release(&attaching, 0u); /* pairs with run_attach_lock */
	call_leave();
}

static bool attach(bool must)
{
	bool done;

	run_attach_lock();
	done = attached() || attach_now(must);
	run_attach_unlock();
	return done;
}

void run_attach_shelf(void)
{
	attach(true);
}

bool run_attach_try(void)
{
	return attach(false);
}

/* ---- the start -------------------------------------------------------------------------------------- */

static void know_prefix(void)
{
	struct stat st;

	if (sys_call3(SYS_stat, (long)runtime.prefix, (long)&st, 0))
		run_die("%s: the directory is gone", runtime.prefix);
	runtime.prefix_dev = st.st_dev;
	runtime.prefix_ino = st.st_ino;
}

AT_START Elf64_auxv_t *run_vector_of(char **envp)
{
	while (*envp)
		envp++;
	return (Elf64_auxv_t *)(envp + 1);
}

AT_START Elf64_auxv_t *run_vector_entry(Elf64_auxv_t *aux, uint64_t type)
{
	for (; aux->a_type != AT_NULL; aux++)
		if (aux->a_type == type)
			return aux;
	return NULL;
}

void run_take_comm(const char *path)
{
	const char *slash = strrchr(path, '/');

	sys_call3(SYS_prctl, PR_SET_NAME, (long)(slash ? slash + 1 : path), 0);
}

/* The program was started by a descriptor: what the kernel made of that is put right. */
static void take_name(Elf64_auxv_t *aux)
{
	Elf64_auxv_t *name = run_vector_entry(aux, AT_EXECFN);

	if (name)
		name->a_un.a_val = (uintptr_t)runtime.exe;
	run_take_comm(runtime.exe);
}

static _Noreturn void answer_doctor(const char *ask, int rc, const struct attach_result *result)
{
	char line[128];
	int n;

	if (!strcmp(ask, "calls"))
		calls_print();
	n = snprintf(line, sizeof(line), "attach %d %u %u %u %u %u %u\n", -rc, result->images, result->scanned,
		     result->ready, result->count.sites, result->count.patched, result->count.left);
	if (!strcmp(ask, "attach"))
		sys_call3(SYS_write, 1, (long)line, n);
	for (;;)
		sys_call3(SYS_exit_group, 0, 0, 0);
}

static struct attach_result patched;
static bool asked; /* `shelf doctor` reads what comes */

static AT_START void patched_or_die(int rc)
{
	if (rc || patched.count.left)
		run_die("cannot rewrite libc's system calls (%d); see `shelf doctor`", rc);
}

/* Libc is there, and no code of it, or of another library, has run: at once if we are preloaded. */
void run_start_libraries(void)
{
	int rc = runtime.auditor ? run_attach_libraries(runtime.tables, run_wanted, &patched) :
				   run_attach(runtime.tables, run_wanted, &patched);

	if (asked)
		answer_doctor("attach", rc, &patched);
	patched_or_die(rc);
	if (runtime.strict && !runtime.auditor)
		strict_start();
}

/*
 * The program's interpreter.  One that was run by its name has put its program's headers into the vector, in place of its own; but it is who
 * calls our constructor, from CALLER, and from its first page to there it is mapped without a gap.
 */
static AT_START const void *loader_base(Elf64_auxv_t *aux, const void *caller)
{
	Elf64_auxv_t *base = run_vector_entry(aux, AT_BASE);
	uintptr_t at = (uintptr_t)caller & ~(uintptr_t)PAGE_MASK;

	if (base && base->a_un.a_val)
		return (const void *)base->a_un.a_val;
	while (memcmp((const void *)at, ELFMAG, SELFMAG))
		at -= PAGE_BYTES;
	return (const void *)at;
}

AT_START bool run_begin(char **envp, Elf64_auxv_t *aux)
{
	Elf64_auxv_t *vdso = run_vector_entry(aux, AT_SYSINFO_EHDR);

	store_relaxed(&runtime.threads, 1u); /* only we exist */
	if (!settings_take(envp))
		return false;
	know_prefix();
	if (vdso)
		run_clock_init((const Elf64_Ehdr *)vdso->a_un.a_val);
	serve_init();
	return true;
}

/* As an auditor: nothing is there but the program and the loader. */
__attribute__((constructor)) static void run_start(int argc, char **argv, char **envp)
{
	const char *ask = libc_env(envp, "SHELF_RUN_DOCTOR");
	Elf64_auxv_t *aux = run_vector_of(envp);

	(void)argc;
	runtime.auditor = !run_images_seen();
	if (!run_begin(envp, aux))
		return; /* not started by `shelf run` */
	if (runtime.auditor)
		settings_take_loaded(argv, envp);
	if (ask && !strcmp(ask, "calls"))
		answer_doctor(ask, 0, &patched);
	asked = ask && !strcmp(ask, "attach");
	if (runtime.strict)
		memset(run_wanted, 1, sizeof(run_wanted)); /* what is not looked at cannot be told from what slipped through */
	if (runtime.auditor)
		patched_or_die(run_attach_loader(loader_base(aux, __builtin_return_address(0)), runtime.tables, run_wanted, &patched));
	if (runtime.exe)
		take_name(aux);
	if (!runtime.auditor)
		run_start_libraries();
	if (runtime.state || runtime.exe)
		run_attach_shelf();
}
