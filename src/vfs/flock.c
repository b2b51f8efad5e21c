/* SPDX-License-Identifier: MIT */
/*
 * flock.c - the calls: record locks and OFD locks of fcntl(2), flock(2).
 *
 * Data, protection, death: flock_priv.h.  struct flocks stays with its inode once it is there.
 * Fast path: an inode that was never locked costs a close one load, one without record locks two.
 * Progress: blocking on flocks.lock; F_SETLKW and flock() sleep in flock_wait.c, outside sections.
 * Owners: the descriptor table for record locks, the open file for OFD locks and flock(2).
 * A lock names the process that asked (its slot's pid and start time).  When that process is dead and in
 * the way, its record locks are dropped on the spot; OFD locks and flock(2)'s belong to an open file
 * that others may share, so task/ is told (flock_register_reap) to take the dead process's tables down; those of a
 * file that somebody died closing are dropped on the spot.
 * Limit: record locks set through a table that is shared by several processes go with the process that set them.
 */
#include "segment/hand.h"
#include "vfs/flock_priv.h"

#include <sys/file.h>

#define ALIVE_MS 50u

static atomic_ptr(void) reap_hook;

void flock_register_reap(flock_reap_fn *fn)
{
	store_release(&reap_hook, (void *)(uintptr_t)fn); /* pairs with flock_reap */
}

static void flock_reap(struct slot *self, uint32_t pid, uint64_t start_time)
{
	flock_reap_fn *fn = (flock_reap_fn *)(uintptr_t)load_acquire(&reap_hook); /* pairs with register */

	if (fn)
		fn(self, pid, start_time);
}

/* ---- struct flocks --------------------------------------------------------------------------- */

static void flocks_init(struct flocks *fs)
{
	unsigned i;

	store_relaxed(&fs->lock.word, 0); /* published by the CAS in flocks_make, as all of this */
	store_relaxed(&fs->dirty, 0);
	for (i = 0; i < LOCK_SPACES; i++) {
		store_relaxed(&fs->held[i], 0);
		fs->count[i] = 0;
		rb_init(&fs->trees[i].by_owner);
		rb_init(&fs->trees[i].readers);
		rb_init(&fs->trees[i].writers);
	}
	fs->all = NULL;
	fs->free = NULL;
	fs->free_count = 0;
	fs->waiters = NULL;
	fs->visits = 0;
	fs->plan.count = 0;
}

/* NULL: no memory. */
static struct flocks *flocks_make(struct slot *self, struct inode *inode)
{
	struct flocks *fs = load_acquire(&inode->flocks); /* pairs with the CAS below */
	struct flocks *mine, *none = NULL;
	int k;

	if (fs)
		return fs;
	mine = mem_alloc_noted(self, sizeof(*mine), &k);
	if (!mine)
		return NULL;
	flocks_init(mine);
	/* What is set there stays while our reference does: so recovery sees by it whose it is. */
	hand_begin(self, &inode->flocks, (uintptr_t)mine, hand_bit(k), 0);
	if (tracked_cas(&inode->flocks, &none, mine)) {
		hand_end(self, hand_bit(k));
		return mine;
	}
	hand_end(self, 0);
	mem_free_noted(self, mine, sizeof(*mine), k);
	return none; /* another's */
}

void flocks_drop(struct slot *self, struct inode *inode)
{
	struct flocks *fs = load_acquire(&inode->flocks); /* pairs with flocks_make */

	if (!fs)
		return;
	waiters_drop_all(self, fs);
	range_drop_all(self, fs);
	hand_free_from(self, (void **)(void *)&inode->flocks, NULL, fs, sizeof(*fs));
}

/* ---- asking for a lock -------------------------------------------------------------------------- */

static void request_own(struct slot *self, struct lock_request *rq, void *owner, enum lock_owner_kind kind)
{
	rq->owner = owner;
	rq->kind = (uint8_t)kind;
	rq->pid = load_relaxed(&self->pid); /* own slot */
	rq->start_time = load_relaxed(&self->start_time);
}

static void give_up_locked(struct slot *self, struct flocks *fs, const struct lock_request *rq, struct flock_wakes *wakes)
{
	if (!flocks_change_locked(self, fs, rq))
		flocks_freed_locked(self, fs, rq, wakes);
}

