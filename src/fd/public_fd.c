// SPDX-License-Identifier: MIT
/* public_fd.c - <shelf/fdtable.h>: tables, numbers, lookups. */
#include "fd/public.h"

/* A thread's slot; without one nothing can be done. */
#define SELF_OR_RETURN(space, value)                                                               \
	struct slot *self = slot_self_fast(segment_of(space));                                     \
	if (unlikely(!self))                                                                       \
	return value

static void put_dropped(struct slot *self, void *ctx, int fd, struct fd_file *file)
{
	(void)ctx, (void)fd;
	fd_put(self, file);
}

/* ---- tables -------------------------------------------------------------------------------------- */

int shelf_fdtable_create(struct shelf_fdspace *space, struct shelf_fdtable **out)
{
	SELF_OR_RETURN(space, -ENFILE);

	return fd_table_create(self, (struct fd_table **)out);
}

void shelf_fdtable_share(struct shelf_fdspace *space, struct shelf_fdtable *tab)
{
	fd_table_share(slot_self_fast(segment_of(space)), table_of(tab)); /* needs no slot */
}

int shelf_fdtable_copy(struct shelf_fdspace *space, struct shelf_fdtable *tab,
		       struct shelf_fdtable **out)
{
	SELF_OR_RETURN(space, -ENFILE);

	return fd_table_copy(self, table_of(tab), (struct fd_table **)out);
}

void shelf_fdtable_exec(struct shelf_fdspace *space, struct shelf_fdtable *tab)
{
	SELF_OR_RETURN(space, );

	fd_table_exec(self, table_of(tab), put_dropped, NULL);
}

void shelf_fdtable_leave(struct shelf_fdspace *space, struct shelf_fdtable *tab)
{
	SELF_OR_RETURN(space, );

	fd_table_leave(self, table_of(tab), put_dropped, NULL);
}

void shelf_fdtable_set_threads(struct shelf_fdspace *space, struct shelf_fdtable *tab,
			       unsigned threads)
{
	SELF_OR_RETURN(space, );

	fd_table_set_users(self, table_of(tab), threads);
}

/* ---- numbers -------------------------------------------------------------------------------------- */

int shelf_fd_install(struct shelf_fdspace *space, struct shelf_fdtable *tab,
		     struct shelf_file *file, int min, uint64_t limit, unsigned flags)
{
	SELF_OR_RETURN(space, -ENFILE);
	int fd = fd_reserve(self, table_of(tab), min, limit);

	if (fd >= 0)
		fd_publish(self, table_of(tab), fd, (struct fd_file *)file, flags);
	return fd;
}

int shelf_fd_reserve(struct shelf_fdspace *space, struct shelf_fdtable *tab, int min,
		     uint64_t limit)
{
	SELF_OR_RETURN(space, -ENFILE);

	return fd_reserve(self, table_of(tab), min, limit);
}

int shelf_fd_publish(struct shelf_fdspace *space, struct shelf_fdtable *tab, int fd,
		     struct shelf_file *file, unsigned flags)
{
	SELF_OR_RETURN(space, -ENFILE);

	if (!(fd_word_load(table_of(tab), fd) & FD_WORD_RESERVED))
		return -EINVAL;
	fd_publish(self, table_of(tab), fd, (struct fd_file *)file, flags);
	return 0;
}

int shelf_fd_cancel(struct shelf_fdspace *space, struct shelf_fdtable *tab, int fd)
{
	SELF_OR_RETURN(space, -ENFILE);

	if (!(fd_word_load(table_of(tab), fd) & FD_WORD_RESERVED))
		return -EINVAL;
	fd_cancel(self, table_of(tab), fd);
	return 0;
}

int shelf_fd_dup(struct shelf_fdspace *space, struct shelf_fdtable *tab, int fd, int min,
		 uint64_t limit, unsigned flags)
{
	SELF_OR_RETURN(space, -ENFILE);

	return fd_dup(self, table_of(tab), fd, min, limit, flags);
}

int shelf_fd_dup2(struct shelf_fdspace *space, struct shelf_fdtable *tab, int oldfd, int newfd,
		  uint64_t limit, unsigned flags)
{
	SELF_OR_RETURN(space, -ENFILE);
	struct fd_file *replaced;
	int fd = fd_dup2(self, table_of(tab), oldfd, newfd, limit, flags, &replaced);

	if (replaced)
		fd_put(self, replaced);
	return fd;
}

int shelf_fd_close(struct shelf_fdspace *space, struct shelf_fdtable *tab, int fd)
{
	SELF_OR_RETURN(space, -ENFILE);
	struct fd_file *file;
	int err = fd_remove(self, table_of(tab), fd, &file);

	if (!err)
		fd_put(self, file);
	return err;
}

int shelf_fd_close_range(struct shelf_fdspace *space, struct shelf_fdtable *tab, unsigned first,
			 unsigned last, unsigned flags)
{
	SELF_OR_RETURN(space, -ENFILE);

	return fd_close_range(self, table_of(tab), first, last, flags, put_dropped, NULL);
}

int shelf_fd_flags(struct shelf_fdspace *space, struct shelf_fdtable *tab, int fd)
{
	return fd_get_bits(slot_self_fast(segment_of(space)), table_of(tab),
			   fd); /* needs no slot */
}

int shelf_fd_set_flags(struct shelf_fdspace *space, struct shelf_fdtable *tab, int fd,
		       unsigned flags)
{
	return fd_set_bits(slot_self_fast(segment_of(space)), table_of(tab), fd,
			   flags); /* needs no slot */
}

int shelf_fd_next(struct shelf_fdspace *space, struct shelf_fdtable *tab, int from)
{
	return fd_next_open(slot_self_fast(segment_of(space)), table_of(tab),
			    from); /* needs no slot */
}

/* ---- lookups ---------------------------------------------------------------------------------------- */

int shelf_fd_borrow(struct shelf_fdspace *space, struct shelf_fdtable *tab, int fd,
		    struct shelf_file **out)
{
	SELF_OR_RETURN(space, -ENFILE);

	return fd_borrow(self, table_of(tab), fd, (struct fd_file **)out);
}

void shelf_fd_return(struct shelf_fdspace *space, struct shelf_fdtable *tab,
		     struct shelf_file *file)
{
	SELF_OR_RETURN(space, );

	fd_return(self, table_of(tab), (struct fd_file *)file);
}

int shelf_fd_get(struct shelf_fdspace *space, struct shelf_fdtable *tab, int fd,
		 struct shelf_file **out)
{
	SELF_OR_RETURN(space, -ENFILE);

	return fd_get(self, table_of(tab), fd, (struct fd_file **)out);
}

int shelf_fd_get_typed(struct shelf_fdspace *space, struct shelf_fdtable *tab, int fd,
		       unsigned type, struct shelf_file **out)
{
	SELF_OR_RETURN(space, -ENFILE);

	return fd_get_typed(self, table_of(tab), fd, type, (struct fd_file **)out);
}

void shelf_fd_put(struct shelf_fdspace *space, struct shelf_file *file)
{
	SELF_OR_RETURN(space, );

	fd_put(self, (struct fd_file *)file);
}
