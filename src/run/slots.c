/* SPDX-License-Identifier: MIT */
/*
 * slots.c - areas of slots and their contents.  Changed while the process has one thread, or for an
 * image that nobody can have entered; slots are never given back, since a thread may be waiting in
 * one.
 */
#include <sys/mman.h>

#include "base/copy.h"
#include "base/syscall.h"
#include "run/insn.h"
#include "run/slots.h"

enum {
	AREAS = 16,
	PLACES = 64, /* tried on each side of an image for an area of its own */
	SLOTS_A_PAGE = PAGE_BYTES / SLOT_BYTES,
};

#define REACH ((1L << 31) - (1L << 20))

extern char run_entry[] __attribute__((visibility("hidden")));
extern char run_slots[] __attribute__((visibility("hidden")));
extern struct run_links run_links __attribute__((visibility("hidden")));

static struct slot_area areas[AREAS]; /* [0]: our own */

static bool in_reach(uintptr_t a, uintptr_t b)
{
	long distance = (long)(a - b);

	return distance < REACH && distance > -REACH;
}

static bool area_reaches(uintptr_t base, size_t len, const struct run_image *im)
{
	uintptr_t text = im->bias + im->text, end = im->bias + im->end;

	return in_reach(base, im->bias) && in_reach(base, end) && in_reach(base + len, im->bias) &&
	       in_reach(base + len, end) && in_reach(base, text);
}

