/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far a cluster's outlier detection can go. Not computed anew: the judge of policy/outlier is
 * put before the worst that can happen, and asked.
 */
#ifndef CONTROL_REACH_H
#define CONTROL_REACH_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/outlier.h"
#include "policy/panic.h"

/* Lengths of ejections in a row that are told apart; afterwards only the last is. */
#define REACH_STEPS_MAX 8

struct reach {
    uint32_t hosts;
    uint32_t by_runs;     /* most hosts out at once for runs of failures */
    uint32_t by_evidence; /* the same, on total evidence (policy/outlier.h) as well */
    uint32_t steps;       /* lengths that differ: the last one is repeated for ever */
    span_ns lengths[REACH_STEPS_MAX];
    bool grows_on; /* still, after the last one given */
    span_ns longest;
};

/* False: no memory. */
bool reach_compute(const struct outlier_config *c, uint32_t hosts, struct reach *out);

/* The most healthy hosts of |hosts| with which there is panic. False: there is none with any
 * number. */
bool reach_panic(const struct panic_config *p, uint32_t hosts, uint32_t *healthy);

#endif
