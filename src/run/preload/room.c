/* SPDX-License-Identifier: MIT */
/*
 * room.c - memory of a call that wants more than its caller's stack may have: threads with the least of stacks, signal handlers
 * on one of their own, and posix_spawn's child, whose stack has 32 KiB beside its arguments, make any call.
 *
 * room_take	maps and unmaps.  What a vfork's child still has when its exec succeeds, or when it is killed, is its parent's
 *		memory: such a child's rooms are in a list of its run_proc's, and the parent lets go of what is left there
 * route_room	each of the first threads has one that is always there; others have one mapped at their first call with a path, until they
 *		end: the loader has little for thread-local data of an auditor's.  A call within a call (a handler's) maps one
 *
 * Limits: what shares its parent's memory and is no vfork's child (serve.h) leaves its rooms there at exec.
 */
#include <sys/mman.h>

#include "run/preload/serve.h"

struct room {
	struct room *next; /* of a vfork's child */
	size_t size; /* of the map */
	_Alignas(16) char bytes[];
};

static void unmap(struct room *room)
{
	sys_call3(SYS_munmap, (long)room, (long)room->size, 0);
}

void *room_take(size_t size)
{
	struct run_proc *p = proc_here();
	struct room *room;
	long at;

	size += sizeof(*room);
	at = sys_call6(SYS_mmap, 0, (long)size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at < 0 && at > -4096)
		return NULL;
	room = (struct room *)at;
	room->size = size;
	if (p->borrowed) {
		room->next = p->rooms;
		fence_compiler(); /* a handler that comes here takes and gives in between */
		p->rooms = room;
	}
	return room->bytes;
}

void room_give(void *bytes)
{
	struct run_proc *p = proc_here();
	struct room *room = (struct room *)(void *)((char *)bytes - offsetof(struct room, bytes)), **at = &p->rooms;

	while (p->borrowed && *at && *at != room)
		at = &(*at)->next; /* others are before it if a handler left by longjmp */
	if (p->borrowed && *at)
		*at = room->next;
	unmap(room);
}

void rooms_left_by(struct run_proc *p)
{
	for (struct room *room = p->rooms, *next; room; room = next) {
		next = room->next;
		unmap(room);
	}
	p->rooms = NULL;
}

/* ---- for paths -------------------------------------------------------------------------------- */

#define ROUTE_ROOMS 64
static struct route_room rooms[ROUTE_ROOMS];
static atomic_u64 rooms_taken;

static struct route_room *free_one(void)
{
	uint64_t taken = load_relaxed(&rooms_taken); /* the CAS decides */

	do {
		if (!~taken)
			return NULL;
	} while (!cas_acq_rel(&rooms_taken, &taken, taken | (taken + 1))); /* pairs with route_room_leave */
	return &rooms[__builtin_ctzll(~taken)];
}

/* The bit of one that is always there; 0: it is mapped. */
static uint64_t bit_of(const struct route_room *room)
{
	uintptr_t n = ((uintptr_t)room - (uintptr_t)rooms) / sizeof(*room);

	return n < ROUTE_ROOMS ? 1ULL << n : 0;
}

static __attribute__((noinline)) bool own_room(struct run_thread *me)
{
	long at;

	me->room = free_one();
	if (me->room)
		return true;
	at = sys_call6(SYS_mmap, 0, sizeof(*me->room), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at < 0 && at > -4096)
		return false;
	me->room = (struct route_room *)at;
	return true;
}

struct route_room *route_room_take(void)
{
	struct run_thread *me = &run_thread;

	if (unlikely(me->room_used) || (unlikely(!me->room) && !own_room(me)))
		return room_take(sizeof(struct route_room));
	me->room_used = true;
	return me->room;
}

void route_room_give(struct route_room *room)
{
	if (likely(room == run_thread.room))
		run_thread.room_used = false;
	else
		room_give(room);
}

void route_room_leave(void)
{
	struct route_room *room = run_thread.room;

	run_thread.room = NULL;
	if (room && bit_of(room))
		and_acq_rel(&rooms_taken, ~bit_of(room)); /* pairs with free_one */
	else if (room)
		sys_call3(SYS_munmap, (long)room, sizeof(*room), 0);
}

void route_rooms_after_fork(void)
{
	store_relaxed(&rooms_taken, run_thread.room ? bit_of(run_thread.room) : 0); /* the only thread */
}
