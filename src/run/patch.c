/* SPDX-License-Identifier: MIT */
/* patch.c - jumps into an image's text, under its own protection before and after. */
#include <sys/mman.h>

#include "base/copy.h"
#include "base/syscall.h"
#include "run/patch.h"
#include "run/slots.h"

bool patch_wants(const struct run_site *site, const uint8_t *wanted)
{
	if (site->why == SITE_SIGRETURN)
		return false;
	return site->nr < 0 || site->nr >= RUN_NUMBERS || wanted[site->nr];
}

static uint8_t *site_start(const struct run_image *im, const struct run_site *site)
{
	return (uint8_t *)(im->bias + site->at - site->before);
}

static bool same_bytes(const struct run_image *im, const struct run_site *site)
{
	const uint8_t *p = site_start(im, site);

	for (unsigned int i = 0; i < site->len; i++)
		if (p[i] != site->bytes[i])
			return false;
	return true;
}

/* The part of the text that holds the sites in question. */
struct span {
	uint32_t from, to;
	uint32_t count;
};

static int protect_text(const struct run_image *im, const struct span *span, int prot)
{
	uintptr_t start = ALIGN_DOWN(im->bias + span->from, PAGE_BYTES);
	uintptr_t end = ALIGN_UP(im->bias + span->to, PAGE_BYTES);

	return (int)sys_call3(SYS_mprotect, (long)start, (long)(end - start), prot);
}

/*
 * Makes the page at P a copy of our own.  The instruction reads and writes: one fault, where looking
 * at the page first would cost another.
 */
static void own_page(const uint8_t *p)
{
	__asm__ volatile("orb $0, %0" : "+m"(*(uint8_t *)p) : : "cc");
}

/* The pages of a window, unless LAST is the page. */
static uintptr_t own_window(const uint8_t *p, unsigned int len, uintptr_t last)
{
	uintptr_t first = (uintptr_t)p >> PAGE_SHIFT, end = ((uintptr_t)p + len - 1) >> PAGE_SHIFT;

	if (first != last)
		own_page(p);
	if (end != first)
		own_page(p + len - 1);
	return end;
}

/* Checks each site against memory and makes its slot, which nothing jumps to yet. */
static int fill_slots(const struct run_image *im, struct table_cursor c, const uint8_t *wanted,
		      const struct slot_area *area, struct patch_count *n)
{
	struct run_site site;
	uintptr_t page = 0;
	int rc;

	while ((rc = table_read(&c, &site)) > 0) {
		n->sites++;
		if (!patch_wants(&site, wanted))
			continue;
		if (site.why != SITE_OK) {
			n->left++;
			continue;
		}
		page = own_window(site_start(im, &site), site.len, page);
		rc = same_bytes(im, &site) ? slot_fill(area, area->used + n->patched, im, &site) :
					     -ESTALE;
		if (rc)
			return rc;
		n->patched++;
	}
	return rc;
}

static int make_slots(const struct run_image *im, struct table_cursor c, const uint8_t *wanted,
		      const struct slot_area *area, const struct span *span, struct patch_count *n)
{
	int rc = slots_protect(area, span->count, true), rc2;

	if (rc)
		return rc;
	rc = fill_slots(im, c, wanted, area, n);
	rc2 = slots_protect(area, span->count, false);
	return rc ? rc : rc2;
}

static void write_jump(uint8_t *at, uintptr_t target)
{
	at[0] = 0xe9;
	raw_store32(at + 1, (uint32_t)(target - ((uintptr_t)at + JUMP_LEN)));
}

static struct span span_of_wanted(struct table_cursor c, const uint8_t *wanted)
{
	struct span span = {0};
	struct run_site site;

	while (table_read(&c, &site) > 0) {
		if (site.why != SITE_OK || !patch_wants(&site, wanted))
			continue;
		if (!span.count++)
			span.from = site.at - site.before;
		span.to = site.at - site.before + site.len;
	}
	return span;
}

int patch_image(const struct run_image *im, struct table_cursor c, const uint8_t *wanted,
		struct patch_count *n)
{
	struct span span = span_of_wanted(c, wanted);
	struct slot_area *area = slots_near(im, max_of(span.count, 1u));
	struct run_site site;
	int rc, rc2;

	*n = (struct patch_count){0};
	if (!area)
		return -ENOSPC;
	if (!span.count)
		return fill_slots(im, c, wanted, area, n);
	rc = protect_text(im, &span, PROT_READ | PROT_WRITE);
	if (rc)
		return rc;
	rc = make_slots(im, c, wanted, area, &span, n);
	while (!rc && table_read(&c, &site) > 0)
		if (site.why == SITE_OK && patch_wants(&site, wanted))
			write_jump(site_start(im, &site), slot_address(area, area->used++));
	rc2 = protect_text(im, &span, im->text_prot);
	return rc ? rc : rc2;
}

/* Whether the site is a jump of ours. */
static bool is_patched(const struct run_image *im, const struct run_site *site)
{
	const uint8_t *p = site_start(im, site);
	uintptr_t target = (uintptr_t)p + JUMP_LEN;

	if (site->why != SITE_OK || p[0] != 0xe9)
		return false;
	target += (uintptr_t)(intptr_t)(int32_t)raw_load32(p + 1);
	return slot_is_for(target, im->bias + site->at);
}

static void put_back(const struct run_image *im, const struct run_site *site)
{
	for (unsigned int i = 0; i < site->len; i++)
		site_start(im, site)[i] = site->bytes[i];
}

int unpatch_image(const struct run_image *im, struct table_cursor c)
{
	struct span all = {im->text, im->text + im->text_len, 0};
	struct run_site site;
	int rc = protect_text(im, &all, PROT_READ | PROT_WRITE);

	if (rc)
		return rc;
	while ((rc = table_read(&c, &site)) > 0)
		if (is_patched(im, &site))
			put_back(im, &site);
	return protect_text(im, &all, im->text_prot) ?: rc;
}