/* Who has a range. */
struct holder {
	void *owner;
	uint64_t start_time;
	uint32_t pid;
	uint8_t kind;
};

static bool holder_is(const struct holder *h, const struct range *r)
{
	return r->pid == h->pid && r->start_time == h->start_time;
}

/* The record locks that a dead process set. */
static void drop_dead_locked(struct slot *self, struct flocks *fs, const struct holder *dead)
{
	struct lock_request rq = {.owner = dead->owner, .kind = FLOCK_POSIX, .type = F_UNLCK};
	struct flock_wakes wakes = {0};
	struct range *r = range_of_owner_locked(fs, SPACE_POSIX, rq.owner, 0);

	while (r) {
		rq.start = r->start;
		rq.end = r->end;
		if (holder_is(dead, r))
			give_up_locked(self, fs, &rq, &wakes);
		r = rq.end < FLOCK_EOF ? range_of_owner_locked(fs, SPACE_POSIX, rq.owner, rq.end + 1) : NULL;
	}
	flock_wakes_send(&wakes);
}

/*
 * Its open file has had its last reference dropped, by somebody who is just closing it or died in that: its locks are
 * nobody's.  While a range names the file its memory is there: file_release() gives the locks up first.
 */
static bool file_gone_locked(struct slot *self, struct flocks *fs, const struct range *r)
{
	struct lock_request rq = {.owner = r->owner, .end = FLOCK_EOF, .kind = r->kind, .type = F_UNLCK};
	struct flock_wakes wakes = {0};

	if (r->kind == FLOCK_POSIX || ref_read(&((struct file *)r->owner)->head.count) < REF_DEAD)
		return false;
	give_up_locked(self, fs, &rq, &wakes);
	flock_wakes_send(&wakes);
	return true;
}

/* True: something was dropped, or the lock was given up for a moment; look again. */
LOCK_NO_ANALYSIS static bool holder_checked(struct slot *self, struct flocks *fs, struct range *r)
{
	struct holder h = {r->owner, r->start_time, r->pid, r->kind};
	uint32_t now = flock_now_ms();
	bool dead;

	if (unlikely(file_gone_locked(self, fs, r)))
		return true;
	if (h.pid == load_relaxed(&self->pid) && h.start_time == load_relaxed(&self->start_time)) /* own slot */
		return false;
	if (r->alive_ms && now - r->alive_ms < ALIVE_MS)
		return false;
	r->alive_ms = now | 1;
	flocks_unlock(self, fs);
	dead = flock_process_dead(h.pid, h.start_time);
	if (dead)
		flock_reap(self, h.pid, h.start_time);
	flocks_lock(self, fs);
	if (dead && h.kind == FLOCK_POSIX)
		drop_dead_locked(self, fs, &h);
	return true;
}

/* Of a living process. */
static struct range *live_conflict_locked(struct slot *self, struct flocks *fs, const struct lock_request *rq)
{
	struct range *r;

	do
		r = range_conflict_locked(fs, rq);
	while (unlikely(r != NULL) && holder_checked(self, fs, r));
	return r;
}

static int set_locked(struct slot *self, struct flocks *fs, const struct lock_request *rq, bool wait,
		      struct flock_waiter **waiter)
{
	struct range *in_way;
	int err = 0;

	while (!err && (in_way = live_conflict_locked(self, fs, rq))) {
		if (!wait)
			return -EAGAIN;
		err = flocks_wait_locked(self, fs, rq, in_way, waiter);
	}
	return err ? err : flocks_change_locked(self, fs, rq);
}

static int flocks_set(struct slot *self, struct inode *inode, const struct lock_request *rq, bool wait)
{
	struct flocks *fs = rq->type == F_UNLCK ? load_acquire(&inode->flocks) /* pairs with flocks_make */
						: flocks_make(self, inode);
	struct flock_waiter *waiter = NULL;
	struct flock_wakes wakes = {0};
	int err;

	if (!fs)
		return rq->type == F_UNLCK ? 0 : -ENOLCK;
	flocks_lock(self, fs);
	err = set_locked(self, fs, rq, wait, &waiter);
	flocks_leave_queue_locked(self, fs, waiter);
	if (!err && waiter)
		flocks_taken_locked(self, fs, rq);
	if (!err ? rq->type != F_WRLCK : waiter != NULL)
		flocks_freed_locked(self, fs, rq, &wakes); /* given up, downgraded, or no longer waiting for it */
	flocks_unlock(self, fs);
	flock_wakes_send(&wakes);
	return err;
}

