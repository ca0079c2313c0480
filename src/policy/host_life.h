/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of one host under detection, where it comes back on proof and not by the clock:
 *
 *              accused of latency                       accused, no guard against it
 *     HEALTHY <==================> SUSPECT ----------------------.
 *        ^  |      cleared                                       |
 *        |  '--------------------------------------------------> v
 *        |                                                    EJECTED <-----------------.
 *        |                                                       | rested               |
 *        |  whole share                 successes in a row       v                      |
 *        '-------------- RAMPING <---------------------------- PROBING --- one failed --'
 *                           '--------------- accused, or failed --------->
 *
 * Who judges is policy/detect.h and outlier_judge.h; what is done of it is control's. Here is how
 * much of the traffic the host gets meanwhile, and when it is tried. Pure; control thread only.
 */
#ifndef POLICY_HOST_LIFE_H
#define POLICY_HOST_LIFE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/units.h"

/* Constant after LIFE_, name as shown. */
#define LIFE_STATES(X)                                                                             \
    X(HEALTHY, healthy)                                                                            \
    X(SUSPECT, suspect) /* it gets a share of what is fair */                                      \
    X(EJECTED, ejected) /* it gets nothing */                                                      \
    X(PROBING, probing) /* it gets a few single requests, so that it can show that it is well */   \
    X(RAMPING, ramping) /* its share grows with its successes */

#define X(constant, name) LIFE_##constant,
enum life_state { LIFE_STATES(X) LIFE_STATE_COUNT };
#undef X

const char *life_state_text(enum life_state s);

#define LIFE_WHOLE 1000u /* a share, in thousandths of what is fair */

struct life_config {
    bool quick;              /* it is probed soon, not only after the quarantine */
    span_ns after;           /* the first probe, where |quick| */
    span_ns gap;             /* at most, between probes, while it is out for less than a minute */
    span_ns base;            /* quarantine: so many times as it was out lately, at most ... */
    span_ns max;             /* ... this */
    uint32_t probes;         /* under way at once at first; then as many as have passed */
    uint32_t successes;      /* of probes in a row */
    span_ns ramp;            /* at most, to a whole share */
    uint32_t least_share;    /* of a suspect */
    span_ns repeated_for;    /* out for so long, or ... */
    uint32_t times_per_hour; /* ... out so often: only a human lets it back; 0: never */
};

#define LIFE_QUICK_FOR  (60 * NS_PER_S) /* out for less: probes and ramp are quick */
#define LIFE_PROBE_MAX  8               /* under way at once */
#define LIFE_RAMP_QUICK NS_PER_S
#define LIFE_RAMP_FROM  400 /* share at the ramp's begin */
#define LIFE_TIMES_KEPT 8
#define LIFE_FORGETS    (600 * NS_PER_S) /* well for so long: it was out once less */

struct life {
    enum life_state state;
    mono_ns since;          /* of the state */
    mono_ns out_since;      /* of the time out that is under way */
    span_ns last_out;       /* how long the last one took; 0: never out */
    uint32_t times;         /* out lately: the quarantine is that many bases */
    uint32_t share;         /* thousandths */
    uint32_t granted;       /* probes of the round under way that have not come back */
    uint32_t round;         /* probes in it */
    uint32_t in_row;        /* successes */
    mono_ns in_row_since;   /* the first of them, while it is probed */
    uint32_t failed_rounds; /* since it went out */
    span_ns least_gap;      /* between probes, so that they are few where there is little traffic */
    span_ns pause;          /* between the lapses it went for: it has to do without for longer */
    mono_ns wake;           /* life_turn has something to do; MONO_NEVER: it waits for events */
    bool needs_human;
    mono_ns outs[LIFE_TIMES_KEPT]; /* when it went out, the latest ones; 0: none */
    uint32_t outs_next;
};

/* What the caller is to do. */
struct life_step {
    bool changed;   /* of state or share */
    bool escalated; /* it needs a human from now on */
    uint32_t grant; /* so many more probes */
};

void life_init(struct life *l);

/* HEALTHY or SUSPECT: accused of latency; |share| is kept within least and whole. */
struct life_step life_suspect(struct life *l, const struct life_config *c, uint32_t share,
                              mono_ns now);

/* SUSPECT: it is no more. */
struct life_step life_clear(struct life *l, mono_ns now);

/* Any state but EJECTED: out. */
struct life_step life_eject(struct life *l, const struct life_config *c, mono_ns now);

/* A probe, or in RAMPING any request, has come back. */
struct life_step life_learn(struct life *l, const struct life_config *c, bool passed, mono_ns now);

/* |wake| has come. */
struct life_step life_turn(struct life *l, const struct life_config *c, mono_ns now);

/* By hand: as if nothing had been. */
struct life_step life_pardon(struct life *l, mono_ns now);

/* May requests be picked for it as for others, if with a share? */
static inline bool life_serves(const struct life *l)
{
    return l->state != LIFE_EJECTED && l->state != LIFE_PROBING;
}

/* How long it stays out at least, if it goes now. */
span_ns life_quarantine(const struct life *l, const struct life_config *c);

#endif
