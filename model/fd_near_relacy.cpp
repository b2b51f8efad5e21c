// SPDX-License-Identifier: MIT
/*
 * fd_near_relacy.cpp - near numbers under relacy: install, close and dup2 on the same words,
 * without the table's lock, and the gate that dup2 closes.
 *
 * Follows src/fd/near.c and dup2_locked() of src/fd/slots.c step by step.  Two words, both
 * with a file at first.  The lock is a mutex.
 *
 * Threads: 0 and 1 close number 0 and open a file of their own, and close that; 2 puts a file over
 * number 0 by dup2, with the gate closed; 3 looks number 0 up.
 * Properties: who closes a number got a file that was put there, and each reference of a slot goes to one
 * hand; an open takes number 1 only if 0 was seen taken; between dup2's CAS and the opening of the gate
 * the word stays what dup2 made it; contents of a file are seen by who finds it.
 *
 *	(nothing)	as it is
 *	-DBROKEN=1	close looks at the gate first and at the word after it
 *	-DBROKEN=2	close takes the word by a load and a store
 *	-DBROKEN=3	install takes the word by a load and a store
 *	-DBROKEN=4	install publishes without release.  Both its stores: in C++11 a plain store by the one who
 *			did the CAS before it carries the CAS's release on
 *	-DBROKEN=5	dup2 leaves the gate open
 *	-DBROKEN=6	dup2 takes the word by a load and a store, as it might under a lock
 *	-DBROKEN=7	close gives the number back before it has the file in its hands: 0 in place of moving
 */
#include "simulate.hpp"

#ifndef BROKEN
#define BROKEN 0
#endif

enum { GATE_FIRST = 1, CLOSE_PLAIN, INSTALL_PLAIN, RELAXED_PUBLISH, NO_GATE, DUP2_PLAIN, CLOSE_EARLY };

static const int FREE = 0, MOVING = 100, FILES = 4; /* MOVING + thread; 1 .. FILES is open with that file */

struct near_words : rl::test_suite<near_words, 4> {
	rl::atomic<int> word[2];
	rl::atomic<int> gate;
	rl::mutex lock;
	rl::var<int> contents[FILES + 1]; /* written before the file is published */
	rl::var<int> dropped[FILES + 1]; /* written by who drops its last reference; borrowers never look */
	rl::atomic<int> refs[FILES + 1]; /* references in slots and in hands */

	void before()
	{
		for (int f = 1; f <= FILES; f++) {
			refs[f]($).store(1, rl::mo_relaxed);
			contents[f]($) = 0;
			dropped[f]($) = 0;
		}
		contents[1]($) = 1;
		word[0]($).store(1, rl::mo_relaxed); /* file 1 */
		word[1]($).store(FREE, rl::mo_relaxed);
		gate($).store(0, rl::mo_relaxed);
	}

	/* The one who drops it: a file dropped twice, or lost, shows here. */
	void put(int f)
	{
		if (refs[f]($).fetch_sub(1, rl::mo_acq_rel) != 1)
			return;
		RL_ASSERT(contents[f]($) == f && !dropped[f]($));
		dropped[f]($) = 1;
	}

	bool change(int k, int from, int to, bool plain, bool relaxed = false)
	{
		if (!plain)
			return word[k]($).compare_exchange_strong(from, to, relaxed ? rl::mo_acquire : rl::mo_acq_rel,
								  rl::mo_acquire);
		if (word[k]($).load(rl::mo_relaxed) != from)
			return false;
		word[k]($).store(to, rl::mo_release);
		return true;
	}

	/* near_enter: true if the lock was taken */
	bool enter()
	{
		if (!gate($).load(rl::mo_acquire))
			return false;
		lock.lock($);
		if (gate($).load(rl::mo_relaxed))
			gate($).store(0, rl::mo_release);
		return true;
	}

	/* fd_install_from; -1: none free */
	int install(int f, unsigned self)
	{
		bool locked;
		int k;

		contents[f]($) = f;
		locked = enter();
		for (k = 0; k < 2; k++) {
			if (word[k]($).load(rl::mo_relaxed))
				continue;
			if (change(k, FREE, MOVING + (int)self, BROKEN == INSTALL_PLAIN, BROKEN == RELAXED_PUBLISH))
				break;
		}
		if (k < 2) {
			RL_ASSERT(BROKEN == INSTALL_PLAIN || word[k]($).load(rl::mo_relaxed) == MOVING + (int)self);
			word[k]($).store(f, BROKEN == RELAXED_PUBLISH ? rl::mo_relaxed : rl::mo_release);
		}
		if (locked)
			lock.unlock($);
		return k < 2 ? k : -1;
	}

	/* fd_remove; the file, 0 is EBADF */
	int remove(int k, unsigned self)
	{
		for (;;) {
			bool locked, done;
			int old;

			if (BROKEN == GATE_FIRST) {
				locked = enter();
				old = word[k]($).load(rl::mo_acquire);
			} else {
				old = word[k]($).load(rl::mo_acquire);
				locked = enter();
				if (locked)
					old = word[k]($).load(rl::mo_acquire);
			}
			if (old == FREE || old >= MOVING) {
				if (locked)
					lock.unlock($);
				return 0;
			}
			done = change(k, old, BROKEN == CLOSE_EARLY ? FREE : MOVING + (int)self, BROKEN == CLOSE_PLAIN);
			if (done) {
				RL_ASSERT(BROKEN == CLOSE_PLAIN || word[k]($).load(rl::mo_relaxed) == MOVING + (int)self);
				word[k]($).store(FREE, rl::mo_release);
			}
			if (locked)
				lock.unlock($);
			if (done)
				return old;
		}
	}

	/* dup2_locked; a word that moves is left alone */
	int dup2(int k, int f)
	{
		int old, replaced = -1;

		contents[f]($) = f;
		lock.lock($);
		if (BROKEN != NO_GATE)
			gate($).store(1, rl::mo_release);
		old = word[k]($).load(rl::mo_acquire);
		while (old < MOVING) {
			if (change(k, old, f, BROKEN == DUP2_PLAIN)) {
				replaced = old;
				break;
			}
			old = word[k]($).load(rl::mo_acquire);
		}
		/* The record is settled by what stands here. */
		if (replaced >= 0)
			RL_ASSERT(word[k]($).load(rl::mo_acquire) == f);
		gate($).store(0, rl::mo_release);
		lock.unlock($);
		return replaced;
	}

	void open_and_close(unsigned self)
	{
		int f = 2 + (int)self, fd, got = remove(0, self);

		if (got)
			put(got);
		fd = install(f, self);
		if (fd < 0)
			return;
		got = remove(fd, self);
		if (got)
			put(got);
	}

	void thread(unsigned id)
	{
		int old;

		if (id < 2) {
			open_and_close(id);
		} else if (id == 2) {
			old = dup2(0, 4);
			if (old > 0)
				put(old);
		} else {
			/* fd_borrow: the file stays while we look */
			old = word[0]($).load(rl::mo_acquire);
			if (old != FREE && old < MOVING)
				RL_ASSERT(contents[old]($) == old);
		}
	}
};

int main()
{
	return simulate<near_words>(60000);
}
