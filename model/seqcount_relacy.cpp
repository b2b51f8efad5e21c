/* SPDX-License-Identifier: MIT */
/*
 * seqcount_relacy.cpp - lock/seqcount.h, the form for words: no fences, acquire loads and release stores.
 *
 *	-DBROKEN=1	the words are stored relaxed
 *	-DBROKEN=2	the words are loaded relaxed
 *	-DBROKEN=3	the end is stored relaxed and the words too
 */
#include "simulate.hpp"

#ifndef BROKEN
#define BROKEN 0
#endif

struct seqcount_test : rl::test_suite<seqcount_test, 2> {
	rl::atomic<unsigned> n, a, b;

	void before()
	{
		n($) = 0;
		a($) = 0;
		b($) = 0;
	}

	void writer()
	{
		rl::memory_order word = BROKEN == 1 || BROKEN == 3 ? rl::mo_relaxed : rl::mo_release;

		for (unsigned v = 1; v <= 2; v++) {
			n.store((n.load(rl::mo_relaxed, $) + 1) | 1, rl::mo_relaxed, $);
			a.store(v, word, $);
			b.store(v, word, $);
			n.store(n.load(rl::mo_relaxed, $) + 1, BROKEN == 3 ? rl::mo_relaxed : rl::mo_release, $);
		}
	}

	void reader()
	{
		rl::memory_order word = BROKEN == 2 ? rl::mo_relaxed : rl::mo_acquire;

		for (unsigned tries = 0; tries < 3; tries++) {
			unsigned begin = n.load(rl::mo_acquire, $);
			unsigned x = a.load(word, $), y = b.load(word, $);

			if (!(begin & 1) && n.load(rl::mo_relaxed, $) == begin)
				RL_ASSERT(x == y);
		}
	}

	void thread(unsigned index)
	{
		if (index)
			reader();
		else
			writer();
	}
};

int main()
{
	return simulate<seqcount_test>(300000);
}
