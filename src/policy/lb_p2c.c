/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Power of two choices: of two different hosts drawn at random, the one with fewer attempts under
 * way. Source: Mitzenmacher, "The power of two choices in randomized load balancing", 2001.
 */
#include "policy/lb_choice.h"

static uint32_t load_of(const struct lb_choice *from, uint32_t host)
{
    return atomic_load_explicit(&from->hosts->at[host].in_flight, memory_order_relaxed);
}

uint32_t lb_p2c_pick(struct lb *lb, const struct lb_choice *from, struct rng *rng)
{
    uint32_t first = rng_below(rng, from->count);
    uint32_t second, a, b;

    (void)lb;
    if (from->count == 1)
        return lb_choice_host(from, first);
    second = rng_below(rng, from->count - 1); /* of the others */
    if (second >= first)
        second++;
    a = lb_choice_host(from, first);
    b = lb_choice_host(from, second);
    return load_of(from, b) < load_of(from, a) ? b : a;
}
