/* SPDX-License-Identifier: MIT */
/*
 * epoch_relacy.cpp - the fence form of src/epoch under the C++11 memory model.
 *
 * Two readers, and a retirer that unlinks, seals, advances and frees.  `object` is plain: relacy reports
 * a read that races with the free, also where no interleaving of the values shows it.
 *
 *	-DBROKEN=1	no fence at entry
 *	-DBROKEN=2	the exit is not a release
 *	-DBROKEN=3	freed at mark + 1
 *	-DBROKEN=4	no fence between unlinking and reading the mark
 */
#include "simulate.hpp"

#ifndef BROKEN
#define BROKEN 0
#endif

enum { READERS = 2, SECTIONS = 2 };

struct epoch_test : rl::test_suite<epoch_test, READERS + 2> {
	rl::atomic<unsigned> global, slot[READERS], linked;
	rl::var<int> object;

	void before()
	{
		global($) = 2;
		for (int i = 0; i < READERS; i++)
			slot[i]($) = 0;
		object($) = 1;
		linked($) = 1;
	}

	void reader(unsigned id)
	{
		for (int n = 0; n < SECTIONS; n++) {
			/* epoch_enter */
			slot[id].store(global.load(rl::mo_relaxed, $) << 1 | 1,
				       BROKEN == 2 ? rl::mo_relaxed : rl::mo_release, $);
			if (BROKEN != 1)
				rl::atomic_thread_fence(rl::mo_seq_cst, $);
			if (linked.load(rl::mo_acquire, $))
				RL_ASSERT(object($) == 1);
			/* epoch_exit */
			slot[id].store(0, BROKEN == 2 ? rl::mo_relaxed : rl::mo_release, $);
		}
	}

	/* epoch_advance_try */
	void advance()
	{
		unsigned e = global.load(rl::mo_acquire, $);

		rl::atomic_thread_fence(rl::mo_seq_cst, $);
		for (int i = 0; i < READERS; i++) {
			unsigned word = slot[i].load(rl::mo_acquire, $);

			if (word && word >> 1 != e)
				return;
		}
		global.compare_exchange_strong(e, e + 1, rl::mo_acq_rel, $);
	}

	void retirer()
	{
		unsigned mark;

		linked.store(0, rl::mo_release, $);
		/* bags_seal */
		if (BROKEN != 4)
			rl::atomic_thread_fence(rl::mo_seq_cst, $);
		mark = global.load(rl::mo_acquire, $);
		for (int tries = 0; tries < 4; tries++) {
			advance();
			if (global.load(rl::mo_acquire, $) >= mark + (BROKEN == 3 ? 1 : 2)) {
				object($) = 0; /* freed and used again */
				return;
			}
		}
	}

	void thread(unsigned index)
	{
		if (index < READERS)
			reader(index);
		else if (index == READERS)
			retirer();
		else
			for (int tries = 0; tries < 2; tries++)
				advance();
	}
};

int main()
{
	return simulate<epoch_test>(300000);
}
