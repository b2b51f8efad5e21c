/* SPDX-License-Identifier: MIT */
/*
 * window.c - which bytes around a system call become the jump.
 *
 * Instructions before the call are preferred: `mov $nr,%eax; syscall` is 7 bytes, and the syscall
 * instruction itself stays in place behind the jump, so that a branch that nobody foresaw would
 * still make the call it wants.  Windows that a ready copy can have (ready.h) are preferred to all others.
 */
#include <sys/syscall.h>

#include "run/scan_priv.h"

static bool decode_at(const struct scan *s, struct insn *in, uint32_t at)
{
	return insn_decode(in, image_ptr(s->im, at), s->im->text + s->im->text_len - at);
}

/* What a window must be good for. */
struct demand {
	uint32_t len; /* bytes */
	bool anywhere; /* no instruction that refers to what lies at a distance from itself */
};

/* Whether the instruction at AT may be in a window. */
static bool may_move(const struct scan *s, const struct demand *d, struct insn *in, uint32_t at)
{
	return decode_at(s, in, at) && insn_relocatable(in) && !(d->anywhere && insn_rip_relative(in));
}

/* What stands between functions, too. */
static bool is_nop(const struct insn *in)
{
	return (in->map == MAP_0F && in->op == 0x1f) || (in->map == MAP_ONE && in->op == 0x90 && !(in->rex & 1));
}

/* How many bytes after FROM can be moved with the call, at least WANT; 0 if fewer can. */
static uint32_t take_after(const struct scan *s, const struct demand *d, uint32_t from, uint32_t limit, uint32_t want,
			   enum site_why *why)
{
	uint32_t at = from;
	bool ended = false;
	struct insn in;

	while (at - from < want) {
		if (target_at(s, at)) {
			*why = SITE_TARGET;
			return 0;
		}
		if (!decode_at(s, &in, at) || !insn_relocatable_behind(&in) || (d->anywhere && insn_rip_relative(&in)))
			return 0;
		/* What stands behind a return is entered by a branch, perhaps one that nobody saw. */
		if ((ended || at + in.len > limit) && !is_nop(&in))
			return 0;
		ended |= insn_ends_block(&in);
		at += in.len;
	}
	return at - from;
}

static void window_set(struct run_site *site, uint32_t before, uint32_t after)
{
	site->why = SITE_OK;
	site->before = (uint8_t)before;
	site->len = (uint8_t)(before + SYSCALL_LEN + after);
}

/* How many instructions before the call are taken, until the window is long enough. */
static unsigned int take_before(const struct scan *s, const struct candidate *c, const struct demand *d, uint32_t prev_end,
				uint32_t *before, enum site_why *why)
{
	uint32_t at = c->at;
	unsigned int taken = 0;
	struct insn in;

	while (taken < c->back_count && *before + SYSCALL_LEN < d->len) {
		if (target_at(s, at)) {
			*why = SITE_TARGET;
			break;
		}
		if (at - c->back[taken] < prev_end || !may_move(s, d, &in, at - c->back[taken]))
			break;
		at -= c->back[taken];
		*before += c->back[taken++];
	}
	return taken;
}

/* Tries windows with more and more instructions before the call, then with fewer and some after. */
static bool window_search(const struct scan *s, const struct candidate *c, const struct demand *d, uint32_t prev_end,
			  struct run_site *site)
{
	enum site_why why = SITE_FIXED;
	uint32_t before = 0, after = 0;
	unsigned int taken = take_before(s, c, d, prev_end, &before, &why);

	while (before + SYSCALL_LEN < d->len) {
		after = take_after(s, d, c->at + SYSCALL_LEN, c->limit, d->len - SYSCALL_LEN - before, &why);
		if (after)
			break;
		if (!taken) {
			site->why = (uint8_t)why;
			return false;
		}
		before -= c->back[--taken];
	}
	window_set(site, before, after);
	return true;
}

/* mov $15,%rax; syscall: where signal handlers return to. */
static bool is_sigreturn(const struct scan *s, const struct candidate *c)
{
	static const uint8_t mov[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0};

	if (c->at - s->im->text < sizeof(mov))
		return false;
	for (unsigned int i = 0; i < sizeof(mov); i++)
		if (image_ptr(s->im, c->at)[(int)i - (int)sizeof(mov)] != mov[i])
			return false;
	return true;
}

void window_choose(const struct scan *s, const struct candidate *c, uint32_t prev_end,
		   struct run_site *site)
{
	static const struct demand ready = {FAR_JUMP_LEN, true}, near = {JUMP_LEN, false};

	*site = (struct run_site){.at = c->at, .nr = c->sure ? number_of(s, c) : -1};
	if (is_sigreturn(s, c) || site->nr == SYS_rt_sigreturn) {
		site->nr = SYS_rt_sigreturn;
		site->why = SITE_SIGRETURN;
	} else if (!c->sure) {
		site->why = SITE_UNSURE;
	} else if (!window_search(s, c, &ready, prev_end, site)) {
		window_search(s, c, &near, prev_end, site);
	}
	site->bytes = image_ptr(s->im, site->at - site->before);
}

const char *site_why_text(enum site_why why)
{
	static const char *const text[SITE_WHYS] = {
		[SITE_OK] = "can be replaced",
		[SITE_TARGET] = "a branch leads into each window",
		[SITE_FIXED] = "its neighbours cannot be moved",
		[SITE_SIGRETURN] = "returns from a signal handler",
		[SITE_UNSURE] = "not in a function that decodes to its end",
	};

	return why < SITE_WHYS ? text[why] : "damaged";
}
