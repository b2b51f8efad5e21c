/* SPDX-License-Identifier: MIT */
/*
 * check_open.c - what tasks hold: tables, files, places; and each table's numbers.
 *
 * Tables that stand at an anchor (shelf/fdtable.h) are looked at too; how many users those have nobody can know.
 */
#include "api/check_priv.h"
#include "special/inotify.h"

static unsigned long long number_of(const void *obj)
{
	return (uintptr_t)obj;
}

/* ---- files -------------------------------------------------------------------------------------- */

/* The first time that it is come upon: what it holds itself. */
static bool file_new_to_us(struct check *c, struct fd_file *head)
{
	size_t least = head->type < FD_TYPE_USER ? sizeof(struct file) : sizeof(struct fd_file);

	if (marks_add(&c->marks, head, least) != MARK_NEW)
		return false;
	if (file_has_inode(file_of(head)))
		check_holds(c, file_of(head)->inode, "an open file");
	if (head->type == FD_TYPE_MAP)
		check_maps_one(c, file_of(head)->inode);
	if (head->type < FD_TYPE_USER)
		check_kept_name(c, load_acquire(&file_of(head)->opened)); /* pairs with fd_publish */
	return true;
}

static void check_file(struct check *c, int fd, struct fd_file *head)
{
	struct seen *s;

	if (head == fd_host_file(c->self))
		return; /* not counted */
	if (marks_room(&c->marks, head) < sizeof(*head) || !head->type || head->type >= FD_TYPES) {
		check_fault(c, false, "descriptor %d leads to no file", fd);
		return;
	}
	s = check_seen(c, head, SEEN_FILE);
	if (!s)
		return;
	if (!s->refs++ && !file_new_to_us(c, head))
		check_fault(c, false, "descriptor %d leads to something else", fd);
}

/* ---- tables ---------------------------------------------------------------------------------------- */

static bool words_page(struct check *c, struct fd_page *page, struct fd_map *map)
{
	bool ok = !map || marks_add(&c->marks, map, sizeof(*map)) == MARK_NEW;

	if (page)
		ok &= marks_add(&c->marks, page, sizeof(*page)) == MARK_NEW;
	return ok;
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
	if (marks_add(&c->marks, far, sizeof(*far)) != MARK_NEW)
		return false;
	for (k = 0; k < FD_FAR; k++) {
		struct fd_node *node = load_acquire(&far->node[k]);

		if (!node)
			continue;
		if (marks_add(&c->marks, node, sizeof(*node)) != MARK_NEW)
			return false;
		for (i = 0; i < FD_NODE; i++)
			ok &= words_page(c, load_acquire(&node->page[i]), load_acquire(&node->map[i]));
	}
	return ok;
}

