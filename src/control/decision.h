/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One decision about a host or a fleet as data: what was known before the deed, what each guard
 * said, what was done. From it come the line of the journal, the event of /events, the log line and
 * the words of /explain; scripts/check-journal does its sums again.
 */
#ifndef CONTROL_DECISION_H
#define CONTROL_DECISION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "base/units.h"
#include "policy/detect.h"
#include "policy/detect_rules.h"
#include "policy/host_life.h"
#include "policy/outlier_judge.h"
#include "policy/scope.h"

/* Constant after DECISION_, name as shown. */
#define DECISIONS(X)                                                                               \
    X(SUSPECTED, suspected) /* its share is cut */                                                 \
    X(CLEARED, cleared)     /* it is not suspected any more */                                     \
    X(EJECTED, ejected)                                                                            \
    X(REFUSED, refused)                 /* it would have been ejected but for a guard */           \
    X(HELD, held)                       /* past the threshold, but the accusation does not hold */ \
    X(PROBING, probing)                 /* out, and tried with single requests */                  \
    X(RAMPING, ramping)                 /* in again, with a share that grows */                    \
    X(RETURNED, returned)               /* in again as before */                                   \
    X(NEEDS_HUMAN, needs_human)         /* out until it is pardoned */                             \
    X(OBSERVED, observed)               /* mode: observe, or enforced in part: only counted */     \
    X(FLEET_SLOWDOWN, fleet_slowdown)   /* all are slow: no host is blamed */                      \
    X(FLEET_RECOVERED, fleet_recovered) /* they are no more */                                     \
    X(VERDICT, verdict)                 /* whose trouble it is has changed: |whose| */

#define X(constant, name) DECISION_##constant,
enum decision_what { DECISIONS(X) DECISION_COUNT };
#undef X

/* What the decision comes from. */
#define DECISION_CAUSES(X)                                                                         \
    X(ACCUSED, accused)   /* by its evidence: |line| */                                            \
    X(RELAPSED, relapsed) /* it failed while its share grew */                                     \
    X(RULE, rule)         /* one of `resilience.rules`: |rule| */                                  \
    X(TRIGGER, trigger)   /* of outlier detection: |trigger| */                                    \
    X(PROOF, proof)       /* it showed that it is well */                                          \
    X(TIME, time)         /* its quarantine is over */                                             \
    X(HAND, hand)         /* an operator */                                                        \
    X(UNDONE, undone)     /* its ejection did no good, or the others could not do without */       \
    X(FLEET, fleet)       /* all hosts together */                                                 \
    X(SCOPE, scope)       /* its zone or version is bad: |whose| */

#define X(constant, name) CAUSE_##constant,
enum decision_cause { DECISION_CAUSES(X) CAUSE_COUNT };
#undef X

/* In the order in which they are asked. */
#define DECISION_GUARDS(X)                                                                         \
    X(FLEET, fleet)             /* the fleet is slow */                                            \
    X(CROWD, crowd)             /* too many look alike */                                          \
    X(RATED, rated)             /* too few peers or answers for a ratio */                         \
    X(GATE, gate)               /* not late enough against its peers */                            \
    X(SCOPE, scope)             /* whose trouble it is: not its own */                             \
    X(MODE, mode)               /* it only observes */                                             \
    X(PROFILE, profile)         /* such evidence does not eject in this profile */                 \
    X(CERTAIN, certain)         /* latency alone, not three times as much nor for two seconds */   \
    X(CAPACITY, capacity)       /* the others could not carry its load */                          \
    X(ALREADY_OUT, already_out) /* it is out */                                                    \
    X(LAST_HOST, last_host)     /* nobody else serves */                                           \
    X(CAP, cap)                 /* too many would be out */                                        \
    X(FEW_HEALTHY, few_healthy) /* fewer than four serve, and the evidence is not total */

#define X(constant, name) GUARD_##constant,
enum decision_guard { DECISION_GUARDS(X) GUARD_COUNT };
#undef X

enum guard_verdict { GUARD_NOT_ASKED, GUARD_PASSES, GUARD_HOLDS };

#define DECISION_NAME_MAX 255 /* bytes of a name; more is cut */
#define DECISION_STEPS    (DETECT_HISTORY + 1)

struct decision_name {
    uint8_t len;
    char text[DECISION_NAME_MAX];
};

struct decision {
    uint64_t number; /* from 1 on, in the order of the decisions of a process */
    wall_ns at;
    mono_ns when;
    struct decision_name cluster;
    struct decision_name host; /* empty: the fleet */
    enum decision_what what;
    enum decision_cause cause;
    enum decision_guard guard;    /* the first that holds; GUARD_COUNT: none does */
    enum outlier_trigger trigger; /* CAUSE_TRIGGER */
    enum rule_signal rule;        /* CAUSE_RULE */
    enum detect_line line;        /* DETECT_LINE_COUNT: none */
    double statistic;             /* nats, percent, or how many in a row */
    double threshold;
    /* The judge's, as they were before the deed. */
    bool rated;
    double ratio; /* as a multiple, here and below */
    double gate;
    double usual;
    span_ns late_for; /* for how long it is past the gate */
    span_ns sure_for; /* for how long it is three times slower */
    double sums[DETECT_LINE_COUNT];
    uint32_t step_count;
    struct detect_step steps[DECISION_STEPS]; /* oldest first */
    /* What the guards look at. */
    uint8_t verdicts[GUARD_COUNT]; /* enum guard_verdict */
    bool fleet_slow;
    double fleet_ratio;
    enum scope_kind whose; /* trouble it is */
    uint32_t alike;
    double load; /* of the others, without it: 1 is the knee */
    double load_most;
    struct outlier_look look;
    /* What it came to. */
    enum life_state before;
    enum life_state state;
    uint32_t share; /* thousandths of a fair one */
    span_ns out_for;
    uint32_t times; /* out so often */
};

const char *decision_what_text(enum decision_what w);
const char *decision_cause_text(enum decision_cause c);
const char *decision_guard_name(enum decision_guard g);
const char *guard_verdict_text(enum guard_verdict v);

void decision_name_set(struct decision_name *n, struct bytes text);

static inline struct bytes decision_name_bytes(const struct decision_name *n)
{
    return bytes_from(n->text, n->len);
}

/* The first guard that holds; GUARD_COUNT: none does. */
enum decision_guard decision_first_guard(const struct decision *d);

/* One JSON object, no line end. It needs at most DECISION_JSON_ROOM. */
#define DECISION_JSON_ROOM 12288
void decision_json(struct text *t, const struct decision *d);

/* A sentence or two: what was done and why; with numbers. */
#define DECISION_WORDS_ROOM 2048
void decision_words(struct text *t, const struct decision *d);

/* What would have to be otherwise for another decision; may be empty. */
void decision_remedy(struct text *t, const struct decision *d);

/* What guard |g| looked at, with its limit. */
void decision_guard_words(struct text *t, const struct decision *d, enum decision_guard g);

#endif
