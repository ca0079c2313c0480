/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/arrivals.h"

#include <assert.h>

#include "lab/distribution.h"

#define FAR ((double)(UINT64_C(1) << 62)) /* 146 years: no run is longer */

void arrivals_init(struct arrivals *a, enum arrivals_kind kind, double rate, uint64_t seed)
{
    assert(rate > 0);

    *a = (struct arrivals){.kind = kind, .rate = rate};
    rng_init(&a->rng, seed);
}

span_ns arrivals_next(struct arrivals *a)
{
    double gap = (double)NS_PER_S / a->rate;
    double at = (double)a->number * gap; /* a product, so that rounding never adds up */

    if (a->kind == ARRIVALS_POISSON)
        at = a->at + draw_exponential(&a->rng) * gap;
    a->at = at < FAR ? at : FAR;
    a->number++;
    return (span_ns)a->at;
}
