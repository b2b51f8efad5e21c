/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as an access control list or an extended attribute: what is taken can be read back and set
 * again, and the kernel's tmpfs says the same of them where this process may ask it.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "fuzz.h"

enum { VALUE_ROOM = 65536 + 8, GOT = 4096 };

static const char *const names[] = {"system.posix_acl_access", "system.posix_acl_default", "user.x",
				    "trusted.x", "security.x", "system.other", "user.", "none"};
#define NAMES (sizeof(names) / sizeof(names[0]))

static char host_file[64], host_dir[64];
static bool host;

static void host_remove(void)
{
	unlink(host_file);
	rmdir(host_dir);
}

/* Only with the ids as they are, as root, and on a tmpfs: else the kernel judges by other rules. */
static void host_setup(void)
{
	unsigned inside = 1, outside = 1, count = 0;
	FILE *map = fopen("/proc/self/uid_map", "r");
	int fd;

	if (map) {
		host = fscanf(map, "%u %u %u", &inside, &outside, &count) == 3 && count == UINT32_MAX &&
		       !inside && !outside && !geteuid();
		fclose(map);
	}
	snprintf(host_file, sizeof(host_file), "/dev/shm/test-fuzz-%d.file", getpid());
	snprintf(host_dir, sizeof(host_dir), "/dev/shm/test-fuzz-%d.dir", getpid());
	atexit(host_remove);
	fd = open(host_file, O_CREAT | O_WRONLY, 0644);
	host = host && fd >= 0 && !mkdir(host_dir, 0755) &&
	       (getxattr(host_file, names[0], NULL, 0) >= 0 || errno == ENODATA);
	close(fd);
}

/* The kernel's answers depend on its version for these: user xattrs came to tmpfs with Linux 6.6. */
static bool comparable(unsigned name)
{
	return host && name < 2;
}

static void same_as_host(const char *path, const char *on_host, const char *name, const void *value, size_t size,
			 int64_t set, int64_t got, struct shelf_task *t)
{
	static char theirs[GOT];
	int64_t host_set = setxattr(on_host, name, value, size, 0) ? -errno : 0, host_got;
	struct stat st, host_st;

	if (set == -ENOSPC || host_set == -E2BIG || host_set == -ENOSPC || host_set == -ENOMEM)
		return;
	host_got = getxattr(on_host, name, theirs, sizeof(theirs));
	if (host_got < 0)
		host_got = -errno;
	if (set != host_set || got != host_got) {
		fprintf(stderr, "%s of %zu bytes: set %lld, kernel %lld; got %lld, kernel %lld\n", name, size,
			(long long)set, (long long)host_set, (long long)got, (long long)host_got);
		abort();
	}
	if (got > 0)
		CHECK(!memcmp(theirs, fuzz_buffer(GOT), (size_t)got));
	CHECK(!shelf_stat(t, path, &st) && !stat(on_host, &host_st));
	CHECK(st.st_mode == host_st.st_mode);
}

/* Another user asks: the answer is of no interest here, that there is one is. */
static void ask_as_other(struct shelf_task *t, struct bytes *in)
{
	struct shelf_cred c = {.ngroups = 2};

	c.uid = c.euid = c.suid = c.fsuid = 1 + (uid_t)fuzz_take(in, 1);
	c.gid = c.egid = c.sgid = c.fsgid = 1 + (gid_t)fuzz_take(in, 1);
	c.groups[0] = (gid_t)fuzz_take(in, 1);
	c.groups[1] = (gid_t)fuzz_take(in, 4);
	CHECK(!shelf_task_setcred(t, &c));
	for (int mode = 0; mode < 8; mode++)
		fuzz_result(shelf_access(t, "/f", mode));
	fuzz_result(shelf_access(t, "/d/new", W_OK));
}

static void set_and_get(struct shelf_task *t, bool dir, unsigned name, const uint8_t *value, size_t size)
{
	const char *path = dir ? "/d" : "/f";
	char *buf = fuzz_buffer(GOT);
	int64_t set = fuzz_result(shelf_setxattr(t, path, names[name], value, size, 0)), got;

	got = fuzz_result(shelf_getxattr(t, path, names[name], buf, GOT));
	fuzz_buffer_intact(GOT);
	if (comparable(name))
		same_as_host(path, dir ? host_dir : host_file, names[name], value, size, set, got, t);
	if (got > 0) {
		CHECK(shelf_setxattr(t, path, names[name], buf, (size_t)got, XATTR_REPLACE) == 0);
		CHECK(shelf_getxattr(t, path, names[name], NULL, 0) == got);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t value[VALUE_ROOM];
	static bool ready;
	struct bytes in = {data, size};
	struct shelf_task *t = fuzz_task();
	unsigned name = fuzz_below(&in, NAMES), more;
	bool dir = fuzz_below(&in, 2);
	size_t n;

	if (!ready)
		host_setup();
	ready = true;
	CHECK(!shelf_mkdir(t, "/d", 0755) && shelf_open(t, "/f", O_CREAT | O_RDWR, 0644) == 0);
	if (host) {
		removexattr(host_file, names[0]);
		removexattr(host_dir, names[0]);
		removexattr(host_dir, names[1]);
		CHECK(!chmod(host_file, 0644) && !chmod(host_dir, 0755));
	}
	more = fuzz_below(&in, 4);
	n = fuzz_take_block(&in, value, sizeof(value) - 8);
	set_and_get(t, dir, name, value, n);
	if (more == 1)
		fuzz_result(shelf_setxattr(t, "/f", "user.long", value, sizeof(value), 0));
	if (more == 2)
		fuzz_result(shelf_chmod(t, dir ? "/d" : "/f", (mode_t)(n * 37 & 07777)));
	fuzz_result(shelf_mkdir(t, "/d/sub", 0777));
	fuzz_result(shelf_listxattr(t, dir ? "/d" : "/f", fuzz_buffer(64), 64));
	fuzz_buffer_intact(64);
	in = (struct bytes){data, size};
	ask_as_other(t, &in);
	shelf_task_exit(t);
	fuzz_settle();
	return 0;
}

size_t fuzz_example(unsigned k, uint8_t *out, size_t room)
{
	static const uint8_t acl[] = {0, 0, 0, 2, 0, 0, 0,
				      1, 0, 6, 0, 255, 255, 255, 255, /* user::rw- */
				      2, 0, 7, 0, 232, 3, 0, 0, /* user:1000:rwx */
				      4, 0, 4, 0, 255, 255, 255, 255, /* group::r-- */
				      8, 0, 5, 0, 5, 0, 0, 0, /* group:5:r-x */
				      16, 0, 7, 0, 255, 255, 255, 255, /* mask::rwx */
				      32, 0, 4, 0, 255, 255, 255, 255}; /* other::r-- */

	if (k >= NAMES * 2 || room < sizeof(acl))
		return 0;
	memcpy(out, acl, sizeof(acl));
	out[0] = (uint8_t)(k / 2);
	out[1] = k & 1;
	return sizeof(acl);
}
