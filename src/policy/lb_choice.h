/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a balancer chooses from: the eligible hosts without those already tried, numbered 0 to
 * count - 1 in the order of the configuration. Inside policy only.
 */
#ifndef POLICY_LB_CHOICE_H
#define POLICY_LB_CHOICE_H

#include <stdint.h>

#include "base/rng.h"
#include "policy/host.h"
#include "policy/lb.h"

struct lb_choice {
    const struct host_set *hosts;
    mono_ns now;
    const uint32_t *eligible; /* of the struct lb */
    uint32_t count;           /* hosts to choose from; at least 1 where a balancer is asked */
    uint32_t skip_count;
    uint32_t skip[LB_TRIED_MAX]; /* positions in |eligible| that are left out, ascending */
};

/* Position in |eligible| of the |n|-th host to choose from; n < count. */
static inline uint32_t lb_choice_position(const struct lb_choice *c, uint32_t n)
{
    for (uint32_t i = 0; i < c->skip_count && c->skip[i] <= n; i++)
        n++;
    return n;
}

/* Index in the host set of the |n|-th host to choose from; n < count. */
static inline uint32_t lb_choice_host(const struct lb_choice *c, uint32_t n)
{
    return c->eligible[lb_choice_position(c, n)];
}

/* Which of the hosts to choose from has its turn; 0 to count - 1. */
static inline uint32_t lb_choice_turn(const struct lb *lb, const struct lb_choice *c)
{
    uint32_t before = 0;

    for (uint32_t i = 0; i < c->skip_count; i++)
        before += c->skip[i] < lb->cursor;
    return (lb->cursor - before) % c->count;
}

/* Fills |eligible| from the hosts' health, and says whether there is panic. */
void lb_collect(struct lb *lb, const struct host_set *hosts);

/* lb_<name>_pick of each kind: the index of the host to use. */
#define X(constant, name, alias)                                                                   \
    uint32_t lb_##name##_pick(struct lb *lb, const struct lb_choice *from, struct rng *rng);
LB_KINDS(X)
#undef X

#endif
