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
 * call goes on behind raw.  The last word of a slot is the site's address: the unwind description
 * of the slots (entry.S) makes a slot look like its site, at the syscall instruction.
 *
 * 1024 slots lie in this library's own text; when they are used up or too far from a site, more are
 * mapped near it.  Unwinders know nothing of the latter.
 */
#ifndef SHELF_RUN_SLOTS_H
#define SHELF_RUN_SLOTS_H

#define SLOT_BYTES 64 /* a power of two: the unwind description finds the last word by it */
#define SLOT_SITE 56 /* the site's address */
#define SLOT_ENTRY 48 /* run_entry's address, where a direct jump would not reach */
#define SLOTS_OWN 1024

#ifndef __ASSEMBLER__
#include "run/scan.h"

struct slot_area {
	uintptr_t base;
	uint32_t used, count;
};

/* An area with room for COUNT slots within reach of IM; NULL: none can be mapped. */
struct slot_area *slots_near(const struct run_image *im, uint32_t count);

/* Opens the pages of the next COUNT slots for writing, or closes them again for running. */
int slots_protect(const struct slot_area *area, uint32_t count, bool writable);

/* Fills slot number I of AREA for SITE.  -ERANGE: something it refers to is out of reach.
 * -EBADMSG: the window is not whole movable instructions with the syscall where SITE says. */
int slot_fill(const struct slot_area *area, uint32_t i, const struct run_image *im,
	      const struct run_site *site);

/* Whether ADDR is the start of a slot made for the site at AT. */
bool slot_is_for(uintptr_t addr, uintptr_t at);

static inline uintptr_t slot_address(const struct slot_area *area, uint32_t i)
{
	return area->base + (uintptr_t)i * SLOT_BYTES;
}

#endif
#endif
