/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is configured of detection (`resilience` of a cluster), beside the outlier rules.
 *
 * Source of the threshold: D. Siegmund, "Sequential Analysis", 1985: the mean time between false
 * alarms of a CUSUM made for a shift of one standard deviation is 2 e^(h + 1.166) samples
 * (reference/detection.md B17).
 */
#ifndef POLICY_DETECTION_H
#define POLICY_DETECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/detect.h"
#include "policy/detect_rules.h"
#include "policy/host_life.h"

/* Constant after PROFILE_, name as configured. */
#define DETECTION_PROFILES(X)                                                                      \
    X(STARTER, starter)   /* obvious failures eject; latency only cuts a host's share */           \
    X(RULES, rules)       /* what the rules say ejects */                                          \
    X(ADAPTIVE, adaptive) /* all lines of evidence eject, and a host that is out is probed soon */

#define X(constant, name) PROFILE_##constant,
enum detection_profile { DETECTION_PROFILES(X) PROFILE_COUNT };
#undef X

enum detection_mode { DETECTION_ENFORCE, DETECTION_OBSERVE };

struct detection_config {
    bool on; /* false: nothing is learnt beyond outlier detection */
    enum detection_mode mode;
    enum detection_profile profile;
    struct detect_config detect;
    struct life_config life;
    const struct rule *rules;
    uint32_t rule_count;
    bool rules_act;  /* else what they would have done is counted */
    double max_load; /* of the others, for latency to take a host out; 1: where they slow down */
};

/* What |profile| decides of the life of hosts. */
void detection_set_profile(struct detection_config *d, enum detection_profile profile);

const char *detection_profile_text(enum detection_profile p);

/* "enforce", "observe". */
const char *detection_mode_text(enum detection_mode m);

/* Samples a second of a fleet where nobody has counted: 20 hosts of 10. */
#define DETECTION_FLEET_RATE 200.0

/*
 * The threshold with which so many accusations a week are false, where the fleet has |rate| samples
 * a second; and the other way round. Both for samples that do not depend on each other (B17).
 */
double detection_threshold(double alarms_a_week, double rate);
double detection_false_alarms(double threshold, double rate);

#endif
