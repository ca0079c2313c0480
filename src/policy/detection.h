/* SPDX-License-Identifier: Apache-2.0 */
/* What is configured of detection (`resilience` of a cluster), beside the outlier rules. */
#ifndef POLICY_DETECTION_H
#define POLICY_DETECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/detect.h"
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
};

const char *detection_profile_text(enum detection_profile p);

#endif
