/* SPDX-License-Identifier: MIT */
/*
 * dentry_relacy.cpp - name_seq, the chain and the store into dentry.inode (src/vfs/dentry.c, walk.c,
 * src/ramfs/names_record.c) under the C++11 memory model.
 *
 * One directory, one chain.  A file moves from name A to name B (B's dentry is new, linked into the chain with no inode),
 * and another file is created as C meanwhile by the same writer.  A looker asks for A, then for B, each in one turn of
 * name_seq: having found A gone, it must find B.  Another asks for B, then for A: having found B, A must be gone.
 * The inode's fields are plain: relacy reports a looker that sees the pointer before the fields.
 *
 *	-DBROKEN=1	lookers do not check name_seq
 *	-DBROKEN=2	the inode is stored into the dentry without release
 *	-DBROKEN=3	the dentry is linked into the chain without release
 *	-DBROKEN=4	name_seq ends before the old name is gone
 */
#include "simulate.hpp"

#ifndef BROKEN
#define BROKEN 0
#endif

enum { A = 1, B, C, LOOKERS = 2, TRIES = 3 };

struct inode {
	rl::var<int> fields;
};

struct dentry {
	rl::var<int> name; /* constant once linked */
	rl::atomic<dentry *> next;
	rl::atomic<inode *> ino;
};

struct names_test : rl::test_suite<names_test, LOOKERS + 1> {
	rl::atomic<unsigned> seq;
	rl::atomic<dentry *> bucket;
	dentry d[4];
	inode file, fresh;

	void before()
	{
		seq($) = 0;
		file.fields($) = 7;
		d[A].name($) = A;
		d[A].next($) = nullptr;
		d[A].ino($) = &file;
		bucket($) = &d[A];
	}

	/* chain_insert */
	void insert(dentry *x, int name)
	{
		x->name($) = name;
		x->ino.store(nullptr, rl::mo_relaxed, $);
		x->next.store(bucket.load(rl::mo_relaxed, $), rl::mo_release, $);
		bucket.store(x, BROKEN == 3 ? rl::mo_relaxed : rl::mo_release, $);
	}

	/* chain_remove */
	void remove(dentry *x)
	{
		rl::atomic<dentry *> *at = &bucket;

		for (dentry *y; (y = at->load(rl::mo_relaxed, $)); at = &y->next) {
			if (y == x) {
				at->store(x->next.load(rl::mo_relaxed, $), rl::mo_release, $);
				return;
			}
		}
	}

	void seq_begin()
	{
		seq.store((seq.load(rl::mo_relaxed, $) + 1) | 1, rl::mo_relaxed, $);
	}

	void seq_end()
	{
		seq.store(seq.load(rl::mo_relaxed, $) + 1, rl::mo_release, $);
	}

	void publish(dentry *x, inode *i)
	{
		x->ino.store(i, BROKEN == 2 ? rl::mo_relaxed : rl::mo_release, $);
	}

	void writer()
	{
		/* create C */
		fresh.fields($) = 8;
		insert(&d[C], C);
		publish(&d[C], &fresh);
		/* rename A to B */
		insert(&d[B], B);
		seq_begin();
		publish(&d[B], &file);
		if (BROKEN == 4)
			seq_end();
		d[A].ino.store(nullptr, rl::mo_release, $);
		if (BROKEN != 4)
			seq_end();
		remove(&d[A]);
	}

	/* dentry_find_epoch */
	inode *find(int name)
	{
		for (dentry *x = bucket.load(rl::mo_acquire, $); x; x = x->next.load(rl::mo_acquire, $)) {
			if (x->name($) != name)
				continue;
			if (inode *i = x->ino.load(rl::mo_acquire, $))
				return i;
		}
		return nullptr;
	}

	/* lookup_step; false: it was busy each time */
	bool look(int name, inode **found)
	{
		for (int n = 0; n < TRIES; n++) {
			unsigned begin = seq.load(rl::mo_acquire, $);

			*found = find(name);
			if (BROKEN == 1 || (!(begin & 1) && seq.load(rl::mo_relaxed, $) == begin))
				return true;
		}
		return false;
	}

	void looker(bool old_first)
	{
		inode *first, *second, *c;

		if (!look(old_first ? A : B, &first) || !look(old_first ? B : A, &second))
			return;
		if (old_first)
			RL_ASSERT(first || second);
		else
			RL_ASSERT(!first || !second);
		if (first)
			RL_ASSERT(first->fields($) == 7);
		if (look(C, &c) && c)
			RL_ASSERT(c->fields($) == 8);
	}

	void thread(unsigned id)
	{
		if (id == LOOKERS)
			writer();
		else
			looker(id == 0);
	}
};

int main()
{
	return simulate<names_test>(200000);
}
