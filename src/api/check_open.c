/* SPDX-License-Identifier: MIT */
/*
 * check_open.c - what tasks hold: tables, files, places; and each table's numbers.
 *
 * Tables that stand at an anchor (shelf/fdtable.h) are looked at too; how many users those have nobody can know.
 */
#include "api/check_priv.h"

static unsigned long long number_of(const void *obj)
{
	return (uintptr_t)obj;
}

/* ---- files -------------------------------------------------------------------------------------- */

/* Does the kind of file go with the kind of inode? */
static bool inode_fits(uint32_t type, const struct inode *inode)
{
	switch (type) {
	case FD_TYPE_REG:
	case FD_TYPE_MAP:
		return inode_type(inode) == S_IFREG;
	case FD_TYPE_DIR:
		return inode_type(inode) == S_IFDIR;
	case FD_TYPE_NODE:
		return inode_type(inode) != S_IFREG && inode_type(inode) != S_IFDIR && inode_type(inode) != S_IFLNK;
	default:
		return true;
	}
}

/* The first time that it is come upon: what it holds itself. */
static bool file_holds(struct check *c, struct fd_file *head)
{
	struct file *f = file_of(head);

	if (head->type >= FD_TYPE_USER)
		return true;
	check_lock(c, &f->pos_lock, "position of an open file", number_of(f));
	if (file_has_inode(f)) {
		if (!check_inode(c, f->inode) || !inode_fits(head->type, f->inode))
			return false;
		check_holds(c, f->inode, "an open file");
	}
	if (head->type == FD_TYPE_MAP)
		check_maps_one(c, f->inode);
	check_kept_name(c, load_acquire(&f->opened)); /* pairs with fd_publish */
	return true;
}

static void check_file(struct check *c, int fd, struct fd_file *head)
{
	enum mark mark = MARK_BAD;
	struct seen *s;

	if (head == fd_host_file(c->self))
		return; /* not counted */
	if (marks_room(&c->marks, head) >= sizeof(*head) && head->type && head->type < FD_TYPES)
		mark = head->type < FD_TYPE_USER ? marks_add_exact(&c->marks, head, sizeof(struct file)) :
						   marks_add(&c->marks, head, sizeof(*head));
	s = check_seen(c, head, SEEN_FILE, mark);
	if (!s)
		check_fault(c, false, "descriptor %d leads to no file", fd);
	else if (!s->refs++ && !file_holds(c, head))
		check_fault(c, false, "descriptor %d leads to something else", fd);
}

/* ---- tables ---------------------------------------------------------------------------------------- */

static bool words_page(struct check *c, struct fd_page *page, struct fd_map *map)
{
	if (map && marks_add_exact(&c->marks, map, sizeof(*map)) != MARK_NEW)
		return false;
	if (page && (!map || marks_add_exact(&c->marks, page, sizeof(*page)) != MARK_NEW))
		return false;
	return true;
}

/* The words that lie outside of the table's head: only then may they be looked at. */
static bool table_parts(struct check *c, struct fd_table *tab)
{
	struct fd_far *far = load_acquire(&tab->far); /* pairs with fd_far_ensure; the others here likewise */
	bool ok = true;
	unsigned i, k;

	for (i = 0; i < FD_DIR; i++)
		ok &= words_page(c, load_acquire(&tab->page[i]), load_acquire(&tab->map[i]));
	if (!far)
		return ok;
	if (marks_add_exact(&c->marks, far, sizeof(*far)) != MARK_NEW)
		return false;
	for (k = 0; k < FD_FAR; k++) {
		struct fd_node *node = load_acquire(&far->node[k]);

		if (!node)
			continue;
		if (marks_add_exact(&c->marks, node, sizeof(*node)) != MARK_NEW)
			return false;
		for (i = 0; i < FD_NODE; i++)
			ok &= words_page(c, load_acquire(&node->page[i]), load_acquire(&node->map[i]));
	}
	return ok;
}

