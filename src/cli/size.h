/* SPDX-License-Identifier: MIT */
/* size.h - sizes on the command line, for all commands. */
#ifndef SHELF_CLI_SIZE_H
#define SHELF_CLI_SIZE_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes with a suffix K, M, G, T (powers of 1024) or none, or a percentage of RAM.  False: not a size. */
bool cli_parse_size(const char *text, uint64_t *out);

#endif
