/* SPDX-License-Identifier: MIT */
#include "attr_world.h"

#include <sys/statfs.h>
#include <sys/syscall.h>

#define TMPFS_F_TYPE 0x01021994

void attr_world_open(struct attr_world *world, uint64_t size)
{
	struct segment_options opt = {.size = size ? size : 64UL << 20, .max_slots = 64};
	char why[256] = "";

	memset(world, 0, sizeof(*world));
	if (segment_create(fresh_name(world->name), &opt, &world->seg, why) != 0)
		fprintf(stderr, "%s\n", why);
	CHECK(world->seg);
	CHECK(epoch_init(world->seg) == 0);
	CHECK(epoch_attach(world->seg) == 0);
	CHECK(fd_layer_init(world->seg) == 0);
	CHECK(fd_layer_attach(world->seg) == 0);
	CHECK(vfs_attach(world->seg) == 0);
	CHECK(vfs_init(slot_self(world->seg), 0755, 0, 0) == 0);
	segment_set_ready(world->seg);
	world->root.caps = SHELF_CAP_ALL;
	store_relaxed(&world->fs.umask, 022);
	world->w = attr_world_who(world, world);
}

void attr_world_close(struct attr_world *world)
{
	CHECK(!segment_poisoned(world->seg));
	segment_remove(world->name, NULL);
	segment_detach(world->seg);
}

struct who attr_world_who(struct attr_world *world, void *owner)
{
	return (struct who){.self = slot_self(world->seg), .cred = &world->root, .fs = &world->fs, .files = owner};
}

struct shelf_cred attr_user(uid_t uid, gid_t gid, unsigned ngroups, const gid_t *groups)
{
	struct shelf_cred c = {.uid = uid, .euid = uid, .suid = uid, .fsuid = uid};

	c.gid = c.egid = c.sgid = c.fsgid = gid;
	c.ngroups = ngroups;
	if (ngroups)
		memcpy(c.groups, groups, ngroups * sizeof(gid_t));
	c.caps = uid ? 0 : SHELF_CAP_ALL;
	return c;
}

struct inode *attr_inode(struct who *w, uint32_t mode, uint32_t uid, uint32_t gid)
{
	struct inode *inode = inode_new(w, mode, uid, gid);

	CHECK(inode);
	if (S_ISLNK(mode)) {
		inode->target = mem_alloc(w->self, 2);
		CHECK(inode->target);
		memcpy(inode->target, "t", 2);
		inode->target_len = 1;
		store_relaxed(&inode->size, 1);
	}
	return inode;
}

struct file *attr_open(struct who *w, struct inode *inode, uint32_t flags)
{
	struct file *f;
	int err, k;

	epoch_enter(w->self);
	CHECK(inode_get_epoch(w->self, inode, &k));
	epoch_exit(w->self);
	f = file_new(w->self, inode, FD_TYPE_REG, flags, &err);
	CHECK(f);
	return f;
}

void *attr_shared(struct attr_world *world, size_t bytes)
{
	void *p = mem_alloc(slot_self(world->seg), bytes);

	CHECK(p);
	memset(p, 0, bytes);
	return p;
}

/* Raw calls: of the calling thread only, and libc does not know. */
void attr_kernel_user(const struct shelf_cred *c)
{
	CHECK(syscall(SYS_setgroups, c->ngroups, c->groups) == 0);
	CHECK(syscall(SYS_setresgid, -1, c->egid, -1) == 0);
	CHECK(syscall(SYS_setresuid, -1, c->euid, -1) == 0);
}

void attr_kernel_root(void)
{
	CHECK(syscall(SYS_setresuid, -1, 0, -1) == 0);
	CHECK(syscall(SYS_setresgid, -1, 0, -1) == 0);
	CHECK(syscall(SYS_setgroups, 0, NULL) == 0);
}

bool attr_kernel_dir(char path[64])
{
	struct statfs st;

	strcpy(path, "/dev/shm/shelf-attr-XXXXXX");
	if (geteuid() != 0 || statfs("/dev/shm", &st) != 0 || st.f_type != TMPFS_F_TYPE || !mkdtemp(path))
		return false;
	CHECK(chmod(path, 0777) == 0);
	return true;
}
