/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange/slot.h"

#include <assert.h>

#include "exchange/bounds.h"
#include "policy/limit.h"
#include "policy/slot_order.h"

static_assert(SLOT_NO_WORKER == SLOT_NOBODY, "the door says what the policy says");

static struct host *host_of(const struct cluster_rt *rt, uint32_t host)
{
    return rt->hosts.at[host];
}

static void count_open(struct cluster_rt *rt, uint32_t host)
{
    cluster_rt_count(rt, CLUSTER_upstream_cx_total, 1);
    cluster_rt_count(rt, CLUSTER_upstream_cx_http1_total, 1);
    cluster_rt_count(rt, CLUSTER_upstream_cx_active, 1);
    endpoint_rt_count(rt, host, ENDPOINT_cx_total);
    endpoint_rt_count(rt, host, ENDPOINT_cx_active);
}

static enum slot take(struct cluster_rt *rt, struct process_state *process, uint32_t host,
                      uint32_t most, uint32_t host_most)
{
    struct host *h = host_of(rt, host);

    if (!limit_take(&h->connections, host_most))
        return SLOT_HOST_FULL;
    if (!limit_take(&rt->state->connections, most)) {
        limit_give(&h->connections);
        return SLOT_CLUSTER_FULL;
    }
    if (!bounds_take_upstream(process)) {
        limit_give(&rt->state->connections);
        limit_give(&h->connections);
        return limit_used(&rt->state->connections) > 0 ? SLOT_CLUSTER_FULL : SLOT_NO_DESCRIPTOR;
    }
    count_open(rt, host);
    return SLOT_TAKEN;
}

enum slot slot_take(struct cluster_rt *rt, struct process_state *process, uint32_t host)
{
    const struct circuit_limits *most = &rt->config->limits;

    return take(rt, process, host, most->max_connections, most->host.max_connections);
}

enum slot slot_take_beyond(struct cluster_rt *rt, struct process_state *process, uint32_t host)
{
    return take(rt, process, host, LIMIT_NONE, LIMIT_NONE);
}

enum slot slot_unused(struct cluster_rt *rt, struct process_state *process, uint32_t host)
{
    slot_give(rt, process, host);
    atomic_store_explicit(&rt->state->dry, true, memory_order_relaxed);
    return limit_used(&rt->state->connections) > 0 ? SLOT_CLUSTER_FULL : SLOT_NO_DESCRIPTOR;
}

void slot_give(struct cluster_rt *rt, struct process_state *process, uint32_t host)
{
    bounds_give_upstream(process);
    limit_give(&host_of(rt, host)->connections);
    limit_give(&rt->state->connections);
    cluster_rt_uncount(rt, CLUSTER_upstream_cx_active);
    cluster_rt_count(rt, CLUSTER_upstream_cx_destroy, 1);
    endpoint_rt_uncount(rt, host, ENDPOINT_cx_active);
}

void slot_used(struct cluster_rt *rt)
{
    if (atomic_load_explicit(&rt->state->dry, memory_order_relaxed))
        atomic_store_explicit(&rt->state->dry, false, memory_order_relaxed);
}

static uint32_t left(const struct limit *l, uint32_t most)
{
    uint32_t used = atomic_load_explicit(&l->used, memory_order_seq_cst);

    return used < most ? most - used : 0;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Over the healthy hosts; where there is none, a request keeps the host it has. */
static uint32_t hosts_left(struct cluster_rt *rt)
{
    uint32_t most = rt->config->limits.host.max_connections;
    uint64_t sum = 0;
    bool any = false;

    if (most == LIMIT_NONE)
        return LIMIT_NONE;
    for (uint32_t i = 0; i < rt->hosts.count; i++) {
        if (rt->hosts.at[i] == NULL || !cluster_rt_serves(rt, i))
            continue;
        any = true;
        sum += left(&host_of(rt, i)->connections, most);
    }
    return any && sum < LIMIT_NONE ? (uint32_t)sum : LIMIT_NONE;
}

uint32_t slot_free_count(struct cluster_rt *rt, const struct process_state *process)
{
    uint32_t cluster = left(&rt->state->connections, rt->config->limits.max_connections);

    return least(least(cluster, left(&process->upstream, process->upstream_max)), hosts_left(rt));
}

bool slot_needed(struct cluster_rt *rt, const struct process_state *process)
{
    uint32_t waiting = slot_waiting(rt);

    return waiting > 0 && (atomic_load_explicit(&rt->state->dry, memory_order_relaxed) ||
                           waiting > slot_free_count(rt, process));
}

bool slot_idle_somewhere(const struct cluster_rt *rt)
{
    return atomic_load_explicit(&rt->state->connections.used, memory_order_seq_cst) >
           atomic_load_explicit(&rt->state->requests.used, memory_order_seq_cst);
}

void slot_count_overflow(struct cluster_rt *rt)
{
    if (rt->config->limits.max_connections != LIMIT_NONE ||
        rt->config->limits.host.max_connections != LIMIT_NONE)
        cluster_rt_count(rt, CLUSTER_upstream_cx_overflow, 1);
}

void slot_join(struct cluster_rt *rt, mono_ns first)
{
    slot_order_join(&rt->state->queue, rt->worker, first);
}

void slot_leave(struct cluster_rt *rt, mono_ns first)
{
    slot_order_leave(&rt->state->queue, rt->worker, first);
}

uint32_t slot_waiting(const struct cluster_rt *rt)
{
    return slot_order_waiting(&rt->state->queue);
}

uint32_t slot_next(const struct cluster_rt *rt)
{
    return slot_order_next(&rt->state->queue);
}

bool slot_may_keep(const struct cluster_rt *rt)
{
    return slot_order_may_keep(&rt->state->queue, rt->worker);
}

bool slot_tell(struct cluster_rt *rt, uint32_t worker)
{
    return slot_order_tell(&rt->state->queue, worker);
}

void slot_heard(struct cluster_rt *rt, uint32_t worker)
{
    slot_order_heard(&rt->state->queue, worker);
}
