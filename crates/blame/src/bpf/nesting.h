/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* The interrupts in progress on a CPU, one inside the other, and how long each took without the others.
 *
 * Written to by that CPU only. A program of a softirq may be interrupted itself, by an interrupt that
 * begins and ends meanwhile. */
#ifndef NOISEFLOOR_NESTING_H
#define NOISEFLOOR_NESTING_H

#include "kernel.h"
#include <bpf/bpf_helpers.h>

enum level {
	SOFTIRQ,
	HANDLER,
	VECTOR,
	LEVELS,
};

struct nesting {
	__u32 active; /* bits of the levels that have begun */
	__u64 since; /* when the first of them began */
	__u64 starts[LEVELS];
	__u64 nested[LEVELS]; /* ns of other interrupts in it */
};

/* A version is odd while values change that another CPU, or the reader, takes together. */
static __always_inline void begin_change(__u64 *version)
{
	*(volatile __u64 *)version = *version + 1;
	barrier();
}

static __always_inline void end_change(__u64 *version)
{
	barrier();
	*(volatile __u64 *)version = *version + 1;
}

/* Only the first interrupt in progress changes what is read with that version. */
static __always_inline void nest_begin(struct nesting *nesting, __u64 *version, __u32 level,
				       __u64 now)
{
	if (nesting->active) {
		nesting->starts[level] = now;
		nesting->nested[level] = 0;
		nesting->active |= 1 << level;
		return;
	}
	begin_change(version);
	nesting->starts[level] = now;
	nesting->nested[level] = 0;
	nesting->since = now;
	nesting->active = 1 << level;
	end_change(version);
}

/* Whether the begin of an interrupt was seen. */
static __always_inline int nest_has(struct nesting *nesting, __u32 level)
{
	return nesting->active & 1 << level;
}

/* Stores in `own` how long an interrupt took that ends now, without those that interrupted it, and adds
 * its time to the one that it interrupted. Returns the levels that are still in progress, which the caller
 * stores in `active` last: what interrupts its program until then is part of the same interruption. */
static __always_inline __u32 nest_end(struct nesting *nesting, __u32 level, __u64 now, __u64 *own)
{
	__u64 whole = now - nesting->starts[level];
	__u32 others = nesting->active & ~(1 << level);

	if (level != SOFTIRQ && others & 1 << SOFTIRQ)
		nesting->nested[SOFTIRQ] += whole;
	else if (level == HANDLER && others & 1 << VECTOR)
		nesting->nested[VECTOR] += whole;
	*own = whole - nesting->nested[level];
	return others;
}

#endif
