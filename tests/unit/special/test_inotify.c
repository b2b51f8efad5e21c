/* SPDX-License-Identifier: MIT */
/* The core of inotify: what a dead holder of the lock left, instances whose end was begun, and the kernel's half (tokens, numbers). */
#include "harness.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include "epoch/epoch.h"
#include "segment/header.h"
#include "special/inotify_priv.h"

static struct segment *seg;
static char name[TEST_NAME_SIZE];
static struct who w;
static struct shelf_cred root_cred = {.caps = SHELF_CAP_ALL};

static int setup(void **state)
{
	const struct segment_options opt = {.size = 16UL << 20, .max_slots = 64};

	(void)state;
	CHECK(!segment_create(fresh_name(name), &opt, &seg, NULL) && !epoch_init(seg) && !epoch_attach(seg));
	CHECK(!fd_layer_init(seg) && !fd_layer_attach(seg) && !vfs_attach(seg));
	CHECK(!vfs_init(slot_self(seg), 0755, 0, 0) && !inotify_init_root(slot_self(seg)) && !inotify_attach(seg));
	segment_set_ready(seg);
	w = (struct who){.self = slot_self(seg), .cred = &root_cred};
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	CHECK(!segment_poisoned(seg));
	segment_remove(name, NULL);
	segment_detach(seg);
	return 0;
}

static struct file *instance(void)
{
	int err;
	struct file *f = inotify_new(w.self, O_NONBLOCK, &err);

	CHECK(f && f->head.type == FD_TYPE_INOTIFY);
	return f;
}

static struct inode *inode(void)
{
	struct inode *i = inode_new(&w, S_IFREG | 0644, 0, 0);

	CHECK(i);
	return i;
}

static void happens(struct inode *i, uint32_t mask)
{
	notify(w.self, i, NULL, NULL, mask, 0);
}

/* The next events as "WD:MASK ..." with names. */
static const char *taken(struct file *f)
{
	static char text[1024];
	_Alignas(8) char buf[1024];
	ssize_t n = inotify_take(w.self, f, buf, sizeof(buf)), at;
	char *out = text;

	*out = '\0';
	for (at = 0; at < n;) {
		const struct inotify_event *e = (const void *)(buf + at);

		out += sprintf(out, "%s%d:%x%s%s", at ? " " : "", e->wd, e->mask, e->len ? "=" : "", e->len ? e->name : "");
		at += (ssize_t)(sizeof(*e) + e->len);
	}
	return n < 0 && n != -EAGAIN ? "error" : text;
}

static uint32_t watchers(void)
{
	return load_relaxed(&seg->hdr->watchers);
}

/* ---- watches ------------------------------------------------------------------------------------- */

static void nobody_watching_leaves_the_header_alone(void **state)
{
	struct file *f = instance();
	struct inode *i = inode();

	(void)state;
	assert_int_equal(watchers(), 0);
	assert_int_equal(inotify_add(w.self, f, i, IN_MODIFY), 1);
	assert_int_equal(watchers(), 1);
	assert_true(load_relaxed(&i->watches) & IN_MODIFY);
	assert_int_equal(inotify_remove(w.self, f, 1, NULL), 0);
	assert_int_equal(watchers(), 0);
	assert_int_equal(load_relaxed(&i->watches), 0);
	fd_put(w.self, &f->head);
	inode_put(w.self, i);
}

static void the_end_of_an_inode_takes_its_watches(void **state)
{
	struct file *f = instance(), *other = instance();
	struct inode *i = inode();

	(void)state;
	assert_int_equal(inotify_add(w.self, f, i, IN_MODIFY), 1);
	assert_int_equal(inotify_add(w.self, other, i, IN_DELETE_SELF), 1);
	inode_put(w.self, i);
	assert_int_equal(watchers(), 0);
	assert_string_equal(taken(f), "1:8000");
	assert_string_equal(taken(other), "1:400 1:8000");
	fd_put(w.self, &f->head);
	fd_put(w.self, &other->head);
}

static void the_end_of_an_instance_takes_its_watches_and_no_other(void **state)
{
	struct file *f = instance(), *other = instance();
	struct inode *i = inode();

	(void)state;
	assert_int_equal(inotify_add(w.self, f, i, IN_MODIFY), 1);
	assert_int_equal(inotify_add(w.self, other, i, IN_ATTRIB), 1);
	happens(i, IN_MODIFY);
	fd_put(w.self, &f->head);
	assert_int_equal(watchers(), 1);
	assert_int_equal(load_relaxed(&i->watches) & IN_ALL_EVENTS, IN_ATTRIB);
	happens(i, IN_MODIFY);
	happens(i, IN_ATTRIB);
	assert_string_equal(taken(other), "1:4");
	fd_put(w.self, &other->head);
	inode_put(w.self, i);
}

