/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts with planted faults, judged as the watch does, 25 ms by 25 ms. */
#ifndef TESTS_POLICY_SCOPE_WORLD_H
#define TESTS_POLICY_SCOPE_WORLD_H

#include "policy/scope.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/rng.h"
#include "policy/normal.h"

#define HOSTS_MAX          24
#define STEP               (25 * NS_PER_MS)
#define STEPS_MAX          1024 /* a request takes fewer */
#define CONNECT_TIMEOUT_US 250000
#define WARM               (8 * NS_PER_S)
#define LONG               (12 * NS_PER_S)

/* What is wrong with one host. */
struct fault {
    double times;    /* as slow */
    double failing;  /* share of answers that are 500 */
    double refusing; /* share of connects that are refused */
    double lost;     /* the same that get no answer */
    bool silent;     /* no answer at all */
    double only[2];  /* as slow, in one class */
    double resent;   /* segments a request */
    double further;  /* microseconds that each answer takes longer on its way */
};

struct planted {
    struct fault on[HOSTS_MAX];
    double heavy[HOSTS_MAX]; /* share of requests of class 1, ten times heavier */
};

struct event {
    uint32_t host;
    uint8_t class;
    uint8_t outcome;
    bool fresh;
    uint32_t us;
    struct event *next;
};

struct world {
    uint32_t hosts;
    double rate;             /* a second and host */
    double share[HOSTS_MAX]; /* of it */
    struct rng rng;
    struct detect judge;
    struct detect_host memory[HOSTS_MAX];
    struct detect_host *members[HOSTS_MAX];
    struct scope scope;
    struct scope_host scoped[HOSTS_MAX];
    struct planted planted;
    struct event *due[STEPS_MAX];
    uint64_t step;
    uint32_t ejected;
    uint32_t kinds[SCOPE_KIND_COUNT]; /* turns in which it was the verdict */
    enum scope_caller caller;
    bool pooled; /* only who refuses is connected to */
};

static struct world world;

/* Strata as control does: zones of four hosts and more. */
static inline void set_strata(struct world *w)
{
    uint32_t of_zone[SCOPE_GROUPS_MAX + 1] = {0};

    for (uint32_t i = 0; i < w->hosts; i++)
        of_zone[w->scoped[i].group[SCOPE_ZONES]]++;
    for (uint32_t i = 0; i < w->hosts; i++) {
        uint32_t zone = w->scoped[i].group[SCOPE_ZONES];

        w->memory[i].stratum = zone < DETECT_STRATUM_MAX - 1 && of_zone[zone] >= 4 ? zone + 1 : 0;
    }
}

/* Hosts take turns in |zones| zones; 0: none is known. */
static inline void start(uint32_t hosts, uint32_t zones, double rate, uint64_t seed)
{
    static const struct detect_config config = {
        .threshold = DETECT_THRESHOLD, .latency = true, .errors = true, .connections = true};
    struct world *w = &world;

    memset(w, 0, sizeof(*w));
    w->hosts = hosts;
    w->rate = rate;
    rng_init(&w->rng, seed);
    detect_init(&w->judge);
    for (uint32_t i = 0; i < hosts; i++) {
        w->members[i] = &w->memory[i];
        w->scoped[i].name[SCOPE_ZONES] = zones == 0 ? 0 : 100 + i % zones;
        w->scoped[i].name[SCOPE_VERSIONS] = 7;
        w->share[i] = 1;
        w->planted.on[i].times = 1;
        w->planted.on[i].only[0] = w->planted.on[i].only[1] = 1;
    }
    scope_adopt(&w->scope, &w->judge, w->scoped, hosts);
    set_strata(w);
    detect_adopt(&w->judge, &config, w->members, hosts);
    for (uint32_t i = 0; i < hosts; i++)
        detect_set_serving(&w->judge, i, true);
}

static inline void set_version(uint32_t index, uint64_t name)
{
    world.scoped[index].name[SCOPE_VERSIONS] = name;
    scope_adopt(&world.scope, &world.judge, world.scoped, world.hosts);
}

static inline void stop(void)
{
    for (uint32_t i = 0; i < STEPS_MAX; i++) {
        while (world.due[i] != NULL) {
            struct event *e = world.due[i];

            world.due[i] = e->next;
            free(e);
        }
    }
    for (uint32_t i = 0; i < world.hosts; i++)
        detect_host_release(&world.memory[i]);
    detect_release(&world.judge);
}

/* --- requests --- */

static inline double normal(void)
{
    double u = rng_unit(&world.rng);

    return normal_quantile(u <= 0 ? 1e-12 : u);
}

