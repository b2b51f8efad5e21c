/* SPDX-License-Identifier: MIT */
/*
 * owner.c - F_SETOWN, F_SETSIG: kept and given back; a regular file never sends the signal.
 *
 * Data: file.owner: the id in the low half, the kind in bits 32-39, the signal in bits 40-47.
 */
#include <signal.h>

#include "api/fcntl_priv.h"
#include "base/syscall.h"

#define OWNER_KIND_SHIFT 32
#define OWNER_SIG_SHIFT 40
#define F_GETOWNER_UIDS_ 17

static uint64_t owner_get(struct use *u)
{
	return load_relaxed(&u->f->owner); /* relaxed, here and below: nothing hangs on it */
}

static void owner_put(struct use *u, uint64_t mask, uint64_t bits)
{
	uint64_t old = owner_get(u);

	while (!cas_acq_rel(&u->f->owner, &old, (old & ~mask) | bits))
		;
}

static int owner_set(struct use *u, int kind, int id)
{
	long target = kind == F_OWNER_PGRP ? -(long)id : id;

	if (id < 0 || (id && sys_call3(SYS_kill, target, 0, 0) == -ESRCH))
		return -ESRCH;
	owner_put(u, 0xffffffffULL | 0xffULL << OWNER_KIND_SHIFT,
		  (uint32_t)id | (uint64_t)(unsigned)kind << OWNER_KIND_SHIFT);
	return 0;
}

static int owner_kind(struct use *u)
{
	return (int)(owner_get(u) >> OWNER_KIND_SHIFT & 0xff);
}

static int owner_setown(struct use *u, int who)
{
	if (who == INT_MIN)
		return -EINVAL;
	return owner_set(u, who < 0 ? F_OWNER_PGRP : F_OWNER_PID, who < 0 ? -who : who);
}

static int owner_ex(struct use *u, int cmd, struct f_owner_ex *ex)
{
	if (!ex)
		return -EFAULT;
	if (cmd == F_GETOWN_EX) {
		ex->type = (typeof(ex->type))owner_kind(u);
		ex->pid = (int)(uint32_t)owner_get(u);
		return 0;
	}
	if ((unsigned)ex->type > F_OWNER_PGRP)
		return -EINVAL;
	return owner_set(u, (int)ex->type, ex->pid);
}

/* The real and the effective user who set the owner: not kept. */
static int owner_uids(struct use *u, uint32_t *uids)
{
	if (!uids)
		return -EFAULT;
	if ((uint32_t)owner_get(u))
		return -EINVAL;
	uids[0] = uids[1] = 0; /* nobody has */
	return 0;
}

int fcntl_owner(struct use *u, int cmd, uintptr_t arg)
{
	int id = (int)(uint32_t)owner_get(u);

	switch (cmd) {
	case F_GETOWN:
		return owner_kind(u) == F_OWNER_PGRP ? -id : id;
	case F_SETOWN:
		return owner_setown(u, (int)arg);
	case F_GETOWN_EX:
	case F_SETOWN_EX:
		return owner_ex(u, cmd, (struct f_owner_ex *)arg);
	case F_GETOWNER_UIDS_:
		return owner_uids(u, (uint32_t *)arg);
	case F_GETSIG:
		return (int)(owner_get(u) >> OWNER_SIG_SHIFT & 0xff);
	case F_SETSIG:
		if (arg > 64)
			return -EINVAL;
		owner_put(u, 0xffULL << OWNER_SIG_SHIFT, (uint64_t)arg << OWNER_SIG_SHIFT);
		return 0;
	default:
		return -EINVAL;
	}
}
