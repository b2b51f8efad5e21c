/* SPDX-License-Identifier: MIT */
/*
 * lock.pml - src/lock: exclusion, no lost wake-up, and the locks of a dead owner.
 *
 * Properties: one holder at a time; whoever recovers does so alone; everybody ends (a lost wake-up
 * shows as an invalid end state, since sleepers here have no time-out except for a dead owner).
 * Thread 0 may die while it holds the lock.  Its slot can then be recovered and given to a new thread
 * with the same id, which takes the same lock: the case in lock.h's "why".
 *
 * Broken on purpose:
 *	-DNO_WAIT_BIT	whoever takes the lock after a sleep takes it without the waiters' bit
 *	-DSWAP_OWNER	a waiter that saw a dead owner swaps its own number in without claiming the slot
 */
#define THREADS 3
#define IDLE 0
#define LIVE 1
#define DEAD 2
#define CLAIMED 3

byte owner = 0; /* id + 1 */
bool waiters = false;
byte asleep = 0; /* bit per thread, in the kernel's queue */
byte inside = 0; /* holders that run */
byte state[THREADS];
bool torn = false; /* what the dead owner left half made */

inline futex_wake_one()
{
	atomic {
		if
		:: asleep & 1 -> asleep = asleep & 254
		:: asleep & 2 -> asleep = asleep & 253
		:: asleep & 4 -> asleep = asleep & 251
		:: asleep == 0
		fi
	}
}

inline lock_release()
{
	atomic { had = waiters; owner = 0; waiters = false };
	if
	:: had -> futex_wake_one()
	:: else
	fi
}

/* The dead thread's slot is claimed by state; only then its locks change hands. */
inline recover(id)
{
	atomic {
		if
		:: state[id] == DEAD -> state[id] = CLAIMED; mine = true
		:: else -> mine = false
		fi
	};
	if
	:: mine ->
		torn = false;
		atomic {
			if
			:: owner == id + 1 -> had = waiters; owner = 0; waiters = false
			:: else -> had = false
			fi
		};
		if
		:: had -> futex_wake_one()
		:: else
		fi;
		state[id] = IDLE
	:: else
	fi
}

inline lock_acquire()
{
	slept = false;
	do
	:: atomic { owner == 0 ->
		owner = me + 1;
#ifndef NO_WAIT_BIT
		if
		:: slept -> waiters = true
		:: else
		fi
#endif
		}
		break
	:: atomic { owner != 0 -> seen = owner; waiters = true }
		slept = true;
		if
		:: state[seen - 1] == DEAD ->
#ifdef SWAP_OWNER
			/* the delay between the look and the swap is what breaks it */
			atomic {
				if
				:: owner == seen -> owner = me + 1; mine = true
				:: else -> mine = false
				fi
			};
			if
			:: mine -> torn = false; state[seen - 1] = IDLE; break
			:: else
			fi
#else
			recover(seen - 1)
#endif
		:: state[seen - 1] != DEAD ->
			atomic {
				if
				:: owner == seen && waiters -> asleep = asleep | (1 << me)
				:: else
				fi
			};
			/* woken, or out of patience with an owner that is dead by now */
			if
			:: !(asleep & (1 << me))
			:: owner != 0 && state[owner - 1] == DEAD -> asleep = asleep & (255 - (1 << me))
			fi
		fi
	od;
	inside++;
	assert(inside == 1);
	assert(!torn)
}

inline critical_section()
{
	lock_acquire();
	torn = true;
	torn = false;
	inside--;
	lock_release()
}

proctype thread(byte me)
{
	byte seen, n;
	bool had, mine, slept;

	for (n : 1 .. 2) {
		critical_section()
	}
}

/* Takes the lock and dies; another one may be born into its slot. */
proctype mortal(byte me)
{
	byte seen;
	bool had, mine, slept;

	lock_acquire();
	torn = true;
	atomic { inside--; state[me] = DEAD };
	if
	:: atomic { state[me] == IDLE -> state[me] = LIVE }
		critical_section()
	:: true
	fi
}

/* Somebody who looks for dead threads and does not want the lock. */
proctype reaper()
{
	bool had, mine;

	if
	:: state[0] == DEAD -> recover(0)
	:: true
	fi
}

init
{
	atomic {
		state[0] = LIVE;
		state[1] = LIVE;
		state[2] = LIVE;
		run mortal(0);
		run thread(1);
		run thread(2);
		run reaper()
	}
}
