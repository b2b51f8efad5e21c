/* SPDX-License-Identifier: MIT */
/*
 * test_names_tmpfs.c - the same random calls on names put to a shelf and to the kernel's tmpfs: each
 * result, and from time to time the whole tree, must be the same.
 *
 * The kernel's side runs in a thread with a root directory of its own, so that absolute paths and ".." agree
 * too; as root and as two unprivileged users.  Needs root.
 */
#include "names_world.h"

#include <semaphore.h>
#include <sched.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#define TMPFS_F_TYPE 0x01021994

enum op_kind { OP_OPEN, OP_MKDIR, OP_RMDIR, OP_UNLINK, OP_RENAME, OP_LINK, OP_SYMLINK, OP_MKNOD, OP_STAT, OP_LSTAT, OP_CHMOD, OP_CHOWN, OP_CHDIR, OP_KINDS };
static const char *const op_names[] = {"open", "mkdir", "rmdir", "unlink", "rename", "link", "symlink", "mknod", "stat", "lstat", "chmod", "chown", "chdir"};

struct op {
	enum op_kind kind;
	unsigned who; /* 0: root; else the user */
	int flags;
	uint32_t mode;
	char a[6000], b[6000];
	struct stat st;
};

static struct {
	struct op *op;
	sem_t go, done;
	int result;
	char dir[64];
} kernel;

static const struct shelf_cred users[3] = {
	{.caps = SHELF_CAP_ALL},
	{.fsuid = 1001, .fsgid = 1001},
	{.fsuid = 1002, .fsgid = 1002, .ngroups = 1, .groups = {1001}},
};

/* ---- the kernel's side ------------------------------------------------------------------------ */

static void become(unsigned who)
{
	const struct shelf_cred *c = &users[who];

	CHECK(syscall(SYS_setresuid, -1, 0, -1) == 0);
	CHECK(syscall(SYS_setgroups, c->ngroups, c->groups) == 0);
	CHECK(syscall(SYS_setresgid, -1, c->fsgid, -1) == 0);
	CHECK(syscall(SYS_setresuid, -1, c->fsuid, -1) == 0);
}

