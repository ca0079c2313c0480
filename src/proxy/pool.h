/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections to hosts, kept for reuse, and the requests that wait for one. A request waits at the
 * host that was picked for it while a connection to that is under way; where maxConnections is
 * reached it waits at the cluster, for the first connection that falls free.
 */
#ifndef PROXY_POOL_H
#define PROXY_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "exchange/exchange.h"
#include "proxy/worker_state.h"

struct stream;
struct upstream;

enum pool_wish { POOL_ANY, POOL_FRESH };

/* False: no memory. */
bool pools_init(struct cluster_pools *c, struct worker *w, const struct cluster *config);
void pools_release(struct cluster_pools *c);

/* Room for |hosts| hosts. False: no memory, and nothing has changed. */
bool pools_reserve(struct cluster_pools *c, uint32_t hosts);

/* The same cluster as a later snapshot has it; there is room for its hosts. */
void pools_adopt(struct cluster_pools *c, const struct cluster *config);

/* The cluster is no longer configured; |last| is the last snapshot that has it. */
void pools_retire(struct cluster_pools *c, struct snapshot *last);

/* Retired, and nobody thinks of it any more. */
bool pools_over(const struct cluster_pools *c);

/* Finds or opens a connection to |host| for |s|, which is told what came of it, now or later. */
void pool_get(struct cluster_pools *c, uint32_t host, struct stream *s, enum pool_wish wish);

/* |s| does not wait any more. */
void pool_leave(struct stream *s);

/* A connection is there and free: to a waiting request, to the idle ones, or closed. */
void pool_ready(struct pool *p, struct upstream *up);

/* A connect failed. One waiting request fails with it; the host is charged with it in any case. */
void pool_connect_failed(struct pool *p, enum attempt_fault fault);

/* Tells the outlier watch of runs of failures. */
void pool_accuse(struct cluster_pools *c, uint32_t host, uint32_t triggers);

/* A connection is gone, and its slot free. */
void pool_closed(struct pool *p);

/* It went after a whole answer, for its age or the requests it had: Envoy then looks twice. */
void pool_wish_again(struct pool *p);

/* A host serves no more: what is idle towards it is closed. */
void pools_look(struct cluster_pools *c);

/* Another worker needs, or has freed, a connection slot. */
void pools_slot_news(struct cluster_pools *c);

/* The turn ends: what is still wished for by those who wait. */
void pools_end_turn(struct worker *w);

#endif
