/* SPDX-License-Identifier: Apache-2.0 */
/* Round robin: each host in turn; one that was already tried is passed over. */
#include "policy/lb_choice.h"

/* |lb->cursor| is the position in |eligible| whose turn it is; lb.c keeps it in range. */
static uint32_t first_not_skipped(const struct lb *lb, const struct lb_choice *from)
{
    uint32_t at = lb->cursor;

    for (uint32_t passed = 0; passed <= from->skip_count; passed++) {
        uint32_t i = 0;

        while (i < from->skip_count && from->skip[i] != at)
            i++;
        if (i == from->skip_count)
            return at;
        at = at + 1 == lb->eligible_count ? 0 : at + 1;
    }
    return at;
}

uint32_t lb_round_robin_pick(struct lb *lb, const struct lb_choice *from, struct rng *rng)
{
    uint32_t at = first_not_skipped(lb, from);

    (void)rng;
    lb->cursor = at + 1 == lb->eligible_count ? 0 : at + 1;
    return from->eligible[at];
}
