/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One worker's run-time state of one cluster: its balancer, its share of the counters, and the
 * doors to the limits all workers share. Policy state is named by forward declaration only, so that
 * the glue cannot decide.
 */
#ifndef EXCHANGE_CLUSTER_RT_H
#define EXCHANGE_CLUSTER_RT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/units.h"
#include "model/snapshot.h"
#include "policy/evidence.h"
#include "stats/metrics.h"

struct lb;
struct witness;
struct lb_tried;
struct rng;

struct cluster_rt {
    const struct cluster *config; /* of the snapshot in force */
    struct cluster_state *state;
    struct host_set hosts;       /* as of that snapshot */
    uint32_t worker;             /* its number */
    struct cluster_cells *cells; /* this worker's */
    struct lb *lb;
    uint32_t *lb_room; /* its list of hosts */
    uint32_t lb_size;
    struct rng *rng;                      /* the worker's */
    const mono_ns *now;                   /* the worker's: of the turn under way */
    struct witness *witness;              /* the worker's; NULL: nobody listens */
    struct list open[EVIDENCE_CLASS_MAX]; /* struct exchange: attempts that may yet be late */
};

/* False: no memory. |config| and its state must outlive |rt|. */
bool cluster_rt_init(struct cluster_rt *rt, const struct cluster *config, uint32_t worker,
                     struct rng *rng, const mono_ns *now);
void cluster_rt_release(struct cluster_rt *rt);

/* Room for |hosts| hosts. False: no memory, and nothing has changed. */
bool cluster_rt_reserve(struct cluster_rt *rt, uint32_t hosts);

/* The same cluster as a later snapshot has it; there is room for its hosts. */
void cluster_rt_adopt(struct cluster_rt *rt, const struct cluster *config);

#define CLUSTER_RT_NO_HOST  UINT32_MAX       /* none serves */
#define CLUSTER_RT_ALL_FULL (UINT32_MAX - 1) /* those that serve are at limits of their own */

/*
 * A host for a request: the balancer's choice, or another where that one is at a limit of its own.
 * Counts panic.
 */
uint32_t cluster_rt_pick(struct cluster_rt *rt);

/* The same, and with room for one more connection. */
uint32_t cluster_rt_pick_open(struct cluster_rt *rt);

/*
 * A host that is out and is to be tried with a request; a token of the retry budget is taken for
 * it, so that a failure can be made good. CLUSTER_RT_NO_HOST: none is.
 */
uint32_t cluster_rt_pick_probe(struct cluster_rt *rt);

/* The same for |host|, which was picked: is it one that is left with next to no share? */
bool cluster_rt_cover_suspect(struct cluster_rt *rt, uint32_t host);

/* Is there a host that is tried, or left with next to no share? */
static inline bool cluster_rt_mistrusts(const struct cluster_rt *rt)
{
    return atomic_load_explicit(&rt->state->mistrusts, memory_order_relaxed);
}

/* The trial has passed, or is called off: the token was not needed. */
void cluster_rt_probe_over(struct cluster_rt *rt);

/* One that is not in |tried|. */
uint32_t cluster_rt_pick_other(struct cluster_rt *rt, const struct lb_tried *tried);

/* May a free connection to |host| carry a request now, or is the host at its own limit? */
bool cluster_rt_room(const struct cluster_rt *rt, uint32_t host);

/* Is a connection to |host| worth keeping: is it healthy, or in use for want of healthy ones? */
bool cluster_rt_serves(struct cluster_rt *rt, uint32_t host);

/* Is it no longer one of the cluster's, or drained by hand? */
bool cluster_rt_left(const struct cluster_rt *rt, uint32_t host);

/* Is |host| ejected, drained or gone? It may serve all the same. */
bool cluster_rt_is_out(const struct cluster_rt *rt, uint32_t host);

/*
 * A connect that was really tried has failed, and no request waits for it any more: evidence all
 * the same. The triggers to tell the judge; 0: none.
 */
uint32_t cluster_rt_connect_failed(struct cluster_rt *rt, uint32_t host, mono_ns now);

/* As Envoy, where that is asked for (policy/differences.h). */
static inline bool cluster_rt_queues_at_hosts(const struct cluster_rt *rt)
{
    return as_envoy(rt->config->differences, DIFFERENCE_QUEUE_PER_HOST);
}

static inline bool cluster_rt_connect_fails_all(const struct cluster_rt *rt)
{
    return as_envoy(rt->config->differences, DIFFERENCE_CONNECT_FAILS_ALL);
}

static inline bool cluster_rt_ejection_closes(const struct cluster_rt *rt)
{
    return as_envoy(rt->config->differences, DIFFERENCE_EJECTION_CLOSES);
}

static inline bool cluster_rt_keeps_thrown_away(const struct cluster_rt *rt)
{
    return !as_envoy(rt->config->differences, DIFFERENCE_THROWN_AWAY_CLOSES);
}

static inline bool cluster_rt_refuses_full_buffer(const struct cluster_rt *rt)
{
    return as_envoy(rt->config->differences, DIFFERENCE_RETRY_BUFFER_REFUSES);
}

static inline struct host_state *cluster_rt_host(const struct cluster_rt *rt, uint32_t host)
{
    return host_state_of(rt->hosts.at[host]);
}

/* This worker's. */
static inline struct endpoint_cells *endpoint_rt_cells(const struct cluster_rt *rt, uint32_t host)
{
    return &cluster_rt_host(rt, host)->cells[rt->worker];
}

static inline void cluster_rt_count(struct cluster_rt *rt, enum cluster_metric m, uint64_t n)
{
    cell_add(&rt->cells->at[m], n);
}

static inline void cluster_rt_uncount(struct cluster_rt *rt, enum cluster_metric m)
{
    cell_sub(&rt->cells->at[m], 1);
}

static inline void endpoint_rt_count(struct cluster_rt *rt, uint32_t host, enum endpoint_metric m)
{
    cell_add(&endpoint_rt_cells(rt, host)->at[m], 1);
}

static inline void endpoint_rt_uncount(struct cluster_rt *rt, uint32_t host, enum endpoint_metric m)
{
    cell_sub(&endpoint_rt_cells(rt, host)->at[m], 1);
}

#endif
