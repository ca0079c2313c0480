/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of detection on the whole data plane share: a steady crowd, hosts with a fault. */
#ifndef TESTS_SIM_DETECTION_PLANE_H
#define TESTS_SIM_DETECTION_PLANE_H

#include <string.h>

#include "sim/plane.h"

#include "control/journal.h"
#include "control/why.h"
#include "sim/crowd.h"
#include "sim/onlooker.h"
#include "sim/score.h"

#define S  NS_PER_S
#define MS NS_PER_MS

#define BIT(host) (UINT64_C(1) << (host))

static struct plane p;
static struct crowd crowd;
static struct onlooker seen;
static mono_ns fault_at;        /* the latest instant that was marked, ... */
static uint64_t first_decision; /* ... and the first decision since */

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
    p.settings.route.large_body = UINT64_C(256) << 10;
    p.settings.route.timeout = 2 * S;
    p.settings.route.per_try_timeout = 1 * S;
    p.settings.retry.policy.attempts = 1;
    p.settings.retry.policy.on = RETRY_ON_5XX | RETRY_ON_RESET | RETRY_ON_CONNECT_FAILURE;
}

/* Median 20 ms, sigma 0.5. No habits: no crowd. */
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
    first_decision = 1;
    fault_at = p.rig.world.now;
    crowd_start(&crowd, &p.rig.client, habits == NULL ? &plain_habits : habits,
                habits == NULL ? 0 : MONO_NEVER);
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
    first_decision = journal_next(control_journal(p.rig.control));
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

/* --- what was decided since the mark --- */

#define OF_ALL UINT32_MAX /* no host's: the cluster's */

static inline bool is_about(const struct decision *d, uint32_t host)
{
    struct bytes name = BYTES_NONE;

    if (host != OF_ALL)
        name = rig_cluster(&p.rig)->endpoints[host].text;
    return bytes_equal(decision_name_bytes(&d->host), name);
}

/* The |n|-th, from 0, of that kind; NULL: there are not so many. */
static inline const struct decision *decision(uint32_t host, enum decision_what what, uint32_t n)
{
    const struct journal *j = control_journal(p.rig.control);

    assert_true(journal_first(j) <= first_decision || journal_first(j) == 1); /* all are kept */
    for (uint64_t i = first_decision; i < journal_next(j); i++) {
        const struct decision *d = journal_at(j, i);

        if (d->what == what && is_about(d, host) && n-- == 0)
            return d;
    }
    return NULL;
}

static inline uint32_t decided(uint32_t host, enum decision_what what)
{
    uint32_t n = 0;

    while (decision(host, what, n) != NULL)
        n++;
    return n;
}

/* The first refusal because of |g|; NULL: there is none. */
static inline const struct decision *refused(uint32_t host, enum decision_guard g)
{
    const struct decision *d;

    for (uint32_t n = 0; (d = decision(host, DECISION_REFUSED, n)) != NULL; n++)
        if (d->guard == g)
            return d;
    return NULL;
}

/* Was the cluster's trouble ever said to be |kind|? */
static inline bool was_said(enum scope_kind kind)
{
    const struct decision *d;

    for (uint32_t n = 0; (d = decision(OF_ALL, DECISION_VERDICT, n)) != NULL; n++)
        if (d->whose == kind)
            return true;
    return false;
}

/* Everything that `firebreak explain` says of it now. */
static inline const char *why(uint32_t host)
{
    static char room[WHY_HOST_ROOM];
    struct text t;

    text_init(&t, room, sizeof(room));
    why_host(control_watch(p.rig.control), rig_cluster(&p.rig), host, p.rig.world.now, &t);
    return text_end(&t);
}

static inline const char *words(const struct decision *d)
{
    static char room[WHY_DECISION_ROOM];
    struct text t;

    text_init(&t, room, sizeof(room));
    why_decision(d, &t);
    return text_end(&t);
}

static inline void expect_words(const char *said, const char *words)
{
    if (strstr(said, words) == NULL)
        fail_msg("\"%s\" is not in: %s", words, said);
}

/* Is there such a line among the log's last ones? */
static inline bool was_logged(const char *event, const char *words)
{
    for (unsigned i = 0; i < SIM_LOG_LINES; i++) {
        const char *line = sim_log_line(&p.rig.log, i);

        if (strstr(line, event) != NULL && strstr(line, words) != NULL)
            return true;
    }
    return false;
}

/* For whoever looks for what went wrong. */
static inline void show_decisions(void)
{
    const struct journal *j = control_journal(p.rig.control);

    for (uint64_t i = journal_first(j); i < journal_next(j); i++)
        print_message("%.3f %s", (double)(journal_at(j, i)->when - fault_at) / (double)S,
                      words(journal_at(j, i)));
}

static inline uint64_t outlier_stat(enum outlier_metric m)
{
    return cell_read(&rig_state(&p.rig)->outlier[m]);
}

/* Nobody that was well. */
static inline void expect_only(uint64_t hosts)
{
    assert_int_equal(onlooker_outs(&seen, ~hosts), 0);
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
