/* SPDX-License-Identifier: MIT */
/*
 * image.h - an ELF image as it lies in memory: its executable part, build id, and the functions its
 * unwind tables name.  Reads the mapped image only; no libc call, no allocation.
 *
 * Addresses named "offset" count from the load bias, as in the file's program headers.
 */
#ifndef SHELF_RUN_IMAGE_H
#define SHELF_RUN_IMAGE_H

#include <elf.h>

#include "base/base.h"

enum {
	BUILD_ID_MAX = 32,
};

struct run_image {
	uintptr_t bias;
	const Elf64_Phdr *phdr;
	unsigned int phnum;
	/* The executable segment; the largest, if there are several. */
	uint32_t text, text_len; /* offset, bytes */
	int text_prot; /* PROT_* */
	uint32_t end; /* offset past the last mapped byte */
	uint8_t id[BUILD_ID_MAX];
	unsigned int id_len;
	bool strange; /* no library that compilers make as we know it: all that could be an address is taken for one */
	const char *path; /* of its file, as the loader found it; NULL if not known */
	/* From .eh_frame_hdr, by image_read_frames: sorted pairs (function, frame description), relative to the header. */
	uintptr_t frames;
	const int32_t *frame_table;
	uint32_t frame_count;
};

/* Fills IM from program headers.  -ENOEXEC: not an image we can scan; -ENODATA: no build id. */
int image_init(struct run_image *im, uintptr_t bias, const Elf64_Phdr *phdr, unsigned int phnum);
/* The same, from the ELF header at the image's start. */
int image_at(struct run_image *im, const void *ehdr);

/* Maps the file PATH as the loader would, without relocating it, and fills IM.  image_unmap_file
 * undoes it. */
int image_map_file(struct run_image *im, const char *path);
void image_unmap_file(struct run_image *im);

static inline const uint8_t *image_ptr(const struct run_image *im, uint32_t offset)
{
	return (const uint8_t *)(im->bias + offset);
}

static inline bool image_in_text(const struct run_image *im, uint64_t offset)
{
	return offset - im->text < im->text_len;
}

/* The functions that IM's unwind tables name.  Apart from image_init: it touches pages that few starts need. */
void image_read_frames(struct run_image *im);

/* Offset of function I, or UINT32_MAX if it lies outside the text. */
uint32_t image_function(const struct run_image *im, uint32_t i);

/* Bytes of function I, 0 if its frame description is of a form we do not read. */
uint32_t image_function_len(const struct run_image *im, uint32_t i);

/* Calls FN with the offset of each exception landing pad of function I. */
void image_landing_pads(const struct run_image *im, uint32_t i,
			void (*fn)(void *arg, uint32_t offset), void *arg);

#endif
