/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole proxy in a world: the daemon's own workers and control loop, on the simulated network,
 * between one crowd of clients and a cluster of servers. What main/ does with threads and sockets,
 * this does with virtual time.
 */
#ifndef SIM_RIG_H
#define SIM_RIG_H

#include <stdbool.h>
#include <stdint.h>

#include "model/process_state.h"
#include "model/snapshot.h"
#include "sim/client.h"
#include "sim/files.h"
#include "sim/ledger.h"
#include "sim/log.h"
#include "sim/mailbox.h"
#include "sim/net.h"
#include "sim/resolver.h"
#include "sim/server.h"
#include "sim/world.h"

#define RIG_WORKERS_MAX 8
#define RIG_HOSTS_MAX   64

struct worker;
struct control;

#define RIG_NAMED_MAX 2

/* ... which has a name of its own. */
struct rig_named {
    struct bytes method; /* the only one */
    struct bytes class;
};

/* What is configured: the one route, cluster and listener. */
struct rig_settings {
    uint64_t seed;
    uint32_t workers;
    uint32_t hosts;
    uint32_t strangers; /* hosts of a second cluster that has nothing to do with the first, behind a
                           listener of its own; 0: there is none */
    uint32_t descriptors; /* the process may open */
    uint64_t memory_limit;
    struct cluster cluster; /* all but names, endpoints and state */
    struct route route;     /* all but the match and the retries */
    uint32_t named_count;   /* routes before it, as it but for their methods and their class, ... */
    struct rig_named named[RIG_NAMED_MAX];
    struct route_retry retry;        /* the route's, where |attempts| is not 0 */
    struct listener_config listener; /* all but name, address, routes and state */
    span_ns drain_wait;
    span_ns drain_timeout;
    struct bytes event_log; /* its path; empty: none */
    struct bytes journal;   /* the same */
    uint32_t zones;         /* the hosts are in, one after another; 0: nothing is said of zones */
    uint64_t versions;      /* a bit a host: these are "v2", the others "v1"; 0: nothing is said */
    const char *name; /* the hosts are this name's addresses in |resolver|; NULL: given as such */
};

struct rig_worker {
    struct world_loop loop;
    struct sim_poller poller;
    struct sim_mailbox inbox;
    struct ledger_sink sink;
    struct worker *worker; /* NULL: freed */
};

struct rig {
    struct rig_settings settings;
    struct world world;
    struct net net;
    struct ledger ledger;
    struct sim_log log;
    struct sim_files files;
    struct net_process process; /* the proxy's */
    struct process_state *state;
    struct snapshot *snapshot;
    struct mailbox *inboxes[RIG_WORKERS_MAX];
    struct rig_worker workers[RIG_WORKERS_MAX];
    struct world_loop control_loop;
    struct sim_poller control_poller;
    struct sim_mailbox control_inbox;
    struct sim_resolver resolver;
    struct control *control;
    struct actor_loop client_loop;
    struct actor_loop server_loop;
    struct address address; /* the proxy's */
    struct address stranger_address;
    struct client client;
    struct client stranger;               /* of the second cluster */
    struct server servers[RIG_HOSTS_MAX]; /* hosts, then strangers */
};

/* As `run --to` with ten hosts and two workers. */
void rig_settings_init(struct rig_settings *s, uint64_t seed);

/* Detection acts, and its balancer is used. Without it detection is off. */
void rig_settings_detect(struct rig_settings *s, enum detection_profile profile);

/* All servers listen, the proxy takes connections. False: no memory. The rig is large: not on the
 * stack. */
bool rig_start(struct rig *r, const struct rig_settings *s);

/*
 * The proxy gets the settings as they are now and the servers that |hosts| names, a bit each, while
 * it runs. False: no memory, and nothing has changed.
 */
#define RIG_ALL_HOSTS UINT64_MAX
bool rig_reload(struct rig *r, uint64_t hosts);
/* From now on the name has the addresses of the hosts in |which|, a bit each; 16 at most. */
void rig_name_hosts(struct rig *r, uint64_t which);

/* The proxy drains; true once all its loops are done. */
bool rig_drain(struct rig *r, span_ns within);

/* Frees the proxy; its descriptors should all be given back then (rig->process.descriptors). */
void rig_free_proxy(struct rig *r);

/* Frees all, also a rig that failed to start. */
void rig_stop(struct rig *r);

static inline const struct cluster *rig_cluster(const struct rig *r)
{
    return &r->snapshot->clusters[0];
}

static inline struct cluster_state *rig_state(const struct rig *r)
{
    return r->snapshot->clusters[0].state;
}

/* As counted, of all clusters. */
uint64_t rig_connections(const struct rig *r);

/* Sums over the workers, of the first cluster and its listener. */
uint64_t rig_http_sum(const struct rig *r, enum http_metric m);
uint64_t rig_cluster_sum(const struct rig *r, enum cluster_metric m);

#endif
