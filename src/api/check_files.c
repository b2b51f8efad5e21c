/* SPDX-License-Identifier: MIT */
/* check_files.c - the second half of shelf_check: open files, link counts, data pages. */
#include <string.h>

#include "api/check_priv.h"

/* ---- what tasks hold ----------------------------------------------------------------------------- */

static void see_open(struct check *c, struct inode *inode)
{
	struct seen *s = inode ? check_seen(c, inode) : NULL;

	if (!s)
		return;
	s->open++;
	if (ref_read(&inode->refs) >= REF_DEAD)
		check_fault(c, "inode %llu is open but counted as freed", (unsigned long long)inode->ino);
}

static void check_table(struct check *c, struct fd_table *files)
{
	for (int fd = fd_next_open(c->self, files, 0); fd >= 0; fd = fd_next_open(c->self, files, fd + 1)) {
		struct fd_file *head;

		if (fd_borrow(c->self, files, fd, &head))
			continue;
		if (!head->type || head->type >= FD_TYPES)
			check_fault(c, "descriptor %d has a file of no kind", fd);
		else if (file_has_inode(file_of(head)))
			see_open(c, file_of(head)->inode);
		fd_return(c->self, files, head);
	}
}

void check_open_files(struct check *c)
{
	struct shelf_task *t = NULL;

	epoch_enter(c->self);
	while ((t = task_next_epoch(c->self, t))) {
		struct fs_context *fs = load_acquire(&t->fs); /* pairs with the store that set it */
		struct fd_table *files = load_acquire(&t->files); /* the same */

		if (load_acquire(&t->state) != TASK_LIVE)
			continue;
		if (fs) {
			see_open(c, load_acquire(&fs->root)); /* pairs with fs_set_root */
			see_open(c, load_acquire(&fs->cwd)); /* pairs with fs_set_cwd */
		}
		if (files)
			check_table(c, files);
	}
	epoch_exit(c->self);
}

/* ---- inodes ------------------------------------------------------------------------------------------ */

/* False: another file has this page too, or it is no page of the segment. */
static bool page_claim(struct check *c, uint64_t entry)
{
	uintptr_t page = entry & ~(uintptr_t)PAGE_MASK;
	uint64_t n;

	if (!page_is_inside(c->self->seg, (void *)page))
		return false;
	n = (page - (uintptr_t)c->self->seg->hdr) >> PAGE_SHIFT;
	if (c->pages[n / 8] >> n % 8 & 1)
		return false;
	c->pages[n / 8] |= (unsigned char)(1 << n % 8);
	return true;
}

static void check_data(struct check *c, struct inode *inode)
{
	uint64_t index = 0, pages = 0, entry;

	epoch_enter(c->self);
	for (; (entry = radix_next_epoch(&inode->file.pages, &index, UINT64_MAX)); index++, pages++)
		if (!page_claim(c, entry))
			check_fault(c, "file %llu: page %llu is another file's or nobody's",
				    (unsigned long long)inode->ino, (unsigned long long)index);
	epoch_exit(c->self);
	c->data_pages += pages;
	if (pages != load_acquire(&inode->file.page_count)) /* pairs with the writer's store */
		check_fault(c, "file %llu has %llu pages and says %llu", (unsigned long long)inode->ino,
			    (unsigned long long)pages, (unsigned long long)load_relaxed(&inode->file.page_count));
}

static void check_link_count(struct check *c, const struct seen *s)
{
	uint32_t nlink = load_acquire(&s->inode->nlink); /* pairs with the store of link and unlink */

	if (nlink != s->names)
		check_fault(c, "inode %llu has %u links and %u names", (unsigned long long)s->inode->ino, nlink,
			    s->names);
}

void check_inodes(struct check *c)
{
	for (uint64_t i = 0; i <= c->mask; i++) {
		const struct seen *s = &c->seen[i];
		mode_t type = s->inode ? inode_type(s->inode) : S_IFDIR;

		if (type == S_IFDIR)
			continue; /* judged under its lock */
		check_link_count(c, s);
		if (type == S_IFREG)
			check_data(c, s->inode);
		if (type == S_IFLNK && (!page_is_inside(c->self->seg, s->inode->target) ||
					strnlen(s->inode->target, PATH_LIMIT) != s->inode->target_len))
			check_fault(c, "symbolic link %llu is damaged", (unsigned long long)s->inode->ino);
	}
}
