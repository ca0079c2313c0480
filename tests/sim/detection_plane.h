/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of detection on the whole data plane share: a steady crowd, hosts with a fault. */
#ifndef TESTS_SIM_DETECTION_PLANE_H
#define TESTS_SIM_DETECTION_PLANE_H

#include <string.h>

#include "sim/plane.h"

#include "sim/crowd.h"
#include "sim/onlooker.h"
#include "sim/score.h"

#define S  NS_PER_S
#define MS NS_PER_MS

#define BIT(host) (UINT64_C(1) << (host))

static struct plane p;
static struct crowd crowd;
static struct onlooker seen;
static mono_ns fault_at; /* the latest instant that was marked */

/* Nothing but short requests, each on a connection that is kept. */
static const struct crowd_habits plain_habits = {.rate = 100, .small = 200};

/*
 * Ten hosts, two workers, detection acts. Timeouts and retries as bench/arena/firebreak.yaml has
 * them; what is to be special is set between this and begin.
 */
static inline void prepare(uint64_t seed, enum detection_profile profile)
{
    plane_settings(&p, 10, 2);
    p.settings.seed = seed;
    rig_settings_detect(&p.settings, profile);
    p.settings.cluster.connect_timeout = 250 * MS;
    p.settings.cluster.limits.max_retries = 1000;
    p.settings.cluster.retry_budget =
        (struct retry_budget_config){.earn_permille = 200, .floor_per_s = 1, .capacity = 10};
    p.settings.route.timeout = 2 * S;
    p.settings.route.per_try_timeout = 1 * S;
    p.settings.retry.policy.attempts = 1;
    p.settings.retry.policy.on = RETRY_ON_5XX | RETRY_ON_RESET | RETRY_ON_CONNECT_FAILURE;
}

/* Median 20 ms, sigma 0.5. */
static inline void begin(const struct crowd_habits *habits)
{
    plane_go(&p);
    for (uint32_t i = 0; i < p.settings.hosts; i++) {
        struct server *s = &p.rig.servers[i];

        s->decide = NULL;
        s->mood.service = 20 * MS;
        s->mood.pace.sigma = 0.5;
        s->usual_mood = s->mood;
    }
    p.rig.world.turn_delay = 100 * NS_PER_US;
    onlooker_init(&seen, &p.rig);
    crowd_start(&crowd, &p.rig.client, habits, MONO_NEVER);
}

static inline void run(span_ns d)
{
    plane_run(&p, d);
}

/* From now on is what counts. */
static inline void mark(void)
{
    fault_at = p.rig.world.now;
    onlooker_forget(&seen);
}

static inline struct server *server(uint32_t i)
{
    return &p.rig.servers[i];
}

static inline span_ns since_fault(mono_ns at)
{
    return at == MONO_NEVER ? MONO_NEVER : mono_since(fault_at, at);
}

static inline span_ns out_after(uint32_t host)
{
    return since_fault(seen.hosts[host].first_out);
}

static inline span_ns cut_after(uint32_t host)
{
    span_ns cut = since_fault(seen.hosts[host].first_cut);
    span_ns out = out_after(host);

    return cut < out ? cut : out;
}

/* Of what was asked since |from| after the fault, up to |to| after it. */
static inline struct score score(span_ns from, span_ns to)
{
    return score_between(&p.rig.ledger, fault_at + from, fault_at + to);
}

static inline struct score score_before(void)
{
    return score_between(&p.rig.ledger, 0, fault_at);
}

static inline const struct life *life(uint32_t host)
{
    return &rig_state(&p.rig)->hosts.at[host]->life;
}

static inline uint64_t said(const char *event)
{
    return sim_log_count(&p.rig.log, event);
}

static inline void show_log(void)
{
    for (unsigned i = SIM_LOG_LINES; i-- > 0;)
        if (*sim_log_line(&p.rig.log, i) != '\0')
            print_message("    %s\n", sim_log_line(&p.rig.log, i));
}

/* The crowd goes home; laws to the end. */
static inline void finish(void)
{
    crowd_stop(&crowd);
    run(p.settings.route.timeout + 2 * S);
    plane_end(&p);
}

#endif
