/* SPDX-License-Identifier: MIT */
/*
 * serve.h - the runtime behind `shelf run`: what its files share.
 *
 * Data owned:
 *	runtime		the shelf's name and prefix, [c] after the start; the attached shelf, [a] set once
 *	struct run_proc	one process: its task, where it stands, what its numbers are.  A child that runs in its
 *			parent's memory (vfork) has one of its own; all threads of a process share one
 *	struct run_thread  thread-local: whether a shelf call runs, and the signal that waits for its end
 *
 * Life of a call: entry.S -> run_syscall -> a handler by number -> the shelf (between call_enter and
 * call_leave, where signals wait), or the kernel.  Handlers keep nothing across a kernel call that may block.
 * Numbers that are not the shelf's, and calls before anything of the shelf was used, go to the kernel as they came.
 *
 * Limits: x86-64, glibc.  A process that shares its memory or its descriptors with another without being its thread
 * (CLONE_VM without CLONE_VFORK, CLONE_FILES without CLONE_THREAD) is taken for a thread of it.
 */
#ifndef SHELF_RUN_PRELOAD_SERVE_H
#define SHELF_RUN_PRELOAD_SERVE_H

#include <elf.h>
#include <signal.h>

#include <stdio.h>

#include "api/api.h"
#include "base/fault.h"
#include "base/syscall.h"
#include "run/key.h"
#include "run/preload/sigtable.h"
#include "run/regs.h"

#define HIDDEN_NUMBERS (1 << 23) /* from here on the shelf's numbers are the runtime's own: no placeholder, no program sees them */
#define PARKED_NUMBERS 1024u /* higher ones are given back to the kernel at once */

struct run_proc {
	struct shelf_task *task;
	uint32_t pid;
	bool cwd_in; /* in the shelf; the kernel's is the prefix then */
	bool cwd_moved; /* by the chdir that is under way: to a place in the shelf */
	bool borrowed; /* runs in its parent's memory */
	bool adopted; /* borrowed: the task is its own by now */
	atomic_u64 parked[PARKED_NUMBERS / 64]; /* [a] free numbers whose placeholder is kept: park.c */
	atomic_u32 moving; /* a lock: park.c */
	struct room *rooms; /* of one that runs in its parent's memory: room.c */
	struct sig_table sig;
};

/* What a call that returns twice leaves for both returns: fork.c. */
struct run_spawn {
	uint64_t raw;
	uint32_t pid; /* whose it is */
	bool shares_memory;
	bool room_used; /* of the thread that forks */
	struct run_proc *before;
	struct run_proc child; /* used if it shares our memory, else its task only */
	uint64_t cred_id; /* of that task: task_hand_over() */
	uint64_t mask; /* of signals, to go back to */
};
#define SPAWN_DEPTH 4 /* vfork in a vfork's child in ... */

struct run_thread {
	struct run_proc *proc; /* NULL: the process's own */
	uint32_t in_call;
	uint32_t pending; /* the signal that waits; its siginfo and the mask to go back to: below */
	uint32_t beyond_limit; /* the call met RLIMIT_FSIZE: SIGXFSZ when it ends */
	uint32_t keeping; /* handlers that are about to keep theirs */
	uint64_t mask;
	siginfo_t info;
	siginfo_t fault[2]; /* SIGSEGV, SIGBUS that were sent after it; si_signo 0: none */
	uint64_t faults_blocked; /* of SIGSEGV and SIGBUS: what the program believes to have blocked */
	bool restart; /* the pending signal's action says SA_RESTART */
	bool room_used; /* by the call with a path that is under way; stays set if a handler leaves by longjmp */
	struct route_room *room; /* this thread's: room.c */
	uintptr_t map_missed; /* a page of a map that was not there in a call: map_fault.c; 0: none */
	bool map_missed_write;
	bool map_forking; /* map_table's lock is held around a fork */
	uint32_t depth; /* of spawn */
	struct run_spawn *spawn; /* SPAWN_DEPTH of them, mapped at the first fork */
};

/* How the loader finds its program, a memfd, at this and a number: nobody else writes that so, and $ORIGIN becomes its folder. */
#define LOADED_AT "/proc/self/./fd/"
#define LOADED_VARIABLE "SHELF_RUN_LOADED"

