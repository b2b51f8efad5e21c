/* SPDX-License-Identifier: MIT */
/*
 * handover.pml - src/epoch/attach.c: a process without membarrier joins while readers that do not
 * fence are inside.
 *
 * One reader of an old process, which fences only if it sees need_fence. The joining process sets SET,
 * waits until old store buffers have drained, sets DONE, and may then advance with a fence alone.
 * An advancer of an old process uses membarrier until it sees DONE. Two passes over the slot
 * after the unlinking stand for the two advances; the epoch itself is in epoch.pml.
 *
 *	-DNO_DRAIN		DONE without waiting for the buffers
 *	-DADVANCE_EARLY		the joining process advances at SET
 */
#define NONE 0
#define SET 1
#define DONE 2

byte need_fence = NONE;
byte slot = 0;
bool linked = true;
bool freed = false;
chan to_slot = [2] of {byte};

proctype drain()
{
end:	do
	:: atomic { to_slot?slot }
	od
}

proctype reader()
{
	byte n = 0;
	bool got;

	do
	:: n == 2 -> break
	:: else ->
		to_slot!1;
		if
		:: need_fence != NONE -> empty(to_slot)
		:: else
		fi;
		got = linked;
		if
		:: got -> assert(!freed)
		:: else
		fi;
		to_slot!0;
		n++
	od
}

/* able: has membarrier */
inline reclaim(able)
{
	do
	:: freed -> break
	:: else ->
		seen = need_fence;
		if
		:: able && seen != DONE ->
			empty(to_slot); /* membarrier */
			atomic { if :: seen == SET && need_fence == SET -> need_fence = DONE :: else fi };
			may = true
#ifdef ADVANCE_EARLY
		:: !able -> may = true
#else
		:: !able -> may = (seen == DONE)
#endif
		:: able && seen == DONE -> may = true
		fi;
		if
		:: may && !linked_before -> linked_before = true; linked = false /* unlinked, fenced */
		:: may && linked_before && slot == 0 -> freed = true
		:: else
		fi
	od
}

proctype old_advancer()
{
	byte seen;
	bool may, linked_before = false;

	if
	:: reclaim(true)
	:: true
	fi
}

proctype joining()
{
	byte seen;
	bool may, linked_before = false;

	atomic { if :: need_fence == NONE -> need_fence = SET :: else fi };
#ifndef NO_DRAIN
	empty(to_slot);
#endif
	atomic { if :: need_fence == SET -> need_fence = DONE :: else fi };
	reclaim(false)
}

/* Killed between SET and DONE: somebody able finishes. */
proctype joining_killed()
{
	atomic { if :: need_fence == NONE -> need_fence = SET :: else fi };
#ifdef ADVANCE_EARLY
	byte seen;
	bool may, linked_before = false;
	reclaim(false)
#endif
}

init
{
	atomic {
		run drain();
		run reader();
		run old_advancer();
		if
		:: run joining()
		:: run joining_killed()
		fi
	}
}
