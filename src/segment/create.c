/* SPDX-License-Identifier: MIT */
/*
 * create.c - segment_create, segment_remove.
 *
 * The file gets its length at once and its memory page by page: creating
 * commits page 0, one page of chunk infos, and nothing else.  Page 0 is written with its
 * magic last; `ready` is set by the caller once the layers above have made
 * their roots (segment_set_ready), and others wait for both.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fsize.h"
#include "base/syscall.h"
#include "segment/segment_priv.h"

#define CREATE_PLACES 64u /* bases tried before giving up */

static uint64_t create_half_of_ram(void)
{
	struct sysinfo si;

	if (sys_call3(SYS_sysinfo, (long)&si, 0, 0))
		return 0;
	return ALIGN_DOWN((uint64_t)si.totalram * si.mem_unit / 2, SEG_CHUNK);
}

static int create_plan(const struct segment_options *opt, struct seg_header *plan, char *why)
{
	uint64_t size = opt && opt->size ? opt->size : create_half_of_ram();
	uint32_t slots = opt && opt->max_slots ? opt->max_slots : SEG_SLOTS_DEFAULT;

	if (!layout_size(size))
		return refuse(why, EINVAL, "a shelf of %llu bytes is too large; ask for less", (unsigned long long)size);
	if (slots > SEG_SLOTS_MAX)
		return refuse(why, EINVAL, "a shelf for %u threads is too large; ask for at most %u", slots, SEG_SLOTS_MAX);
	layout_fill(plan, layout_size(size), slots);
	return 0;
}

static long create_length(int fd, uint64_t length)
{
	struct fsize_stretch stretch;
	long err;

	fsize_stretch(&stretch);
	err = sys_call3(SYS_ftruncate, fd, (long)length, 0);
	fsize_shrink(&stretch);
	return err;
}

