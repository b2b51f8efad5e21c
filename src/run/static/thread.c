/* SPDX-License-Identifier: MIT */
/*
 * thread.c - each thread's own data, found by GS.
 *
 * A parent makes its child's before the clone, with signals held, and waits until the child has it: until then the child
 * runs on its parent's. What a thread that is gone had is the next one's; that it is gone the kernel says, once the parent has
 * told which thread that is.
 * Data: `all`, which only grows; a block is taken by a CAS of its tid from a dead thread's, or from 0, to TAKEN.
 */
#include <string.h>
#include <sys/mman.h>

#include "lock/lock.h"
#include "run/static/static.h"

#define TAKEN UINT32_MAX /* for a child that is not born yet */

extern const Elf64_Ehdr __ehdr_start __attribute__((visibility("hidden")));
extern const char static_thread_raw[] __attribute__((visibility("hidden")));

static atomic_ptr(struct static_thread) all;

static struct static_thread *here(void)
{
	struct static_thread *me;

	__asm__("mov %%gs:0, %0" : "=r"(me));
	return me;
}

static void variables_init(struct static_thread *t)
{
	const Elf64_Phdr *ph = (const Elf64_Phdr *)((const char *)&__ehdr_start + __ehdr_start.e_phoff);

	memset((char *)t - STATIC_TLS, 0, STATIC_TLS);
	for (unsigned i = 0; i < __ehdr_start.e_phnum; i++, ph++) {
		if (ph->p_type != PT_TLS)
			continue;
		if (ph->p_memsz + ph->p_align > STATIC_TLS)
			sys_call3(SYS_exit_group, 126, 0, 0);
		memcpy((char *)t - ALIGN_UP(ph->p_memsz, ph->p_align), (const void *)ph->p_vaddr, ph->p_filesz);
	}
	t->self = t;
	t->child = NULL;
	store_relaxed(&t->taken, 0u); /* nobody sees it yet */
}

static void add(struct static_thread *t)
{
	struct static_thread *head = load_relaxed(&all); /* the CAS decides */

	do
		t->next = head;
	while (!cas_acq_rel(&all, &head, t)); /* pairs with find_free */
}

static struct static_thread *find_free(void)
{
	for (struct static_thread *t = load_acquire(&all); t; t = t->next) { /* pairs with add */
		uint32_t tid = load_acquire(&t->tid); /* pairs with the CAS below */

		/* By tid alone: what shares our memory need not be of our process. */
		if (tid != TAKEN && (!tid || sys_call3(SYS_tkill, (long)tid, 0, 0) == -ESRCH) && cas_acq_rel(&t->tid, &tid, TAKEN))
			return t;
	}
	return NULL;
}

struct static_thread *static_thread_make(void)
{
	struct static_thread *t = find_free();
	long at;

	if (!t) {
		at = sys_call6(SYS_mmap, 0, STATIC_TLS + PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (at < 0 && at > -4096)
			return NULL;
		t = (struct static_thread *)(at + STATIC_TLS);
		store_relaxed(&t->tid, TAKEN); /* published by add */
		add(t);
	}
	variables_init(t);
	return t;
}

/* A call that makes a thread; -EAGAIN is what it says when there is no memory. */
static long thread_begin(struct run_regs *r)
{
	uint64_t mask = signals_hold(); /* before a handler may do the same */
	struct static_thread *me = here(), *t = static_thread_make();

	if (!t) {
		signals_let_in(mask);
		return -EAGAIN;
	}
	t->raw = r->raw;
	t->mask = mask;
	me->child = t;
	r->raw = (uint64_t)(uintptr_t)static_thread_raw;
	return run_pass(r);
}

static long born(struct run_regs *r)
{
	struct static_thread *me = here();
	uint64_t mask = me->mask;

	r->raw = me->raw;
	run_thread.faults_blocked = 0;
	store_release(&me->taken, 1u); /* pairs with wait_for */
	futex_wake(&me->taken, 1);
	signals_let_in(mask);
	return 0;
}

static void wait_for(struct static_thread *child)
{
	while (!load_acquire(&child->taken)) /* pairs with born */
		futex_wait(&child->taken, 0, -1);
}

/* Both come back here: see enter.S. */
static long thread_after(struct run_regs *r)
{
	struct static_thread *me = here(), *child = me->child;
	long result = run_spawn_result;
	uint64_t mask;

	if (r->raw != (uint64_t)(uintptr_t)static_thread_raw)
		return run_pass(r); /* a program that tries numbers */
	if (!result)
		return born(r);
	r->raw = child->raw;
	mask = child->mask;
	if (result > 0)
		wait_for(child);
	/* We look at it no more, and nobody has it once that thread is gone; pairs with find_free. */
	store_release(&child->tid, (uint32_t)max_of(result, 0L));
	signals_let_in(mask);
	return result;
}

/* In a fork's child: the others' are nobody's here. */
static void thread_forked(void)
{
	for (struct static_thread *t = load_acquire(&all); t; t = t->next) /* pairs with add */
		store_relaxed(&t->tid, 0u); /* only we exist, here and below */
	store_relaxed(&here()->tid, (uint32_t)sys_call3(SYS_gettid, 0, 0, 0));
}

void static_thread_init(struct static_thread *first)
{
	variables_init(first);
	sys_call3(SYS_arch_prctl, ARCH_SET_GS, (long)first, 0);
	store_relaxed(&first->tid, (uint32_t)sys_call3(SYS_gettid, 0, 0, 0)); /* only we exist */
	runtime.thread_begin = thread_begin;
	runtime.thread_after = thread_after;
	runtime.thread_forked = thread_forked;
}
