/* SPDX-License-Identifier: MIT */
/*
 * notify.c - the hook through which name and data changes reach inotify.
 *
 * Data: one function pointer per process, set at attach by special/ and never taken away.
 * Fast path: notify() in vfs.h, one load of a word that changes only when watches come and go.
 */
#include "vfs/vfs.h"

static atomic_ptr(void) notify_hook;

void notify_register(notify_fn *fn)
{
	store_release(&notify_hook, (void *)(uintptr_t)fn); /* pairs with notify_slow: its tables are set up */
}

void notify_slow(struct slot *self, struct inode *inode, struct inode *dir, const char *name, uint32_t mask,
		 uint32_t cookie)
{
	notify_fn *fn = (notify_fn *)(uintptr_t)load_acquire(&notify_hook); /* pairs with notify_register */

	if (fn)
		fn(self, inode, dir, name, mask, cookie);
}