static int create_file(const char *path, uint64_t length, char *why)
{
	int fd = (int)sys_call3(SYS_open, (long)path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	long err;

	if (fd == -EEXIST)
		return refuse(why, EEXIST, "%.150s: exists already; choose another name or remove it with `shelf rm`", path);
	if (fd < 0)
		return refuse(why, -fd, "%.150s: cannot be created: %s", path, strerror(-fd));
	err = sys_call3(SYS_fchmod, fd, 0600, 0); /* whatever the umask took away */
	if (!err)
		err = create_length(fd, length);
	if (!err)
		return fd;
	sys_call3(SYS_close, fd, 0, 0);
	sys_call3(SYS_unlink, (long)path, 0, 0);
	return refuse(why, (int)-err, "%.150s: cannot be made %llu bytes long: %s%s", path, (unsigned long long)length,
		      strerror((int)-err), err == -EFBIG ? "; raise the limit on files (ulimit -f)" : "");
}

static void *create_map(int fd, const char *name, const struct segment_options *opt, struct seg_header *plan)
{
	void *at = NULL;
	unsigned k;

	for (k = 0; !at && k < CREATE_PLACES; k++) {
		plan->base = opt && opt->base ? opt->base : base_choose(name, k);
		at = base_map(fd, plan->base, layout_bytes(plan), PROT_READ | PROT_WRITE);
		if (opt && opt->base)
			break;
	}
	return at;
}

static void create_fill(struct seg_header *h, const struct seg_header *plan)
{
	struct seg_header fixed = *plan;

	fixed.owner_uid = geteuid();
	fixed.created_ns = (uint64_t)clock_now();
	fixed.creator_pid = slot_getpid();
	fixed.creator_start = slot_start_time();
	if (sys_call3(SYS_getrandom, (long)&fixed.hash_seed, sizeof(fixed.hash_seed), GRND_NONBLOCK) !=
	    sizeof(fixed.hash_seed))
		fixed.hash_seed = fixed.created_ns * 0x9e3779b97f4a7c15u; /* early at boot */
	layout_seal(&fixed);
	memcpy((char *)h + sizeof(h->magic), (char *)&fixed + sizeof(h->magic),
	       offsetof(struct seg_header, sum) + sizeof(h->sum) - sizeof(h->magic));
	fence_compiler();
	*(volatile uint64_t *)&h->magic = SEG_MAGIC; /* last: open_wait_magic */
}

/* The mapped file becomes a segment. */
static int create_inside(struct seg_local *sl, struct seg_header *h, const struct seg_header *plan, int fd)
{
	struct stat st;

	sl->pub.hdr = h;
	if (sys_call3(SYS_fstat, fd, (long)&st, 0) || commit_range(sl, 0, 2 * PAGE_BYTES))
		return -ENOSPC;
	sl->pub.file_dev = st.st_dev;
	sl->pub.file_ino = st.st_ino;
	create_fill(h, plan);
	local_bind(sl, h);
	store_relaxed(&sl->alloc->infos_made, (uint32_t)INFOS_A_PAGE); /* published with the segment */
	store_relaxed(&h->next_ino, 1);
	membarrier_register(sl);
	return 0;
}

static int create_mapped(struct seg_local *sl, const char *path, const struct segment_options *opt,
			 struct seg_header *plan, int fd, char *why)
{
	struct seg_header *h = NULL;

	if (!opt || !opt->base || base_usable(opt->base, layout_bytes(plan)))
		h = create_map(fd, sl->pub.name, opt, plan);
	if (!h)
		return refuse(why, EADDRINUSE, "%.100s: no free address range of %llu MiB (%#llx is taken); ask for a smaller size",
			      path, (unsigned long long)layout_bytes(plan) >> 20, (unsigned long long)plan->base);
	if (create_inside(sl, h, plan, fd) == 0)
		return 0;
	sys_call3(SYS_munmap, (long)h, (long)layout_bytes(plan), 0);
	return refuse(why, ENOSPC, "%.150s: no memory even for the header; free some in its directory", path);
}

static int create_locked(const char *name, const struct segment_options *opt, struct segment **out, char *why)
{
	struct seg_header plan = {0};
	struct seg_local *sl = local_new(name);
	char path[SEG_PATH_MAX];
	int fd, err = create_plan(opt, &plan, why);

	if (err)
		return err;
	if (!sl || local_path(path, sizeof(path), sl->dir, name))
		return refuse(why, ENOMEM, "no memory for the shelf's handle");
	err = refuse_place(sl->dir, why);
	if (err)
		return err;
	fd = create_file(path, layout_bytes(&plan), why);
	if (fd < 0)
		return fd;
	err = create_mapped(sl, path, opt, &plan, fd, why);
	sys_call3(SYS_close, fd, 0, 0);
	if (err) {
		sys_call3(SYS_unlink, (long)path, 0, 0);
		return err;
	}
	local_add(sl);
	*out = &sl->pub;
	return 0;
}

int segment_create(const char *name, const struct segment_options *opt, struct segment **out, char *why)
{
	int err = refuse_name(name, why);

	if (err)
		return err;
	slots_setup();
	local_lock();
	err = create_locked(name, opt, out, why);
	local_unlock();
	return err;
}

int segment_remove(const char *name, char *why)
{
	char path[SEG_PATH_MAX];
	struct stat st;
	long err = refuse_name(name, why);

	if (err)
		return (int)err;
	if (local_path(path, sizeof(path), local_dir(), name))
		return refuse(why, ENAMETOOLONG, "the shelf's path is too long");
	err = sys_call3(SYS_lstat, (long)path, (long)&st, 0);
	if (!err && !S_ISREG(st.st_mode))
		return refuse(why, EINVAL, "%.150s: is not a plain file, so no shelf; remove it yourself", path);
	if (!err)
		err = sys_call3(SYS_unlink, (long)path, 0, 0);
	if (err == -ENOENT)
		return refuse(why, ENOENT, "%.150s: there is no such shelf; `shelf ls` shows those there are", path);
	return err ? refuse(why, (int)-err, "%.150s: cannot be removed: %s", path, strerror((int)-err)) : 0;
}