/* ---- fcntl ------------------------------------------------------------------------------------------ */

static int flock_base(struct file *f, int whence, int64_t *base)
{
	switch (whence) {
	case SEEK_SET:
		*base = 0;
		return 0;
	case SEEK_CUR:
		*base = (int64_t)load_relaxed(&f->pos); /* a snapshot, as in Linux */
		return 0;
	case SEEK_END:
		*base = (int64_t)load_acquire(&f->inode->size); /* as above */
		return 0;
	}
	return -EINVAL;
}

/* struct flock to [start, end]: EINVAL, EOVERFLOW. */
static int flock_range_of(struct file *f, const struct flock *fl, struct lock_request *rq)
{
	int64_t start, end = INT64_MAX;
	int err = flock_base(f, fl->l_whence, &start);

	if (err)
		return err;
	if (fl->l_start > INT64_MAX - start)
		return -EOVERFLOW;
	start += fl->l_start;
	if (start < 0)
		return -EINVAL;
	if (fl->l_len > 0) {
		if (fl->l_len - 1 > INT64_MAX - start)
			return -EOVERFLOW;
		end = start + (fl->l_len - 1);
	} else if (fl->l_len < 0) {
		if (start + fl->l_len < 0)
			return -EINVAL;
		end = start - 1;
		start += fl->l_len;
	}
	rq->start = (uint64_t)start;
	rq->end = (uint64_t)end;
	return 0;
}

static int flock_request_of(struct who *w, struct file *f, const struct flock *fl, bool ofd, struct lock_request *rq)
{
	int err = flock_range_of(f, fl, rq);

	if (err)
		return err;
	if (fl->l_type != F_RDLCK && fl->l_type != F_WRLCK && fl->l_type != F_UNLCK)
		return -EINVAL;
	rq->type = (uint8_t)fl->l_type;
	request_own(w->self, rq, ofd ? (void *)f : (void *)w->files, ofd ? FLOCK_OFD : FLOCK_POSIX);
	return 0;
}

/* F_UNLCK (OFD only) asks for the owner's own. */
static struct range *getlk_locked(struct slot *self, struct flocks *fs, const struct lock_request *rq)
{
	struct range *r;

	if (rq->type != F_UNLCK)
		return live_conflict_locked(self, fs, rq);
	r = range_of_owner_locked(fs, SPACE_POSIX, rq->owner, rq->start);
	return r && r->start <= rq->end ? r : NULL;
}

static void flock_report(const struct range *r, struct flock *fl)
{
	fl->l_type = range_type(r);
	fl->l_whence = SEEK_SET;
	fl->l_start = (off_t)r->start;
	fl->l_len = r->end == FLOCK_EOF ? 0 : (off_t)(r->end - r->start + 1);
	fl->l_pid = r->kind == FLOCK_OFD ? -1 : (pid_t)r->pid;
}

static int flock_getlk(struct who *w, struct file *f, bool ofd, struct flock *fl)
{
	struct lock_request rq;
	struct flocks *fs;
	struct range *r = NULL;
	int err;

	if (!ofd && fl->l_type != F_RDLCK && fl->l_type != F_WRLCK)
		return -EINVAL;
	err = flock_request_of(w, f, fl, ofd, &rq);
	if (err)
		return err;
	if (ofd && fl->l_pid)
		return -EINVAL;
	fs = load_acquire(&f->inode->flocks); /* pairs with flocks_make */
	if (fs) {
		flocks_lock(w->self, fs);
		r = getlk_locked(w->self, fs, &rq);
		if (r)
			flock_report(r, fl);
		flocks_unlock(w->self, fs);
	}
	if (!r)
		fl->l_type = F_UNLCK;
	return 0;
}

static int flock_setlk(struct who *w, struct file *f, bool ofd, bool wait, const struct flock *fl)
{
	struct lock_request rq;
	int err = flock_request_of(w, f, fl, ofd, &rq);

	if (err)
		return err;
	if ((rq.type == F_RDLCK && !file_readable(f)) || (rq.type == F_WRLCK && !file_writable(f)))
		return -EBADF;
	if (ofd && fl->l_pid)
		return -EINVAL;
	if (ofd && rq.type != F_UNLCK)
		store_release(&f->has_flocks, 1u); /* pairs with flock_close_file */
	return flocks_set(w->self, f->inode, &rq, wait);
}