static long map_at(uintptr_t at, size_t len)
{
	return sys_call6(SYS_mmap, (long)at, (long)len, PROT_READ | PROT_EXEC,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

/* Maps LEN bytes at growing distances from the image. */
static uintptr_t map_near(const struct run_image *im, size_t len)
{
	uintptr_t low = ALIGN_DOWN(im->bias + im->text, PAGE_BYTES) - len;
	uintptr_t high = ALIGN_UP(im->bias + im->end, PAGE_BYTES);

	for (unsigned int i = 0; i < PLACES; i++) {
		uintptr_t step = (uintptr_t)i << 24;
		uintptr_t at[2] = {high + step, low - step};

		for (unsigned int side = 0; side < 2; side++)
			if (area_reaches(at[side], len, im) &&
			    map_at(at[side], len) == (long)at[side])
				return at[side];
	}
	return 0;
}

static struct slot_area *own_area(void)
{
	areas[0].base = (uintptr_t)run_slots;
	areas[0].count = SLOTS_OWN;
	return &areas[0];
}

struct slot_area *slots_near(const struct run_image *im, uint32_t count)
{
	size_t len = ALIGN_UP((size_t)count * SLOT_BYTES, PAGE_BYTES);
	unsigned int i;

	own_area();
	for (i = 0; i < AREAS && areas[i].base; i++)
		if (areas[i].count - areas[i].used >= count &&
		    area_reaches(areas[i].base, areas[i].count * (size_t)SLOT_BYTES, im))
			return &areas[i];
	if (i == AREAS)
		return NULL;
	areas[i].base = map_near(im, len);
	areas[i].count = (uint32_t)(len / SLOT_BYTES);
	return areas[i].base ? &areas[i] : NULL;
}

uint32_t slots_next_page(void)
{
	return ALIGN_UP(own_area()->used, (uint32_t)SLOTS_A_PAGE);
}

void slots_take(uint32_t end)
{
	areas[0].used = ALIGN_UP(end, (uint32_t)SLOTS_A_PAGE);
}

uintptr_t slots_own_address(uint32_t i)
{
	return slot_address(own_area(), i);
}

struct run_links *slots_links(void)
{
	static bool mapped;

	if (!mapped) {
		long at = sys_call6(SYS_mmap, (long)&run_links, LINKS_BYTES, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

		if (at != (long)&run_links)
			return NULL;
		run_links.entry = (uint64_t)run_entry;
		mapped = true;
	}
	return &run_links;
}

int slots_protect(const struct slot_area *area, uint32_t count, bool writable)
{
	int prot = PROT_READ | (writable ? PROT_WRITE : PROT_EXEC);
	uintptr_t start = ALIGN_DOWN(slot_address(area, area->used), PAGE_BYTES);
	uintptr_t end = ALIGN_UP(slot_address(area, area->used + count), PAGE_BYTES);

	return (int)sys_call3(SYS_mprotect, (long)start, (long)(end - start), prot);
}

static uint8_t *put_bytes(uint8_t *to, const uint8_t *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = from[i];
	return to + n;
}

/* A 32-bit distance from END to TARGET. */
static int put_distance(uint8_t *to, uintptr_t end, uintptr_t target)
{
	if (!in_reach(end, target))
		return -ERANGE;
	raw_store32(to, (uint32_t)(target - end));
	return 0;
}

static int put_jump(uint8_t **to, uintptr_t target)
{
	int rc = put_distance(*to + 1, (uintptr_t)*to + JUMP_LEN, target);

	**to = 0xe9;
	*to += JUMP_LEN;
	return rc;
}

/* lea raw(%rip), %rcx; jmp run_entry; raw: syscall */
static void put_call(uint8_t **to, uint8_t *slot)
{
	static const uint8_t lea[] = {0x48, 0x8d, 0x0d}, far[] = {0xff, 0x25},
			     call[] = {0x0f, 0x05};
	uint8_t *disp = *to + sizeof(lea), *after_lea = disp + 4, *raw = after_lea;

	put_bytes(*to, lea, sizeof(lea));
	if (put_jump(&raw, (uintptr_t)run_entry)) {
		raw = put_bytes(after_lea, far, sizeof(far)) + 4;
		raw_store32(raw - 4, (uint32_t)(slot + SLOT_ENTRY - raw));
		raw_store64(slot + SLOT_ENTRY, (uint64_t)run_entry);
	}
	raw_store32(disp, (uint32_t)(raw - after_lea));
	*to = put_bytes(raw, call, sizeof(call));
}

/* Moves the instruction at FROM, which is at address AT in the program. */
static int put_moved(uint8_t **to, const struct insn *in, const uint8_t *from, uintptr_t at)
{
	uint8_t *start = *to;
	uintptr_t target;

	*to = put_bytes(start, from, in->len);
	if (!insn_rip_relative(in))
		return 0;
	target = at + in->len + (uintptr_t)(intptr_t)(int32_t)raw_load32(from + in->disp_at);
	return put_distance(start + in->disp_at, (uintptr_t)*to, target);
}

/* Puts the window of SITE, which is at START, into its slot.  Returns where it ends there. */
static uint8_t *put_window(uint8_t *slot, const struct run_site *site, uintptr_t start, int *rc)
{
	uint8_t *to = slot;
	unsigned int at = 0;
	struct insn in;

	*rc = 0;
	while (at < site->len && !*rc) {
		if (!insn_decode(&in, site->bytes + at, site->len - at) ||
		    insn_is_syscall(&in) != (at == site->before))
			*rc = -EBADMSG;
		else if (at == site->before)
			put_call(&to, slot);
		else if (at < site->before ? !insn_relocatable(&in) : !insn_relocatable_behind(&in))
			*rc = -EBADMSG;
		else
			*rc = put_moved(&to, &in, site->bytes + at, start + at);
		at += in.len;
	}
	if (!*rc && at <= site->before)
		*rc = -EBADMSG;
	return to;
}

/* mov $nr, %eax; syscall: nine sites of ten. */
static bool is_plain(const struct run_site *site)
{
	return site->len == 7 && site->before == 5 && site->bytes[0] == 0xb8 &&
	       site->bytes[5] == 0x0f && site->bytes[6] == 0x05;
}

int slot_fill(const struct slot_area *area, uint32_t i, const struct run_image *im,
	      const struct run_site *site)
{
	uint8_t *slot = (uint8_t *)slot_address(area, i), *to;
	uintptr_t start = im->bias + site->at - site->before;
	int rc = 0;

	if (is_plain(site)) {
		to = put_bytes(slot, site->bytes, site->before);
		put_call(&to, slot);
	} else {
		to = put_window(slot, site, start, &rc);
	}
	if (!rc)
		rc = put_jump(&to, start + site->len);
	raw_store64(slot + SLOT_SITE, im->bias + site->at);
	if (area == &areas[0])
		raw_store32(slot + SLOT_BASE, slot_to_links(i, offsetof(struct run_links, zero)));
	return rc;
}

uintptr_t slots_own_site(uint32_t i)
{
	const char *slot = run_slots + (size_t)i * SLOT_BYTES;

	return raw_load64(slot + raw_load32(slot + SLOT_BASE)) + raw_load64(slot + SLOT_SITE);
}

bool slot_is_for(uintptr_t addr, uintptr_t at)
{
	for (unsigned int i = 0; i < AREAS; i++) {
		uintptr_t in = addr - areas[i].base;

		if (in < (uintptr_t)areas[i].used * SLOT_BYTES)
			return in % SLOT_BYTES == 0 &&
			       at == (i ? raw_load64((const void *)(addr + SLOT_SITE)) : slots_own_site((uint32_t)(in / SLOT_BYTES)));
	}
	return false;
}
