/* SPDX-License-Identifier: MIT */
/* table.c - sites to bytes and back.  Nothing read from a table is believed. */
#include <sys/syscall.h>

#include "base/copy.h"
#include "run/insn.h"
#include "run/table.h"

uint64_t table_sum_of(const uint8_t *p, size_t len)
{
	uint64_t sum = 0x9e3779b97f4a7c15ull ^ len;

	for (; len >= 8; p += 8, len -= 8)
		sum = ((sum ^ raw_load64(p)) * 0xff51afd7ed558ccdull) ^ (sum >> 29);
	for (; len; p++, len--)
		sum = ((sum ^ *p) * 0xff51afd7ed558ccdull) ^ (sum >> 29);
	return sum ^ (sum >> 32);
}

static uint64_t sum_of_table(const void *buf, size_t size)
{
	const size_t skip = offsetof(struct table_header, version);

	return table_sum_of((const uint8_t *)buf + skip, size - skip);
}

size_t table_size(const struct run_sites *sites)
{
	size_t size = sizeof(struct table_header);

	for (uint32_t i = 0; i < sites->count; i++)
		size += SITE_HEAD + sites->sites[i].len;
	return size;
}

static uint8_t *put_site(uint8_t *to, const struct run_site *site)
{
	raw_store32(to, site->at);
	raw_store16(to + 4, (uint16_t)site->nr);
	to[6] = site->before;
	to[7] = site->len;
	to[8] = site->why;
	for (unsigned int i = 0; i < site->len; i++)
		to[SITE_HEAD + i] = site->bytes[i];
	return to + SITE_HEAD + site->len;
}

void table_write(const struct run_image *im, const struct run_sites *sites, void *buf)
{
	struct table_header *h = buf;
	uint8_t *to = (uint8_t *)(h + 1);

	*h = (struct table_header){
		.magic = TABLE_MAGIC,
		.version = TABLE_VERSION,
		.size = (uint32_t)table_size(sites),
		.text = im->text,
		.text_len = im->text_len,
		.count = sites->count,
		.id_len = im->id_len,
	};
	for (unsigned int i = 0; i < im->id_len; i++)
		h->id[i] = im->id[i];
	for (uint32_t i = 0; i < sites->count; i++)
		to = put_site(to, &sites->sites[i]);
	table_seal(buf, h->size);
}

void table_seal(void *buf, size_t size)
{
	struct table_header *h = buf;

	h->size = (uint32_t)size;
	h->sum = sum_of_table(buf, size);
}

static bool same_build(const struct run_image *im, const struct table_header *h)
{
	if (h->text != im->text || h->text_len != im->text_len || h->id_len != im->id_len)
		return false;
	for (unsigned int i = 0; i < im->id_len; i++)
		if (h->id[i] != im->id[i])
			return false;
	return true;
}

int table_open(const struct run_image *im, const void *buf, size_t size, struct table_cursor *c)
{
	const struct table_header *h = buf;

	if (size < sizeof(*h) || h->magic != TABLE_MAGIC)
		return -EBADMSG;
	if (h->version != TABLE_VERSION)
		return -ESTALE;
	if (h->size != size || h->count > TABLE_SITES_MAX || h->sum != sum_of_table(buf, size))
		return -EBADMSG;
	if (!same_build(im, h))
		return -ESTALE;
	*c = (struct table_cursor){
		.at = (const uint8_t *)(h + 1),
		.end = (const uint8_t *)buf + size,
		.left = h->count,
		.floor = im->text,
		.text = im->text,
		.text_end = im->text + im->text_len,
	};
	return 0;
}

/* Whether the window is whole movable instructions with one syscall, where the site says. */
static bool window_good(const struct run_site *site)
{
	unsigned int at = 0;
	bool seen = false;
	struct insn in;

	while (at < site->len) {
		if (!insn_decode(&in, site->bytes + at, site->len - at))
			return false;
		if (at == site->before ? !insn_is_syscall(&in) : at < site->before ? !insn_relocatable(&in) : !insn_relocatable_behind(&in))
			return false;
		seen |= at == site->before;
		at += in.len;
	}
	return seen;
}

static bool site_placed(const struct table_cursor *c, const struct run_site *site)
{
	uint32_t start = site->at - site->before;

	if (site->why >= SITE_WHYS || site->nr < -1 || site->before > site->at)
		return false;
	if (start < c->floor || site->at >= c->text_end || c->text_end - site->at < SYSCALL_LEN)
		return false;
	if (site->why != SITE_OK)
		return !site->len && !site->before;
	return site->len >= JUMP_LEN && site->len <= c->text_end - start &&
	       site->before <= site->len - SYSCALL_LEN;
}

int table_read(struct table_cursor *c, struct run_site *site)
{
	size_t room = (size_t)(c->end - c->at);

	if (!c->left)
		return room ? -EBADMSG : 0;
	if (room < SITE_HEAD || c->at[7] > WINDOW_MAX || room < SITE_HEAD + (size_t)c->at[7])
		return -EBADMSG;
	site->at = raw_load32(c->at);
	site->nr = (int16_t)raw_load16(c->at + 4);
	site->before = c->at[6];
	site->len = c->at[7];
	site->why = c->at[8];
	site->bytes = c->at + SITE_HEAD;
	if (!site_placed(c, site))
		return -EBADMSG;
	c->at += SITE_HEAD + site->len;
	c->floor = site->at - site->before + max_of(site->len, (uint8_t)SYSCALL_LEN);
	c->left--;
	return 1;
}

int table_next(struct table_cursor *c, struct run_site *site)
{
	int rc = table_read(c, site);

	return rc > 0 && site->why == SITE_OK && !window_good(site) ? -EBADMSG : rc;
}
