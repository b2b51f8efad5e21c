/* SPDX-License-Identifier: MIT */
/* scan.c - the sweep over an image's text, function by function. */
#include <sys/mman.h>

#include "base/copy.h"
#include "base/syscall.h"
#include "run/scan_priv.h"

struct sweep {
	uint8_t lens[LOOK_BACK]; /* a ring of instruction lengths */
	uint32_t count;
	bool falls; /* the last instruction goes on to what follows it */
};

static void *map_memory(size_t bytes)
{
	long p = sys_call6(SYS_mmap, 0, (long)bytes, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p < 0 && p > -4096 ? NULL : (void *)p;
}

static void unmap_memory(void *p, size_t bytes)
{
	if (p)
		sys_call3(SYS_munmap, (long)p, (long)bytes, 0);
}

/* How often the two bytes occur at all: room for the candidates. */
static uint32_t count_pairs(const struct run_image *im)
{
	const uint8_t *p = image_ptr(im, im->text);
	uint32_t n = 0;

	for (uint32_t i = 0; i + 1 < im->text_len; i++)
		n += p[i] == 0x0f && p[i + 1] == 0x05;
	return n;
}

static void candidate_add(struct scan *s, const struct sweep *sw, uint32_t start, uint32_t at,
			  uint32_t limit)
{
	struct candidate *c;

	if (s->count == s->room)
		return;
	c = &s->found[s->count++];
	*c = (struct candidate){.at = at, .start = start, .limit = limit};
	c->back_count = (uint8_t)min_of(sw->count, (uint32_t)LOOK_BACK);
	for (uint32_t i = 0; i < c->back_count; i++)
		c->back[i] = sw->lens[(sw->count - 1 - i) % LOOK_BACK];
}

/* Decodes [at, end).  Returns whether all of it was instructions and END is where one ends. */
static bool sweep_range(struct scan *s, struct sweep *sw, uint32_t at, uint32_t end)
{
	uint32_t start = at;
	bool whole = true;
	struct insn in;

	while (at < end) {
		const uint8_t *p = image_ptr(s->im, at);

		if (!insn_decode(&in, p, s->im->text + s->im->text_len - at)) {
			at++;
			sw->count = 0;
			whole = false;
			continue;
		}
		if (insn_is_syscall(&in))
			candidate_add(s, sw, start, at, end);
		targets_of_insn(s, &in, p, at);
		sw->lens[sw->count++ % LOOK_BACK] = in.len;
		sw->falls = !insn_ends_block(&in) && !(in.map == MAP_ONE && in.op == 0xe8);
		at += in.len;
	}
	return whole && at == end;
}

static void mark_sure(struct scan *s, uint32_t first)
{
	for (uint32_t i = first; i < s->count; i++)
		s->found[i].sure = true;
}

/* Sweeps a function and the bytes up to NEXT, where another begins.  Those bytes are code for sure
 * only if the function runs on into them: clone() hides the instructions after its birth from
 * unwinders in this way. */
static void sweep_function(struct scan *s, uint32_t at, uint32_t end, uint32_t next)
{
	struct sweep sw = {.count = 0}, fresh = {.count = 0};
	uint32_t first = s->count;
	bool whole = sweep_range(s, &sw, at, end);

	if (whole)
		mark_sure(s, first);
	first = s->count;
	whole = whole && sw.falls;
	if (sweep_range(s, whole ? &sw : &fresh, end, next) && whole)
		mark_sure(s, first);
}

/* The start of the first function at or after AT in the table from *i on, or the text's end. */
static uint32_t next_function(const struct run_image *im, uint32_t *i, uint32_t at)
{
	for (; *i < im->frame_count; ++*i) {
		uint32_t start = image_function(im, *i);

		if (start != UINT32_MAX && start >= at)
			return start;
	}
	return im->text + im->text_len;
}

static void sweep_text(struct scan *s)
{
	const struct run_image *im = s->im;
	uint32_t i = 0, at = next_function(im, &i, im->text), end;
	struct sweep before = {.count = 0};

	sweep_range(s, &before, im->text, at);
	while (i < im->frame_count) {
		end = at + image_function_len(im, i++);
		sweep_function(s, at, end, next_function(im, &i, max_of(end, at + 1)));
		at = i < im->frame_count ? image_function(im, i) : end;
	}
}

static int scan_sites(struct scan *s, struct run_sites *out)
{
	uint32_t prev_end = 0;

	out->bytes = ALIGN_UP((s->count + 1) * sizeof(struct run_site), PAGE_BYTES);
	out->sites = map_memory(out->bytes);
	if (!out->sites)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->count; i++) {
		struct run_site *site = &out->sites[out->count++];

		window_choose(s, &s->found[i], prev_end, site);
		prev_end = site->at - site->before + max_of(site->len, (uint8_t)SYSCALL_LEN);
	}
	return 0;
}

int scan_image(const struct run_image *im, struct run_sites *out)
{
	struct run_image with_frames = *im;
	struct scan s = {.im = &with_frames, .room = count_pairs(im)};
	size_t found_bytes = ALIGN_UP((s.room + 1) * sizeof(struct candidate), PAGE_BYTES);
	size_t target_bytes = ALIGN_UP(im->text_len / 8 + 16UL, PAGE_BYTES);
	int rc = -ENOMEM;

	*out = (struct run_sites){0};
	image_read_frames(&with_frames);
	s.found = map_memory(found_bytes);
	s.targets = map_memory(target_bytes);
	if (s.found && s.targets) {
		targets_of_functions(&s);
		targets_of_data(&s);
		sweep_text(&s);
		rc = scan_sites(&s, out);
	}
	unmap_memory(s.targets, target_bytes);
	unmap_memory(s.found, found_bytes);
	return rc;
}

void sites_free(struct run_sites *sites)
{
	unmap_memory(sites->sites, sites->bytes);
	*sites = (struct run_sites){0};
}
