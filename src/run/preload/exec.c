/* SPDX-License-Identifier: MIT */
/*
 * exec.c - a new image.
 *
 * The new image finds its task by its pid, and applies CLOEXEC itself when it starts, so an exec that fails has changed
 * nothing.  What it needs to know is in its environment, which is completed here whatever the program made of it:
 *	LD_PRELOAD, or LD_AUDIT and GLIBC_TUNABLES	this library, in front of what the program put there: run/library.h
 *	SHELF_RUN	state, name and prefix: start.c
 *	SHELF_RUN_DIR, SHELF_RUN_TABLES	as they were when the process started
 *	SHELF_RUN_EXE	where the program lies, if that is the shelf
 * The new vectors lie on the stack, as a vfork's child has no other memory that goes away with it.
 *
 * A program that lies in the shelf is copied to a memfd, as the kernel cannot map the shelf's pages as a file.
 * What begins with "#!" becomes its interpreter's arguments here, as the kernel would open it by a name it does not find.
 * A program that the library would not be loaded into is refused by name: statically linked ones, and those that run
 * with other rights than their caller's.
 */
#include <linux/memfd.h>
#include <string.h>

#include "run/preload/exec.h"
#include "run/alone/libc.h"
#include "run/preload/paths.h"
#include "run/library.h"
#include "run/program.h"

/* ---- what is to be run ---------------------------------------------------------------------- */

/* A file of the shelf, or one of the kernel's, by a descriptor that no program has. */
static long ours_read(const struct program_file *f, void *buf, size_t n, off_t at)
{
	return SERVED(shelf_pread(task_here(), f->fd, buf, n, at));
}

static long ours_stat(const struct program_file *f, struct stat *st)
{
	return SERVED(shelf_fstat(task_here(), f->fd, st));
}

static long kernels_read(const struct program_file *f, void *buf, size_t n, off_t at)
{
	return sys_call6(SYS_pread64, f->fd, (long)buf, (long)n, at, 0, 0);
}

static long kernels_stat(const struct program_file *f, struct stat *st)
{
	return sys_call3(SYS_fstat, f->fd, (long)st, 0);
}

static struct program_file image_of(bool ours, long fd)
{
	return ours ? (struct program_file){ours_read, ours_stat, (int)fd} : (struct program_file){kernels_read, kernels_stat, (int)fd};
}

static bool image_is_ours(const struct program_file *f)
{
	return f->read == ours_read;
}

static void image_close(const struct program_file *f)
{
	if (image_is_ours(f))
		SERVED(shelf_close(task_here(), f->fd));
	else
		sys_call3(SYS_close, f->fd, 0, 0);
}

/* Only files are run; the kernel says so before it looks into them. */
static long image_is_file(const struct program_file *f)
{
	struct stat st;
	long err = f->stat(f, &st);

	return err ? err : S_ISREG(st.st_mode) ? 0 : -EACCES;
}

/* ---- the environment ---------------------------------------------------------------------------- */

static size_t vector_length(char *const *v)
{
	size_t n = 0;

	while (v && v[n])
		n++;
	return n;
}

static bool is_variable(const char *entry, const char *name)
{
	size_t n = strlen(name);

	return !strncmp(entry, name, n) && entry[n] == '=';
}

static bool is_ours(const char *entry)
{
	return library_env_is(entry) || is_variable(entry, "SHELF_RUN") || is_variable(entry, "SHELF_RUN_EXE") ||
	       is_variable(entry, "SHELF_RUN_DIR") || is_variable(entry, "SHELF_RUN_TABLES");
}

#define OUR_VARIABLES (4 + LIBRARY_ENV)

/* OUT has room for the program's variables, ours, and the end.  NULL among OURS: not set. */
static void environment_fill(char **out, char *const *envp, char *const ours[OUR_VARIABLES])
{
	for (; envp && *envp; envp++)
		if (!is_ours(*envp))
			*out++ = *envp;
	for (unsigned i = 0; i < OUR_VARIABLES; i++)
		if (ours[i])
			*out++ = ours[i];
	*out = NULL;
}

