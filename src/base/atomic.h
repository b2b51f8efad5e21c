/* SPDX-License-Identifier: MIT */
/*
 * atomic.h - the only file of shelf that includes <stdatomic.h>.
 *
 * Names say the order.  Whoever writes load_acquire, store_release or a fence
 * names its partner in a comment; whoever writes a relaxed one says why that
 * is enough.  docs/concurrency.md has the table of pairs.
 *
 * A fence never carries an acquire/release edge here: ThreadSanitizer does
 * not see fences.  fence_full() orders a store before a later load (the epoch
 * entry without membarrier) and nothing else.
 */
#ifndef SHELF_BASE_ATOMIC_H
#define SHELF_BASE_ATOMIC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef _Atomic(uint8_t) atomic_u8;
typedef _Atomic(uint16_t) atomic_u16;
typedef _Atomic(uint32_t) atomic_u32;
typedef _Atomic(uint64_t) atomic_u64;
typedef _Atomic(int64_t) atomic_i64;
#define atomic_ptr(type) _Atomic(type *)

#define load_relaxed(p) atomic_load_explicit((p), memory_order_relaxed)
#define load_acquire(p) atomic_load_explicit((p), memory_order_acquire)
#define store_relaxed(p, v) atomic_store_explicit((p), (v), memory_order_relaxed)
#define store_release(p, v) atomic_store_explicit((p), (v), memory_order_release)

/* All read-modify-writes are lock-prefixed on x86-64, so weaker than acq_rel buys nothing. */
#define xchg_acq_rel(p, v) atomic_exchange_explicit((p), (v), memory_order_acq_rel)
#define add_acq_rel(p, v) atomic_fetch_add_explicit((p), (v), memory_order_acq_rel)
#define sub_acq_rel(p, v) atomic_fetch_sub_explicit((p), (v), memory_order_acq_rel)
#define or_acq_rel(p, v) atomic_fetch_or_explicit((p), (v), memory_order_acq_rel)
#define and_acq_rel(p, v) atomic_fetch_and_explicit((p), (v), memory_order_acq_rel)
/* Statistics and number ranges: nothing is published through the value. */
#define add_relaxed(p, v) atomic_fetch_add_explicit((p), (v), memory_order_relaxed)
#define sub_relaxed(p, v) atomic_fetch_sub_explicit((p), (v), memory_order_relaxed)

/* True when *p was *expected and is now desired; else *expected holds what was found. */
#define cas_acq_rel(p, expected, desired)                                                          \
	atomic_compare_exchange_strong_explicit((p), (expected), (desired), memory_order_acq_rel,  \
						memory_order_acquire)

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SHELF_TSAN 1
#endif
#elif defined(__SANITIZE_THREAD__)
#define SHELF_TSAN 1
#endif

static inline void fence_full(void)
{
#ifdef SHELF_TSAN
	/* gcc refuses fences here; ThreadSanitizer sees neither form. */
	__asm__ volatile("lock; orl $0, (%%rsp)" : : : "memory", "cc");
#else
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

/* Keeps the compiler from moving memory accesses; the CPU half is someone's membarrier. */
static inline void fence_compiler(void)
{
	atomic_signal_fence(memory_order_seq_cst);
}

static inline void cpu_relax(void)
{
	__builtin_ia32_pause();
}

#endif
