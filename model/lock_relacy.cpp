/* SPDX-License-Identifier: MIT */
/*
 * lock_relacy.cpp - src/lock under the C++11 memory model: what the holder wrote is seen by the next one,
 * nobody sleeps for ever, and what a dead holder left is repaired by one recoverer first.
 *
 * The futex is modelled by a mutex and a condition variable, as the kernel's hash bucket.
 * Thread 0 may die holding the lock.  There are no time-outs: its death wakes the sleepers instead.
 *
 *	-DBROKEN=1	the release of the lock is relaxed
 *	-DBROKEN=2	taken after a sleep without the waiters' bit
 *	-DBROKEN=3	the recoverer hands on the lock without a release
 */
#include "simulate.hpp"

#ifndef BROKEN
#define BROKEN 0
#endif

enum { THREADS = 3, WAITERS = 0x80, LIVE = 1, DEAD, CLAIMED };

struct lock_test : rl::test_suite<lock_test, THREADS> {
	rl::atomic<unsigned> word, state;
	rl::var<int> data, half;
	rl::mutex bucket;
	rl::condition_variable queue;

	void before()
	{
		word($) = 0;
		state($) = LIVE;
		data($) = 0;
		half($) = 0;
	}

	void futex_wait(unsigned expected)
	{
		bucket.lock($);
		if (word.load(rl::mo_relaxed, $) == expected &&
		    state.load(rl::mo_relaxed, $) != DEAD)
			queue.wait(bucket, $);
		bucket.unlock($);
	}

	void futex_wake(bool all)
	{
		bucket.lock($);
		if (all)
			queue.notify_all($);
		else
			queue.notify_one($);
		bucket.unlock($);
	}

	/* slot claimed; data made whole; lock_release_dead */
	void recover(unsigned id)
	{
		unsigned was = DEAD, w;

		if (!state.compare_exchange_strong(was, CLAIMED, rl::mo_acq_rel, $))
			return;
		half($) = data($);
		w = word.load(rl::mo_acquire, $);
		while ((w & ~WAITERS) == id)
			if (word.compare_exchange_strong(w, 0,
							 BROKEN == 3 ? rl::mo_relaxed
								     : rl::mo_acq_rel, $)) {
				if (w & WAITERS)
					futex_wake(false);
				break;
			}
	}

	void acquire(unsigned id)
	{
		unsigned w = 0;

		if (word.compare_exchange_strong(w, id, rl::mo_acq_rel, $))
			return;
		for (;;) {
			w = 0;
			if (word.compare_exchange_strong(w, BROKEN == 2 ? id : id | WAITERS,
							 rl::mo_acq_rel, $))
				return;
			if (!(w & WAITERS) &&
			    !word.compare_exchange_strong(w, w | WAITERS, rl::mo_acq_rel, $))
				continue;
			if ((w & ~WAITERS) == 1 && state.load(rl::mo_acquire, $) == DEAD) {
				recover(1);
				continue;
			}
			futex_wait(w | WAITERS);
		}
	}

	void release()
	{
		unsigned w = word.exchange(0, BROKEN == 1 ? rl::mo_relaxed : rl::mo_acq_rel, $);

		if (w & WAITERS)
			futex_wake(false);
	}

	void thread(unsigned index)
	{
		acquire(index + 1);
		RL_ASSERT(data($) == half($));
		data($) = data($) + 1;
		if (index == 0 && rl::rand(2)) {
			state.store(DEAD, rl::mo_release, $); /* what the kernel tells is ordered */
			futex_wake(true);
			return;
		}
		half($) = half($) + 1;
		release();
	}
};

int main()
{
	return simulate<lock_test>(300000);
}
