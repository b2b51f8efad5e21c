/* SPDX-License-Identifier: MIT */
/*
 * cred.c - credentials: immutable objects, swapped whole.
 *
 * A call reads the pointer once and may wait with it, outside any section.  So an old object is freed
 * only when its task exits, or at once (through the epoch) when the task has one thread, which is here.
 * A task that goes back and forth between two identities reuses the objects it has.
 */
#include <string.h>
#include <unistd.h>

#include "base/syscall.h"
#include "segment/hand.h"
#include "task/task_priv.h"

#define CRED_GROUPS ARRAY_SIZE(((struct shelf_cred *)0)->groups)

/* Bits of CapEff in the kernel's order, and ours. */
static const struct {
	unsigned bit;
	uint32_t cap;
} cap_map[] = {
	{ 0, SHELF_CAP_CHOWN },	     { 1, SHELF_CAP_DAC_OVERRIDE }, { 2, SHELF_CAP_DAC_READ_SEARCH },
	{ 3, SHELF_CAP_FOWNER },     { 4, SHELF_CAP_FSETID },	    { 18, SHELF_CAP_SYS_CHROOT },
	{ 21, SHELF_CAP_SYS_ADMIN }, { 27, SHELF_CAP_MKNOD },
};

static uint32_t caps_of_process(void)
{
	struct {
		uint32_t version;
		int pid;
	} header = { 0x20080522, 0 };
	struct {
		uint32_t effective, permitted, inheritable;
	} data[2] = { 0 };
	uint32_t caps = 0;

	if (sys_call3(SYS_capget, (long)&header, (long)data, 0))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(cap_map); i++)
		if (data[0].effective >> cap_map[i].bit & 1)
			caps |= cap_map[i].cap;
	return caps;
}

int cred_of_process(struct shelf_cred *out)
{
	long n;

	memset(out, 0, sizeof(*out));
	sys_call3(SYS_getresuid, (long)&out->uid, (long)&out->euid, (long)&out->suid);
	sys_call3(SYS_getresgid, (long)&out->gid, (long)&out->egid, (long)&out->sgid);
	out->fsuid = (uid_t)sys_call3(SYS_setfsuid, -1, 0, 0); /* -1 changes nothing and tells the present one */
	out->fsgid = (gid_t)sys_call3(SYS_setfsgid, -1, 0, 0);
	n = sys_call3(SYS_getgroups, CRED_GROUPS, (long)out->groups, 0);
	if (n < 0)
		return (int)n; /* -EINVAL: more than 64 */
	out->ngroups = (uint32_t)n;
	out->caps = caps_of_process();
	return 0;
}

static bool cred_equal(const struct shelf_cred *a, const struct shelf_cred *b)
{
	return !memcmp(a, b, offsetof(struct shelf_cred, groups)) && a->caps == b->caps &&
	       !memcmp(a->groups, b->groups, a->ngroups * sizeof(a->groups[0]));
}

static struct cred *cred_find_locked(struct shelf_task *t, const struct shelf_cred *c)
{
	struct cred *cred = load_relaxed(&t->creds); /* relaxed: under the lock */

	while (cred && !cred_equal(&cred->c, c))
		cred = load_relaxed(&cred->older); /* the same */
	return cred;
}

static struct cred *cred_add_locked(struct slot *self, struct shelf_task *t, const struct shelf_cred *c)
{
	int k;
	struct cred *cred = mem_alloc_noted(self, sizeof(*cred), &k);

	if (!cred)
		return NULL;
	cred->c = *c;
	memset(cred->c.groups + c->ngroups, 0, sizeof(c->groups) - c->ngroups * sizeof(c->groups[0]));
	store_relaxed(&cred->older, load_relaxed(&t->creds)); /* published by the next store; under the lock */
	hand_begin(self, &t->creds, (uintptr_t)cred, hand_bit(k), 0);
	tracked_store(&t->creds, cred); /* read under the lock, or when the task is freed */
	hand_end(self, hand_bit(k));
	return cred;
}

/* One thread: whoever used the others has returned.  They hang on the youngest of them, and go with it. */
static void cred_drop_older_locked(struct slot *self, struct cred *keep)
{
	struct cred *older = load_relaxed(&keep->older); /* under the lock */
	int k;

	if (!older)
		return;
	k = retire_begin(self, &keep->older, 0, 0, &older->retired, RETIRE_TASK, TASK_OBJECT_CRED);
	tracked_store(&keep->older, NULL);
	hand_end(self, 0);
	epoch_retire_noted(self, &older->retired, k);
}

void cred_free_older(struct slot *self, cred_link *at)
{
	struct cred *cred;

	while ((cred = load_relaxed(at))) /* nobody else is left */
		hand_free_from(self, (void *)at, load_relaxed(&cred->older), cred, sizeof(*cred));
}

int cred_set(struct slot *self, struct shelf_task *t, const struct shelf_cred *c)
{
	struct task_root *root = task_root_of(self);
	struct cred *cred;

	if (c->ngroups > CRED_GROUPS)
		return -EINVAL;
	lock_acquire(&root->lock, &self->locker, LOCK_TASKS);
	cred = cred_find_locked(t, c);
	if (!cred)
		cred = cred_add_locked(self, t, c);
	if (cred) {
		store_relaxed(&root->cred_ids, load_relaxed(&root->cred_ids) + 1); /* under the lock */
		store_relaxed(&t->cred_id, load_relaxed(&root->cred_ids)); /* a number */
		tracked_store(&t->cred, cred); /* pairs with the load in who_init */
	}
	/* Relaxed: our own task says so.  If it is not the youngest the task goes to and fro: all stay. */
	if (cred && load_relaxed(&t->threads) == 1 && cred == load_relaxed(&t->creds))
		cred_drop_older_locked(self, cred);
	lock_release(&root->lock, &self->locker, LOCK_TASKS);
	return cred ? 0 : -ENOSPC;
}
