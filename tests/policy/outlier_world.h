/* SPDX-License-Identifier: Apache-2.0 */
/* What the outlier tests share: a worker and the control thread in one, and hosts to report about.
 */
#ifndef TESTS_POLICY_OUTLIER_WORLD_H
#define TESTS_POLICY_OUTLIER_WORLD_H

#include <stddef.h>
#include <stdint.h>

#include "policy/outlier.h"

#define HOSTS_MAX 20
#define S         NS_PER_S
#define BIT(t)    ((outlier_triggers)1 << (t))

#define GATEWAY BIT(OUTLIER_CONSECUTIVE_GATEWAY)
#define ANY_5XX BIT(OUTLIER_CONSECUTIVE_5XX)
#define LOCAL   BIT(OUTLIER_CONSECUTIVE_LOCAL_ORIGIN)

/* Envoy's defaults, with a sweep every 10 s. */
static const struct outlier_config envoy = {
    .consecutive_5xx = 5,
    .consecutive_gateway = 0, /* detected, but enforced with 0 percent: for us it is off */
    .consecutive_local_origin = 5,
    .enabled = true,
    .interval = 10 * S,
    .base_ejection = 30 * S,
    .max_ejection = 300 * S,
    .max_ejection_percent = 10,
};

/* A worker and the control thread in one. */
struct world {
    struct outlier_config config;
    struct outlier judge;
    struct outlier_host hosts[HOSTS_MAX];
    struct outlier_runs runs[HOSTS_MAX];
    struct outlier_runs *pointers[HOSTS_MAX];
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
        w->pointers[i] = &w->runs[i];
    }
    outlier_init(&w->judge, w->hosts, hosts);
    rng_init(&w->rng, 11);
}

static inline void consider(struct world *w, uint32_t host, enum outlier_trigger t)
{
    w->verdict = outlier_consider(&w->judge, &w->config, w->pointers, host, &w->rng, w->now);
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

static inline uint32_t sweep(struct world *w)
{
    uint32_t returned[HOSTS_MAX];

    return outlier_sweep(&w->judge, &w->config, w->pointers, returned, w->now);
}

static inline struct outlier_config with_cap(uint32_t percent)
{
    struct outlier_config c = envoy;

    c.max_ejection_percent = percent;
    return c;
}

#endif
