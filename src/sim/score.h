/* SPDX-License-Identifier: Apache-2.0 */
/* How well a crowd was served, by the ledger: requests that began within a time. */
#ifndef SIM_SCORE_H
#define SIM_SCORE_H

#include <stdint.h>

#include "sim/ledger.h"

struct score {
    uint64_t asked;    /* that the client did not give up itself */
    uint64_t answered; /* with a status below 500 */
    uint64_t late;     /* of those not answered: 504, or no answer at all */
    span_ns p50;       /* of those answered */
    span_ns p99;
};

/* Begun at |from| or later and before |to|. */
struct score score_between(const struct ledger *l, mono_ns from, mono_ns to);

static inline double score_success(const struct score *s)
{
    return s->asked == 0 ? 1 : (double)s->answered / (double)s->asked;
}

#endif
