/* SPDX-License-Identifier: MIT */
/*
 * slots.h - the code a patched site jumps to, one slot a site:
 *
 *	the window's instructions before the call, moved
 *	lea  raw(%rip), %rcx
 *	jmp  run_entry
 *  raw:	syscall
 *	the window's instructions after the call, moved
 *	jmp  the window's end
 *
 * A call that passes is made at raw, with every register, the stack pointer included, as the site
 * had it: clone, vfork and exec need nothing special, and the kernel restarts it there.  A served
 * call goes on behind raw.  The last word of a slot and the word that SLOT_BASE leads to add up to the
 * site's address: the unwind description of the slots (entry.S) makes a slot look like its site, at
 * the syscall instruction.
 *
 * 1024 slots lie in this library's own text; when they are used up or too far from a site, more are
 * mapped near it.  Unwinders know nothing of the latter.
 *
 * The slots of a ready copy (ready.h) are pages of its file, the same in every process; what differs
 * between processes they find in struct run_links, which lies behind the own slots:
 *
 *	lea  raw(%rip), %rcx
 *	jmp  *run_links.entry(%rip)
 *  raw:	syscall
 *	...
 *	jmp  *run_links.back[i](%rip)
 */
#ifndef SHELF_RUN_SLOTS_H
#define SHELF_RUN_SLOTS_H

#define SLOT_BYTES 64 /* a power of two: the unwind description finds the last word by it */
#define SLOT_SITE 56 /* the site's address, or what is to be added to the base for it */
#define SLOT_BASE 48 /* own slots: 32 bits, from the slot to the word with the base */
#define SLOT_ENTRY 48 /* others: run_entry's address, where a direct jump would not reach */
#define SLOTS_OWN 1024
#define LINKS_BACK 64 /* run_links.back */
#define LINKS_BYTES 12288 /* run_links, in whole pages */

#ifndef __ASSEMBLER__
#include "run/scan.h"

struct slot_area {
	uintptr_t base;
	uint32_t used, count;
};

struct run_links {
	uint64_t entry; /* run_entry */
	uint64_t zero; /* the base of slots that hold their site's address */
	uint64_t unused[LINKS_BACK / 8 - 2];
	uint64_t back[SLOTS_OWN]; /* by slot: the window's end; behind an image's last one: its bias, their base */
};

_Static_assert(offsetof(struct run_links, back) == LINKS_BACK && sizeof(struct run_links) <= LINKS_BYTES, "slots.h");

/* Bytes from own slot I to the word AT of run_links. */
static inline uint32_t slot_to_links(uint32_t i, size_t at)
{
	return (uint32_t)((SLOTS_OWN - i) * SLOT_BYTES + at);
}

/* An area with room for COUNT slots within reach of IM; NULL: none can be mapped. */
struct slot_area *slots_near(const struct run_image *im, uint32_t count);

/* Opens the pages of the next COUNT slots for writing, or closes them again for running. */
int slots_protect(const struct slot_area *area, uint32_t count, bool writable);

/* Fills slot number I of AREA for SITE.  -ERANGE: something it refers to is out of reach.
 * -EBADMSG: the window is not whole movable instructions with the syscall where SITE says. */
int slot_fill(const struct slot_area *area, uint32_t i, const struct run_image *im,
	      const struct run_site *site);

/* Own slots from the start of a page on, as a ready copy has them: the first one's number.  slots_take: all before END are used. */
uint32_t slots_next_page(void);
void slots_take(uint32_t end);
uintptr_t slots_own_address(uint32_t i);
/* The site that own slot I was made for. */
uintptr_t slots_own_site(uint32_t i);
/* The words that ready slots go by; NULL: no memory. */
struct run_links *slots_links(void);

/* Whether ADDR is the start of a slot made for the site at AT. */
bool slot_is_for(uintptr_t addr, uintptr_t at);

static inline uintptr_t slot_address(const struct slot_area *area, uint32_t i)
{
	return area->base + (uintptr_t)i * SLOT_BYTES;
}

#endif
#endif
