/* SPDX-License-Identifier: MIT */
/*
 * epoch_pass_relacy.cpp - passing and sleeping of src/epoch under the C++11 memory model (races H and I in advance.c).
 *
 * A reader that passes between its sections, one that sleeps at first and fences until it is woken by its own entry (then,
 * as nobody calls membarrier here, it fences still, if for itself alone), an advancer and a retirer that advance without
 * interrupting anybody.  `object` is plain: relacy reports a read that races with the free.
 *
 *	-DBROKEN=1	no fence in the pass
 *	-DBROKEN=2	who passed in the epoch before is not looked at
 *	-DBROKEN=3	the entry that wakes does not fence
 *	-DBROKEN=4	the pass comes while the section still lasts
 */
#include "simulate.hpp"

#ifndef BROKEN
#define BROKEN 0
#endif

enum { SECTIONS = 3, ASLEEP = 1 };

struct epoch_pass_test : rl::test_suite<epoch_pass_test, 4> {
	rl::atomic<unsigned> global, linked;
	rl::atomic<unsigned> passed, slot, asleep; /* the first reader's; the second one's */
	rl::var<int> object;

	void before()
	{
		global($) = 2;
		linked($) = 1;
		passed($) = 0;
		slot($) = 0;
		asleep($) = ASLEEP;
		object($) = 1;
	}

	void use(bool got)
	{
		if (got)
			RL_ASSERT(object($) == 1);
	}

	bool look()
	{
		return linked.load(rl::mo_acquire, $) != 0;
	}

	/* epoch_pass, the first half */
	void pass(unsigned e)
	{
		if (BROKEN != 1)
			rl::atomic_thread_fence(rl::mo_seq_cst, $);
		passed.store(e, rl::mo_release, $);
	}

	void passing_reader()
	{
		for (int n = 0; n < SECTIONS; n++) {
			bool got = look();

			if (BROKEN != 4)
				use(got);
			pass(global.load(BROKEN == 1 ? rl::mo_relaxed : rl::mo_acquire, $));
			if (BROKEN == 4)
				use(got);
		}
	}

	void sleeping_reader()
	{
		/* epoch_enter, epoch_enter_fenced */
		slot.store(global.load(rl::mo_relaxed, $) << 1 | 1, rl::mo_release, $);
		if (asleep.load(rl::mo_relaxed, $)) {
			asleep.exchange(0, rl::mo_acq_rel, $);
			if (BROKEN != 3)
				rl::atomic_thread_fence(rl::mo_seq_cst, $);
		}
		use(look());
		slot.store(0, rl::mo_release, $);
		/* awake, and not fenced: the store may be seen late */
		slot.store(global.load(rl::mo_relaxed, $) << 1 | 1, rl::mo_release, $);
		use(look());
		slot.store(0, rl::mo_release, $);
	}

	/* epoch_pass, the second half */
	void advance()
	{
		unsigned e = global.load(rl::mo_acquire, $), p, word;

		rl::atomic_thread_fence(rl::mo_seq_cst, $);
		p = passed.load(rl::mo_acquire, $);
		if (p != e && !(BROKEN == 2 && p + 1 == e))
			return;
		if (asleep.load(rl::mo_acquire, $) != ASLEEP)
			return;
		word = slot.load(rl::mo_acquire, $);
		if (word && word >> 1 != e)
			return;
		global.compare_exchange_strong(e, e + 1, rl::mo_acq_rel, $);
	}

	void retirer()
	{
		unsigned mark;

		linked.store(0, rl::mo_release, $);
		rl::atomic_thread_fence(rl::mo_seq_cst, $);
		mark = global.load(rl::mo_acquire, $);
		for (int tries = 0; tries < 4; tries++) {
			advance();
			if (global.load(rl::mo_acquire, $) >= mark + 2) {
				object($) = 0; /* freed and used again */
				return;
			}
		}
	}

	void thread(unsigned index)
	{
		if (index == 0)
			passing_reader();
		else if (index == 1)
			sleeping_reader();
		else if (index == 2)
			retirer();
		else
			for (int tries = 0; tries < 3; tries++)
				advance();
	}
};

int main()
{
	return simulate<epoch_pass_test>(400000);
}