static inline void put(uint32_t host, uint8_t class, enum evidence_outcome outcome, bool fresh,
                       double us)
{
    struct event *e = malloc(sizeof(*e));
    uint64_t after = (uint64_t)(us * 1000 / (double)STEP) + 1;
    struct event **at = &world.due[(world.step + (after < STEPS_MAX ? after : 1)) % STEPS_MAX];

    assert_non_null(e);
    *e = (struct event){.host = host,
                        .class = class,
                        .outcome = (uint8_t)outcome,
                        .fresh = fresh,
                        .us = (uint32_t)us,
                        .next = *at};
    *at = e;
}

static inline void send_one(uint32_t host)
{
    const struct fault *f = &world.planted.on[host];
    uint8_t class = rng_unit(&world.rng) < world.planted.heavy[host] ? 1 : 0;
    bool fresh = world.pooled ? f->refusing > 0 || f->lost > 0 : rng_below(&world.rng, 10) == 0;
    double us = 20000 * exp(0.5 * normal()) * f->times * f->only[class] * (class == 1 ? 10 : 1);
    double late = world.judge.late_after[class];

    us += f->further;
    if (f->resent > 0 || rng_below(&world.rng, 100) == 0)
        scope_learn_path(&world.scope, host, 0, f->resent > 0 ? f->resent : 0.01);
    scope_learn_path(&world.scope, host, 1, 0);
    scope_learn_demand(&world.scope, 1);
    if (fresh && rng_unit(&world.rng) < f->refusing) {
        put(host, class, EVIDENCE_REFUSED, true, 1000);
        return;
    }
    if (fresh && f->lost > 0 && rng_unit(&world.rng) < f->lost) {
        put(host, class, EVIDENCE_CONNECT_FAILED, true, CONNECT_TIMEOUT_US);
        return;
    }
    us = f->silent ? 2e6 : us;
    if (late > 0 && us > late)
        put(host, class, EVIDENCE_LATE, fresh, late);
    if (f->silent)
        put(host, class, EVIDENCE_TIMEOUT, fresh, us);
    else
        put(host, class, rng_unit(&world.rng) < f->failing ? EVIDENCE_ERROR : EVIDENCE_OK, fresh,
            us);
}

static inline void learn_due(void)
{
    struct event **at = &world.due[world.step % STEPS_MAX];

    while (*at != NULL) {
        struct event *e = *at;
        struct evidence sample = {.at = world.step * STEP,
                                  .class = e->class,
                                  .outcome = e->outcome,
                                  .first_us = e->us,
                                  .flags = e->fresh ? EVIDENCE_FRESH : 0};

        *at = e->next;
        if (world.memory[e->host].serving)
            detect_learn(&world.judge, e->host, &sample);
        free(e);
    }
}

/* As the watch does: what is accused and no guard holds goes. */
static inline void look_at(uint32_t index)
{
    for (int line = 0; line < DETECT_LINE_COUNT; line++) {
        if (!world.memory[index].serving ||
            !detect_accuses(&world.judge, index, (enum detect_line)line) ||
            detect_guard_of(&world.judge, index, (enum detect_line)line) != DETECT_HOLDS)
            continue;
        (void)scope_look(&world.scope);
        if (scope_of(&world.scope, index, (enum detect_line)line) != SCOPE_NODE)
            continue;
        world.ejected |= UINT32_C(1) << index;
        world.scoped[index].out = true;
        detect_set_serving(&world.judge, index, false);
        detect_acquit(&world.judge, index);
    }
}

static inline void one_step(void)
{
    world.step++;
    for (uint32_t i = 0; i < world.hosts; i++)
        if (rng_unit(&world.rng) < world.rate * world.share[i] * (double)STEP / (double)NS_PER_S &&
            world.memory[i].serving)
            send_one(i);
    learn_due();
    if (world.step % (DETECT_BUCKET / STEP) == 0) {
        scope_mark(&world.scope);
        detect_turn(&world.judge);
        scope_turn(&world.scope, world.caller);
        scope_amend(&world.scope, &world.judge);
        world.kinds[world.scope.now.kind]++;
    }
    for (uint32_t i = 0; i < world.hosts; i++)
        look_at(i);
}

static inline void run(span_ns span)
{
    for (uint64_t n = span / STEP; n > 0; n--)
        one_step();
}

static inline enum scope_kind verdict(void)
{
    return world.scope.now.kind;
}

/* --- planted faults --- */

static const struct fault slow = {.times = 4, .only = {1, 1}};
static const struct fault failing = {.times = 1, .failing = 0.5, .only = {1, 1}};
static const struct fault refusing = {.times = 1, .refusing = 1, .only = {1, 1}};
static const struct fault silent = {.times = 1, .silent = true, .only = {1, 1}};
static const struct fault *const faults[] = {&slow, &failing, &refusing, &silent};

#define EACH_FAULT 4

static inline void plant_zone(uint32_t zone, uint32_t zones, const struct fault *f)
{
    for (uint32_t i = 0; i < world.hosts; i++)
        if (i % zones == zone)
            world.planted.on[i] = *f;
}

#endif
