/* SPDX-License-Identifier: MIT */
/* ready_make.c - makes a ready copy: once for each build of a library and set of numbers. */
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>

#include "base/copy.h"
#include "base/syscall.h"
#include "run/insn.h"
#include "run/kept.h"
#include "run/ready_priv.h"

/* A copy in the making. */
struct copy {
	const struct run_image *im;
	uint8_t *bytes; /* of the file to be */
	size_t size;
	uint32_t source_size;
	struct ready_tail *tail; /* in BYTES */
};

/* Whether the window means the same in a slot whose distance from it nobody knows. */
static bool means_the_same_anywhere(const struct run_site *site)
{
	struct insn in;

	for (unsigned int at = 0; at < site->len; at += in.len)
		if (!insn_decode(&in, site->bytes + at, site->len - at) || insn_rip_relative(&in))
			return false;
	return site->len >= FAR_JUMP_LEN;
}

/* How many slots the sites want; *sites: how many there are. */
static int count_slots(struct table_cursor c, const uint8_t *wanted, uint32_t *sites)
{
	struct run_site site;
	int count = 0, rc;

	*sites = 0;
	while ((rc = table_next(&c, &site)) > 0) {
		++*sites;
		if (!patch_wants(&site, wanted))
			continue;
		if (site.why != SITE_OK || !means_the_same_anywhere(&site))
			return -ENOTSUP;
		count++;
	}
	if (rc)
		return rc;
	return count && count <= READY_SITES && slots_next_page() + (uint32_t)count < SLOTS_OWN ? count : -ENOTSUP;
}

/* jmp *word(%rip) */
static uint8_t *put_far_jump(uint8_t *to, uint32_t distance)
{
	to[0] = 0xff;
	to[1] = 0x25;
	raw_store32(to + 2, distance - FAR_JUMP_LEN);
	return to + FAR_JUMP_LEN;
}

static uint8_t *put_bytes(uint8_t *to, const uint8_t *from, size_t n)
{
	copy_bytes(to, from, n);
	return to + n;
}

/* As slots.h has it; own slot I, which lies at SLOT here. */
static void put_slot(uint8_t *slot, uint32_t i, uint32_t base, const struct run_site *site)
{
	static const uint8_t lea[] = {0x48, 0x8d, 0x0d, FAR_JUMP_LEN, 0, 0, 0}, call[] = {0x0f, 0x05};
	uint8_t *to = put_bytes(slot, site->bytes, site->before);
	unsigned int after = site->before + SYSCALL_LEN;

	to = put_bytes(to, lea, sizeof(lea));
	to = put_far_jump(to, slot_to_links(i, offsetof(struct run_links, entry)) - (uint32_t)(to - slot));
	to = put_bytes(to, call, sizeof(call));
	to = put_bytes(to, site->bytes + after, site->len - after);
	put_far_jump(to, slot_to_links(i, LINKS_BACK + 8 * i) - (uint32_t)(to - slot));
	raw_store32(slot + SLOT_BASE, slot_to_links(i, LINKS_BACK + 8 * base));
	raw_store64(slot + SLOT_SITE, site->at);
}

/* A site's bytes in the copy. */
static uint8_t *site_in(const struct copy *copy, const struct run_site *site)
{
	return copy->bytes + copy->tail->text_at + (site->at - site->before - ready_text_start(copy->im));
}

/* One site after the other gets its jump and its slot. */
static int put_sites(const struct copy *copy, struct table_cursor c, const uint8_t *wanted)
{
	struct ready_tail *tail = copy->tail;
	struct run_site site;
	uint32_t n = 0, start;

	while (table_next(&c, &site) > 0) {
		if (!patch_wants(&site, wanted))
			continue;
		start = site.at - site.before;
		for (unsigned int i = 0; i < site.len; i++)
			if (site_in(copy, &site)[i] != site.bytes[i])
				return -ESTALE;
		put_far_jump(site_in(copy, &site), ready_words(copy->im) + 8 * n - start);
		put_slot(copy->bytes + tail->slots_at + (size_t)n * SLOT_BYTES, tail->first + n, tail->first + tail->count, &site);
		tail->ends[n++] = start + site.len;
	}
	return 0;
}

static bool text_is_the_files(const struct copy *copy)
{
	const struct run_image *im = copy->im;
	const uint8_t *file = copy->bytes + copy->tail->text_at + (im->text - ready_text_start(im)), *here = image_ptr(im, im->text);

	for (uint32_t i = 0; i < im->text_len; i++)
		if (file[i] != here[i])
			return false;
	return true;
}

