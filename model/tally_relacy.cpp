// SPDX-License-Identifier: MIT
/*
 * tally_relacy.cpp - a count of which a death leaves no doubt, under relacy.
 *
 * Follows src/segment/tally.h and tally.c step by step, with one entry of the ledger for each thread, and numbers of changes of
 * which a tag keeps three bits in place of sixteen.
 *
 * Threads: 0 takes a reference, drops it and takes another, and dies before one of its stores, or at the end; 1 and 2 take a
 * reference and drop it; 3 finds 0 dead, settles its slot, and drops what its ledger has then.
 * Property: in the end the count is what is held: nothing but the one reference of the structure.
 *
 *	(nothing)	as it is
 *	-DBROKEN=1	nobody marks a change before writing over it
 *	-DBROKEN=2	a change is settled before its slot says so
 *	-DBROKEN=3	recovery looks for the mark first and at the word after it
 *	-DBROKEN=4	the word is changed without release: who sees the tag need not see the slot's record
 *	-DBROKEN=5	a tag tells whose change it was, and not which
 */
#include "simulate.hpp"

#ifndef BROKEN
#define BROKEN 0
#endif

enum { NO_MARK = 1, SETTLE_FIRST, MARK_FIRST, RELAXED, SAME_TAG };

static const int TAG = 100; /* the word is a tag times this, and the count */
static const int NUMBER = 4, COMES = 2, DONE = 1; /* of a record */

struct tally : rl::test_suite<tally, 4> {
	rl::atomic<int> word, settled;
	rl::atomic<int> record[4], where[4], ledger[4];
	rl::atomic<int> dead;
	int life; /* stores that thread 0 does */

	void before()
	{
		word($).store(1, rl::mo_relaxed);
		settled($).store(0, rl::mo_relaxed);
		dead($).store(0, rl::mo_relaxed);
		for (int k = 0; k < 4; k++) {
			record[k]($).store(0, rl::mo_relaxed);
			where[k]($).store(0, rl::mo_relaxed);
			ledger[k]($).store(0, rl::mo_relaxed);
		}
		life = rl::rand(20);
	}

	static int tag_of(unsigned self, int number)
	{
		return 8 * (int)(self + 1) + (BROKEN == SAME_TAG ? 0 : number % 8);
	}

	bool alive(unsigned self)
	{
		return self || life-- > 0;
	}

	/* tally_help */
	void help(unsigned self, int seen)
	{
		int tag = seen / TAG, whose = tag / 8 - 1, r;

		if (BROKEN == NO_MARK || !tag || whose == (int)self)
			return;
		r = record[whose]($).load(rl::mo_acquire);
		if (tag_of(whose, r / NUMBER) != tag || r & DONE || !where[whose]($).load(rl::mo_acquire))
			return;
		if (word($).load(rl::mo_acquire) / TAG == tag)
			record[whose]($).compare_exchange_strong(r, r | DONE, rl::mo_acq_rel, rl::mo_acquire);
	}

	/* tally_get, tally_put.  False: died. */
	bool change(unsigned self, bool comes)
	{
		int old = word($).load(rl::mo_acquire);
		int number = record[self]($).load(rl::mo_relaxed) / NUMBER + 1;

		if (!alive(self))
			return false;
		record[self]($).store(number * NUMBER + (comes ? COMES : 0), rl::mo_release);
		if (!alive(self))
			return false;
		where[self]($).store(1, rl::mo_release);
		if (!alive(self))
			return false;
		if (comes)
			ledger[self]($).store(1, rl::mo_release);
		if (!alive(self))
			return false;
		do
			if (old / TAG != settled($).load(rl::mo_acquire))
				help(self, old);
		while (!word($).compare_exchange_strong(old, tag_of(self, number) * TAG + old % TAG + (comes ? 1 : -1),
							BROKEN == RELAXED ? rl::mo_acquire : rl::mo_acq_rel, rl::mo_acquire));
		if (!alive(self))
			return false;
		if (BROKEN == SETTLE_FIRST)
			settled($).store(tag_of(self, number), rl::mo_release);
		if (!comes)
			ledger[self]($).store(0, rl::mo_release);
		if (!alive(self))
			return false;
		where[self]($).store(0, rl::mo_release);
		if (!alive(self))
			return false;
		settled($).store(tag_of(self, number), rl::mo_release);
		return true;
	}

	/* tally_settle_dead */
	void settle()
	{
		int w, r = 0;
		bool done;

		if (!where[0]($).load(rl::mo_acquire))
			return;
		if (BROKEN == MARK_FIRST)
			r = record[0]($).load(rl::mo_acquire);
		w = word($).load(rl::mo_acquire);
		if (BROKEN != MARK_FIRST)
			r = record[0]($).load(rl::mo_acquire);
		done = r & DONE || w / TAG == tag_of(0, r / NUMBER);
		if (done != !!(r & COMES))
			ledger[0]($).store(0, rl::mo_release);
		where[0]($).store(0, rl::mo_release);
	}

	void recover()
	{
		while (!dead($).load(rl::mo_acquire))
			rl::yield(1, $);
		settle();
		if (!ledger[0]($).load(rl::mo_acquire))
			return;
		ledger[0]($).store(0, rl::mo_release);
		ledger[3]($).store(1, rl::mo_release);
		change(3, false);
	}

	void thread(unsigned self)
	{
		if (self == 3) {
			recover();
			return;
		}
		if (change(self, true) && change(self, false) && !self)
			change(self, true);
		if (!self)
			dead($).store(1, rl::mo_release);
	}

	void after()
	{
		int held = 1;

		for (int k = 0; k < 4; k++)
			held += ledger[k]($).load(rl::mo_relaxed);
		RL_ASSERT(held == 1);
		RL_ASSERT(word($).load(rl::mo_relaxed) % TAG == held);
	}
};

int main()
{
	return simulate<tally>(300000);
}
