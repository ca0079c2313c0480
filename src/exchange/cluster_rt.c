/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange/cluster_rt.h"

#include "base/memory.h"
#include "base/rng.h"
#include "policy/lb.h"
#include "policy/limit.h"
#include "policy/outlier_runs.h"

bool cluster_rt_init(struct cluster_rt *rt, const struct cluster *config, uint32_t worker,
                     struct rng *rng)
{
    *rt = (struct cluster_rt){
        .config = config,
        .state = config->state,
        .hosts = config->hosts,
        .worker = worker,
        .cells = config->state->cells[worker],
        .lb = memory_take(sizeof(*rt->lb)),
        .rng = rng,
    };
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

bool cluster_rt_open(struct cluster_rt *rt, uint32_t host)
{
    if (!limit_take(&rt->state->connections, rt->config->limits.max_connections)) {
        cluster_rt_count(rt, CLUSTER_upstream_cx_overflow, 1);
        return false;
    }
    cluster_rt_count(rt, CLUSTER_upstream_cx_total, 1);
    cluster_rt_count(rt, CLUSTER_upstream_cx_http1_total, 1);
    cluster_rt_count(rt, CLUSTER_upstream_cx_active, 1);
    endpoint_rt_count(rt, host, ENDPOINT_cx_total);
    endpoint_rt_count(rt, host, ENDPOINT_cx_active);
    return true;
}

bool cluster_rt_room(const struct cluster_rt *rt)
{
    atomic_thread_fence(memory_order_seq_cst);
    return limit_used(&rt->state->connections) < rt->config->limits.max_connections;
}

bool cluster_rt_in_use(const struct cluster_rt *rt)
{
    return limit_used(&rt->state->connections) > 0;
}

void cluster_rt_closed(struct cluster_rt *rt, uint32_t host)
{
    limit_give(&rt->state->connections);
    atomic_thread_fence(memory_order_seq_cst); /* before the look at who waits: cluster_rt_room */
    cluster_rt_uncount(rt, CLUSTER_upstream_cx_active);
    cluster_rt_count(rt, CLUSTER_upstream_cx_destroy, 1);
    endpoint_rt_uncount(rt, host, ENDPOINT_cx_active);
}

static uint32_t count_panic(struct cluster_rt *rt, uint32_t picked)
{
    if (lb_in_panic(rt->lb))
        cluster_rt_count(rt, CLUSTER_lb_healthy_panic, 1);
    return picked;
}

uint32_t cluster_rt_pick(struct cluster_rt *rt)
{
    return count_panic(rt, lb_pick(rt->lb, &rt->hosts, NULL, rt->rng));
}

uint32_t cluster_rt_pick_other(struct cluster_rt *rt, const struct lb_tried *tried)
{
    return count_panic(rt, lb_pick_other(rt->lb, &rt->hosts, tried, rt->rng));
}

bool cluster_rt_serves(struct cluster_rt *rt, uint32_t host)
{
    return host_health(rt->hosts.at[host]) == HOST_HEALTHY ||
           lb_serves(rt->lb, &rt->hosts, host, rt->rng);
}

uint32_t cluster_rt_connect_failed(struct cluster_rt *rt, uint32_t host, mono_ns now)
{
    return outlier_learn(&rt->hosts.at[host]->runs, &rt->config->outlier, OUTLIER_CONNECT_FAILED, 0,
                         now);
}
