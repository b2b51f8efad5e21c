/* SPDX-License-Identifier: MIT */
/* check.c - do a table's maps of what is free agree with its words?  For who is alone, of a table whose parts are all there. */
#include "fd/fd_priv.h"

struct map_check {
	struct fd_table *tab;
	bool repair, good;
};

/* A word that is there only while a thread is busy with it. */
static void word_sane(struct map_check *m, atomic_u64 *word)
{
	uint64_t now = load_relaxed(word); /* nobody else is there, in all of this file */

	if (!now || (fd_word_is_open(now) && !(now & FD_WORD_RESERVED) && fd_word_file(now)))
		return;
	m->good = false;
	if (m->repair)
		store_relaxed(word, 0);
}

static void bits_are(struct map_check *m, atomic_u64 *bits, uint64_t should)
{
	if (load_relaxed(bits) == should)
		return;
	m->good = false;
	if (m->repair)
		store_relaxed(bits, should);
}

/* True: all numbers of the page are taken.  `low_taken`: its first 64 are elsewhere. */
static bool page_agrees(struct map_check *m, struct fd_page *page, struct fd_map *map, bool low_taken)
{
	bool full = true;
	unsigned i, k;

	for (i = 0; map && i < FD_MAP_WORDS; i++) {
		uint64_t should = 0;

		for (k = 0; page && k < 64; k++) {
			word_sane(m, &page->word[i * 64 + k]);
			should |= (uint64_t)(load_relaxed(&page->word[i * 64 + k]) != 0) << k;
		}
		bits_are(m, &map->used[i], low_taken && !i ? ~UINT64_C(0) : should);
		full &= load_relaxed(&map->used[i]) == ~UINT64_C(0);
	}
	return map && full;
}

/* The bits of `full` of `n` pages; true: all are. */
static bool pages_agree(struct map_check *m, atomic_ptr(struct fd_page) * page, atomic_ptr(struct fd_map) * map, unsigned n,
			atomic_u64 *full, bool first_are_head)
{
	bool all = true;
	unsigned i, k;

	for (i = 0; i < ALIGN_UP(n, 64u) / 64; i++) {
		uint64_t should = 0;

		for (k = 0; k < 64 && i * 64 + k < n; k++) {
			bool is_head = first_are_head && i * 64 + k < FD_DIR;

			should |= (uint64_t)(is_head || page_agrees(m, load_relaxed(&page[i * 64 + k]), load_relaxed(&map[i * 64 + k]),
								    n == FD_DIR && !(i | k)))
				  << k;
		}
		bits_are(m, &full[i], should);
		all &= should == ~UINT64_C(0);
	}
	return all;
}

static void far_agrees(struct map_check *m, struct fd_far *far)
{
	unsigned i, k;

	for (i = 0; i < FD_FAR / 64; i++) {
		uint64_t should = 0;

		for (k = 0; k < 64; k++) {
			struct fd_node *node = load_relaxed(&far->node[i * 64 + k]);

			should |= (uint64_t)(node && pages_agree(m, node->page, node->map, FD_NODE, node->full, !(i | k))) << k;
		}
		bits_are(m, &far->full[i], should);
	}
}

bool fd_check_table(struct slot *self, struct fd_table *tab, bool repair)
{
	struct map_check m = {tab, repair, true};
	uint32_t sole = load_relaxed(&tab->sole);
	struct fd_far *far = load_relaxed(&tab->far);
	unsigned fd;

	if (load_relaxed(&tab->gate) || (sole && !slot_by_id(self->seg, sole))) {
		m.good = false;
		if (repair) {
			store_relaxed(&tab->gate, 0);
			store_relaxed(&tab->sole, 0);
		}
	}
	for (fd = 0; fd < FD_NEAR; fd++)
		word_sane(&m, fd_near_word(tab, fd));
	pages_agree(&m, tab->page, tab->map, FD_DIR, &tab->full, false);
	if (far)
		far_agrees(&m, far);
	return m.good;
}
