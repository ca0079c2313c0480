/* SPDX-License-Identifier: Apache-2.0 */
/* What effect_watch.c keeps of a cluster, and says of it. For effect_*.c only. */
#ifndef CONTROL_EFFECT_PARTS_H
#define CONTROL_EFFECT_PARTS_H

#include "control/effect_watch.h"
#include "policy/effect.h"

/* Means over closed accounts. */
struct effect_mean {
    double sum;
    uint32_t count;
};

struct effects {
    struct effect_past fleet; /* of all that serve */
    struct effect_times times;
    struct effect_limit limits[EVIDENCE_CLASS_MAX];
    struct effect_host *open; /* those with an account */
    uint32_t open_count;
    uint32_t cause;          /* of the ejection that comes next */
    uint32_t overloaded_for; /* half seconds that the survivors have been */
    uint32_t well_for;       /* half seconds that they have not, with the cap lowered */
    struct effect_claim closed;
    struct effect_mean p99; /* of logarithms, both */
    struct effect_mean timeouts;
    struct effect_mean time_out; /* milliseconds */
};

#define GROUNDS_HAND     UINT32_MAX
#define GROUNDS_TRIGGERS ((uint32_t)DETECT_LINE_COUNT) /* ... and then enum outlier_trigger */

#define HOLD_FOR  (60 * NS_PER_S)
#define HOLD_MOST (600 * NS_PER_S)

struct effect_host *effect_of(const struct watched *c, uint32_t index);
bool effect_is_out(const struct watched *c, uint32_t index);
void effect_count(struct watched *c, enum effect_metric m);

/* Lines of the log. */
void effect_say_undone(struct watched *c, uint32_t index, mono_ns now);
void effect_say_closed(struct watched *c, uint32_t index, mono_ns now);
void effect_say_thresholds(struct watched *c, uint32_t index, double ratio);
void effect_say_capacity(struct watched *c, uint32_t index, double load);
void effect_say_no_help(struct watched *c, double load);

/* The survivors' load: 1 is where they slow down. And what follows from it. */
double effect_load(const struct watched *c);
void effect_look_at_capacity(struct watched *c, mono_ns now);

/* The gauges. */
void effect_show(struct watched *c);

#endif