/* Where in the file the text's first page is. */
static int find_text(const struct run_image *im, uint32_t source_size, uint32_t *at)
{
	for (unsigned int i = 0; i < im->phnum; i++) {
		const Elf64_Phdr *ph = &im->phdr[i];

		if (ph->p_type != PT_LOAD || ph->p_vaddr != im->text || ph->p_filesz != im->text_len)
			continue;
		*at = (uint32_t)(ph->p_offset - (im->text - ready_text_start(im)));
		return ph->p_offset + ph->p_filesz <= source_size && !(*at & PAGE_MASK) ? 0 : -ESTALE;
	}
	return -ESTALE;
}

static void fill_tail(struct copy *copy, uint64_t key, uint32_t sites, uint32_t count)
{
	struct ready_tail *tail = copy->tail;

	tail->magic = READY_MAGIC;
	tail->key = key;
	tail->version = READY_VERSION;
	tail->sites = sites;
	tail->text = copy->im->text;
	tail->text_len = copy->im->text_len;
	tail->slots_at = (uint32_t)ALIGN_UP(copy->source_size, PAGE_BYTES);
	tail->first = slots_next_page();
	tail->count = count;
	copy_bytes(tail->id, copy->im->id, BUILD_ID_MAX);
}

static int read_all(long fd, uint8_t *to, size_t size)
{
	for (size_t at = 0; at < size;) {
		long n = sys_call3(SYS_read, fd, (long)(to + at), (long)(size - at));

		if (n <= 0 && n != -EINTR)
			return n ? (int)n : -ESTALE;
		at += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int copy_begin(struct copy *copy, const struct stat *source, uint32_t count)
{
	long map;

	if (source->st_size <= 0 || source->st_size > READY_MAX / 2)
		return -EFBIG;
	copy->source_size = (uint32_t)source->st_size;
	copy->size = ALIGN_UP(copy->source_size, PAGE_BYTES) + ready_slot_bytes(count) + PAGE_BYTES;
	map = sys_call6(SYS_mmap, 0, (long)copy->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map < 0 && map > -4096)
		return (int)map;
	copy->bytes = (uint8_t *)map;
	copy->tail = (struct ready_tail *)(copy->bytes + copy->size - PAGE_BYTES);
	return 0;
}

/* All of the file; FD is the library's. */
static int copy_fill(struct copy *copy, long fd, struct table_cursor c, const uint8_t *wanted)
{
	int rc = read_all(fd, copy->bytes, copy->source_size);

	if (!rc)
		rc = find_text(copy->im, copy->source_size, &copy->tail->text_at);
	if (!rc && !text_is_the_files(copy))
		rc = -ESTALE;
	if (!rc)
		rc = put_sites(copy, c, wanted);
	copy->tail->sum = ready_sum(copy->tail);
	return rc;
}

static int fill_and_save(struct copy *copy, long fd, struct table_cursor c, const uint8_t *wanted, const struct kept_new *k, const char *path)
{
	int rc = copy_fill(copy, fd, c, wanted);

	if (!rc)
		return kept_end(k, path, copy->bytes, copy->size, true);
	kept_drop(k);
	return rc;
}

static int make_from(const struct run_image *im, long fd, struct table_cursor c, const char *dir, const uint8_t *wanted, bool own, bool bad)
{
	struct copy copy = {.im = im};
	char path[PATH_MAX];
	struct kept_new k;
	struct stat source;
	uint32_t sites;
	uint64_t key;
	int count = count_slots(c, wanted, &sites), rc = (int)sys_call3(SYS_fstat, fd, (long)&source, 0);

	if (count < 0 || rc)
		return count < 0 ? count : rc;
	key = ready_key(&source, wanted, slots_next_page(), own);
	rc = kept_path(im, dir, key, 16, READY_ENDING, path);
	if (!rc && bad)
		rc = (int)sys_call3(SYS_unlink, (long)path, 0, 0);
	if (!rc || rc == -ENOENT) /* another process has removed it */
		rc = kept_begin(&k, path);
	if (rc)
		return rc;
	rc = copy_begin(&copy, &source, (uint32_t)count);
	if (rc) {
		kept_drop(&k);
		return rc;
	}
	fill_tail(&copy, key, sites, (uint32_t)count);
	rc = fill_and_save(&copy, fd, c, wanted, &k, path);
	sys_call3(SYS_munmap, (long)copy.bytes, (long)copy.size, 0);
	return rc;
}

int ready_make(const struct run_image *im, struct table_cursor c, const char *dir, const uint8_t *wanted, bool own, bool bad)
{
	long fd = sys_call3(SYS_open, (long)im->path, O_RDONLY | O_CLOEXEC, 0);
	int rc;

	if (fd < 0)
		return (int)fd;
	rc = make_from(im, fd, c, dir, wanted, own, bad);
	sys_call3(SYS_close, fd, 0, 0);
	if (!rc)
		kept_sweep(dir);
	return rc;
}