/* ---- after a death --------------------------------------------------------------------------------------- */

static void what_follows_is_made_anew_when_the_lock_was_left_dirty(void **state)
{
	struct file *f = instance();
	struct inode *a = inode(), *b = inode();
	struct inotify *inst = inotify_of(f);
	struct inotify_root *root;
	unsigned k;

	(void)state;
	assert_int_equal(inotify_add(w.self, f, a, IN_MODIFY), 1);
	assert_int_equal(inotify_add(w.self, f, b, IN_MODIFY), 2);
	happens(a, IN_MODIFY);
	happens(b, IN_MODIFY);
	root = inotify_lock(w.self);
	for (k = 0; k < WATCH_BUCKETS; k++)
		store_relaxed(&root->table->by_key[k], NULL);
	store_relaxed(&seg->hdr->watchers, 99u);
	inst->tail = load_relaxed(&inst->head); /* the second was linked, and no more */
	inst->count = 1;
	inst->bytes = 16;
	store_relaxed(&root->dirty, 1u);
	inotify_unlock(w.self, root);
	assert_int_equal(inotify_bytes(w.self, f), 32);
	assert_int_equal(watchers(), 2);
	happens(a, IN_MODIFY);
	assert_string_equal(taken(f), "1:2 2:2 1:2");
	fd_put(w.self, &f->head);
	inode_put(w.self, a);
	inode_put(w.self, b);
}

static void an_instance_whose_end_was_begun_is_ended_by_the_next(void **state)
{
	struct file *f = instance(), *other = instance();
	struct inode *i = inode();
	struct inotify_root *root = segment_root(seg, SEG_ROOT_SPECIAL);

	(void)state;
	assert_int_equal(inotify_add(w.self, f, i, IN_MODIFY), 1);
	happens(i, IN_MODIFY);
	/* As far as inotify_release() goes without the lock. */
	store_release(&inotify_of(f)->ending, 1u);
	add_acq_rel(&root->ended, 1u);
	assert_int_equal(inotify_add(w.self, other, i, IN_MODIFY), 1);
	assert_int_equal(watchers(), 1);
	assert_int_equal(load_relaxed(&root->ended), 0);
	f->head.type = FD_TYPE_NONE; /* what its maker's death leaves to others */
	fd_put(w.self, &f->head);
	fd_put(w.self, &other->head);
	inode_put(w.self, i);
}

/* ---- the kernel's half --------------------------------------------------------------------------------------- */

struct host {
	struct file *f;
	char path[64], dir[64];
	int in; /* the kernel's */
	int token;
};

static bool host_open(struct host *h)
{
	h->f = instance();
	strcpy(h->dir, "/dev/shm/inotify-test-XXXXXX");
	CHECK(mkdtemp(h->dir));
	snprintf(h->path, sizeof(h->path), "%s/token", h->dir);
	CHECK(!mknod(h->path, S_IFREG | 0600, 0));
	h->in = inotify_init1(IN_NONBLOCK);
	CHECK(inotify_add_watch(h->in, "/", IN_ATTRIB | IN_ONLYDIR) == 1);
	h->token = inotify_add_watch(h->in, h->path, IN_ATTRIB);
	CHECK(h->token == 2);
	return inotify_token_set(w.self, h->f, h->path, h->token);
}

static void host_close(struct host *h)
{
	fd_put(w.self, &h->f->head);
	CHECK(access(h->path, F_OK) == -1); /* it goes with the instance */
	CHECK(!rmdir(h->dir));
	close(h->in);
}

static bool readable(struct host *h)
{
	struct pollfd p = {h->in, POLLIN, 0};

	return poll(&p, 1, 0) == 1;
}

/* What a reader does: all that the kernel has, then as much as fits. */
static ssize_t host_read(struct host *h, char *buf, size_t size)
{
	ssize_t n = read(h->in, buf, size), got;

	CHECK(n > 0);
	if (inotify_give(w.self, h->f, buf, (size_t)n))
		return n;
	got = inotify_take(w.self, h->f, buf, size);
	inotify_token_renew(w.self, h->f);
	return got;
}

