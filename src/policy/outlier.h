/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outlier detection: its configuration and its words. The evidence is outlier_runs.h (all workers),
 * the rates of a finished interval outlier_statistics.h, who goes and who comes back
 * outlier_judge.h (the control thread).
 *
 * Source: Envoy's outlier detection (reference/envoy-semantics.md 1), exactly where the cluster
 * follows Envoy (policy/differences.h); else with the cap of DESIGN.md law 1.
 */
#ifndef POLICY_OUTLIER_H
#define POLICY_OUTLIER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/units.h"
#include "policy/differences.h"

enum outlier_trigger {
    OUTLIER_NONE,
    OUTLIER_CONSECUTIVE_5XX,
    OUTLIER_CONSECUTIVE_GATEWAY,
    OUTLIER_CONSECUTIVE_LOCAL_ORIGIN,
    OUTLIER_DETECTED, /* by its evidence against its peers (policy/detect.h) */
    OUTLIER_SUCCESS_RATE,
    OUTLIER_SUCCESS_RATE_LOCAL_ORIGIN,
    OUTLIER_FAILURE_PERCENTAGE,
    OUTLIER_FAILURE_PERCENTAGE_LOCAL_ORIGIN,
    OUTLIER_TRIGGER_COUNT
};

/* "consecutive_5xx", "consecutive_gateway_failure", ... as in the names of the metrics. */
const char *outlier_trigger_text(enum outlier_trigger t);

/* Several triggers of one report, as bits 1 << enum outlier_trigger. */
typedef uint32_t outlier_triggers;

static inline outlier_triggers outlier_bit(enum outlier_trigger t)
{
    return (outlier_triggers)1 << t;
}

/* Runs act at once; rates are looked at in the sweep. */
static inline bool outlier_is_rate(enum outlier_trigger t)
{
    return t >= OUTLIER_SUCCESS_RATE;
}

/* Where |split|, what the host answered and what never got an answer are counted apart. */
enum outlier_origin { OUTLIER_EXTERNAL, OUTLIER_LOCAL, OUTLIER_ORIGIN_COUNT };

/* Of the requests of one interval. */
struct outlier_rate_rules {
    uint32_t success_hosts;  /* with volume enough, before the rule looks at all */
    uint32_t success_volume; /* requests a host */
    uint32_t success_factor; /* standard deviations below the mean, in thousandths */
    uint32_t failure_hosts;
    uint32_t failure_volume;
    uint32_t failure_percent; /* that many or more */
};

#define OUTLIER_CODE_FIRST 100
#define OUTLIER_CODE_LAST  599

/* Which statuses are errors. Where nothing is |given|: 500 and above. */
struct outlier_codes {
    bool given;
    uint64_t bits[(OUTLIER_CODE_LAST - OUTLIER_CODE_FIRST) / 64 + 1];
};

void outlier_codes_add(struct outlier_codes *codes, uint32_t status);

struct outlier_config {
    uint32_t consecutive_5xx;          /* 0: off */
    uint32_t consecutive_gateway;      /* 502, 503, 504; 0: off */
    uint32_t consecutive_local_origin; /* 0: off; only counts with |split| */
    bool split;                        /* local-origin failures apart; else as 503 and 504 */
    bool enabled;                      /* false: nothing is learnt, nobody is ejected */
    bool return_on_proof;  /* who is out comes back by policy/host_life.h, not by time */
    bool always_eject_one; /* the cap never keeps the first one in */
    span_ns interval;      /* of the sweep */
    span_ns base_ejection;
    span_ns max_ejection;          /* the time never grows beyond max(this, base) */
    span_ns jitter;                /* added, 0 .. jitter, outside the maximum */
    uint32_t max_ejection_percent; /* 0: observe only; a set of 2 or more may always lose one
                                      otherwise */
    uint8_t enforcing[OUTLIER_TRIGGER_COUNT]; /* percent of what would eject that does */
    struct outlier_rate_rules rates;
    struct outlier_codes codes;
    difference_set differences; /* the cluster's */
};

/* The run of |t| that ejects; 0: none does. With |split| off, failures without an answer have none.
 */
uint32_t outlier_ejecting_run(const struct outlier_config *c, enum outlier_trigger t);

/* Does any rate eject? */
bool outlier_rates_eject(const struct outlier_config *c);

/* For |enforcing|: all runs, no rate. For |rates|: Envoy's defaults. */
#define OUTLIER_ENFORCING_RUNS                                                                     \
    {                                                                                              \
        [OUTLIER_CONSECUTIVE_5XX] = 100, [OUTLIER_CONSECUTIVE_GATEWAY] = 100,                      \
        [OUTLIER_CONSECUTIVE_LOCAL_ORIGIN] = 100, [OUTLIER_DETECTED] = 100                         \
    }
#define OUTLIER_RATE_RULES                                                                         \
    {                                                                                              \
        .success_hosts = 5, .success_volume = 100, .success_factor = 1900, .failure_hosts = 5,     \
        .failure_volume = 50, .failure_percent = 85                                                \
    }

/* Why a trigger did not lead to an ejection. */
enum outlier_guard {
    OUTLIER_GUARD_NONE, /* it did */
    OUTLIER_GUARD_ALREADY_OUT,
    OUTLIER_GUARD_CAP,         /* more hosts out than max_ejection_percent allows */
    OUTLIER_GUARD_FEW_HEALTHY, /* fewer than four healthy, and no total evidence or one is out
                                  already */
    OUTLIER_GUARD_LAST_HOST,
    OUTLIER_GUARD_NOT_ENFORCED, /* the dice said no: it is only counted */
    OUTLIER_GUARD_COUNT
};

/* "none", "already_out", "cap", "few_healthy", "last_host", "not_enforced". */
const char *outlier_guard_text(enum outlier_guard g);

#endif
