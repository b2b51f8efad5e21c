/* SPDX-License-Identifier: MIT */
/*
 * frames.c - what the unwind tables say of functions: start, length, landing pads.
 *
 * Only the common encoding is read (start relative to its own place, 4 bytes); the table's own
 * record of the start confirms it.
 */
#include "run/image.h"

static bool in_image(const struct run_image *im, uintptr_t at, size_t len)
{
	return at >= im->bias && at - im->bias <= im->end && len <= im->end - (at - im->bias);
}

uint32_t image_function(const struct run_image *im, uint32_t i)
{
	uintptr_t at = im->frames + (uintptr_t)(intptr_t)im->frame_table[2 * i] - im->bias;

	return image_in_text(im, at) ? (uint32_t)at : UINT32_MAX;
}

/* The frame description of function I, or 0. */
static uintptr_t frame_of(const struct run_image *im, uint32_t i)
{
	uintptr_t fde = im->frames + (uintptr_t)(intptr_t)im->frame_table[2 * i + 1];
	uintptr_t start;

	if (!in_image(im, fde, 16) || fde % 4)
		return 0;
	start = fde + 8 + (uintptr_t)(intptr_t)((const int32_t *)fde)[2];
	return start - im->bias == image_function(im, i) ? fde : 0;
}

uint32_t image_function_len(const struct run_image *im, uint32_t i)
{
	uintptr_t fde = frame_of(im, i);
	uint32_t start = image_function(im, i), len;

	if (!fde)
		return 0;
	len = ((const uint32_t *)fde)[3];
	return len <= im->text + im->text_len - start ? len : 0;
}

/* Reads a ULEB128; past END, or for one that is too long, *at becomes END. */
static uint64_t take_uleb(const uint8_t **at, const uint8_t *end)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; *at < end && shift < 63; shift += 7) {
		uint8_t byte = *(*at)++;

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	*at = end;
	return 0;
}

/* The exception table of a frame description, or NULL. */
static const uint8_t *exception_table(const struct run_image *im, uintptr_t fde)
{
	uintptr_t cie = fde + 4 - ((const uint32_t *)fde)[1];
	const uint8_t *aug, *data = (const uint8_t *)fde + 16;
	int32_t rel;
	bool has = false;

	if (!in_image(im, cie, 24) || !in_image(im, fde, 24))
		return NULL;
	aug = (const uint8_t *)cie + 9;
	if (aug[0] != 'z' || data[0] != 4)
		return NULL; /* no augmentation, or no 4-byte pointer in it */
	for (unsigned int i = 1; i < 6 && aug[i]; i++)
		has |= aug[i] == 'L';
	rel = (int32_t)(data[1] | (uint32_t)data[2] << 8 | (uint32_t)data[3] << 16 |
			(uint32_t)data[4] << 24);
	if (!has || !rel || !in_image(im, (uintptr_t)(data + 1) + (uintptr_t)(intptr_t)rel, 8))
		return NULL;
	return data + 1 + rel;
}

void image_landing_pads(const struct run_image *im, uint32_t i,
			void (*fn)(void *arg, uint32_t offset), void *arg)
{
	uintptr_t fde = frame_of(im, i);
	const uint8_t *at = fde ? exception_table(im, fde) : NULL;
	const uint8_t *end = (const uint8_t *)im->bias + im->end;
	uint64_t len;

	/* No other base for the pads than the function; call sites in ULEB128. */
	if (!at || *at++ != 0xff)
		return;
	if (*at++ != 0xff)
		take_uleb(&at, end);
	if (at >= end || *at++ != 0x01)
		return;
	len = take_uleb(&at, end);
	if (len < (uint64_t)(end - at))
		end = at + len;
	while (at < end) {
		uint64_t pad;

		take_uleb(&at, end);
		take_uleb(&at, end);
		pad = take_uleb(&at, end);
		take_uleb(&at, end);
		if (pad && image_in_text(im, image_function(im, i) + pad))
			fn(arg, (uint32_t)(image_function(im, i) + pad));
	}
}
