/* SPDX-License-Identifier: MIT */
/*
 * refcount.h - a count in one word, changed by unconditional add.
 *
 *	0                1 .. REF_SATURATED      REF_SATURATED ..     REF_DEAD ..
 *	transient        live                    leaked on purpose    dead
 *
 * ref_get() never loops: it adds one and looks at what was there.  Dead means
 * the last holder is gone: the caller looks the object up again (never EBADF:
 * the slot may hold another file by now).  The zones are 2^30 apart, so no
 * number of racing adds carries a dead count back to life.
 * Objects are freed through an epoch, so a late add never hits other memory.
 */
#ifndef SHELF_BASE_REFCOUNT_H
#define SHELF_BASE_REFCOUNT_H

#include "base/base.h"

#define REF_SATURATED 0x40000000u
#define REF_DEAD 0xc0000000u

struct ref {
	atomic_u32 n;
};

static inline void ref_init(struct ref *r, uint32_t n)
{
	store_relaxed(&r->n, n); /* published with its object */
}

static inline uint32_t ref_read(const struct ref *r)
{
	return load_relaxed(&((struct ref *)(uintptr_t)r)->n); /* a snapshot for statistics and asserts */
}

/* The caller is in a read section (or holds a reference).  False: the object is dead, look again. */
static inline bool ref_get(struct ref *r)
{
	uint32_t old = add_acq_rel(&r->n, 1u);

	if (likely(old < REF_SATURATED))
		return true;
	if (old >= REF_DEAD)
		return false; /* a stray add in the dead zone is harmless: 2^30 of them would be needed */
	store_relaxed(&r->n, REF_SATURATED + (REF_DEAD - REF_SATURATED) / 2); /* stays here for ever */
	return true;
}

/*
 * True: this was the last reference and the caller must retire the object.
 * The caller is in a read section: between the two steps another may get, put
 * and retire, and the second step must not land in recycled memory.
 */
static inline bool ref_put(struct ref *r)
{
	uint32_t old = 1, zero = 0;

	/* The only reference: both steps in one.  Relaxed: a hint, the CAS decides. */
	if (load_relaxed(&r->n) == 1 && likely(cas_acq_rel(&r->n, &old, REF_DEAD + (UINT32_MAX - REF_DEAD) / 2)))
		return true;
	old = sub_acq_rel(&r->n, 1u);
	if (likely(old != 1)) {
		if (unlikely(old >= REF_SATURATED && old < REF_DEAD))
			store_relaxed(&r->n, REF_SATURATED + (REF_DEAD - REF_SATURATED) / 2);
		return false;
	}
	/* A get may have come in between: then it owns the object now. */
	return cas_acq_rel(&r->n, &zero, REF_DEAD + (UINT32_MAX - REF_DEAD) / 2);
}

/*
 * ref_put where one step is enough: no section is needed, since our own reference stands until that step.
 * False: nothing was done, the count is not as it was seen, or saturated: ref_put.
 */
static inline bool ref_put_at_once(struct ref *r, bool *last)
{
	uint32_t old = load_relaxed(&r->n); /* the CAS decides */

	*last = old == 1;
	if (unlikely(old - 1 >= REF_SATURATED - 1))
		return false;
	return cas_acq_rel(&r->n, &old, *last ? REF_DEAD + (UINT32_MAX - REF_DEAD) / 2 : old - 1);
}

#endif
