/* SPDX-License-Identifier: MIT */
/*
 * chmod, chown, utimens, ACLs and extended attributes by several users on files of several types, the
 * same calls on a shelf and on the kernel's tmpfs: results, modes, owners, lists must agree step by step.
 */
#include "lib/attr_world.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
#ifndef SYS_faccessat2
#define SYS_faccessat2 439
#endif

enum { OBJECTS = 5, USERS = 5, STEPS = 20000 };

static struct attr_world world;
static struct shelf_cred users[USERS];
static char dir[64];
static struct object {
	struct inode *inode;
	char path[128];
	uint32_t type;
} objects[OBJECTS];
static uint64_t rng;
static char step_text[512]; /* what is being done, for a failure's message */

static unsigned pick(unsigned n)
{
	return (unsigned)(test_random(&rng) % n);
}

static long result(long ret)
{
	return ret < 0 ? -errno : ret;
}

static void agree(const char *what, long kernel, long shelf)
{
	if (kernel == shelf)
		return;
	fprintf(stderr, "%s: %s: kernel %ld, shelf %ld\n", step_text, what, kernel, shelf);
	abort();
}

static void objects_make(void)
{
	static const uint32_t types[OBJECTS] = {S_IFREG, S_IFDIR, S_IFLNK, S_IFIFO, S_IFREG};
	unsigned i;

	for (i = 0; i < OBJECTS; i++) {
		struct object *o = &objects[i];
		uint32_t perm = types[i] == S_IFLNK ? 0777 : 0644;

		o->type = types[i];
		o->inode = attr_inode(&world.w, types[i] | perm, 0, 0);
		snprintf(o->path, sizeof(o->path), "%s/%u", dir, i);
		if (S_ISDIR(types[i]))
			CHECK(mkdir(o->path, perm) == 0);
		else if (S_ISLNK(types[i]))
			CHECK(symlink("t", o->path) == 0);
		else
			CHECK(mknod(o->path, types[i] | perm, 0) == 0);
		if (!S_ISLNK(types[i]))
			CHECK(chmod(o->path, perm) == 0);
	}
}

static void objects_remove(void)
{
	unsigned i;

	for (i = 0; i < OBJECTS; i++) {
		if (S_ISDIR(objects[i].type))
			CHECK(rmdir(objects[i].path) == 0);
		else
			CHECK(unlink(objects[i].path) == 0);
		inode_put(world.w.self, objects[i].inode);
	}
}

static struct who as_user(const struct shelf_cred *c)
{
	struct who w = world.w;

	w.cred = c;
	return w;
}

static void read_attr(struct inode *inode, struct attr *a)
{
	epoch_enter(world.w.self);
	attr_read_epoch(world.w.self, inode, a);
	epoch_exit(world.w.self);
}

static void compare_values(const struct object *o)
{
	static const char *const names[] = {"system.posix_acl_access", "system.posix_acl_default", "user.a",
					    "user.b", "trusted.t", "security.s", "security.capability"};
	unsigned i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		char k[256], s[256];
		long kn = result(lgetxattr(o->path, names[i], k, sizeof(k)));
		long sn = xattr_get(&world.w, o->inode, names[i], s, sizeof(s));

		agree(names[i], kn, sn);
		if (kn > 0)
			agree("value", 0, memcmp(k, s, (size_t)kn));
	}
}

static void compare_object(const struct object *o)
{
	char k[1024], s[1024];
	struct stat st;
	struct attr a;
	long kn, sn;

	CHECK(lstat(o->path, &st) == 0);
	read_attr(o->inode, &a);
	agree("mode", st.st_mode, a.mode);
	agree("uid", st.st_uid, a.uid);
	agree("gid", st.st_gid, a.gid);
	kn = result(llistxattr(o->path, k, sizeof(k)));
	sn = xattr_list(&world.w, o->inode, s, sizeof(s));
	agree("list", kn, sn);
	if (kn > 0)
		agree("list's bytes", 0, memcmp(k, s, (size_t)kn));
	compare_values(o);
}

/* ---- one step each ------------------------------------------------------------------- */

static void step_chmod(struct object *o, const struct shelf_cred *c)
{
	struct who w = as_user(c);
	unsigned mode = pick(2) ? pick(010000) : pick(01000) | (pick(3) ? 0644u : 06755u);
	long k;

	snprintf(step_text + strlen(step_text), 200, " chmod %o", mode);
	attr_kernel_user(c);
	k = result(syscall(SYS_fchmodat2, AT_FDCWD, o->path, mode, AT_SYMLINK_NOFOLLOW));
	attr_kernel_root();
	agree("chmod", k, attr_chmod(&w, o->inode, mode));
}

static void step_chown(struct object *o, const struct shelf_cred *c)
{
	static const uint32_t ids[] = {UINT32_MAX, 0, 1001, 1002, 1003, 1004};
	struct who w = as_user(c);
	uint32_t uid = ids[pick(ARRAY_SIZE(ids))], gid = ids[pick(ARRAY_SIZE(ids))];
	long k;

	snprintf(step_text + strlen(step_text), 200, " chown %d %d", (int)uid, (int)gid);
	attr_kernel_user(c);
	k = result(lchown(o->path, uid, gid));
	attr_kernel_root();
	agree("chown", k, attr_chown(&w, o->inode, uid, gid));
}