/* What says which numbers are free, against the words; and what is there only while somebody changes the table. */
static void table_state(struct check *c, struct fd_table *tab)
{
	if (!c->alone || !c->settled)
		return;
	check_lock(c, &tab->lock, "a table of descriptors", number_of(tab));
	if (!fd_check_table(c->self, tab, false) && check_fault(c, true, "a table of descriptors says wrongly what is free"))
		fd_check_table(c->self, tab, true);
}

static void table_numbers(struct check *c, struct fd_table *tab)
{
	int fd;

	table_state(c, tab);

	epoch_enter(c->self);
	for (fd = fd_next_open(c->self, tab, 0); fd >= 0; fd = fd_next_open(c->self, tab, fd + 1)) {
		uint64_t word = fd_word_load(tab, fd);

		if (word & FD_WORD_OPEN)
			check_file(c, fd, fd_word_file(word));
	}
	epoch_exit(c->self);
}

/* One more user; NULL: an anchor, which is none. */
static struct seen *check_table(struct check *c, struct fd_table *tab, bool user)
{
	struct seen *s;
	enum mark mark;

	if (!tab)
		return NULL;
	mark = marks_add_exact(&c->marks, tab, sizeof(*tab));
	s = check_seen(c, tab, SEEN_TABLE, mark);
	if (!s) {
		check_fault(c, false, "a table of descriptors is none");
		return NULL;
	}
	s->refs += user;
	if (mark != MARK_NEW)
		return s;
	if (!table_parts(c, tab))
		check_fault(c, false, "a table of descriptors is damaged");
	else
		table_numbers(c, tab);
	return NULL;
}

static void check_host(struct check *c, struct fd_root *root)
{
	const uint32_t saturated = REF_SATURATED + (REF_DEAD - REF_SATURATED) / 2;

	if ((root->host.type != FD_TYPE_HOST || ref_read(&root->host.count) - REF_SATURATED >= REF_DEAD - REF_SATURATED) &&
	    check_fault(c, true, "the mark of the kernel's descriptors is none")) {
		root->host.type = FD_TYPE_HOST;
		ref_init(&root->host.count, saturated);
	}
}

static void check_anchors(struct check *c)
{
	struct fd_root *root = segment_root(c->self->seg, SEG_ROOT_FD);
	unsigned k;

	if (!root)
		return;
	if (marks_add(&c->marks, root, sizeof(*root)) != MARK_NEW) {
		check_fault(c, false, "the root of descriptors is none");
		return;
	}
	check_host(c, root);
	for (k = 0; k < FD_ANCHORS; k++) {
		struct fd_table *tab = (struct fd_table *)(uintptr_t)load_acquire(&root->anchor[k]); /* pairs with shelf_fdspace_set_anchor */
		struct seen *s;

		check_table(c, tab, false);
		s = check_known(c, tab, SEEN_TABLE);
		if (s)
			s->done = true; /* its users are its owner's affair */
	}
}

/* ---- tasks ------------------------------------------------------------------------------------------- */

static void check_stands(struct check *c, struct inode *dir, const char *who)
{
	if (!dir && c->settled)
		check_fault(c, false, "%s is none", who);
	check_holds_dir(c, dir, who);
}

static void check_place(struct check *c, struct fs_context *fs)
{
	enum mark mark;
	struct seen *s;

	if (!fs)
		return;
	mark = marks_add_exact(&c->marks, fs, sizeof(*fs));
	s = check_seen(c, fs, SEEN_PLACE, mark);
	if (!s) {
		check_fault(c, false, "a task stands nowhere");
		return;
	}
	s->refs++;
	if (mark != MARK_NEW)
		return;
	check_lock(c, &fs->lock, "place of a task", number_of(fs));
	if (load_acquire(&fs->umask) > 0777 && check_fault(c, true, "a task's umask has more than nine bits")) /* atomic by itself */
		store_release(&fs->umask, 0777);
	check_stands(c, load_acquire(&fs->root), "a task's root"); /* pairs with fs_set_root */
	check_stands(c, load_acquire(&fs->cwd), "a task's directory"); /* pairs with fs_set_cwd */
}