struct runtime {
	const char *name;
	const char *key; /* run/key.h; "": none */
	const char *prefix; /* canonical */
	size_t prefix_len;
	const char *prefix_last; /* its last component */
	uint64_t prefix_dev, prefix_ino;
	char **environ;
	bool auditor; /* loaded before the program's libraries: audit.c */
	const char *library; /* this one, as the environment named it */
	bool strict; /* calls that slip through are reported: strict.c */
	bool unanswered; /* this attach has waited for `shelf run` in vain: ask.c; under the lock of attaching */
	bool promised; /* the shelf may not be there yet: run/promise.h */
	uint32_t keeper; /* the process `shelf run`, which keeps what is in flight: carry.c */
	uint32_t state; /* S of SHELF_RUN: start.c */
	const char *shm_dir; /* the directory of the shelves; NULL: the usual one */
	const char *tables; /* folder of site tables, or NULL */
	const char *loaded; /* the same where the loader was run by its name */
	const char *host_exe; /* where the kernel has this program, if it is a statically linked one */
	const char *exe; /* where in the shelf this program lies, with the prefix; NULL: not there */
	atomic_ptr(struct shelf) shelf; /* NULL: nothing of it was used yet */
	atomic_u32 threads; /* 1 until a second one starts */
	atomic_u32 watching; /* [a] once a number had an inotify instance beside it: watch.c */
	struct run_proc proc;
	long (*thread_begin)(struct run_regs *r), (*thread_after)(struct run_regs *r);
	void (*thread_forked)(void); /* these three: of a statically linked program: static/thread.c; or NULL */
};

extern struct runtime runtime;
/* What the last fork, or its kin, returned: spawn.S. */
extern __thread long run_spawn_result __attribute__((tls_model("initial-exec"), visibility("hidden")));
extern __thread struct run_thread run_thread __attribute__((tls_model("initial-exec")));

static inline struct run_proc *proc_here(void)
{
	struct run_proc *p = run_thread.proc;

	return p ? p : &runtime.proc;
}

static inline struct shelf_task *task_here(void)
{
	return proc_here()->task;
}

/* ---- shelf calls ------------------------------------------------------------------------- */

void call_deliver(void); /* signal.c */

/* Nested pairs are fine. */
static inline void call_enter(void)
{
	run_thread.in_call++;
	fence_compiler();
}

static inline void call_leave(void)
{
	fence_compiler();
	if (likely(--run_thread.in_call == 0) && unlikely(run_thread.pending | run_thread.beyond_limit))
		call_deliver();
}

/* SERVED(shelf_call(...)): its result. */
#define SERVED(call)                       \
	({                                 \
		long served_;              \
		call_enter();              \
		served_ = (long)(call);    \
		call_leave();              \
		served_;                   \
	})

/* The same for a call that may wait: interrupted by a signal whose action says SA_RESTART it is made again. */
#define SERVED_WAIT(call)                                                          \
	({                                                                         \
		long waited_;                                                      \
		do {                                                               \
			run_thread.restart = false;                                \
			waited_ = SERVED(call);                                    \
		} while (waited_ == -EINTR && run_thread.restart);                 \
		waited_;                                                           \
	})

typedef long serve_fn(struct run_regs *r);

static inline bool attached(void)
{
	return proc_here()->task != NULL;
}

/* settings.c: fills `runtime`.  False: not started by `shelf run`. */
bool settings_take(char **envp);
/* The path of the statically linked program, and a descriptor of it; NULL: not told. */
const char *settings_take_static(char **envp, int *fd);
/* The program that the loader was told to load is known by where it lies, not by how the loader found it. */
void settings_take_loaded(char **argv, char **envp);
/* start.c: attaches; on failure says why and ends the process. */
void run_attach_shelf(void);
bool run_attach_try(void); /* false: it cannot be */
void run_attach_lock(void); /* nobody attaches: a lock, in a call */
void run_attach_unlock(void);
long run_ask_segment(void); /* ask.c: a descriptor, or -errno */
void run_start_libraries(void); /* start.c: libc is loaded */
bool run_begin(char **envp, Elf64_auxv_t *aux); /* start.c: settings and handlers.  False: not started by `shelf run` */
Elf64_auxv_t *run_vector_of(char **envp);
Elf64_auxv_t *run_vector_entry(Elf64_auxv_t *aux, uint64_t type);
void run_take_comm(const char *path);
void run_clock_init(const Elf64_Ehdr *vdso); /* audit.c: the kernel's clock without a call */
void run_attach_after_fork(void); /* in the child: nobody is attaching */
/* Text to descriptor 2. */
void run_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void run_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- numbers (numbers.c) -------------------------------------------------------------------- */