static int close_or_errno(int fd)
{
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static int kernel_call(struct op *op)
{
	switch (op->kind) {
	case OP_OPEN:
		return close_or_errno(open(op->a, op->flags | O_NONBLOCK, op->mode));
	case OP_MKDIR:
		return mkdir(op->a, op->mode) ? -errno : 0;
	case OP_RMDIR:
		return rmdir(op->a) ? -errno : 0;
	case OP_UNLINK:
		return unlink(op->a) ? -errno : 0;
	case OP_RENAME:
		return syscall(SYS_renameat2, AT_FDCWD, op->a, AT_FDCWD, op->b, op->flags) ? -errno : 0;
	case OP_LINK:
		return linkat(AT_FDCWD, op->a, AT_FDCWD, op->b, op->flags ? AT_SYMLINK_FOLLOW : 0) ? -errno : 0;
	case OP_SYMLINK:
		return symlink(op->b, op->a) ? -errno : 0;
	case OP_MKNOD:
		return mknod(op->a, op->mode, (dev_t)op->flags) ? -errno : 0;
	case OP_STAT:
		return stat(op->a, &op->st) ? -errno : 0;
	case OP_LSTAT:
		return lstat(op->a, &op->st) ? -errno : 0;
	case OP_CHMOD:
		return chmod(op->a, op->mode) ? -errno : 0;
	case OP_CHOWN:
		return chown(op->a, op->mode, op->mode) ? -errno : 0;
	default:
		return chdir(op->a) ? -errno : 0;
	}
}

static void *kernel_thread(void *arg)
{
	(void)arg;
	CHECK(unshare(CLONE_FS) == 0);
	CHECK(chroot(kernel.dir) == 0 && chdir("/") == 0);
	umask(022);
	for (;;) {
		while (sem_wait(&kernel.go))
			;
		if (!kernel.op)
			return NULL;
		become(kernel.op->who);
		kernel.result = kernel_call(kernel.op);
		become(0);
		sem_post(&kernel.done);
	}
}

static int ask_kernel(struct op *op)
{
	kernel.op = op;
	sem_post(&kernel.go);
	while (sem_wait(&kernel.done))
		;
	return kernel.result;
}

/* ---- the shelf's side ---------------------------------------------------------------------------- */

static int with_inode(struct who *w, const char *path, int (*fn)(struct who *, struct inode *, struct op *), struct op *op)
{
	struct inode *inode;
	int err = n_open(w, path, O_PATH, 0, &inode);

	if (err)
		return err;
	err = fn(w, inode, op);
	n_put(w, inode);
	return err;
}

static int do_chmod(struct who *w, struct inode *inode, struct op *op)
{
	return attr_chmod(w, inode, op->mode);
}

static int do_chown(struct who *w, struct inode *inode, struct op *op)
{
	return attr_chown(w, inode, op->mode, op->mode);
}

static int shelf_chdir_(struct who *w, const char *path)
{
	struct walk k;
	int err;

	epoch_enter(w->self);
	err = walk_epoch(w, NULL, path, WALK_FOLLOW | WALK_DIRECTORY, &k);
	if (!err)
		err = inode_permission_epoch(w, k.inode, MAY_EXEC);
	epoch_exit(w->self);
	return err ? err : n_chdir(w, path);
}

/* With the truncation, which takes setgid away. */
static int shelf_open_(struct who *w, struct op *op)
{
	struct open_walk ow = {.keeps_name = false};
	int err = ramfs_open(w, NULL, op->a, op->flags, op->mode, 0, &ow);

	if (err)
		return err;
	if ((op->flags & O_TRUNC) && !(op->flags & O_PATH) && !ow.created && S_ISREG(inode_type(ow.inode)))
		err = ramfs_truncate(w, ow.inode, 0);
	ledger_del(w->self, ow.inode);
	n_put(w, ow.inode);
	return err;
}

static int shelf_call(struct who *w, struct op *op, struct stat *st)
{
	w->cred = &users[op->who];
	switch (op->kind) {
	case OP_OPEN:
		return shelf_open_(w, op);
	case OP_MKDIR:
		return ramfs_mkdir(w, NULL, op->a, op->mode);
	case OP_RMDIR:
		return n_rmdir(w, op->a);
	case OP_UNLINK:
		return n_unlink(w, op->a);
	case OP_RENAME:
		return n_rename2(w, op->a, op->b, (unsigned)op->flags);
	case OP_LINK:
		return ramfs_link(w, NULL, op->a, NULL, op->flags, NULL, op->b);
	case OP_SYMLINK:
		return n_symlink(w, op->b, op->a);
	case OP_MKNOD:
		return ramfs_mknod(w, NULL, op->a, op->mode, (uint64_t)op->flags);
	case OP_STAT:
		return n_stat(w, op->a, st);
	case OP_LSTAT:
		return n_lstat(w, op->a, st);
	case OP_CHMOD:
		return with_inode(w, op->a, do_chmod, op);
	case OP_CHOWN:
		return with_inode(w, op->a, do_chown, op);
	default:
		return shelf_chdir_(w, op->a);
	}
}

/* ---- random calls ---------------------------------------------------------------------------------- */

static uint64_t rng;

static unsigned pick(unsigned n)
{
	return (unsigned)(test_random(&rng) >> 20) % n;
}

static void random_path(char *out)
{
	static const char *const words[] = {"a", "b", "c", "d", "e", "f", "l", "m", "..", "."};
	unsigned n = 1 + pick(4), k;
	char *at = out;

	if (!pick(300)) { /* odd ones */
		size_t len = (size_t[]){0, 255, 256, 4095, 4096, 5000}[pick(6)];

		memset(out, 'x', len);
		for (k = 200; k < len && len > 300; k += 200)
			out[k] = '/';
		out[len] = 0;
		return;
	}
	if (!pick(12))
		*at++ = '/';
	for (k = 0; k < n; k++) {
		at = stpcpy(at, words[pick(pick(4) ? 8 : 10)]);
		if (k + 1 < n || !pick(8))
			*at++ = '/';
		if (!pick(20) && at[-1] == '/')
			*at++ = '/';
	}
	*at = 0;
}

static int random_open_flags(void)
{
	static const int some[] = {O_CREAT, O_EXCL, O_NOFOLLOW, O_DIRECTORY, O_PATH, O_TRUNC, O_NOATIME, O_CREAT};
	int flags = (int)pick(3), n = (int)pick(4);

	while (n--)
		flags |= some[pick(8)];
	return flags;
}

static bool hardlinks_protected;

static void random_op(struct op *op)
{
	static const unsigned rename_flags[] = {0, 0, 0, 0, RENAME_NOREPLACE, RENAME_EXCHANGE, RENAME_EXCHANGE, RENAME_WHITEOUT};
	static const uint32_t modes[] = {0755, 0777, 0700, 0555, 01777, 02775, 0644, 0600, 0, 0711, 0070, 0007, 06755};
	static const unsigned char weight[] = {8, 6, 3, 4, 12, 3, 3, 2, 3, 3, 3, 2, 1};
	unsigned k = pick(53), kind = 0;

	while (k >= weight[kind])
		k -= weight[kind++];
	op->kind = (enum op_kind)kind;
	op->who = pick(3);
	op->flags = 0;
	op->mode = modes[pick(ARRAY_SIZE(modes))];
	random_path(op->a);
	random_path(op->b);
	if (kind == OP_OPEN)
		op->flags = random_open_flags();
	if (kind == OP_RENAME)
		op->flags = (int)rename_flags[pick(8)];
	if (kind == OP_LINK) {
		op->flags = !pick(4);
		op->who = hardlinks_protected ? 0 : op->who; /* a sysctl that a shelf does not have */
	}
	if (kind == OP_MKNOD)
		op->mode |= (uint32_t[]){S_IFREG, S_IFCHR, S_IFBLK, S_IFIFO, S_IFDIR, 0}[pick(6)], op->flags = pick(2) ? 0 : (int)makedev(1, 3);
	if (kind == OP_CHOWN)
		op->mode = 1001 + pick(2), op->who = 0;
	if (kind == OP_CHMOD || kind == OP_CHDIR)
		op->who = pick(3) ? 0 : op->who;
}

/* ---- comparing ---------------------------------------------------------------------------------------- */

static unsigned long step;

static void complain(struct op *op, const char *what, long ours, long theirs)
{
	fprintf(stderr, "step %lu: %s(\"%.100s\", \"%.100s\") flags %#x mode %o user %u: %s is %ld, tmpfs has %ld\n", step,
		op_names[op->kind], op->a, op->b, (unsigned)op->flags, op->mode, op->who, what, ours, theirs);
	abort();
}

static void compare_stat(struct op *op, const struct stat *st)
{
	if (st->st_mode != op->st.st_mode)
		complain(op, "st_mode", st->st_mode, op->st.st_mode);
	if (st->st_nlink != op->st.st_nlink)
		complain(op, "st_nlink", (long)st->st_nlink, (long)op->st.st_nlink);
	if (st->st_size != op->st.st_size)
		complain(op, "st_size", st->st_size, op->st.st_size);
	if (st->st_uid != op->st.st_uid || st->st_gid != op->st.st_gid)
		complain(op, "owner", st->st_uid * 10000L + st->st_gid, op->st.st_uid * 10000L + op->st.st_gid);
	if (st->st_rdev != op->st.st_rdev)
		complain(op, "st_rdev", (long)st->st_rdev, (long)op->st.st_rdev);
}

struct tree {
	struct who *w;
	const char *path;
	long entries;
};

static void compare_tree(struct who *w, const char *path);

static void compare_entry(void *ctx, const struct n_dirent *e)
{
	struct tree *t = ctx;
	struct op op = {.kind = OP_LSTAT};
	struct stat st;

	if (strlen(t->path) + strlen(e->name) > 4000)
		return;
	CHECK(snprintf(op.a, sizeof(op.a), "%s/%s", t->path, e->name) < (int)sizeof(op.a));
	CHECK(n_lstat(t->w, op.a, &st) == 0);
	CHECK(e->ino == st.st_ino && e->type == IFTODT(st.st_mode));
	if (ask_kernel(&op))
		complain(&op, "result", 0, kernel.result);
	compare_stat(&op, &st);
	if (S_ISDIR(st.st_mode))
		compare_tree(t->w, op.a);
}

static void compare_tree(struct who *w, const char *path)
{
	struct tree t = {w, path, 0};
	struct inode *dir;

	CHECK(n_open(w, *path ? path : "/", O_RDONLY | O_DIRECTORY, 0, &dir) == 0);
	/* That the kernel has no others: its st_size counts the entries. */
	n_list(w, dir, compare_entry, &t);
	n_put(w, dir);
}

static void one_step(struct who *w, struct op *op)
{
	struct stat st;
	int ours, theirs;

	random_op(op);
	theirs = ask_kernel(op);
	ours = shelf_call(w, op, &st);
	if (theirs == -ENXIO || theirs == -ENODEV)
		theirs = 0; /* nothing behind a fifo or a device: above this layer */
	if (op->kind == OP_OPEN && theirs == -EACCES && !ours && !n_stat(w, op->a, &st) && (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode)))
		return; /* a mount without devices */
	if (ours != theirs)
		complain(op, "result", ours, theirs);
	if (!ours && (op->kind == OP_STAT || op->kind == OP_LSTAT))
		compare_stat(op, &st);
}

