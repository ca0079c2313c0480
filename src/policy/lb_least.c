/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Least load: the host with the least (requests under way + 1) x cost (host_load.h), among all of
 * them up to LEAST_ALL, among a few drawn ones beyond. Hosts that cost less than two and a half
 * times the typical are alike: noise steers nobody. Among equals it is the one whose turn it is, so
 * that equal hosts get equal shares. Source: Finagle's Peak EWMA; that all are looked at: a host
 * ten times slower keeps 27 % of its share, with two choices 39 to 50 % (reference/detection.md).
 *
 * A retry begins anywhere, since who stands beside a host that failed often fails with it, and
 * looks at what is less than alike, too: it is to meet no other that has failed.
 */
#include "policy/lb_choice.h"

#define LEAST_ALL   64
#define LEAST_DRAWN 5
#define ALIKE       (5 * HOST_LOAD_TYPICAL / 2)

static uint64_t score_of(const struct lb_choice *from, uint32_t host, uint32_t alike)
{
    const struct host *h = from->hosts->at[host];
    uint32_t cost = host_load_cost(&h->load, from->hosts->typical, from->now);
    uint64_t under_way = atomic_load_explicit(&h->in_flight, memory_order_relaxed);

    return (under_way + 1) * (cost < alike ? alike : cost);
}

/* Of all, from the |first| on, or of a few drawn ones. */
static inline uint32_t least_of(const struct lb_choice *from, uint32_t first, uint32_t alike,
                                struct rng *rng)
{
    bool all = from->count <= LEAST_ALL;
    uint32_t looks = all ? from->count : LEAST_DRAWN;
    uint32_t best = lb_choice_host(from, first);
    uint64_t least = score_of(from, best, alike);

    for (uint32_t n = 1; n < looks && least > alike; n++) {
        uint32_t at = all ? (first + n) % from->count : rng_below(rng, from->count);
        uint32_t host = lb_choice_host(from, at);
        uint64_t score = score_of(from, host, alike);

        if (score < least) {
            least = score;
            best = host;
        }
    }
    return best;
}

/* The first is the one whose turn it is; the others follow in order, or are drawn. */
uint32_t lb_least_pick(struct lb *lb, const struct lb_choice *from, struct rng *rng)
{
    uint32_t best;

    if (from->skip_count > 0)
        return least_of(from, rng_below(rng, from->count), HOST_LOAD_TYPICAL, rng);
    best = least_of(from, lb_choice_turn(lb, from), ALIKE, rng);
    lb->cursor = lb->cursor + 1 == lb->eligible_count ? 0 : lb->cursor + 1;
    return best;
}
