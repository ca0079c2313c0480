/* SPDX-License-Identifier: Apache-2.0 */
/* For detect_rules*.c only: what one rule remembers of one host and class. */
#ifndef POLICY_DETECT_RULES_PARTS_H
#define POLICY_DETECT_RULES_PARTS_H

#include "policy/detect_rules.h"

/* RUN, COUNT: when the latest failures were. */
struct rule_times {
    uint32_t count; /* of the run; of COUNT: all that are kept */
    uint32_t next;
    mono_ns at[RULE_AT_LEAST_MAX];
};

/* SHARE, WAIT: the latest slices, the newest of them under way. */
struct rule_slices {
    uint64_t newest; /* its number */
    uint32_t tries[RULE_SLICES];
    uint32_t bad[RULE_SLICES];
    uint32_t with[RULE_SLICES];
};

/* Bins of latencies: 1/32 of an octave, 2.2 %. */
#define RULE_OCTAVE 32
#define RULE_BINS   (28 * RULE_OCTAVE)

/* Of all requests, those that show the second signal. */
struct rule_with {
    uint64_t tries;
    uint64_t bad;
};

/* MULTIPLE: one window, and what came of those before it. */
struct rule_window {
    uint32_t answers;
    uint32_t prolonged; /* windows that it went on over, for lack of answers */
    int32_t peers;      /* bin: the peers' median when last it was known; negative: never */
    int32_t own;        /* bin: its own of the window just closed; negative: too few answers */
    int32_t own_p95;    /* the same */
    uint32_t run;       /* windows in a row that were too late */
    struct rule_with now;
    struct rule_with during; /* of the run, ... */
    struct rule_with others; /* ... and of the peers meanwhile */
    struct rule_with before; /* it, each window for half of the one after it */
    uint32_t bins[RULE_BINS];
};

struct rule_cell {
    struct rule_finding finding;
    mono_ns found_at;
    struct rule_window *window; /* MULTIPLE; NULL: no memory, or nothing seen */
    union {
        struct rule_times times;
        struct rule_slices slices;
    };
};

/* How many requests it stands for. */
static inline uint32_t rule_weight(const struct evidence *e)
{
    return UINT32_C(1) << (e->thinned & 31);
}

/* Does the sample show what SHARE |s| counts? */
bool rule_shows(enum rule_signal s, const struct evidence *e);

/* Is |a|'s share higher than |b|'s? */
static inline bool rule_with_above(const struct rule_with *a, const struct rule_with *b)
{
    return a->bad * (b->tries == 0 ? 1 : b->tries) > b->bad * (a->tries == 0 ? 1 : a->tries);
}

/* detect_rules_count.c: RUN, COUNT, SHARE, WAIT. */
void rule_count_learn(const struct rules_judge *j, uint32_t index, uint32_t number,
                      struct rule_cell *cell, const struct evidence *e);

/* detect_rules_late.c: MULTIPLE. */
void rule_late_learn(struct rule_cell *cell, const struct rule *r, const struct evidence *e);
void rule_late_close(struct rules_judge *j, uint32_t number);

#endif