static void random_calls_give_what_tmpfs_gives(void **state)
{
	unsigned long steps = test_scaled(60000);
	static struct op op;
	struct names_world nw;
	struct who w;
	pthread_t t;

	(void)state;
	rng = test_seed();
	names_world_open(&nw, 0);
	w = names_who(&nw);
	CHECK(attr_chmod(&w, vfs_root_of(w.self)->root, 0777) == 0);
	pthread_create(&t, NULL, kernel_thread, NULL);
	for (step = 0; step < steps; step++) {
		one_step(&w, &op);
		if (step % 500 == 0) {
			w.cred = &users[0];
			compare_tree(&w, "");
		}
	}
	kernel.op = NULL;
	sem_post(&kernel.go);
	pthread_join(t, NULL);
	names_world_close(&nw);
}

static bool protected_by_sysctl(void)
{
	FILE *f = fopen("/proc/sys/fs/protected_hardlinks", "r");
	int on = 0;

	if (f && fscanf(f, "%d", &on) != 1)
		on = 0;
	if (f)
		fclose(f);
	return on;
}

static int prepare(void **state)
{
	struct statfs fs;

	(void)state;
	strcpy(kernel.dir, "/dev/shm/shelf-names-XXXXXX");
	if (geteuid() || statfs("/dev/shm", &fs) || fs.f_type != TMPFS_F_TYPE || !mkdtemp(kernel.dir))
		test_skip("needs root and a tmpfs on /dev/shm");
	hardlinks_protected = protected_by_sysctl();
	sem_init(&kernel.go, 0, 0);
	sem_init(&kernel.done, 0, 0);
	CHECK(chmod(kernel.dir, 0777) == 0);
	return 0;
}

static int clean(void **state)
{
	char cmd[128];

	(void)state;
	snprintf(cmd, sizeof(cmd), "rm -rf %s", kernel.dir);
	return system(cmd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(random_calls_give_what_tmpfs_gives, prepare, clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
