/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When requests are due, whatever becomes of them: the open loop. Constant arrivals follow the
 * schedule k / rate from the first at 0; Poisson ones have exponential gaps of that mean.
 */
#ifndef LAB_ARRIVALS_H
#define LAB_ARRIVALS_H

#include <stdint.h>

#include "base/rng.h"
#include "base/units.h"

enum arrivals_kind { ARRIVALS_CONSTANT, ARRIVALS_POISSON };

struct arrivals {
    enum arrivals_kind kind;
    double rate;     /* a second */
    uint64_t number; /* of arrivals handed out */
    double at;       /* ns since the start, of the last one (Poisson) */
    struct rng rng;
};

/* |rate| > 0. */
void arrivals_init(struct arrivals *a, enum arrivals_kind kind, double rate, uint64_t seed);

/* The next one, as time since the start; never before the one before it. */
span_ns arrivals_next(struct arrivals *a);

#endif
