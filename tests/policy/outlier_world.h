/* SPDX-License-Identifier: Apache-2.0 */
/* What the outlier tests share: a worker and the control thread in one, and hosts to report about.
 */
#ifndef TESTS_POLICY_OUTLIER_WORLD_H
#define TESTS_POLICY_OUTLIER_WORLD_H

#include <stddef.h>
#include <stdint.h>

#include "policy/outlier_judge.h"

#define HOSTS_MAX 20
#define S         NS_PER_S
#define BIT(t)    outlier_bit(t)

#define GATEWAY BIT(OUTLIER_CONSECUTIVE_GATEWAY)
#define ANY_5XX BIT(OUTLIER_CONSECUTIVE_5XX)
#define LOCAL   BIT(OUTLIER_CONSECUTIVE_LOCAL_ORIGIN)

/* Envoy's numbers, with a sweep every 10 s; our guards. */
static const struct outlier_config envoy = {
    .consecutive_5xx = 5,
    .consecutive_gateway = 0,
    .consecutive_local_origin = 5,
    .enabled = true,
    .interval = 10 * S,
    .base_ejection = 30 * S,
    .max_ejection = 300 * S,
    .max_ejection_percent = 10,
    .enforcing = OUTLIER_ENFORCING_RUNS,
    .rates = OUTLIER_RATE_RULES,
};

/* A worker and the control thread in one. */
struct world {
    struct outlier_config config;
    struct outlier judge;
    struct outlier_host hosts[HOSTS_MAX];
    struct outlier_runs runs[HOSTS_MAX];
    struct outlier_member members[HOSTS_MAX];
    struct rng rng;
    mono_ns now;
    outlier_triggers triggers;       /* of the last report */
    enum outlier_trigger ejected_by; /* of the last report; OUTLIER_NONE: nobody went */
    struct outlier_verdict verdict;  /* the last one */
    uint32_t considered;             /* triggers that found the host in */
    uint32_t refused;
};

static inline void start(struct world *w, uint32_t hosts, const struct outlier_config *config)
{
    *w = (struct world){.config = *config, .now = 1000 * S};
    for (uint32_t i = 0; i < hosts; i++) {
        outlier_runs_init(&w->runs[i]);
        outlier_host_init(&w->hosts[i]);
        w->members[i] = (struct outlier_member){&w->runs[i], &w->hosts[i]};
    }
    rng_init(&w->rng, 11);
    outlier_init(&w->judge, &w->rng);
    outlier_adopt(&w->judge, &w->config, w->members, hosts);
}

static inline void consider(struct world *w, uint32_t host, enum outlier_trigger t)
{
    w->verdict = outlier_consider(&w->judge, host, t, w->now);
    outlier_runs_restart(&w->runs[host], t);
    if (w->verdict.guard == OUTLIER_GUARD_ALREADY_OUT)
        return;
    w->considered++;
    w->refused += w->verdict.guard != OUTLIER_GUARD_NONE;
    if (w->verdict.guard == OUTLIER_GUARD_NONE)
        w->ejected_by = t;
}

static inline void report(struct world *w, uint32_t host, enum outlier_report what, uint32_t status)
{
    static const enum outlier_trigger order[] = {
        OUTLIER_CONSECUTIVE_GATEWAY, OUTLIER_CONSECUTIVE_5XX, OUTLIER_CONSECUTIVE_LOCAL_ORIGIN};

    w->ejected_by = OUTLIER_NONE;
    w->triggers = outlier_learn(&w->runs[host], &w->config, what, status, w->now);
    for (uint32_t i = 0; i < 3; i++) {
        if (w->triggers & BIT(order[i]))
            consider(w, host, order[i]);
    }
}

static inline void answer(struct world *w, uint32_t host, uint32_t status, uint32_t times)
{
    for (uint32_t i = 0; i < times; i++)
        report(w, host, OUTLIER_ANSWERED, status);
}

static inline void failed(struct world *w, uint32_t host, enum outlier_report what, uint32_t times)
{
    for (uint32_t i = 0; i < times; i++)
        report(w, host, what, 0);
}

/* Considers what stands out about anybody, as the watch does: |rates| before the others. */
static inline void consider_all(struct world *w, const outlier_triggers *suspects,
                                enum outlier_trigger t)
{
    for (uint32_t i = 0; i < w->judge.count; i++) {
        if (suspects[i] & BIT(t))
            consider(w, i, t);
    }
}

static inline uint32_t sweep(struct world *w)
{
    uint32_t returned[HOSTS_MAX];
    outlier_triggers suspects[HOSTS_MAX];
    uint32_t n = outlier_sweep(&w->judge, returned, w->now);

    w->ejected_by = OUTLIER_NONE;
    outlier_weigh(&w->judge, OUTLIER_EXTERNAL, suspects);
    consider_all(w, suspects, OUTLIER_SUCCESS_RATE);
    consider_all(w, suspects, OUTLIER_FAILURE_PERCENTAGE);
    outlier_weigh(&w->judge, OUTLIER_LOCAL, suspects);
    consider_all(w, suspects, OUTLIER_SUCCESS_RATE_LOCAL_ORIGIN);
    consider_all(w, suspects, OUTLIER_FAILURE_PERCENTAGE_LOCAL_ORIGIN);
    outlier_decay(&w->judge, w->now);
    return n;
}

static inline struct outlier_config with_cap(uint32_t percent)
{
    struct outlier_config c = envoy;

    c.max_ejection_percent = percent;
    return c;
}

#endif
