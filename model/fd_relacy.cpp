// SPDX-License-Identifier: MIT
/*
 * fd_relacy.cpp - the descriptor slot under relacy: publish, lookup with a counted
 * reference, dup2, close, with files reused at once.
 *
 * Follows src/fd/slots.c, src/fd/scheme_section.h and src/base/refcount.h step by
 * step.  Files are type-stable here: the moment one is released another thread makes it a new
 * file at another number.  That is more than the library does (it waits for an epoch), and is what
 * the recheck of the slot is for.
 *
 * Threads: 0 puts a new file over number 0 by dup2, drops the old one, and closes; 1 and 2 look
 * number 0 up; 3 takes what was released, fills it anew, opens it as number 1, closes it.
 * Properties: who gets a file at number 0 has one that was published there, alive
 * and whole until it is put; each file is released once for each time it was made;
 * without the close, number 0 is never found empty.
 *
 *	(nothing)	as it is
 *	-DDUP2_ONLY	as it is, without the close: number 0 is never empty
 *	-DBROKEN=1	the slot is not looked at again after the count went up
 *	-DBROKEN=2	a dead count is taken for a reference
 *	-DBROKEN=3	publish without release
 *	-DBROKEN=4	dup2 in two stores: it empties the number before it fills it
 *	-DBROKEN=5	a put that reaches zero releases without a CAS from zero to dead
 *	-DBROKEN=6	the count of a reused file is set by a relaxed store, as ref_init() does: then
 *			neither the add nor the recheck need see what came before it.  So files that
 *			are reused at once would need a release there; the library frees through the epoch.
 */
#include "simulate.hpp"

#ifndef BROKEN
#define BROKEN 0
#endif
#if BROKEN == 4
#define DUP2_ONLY
#endif

enum { NO_RECHECK = 1, IGNORE_DEAD, RELAXED_PUBLISH, TWO_STORES, PUT_ONE_STEP, RELAXED_INIT };

static const unsigned SATURATED = 0x40000000u, DEAD = 0xc0000000u, DEAD_MIDDLE = DEAD + (~0u - DEAD) / 2;

#ifdef DUP2_ONLY
static const bool dup2_only = true;
#else
static const bool dup2_only = false;
#endif

struct file {
	rl::atomic<unsigned> count;
	rl::var<int> home; /* the number it was published at; -1: released */
};

struct slots : rl::test_suite<slots, 4> {
	rl::atomic<file *> slot[2];
	rl::atomic<file *> released;
	file files[2];

	void before()
	{
		for (int k = 0; k < 2; k++) {
			files[k].count($).store(1, rl::mo_relaxed);
			files[k].home($) = 0;
		}
		slot[0]($).store(&files[0], rl::mo_release);
		slot[1]($).store(nullptr, rl::mo_release);
		released($).store(nullptr, rl::mo_release);
	}

	/* refcount.h */
	bool ref_get(file *f)
	{
		unsigned old = f->count($).fetch_add(1, rl::mo_acq_rel);

		return old < SATURATED || BROKEN == IGNORE_DEAD;
	}

	bool ref_put(file *f)
	{
		unsigned one = 1, zero = 0;

		if (BROKEN != PUT_ONE_STEP && f->count($).load(rl::mo_relaxed) == 1 &&
		    f->count($).compare_exchange_strong(one, DEAD_MIDDLE, rl::mo_acq_rel, rl::mo_acquire))
			return true;
		if (f->count($).fetch_sub(1, rl::mo_acq_rel) != 1)
			return false;
		if (BROKEN == PUT_ONE_STEP) {
			f->count($).store(DEAD_MIDDLE, rl::mo_release);
			return true;
		}
		return f->count($).compare_exchange_strong(zero, DEAD_MIDDLE, rl::mo_acq_rel,
							   rl::mo_acquire);
	}

	/* fd_release: reusable at once.  The variable finds two releases of one life, by race or by value. */
	void put(file *f)
	{
		if (!ref_put(f))
			return;
		RL_ASSERT(f->home($) != -1);
		f->home($) = -1;
		released($).store(f, rl::mo_release);
	}

	/* fd_section_get: nullptr is EBADF */
	file *get(int number)
	{
		for (;;) {
			file *f = slot[number]($).load(rl::mo_acquire);

			if (!f)
				return nullptr;
			if (!ref_get(f))
				continue;
			if (BROKEN == NO_RECHECK || slot[number]($).load(rl::mo_acquire) == f)
				return f;
			put(f);
		}
	}

	/* fd_remove: under the table's lock nobody else changes which file stands there */
	void close(int number)
	{
		file *f = slot[number]($).load(rl::mo_acquire);

		slot[number]($).store(nullptr, rl::mo_release);
		put(f);
	}

	void swapper()
	{
		file *b = &files[1], *old;

		if (BROKEN == TWO_STORES) {
			old = slot[0]($).exchange(nullptr, rl::mo_acq_rel);
			slot[0]($).store(b, rl::mo_release);
		} else {
			old = slot[0]($).exchange(b, rl::mo_acq_rel);
		}
		put(old);
		if (dup2_only)
			return;
		close(0);
	}

	void looker()
	{
		file *f = get(0);

		if (dup2_only)
			RL_ASSERT(f);
		if (!f)
			return;
		RL_ASSERT(f->home($) == 0);
		put(f);
	}

	void opener()
	{
		file *f = released($).exchange(nullptr, rl::mo_acq_rel);

		if (!f)
			return;
		f->home($) = 1;
		f->count($).store(1, BROKEN == RELAXED_INIT ? rl::mo_relaxed : rl::mo_release);
		slot[1]($).store(f, BROKEN == RELAXED_PUBLISH ? rl::mo_relaxed : rl::mo_release);
		f = get(1);
		if (!f)
			return;
		RL_ASSERT(f->home($) == 1);
		put(f);
		close(1);
	}

	/* In the variant with relaxed publishing someone else looks at number 1. */
	void reader_of_one()
	{
		file *f = slot[1]($).load(rl::mo_acquire);

		if (f)
			RL_ASSERT(f->home($) == 1);
	}

	void thread(unsigned id)
	{
		if (id == 0)
			swapper();
		else if (id == 3)
			opener();
		else if (id == 2 && BROKEN == RELAXED_PUBLISH)
			reader_of_one();
		else
			looker();
	}
};

int main()
{
	return simulate<slots>(30000);
}
