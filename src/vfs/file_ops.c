/* SPDX-License-Identifier: MIT */
/* file_ops.c - the process's table of file kinds. */
#include "vfs/file_ops.h"

static const struct file_ops no_ops;
static const struct file_ops *ops_of[FD_TYPES];

void file_ops_register(uint32_t type, const struct file_ops *ops)
{
	shelf_assert(type < FD_TYPES);
	ops_of[type] = ops;
}

const struct file_ops *file_ops_of(const struct file *f)
{
	const struct file_ops *ops = f->head.type < FD_TYPES ? ops_of[f->head.type] : NULL;

	return ops ? ops : &no_ops;
}
