/* SPDX-License-Identifier: Apache-2.0 */
/* A few hosts, a judge, and a hand that gives them answers. */
#ifndef TESTS_POLICY_DETECT_WORLD_H
#define TESTS_POLICY_DETECT_WORLD_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rng.h"
#include "policy/detect.h"
#include "policy/normal.h"

#define HOSTS 10

struct world {
    struct detect judge;
    struct detect_host memory[HOSTS];
    struct detect_host *members[HOSTS];
    struct rng rng;
    double times[HOSTS]; /* slower */
    double sigma;
};

static inline struct world *world_new(uint32_t hosts)
{
    static const struct detect_config config = {DETECT_THRESHOLD, true, true, true};
    struct world *w = calloc(1, sizeof(*w));

    assert_non_null(w);
    rng_init(&w->rng, 1);
    detect_init(&w->judge);
    w->sigma = 0.5;
    for (uint32_t i = 0; i < HOSTS; i++) {
        w->members[i] = &w->memory[i];
        w->times[i] = 1;
    }
    detect_adopt(&w->judge, &config, w->members, hosts);
    for (uint32_t i = 0; i < hosts; i++)
        detect_set_serving(&w->judge, i, true);
    return w;
}

static inline void world_free(struct world *w)
{
    detect_release(&w->judge);
    for (uint32_t i = 0; i < HOSTS; i++)
        detect_host_release(&w->memory[i]);
    free(w);
}

static inline void tell(struct world *w, uint32_t host, enum evidence_outcome outcome, uint32_t us)
{
    const struct evidence e = {.outcome = (uint8_t)outcome, .first_us = us};

    detect_learn(&w->judge, host, &e);
}

static inline uint32_t healthy_us(struct world *w)
{
    double u = rng_unit(&w->rng);

    return (uint32_t)(20000 * exp(w->sigma * normal_quantile(u <= 0 ? 1e-9 : u)));
}

/* One answer of each host, five times a half second: ten a second. */
static inline void tenth(struct world *w)
{
    for (uint32_t i = 0; i < w->judge.count; i++)
        tell(w, i, EVIDENCE_OK, (uint32_t)(healthy_us(w) * w->times[i]));
}

static inline void half_second(struct world *w)
{
    for (int n = 1; n < DETECT_GLANCES; n++) {
        tenth(w);
        detect_glance(&w->judge);
    }
    tenth(w);
    detect_turn(&w->judge);
}

static inline void half_seconds(struct world *w, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        half_second(w);
}

static inline double sum(const struct world *w, uint32_t host, enum detect_line line)
{
    return detect_sum(&w->judge, host, line);
}

/* An accusation that holds. */
static inline bool holds(const struct world *w, uint32_t host, enum detect_line line)
{
    return detect_accuses(&w->judge, host, line) &&
           detect_guard_of(&w->judge, host, line) == DETECT_HOLDS;
}

#endif
