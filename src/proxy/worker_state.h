/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of proxy/ share: one worker's state. Not for other folders. */
#ifndef PROXY_WORKER_STATE_H
#define PROXY_WORKER_STATE_H

#include "base/list.h"
#include "base/rng.h"
#include "base/slab.h"
#include "base/wheel.h"
#include "codec/message.h"
#include "exchange/cluster_rt.h"
#include "exchange/witness.h"
#include "proxy/alarm.h"
#include "proxy/worker.h"

struct upstream;

/* The connections of this worker to one host. */
struct pool {
    struct cluster_pools *cluster;
    uint32_t host;
    uint32_t open;       /* connections, those under way included */
    uint32_t connecting; /* under way */
    uint32_t waiting_count;
    bool wish_again;     /* a second time when the turn ends */
    bool out;            /* its host was not healthy when that was last looked at */
    uint32_t refreshed;  /* the host's, when connections were last given up */
    struct list idle;    /* struct upstream, last used first */
    struct list waiting; /* struct stream, first come first */
    struct list served;  /* the worker's, where a waiting request got a connection in this turn */
    struct timer left;   /* armed: the host left, and what is then still under way is broken off */
};

/*
 * This worker's run-time state of a cluster, and its pools. It stays while the cluster is
 * configured; after that until its last request and connection are gone.
 */
struct cluster_pools {
    struct worker *worker;
    struct list link;      /* retired: the worker's list of these */
    struct snapshot *kept; /* retired: the last one that knows it; else NULL */
    uint32_t connections;  /* that live */
    uint32_t streams;      /* requests to it that are remembered */
    bool wanted;           /* only while a snapshot is adopted */
    struct cluster_rt rt;
    struct pool **pools; /* [host] */
    uint32_t pool_count;
    struct list blocks;  /* the pools' memory */
    struct list queue;   /* struct stream: no connection slot was free */
    bool handing_out;    /* slots, further up the stack */
    struct timer retell; /* another worker's mailbox was full */
    uint32_t idle_count;
    uint32_t epoch; /* of the hosts' health, when idle connections were last looked through */
};

/* A configuration as it was loaded. Requests and listeners refer to the one they began with. */
struct adopted {
    struct list link;
    struct snapshot *snapshot;
    uint32_t uses;
};

struct listener_rt {
    struct list link; /* the worker's; those that close are still there */
    struct worker *worker;
    const struct listener_config *config; /* of |adopted| */
    struct adopted *adopted;
    struct listener *listener; /* NULL: closed */
    struct timer close;        /* armed: it turns connections away and closes then */
    uint32_t connections;      /* of clients that came by it */
    bool closing;              /* no longer configured */
    bool wanted;               /* only while a snapshot is adopted */
    struct http_cells *cells;  /* this worker's */
    struct address local;
};

/* Room for a request or response head on its way out: the largest head and what we add. */
#define HEAD_EXTRA_MAX  1024u
#define SCRATCH_SIZE    (256u * 1024)
#define SMALL_HEAD_SIZE 4096u

#define DATE_SIZE 32

struct worker {
    struct worker_setup setup;
    struct snapshot *snapshot; /* in force */
    struct adopted *config;    /* the one it was made from */
    struct list adopted;       /* struct adopted, this and older ones still referred to */
    struct worker_cells *cells;
    mono_ns now;   /* of the present turn */
    mono_ns ended; /* the turn before */
    struct wheel wheel;
    struct rng rng;
    struct slab streams;
    struct slab downstreams;
    struct slab upstreams;
    struct slab heads;          /* SMALL_HEAD_SIZE each */
    struct slab outbufs;        /* OUTBUF_SIZE each */
    uint64_t allocations;       /* of the heap */
    struct list connections;    /* struct downstream, all that live */
    struct list upstream_links; /* struct upstream, all that live */
    struct list served_pools;   /* struct pool, see there */
    struct list dead_downstreams;
    struct list dead_upstreams;
    struct list dead_streams;
    struct list listeners; /* struct listener_rt */
    uint32_t cluster_count;
    struct cluster_pools **clusters; /* as in the snapshot */
    struct list retired;             /* struct cluster_pools that are no longer configured */
    struct witness witness;
    struct lag_health health;
    struct timer lookout; /* for attempts that become late */
    mono_ns lookout_until;
    struct timer accept_retry;
    struct timer drain_end;
    bool accepting_paused;
    bool accept_told;           /* the pause was logged: its end is to be, too */
    mono_ns accept_quiet_until; /* no further pause is logged before */
    bool going_over;            /* something of an earlier snapshot is still there */
    bool draining;              /* connections end as their requests do */
    bool leaving; /* besides, nothing listens any more, and the loop ends with the last of them */
    bool done;
    mono_ns date_until; /* the Date below holds until then */
    char date[DATE_SIZE];
    struct message_head head;      /* the one being parsed or forwarded; only within one call */
    uint8_t scratch[SCRATCH_SIZE]; /* a response head on its way out */
};

static inline struct cluster_pools *pools_of(struct cluster_rt *rt)
{
    return CONTAINER_OF(rt, struct cluster_pools, rt);
}

static inline void worker_count(struct worker *w, enum worker_metric m, uint64_t n)
{
    cell_add(&w->cells->at[m], n);
}

/* Answers say that they are the last on their connection: draining, or told to seem unwell. */
static inline bool worker_ends_connections(const struct worker *w)
{
    return w->draining ||
           atomic_load_explicit(&w->setup.process->health_failed, memory_order_relaxed) != 0;
}

static inline void listener_count(struct listener_rt *l, enum http_metric m, uint64_t n)
{
    cell_add(&l->cells->at[m], n);
}

static inline void listener_uncount(struct listener_rt *l, enum http_metric m)
{
    cell_sub(&l->cells->at[m], 1);
}

/* "Mon, 30 Nov 2026 06:00:00 GMT", of now. */
struct bytes worker_date(struct worker *w);

#endif