/* NAME=VALUE in BUF, or NULL. */
static char *variable_text(char *buf, size_t size, const char *name, const char *value)
{
	if (!value)
		return NULL;
	snprintf(buf, size, "%s=%s", name, value);
	return buf;
}

static void state_text(char *buf, size_t size)
{
	bool in = proc_here()->cwd_in;

	unsigned state = !attached() ? 0u : in ? 2u : 1u;

	snprintf(buf, size, "SHELF_RUN=%u%u%s%s%s:%s%s", state | (runtime.strict ? 4u : 0u), runtime.keeper, runtime.promised ? "+" : "",
		 runtime.key[0] ? "," : "", runtime.key, runtime.name, runtime.prefix);
}

/* ---- exec ------------------------------------------------------------------------------------------- */

#define MEMFD_NAME 249u /* bytes, as the kernel allows */
#define EXE_VARIABLE "SHELF_RUN_EXE="
#define MAX_OURS (32u << 10) /* of what names libraries: it is on the stack */

/* Who has nothing of the shelf lets it go, and the new image need not attach.  If exec fails we attach again when we have to. */
static void let_go(void)
{
	struct run_proc *p = proc_here();

	numbers_release();
	call_enter();
	shelf_task_exit(p->task);
	p->task = NULL;
	if (!p->borrowed)
		run_thread_ends();
	call_leave();
}

/* Only comes back if it failed.  PATH from DIRFD is what c->path came to; EXE: the variable that names a program in the shelf, or NULL. */
static long kernel_exec(const struct exec_call *c, int dirfd, const char *path, int flags, char *exe)
{
	char *env[vector_length(c->envp) + OUR_VARIABLES + 1], *ours[OUR_VARIABLES];
	size_t dir_len = runtime.shm_dir ? strlen(runtime.shm_dir) + 32 : 1, tables_len = runtime.tables ? strlen(runtime.tables) + 32 : 1;
	char state[PATH_LIMIT + NAME_LIMIT + RUN_KEY + 32], dir[dir_len], tables[tables_len];
	struct library_env library;
	long err;

	library_env_take(&library, (char **)(uintptr_t)c->envp, runtime.library, c->early);
	if (library_env_size(&library) > MAX_OURS)
		return -E2BIG;
	if (attached() && run_has_nothing())
		let_go();

	char text[library_env_size(&library)];

	library_env_write(&library, text, ours);
	state_text(state, sizeof(state));
	ours[LIBRARY_ENV] = state;
	ours[LIBRARY_ENV + 1] = exe;
	ours[LIBRARY_ENV + 2] = variable_text(dir, dir_len, "SHELF_RUN_DIR", runtime.shm_dir);
	ours[LIBRARY_ENV + 3] = variable_text(tables, tables_len, "SHELF_RUN_TABLES", runtime.tables);
	environment_fill(env, c->envp, ours);
	if (attached())
		numbers_before_exec();
	err = sys_call6(SYS_execveat, dirfd, (long)path, (long)c->argv, (long)env, flags, 0);
	if (attached())
		numbers_exec_failed();
	return err;
}

static long refuse(const char *path, const char *why)
{
	run_say("shelf run: %s %s\n", path, why);
	return -EPERM;
}