static void step_utimens(struct object *o, const struct shelf_cred *c)
{
	static const long nsecs[] = {UTIME_NOW, UTIME_OMIT, 0, 999999999, 1000000000, -1};
	struct who w = as_user(c);
	struct timespec ts[2] = {{(time_t)pick(1000), nsecs[pick(6)]}, {-(time_t)pick(1000), nsecs[pick(6)]}};
	const struct timespec *t = pick(3) ? ts : NULL;
	struct stat st;
	struct attr a;
	long k;

	snprintf(step_text + strlen(step_text), 200, " utimens %ld %ld %d", ts[0].tv_nsec, ts[1].tv_nsec, !!t);
	attr_kernel_user(c);
	k = result(syscall(SYS_utimensat, AT_FDCWD, o->path, t, AT_SYMLINK_NOFOLLOW));
	attr_kernel_root();
	agree("utimens", k, attr_utimens(&w, o->inode, t, false));
	CHECK(lstat(o->path, &st) == 0);
	read_attr(o->inode, &a);
	if (st.st_atim.tv_sec < 2000) /* set, not touched */
		agree("atime", st.st_atim.tv_sec * 1000000000 + st.st_atim.tv_nsec, (long)a.atime);
	if (st.st_mtim.tv_sec < 2000)
		agree("mtime", st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec, (long)a.mtime);
}

static const char *pick_name(void)
{
	static char long_name[400];
	static const char *const names[] = {"user.a", "user.b", "user.", "trusted.t", "trusted.", "security.s",
					    "security.", "security.capability", "system.foo", "system.posix_acl",
					    "system.posix_acl_access", "system.posix_acl_default", "foo", "foo.bar", "",
					    "user", "system.", "osx.x"};
	unsigned i = pick(ARRAY_SIZE(names) + 1);

	if (i < ARRAY_SIZE(names))
		return names[i];
	memset(long_name, 'x', sizeof(long_name));
	memcpy(long_name, "user.", 5);
	long_name[254 + pick(4)] = 0;
	return long_name;
}

static void step_setxattr(struct object *o, const struct shelf_cred *c)
{
	static char big[70000];
	static const size_t sizes[] = {0, 1, 4, 20, 24, 28, 100, 65536, 65537};
	static const uint32_t magics[] = {2, 0x02000000, 0x03000000, 1};
	struct who w = as_user(c);
	const char *name = pick_name();
	size_t size = sizes[pick(pick(4) ? 7 : 9)];
	int flags = pick(3) ? 0 : (int)pick(5);
	uint32_t magic = magics[pick(4)];
	long k;

	memset(big, (int)pick(256), 100);
	memcpy(big, &magic, 4);
	snprintf(step_text + strlen(step_text), 200, " setxattr %.30s %zu %d", name, size, flags);
	attr_kernel_user(c);
	k = result(lsetxattr(o->path, name, big, size, flags));
	attr_kernel_root();
	agree("setxattr", k, xattr_set(&w, o->inode, name, big, size, flags));
}

static void step_removexattr(struct object *o, const struct shelf_cred *c)
{
	struct who w = as_user(c);
	const char *name = pick_name();
	long k;

	snprintf(step_text + strlen(step_text), 200, " removexattr %.30s", name);
	attr_kernel_user(c);
	k = result(lremovexattr(o->path, name));
	attr_kernel_root();
	agree("removexattr", k, xattr_remove(&w, o->inode, name));
}

static void step_getxattr(struct object *o, const struct shelf_cred *c)
{
	static char a[70000], b[70000];
	struct who w = as_user(c);
	const char *name = pick_name();
	size_t size = pick(2) ? sizeof(a) : pick(60);
	long k;

	snprintf(step_text + strlen(step_text), 200, " getxattr %.30s %zu", name, size);
	attr_kernel_user(c);
	k = result(lgetxattr(o->path, name, a, size));
	attr_kernel_root();
	agree("getxattr", k, xattr_get(&w, o->inode, name, b, size));
}

static void step_listxattr(struct object *o, const struct shelf_cred *c)
{
	char a[1024], b[1024];
	struct who w = as_user(c);
	size_t size = pick(2) ? sizeof(a) : pick(100);
	long k;

	snprintf(step_text + strlen(step_text), 200, " listxattr %zu", size);
	attr_kernel_user(c);
	k = result(llistxattr(o->path, a, size));
	attr_kernel_root();
	agree("listxattr", k, xattr_list(&w, o->inode, b, size));
}

