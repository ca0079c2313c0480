/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange/cluster_rt.h"

#include <assert.h>

#include "base/memory.h"
#include "base/rng.h"
#include "exchange/witness.h"
#include "policy/lb.h"
#include "policy/limit.h"
#include "policy/outlier_runs.h"

bool cluster_rt_init(struct cluster_rt *rt, const struct cluster *config, uint32_t worker,
                     struct rng *rng, const mono_ns *now)
{
    *rt = (struct cluster_rt){
        .config = config,
        .state = config->state,
        .hosts = config->hosts,
        .worker = worker,
        .cells = config->state->cells[worker],
        .lb = memory_take(sizeof(*rt->lb)),
        .rng = rng,
        .now = now,
    };
    for (uint32_t class = 0; class < EVIDENCE_CLASS_MAX; class ++)
        list_init(&rt->open[class]);
    if (rt->lb == NULL)
        return false;
    lb_init(rt->lb, config->lb, &config->panic, NULL);
    if (cluster_rt_reserve(rt, config->hosts.count))
        return true;
    cluster_rt_release(rt);
    return false;
}

void cluster_rt_release(struct cluster_rt *rt)
{
    memory_give(rt->lb);
    memory_give(rt->lb_room);
    rt->lb = NULL;
    rt->lb_room = NULL;
}

bool cluster_rt_reserve(struct cluster_rt *rt, uint32_t hosts)
{
    uint32_t *room;

    if (hosts <= rt->lb_size)
        return true;
    room = memory_take_array(hosts, sizeof(*room));
    if (room == NULL)
        return false;
    lb_move(rt->lb, room);
    memory_give(rt->lb_room);
    rt->lb_room = room;
    rt->lb_size = hosts;
    return true;
}

void cluster_rt_adopt(struct cluster_rt *rt, const struct cluster *config)
{
    rt->config = config;
    rt->hosts = config->hosts;
    lb_change(rt->lb, config->lb, &config->panic);
}

/* --- hosts with limits of their own --- */

static_assert(CLUSTER_RT_NO_HOST == LB_NO_HOST, "the door says what the policy says");

typedef bool (*has_room)(const struct host_limits *most, const struct host *h);

/* Those that wait for a connection to it will be under way on it. */
static bool room_for_request(const struct host_limits *most, const struct host *h)
{
    uint32_t pending = limit_used(&h->pending);

    return pending < most->max_pending &&
           (most->max_requests == LIMIT_NONE ||
            (uint64_t)limit_used(&h->requests) + pending < most->max_requests);
}

static bool room_for_connection(const struct host_limits *most, const struct host *h)
{
    return limit_used(&h->connections) < most->max_connections && room_for_request(most, h);
}

static_assert((LIMIT_NONE & LIMIT_NONE) == UINT32_MAX, "no limit is all ones");

static bool hosts_limited(const struct host_limits *most)
{
    return (most->max_requests & most->max_pending & most->max_connections) != LIMIT_NONE;
}

/* |picked|, or the next healthy host behind it that has room. */
static uint32_t with_room(struct cluster_rt *rt, uint32_t picked, const struct lb_tried *tried,
                          has_room room)
{
    const struct host_limits *most = &rt->config->limits.host;
    uint32_t count = rt->hosts.count;

    if (picked == LB_NO_HOST || !hosts_limited(most))
        return picked;
    for (uint32_t n = 0; n < count; n++) {
        uint32_t host = (picked + n) % count;

        if (rt->hosts.at[host] != NULL && cluster_rt_serves(rt, host) &&
            !lb_tried_has(tried, host) && room(most, rt->hosts.at[host]))
            return host;
    }
    return CLUSTER_RT_ALL_FULL;
}

bool cluster_rt_room(const struct cluster_rt *rt, uint32_t host)
{
    uint32_t most = rt->config->limits.host.max_requests;

    return most == LIMIT_NONE || limit_used(&rt->hosts.at[host]->requests) < most;
}

static uint32_t count_panic(struct cluster_rt *rt, uint32_t picked)
{
    if (lb_in_panic(rt->lb))
        cluster_rt_count(rt, CLUSTER_lb_healthy_panic, 1);
    return picked;
}

uint32_t cluster_rt_pick(struct cluster_rt *rt)
{
    return with_room(rt, count_panic(rt, lb_pick(rt->lb, &rt->hosts, NULL, rt->rng, *rt->now)),
                     NULL, room_for_request);
}

uint32_t cluster_rt_pick_open(struct cluster_rt *rt)
{
    return with_room(rt, count_panic(rt, lb_pick(rt->lb, &rt->hosts, NULL, rt->rng, *rt->now)),
                     NULL, room_for_connection);
}

uint32_t cluster_rt_pick_other(struct cluster_rt *rt, const struct lb_tried *tried)
{
    return with_room(rt,
                     count_panic(rt, lb_pick_other(rt->lb, &rt->hosts, tried, rt->rng, *rt->now)),
                     tried, room_for_request);
}

/* Takes one of the host's grants. */
static bool take_probe(struct host *h)
{
    uint32_t left = atomic_load_explicit(&h->probes, memory_order_relaxed);

    while (left > 0) {
        if (atomic_compare_exchange_weak_explicit(&h->probes, &left, left - 1, memory_order_relaxed,
                                                  memory_order_relaxed))
            return true;
    }
    return false;
}

static bool take_token(struct cluster_rt *rt)
{
    return retry_budget_spend(&rt->state->retry_budget, &rt->config->retry_budget, *rt->now);
}

uint32_t cluster_rt_pick_probe(struct cluster_rt *rt)
{
    for (uint32_t i = 0; i < rt->hosts.count; i++) {
        struct host *h = rt->hosts.at[i];

        if (h == NULL || host_health(h) != HOST_EJECTED ||
            atomic_load_explicit(&h->probes, memory_order_relaxed) == 0)
            continue;
        if (!take_token(rt))
            return CLUSTER_RT_NO_HOST;
        if (take_probe(h))
            return i;
        retry_budget_refund(&rt->state->retry_budget);
    }
    return CLUSTER_RT_NO_HOST;
}

bool cluster_rt_cover_suspect(struct cluster_rt *rt, uint32_t host)
{
    return host_on_trickle(rt->hosts.at[host]) &&
           !atomic_load_explicit(&rt->state->retries_held, memory_order_relaxed) && take_token(rt);
}

void cluster_rt_probe_over(struct cluster_rt *rt)
{
    retry_budget_refund(&rt->state->retry_budget);
}

bool cluster_rt_serves(struct cluster_rt *rt, uint32_t host)
{
    return host_health(rt->hosts.at[host]) == HOST_HEALTHY ||
           lb_serves(rt->lb, &rt->hosts, host, rt->rng);
}

bool cluster_rt_left(const struct cluster_rt *rt, uint32_t host)
{
    const struct host *h = rt->hosts.at[host];

    return h == NULL || host_health(h) == HOST_ABSENT || host_health(h) == HOST_DRAINING;
}

bool cluster_rt_is_out(const struct cluster_rt *rt, uint32_t host)
{
    return host_set_health_of(&rt->hosts, host) != HOST_HEALTHY;
}

uint32_t cluster_rt_connect_failed(struct cluster_rt *rt, uint32_t host, mono_ns now)
{
    if (witness_doubts(rt, OUTLIER_CONNECT_FAILED))
        return 0;
    return outlier_learn(&rt->hosts.at[host]->runs, &rt->config->outlier, OUTLIER_CONNECT_FAILED, 0,
                         now);
}