/* A program in the shelf, as a descriptor of the kernel's. */
static long copy_to_memfd(const struct program_file *im, const char *name)
{
	char buf[4096];
	off_t at = 0;
	long n, fd = sys_call3(SYS_memfd_create, (long)name, MFD_CLOEXEC, 0);

	if (fd < 0)
		return fd;
	while ((n = im->read(im, buf, sizeof(buf), at)) > 0 && sys_call3(SYS_write, fd, (long)buf, n) == n)
		at += n;
	if (!n)
		return fd;
	sys_call3(SYS_close, fd, 0, 0);
	return n < 0 ? n : -ENOSPC;
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static long exec_ours(const struct exec_call *c, const struct program_file *im)
{
	char exe[sizeof(EXE_VARIABLE) + PATH_LIMIT] = EXE_VARIABLE;
	long err = number_path(im->fd, exe + strlen(EXE_VARIABLE), PATH_LIMIT), fd;
	const char *name = exe + strlen(EXE_VARIABLE);

	/* The loader finds $ORIGIN by the memfd's name: route.c. */
	fd = copy_to_memfd(im, err >= 0 && strlen(name) <= MEMFD_NAME ? name : last_part(c->path));

	if (fd < 0)
		return fd;
	image_close(im);
	err = kernel_exec(c, (int)fd, "", AT_EMPTY_PATH, err < 0 ? NULL : exe);
	sys_call3(SYS_close, fd, 0, 0);
	return err;
}

static long exec_route(struct exec_call *c, struct route *rt, unsigned depth);

/* "#!interpreter argument": both are cut out of the head. */
static bool script_split(struct program_head *head, char **interpreter, char **argument)
{
	char *p = head->bytes + 2, *end = strchr(head->bytes, '\n');

	if (!end && head->len == sizeof(head->bytes) - 1 && !strchr(p, ' '))
		return false; /* the name is cut off */
	if (end)
		*end = '\0';
	for (end = p + strlen(p); end > p && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'); end--)
		if (end[-1] == '\r')
			break;
	*end = '\0';
	while (*p == ' ' || *p == '\t')
		p++;
	*interpreter = p;
	while (*p && *p != ' ' && *p != '\t')
		p++;
	if (*p)
		*p++ = '\0';
	while (*p == ' ' || *p == '\t')
		p++;
	*argument = *p ? p : NULL;
	return **interpreter != '\0';
}

static long exec_script(struct exec_call *c, const char *path, struct program_head *head, unsigned depth)
{
	size_t n = vector_length(c->argv);
	char *argv[n + 4], **out = argv, *interpreter, *argument;
	struct exec_call inner = {.argv = argv, .envp = c->envp};

	if (depth >= EXEC_SCRIPTS || !script_split(head, &interpreter, &argument))
		return depth >= EXEC_SCRIPTS ? -ELOOP : -ENOEXEC;
	*out++ = interpreter;
	if (argument)
		*out++ = argument;
	*out++ = (char *)(uintptr_t)path;
	for (size_t i = 1; i < n; i++)
		*out++ = c->argv[i];
	*out = NULL;
	inner.path = interpreter;
	inner.dirfd = AT_FDCWD;
	return exec_path(&inner, depth + 1);
}

/* The name by which an interpreter finds the script again. */
static long script_name(const struct exec_call *c, const struct route *rt, char *buf, size_t size)
{
	if (rt->magic >= 0)
		return number_path(rt->magic, buf, size);
	if (*c->path == '/' || c->dirfd == AT_FDCWD)
		return snprintf(buf, size, "%s", c->path);
	return snprintf(buf, size, "/dev/fd/%d%s%s", c->dirfd, *c->path ? "/" : "", c->path);
}

/* HEAD: of a program. */
static bool wants_libraries(const struct exec_call *c, const struct program_file *im, const struct program_head *head)
{
	struct library_place place = {.prefix = runtime.prefix, .here = proc_here()->cwd_in, .origin = image_is_ours(im)};

	return program_is_loader(c->path) || library_list_reaches(&place, libc_env((char **)(uintptr_t)c->envp, "LD_LIBRARY_PATH")) ||
	       library_program_reaches(&place, im, head);
}

static long exec_kind(struct exec_call *c, struct route *rt, const struct program_file *im, unsigned depth)
{
	struct program_head head;
	enum program_kind kind;
	long err = image_is_file(im);

	if (err) {
		image_close(im);
		return err;
	}
	kind = program_look(im, c->path, &head);
	if (kind == PROGRAM_SCRIPT) {
		char name[PATH_LIMIT + 64];

		err = script_name(c, rt, name, sizeof(name));
		image_close(im);
		return err < 0 ? err : exec_script(c, name, &head, depth);
	}
	if (program_refusal(kind)) {
		image_close(im);
		return refuse(c->path, program_refusal(kind));
	}
	c->early = wants_libraries(c, im, &head);
	if (image_is_ours(im))
		return exec_ours(c, im);
	image_close(im);
	return kernel_exec(c, rt->dirfd, rt->path, c->flags, NULL);
}

/* Opens it with the rights that exec asks for. */
static long exec_open_ours(struct route *rt, struct program_file *im)
{
	struct shelf_task *t = task_here();
	long fd;

	walk_border = &rt->border;
	fd = rt->magic >= 0 ? 0 : shelf_faccessat2(t, rt->dirfd, rt->path, X_OK, AT_EACCESS);
	if (!fd)
		fd = rt->magic >= 0 ? api_open_hidden(t, rt->magic, "", HIDDEN_NUMBERS) :
				      api_open_hidden(t, rt->dirfd, rt->path, HIDDEN_NUMBERS);
	walk_border = NULL;
	*im = image_of(true, fd);
	return min_of(fd, 0L);
}

static long exec_open(struct exec_call *c, struct route *rt, struct program_file *im)
{
	long fd;

	if (rt->kind == ROUTE_SHELF) {
		if (!attached())
			run_attach_shelf();
		return SERVED(exec_open_ours(rt, im));
	}
	fd = sys_call6(SYS_openat, rt->dirfd, (long)rt->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0, 0, 0); /* it may be a FIFO */
	if (fd < 0 && c->flags & AT_EMPTY_PATH && !*rt->path)
		fd = sys_call6(SYS_fcntl, rt->dirfd, F_DUPFD_CLOEXEC, 3, 0, 0, 0);
	*im = image_of(false, fd);
	return min_of(fd, 0L);
}

static long exec_route(struct exec_call *c, struct route *rt, unsigned depth)
{
	enum route_last last = c->flags & AT_SYMLINK_NOFOLLOW ? LAST_NOT_FOLLOWED : LAST_FOLLOWED;
	struct program_file im;
	long err = 0;

	for (unsigned hops = 0; !err && hops < SYMLINK_LIMIT; hops++) {
		err = exec_open(c, rt, &im);
		if (!err)
			return exec_kind(c, rt, &im, depth);
		if (err == WALK_LEFT) {
			err = route_again(rt, last);
			continue;
		}
		if (rt->kind == ROUTE_HOST && route_missed(rt, err, last)) {
			err = 0;
			continue;
		}
		/* It cannot be read, or is no file: the kernel says what that means for exec. */
		if (rt->kind == ROUTE_HOST)
			return kernel_exec(c, rt->dirfd, rt->path, c->flags, NULL);
	}
	return err ? err : -ELOOP;
}

long exec_path(struct exec_call *c, unsigned depth)
{
	char text[PATH_LIMIT];
	struct route rt;
	long err = route_begin(&rt, text, c->dirfd, c->path, c->flags & AT_SYMLINK_NOFOLLOW ? LAST_NOT_FOLLOWED : LAST_FOLLOWED);

	if (err)
		return err;
	if (c->flags & AT_EMPTY_PATH && rt.kind == ROUTE_SHELF && !*rt.path)
		rt.magic = rt.dirfd;
	return exec_route(c, &rt, depth);
}

static long serve_execve(struct run_regs *r)
{
	struct exec_call c = {
		.dirfd = AT_FDCWD,
		.path = (const char *)r->di,
		.argv = (char *const *)r->si,
		.envp = (char *const *)r->dx,
	};

	return c.path ? exec_path(&c, 0) : -EFAULT;
}

static long serve_execveat(struct run_regs *r)
{
	struct exec_call c = {
		.dirfd = (int)r->di,
		.path = (const char *)r->si,
		.argv = (char *const *)r->dx,
		.envp = (char *const *)r->r10,
		.flags = (int)r->r8,
	};

	return c.path ? exec_path(&c, 0) : -EFAULT;
}

AT_START void serve_exec_init(void)
{
	serve_table[SYS_execve] = serve_execve;
	serve_table[SYS_execveat] = serve_execveat;
}