static inline bool number_is_ours(int fd)
{
	struct shelf_task *t = task_here();

	return t && task_number_kind(t, fd) == FD_NUMBER_OURS;
}

/* Free, but with a placeholder: the kernel must not see it. */
static inline bool number_parked(int fd)
{
	struct run_proc *p = proc_here();

	return (unsigned)fd < PARKED_NUMBERS && unlikely(load_relaxed(&p->parked[fd / 64]) >> fd % 64 & 1); /* a hint */
}

/* The kernel makes the call as it came, unless the number is parked. */
static inline long pass_number(struct run_regs *r, int fd)
{
	return unlikely(number_parked(fd)) ? -EBADF : run_pass(r);
}

/* From here on what opens a file of the shelf's places its number: api_numbers. */
void numbers_init(void);
long number_close(int fd); /* in a call: one of ours, which is parked */
bool number_unpark(int fd); /* the caller has it in the shelf's table, or is locked */
/* Around what changes the kernel's side of numbers of ours: a call, and no other thread does.  Nests not. */
void numbers_lock(void);
void numbers_unlock(void);
void numbers_after_fork(void); /* the parent had threads: the copies are not of one moment */
bool numbers_any_ours(void); /* attached */
/* Before the kernel gives out a number: all parked ones are free for it. */
void numbers_release(void);
/* The limit on numbers, higher for a call that the program does not know of, and as it was. */
struct rlimit;
bool numbers_stretch(struct rlimit *old);
void numbers_shrink(const struct rlimit *old);
void numbers_release_locked(void);
void number_mark(int fd); /* the kernel has given out `fd` */
void number_unmark(int fd); /* and closed it */
/* A kernel call that gives out a number. */
long number_host_call(struct run_regs *r);
/* Placeholders' FD_CLOEXEC as the shelf's numbers have it, or all cleared again (exec failed). */
void numbers_before_exec(void);
void numbers_exec_failed(void);

/* ---- inotify (watch.c): numbers of the kernel's beside which an instance of the shelf's stands ----------------- */

bool number_watches(int fd);
bool watch_is_armed(int fd); /* and it has or had watches on a shelf */
void watches_look(struct shelf_task *t); /* after exec */
void watches_before_exec(void);
/* The number is not the instance's any more; in its place before the kernel's is closed. */
void watch_gone(int fd);
void watches_gone(unsigned first, unsigned last);
/* The kernel has made number `to` the same as `from` of task `t`, which may be another process's. */
void watch_follows(struct shelf_task *t, int from, int to);
long watch_read(int fd, void *buf, size_t size);
long watch_readv(int fd, const struct iovec *user, unsigned count);
long watch_readable(int fd, void *user); /* FIONREAD */

/* ---- paths (route.c) -------------------------------------------------------------------------- */

enum route_kind { ROUTE_HOST, ROUTE_SHELF };
struct route {
	enum route_kind kind;
	int dirfd;
	const char *path; /* for the shelf: below its root; for the kernel: as given, or in `made` */
	bool moved; /* the path or dirfd is not the program's own */
	bool looped; /* too many symbolic links, on both sides together */
	int magic; /* /proc/self/fd/N of a number of ours: N, and path is ""; else -1 */
	enum route_link { LINK_NONE, LINK_EXE, LINK_CWD } link; /* the path is /proc/self/exe or /proc/self/cwd itself */
	struct route_room *room;
	char *made; /* in `room`, for paths that we make; not `border.left`, which a walk of this path may write to */
	struct walk_border border;
};

/* Memory for a call's paths, two at most: room.c. */
struct route_room {
	char left[2][PATH_LIMIT], made[2][PATH_LIMIT];
	char at[PATH_LIMIT], rest[PATH_LIMIT], link[PATH_LIMIT]; /* of one that is resolved: route.c */
};

/* How the last component is treated. */
enum route_last { LAST_FOLLOWED, LAST_NOT_FOLLOWED };

