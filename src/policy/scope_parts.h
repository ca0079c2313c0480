/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of hosts, compared with one another. For scope*.c only. */
#ifndef POLICY_SCOPE_PARTS_H
#define POLICY_SCOPE_PARTS_H

#include "policy/scope.h"

#define ZONE_SHARE    0.7 /* of the hosts of a zone, or of the fleet, that make it bad */
#define VERSION_SHARE 1.0
#define GROUP_LEAST   2 /* hosts with evidence: one alone is a node */
#define MIDDLE        0.5

#define BAD_LEAST   0.05 /* share of failures */
#define BAD_TIMES   2.0  /* and so often more than the other groups */
#define USUAL_BAD   0.001
#define TRIES_LEAST 1.0
#define SHARE_MOST  0.95 /* of a host that always fails one answer may be fine */

#define PATH_NOW_KEEPS 0.3 /* of the path just now, from one half second to the next */

#define SCOPE_LEARNING 4 /* half seconds in which what is usual is made */

#define GATE            0.4054651081081644 /* ln 1.5 */
#define DEVIATIONS      3.5
#define DEVIATION_SURE  1.2533 /* mean absolute deviation to standard deviation */
#define DEVIATION_LEAST 0.04

#define USUAL_SPEED (1.0 / 600)  /* a half second: what is usual follows in five minutes */
#define SLOW_SPEED  (1.0 / 2400) /* while something is wrong */

/* Histogram of shifts. */
#define SHIFT_BINS 160
#define SHIFT_STEP 0.05

/* Of the hosts of one zone or version; or of all. */
struct scope_group {
    uint32_t hosts;   /* serving, or out */
    uint32_t marked;  /* or out */
    uint32_t out;     /* for a while */
    uint32_t accused; /* lately */
    uint32_t known;   /* with a shift */
    uint32_t at[SHIFT_BINS];
    struct detect_rate rates[SCOPE_RATE_COUNT];
};

struct scope_table {
    enum scope_by by;
    double share; /* of its hosts that make a group bad */
    struct scope_group groups[SCOPE_GROUPS_MAX + 1];
};

/* Each host's shift. */
void scope_shift(struct scope *s);

/* One more of |count| that are in order. */
void scope_insert(double *sorted, uint32_t count, double one);

/*
 * How far away each zone is whose hosts are ranked among those of others: scope_away.c. Learnt
 * while nothing is wrong, and at first; set, where it is more than chance.
 */
void scope_learn_away(struct scope *s);
void scope_set_away(struct scope *s);

void scope_count(const struct scope *s, struct scope_table *t);

void scope_count_shift(struct scope_group *g, double shift);
void scope_count_host(struct scope_group *g, const struct scope *s, uint32_t index);

/* The shift that a share of the group's hosts reach. Only where some are known. */
double scope_reached(const struct scope_group *g, double share);

/* Is group |g| bad, and by what? |v| gets it. */
bool scope_is_bad(const struct scope *s, const struct scope_table *t, uint32_t g,
                  struct scope_verdict *v);

/* The same by latency alone. */
bool scope_lags(const struct scope *s, const struct scope_table *t, uint32_t g,
                struct scope_verdict *v);

/* What the shift of a host of the group is less, to say how it lags behind others; NAN: unknown. */
double scope_place(const struct scope *s, const struct scope_table *t, uint32_t g);

/* Of one host's shift, standard. */
double scope_deviation(const struct scope *s);

/* Groups that were bad: scope_hold.c. Before a half second's rates |first| to |last| fade; its end.
 */
void scope_count_since(struct scope *s, enum scope_sign first, enum scope_sign last);
void scope_turn_holds(struct scope *s);

/* It is bad from now on, as found by |how|. Where it is known to be, nothing happens. */
void scope_begin_hold(struct scope *s, enum scope_by by, const struct scope_verdict *how);

/* NULL: group |g| was not, or is well again. */
const struct scope_verdict *scope_held(const struct scope *s, enum scope_by by, uint32_t g);

/* Of host |index|; |kind|: one of detect_kind, or DETECT_KIND_COUNT: the path. */
const struct detect_rate *scope_rate(const struct scope *s, uint32_t index, uint32_t kind);

/* n KL(q, p): that many nats against a share of failures |p|. */
double scope_nats(const struct detect_rate *r, double p);

/* What the hosts have in common as a whole: scope_all.c. */
struct scope_verdict scope_of_path(const struct scope *s);
struct scope_verdict scope_of_all(const struct scope *s);

/* A half second is over: what was asked in it, and where the hosts are among each other. */
void scope_turn_all(struct scope *s);

/* Nothing is wrong that would not be learnt as usual. */
bool scope_is_calm(const struct scope *s);

bool scope_takes_part(const struct scope *s, uint32_t index);
bool scope_is_marked(const struct scope *s, uint32_t index);

#endif