static void table_numbers(struct check *c, struct fd_table *tab)
{
	int fd;

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
	mark = marks_add(&c->marks, tab, sizeof(*tab));
	s = mark == MARK_BAD ? NULL : check_seen(c, tab, SEEN_TABLE);
	if (!s) {
		if (mark == MARK_BAD)
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

static void check_anchors(struct check *c)
{
	struct fd_root *root = segment_root(c->self->seg, SEG_ROOT_FD);
	unsigned k;

	if (!root)
		return;
	marks_add(&c->marks, root, sizeof(*root));
	for (k = 0; k < FD_ANCHORS; k++) {
		struct fd_table *tab = (struct fd_table *)(uintptr_t)load_acquire(&root->anchor[k]); /* pairs with shelf_fdspace_set_anchor */
		struct seen *s;

		check_table(c, tab, false);
		s = tab ? check_seen(c, tab, SEEN_TABLE) : NULL;
		if (s)
			s->done = true; /* its users are its owner's affair */
	}
}

/* ---- tasks ------------------------------------------------------------------------------------------- */

static void check_place(struct check *c, struct fs_context *fs)
{
	enum mark mark;
	struct seen *s;

	if (!fs)
		return;
	mark = marks_add(&c->marks, fs, sizeof(*fs));
	s = mark == MARK_BAD ? NULL : check_seen(c, fs, SEEN_PLACE);
	if (!s) {
		if (mark == MARK_BAD)
			check_fault(c, false, "a task stands nowhere");
		return;
	}
	s->refs++;
	if (mark != MARK_NEW)
		return;
	check_holds(c, load_acquire(&fs->root), "a task's root"); /* pairs with fs_set_root */
	check_holds(c, load_acquire(&fs->cwd), "a task's directory"); /* pairs with fs_set_cwd */
}

static void check_creds(struct check *c, struct shelf_task *t)
{
	struct cred *cred = load_acquire(&t->creds); /* pairs with cred_add_locked, here and below */

	while (cred && marks_add(&c->marks, cred, sizeof(*cred)) == MARK_NEW)
		cred = load_acquire(&cred->older);
	if (cred)
		check_fault(c, false, "a task's credentials are damaged");
}

static void check_task(struct check *c, struct shelf_task *t)
{
	struct fd_table *files = load_acquire(&t->files), *spare = load_acquire(&t->spare); /* pair with home_store, all */
	struct fd_table *leaving = load_acquire(&t->leaving);

	check_creds(c, t);
	check_place(c, load_acquire(&t->fs)); /* pairs with the store that set it */
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
		if (marks_add(&c->marks, t, sizeof(*t)) != MARK_NEW) {
			check_fault(c, false, "the list of tasks is damaged");
			break;
		}
		c->report->tasks++;
		if (load_acquire(&t->state) == TASK_LIVE) /* pairs with task_start */
			check_task(c, t);
		else if (c->alone)
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
		check_count(c, &((struct fd_file *)s->obj)->count, s->refs, "open file", number_of(s->obj));
		break;
	case SEEN_PLACE:
		check_count(c, &((struct fs_context *)s->obj)->users, s->refs, "place of a task", number_of(s->obj));
		break;
	case SEEN_TABLE:
		users = load_acquire(&tab->refs); /* pairs with fd_table_leave */
		if (s->done || users == s->refs)
			break;
		check_left(c, "a table of descriptors counts %u users and has %u", users, s->refs);
		if (c->repair)
			store_release(&tab->refs, s->refs); /* nobody else is there */
	}
}

/* ---- watches ----------------------------------------------------------------------------------------- */

static bool watch_mark(void *ctx, const void *obj, size_t bytes)
{
	struct check *c = ctx;

	return marks_add(&c->marks, obj, bytes) == MARK_NEW;
}

static bool watch_file_known(void *ctx, const struct file *f)
{
	struct check *c = ctx;

	return marks_has(&c->marks, f);
}

static void check_watches(struct check *c)
{
	struct inotify_check w = {watch_mark, watch_file_known, c, c->alone, c->repair, 0, false};

	if (!segment_root(c->self->seg, SEG_ROOT_SPECIAL))
		return;
	inotify_check_each(c->self, &w);
	if (w.damaged)
		check_fault(c, false, "watches or their events are damaged");
	if (w.orphans)
		check_left(c, "%u inotify instances are nobody's", w.orphans);
}

void check_open(struct check *c)
{
	struct task_root *root = segment_root(c->self->seg, SEG_ROOT_TASKS);
	uint64_t n;

	check_anchors(c);
	if (root && marks_add(&c->marks, root, sizeof(*root)) == MARK_NEW) {
		struct seen *s = (check_table(c, root->no_files, true), check_seen(c, root->no_files, SEEN_TABLE));

		if (s)
			s->done = true;
		check_tasks(c, root);
	}
	check_watches(c);
	for (n = 0; c->alone && n <= c->seen_mask; n++)
		if (check_seen_at(c, n))
			count_of(c, check_seen_at(c, n));
	for (n = 0; n <= c->seen_mask; n++)
		if (check_seen_at(c, n) && check_seen_at(c, n)->kind == SEEN_FILE)
			c->report->open_files++;
}