/* 0 or -errno.  WHICH: of the call's paths, 0 or 1. */
int route_begin(struct route *rt, struct route_room *room, int which, int dirfd, const char *path, enum route_last last);
/* The walk left the shelf: `border.left` is routed. */
int route_again(struct route *rt, enum route_last last);
/* The kernel said `err` for a path of its own: may it lead into the shelf by symbolic links?  True: routed anew. */
bool route_missed(struct route *rt, long err, enum route_last last);
/* The kernel found a directory: is it the shelf's root?  True: routed anew. */
bool route_is_prefix(struct route *rt, uint64_t dev, uint64_t ino);
/* The text of a shelf's path as the program knows it: prefix and path.  Length, -ENAMETOOLONG. */
long route_spell(char *buf, size_t size, const char *inside);
/* The path of number `fd` of ours, as /proc/self/fd shows it.  Length without NUL, or -errno. */
long number_path(int fd, char *buf, size_t size);

/* The kernel's call number `nr` with the arguments A. */
static inline long host_call(long nr, const uint64_t a[6])
{
	return sys_call6(nr, (long)a[0], (long)a[1], (long)a[2], (long)a[3], (long)a[4], (long)a[5]);
}

static inline void regs_args(const struct run_regs *r, uint64_t a[6])
{
	a[0] = r->di, a[1] = r->si, a[2] = r->dx, a[3] = r->r10, a[4] = r->r8, a[5] = r->r9;
}

/* ---- handlers by file ---------------------------------------------------------------------------- */

/* What runs at each start lies together: a page fault for each 64 KiB of text that is touched is much of its time. */
#define AT_START __attribute__((section(".text.startup")))

extern serve_fn *serve_table[RUN_NUMBERS];
extern uint8_t path_index[RUN_NUMBERS]; /* of paths.c, by number; beside the table */
/* What the layers call back for: before the first attach. */
void nodes_attach(void);
void signal_attach(void);
/* No handler runs in this thread from the one to the other; what to give it. */
uint64_t signals_hold(void);
void signals_let_in(uint64_t mask);
void serve_init(void); /* fills it, and says which numbers are wanted */
void serve_refuse_init(void); /* first: the others put their own over it */
void serve_io_init(void);
void serve_paths_init(void);
void serve_numbers_init(void);
void serve_process_init(void);
void serve_wait_init(void);
void serve_signal_init(void);
void serve_map_init(void);
void serve_aio_init(void);
void serve_watch_init(void);

/* ---- /proc (proc.c) --------------------------------------------------------------------------------- */

/* Text of the link /proc/self/exe or /proc/self/cwd.  Length, or -errno. */
long proc_link_text(enum route_link link, char *buf, size_t size);
/* What the kernel listed, N bytes of directory `fd`, without parked numbers: the length that is left. */
long proc_listed(int fd, void *list, long n);

/* ---- processes (fork.c, exec.c) --------------------------------------------------------------------- */

#define RUN_AFTER_SPAWN (RUN_NUMBERS - 1) /* no number of the kernel's: both returns of a fork come by it */
void serve_exec_init(void);
void run_thread_ends(void); /* the thread's slot is given back */
/* Nothing open, mapped or stood in that a child or a new image would have from us. */
bool run_has_nothing(void);

/* ---- memory (room.c) ---------------------------------------------------------------------------------- */

/* At least SIZE bytes that are not the stack's; NULL: there are none. */
void *room_take(size_t size);
void room_give(void *bytes);
/* P was a child in our memory, and is gone. */
void rooms_left_by(struct run_proc *p);
/* The same for paths, sooner had. */
struct route_room *route_room_take(void);
void route_room_give(struct route_room *room);
void route_room_leave(void); /* the thread ends */
void route_rooms_after_fork(void); /* in the child, which has one thread */

/* ---- maps (map.c) ------------------------------------------------------------------------------------ */

/* A fault at `addr` that a map of ours answers: true, and the access is made again. */
bool map_fault(uintptr_t addr, long code, int sig, const siginfo_t *info);
/* Behind a call with result `n`, in a process that has maps of ours: map_fault.c. */
long map_after(struct run_regs *r, long n);
/* Around a fork, so that the child's copy of what is mapped is whole. */
void map_fork_begin(bool shares_memory);
void map_fork_end(void);
void map_after_fork(void); /* in the child */

/* ---- memory that a program gave us (user.S) ----------------------------------------------------------- */

/* Length without NUL up to `max`, or -EFAULT. */
long user_strnlen(const char *s, size_t max);
/* 0, or -EFAULT: N bytes, on two pages at most, cannot be written.  They stay as they are. */
long user_writable(void *p, size_t n);
/* P, or NULL where some of its N bytes cannot be read: the library answers EFAULT to that, behind its other errors. */
void *user_given(uint64_t p, uint64_t n);
bool user_fixup(uintptr_t *ip);

#endif
