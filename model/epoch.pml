/* SPDX-License-Identifier: MIT */
/*
 * epoch.pml - src/epoch: entry, sealing, advancing and freeing, on processors with store buffers.
 *
 * Each processor's stores to the variables that matter go through a first-in first-out
 * buffer, drained by a process of its own at any later moment (x86-TSO).  A fence waits for
 * an empty buffer.  membarrier() passes, for every processor in turn, a
 * moment at which its buffer is empty.
 *
 * Property: a reader that got the object never finds it freed.
 *
 *	-DMEMBARRIER	entry stores only, the advancer calls membarrier
 *	(neither)	entry stores and fences, the advancer fences
 * Broken on purpose:
 *	-DNO_ENTRY_FENCE	neither the entry's fence nor membarrier: race A in advance.c
 *	-DNO_SEAL_FENCE		the mark is read while the unlinking waits in the buffer: race C
 *	-DONE_EPOCH		freed at mark + 1
 *	-DQUIET_UNSEALED	race F: freed although unlinked after the scan's fence
 */
#define READERS 2
#define LAST 4

byte global = 1;
bool linked = true; /* memory; the retirer's store goes through to_link */
bool freed = false;
byte slot[READERS]; /* memory; 0 outside, else the epoch */
bool quiet = false; /* a scan that began after the sealing found nobody */
bool sealed = false;

chan to_slot[READERS] = [2] of {byte};
chan to_link = [1] of {bool};

inline fence_reader(id)
{
	empty(to_slot[id])
}

inline fence_others()
{
#if defined(MEMBARRIER) && !defined(NO_ENTRY_FENCE)
	fence_reader(0);
	fence_reader(1);
	empty(to_link)
#else
	skip
#endif
}

proctype drain_reader(byte id)
{
end:	do
	:: atomic { to_slot[id]?slot[id] }
	od
}

proctype drain_retirer()
{
end:	do
	:: atomic { to_link?linked }
	od
}

proctype reader(byte id; byte sections)
{
	byte n = 0, r;
	bool got;

	do
	:: n == sections -> break
	:: else ->
		r = global;
		to_slot[id]!r;
		r = 0; /* fewer states */
#if !defined(MEMBARRIER) && !defined(NO_ENTRY_FENCE)
		fence_reader(id);
#endif
		got = linked;
		if
		:: got -> assert(!freed)
		:: else
		fi;
		got = false;
		to_slot[id]!0;
		n++
	od
}

proctype advancer()
{
	byte e, i;
	bool blocked, nobody, was_sealed;

	do
	:: global == LAST -> break
	:: freed -> break
	:: else ->
		e = global;
#ifdef QUIET_UNSEALED
		fence_others();
		was_sealed = sealed;
#else
		was_sealed = sealed;
		fence_others();
#endif
		blocked = false;
		nobody = true;
		i = 0;
		do
		:: i == READERS || blocked -> break
		:: else ->
			atomic {
				if
				:: slot[i] == 0
				:: slot[i] == e -> nobody = false
				:: else -> nobody = false; blocked = true
				fi
			}
			i++
		od;
		if
		:: nobody && was_sealed -> quiet = true
		:: else
		fi;
		if
		:: !blocked -> atomic { if :: global == e -> global = e + 1 :: else fi }
		:: else
		fi
	od
}

proctype retirer()
{
	byte mark;

	to_link!false;
#ifndef NO_SEAL_FENCE
	empty(to_link);
#endif
	mark = global;
	sealed = true;
	do
#ifdef ONE_EPOCH
	:: global >= mark + 1 -> break
#else
	:: global >= mark + 2 -> break
#endif
	:: quiet -> break
	:: global == LAST -> goto out
	od;
	freed = true;
out:
	skip
}

init
{
	atomic {
		run drain_reader(0);
		run drain_reader(1);
		run drain_retirer();
		run reader(0, 2);
		run reader(1, 1);
		run advancer();
		run retirer()
	}
}
