/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __ASM_UM_ARCHRANDOM_H__
#define __ASM_UM_ARCHRANDOM_H__

#include <linux/types.h>

/* The same numbers in every run. The first process of a run mixes in the run's seed. */
static inline size_t __must_check arch_get_random_longs(unsigned long *v, size_t max_longs)
{
	size_t n;

	for (n = 0; n < max_longs; n++)
		v[n] = 0x9e3779b97f4a7c15UL * (n + 1);
	return max_longs;
}

static inline size_t __must_check arch_get_random_seed_longs(unsigned long *v, size_t max_longs)
{
	return 0;
}

#endif