static void check_creds(struct check *c, struct shelf_task *t)
{
	struct cred *now = load_acquire(&t->cred), *cred = load_acquire(&t->creds); /* pair with cred_add_locked, here and below */
	bool found = false;

	for (; cred && marks_add_exact(&c->marks, cred, sizeof(*cred)) == MARK_NEW; cred = load_acquire(&cred->older)) {
		found |= cred == now;
		if (cred->c.ngroups > ARRAY_SIZE(cred->c.groups))
			break;
	}
	if (cred || (!found && c->settled))
		check_fault(c, false, "a task's credentials are damaged");
}

static void check_task(struct check *c, struct shelf_task *t)
{
	struct fd_table *files = load_acquire(&t->files), *spare = load_acquire(&t->spare); /* pair with home_store, all */
	struct fd_table *leaving = load_acquire(&t->leaving);

	check_creds(c, t);
	if (t->hdr != c->self->seg->hdr || *(const uint8_t *)&t->private_ ||
	    (c->settled && (!files || !load_acquire(&t->fs)))) /* pairs with the store that set it, as the next */
		check_fault(c, false, "a task has no place or no descriptors here");
	check_place(c, load_acquire(&t->fs));
	check_table(c, files, true);
	if (spare != files)
		check_table(c, spare, true);
	if (leaving != files)
		check_table(c, leaving, true);
}

/* In a section while others are there, so that a task that ends stays readable. */
static void check_tasks(struct check *c, struct task_root *root)
{
	struct shelf_task *t;

	epoch_enter(c->self);
	for (t = load_acquire(&root->head); t; t = load_acquire(&t->next)) { /* pair with task_new */
		if (marks_add_exact(&c->marks, t, sizeof(*t)) != MARK_NEW) {
			check_fault(c, false, "the list of tasks is damaged");
			break;
		}
		c->report->tasks++;
		if (load_acquire(&t->state) == TASK_LIVE) /* pairs with task_start */
			check_task(c, t);
		else if (c->alone && c->settled)
			check_fault(c, false, "a task is neither alive nor gone");
	}
	epoch_exit(c->self);
}

static void count_of(struct check *c, const struct seen *s)
{
	struct fd_table *tab = s->obj;
	uint32_t users;

	switch (s->kind) {
	case SEEN_FILE:
		check_tally(c, &((struct fd_file *)s->obj)->tally, s->refs, "open file", number_of(s->obj));
		break;
	case SEEN_PLACE:
		check_tally(c, &((struct fs_context *)s->obj)->users, s->refs, "place of a task", number_of(s->obj));
		break;
	case SEEN_TABLE:
		users = load_acquire(&tab->refs); /* pairs with fd_table_leave */
		if (s->done || users == s->refs || !c->settled)
			break;
		check_left(c, "a table of descriptors counts %u users and has %u", users, s->refs);
		if (c->repair)
			store_release(&tab->refs, s->refs); /* nobody else is there */
	}
}

static void check_task_root(struct check *c, struct task_root *root)
{
	struct seen *s;

	check_lock(c, &root->lock, "tasks", 0);
	if (!root->no_files)
		check_fault(c, false, "tasks that only read have no table");
	check_table(c, root->no_files, true);
	s = check_known(c, root->no_files, SEEN_TABLE);
	if (s)
		s->done = true;
	check_tasks(c, root);
}

void check_open(struct check *c)
{
	struct task_root *root = segment_root(c->self->seg, SEG_ROOT_TASKS);
	uint64_t n;

	check_anchors(c);
	if (root && marks_add_exact(&c->marks, root, sizeof(*root)) == MARK_NEW)
		check_task_root(c, root);
	else if (root)
		check_fault(c, false, "the root of tasks is none");
	for (n = 0; c->alone && n <= c->seen_mask; n++)
		if (check_seen_at(c, n))
			count_of(c, check_seen_at(c, n));
	for (n = 0; n <= c->seen_mask; n++)
		if (check_seen_at(c, n) && check_seen_at(c, n)->kind == SEEN_FILE)
			c->report->open_files++;
}
