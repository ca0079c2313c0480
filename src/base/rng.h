/* SPDX-License-Identifier: Apache-2.0 */
/* Seeded pseudo-random numbers (xoshiro256++, Blackman and Vigna 2019; seeded by splitmix64). */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include <stdint.h>

struct rng {
    uint64_t s[4];
};

void rng_init(struct rng *r, uint64_t seed);
uint64_t rng_next(struct rng *r);

/* Uniform in 0 .. n - 1, without bias (Lemire 2019); n >= 1. */
uint32_t rng_below(struct rng *r, uint32_t n);

/* Uniform in [0, 1), 53 bits. */
double rng_unit(struct rng *r);

#endif
