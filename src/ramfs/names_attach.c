/* SPDX-License-Identifier: MIT */
/* names_attach.c - what every process registers for this layer. */
#include "ramfs/names_priv.h"

int ramfs_attach(struct segment *seg)
{
	names_recovery_attach();
	return ramfs_data_attach(seg);
}
