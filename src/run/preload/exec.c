/* SPDX-License-Identifier: MIT */
/*
 * exec.c - a new image.
 *
 * The new image finds its task by its pid, and applies CLOEXEC itself when it starts, so an exec that fails has changed
 * nothing.  What it needs to know is in its environment, which is completed here whatever the program made of it:
 *	LD_PRELOAD, or LD_AUDIT and GLIBC_TUNABLES	this library, in front of what the program put there: run/library.h
 *	SHELF_RUN	state, name and prefix: start.c
 *	SHELF_RUN_DIR, SHELF_RUN_TABLES	as they were when the process started
 *	SHELF_RUN_EXE	where the program lies, if that is the shelf; SHELF_RUN_LOADED what the loader, run by its name, loads
 * The new vectors and all long texts lie in memory of their own (room.c): posix_spawn's child has little stack.
 *
 * A program that lies in the shelf is copied to a memfd, as the kernel cannot map the shelf's pages as a file; so is one that the loader,
 * run by its name, is to load.
 * What begins with "#!" becomes its interpreter's arguments here, as the kernel would open it by a name it does not find.
 * A statically linked program, which no library would be loaded into, is loaded by another (static/static.h). What could not be is
 * refused by name: one that does not tell where its functions are, and those that run with other rights than their caller's, or whose
 * caller's ids are not its real ones.
 */
#include <linux/memfd.h>
#include <string.h>

#include "base/fsize.h"
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

static long ours_attribute(const struct program_file *f, const char *name, void *buf, size_t n)
{
	return SERVED(shelf_fgetxattr(task_here(), f->fd, name, buf, n));
}

static bool ours_gives_rights(const struct program_file *f)
{
	(void)f;
	return true;
}