int flock_posix(struct who *w, struct file *f, int cmd, struct flock *fl)
{
	if (load_relaxed(&f->flags) & O_PATH) /* constant bit */
		return -EBADF;
	switch (cmd) {
	case F_GETLK:
		return flock_getlk(w, f, false, fl);
	case F_OFD_GETLK:
		return flock_getlk(w, f, true, fl);
	case F_SETLK:
	case F_SETLKW:
		return flock_setlk(w, f, false, cmd == F_SETLKW, fl);
	case F_OFD_SETLK:
	case F_OFD_SETLKW:
		return flock_setlk(w, f, true, cmd == F_OFD_SETLKW, fl);
	}
	return -EINVAL;
}

/* ---- flock(2) ------------------------------------------------------------------------------------------- */

static int bsd_type(int operation)
{
	switch (operation & ~LOCK_NB) {
	case LOCK_SH:
		return F_RDLCK;
	case LOCK_EX:
		return F_WRLCK;
	case LOCK_UN:
		return F_UNLCK;
	}
	return -EINVAL;
}

/* What the file has now: F_UNLCK for nothing. */
static uint8_t bsd_held(struct slot *self, struct inode *inode, const void *owner)
{
	struct flocks *fs = load_acquire(&inode->flocks); /* pairs with flocks_make */
	struct range *r;
	uint8_t type = F_UNLCK;

	if (!fs)
		return type;
	flocks_lock(self, fs);
	r = range_of_owner_locked(fs, SPACE_BSD, owner, 0);
	if (r)
		type = range_type(r);
	flocks_unlock(self, fs);
	return type;
}

int flock_bsd(struct who *w, struct file *f, int operation)
{
	struct lock_request rq = {.start = 0, .end = FLOCK_EOF};
	int type;
	uint8_t held;

	if (operation & LOCK_MAND)
		return 0; /* Linux ignores them */
	type = bsd_type(operation);
	if (type < 0)
		return type;
	if (load_relaxed(&f->flags) & O_PATH) /* constant bit */
		return -EBADF;
	request_own(w->self, &rq, f, FLOCK_BSD);
	held = bsd_held(w->self, f->inode, f);
	if (held == type)
		return 0;
	/* A conversion gives the old lock up first, in Linux too: it may end with none. */
	rq.type = F_UNLCK;
	if (held != F_UNLCK)
		flocks_set(w->self, f->inode, &rq, false);
	if (type == F_UNLCK)
		return 0;
	store_release(&f->has_flocks, 1u); /* pairs with flock_close_file */
	rq.type = (uint8_t)type;
	return flocks_set(w->self, f->inode, &rq, !(operation & LOCK_NB));
}

/* ---- close -------------------------------------------------------------------------------------------------- */

static void flocks_give_up_all(struct slot *self, struct inode *inode, void *owner, enum lock_owner_kind kind)
{
	struct lock_request rq = {.start = 0, .end = FLOCK_EOF, .type = F_UNLCK};

	request_own(self, &rq, owner, kind);
	flocks_set(self, inode, &rq, false);
}

void flock_close_posix(struct who *w, struct inode *inode)
{
	struct flocks *fs = load_acquire(&inode->flocks); /* pairs with flocks_make */

	/*
	 * Relaxed: the owner's own locks were set before this close, by this thread or one it has heard from.  A dead one
	 * whose files are closed for it may have left its locks half set: dirty, and not counted yet.
	 */
	if (likely(!fs) || (!load_relaxed(&fs->held[SPACE_POSIX]) && !load_relaxed(&fs->dirty)))
		return;
	flocks_give_up_all(w->self, inode, w->files, FLOCK_POSIX);
}

void flock_close_file(struct slot *self, struct file *f)
{
	if (likely(!load_acquire(&f->has_flocks))) /* pairs with the stores where locks are taken */
		return;
	flocks_give_up_all(self, f->inode, f, FLOCK_OFD);
	flocks_give_up_all(self, f->inode, f, FLOCK_BSD);
}
