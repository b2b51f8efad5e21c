// SPDX-License-Identifier: MIT
/* spin.c - waiting for the spinning locks of spin.h. */
#include "fd/spin.h"

/* One turn of waiting: pause, and after many a nap. */
static void fd_spin_wait(struct fd_spin *s, unsigned *turns)
{
	uint32_t seen;

	if (++*turns < FD_SPIN_TURNS) {
		cpu_relax();
		return;
	}
	add_relaxed(&s->sleepers, 1u); /* a hint for the release */
	seen = load_relaxed(&s->word); /* futex_wait compares it again */
	if (seen)
		futex_wait(&s->word, seen, FD_SPIN_NAP_NS);
	sub_relaxed(&s->sleepers, 1u);
	*turns = 0;
}

void fd_spin_lock_slow(struct fd_spin *s)
{
	unsigned turns = 0;

	do {
		while (load_relaxed(&s->word)) /* only a hint */
			fd_spin_wait(s, &turns);
	} while (xchg_acq_rel(&s->word, 1u)); /* pairs with fd_spin_unlock */
}

/* The fast path has counted us in already. */
void fd_read_lock_slow(struct fd_spin *s)
{
	unsigned turns = 0;

	do {
		sub_acq_rel(&s->word, 1u);
		while (load_relaxed(&s->word) >= FD_RW_WRITER) /* only a hint */
			fd_spin_wait(s, &turns);
	} while (add_acq_rel(&s->word, 1u) >= FD_RW_WRITER); /* pairs with fd_write_unlock */
}

void fd_write_lock_slow(struct fd_spin *s)
{
	unsigned turns = 0;
	uint32_t none;

	do {
		while (load_relaxed(&s->word)) /* only a hint */
			fd_spin_wait(s, &turns);
		none = 0;
	} while (!cas_acq_rel(&s->word, &none, FD_RW_WRITER)); /* pairs with the two unlocks */
}
