/* SPDX-License-Identifier: MIT */
/*
 * inotify_host.c - an instance with a descriptor of the kernel's beside it (shelf run).
 *
 * The program polls and reads one number: a descriptor of the kernel's, on which the kernel's own watches are, and one more,
 * the token's, on a file that nobody else knows.  Whoever queues an event touches that file, so the kernel queues an IN_ATTRIB,
 * and whoever waits, by whatever call, is woken.  The reader leaves it out and takes what waits here.
 *
 * The order of events: what the kernel said is put behind what waits, so there is one queue, and what does not fit
 * in the reader's buffer keeps its place.
 * Numbers of watches: the kernel's of before the token are as they are; from the token's on the instance counts for both,
 * as one kernel would, and a watch of the kernel's gets an entry that translates (struct watch without an inode).
 * Death: a reader that died between reading the token and looking what is left leaves `poked` set; after POKE_AGAIN_NS the next event
 * touches the token again.  The kernel merges touches that follow one another.
 * Limit: a process that does not reach the token (in a chroot of the kernel's) wakes nobody; what it did is read with the next event.
 */
#include <fcntl.h>
#include <string.h>

#include "base/clock.h"
#include "base/copy.h"
#include "base/fault.h"
#include "base/syscall.h"
#include "special/inotify_priv.h"

#define POKE_AGAIN_NS 500000000ULL

/* ---- the token ------------------------------------------------------------------------------- */

static void touch(struct inotify *inst)
{
	sys_call6(SYS_utimensat, AT_FDCWD, (long)inst->token, 0, AT_SYMLINK_NOFOLLOW, 0, 0);
}

static void poked(struct inotify *inst)
{
	store_relaxed(&inst->poked_at, (uint64_t)clock_now_coarse()); /* [w], as all here */
	tracked_store(&inst->poked, 1u);
}

void token_poke(struct inotify *inst)
{
	if (likely(!load_relaxed(&inst->token_wd)))
		return;
	if (load_relaxed(&inst->poked) && (uint64_t)clock_now_coarse() - load_relaxed(&inst->poked_at) < POKE_AGAIN_NS)
		return;
	touch(inst);
	poked(inst);
}

void inotify_token_get(struct file *f, struct inotify_token *out)
{
	struct inotify *inst = inotify_of(f);

	out->id = inst->id;
	out->wd = (int)load_acquire(&inst->token_wd); /* pairs with inotify_token_set: the path */
}

bool inotify_token_set(struct slot *self, struct file *f, const char *path, int wd)
{
	struct inotify_root *root = inotify_lock(self);
	struct inotify *inst = inotify_of(f);
	bool first = !load_relaxed(&inst->token_wd);

	if (first) {
		copy_bytes(inst->token, path, strlen(path) + 1);
		store_relaxed(&inst->last_wd, (uint32_t)wd - 1); /* the program's next is this one */
		tracked_store(&inst->token_wd, (uint32_t)wd); /* release: the path; pairs with inotify_token_get */
	}
	inotify_unlock(self, root);
	return first;
}

void inotify_token_renew(struct slot *self, struct file *f)
{
	struct inotify_root *root = inotify_lock(self);
	struct inotify *inst = inotify_of(f);

	if (load_relaxed(&inst->head)) {
		touch(inst);
		poked(inst);
	} else {
		tracked_store(&inst->poked, 0u);
	}
	inotify_unlock(self, root);
}

/* ---- numbers ------------------------------------------------------------------------------------- */

/* Locked.  -ENOSPC */
static int host_wd(struct slot *self, struct inotify_root *root, struct inotify *inst, int wd)
{
	uint64_t key = KEY_HOST | (uint32_t)wd;
	struct watch *w;

	if (!load_relaxed(&inst->token_wd) || wd < (int)load_relaxed(&inst->token_wd))
		return wd;
	w = watch_by_key(root, inst, key);
	if (!w)
		w = watch_new(self, root, inst, NULL, key, 0);
	return w ? w->wd : -ENOSPC;
}

int inotify_host_wd(struct slot *self, struct file *f, int wd)
{
	struct inotify_root *root = inotify_lock(self);

	wd = host_wd(self, root, inotify_of(f), wd);
	inotify_unlock(self, root);
	return wd;
}

/* ---- what the kernel said ------------------------------------------------------------------------- */

/* In words of its own, for the program's buffer may change under us. */
static bool next_event(const char **at, const char *end, struct inotify_event *e, char name[NAME_LIMIT + 1])
{
	if ((size_t)(end - *at) < sizeof(*e) || copy_from_user(e, *at, sizeof(*e)))
		return false;
	*at += sizeof(*e);
	name[0] = '\0';
	if (e->len > (size_t)(end - *at) || copy_from_user(name, *at, min_of(e->len, (uint32_t)NAME_LIMIT)))
		return false;
	name[min_of(e->len, (uint32_t)NAME_LIMIT)] = '\0';
	*at += e->len;
	return true;
}

static void give_one(struct slot *self, struct inotify_root *root, struct inotify *inst, const struct inotify_event *e,
		     const char *name)
{
	struct watch_event mine = {.wd = e->wd, .mask = e->mask, .cookie = e->cookie, .len = (uint32_t)strlen(name)};
	struct watch *w;

	if (e->mask & IN_Q_OVERFLOW) {
		queue_add(self, root, inst, &mine, name);
		return;
	}
	mine.wd = host_wd(self, root, inst, e->wd);
	if (mine.wd < 0)
		return; /* no memory for its number: nobody knows it */
	queue_add(self, root, inst, &mine, name);
	w = e->mask & IN_IGNORED ? watch_by_key(root, inst, KEY_HOST | (uint32_t)e->wd) : NULL;
	if (w)
		watch_remove(self, root, w);
}

static void give_locked(struct slot *self, struct inotify_root *root, struct inotify *inst, const char *at, const char *end)
{
	char name[NAME_LIMIT + 1];
	struct inotify_event e;

	poked(inst); /* the reader looks what is left (inotify_token_renew): nobody need touch the token before */
	while (next_event(&at, end, &e, name))
		if (e.wd != (int)load_relaxed(&inst->token_wd))
			give_one(self, root, inst, &e, name);
}

/* All of them are the program's own, by the numbers it knows? */
static bool all_plain(struct inotify *inst, const char *at, const char *end)
{
	int token = (int)load_relaxed(&inst->token_wd);
	char name[NAME_LIMIT + 1];
	struct inotify_event e;

	while (token && next_event(&at, end, &e, name))
		if (e.wd >= token)
			return false;
	return true;
}

bool inotify_give(struct slot *self, struct file *f, const void *events, size_t n)
{
	struct inotify_root *root = inotify_lock(self);
	struct inotify *inst = inotify_of(f);
	const char *at = events;
	bool plain = !load_relaxed(&inst->head) && all_plain(inst, at, at + n);

	if (!plain)
		give_locked(self, root, inst, at, at + n);
	inotify_unlock(self, root);
	return plain;
}
