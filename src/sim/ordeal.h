/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One seeded run with one trouble: a quiet time, the trouble, a quiet time again. Whose trouble it
 * is and of what kind the seed says; what the proxy made of it is held against that.
 */
#ifndef SIM_ORDEAL_H
#define SIM_ORDEAL_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/scope.h"
#include "sim/onlooker.h"
#include "sim/rig.h"
#include "sim/score.h"

/* Constant after ORDEAL_, how it is told: what a host may have, then what the proxy may. */
#define ORDEAL_FAULTS(X)                                                                           \
    X(SLOW, "slow")                                                                                \
    X(RAMP, "slow, little by little")                                                              \
    X(TAIL, "slow on some requests")                                                               \
    X(FREEZES, "freezes")                                                                          \
    X(ERRORS, "errors")                                                                            \
    X(HANGS, "black hole")                                                                         \
    X(CUTS, "answers cut")                                                                         \
    X(REFUSES, "refuses connects")                                                                 \
    X(THROTTLED, "loops throttled")                                                                \
    X(STOPPED, "loops stopped")                                                                    \
    X(LOSSY, "own link lossy")                                                                     \
    X(CUT_OFF, "cut off")

#define X(constant, text) ORDEAL_##constant,
enum ordeal_fault { ORDEAL_FAULTS(X) ORDEAL_FAULT_COUNT };
#undef X

const char *ordeal_fault_text(enum ordeal_fault f);

struct ordeal_plan {
    struct rig_settings settings;
    uint32_t rate;         /* requests a second, each host */
    span_ns service;       /* median */
    double sigma;          /* of its logarithm */
    enum scope_kind whose; /* SCOPE_NONE: all is well */
    enum ordeal_fault fault;
    double size;       /* factor, or share; STOPPED: seconds */
    uint64_t met;      /* hosts, a bit each */
    bool one_loop;     /* STOPPED: the busiest worker alone, or the whole process */
    double usual_load; /* CAPACITY: before, of what the hosts can do */
};

/* What the seed says. Whose trouble it is goes round: seed modulo the kinds. */
void ordeal_plan_init(struct ordeal_plan *o, uint64_t seed);

#define ORDEAL_BEFORE (20 * NS_PER_S)
#define ORDEAL_DURING (30 * NS_PER_S)
#define ORDEAL_AFTER  (20 * NS_PER_S)

struct ordeal_result {
    bool good; /* no law was broken */
    char failure[WORLD_FAILURE_MAX];
    uint64_t digest;
    enum scope_kind said; /* the proxy's verdict during the trouble */
    uint64_t out;         /* hosts that went out during it, a bit each */
    uint64_t cut;         /* or had no more than half of their share */
    span_ns acted;        /* from its begin to the first host of those met being out or cut; */
                          /* MONO_NEVER: none */
    uint32_t outs_after;  /* hosts of those met that were still out at the end */
    uint32_t flips;       /* how often any host went out */
    struct score before, during, after;
    double attempts; /* a request, during it */
};

/* False: no memory. */
bool ordeal_run(const struct ordeal_plan *o, struct ordeal_result *out);

#endif
