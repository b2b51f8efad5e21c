/* SPDX-License-Identifier: MIT */
/*
 * radix_relacy.cpp - src/epoch/radix.c: a tree grows from a direct value to one node, gets a second value,
 * loses it, and shrinks again, under a reader. The node is plain until it is published; retiring waits
 * for the reader (here: is left out).
 *
 *	-DBROKEN=1	the root is published relaxed
 *	-DBROKEN=2	the reader loads the root relaxed
 */
#include "simulate.hpp"

#ifndef BROKEN
#define BROKEN 0
#endif

enum { FIRST = 64, SECOND = 128, NODE = 1 };

struct radix_test : rl::test_suite<radix_test, 2> {
	rl::atomic<unsigned> root; /* 0, a direct value, or NODE */
	rl::var<int> zeroed; /* the node's memory before it is a node */
	rl::atomic<unsigned> slot[2];

	void before()
	{
		root($) = FIRST;
		slot[0]($) = 0;
		slot[1]($) = 0;
	}

	void writer()
	{
		zeroed($) = 1;
		slot[0].store(FIRST, rl::mo_relaxed, $);
		slot[1].store(SECOND, rl::mo_relaxed, $);
		root.store(NODE, BROKEN == 1 ? rl::mo_relaxed : rl::mo_release, $); /* radix_grow */
		slot[1].store(0, rl::mo_release, $); /* radix_erase */
		root.store(FIRST, rl::mo_release, $); /* radix_shrink */
	}

	unsigned lookup(unsigned index)
	{
		unsigned word = root.load(BROKEN == 2 ? rl::mo_relaxed : rl::mo_acquire, $);

		if (word != NODE)
			return index ? 0 : word;
		RL_ASSERT(zeroed($) == 1);
		return slot[index].load(rl::mo_acquire, $);
	}

	void thread(unsigned index)
	{
		unsigned second;

		if (!index) {
			writer();
			return;
		}
		RL_ASSERT(lookup(0) == FIRST);
		second = lookup(1);
		RL_ASSERT(second == 0 || second == SECOND);
		RL_ASSERT(lookup(0) == FIRST);
	}
};

int main()
{
	return simulate<radix_test>(200000);
}
