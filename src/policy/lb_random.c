/* SPDX-License-Identifier: Apache-2.0 */
/* Random: each host as likely as the next. */
#include "policy/lb_choice.h"

uint32_t lb_random_pick(struct lb *lb, const struct lb_choice *from, struct rng *rng)
{
    (void)lb;
    return lb_choice_host(from, rng_below(rng, from->count));
}