static struct program_file image_of(bool ours, long fd)
{
	return ours ? (struct program_file){ours_read, ours_stat, ours_attribute, ours_gives_rights, (int)fd} : program_kernels((int)fd);
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

/* Of a program's vector, or -EFAULT. */
static long vector_length(char *const *v)
{
	char *one;

	for (long n = 0; v; n++) {
		if (copy_from_user(&one, &v[n], sizeof(one)))
			return -EFAULT;
		if (!one)
			return n;
	}
	return 0;
}

#define LOOKED_AT 32 /* bytes of a string: more than the longest name of a variable of ours, or of an option of the loader's */

/* Whether the strings can be looked at, as will be done. */
static long strings_check(char *const *v)
{
	long n = vector_length(v);

	for (long i = 0; i < n && v[i]; i++)
		if (user_strnlen(v[i], LOOKED_AT) < 0)
			return -EFAULT;
	return min_of(n, 0L);
}

static bool is_variable(const char *entry, const char *name)
{
	size_t n = strlen(name);

	return !strncmp(entry, name, n) && entry[n] == '=';
}

static bool is_ours(const char *entry)
{
	static const char *const ours[] = {"SHELF_RUN", "SHELF_RUN_EXE", LOADED_VARIABLE, STATIC_VARIABLE, "SHELF_RUN_DIR", "SHELF_RUN_TABLES"};
	bool is = library_env_is(entry);

	for (unsigned i = 0; i < ARRAY_SIZE(ours) && !is; i++)
		is = is_variable(entry, ours[i]);
	return is;
}

#define OUR_VARIABLES (4 + LIBRARY_ENV)

/* OUT has room for N variables of the program's, ours, and the end.  NULL among OURS: not set. */
static void environment_fill(char **out, char *const *envp, long n, char *const ours[OUR_VARIABLES])
{
	for (long i = 0; i < n && envp[i]; i++)
		if (!is_ours(envp[i]))
			*out++ = envp[i];
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
#define STATIC_BEFORE 32 /* room for STATIC_VARIABLE, '=', a number, ':' */

/* What one program, or one script, takes: the first page is most of what is touched. */
struct exec_room {
	struct program_head head;
	_Alignas(16) char env[3072]; /* the next image's environment; a larger one has a room of its own */
	struct route_room route;
	char name[PATH_LIMIT + 64]; /* of a script */
	char exe[sizeof(EXE_VARIABLE) + STATIC_BEFORE + PATH_LIMIT];
	char piece[16 << 10]; /* of a program that is copied */
};

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

static size_t text_size(const char *value)
{
	return value ? strlen(value) + 32 : 0;
}

/* The environment of the next image. */
struct exec_env {
	struct library_env library;
	long count; /* of the program's own */
	size_t library_size, dir_size, tables_size, state_size;
};

static void env_take(struct exec_env *e, const struct exec_call *c)
{
	library_env_take(&e->library, (char **)(uintptr_t)c->envp, runtime.library, c->early);
	e->library_size = library_env_size(&e->library);
	e->dir_size = text_size(runtime.shm_dir);
	e->tables_size = text_size(runtime.tables);
	e->state_size = strlen(runtime.name) + strlen(runtime.prefix) + RUN_KEY + 64;
}

/* In ROOM, which has env_size() bytes. */
static char **env_write(const struct exec_env *e, const struct exec_call *c, char *exe, char *room)
{
	char **env = (char **)(void *)room, *ours[OUR_VARIABLES], *text = (char *)(env + e->count + OUR_VARIABLES + 1);

	library_env_write(&e->library, text, ours);
	text += e->library_size;
	state_text(text, e->state_size);
	ours[LIBRARY_ENV] = text;
	text += e->state_size;
	ours[LIBRARY_ENV + 1] = exe;
	ours[LIBRARY_ENV + 2] = variable_text(text, e->dir_size, "SHELF_RUN_DIR", runtime.shm_dir);
	ours[LIBRARY_ENV + 3] = variable_text(text + e->dir_size, e->tables_size, "SHELF_RUN_TABLES", runtime.tables);
	environment_fill(env, c->envp, e->count, ours);
	return env;
}

static size_t env_size(const struct exec_env *e)
{
	return ((size_t)e->count + OUR_VARIABLES + 1) * sizeof(char *) + e->library_size + e->state_size + e->dir_size + e->tables_size;
}

static char *env_room(const struct exec_call *c, size_t size)
{
	return size <= sizeof(c->room->env) ? c->room->env : room_take(size);
}

/* Only comes back if it failed.  PATH from DIRFD is what c->path came to; EXE: the variable that says more of a program in the shelf, or NULL. */
static long kernel_exec(const struct exec_call *c, int dirfd, const char *path, int flags, char *exe)
{
	struct exec_env e = {.count = vector_length(c->envp)};
	char **env, *room;
	long err;

	if (e.count < 0)
		return e.count;
	env_take(&e, c);
	room = env_room(c, env_size(&e));
	if (!room)
		return -ENOMEM;
	if (attached() && run_has_nothing())
		let_go();
	env = env_write(&e, c, exe, room);
	if (attached())
		numbers_before_exec();
	err = sys_call6(SYS_execveat, dirfd, (long)path, (long)c->argv, (long)env, flags, 0);
	if (attached())
		numbers_exec_failed();
	if (room != c->room->env)
		room_give(room);
	return err;
}

static long refuse(const char *path, const char *why)
{
	run_say("shelf run: %s %s\n", path, why);
	return -EPERM;
}

/* A program in the shelf, as a descriptor of the kernel's. */
static long copy_to_memfd(struct exec_room *room, const struct program_file *im, const char *name, unsigned flags)
{
	struct fsize_stretch stretch;
	off_t at = 0;
	long n, fd = sys_call3(SYS_memfd_create, (long)name, flags, 0);

	if (fd < 0)
		return fd;
	fsize_stretch(&stretch);
	while ((n = im->read(im, room->piece, sizeof(room->piece), at)) > 0 && sys_call3(SYS_write, fd, (long)room->piece, n) == n)
		at += n;
	fsize_shrink(&stretch);
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
	struct exec_room *room = c->room;
	char *name = room->exe + strlen(EXE_VARIABLE);
	long err = number_path(im->fd, name, PATH_LIMIT), fd;

	memcpy(room->exe, EXE_VARIABLE, strlen(EXE_VARIABLE));
	/* The loader finds $ORIGIN by the memfd's name: route.c. */
	fd = copy_to_memfd(room, im, err >= 0 && strlen(name) <= MEMFD_NAME ? name : last_part(c->path), MFD_CLOEXEC);
	if (fd < 0)
		return fd;
	image_close(im);
	err = kernel_exec(c, (int)fd, "", AT_EMPTY_PATH, err < 0 ? NULL : room->exe);
	sys_call3(SYS_close, fd, 0, 0);
	return err;
}

/* ARGV: a script's, of N, for OUT with room for three more. */
static void script_arguments(char **out, char *const *argv, long n, char *interpreter, char *argument, const char *path)
{
	*out++ = interpreter;
	if (argument)
		*out++ = argument;
	*out++ = (char *)(uintptr_t)path;
	for (long i = 1; i < n && argv[i]; i++)
		*out++ = argv[i];
	*out = NULL;
}

static long exec_script(const struct exec_call *c, unsigned depth)
{
	char **argv, *interpreter, *argument;
	struct exec_call inner = {.envp = c->envp, .dirfd = AT_FDCWD};
	long n = vector_length(c->argv), err;

	if (depth >= EXEC_SCRIPTS || !program_script(&c->room->head, &interpreter, &argument))
		return depth >= EXEC_SCRIPTS ? -ELOOP : -ENOEXEC;
	argv = n < 0 ? NULL : room_take(((size_t)n + 4) * sizeof(*argv));
	if (!argv)
		return n < 0 ? n : -ENOMEM;
	script_arguments(argv, c->argv, n, interpreter, argument, c->room->name);
	inner.argv = argv;
	inner.path = interpreter;
	err = exec_path(&inner, depth + 1);
	room_give(argv);
	return err;
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

/* ---- the loader by its name, as ldd runs it ------------------------------------------------------ */

/* Which of the loader's arguments is the program; 0: none.  *named: the program gets another name by one before. */
static long loader_program(char *const *argv, long n, bool *named)
{
	static const char *const with_value[] = {"--library-path", "--inhibit-rpath", "--audit", "--preload", "--argv0", "--glibc-hwcaps-prepend",
						 "--glibc-hwcaps-mask"};
	long i = 1;

	for (; i < n && argv[i] && !strncmp(argv[i], "--", 2); i++)
		for (size_t k = 0; k < ARRAY_SIZE(with_value); k++)
			if (!strcmp(argv[i], with_value[k])) {
				*named = *named || !strcmp(argv[i], "--argv0");
				i++;
				break;
			}
	return i < n && argv[i] ? i : 0;
}

/* What the loader opens in place of its program. */
struct loaded {
	long fd; /* a memfd, or -1 */
	const char *name; /* NULL: what it was told */
};

/* A hidden number, or -errno. */
static long loader_open(struct route *rt)
{
	long n;

	if (!attached())
		run_attach_shelf();
	call_enter();
	walk_border = &rt->border;
	n = rt->magic >= 0 ? api_open_hidden(task_here(), rt->magic, "", HIDDEN_NUMBERS) :
			     api_open_hidden(task_here(), rt->dirfd, rt->path, HIDDEN_NUMBERS);
	walk_border = NULL;
	call_leave();
	return n;
}

static void loader_copy(struct loaded *l, struct exec_room *room, long number, const char *path)
{
	struct program_file im = image_of(true, number);

	if (!image_is_file(&im) && number_path(im.fd, room->exe, PATH_LIMIT) >= 0)
		l->fd = copy_to_memfd(room, &im, strlen(room->exe) <= MEMFD_NAME ? room->exe : last_part(path), 0);
	image_close(&im);
	if (l->fd < 0)
		return;
	snprintf(room->name, sizeof(room->name), "%s%ld", LOADED_AT, l->fd);
	l->name = room->name;
}

/* Program PATH; if it is not there, the kernel says so. */
static void loader_find(struct loaded *l, struct exec_room *room, const char *path)
{
	struct route rt;
	long n = route_begin(&rt, &room->route, 0, AT_FDCWD, path, LAST_FOLLOWED);

	for (unsigned hops = 0; !n && hops < SYMLINK_LIMIT; hops++) {
		if (rt.kind == ROUTE_HOST) {
			l->name = rt.moved ? rt.path : NULL;
			return;
		}
		n = loader_open(&rt);
		if (n >= 0) {
			loader_copy(l, room, n, path);
			return;
		}
		if (n == WALK_LEFT)
			n = route_again(&rt, LAST_FOLLOWED);
	}
}

/* The loader opens its program before we are there: one of the shelf's goes by a name that the kernel knows (settings.c has the rest). */
static long loader_exec(const struct exec_call *c, const struct route *rt)
{
	bool named = false;
	long n = vector_length(c->argv), at = strings_check(c->argv) ? 0 : loader_program(c->argv, n, &named), err;
	long length = at ? user_strnlen(c->argv[at], PATH_LIMIT) : -EFAULT;
	size_t variable = (size_t)max_of(length, 0L) + sizeof(LOADED_VARIABLE) + 32;
	struct exec_room *room = length > 0 ? room_take(sizeof(*room) + ((size_t)n + 1) * sizeof(char *) + variable) : NULL;
	char **argv = (char **)(void *)(room + 1), *text = NULL;
	struct exec_call call = *c;
	struct loaded l = {.fd = -1};

	if (room && strchr(c->argv[at], '/')) /* or it is looked for among libraries */
		loader_find(&l, room, c->argv[at]);
	if (l.name) {
		memcpy(argv, c->argv, (size_t)n * sizeof(char *));
		argv[n] = NULL;
		argv[at] = (char *)(uintptr_t)l.name;
		call.argv = argv;
	}
	if (l.fd >= 0 || (l.name && !named))
		text = (char *)(argv + n + 1);
	if (l.fd >= 0)
		snprintf(text, variable, "%s=%ld:%s", LOADED_VARIABLE, l.fd, c->argv[at]);
	else if (text)
		snprintf(text, variable, "%s=:%s", LOADED_VARIABLE, c->argv[at]);
	err = kernel_exec(&call, rt->dirfd, rt->path, c->flags, text);
	if (l.fd >= 0)
		sys_call3(SYS_close, l.fd, 0, 0);
	if (room)
		room_give(room);
	return err;
}

/* ---- statically linked programs ----------------------------------------------------------------- */

/* Started in its place is what loads it, by a descriptor: of a copy, if it lies in the shelf. */
static long exec_static(const struct exec_call *c, const struct program_file *im)
{
	struct exec_room *room = c->room;
	char *path = room->exe + STATIC_BEFORE, *loader = room->name, before[STATIC_BEFORE];
	long missing = library_static_program(loader, sizeof(room->name), runtime.library), err = missing, fd;

	if (!err)
		err = image_is_ours(im) ? number_path(im->fd, path, PATH_LIMIT) : program_path(im->fd, path, PATH_LIMIT);
	fd = err < 0 ? err : image_is_ours(im) ? copy_to_memfd(room, im, last_part(c->path), 0) : sys_call3(SYS_dup, im->fd, 0, 0);
	image_close(im);
	if (fd < 0)
		return missing == -ENOENT ? refuse(c->path, STATIC_MISSING) : fd;
	err = snprintf(before, sizeof(before), "%s=%d:", STATIC_VARIABLE, (int)fd);
	memcpy(path - err, before, (size_t)err);
	err = kernel_exec(c, AT_FDCWD, loader, 0, path - err);
	sys_call3(SYS_close, fd, 0, 0);
	return err;
}

static long exec_kind(struct exec_call *c, struct route *rt, const struct program_file *im, unsigned depth)
{
	enum program_kind kind = PROGRAM_OTHER;
	long err = image_is_file(im);

	if (!err)
		kind = program_look(im, c->path, &c->room->head);
	/* What is run in its place the kernel does not ask about it. */
	if (!image_is_ours(im) && (kind == PROGRAM_SCRIPT || kind == PROGRAM_STATIC))
		err = program_may_run(im);
	if (err) {
		image_close(im);
		return err;
	}
	if (kind == PROGRAM_SCRIPT) {
		err = script_name(c, rt, c->room->name, sizeof(c->room->name));
		image_close(im);
		return err < 0 ? err : exec_script(c, depth);
	}
	if (program_refusal(kind)) {
		image_close(im);
		return refuse(c->path, program_refusal(kind));
	}
	if (kind == PROGRAM_STATIC)
		return exec_static(c, im);
	c->early = wants_libraries(c, im, &c->room->head);
	if (image_is_ours(im))
		return exec_ours(c, im);
	image_close(im);
	return program_is_loader(c->path) ? loader_exec(c, rt) : kernel_exec(c, rt->dirfd, rt->path, c->flags, NULL);
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
	fd = program_open(rt->dirfd, rt->path);
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

static long exec_in(struct exec_call *c, unsigned depth)
{
	struct route rt;
	long err = route_begin(&rt, &c->room->route, 0, c->dirfd, c->path, c->flags & AT_SYMLINK_NOFOLLOW ? LAST_NOT_FOLLOWED : LAST_FOLLOWED);

	if (err)
		return err;
	if (c->flags & AT_EMPTY_PATH && rt.kind == ROUTE_SHELF && !*rt.path)
		rt.magic = rt.dirfd;
	return exec_route(c, &rt, depth);
}

long exec_path(struct exec_call *c, unsigned depth)
{
	long err;

	c->room = room_take(sizeof(*c->room));
	if (!c->room)
		return -ENOMEM;
	err = exec_in(c, depth);
	room_give(c->room);
	return err;
}

/* Comes back only with what went wrong. */
static long exec(struct exec_call *c)
{
	long err = c->path ? strings_check(c->envp) : -EFAULT;

	return err ? err : exec_path(c, 0);
}

static long serve_execve(struct run_regs *r)
{
	struct exec_call c = {
		.dirfd = AT_FDCWD,
		.path = (const char *)r->di,
		.argv = (char *const *)r->si,
		.envp = (char *const *)r->dx,
	};

	return exec(&c);
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

	return exec(&c);
}

AT_START void serve_exec_init(void)
{
	serve_table[SYS_execve] = serve_execve;
	serve_table[SYS_execveat] = serve_execveat;
}
