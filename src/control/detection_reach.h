/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How soon the adaptive judge accuses a bad host. Not computed: the judge of policy/detect is given
 * made-up traffic of such hosts, and asked. Latencies are log-normal with sigma 0.5, as of a
 * service whose p99 is three times its median; arrivals are Poisson.
 */
#ifndef CONTROL_DETECTION_REACH_H
#define CONTROL_DETECTION_REACH_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/detect.h"

struct detection_fault {
    double rate;    /* requests a second and host */
    double times;   /* it takes so many times as long; 1: as long as its peers */
    double failing; /* share of its answers that are errors */
};

/* Later than that is never. */
#define DETECTION_REACH_MAX (600 * NS_PER_S)

/*
 * From the begin of the fault in one of |hosts| to the first accusation that holds against it, the
 * median of a few runs, always the same ones. MONO_NEVER: not within DETECTION_REACH_MAX, or no
 * memory.
 */
span_ns detection_reach(const struct detect_config *c, uint32_t hosts,
                        const struct detection_fault *fault);

#endif