static void the_kernels_descriptor_is_readable_while_something_waits(void **state)
{
	struct inode *i = inode();
	_Alignas(8) char buf[32];
	struct host h;

	(void)state;
	assert_true(host_open(&h));
	assert_false(inotify_token_set(w.self, h.f, h.path, h.token));
	assert_int_equal(inotify_add(w.self, h.f, i, IN_ALL_EVENTS), 2); /* as the kernel would go on */
	assert_false(readable(&h));
	happens(i, IN_MODIFY);
	happens(i, IN_ATTRIB);
	happens(i, IN_ACCESS);
	assert_true(readable(&h));
	assert_int_equal(host_read(&h, buf, 32), 32);
	assert_true(readable(&h));
	assert_int_equal(host_read(&h, buf, 32), 16);
	assert_false(readable(&h));
	happens(i, IN_MODIFY);
	assert_true(readable(&h));
	assert_int_equal(inotify_bytes(w.self, h.f), 0); /* 16, less the token's in the kernel */
	host_close(&h);
	inode_put(w.self, i);
}

static void a_reader_with_too_little_room_leaves_it_readable(void **state)
{
	struct inode *dir = inode(), *i = inode();
	_Alignas(8) char buf[64];
	struct host h;

	(void)state;
	assert_true(host_open(&h));
	assert_int_equal(inotify_add(w.self, h.f, dir, IN_ALL_EVENTS), 2);
	notify(w.self, i, dir, "name", IN_CREATE, 0);
	assert_int_equal(host_read(&h, buf, 16), -EINVAL);
	assert_true(readable(&h));
	assert_int_equal(host_read(&h, buf, 64), 32);
	assert_false(readable(&h));
	host_close(&h);
	inode_put(w.self, dir);
	inode_put(w.self, i);
}

static void numbers_of_both_sides_are_one_row(void **state)
{
	struct inotify_event events[] = {{.wd = 1, .mask = IN_ATTRIB}, {.wd = 3, .mask = IN_MODIFY}, {.wd = 3, .mask = IN_IGNORED}};
	struct inode *i = inode();
	struct host h;
	int host;

	(void)state;
	assert_true(host_open(&h));
	assert_int_equal(inotify_host_wd(w.self, h.f, 1), 1); /* of before the token */
	assert_int_equal(inotify_add(w.self, h.f, i, IN_MODIFY), 2);
	assert_int_equal(inotify_host_wd(w.self, h.f, 3), 3);
	assert_int_equal(inotify_host_wd(w.self, h.f, 4), 4);
	assert_int_equal(inotify_host_wd(w.self, h.f, 3), 3);
	assert_true(inotify_give(w.self, h.f, events, sizeof(events[0])));
	assert_false(inotify_give(w.self, h.f, events, sizeof(events)));
	assert_string_equal(taken(h.f), "1:4 3:2 3:8000");
	assert_int_equal(inotify_remove(w.self, h.f, 4, &host), 1);
	assert_int_equal(host, 4);
	assert_int_equal(inotify_remove(w.self, h.f, 1, &host), 1);
	assert_int_equal(host, 1);
	assert_int_equal(inotify_remove(w.self, h.f, 3, &host), -EINVAL);
	assert_int_equal(inotify_remove(w.self, h.f, 2, &host), 0);
	inotify_take(w.self, h.f, events, sizeof(events));
	assert_int_equal(inotify_host_wd(w.self, h.f, 7), 5); /* the kernel has counted the token, and others that are gone */
	events[0] = (struct inotify_event){.wd = 7, .mask = IN_ATTRIB};
	assert_false(inotify_give(w.self, h.f, events, sizeof(events[0])));
	assert_string_equal(taken(h.f), "5:4");
	host_close(&h);
	inode_put(w.self, i);
}

static void what_the_kernel_says_goes_behind_what_waits(void **state)
{
	struct inotify_event said = {.wd = 1, .mask = IN_ATTRIB};
	struct inode *i = inode();
	struct host h;

	(void)state;
	assert_true(host_open(&h));
	assert_int_equal(inotify_add(w.self, h.f, i, IN_MODIFY), 2);
	happens(i, IN_MODIFY);
	assert_false(inotify_give(w.self, h.f, &said, sizeof(said)));
	assert_string_equal(taken(h.f), "2:2 1:4");
	host_close(&h);
	inode_put(w.self, i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_watching_leaves_the_header_alone),
		cmocka_unit_test(the_end_of_an_inode_takes_its_watches),
		cmocka_unit_test(the_end_of_an_instance_takes_its_watches_and_no_other),
		cmocka_unit_test(what_follows_is_made_anew_when_the_lock_was_left_dirty),
		cmocka_unit_test(an_instance_whose_end_was_begun_is_ended_by_the_next),
		cmocka_unit_test(the_kernels_descriptor_is_readable_while_something_waits),
		cmocka_unit_test(a_reader_with_too_little_room_leaves_it_readable),
		cmocka_unit_test(numbers_of_both_sides_are_one_row),
		cmocka_unit_test(what_the_kernel_says_goes_behind_what_waits),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
