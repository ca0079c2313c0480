/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/score.h"

#include <stdlib.h>

#include "base/memory.h"

static int compare(const void *a, const void *b)
{
    const span_ns *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static bool is_in(const struct fact *f, mono_ns from, mono_ns to)
{
    return f->begun >= from && f->begun < to && f->outcome != OUTCOME_CANCELLED &&
           f->outcome != OUTCOME_PENDING;
}

static bool is_answered(const struct fact *f)
{
    return f->outcome == OUTCOME_ANSWERED && f->status < 500;
}

static uint64_t collect(const struct ledger *l, mono_ns from, mono_ns to, span_ns *took)
{
    uint64_t n = 0;

    for (uint64_t i = 0; i < l->count; i++) {
        const struct fact *f = &l->at[i];

        if (is_in(f, from, to) && is_answered(f))
            took[n++] = mono_since(f->begun, f->ended);
    }
    return n;
}

static void measure(struct score *s, const struct ledger *l, mono_ns from, mono_ns to)
{
    span_ns *took = memory_take_array(s->answered, sizeof(*took));
    uint64_t n = took == NULL ? 0 : collect(l, from, to, took);

    if (n == 0)
        return;
    qsort(took, n, sizeof(*took), compare);
    s->p50 = took[(n - 1) / 2];
    s->p99 = took[(n - 1) * 99 / 100];
    memory_give(took);
}

struct score score_between(const struct ledger *l, mono_ns from, mono_ns to)
{
    struct score s = {.asked = 0};

    for (uint64_t i = 0; i < l->count; i++) {
        const struct fact *f = &l->at[i];

        if (!is_in(f, from, to))
            continue;
        s.asked++;
        s.answered += is_answered(f);
        s.late += f->status == 504 || f->status == 0;
    }
    if (s.answered > 0)
        measure(&s, l, from, to);
    return s;
}
