/* SPDX-License-Identifier: Apache-2.0 */
/* A worker with one cluster of three hosts, and one exchange, for tests. */
#ifndef TESTS_EXCHANGE_WORLD_H
#define TESTS_EXCHANGE_WORLD_H

#include "exchange/exchange.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"

#define HOSTS 3
#define SEC   NS_PER_S

/* A worker with one cluster of three hosts. */
struct fixture {
    struct endpoint endpoints[HOSTS];
    struct cluster cluster;
    struct route route;
    struct route_retry retry;
    struct process_state *process;
    struct cluster_rt rt;
    struct rng rng;
    struct exchange x;
    struct actions out;
    mono_ns now;
};

static inline void open_fixture(struct fixture *f, uint64_t seed)
{
    memset(f, 0, sizeof(*f));
    f->cluster = (struct cluster){
        .name = BYTES("c"),
        .endpoint_count = HOSTS,
        .endpoints = f->endpoints,
        .lb = LB_ROUND_ROBIN,
        .limits = default_limits,
        .outlier = default_outlier,
        .connect_failover = true,
        .retry_budget = default_retry_budget,
        .state = cluster_state_create(HOSTS, 1),
    };
    f->route = (struct route){
        .timeout = 15 * SEC, .per_try_timeout = MONO_NEVER, .idle_timeout = 300 * SEC};
    f->process = process_state_create(1, 1000, 1u << 30, 0);
    f->cluster.hosts = f->cluster.state->hosts;
    rng_init(&f->rng, seed);
    f->now = SEC;
    assert_true(cluster_rt_init(&f->rt, &f->cluster, 0, &f->rng, &f->now));
}

static inline void close_fixture(struct fixture *f)
{
    cluster_rt_release(&f->rt);
    cluster_state_drop(f->cluster.state);
    process_state_free(f->process);
}

static inline void begin_method(struct fixture *f, bool idempotent)
{
    struct exchange_setup setup = {
        .cluster = &f->rt,
        .route = &f->route,
        .process = f->process,
        .body_timeout = 300 * SEC,
        .idempotent = idempotent,
    };

    exchange_init(&f->x, &setup, f->now);
}

static inline void say(struct fixture *f, struct exchange_event e)
{
    exchange_step(&f->x, &e, f->now, &f->out);
}

#define SAY(f, ...) say(f, (struct exchange_event){.kind = __VA_ARGS__})

/* A GET that has been sent on a connection. */
static inline void sent(struct fixture *f)
{
    begin_method(f, true);
    SAY(f, EVENT_REQUEST_COMPLETE);
    SAY(f, EVENT_BEGIN);
    SAY(f, EVENT_CONNECTED, .reused = true);
    assert_int_equal(f->x.state, EXCHANGE_SENT);
}

static inline bool did(const struct fixture *f, enum action_kind kind)
{
    for (unsigned i = 0; i < f->out.count; i++)
        if (f->out.at[i].kind == kind)
            return true;
    return false;
}

static inline uint64_t metric(const struct fixture *f, enum cluster_metric m)
{
    return cluster_state_sum(f->cluster.state, m);
}

/* Local failures charged to any host. */
static inline uint32_t charged(const struct fixture *f)
{
    uint32_t sum = 0;

    for (uint32_t i = 0; i < HOSTS; i++)
        sum += f->cluster.state->hosts.at[i]->runs.run_local;
    return sum;
}

/* Nothing is held any more. */
static inline void check_clean(const struct fixture *f)
{
    const struct cluster_state *s = f->cluster.state;

    assert_int_equal(f->x.state, EXCHANGE_DONE);
    assert_int_equal(limit_used(&s->pending), 0);
    assert_int_equal(limit_used(&s->requests), 0);
    assert_int_equal(limit_used(&f->process->requests), 0);
    assert_int_equal(limit_used(&s->retries), 0);
    assert_int_equal(metric(f, CLUSTER_upstream_rq_active), 0);
    assert_int_equal(metric(f, CLUSTER_upstream_rq_pending_active), 0);
    for (uint32_t i = 0; i < HOSTS; i++) {
        assert_int_equal(s->hosts.at[i]->in_flight, 0);
        assert_int_equal(host_state_sum(host_state_of(s->hosts.at[i]), ENDPOINT_rq_active), 0);
        assert_int_equal(host_state_sum(host_state_of(s->hosts.at[i]), ENDPOINT_rq_pending_active),
                         0);
    }
}

static inline void check_end(struct fixture *f, enum reason reason, uint32_t status, uint32_t flags)
{
    if (f->x.state == EXCHANGE_DELIVERING)
        SAY(f, EVENT_DELIVERED);
    assert_true(did(f, ACTION_FINISH));
    assert_int_equal(f->x.reason, reason);
    assert_int_equal(f->x.status, status);
    assert_int_equal(f->x.flags, flags);
    check_clean(f);
    close_fixture(f);
}

/* The route retries from here on. */
static inline void with_retries(struct fixture *f, uint32_t on, uint32_t attempts)
{
    f->retry = (struct route_retry){
        .policy = {.on = on, .attempts = attempts, .base = 25 * NS_PER_MS, .max = 250 * NS_PER_MS},
    };
    f->route.retry = &f->retry;
}

#endif
