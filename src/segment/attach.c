/* SPDX-License-Identifier: MIT */
/*
 * attach.c - segment_attach, segment_detach.
 *
 * A segment attached twice in one process is one mapping and one handle, counted.
 * For reading: everything PROT_READ; slot.c makes the own slot's page writable.
 * The descriptor is closed before attach returns: programs close descriptors
 * they do not know.
 */
#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/syscall.h"
#include "segment/judge.h"
#include "segment/segment_priv.h"

/* One that cannot makes every owner of a stock fence, for ever. */
void membarrier_register(struct seg_local *sl)
{
	sl->pub.membarrier =
		sys_call3(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
	if (!sl->pub.membarrier && !sl->pub.read_only)
		store_relaxed(&sl->alloc->need_fence, 1); /* before this process has a slot; thieves fence after it */
}

/* The same file again. */
static int attach_again(struct seg_local *sl, enum segment_how how, const char *path, struct segment **out, char *why)
{
	int err = open_wait_ready(sl->pub.hdr, path, why);

	if (err)
		return err;
	if (sl->pub.read_only != (how == SEGMENT_READ))
		return refuse(why, EBUSY, "%.150s: attached %s in this process already; detach it first", path,
			      sl->pub.read_only ? "for reading" : "for writing");
	sl->refs++;
	*out = &sl->pub;
	return 0;
}

static int attach_mapped(struct seg_local *sl, struct seg_header *h, const char *path, char *why)
{
	int err = open_wait_ready(h, path, why);
	const char *damage;

	if (err)
		return err;
	if (!layout_roots_ok(h))
		return refuse(why, EIO, "%.150s: its header is damaged (roots); remove it with `shelf rm`", path);
	if (load_acquire(&h->poison) && !sl->pub.read_only && !sl->pub.for_check) /* pairs with segment_poison */
		return refuse(why, EIO, "%.100s: damaged (%.80s); `shelf check --repair` may mend it", path,
			      h->poison_reason);
	local_bind(sl, h);
	damage = segment_bounds(&sl->pub);
	if (damage) {
		touch_unmap(sl);
		return refuse(why, EIO, "%.150s: its header is damaged (%s); remove it with `shelf rm`", path, damage);
	}
	membarrier_register(sl);
	if (!sl->pub.read_only)
		slots_disown(&sl->pub);
	return 0;
}

static int attach_map(struct seg_local *sl, int fd, const char *path, char *why)
{
	int prot = sl->pub.read_only ? PROT_READ : PROT_READ | PROT_WRITE;
	struct seg_header h;
	void *at;
	int err = open_read_header(fd, path, &h, why);

	if (err)
		return err;
	at = base_map(fd, h.base, layout_bytes(&h), prot);
	if (!at)
		return refuse(why, EADDRINUSE, "%.100s: needs addresses %#llx to %#llx, taken in this process; attach it earlier",
			      path, (unsigned long long)h.base, (unsigned long long)(h.base + layout_bytes(&h)));
	err = attach_mapped(sl, at, path, why);
	if (err)
		sys_call3(SYS_munmap, (long)at, (long)layout_bytes(&h), 0);
	return err;
}

static int attach_new(const char *name, enum segment_how how, int fd, const struct stat *st, const char *path,
		      struct segment **out, char *why)
{
	struct seg_local *sl = local_new(name);
	int err;

	if (!sl)
		return refuse(why, ENOMEM, "no memory for the shelf's handle");
	sl->pub.read_only = how == SEGMENT_READ;
	sl->pub.for_check = how == SEGMENT_CHECK;
	sl->pub.file_dev = st->st_dev;
	sl->pub.file_ino = st->st_ino;
	err = attach_map(sl, fd, path, why);
	if (err)
		return err;
	local_add(sl);
	*out = &sl->pub;
	return 0;
}

static int attach_locked(const char *name, enum segment_how how, const char *path, struct segment **out, char *why)
{
	struct seg_local *sl;
	struct stat st;
	int err, fd = open_segment(path, why);

	if (fd < 0)
		return fd;
	if (sys_call3(SYS_fstat, fd, (long)&st, 0)) {
		err = refuse(why, EIO, "%.150s: cannot be read", path);
	} else {
		sl = local_find(st.st_dev, st.st_ino);
		err = sl ? attach_again(sl, how, path, out, why) :
			   attach_new(name, how, fd, &st, path, out, why);
	}
	sys_call3(SYS_close, fd, 0, 0);
	return err;
}

int segment_attach(const char *name, enum segment_how how, struct segment **out, char *why)
{
	char path[SEG_PATH_MAX];
	int err = refuse_name(name, why);

	if (err)
		return err;
	if (local_path(path, sizeof(path), local_dir(), name))
		return refuse(why, ENAMETOOLONG, "the shelf's path is too long");
	slots_setup();
	local_lock();
	err = attach_locked(name, how, path, out, why);
	local_unlock();
	return err;
}

void segment_detach(struct segment *seg)
{
	struct seg_local *sl = seg_local(seg);
	bool last;

	local_lock();
	last = --sl->refs == 0;
	local_unlock();
	if (!last)
		return;
	slots_detach(seg);
	local_lock();
	local_remove(sl);
	local_unlock();
	touch_unmap(sl);
	sys_call3(SYS_munmap, (long)seg->hdr, (long)layout_bytes(seg->hdr), 0);
}