/* Mostly good lists: by chance one thing in them is wrong. */
static size_t random_acl(char *out)
{
	static const uint16_t tags[] = {1, 2, 2, 4, 8, 8, 16, 32};
	static const uint32_t ids[] = {0, 1001, 1002, 1003, 1004};
	uint32_t version = pick(30) ? 2 : pick(4);
	bool minimal = !pick(4);
	size_t n = 4;
	unsigned i;

	memcpy(out, &version, 4);
	for (i = 0; i < ARRAY_SIZE(tags); i++) {
		uint16_t tag = pick(100) ? tags[i] : (uint16_t)pick(64);
		uint16_t perm = (uint16_t)(pick(100) ? pick(8) : pick(16));
		uint32_t id = pick(20) ? ids[pick(5)] : UINT32_MAX;
		bool named = tags[i] == 2 || tags[i] == 8;

		if ((named && (minimal || pick(2))) || (tags[i] == 16 && (minimal || !pick(8))) || !pick(60))
			continue;
		memcpy(out + n, &tag, 2);
		memcpy(out + n + 2, &perm, 2);
		memcpy(out + n + 4, &id, 4);
		n += 8;
	}
	return pick(60) ? n : pick((unsigned)n + 1);
}

static void step_setacl(struct object *o, const struct shelf_cred *c)
{
	struct who w = as_user(c);
	const char *name = acl_names[pick(2)];
	char acl[4 + 8 * 8];
	size_t size = random_acl(acl);
	long k;

	snprintf(step_text + strlen(step_text), 200, " set %s %zu", name, size);
	attr_kernel_user(c);
	k = result(lsetxattr(o->path, name, acl, size, 0));
	attr_kernel_root();
	agree("set acl", k, xattr_set(&w, o->inode, name, acl, size, 0));
}

static void step_access(struct object *o, const struct shelf_cred *c)
{
	struct who w = as_user(c);
	unsigned mask = pick(8);
	long k, s;

	if (S_ISLNK(o->type))
		return;
	snprintf(step_text + strlen(step_text), 200, " access %o", mask);
	attr_kernel_user(c);
	k = result(syscall(SYS_faccessat2, AT_FDCWD, o->path, mask, AT_EACCESS));
	attr_kernel_root();
	epoch_enter(w.self);
	s = inode_permission_epoch(&w, o->inode, mask);
	epoch_exit(w.self);
	agree("access", k, s);
}

/* A file or directory made in the directory object inherits its default ACL, or gets the umask. */
static void step_create(struct object *o, const struct shelf_cred *c)
{
	bool is_dir = pick(2);
	uint32_t mode = pick(010000);
	struct who w = as_user(c);
	struct new_owner n;
	struct object child = {.type = is_dir ? S_IFDIR : S_IFREG};
	long k;

	if (!S_ISDIR(o->type))
		return;
	snprintf(step_text + strlen(step_text), 200, " create %o dir %d", mode, is_dir);
	snprintf(child.path, sizeof(child.path), "%.100s/c", o->path);
	attr_kernel_user(c);
	k = is_dir ? mkdir(child.path, mode) : mknod(child.path, S_IFREG | mode, 0);
	attr_kernel_root();
	if (k)
		return;
	if (is_dir)
		mode &= 01777; /* mkdir(2) drops the rest */
	epoch_enter(w.self);
	new_inode_owner_epoch(&w, o->inode, child.type | mode, &n);
	epoch_exit(w.self);
	child.inode = inode_new(&w, n.mode, n.uid, n.gid);
	CHECK(child.inode);
	CHECK(acl_inherit(&w, o->inode, child.inode, &n.mode) == 0);
	compare_object(&child);
	CHECK(remove(child.path) == 0);
	inode_put(w.self, child.inode);
}

static void one_step(void)
{
	static void (*const steps[])(struct object *, const struct shelf_cred *) = {
		step_chmod, step_chown, step_utimens, step_setxattr, step_removexattr, step_getxattr, step_listxattr,
		step_setacl, step_setacl, step_access, step_access, step_access, step_create};
	struct object *o = &objects[pick(OBJECTS)];
	unsigned user = pick(USERS);

	snprintf(step_text, sizeof(step_text), "object %o user %u", o->type, users[user].fsuid);
	steps[pick(ARRAY_SIZE(steps))](o, &users[user]);
	compare_object(o);
}

static void a_random_history_agrees_with_tmpfs(void **state)
{
	unsigned long i, n = test_scaled(STEPS);

	(void)state;
	if (!attr_kernel_dir(dir))
		skip();
	umask(022);
	objects_make();
	for (i = 0; i < n; i++)
		one_step();
	objects_remove();
	CHECK(rmdir(dir) == 0);
}

int main(void)
{
	static const gid_t some[] = {1002, 1003};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_random_history_agrees_with_tmpfs),
	};
	int failed;

	rng = test_seed();
	attr_world_open(&world, 0);
	users[0] = attr_user(0, 0, 0, NULL);
	users[1] = attr_user(1001, 1001, 0, NULL);
	users[2] = attr_user(1002, 1002, 2, some);
	users[3] = attr_user(1003, 1001, 1, some);
	users[4] = attr_user(1004, 1004, 2, some);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	attr_world_close(&world);
	return failed;
}
