/* SPDX-License-Identifier: MIT */
/*
 * epoch_pass.pml - src/epoch: advancing while nobody is interrupted, on processors with store buffers.
 *
 * One reader, which also retires (so it passes now and then), a retirer, an advancer that interrupts (and puts to sleep)
 * and one that does not.  The reader's stores go through a first-in first-out buffer (x86-TSO); an exchange or a fence of
 * its own waits until that is empty, and membarrier passes a moment at which it is.
 *
 * Property: the reader, having got the object, never finds it freed.
 *
 * Broken on purpose (races F, H and I in advance.c):
 *	-DPASS_OLD	who passed in the epoch before is not looked at either
 *	-DPASS_INSIDE	the reader passes in the middle of a section
 *	-DPASS_NOBODY	who has passed counts as nobody: freed at once
 *	-DSLEEP_UNSURE	asleep at once, without the membarrier in between
 *	-DSLOT_FIRST	the advancer looks at the slot's epoch before it looks whether it is asleep
 *	-DNO_WAKE	the entry looks away
 */
#define SECTIONS 2
#define TRIES 2 /* of each advancer */
#define ASLEEP 1
#define SOON 2

byte global = 1;
bool linked = true; /* memory; the retirer's store goes through to_link */
bool freed = false, quiet = false, sealed = false;
byte slot, passed, asleep; /* memory: the first two change through the buffer, the third by exchanges only */

mtype = { SLOT, PASSED };
chan buffer = [4] of { mtype, byte };
chan to_link = [1] of { bool };

proctype drain()
{
end:	do
	:: atomic { buffer?SLOT(slot) }
	:: atomic { buffer?PASSED(passed) }
	od
}

proctype drain_link()
{
end:	do
	:: atomic { to_link?linked }
	od
}

inline pass()
{
	r = global;
	atomic { empty(buffer); buffer!PASSED(r); r = 0 } /* a fence before it */
}

proctype reader()
{
	byte n = 0, r;
	bool got;

	do
	:: n == SECTIONS -> break
	:: n < SECTIONS ->
		r = global;
		atomic { buffer!SLOT(r); r = 0 }
#ifndef NO_WAKE
		if
		:: asleep != 0 ->
			atomic { empty(buffer) -> asleep = 0 }
		:: asleep == 0
		fi;
#endif
		got = linked;
#ifdef PASS_INSIDE
		pass();
#endif
		if
		:: got -> assert(!freed)
		:: else
		fi;
		atomic { buffer!SLOT(0); got = false; n++ }
		if
		:: pass()
		:: skip
		fi
	od
}

inline move(e)
{
	atomic { if :: global == e -> global = e + 1 :: else fi }
}

/* epoch_advance_try, with the membarrier */
proctype interrupter()
{
	byte e, tries;
	bool was_sealed;

	do
	:: tries == TRIES || freed -> break
	:: else ->
		atomic { tries++; e = global; was_sealed = sealed }
		if
		:: slot == 0 ->
			atomic {
				if
#ifdef SLEEP_UNSURE
				:: asleep != ASLEEP -> asleep = ASLEEP
#else
				:: asleep != ASLEEP -> asleep = SOON
#endif
				:: else
				fi
			}
		:: else
		fi;
		empty(buffer);
		empty(to_link);
		atomic { if :: asleep == SOON -> asleep = ASLEEP :: else fi };
		if
		:: slot == 0 ->
			if :: was_sealed -> quiet = true :: else fi;
			move(e)
		:: slot == e -> move(e)
		:: else
		fi
	od
}

/* epoch_pass of another thread */
proctype advancer()
{
	byte e, word, tries;
	bool was_sealed, sleeps;

	do
	:: tries == TRIES || freed -> break
	:: else ->
		atomic { tries++; e = global; was_sealed = sealed }
		if
		:: passed == e ->
#ifdef PASS_NOBODY
			if :: was_sealed -> quiet = true :: else fi;
#endif
			move(e)
#ifdef PASS_OLD
		:: passed + 1 == e -> move(e)
#endif
		:: else ->
#ifdef SLOT_FIRST
			word = slot;
			sleeps = asleep == ASLEEP;
#else
			sleeps = asleep == ASLEEP;
			word = slot;
#endif
			if
			:: sleeps && word == 0 ->
				if :: was_sealed -> quiet = true :: else fi;
				move(e)
			:: sleeps && word == e -> move(e)
			:: else
			fi;
			word = 0;
			sleeps = false
		fi
	od
}

proctype retirer()
{
	byte mark;

	to_link!false;
	empty(to_link);
	mark = global;
	sealed = true;
end:	do
	:: global >= mark + 2 -> break
	:: quiet -> break
	od;
	freed = true
}

init
{
	atomic {
		run drain();
		run drain_link();
		run reader();
		run interrupter();
		run advancer();
		run retirer()
	}
}
