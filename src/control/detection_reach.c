/* SPDX-License-Identifier: Apache-2.0 */
#include "control/detection_reach.h"

#include <math.h>

#include "base/memory.h"
#include "base/rng.h"
#include "policy/normal.h"

#define RUNS      5
#define HOSTS_MAX 12u /* with more it is no sooner */
#define SIGMA     0.5
#define MEDIAN_US 20000.0
#define WARM_UP   (5 * NS_PER_S) /* at least, and ... */
#define WARM_FOR  64             /* ... that many answers of each */

struct court {
    struct detect judge;
    struct detect_host memory[HOSTS_MAX];
    struct detect_host *hosts[HOSTS_MAX];
    uint32_t count;
    mono_ns next[HOSTS_MAX]; /* request */
    mono_ns next_turn;
    mono_ns now;
    struct rng rng;
};

static mono_ns later(struct court *c, double rate)
{
    return mono_after(c->now, (span_ns)(-log(1 - rng_unit(&c->rng)) / rate * (double)NS_PER_S));
}

static void open_court(struct court *c, const struct detect_config *config, uint32_t hosts,
                       double rate, uint64_t seed)
{
    c->count = hosts < HOSTS_MAX ? hosts : HOSTS_MAX;
    rng_init(&c->rng, seed);
    detect_init(&c->judge);
    for (uint32_t i = 0; i < c->count; i++) {
        c->hosts[i] = &c->memory[i];
        c->next[i] = later(c, rate);
    }
    c->next_turn = DETECT_BUCKET;
    detect_adopt(&c->judge, config, c->hosts, c->count);
    for (uint32_t i = 0; i < c->count; i++)
        detect_set_serving(&c->judge, i, true);
}

static void close_court(struct court *c)
{
    detect_release(&c->judge);
    for (uint32_t i = 0; i < c->count; i++)
        detect_host_release(&c->memory[i]);
    memory_give(c);
}

static uint32_t next_host(const struct court *c)
{
    uint32_t first = 0;

    for (uint32_t i = 1; i < c->count; i++)
        first = c->next[i] < c->next[first] ? i : first;
    return first;
}

/* The first host is the bad one. */
static void answer(struct court *c, uint32_t host, const struct detection_fault *fault)
{
    double times = host == 0 ? fault->times : 1;
    double us = MEDIAN_US * exp(SIGMA * normal_quantile(fmax(rng_unit(&c->rng), 1e-12)));
    bool failed = rng_unit(&c->rng) < (host == 0 ? fault->failing : 0);
    struct evidence e = {
        .at = c->now,
        .outcome = failed ? EVIDENCE_ERROR : EVIDENCE_OK,
        .first_us = (uint32_t)fmin(us * times, 1e9),
    };

    detect_learn(&c->judge, host, &e);
}

static bool accused(const struct court *c)
{
    for (int line = 0; line < DETECT_LINE_COUNT; line++) {
        if (detect_accuses(&c->judge, 0, (enum detect_line)line) &&
            detect_guard_of(&c->judge, 0, (enum detect_line)line) == DETECT_HOLDS)
            return true;
    }
    return false;
}

/* The next thing that happens: a half second ends, or an answer comes. */
static void step(struct court *c, const struct detection_fault *fault)
{
    uint32_t host = next_host(c);

    if (c->next_turn <= c->next[host]) {
        c->now = c->next_turn;
        c->next_turn = mono_after(c->next_turn, DETECT_BUCKET);
        detect_turn(&c->judge);
        return;
    }
    c->now = c->next[host];
    c->next[host] = later(c, fault->rate);
    answer(c, host, fault);
}

static span_ns run(const struct detect_config *config, uint32_t hosts,
                   const struct detection_fault *fault, uint64_t seed)
{
    const struct detection_fault none = {.rate = fault->rate, .times = 1};
    span_ns answers = (span_ns)(WARM_FOR / fault->rate * (double)NS_PER_S);
    mono_ns from = answers > WARM_UP ? answers : WARM_UP;
    struct court *c = memory_take(sizeof(*c));
    span_ns took = MONO_NEVER;

    if (c == NULL)
        return took;
    open_court(c, config, hosts, fault->rate, seed);
    while (c->now < from)
        step(c, &none);
    while (took == MONO_NEVER && mono_since(from, c->now) < DETECTION_REACH_MAX) {
        step(c, fault);
        if (accused(c))
            took = mono_since(from, c->now);
    }
    close_court(c);
    return took;
}

span_ns detection_reach(const struct detect_config *c, uint32_t hosts,
                        const struct detection_fault *fault)
{
    span_ns took[RUNS];

    for (uint32_t i = 0; i < RUNS; i++) {
        span_ns t = run(c, hosts, fault, i + 1);
        uint32_t at = i;

        for (; at > 0 && took[at - 1] > t; at--)
            took[at] = took[at - 1];
        took[at] = t;
    }
    return took[RUNS / 2];
}
