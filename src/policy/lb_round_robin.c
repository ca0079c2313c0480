/* SPDX-License-Identifier: Apache-2.0 */
/* Round robin: each host in turn; one that was already tried is passed over. */
#include "policy/lb_choice.h"

static bool left_out(const struct lb_choice *from, uint32_t position)
{
    for (uint32_t i = 0; i < from->skip_count; i++) {
        if (from->skip[i] == position)
            return true;
    }
    return false;
}

uint32_t lb_round_robin_pick(struct lb *lb, const struct lb_choice *from, struct rng *rng)
{
    uint32_t at =
        lb->cursor; /* the position in |eligible| whose turn it is; lb.c keeps it in range */

    (void)rng;
    while (left_out(from, at)) /* not for ever: there is one to choose */
        at = at + 1 == lb->eligible_count ? 0 : at + 1;
    lb->cursor = at + 1 == lb->eligible_count ? 0 : at + 1;
    return from->eligible[at];
}
