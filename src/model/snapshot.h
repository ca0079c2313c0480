/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration in force: immutable once published, counted, adopted by each worker between
 * turns. Built by control, read by exchange and proxy. What changes at run time is in the
 * cluster_state and process_state it points to.
 *
 * Everything hangs in the snapshot's arena; indices, not pointers, name clusters and endpoints.
 */
#ifndef MODEL_SNAPSHOT_H
#define MODEL_SNAPSHOT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"
#include "base/arena.h"
#include "base/bytes.h"
#include "base/list.h"
#include "base/units.h"
#include "model/access_format.h"
#include "model/cluster_state.h"
#include "policy/detection.h"
#include "policy/differences.h"
#include "policy/lb.h"
#include "policy/limit.h"
#include "policy/outlier.h"
#include "policy/retry.h"
#include "policy/retry_budget.h"

struct endpoint {
    struct address address;
    struct bytes text;     /* "127.0.0.1:9001", as shown */
    struct bytes hostname; /* as configured: a name, or the same as |text| */
    struct bytes zone;
    struct bytes version;
    uint32_t weight;
    uint32_t slot; /* of its host in the cluster's |hosts|; once the state is attached */
};

/* Of each host. */
struct host_limits {
    uint32_t max_connections; /* LIMIT_NONE: no limit, here and below */
    uint32_t max_pending;     /* requests that wait for a connection to it */
    uint32_t max_requests;    /* requests on its connections */
};

struct circuit_limits {
    uint32_t max_connections;
    uint32_t max_pending;
    uint32_t max_requests;
    uint32_t max_retries;
    uint32_t max_requests_per_connection; /* 0: no limit */
    struct host_limits host;
    span_ns queue_timeout; /* longest wait where maxConnections is reached; MONO_NEVER: none */
};

struct cluster {
    struct bytes name;      /* as shown; "outbound|80||a.b" where there is a host */
    struct bytes stat_name; /* ':' as '_' */
    struct bytes alias;     /* as configured; empty: a subset */
    struct bytes host;      /* of a DestinationRule, in full; may be empty */
    uint32_t endpoint_count;
    const struct endpoint *endpoints;
    difference_set differences; /* in which it follows Envoy */
    enum lb_kind lb;
    struct panic_config panic;
    struct circuit_limits limits;
    struct outlier_config outlier;
    struct detection_config detection;
    struct retry_budget_config retry_budget;
    struct retry_share retry_share; /* Istio's retryBudget: takes the place of max_retries */
    span_ns connect_timeout;
    span_ns idle_timeout;            /* of upstream connections */
    span_ns max_connection_age;      /* the same, each by up to a tenth less; 0: no limit */
    span_ns max_connection_duration; /* of upstream connections; 0: no limit */
    span_ns dns_hold;                /* of a name's address that answers leave out; 0: none */
    span_ns host_drain_timeout;      /* of what is under way on a host that left; 0: no limit */
    bool keepalive;                  /* TCP */
    uint32_t keepalive_idle_s;
    uint32_t keepalive_interval_s;
    uint32_t keepalive_probes;
    bool connect_failover;       /* a connect that fails moves the request to another host, once */
    struct cluster_state *state; /* a reference of the snapshot's */
    struct host_set hosts;       /* as this snapshot sees them */
};

/* Before it is published. */
static inline void cluster_follow(struct cluster *c, difference_set envoy)
{
    c->differences = envoy;
    c->outlier.differences = envoy;
}

struct route_retry {
    struct retry_policy policy;
    uint32_t method_count; /* that are retried beside the idempotent ones */
    const struct bytes *methods;
    uint32_t header_count; /* of an answer that make it one to be retried */
    const struct bytes *headers;
    uint32_t buffer_bytes; /* most of a body that is kept for another attempt */
    bool count_in_answer;  /* x-envoy-attempt-count for the client */
};

enum path_match { PATH_PREFIX, PATH_EXACT };

struct route {
    struct bytes name;         /* as shown in logs; may be empty */
    uint32_t host_count;       /* 0: any host */
    const struct bytes *hosts; /* lower case; "*", "*.example.test", "example.test" */
    uint32_t method_count;     /* 0: any method */
    const struct bytes *methods;
    enum path_match match;
    struct bytes path;       /* prefix matches whole bytes, as Envoy's: "/a" matches "/ab" */
    uint32_t cluster;        /* index */
    uint8_t class;           /* of its requests; or CLASS_BY_REQUEST */
    uint64_t large_body;     /* bytes: from there on it is of class "large"; UINT64_MAX: never */
    span_ns timeout;         /* total, from the end of the request; MONO_NEVER: none */
    span_ns per_try_timeout; /* MONO_NEVER: none */
    span_ns idle_timeout;    /* nothing moves either way; MONO_NEVER: none */
    const struct route_retry *retry; /* NULL: none */
};

struct http_limits {
    uint32_t head_bytes;   /* request line and fields; more: 431 (414 where the line alone is) */
    uint32_t fields;       /* number; more: 431 */
    uint64_t body_bytes;   /* UINT64_MAX: none; more: 413 */
    uint32_t buffer_bytes; /* of one direction of one request */
};

struct listener_state {
    _Atomic uint32_t refs;
    uint32_t workers;
    struct http_cells **cells;                  /* [worker] */
    _Atomic uint32_t port;                      /* as bound: the real port where 0 was asked for */
    _Atomic uint64_t before[HTTP_METRIC_COUNT]; /* counted before the last reset */
    struct flag_cells flags_before;
};

struct listener_config {
    struct bytes name;
    struct address address;
    uint32_t route_count;
    const struct route *routes;
    struct http_limits limits;
    span_ns head_timeout;       /* from the first byte of a head to its last */
    span_ns body_timeout;       /* from the head to the last byte of the body; MONO_NEVER: none */
    span_ns idle_timeout;       /* a connection with no request under way */
    span_ns max_connection_age; /* each by up to a tenth less; 0: no limit */
    uint32_t trusted_hops;      /* proxies in front whose X-Forwarded-For entries are believed */
    bool trust_retry_headers;   /* x-envoy-* of clients are obeyed, not just dropped */
    bool via;                   /* add Via */
    bool normalize_forwarded;   /* forward the normalised path; false: as the client sent it */
    bool merge_slashes;
    struct listener_state *state; /* a reference of the snapshot's */
};

struct access_log_config {
    struct bytes to;                    /* "stdout", "off" or a path */
    const struct access_format *format; /* NULL: JSON with our own keys */
};

struct snapshot {
    _Atomic uint32_t refs;
    uint64_t version;
    struct snapshot *base; /* a reference: the one whose listeners these are; NULL: its own */
    struct list retired;   /* for who put another one in force */
    struct arena arena;
    /* From here on: what snapshot_derive copies. */
    uint32_t listener_count;
    const struct listener_config *listeners;
    uint32_t cluster_count;
    const struct cluster *clusters;
    uint32_t class_count; /* of requests, as detection tells them apart: names */
    struct bytes classes[EVIDENCE_CLASS_MAX];
    struct address admin; /* ADDRESS_NONE: off */
    uint32_t workers;     /* 0: one a CPU */
    struct access_log_config access_log;
    struct bytes outlier_event_log; /* a path; empty: none */
    struct bytes journal;           /* of decisions; the same */
    struct bytes user;              /* empty: stay who we are */
    uint64_t memory_limit;          /* 0: half of the memory */
    span_ns drain_wait;             /* from the first signal to the end of listening */
    span_ns drain_timeout;          /* from the first signal to the hard end */
    uint32_t trap_count;
    const uint64_t *traps; /* hashes of what `check` finds in it: a reload logs what is new */
};

/*
 * Lets the snapshot's listeners and clusters have their run-time state (of |workers| workers).
 * Called once by whoever starts the process, after the number of workers is known. False: no
 * memory.
 */
bool snapshot_attach_state(struct snapshot *s, uint32_t workers);

/* Sum over all workers, since the last reset. */
uint64_t listener_state_sum(const struct listener_state *s, enum http_metric m);
/* The same of a response flag, by its index. */
uint64_t listener_state_flag(const struct listener_state *s, uint32_t flag);
/* Control thread only. Its counters begin anew at zero; gauges stay. */
void listener_state_reset(struct listener_state *s);

struct listener_state *listener_state_take(struct listener_state *s);
void listener_state_drop(struct listener_state *s);

/* An empty one with a reference of the caller's, to be filled. NULL: no memory. */
struct snapshot *snapshot_create(void);
/* The same, with all that |base| has but its clusters, and |base| as its base. */
struct snapshot *snapshot_derive(struct snapshot *base);
struct snapshot *snapshot_take(struct snapshot *s);
/* The last reference frees it and drops the states of its clusters and listeners. */
void snapshot_drop(struct snapshot *s);

/* Does nobody else hold a reference? Then nobody else can get one. */
bool snapshot_is_unshared(const struct snapshot *s);

/* By its only holder, before the last drop: that of up to |most| clusters. False: none is left. */
bool snapshot_shed_clusters(struct snapshot *s, uint32_t most);

/*
 * The cluster that goes by |name|: as shown, as configured, or by the host that no other has.
 * NULL: none.
 */
const struct cluster *snapshot_find_cluster(const struct snapshot *s, struct bytes name);

/* What `run --to` and absent keys get. The one place for these numbers. */
extern const struct circuit_limits default_limits;
extern const struct outlier_config default_outlier;
extern const struct detection_config default_detection;
extern const struct panic_config default_panic;
extern const struct retry_budget_config default_retry_budget;
extern const struct http_limits default_http_limits;

#define DEFAULT_ROUTE_TIMEOUT   (15 * NS_PER_S)
#define DEFAULT_STREAM_IDLE     (300 * NS_PER_S)
#define DEFAULT_CONNECT_TIMEOUT (5 * NS_PER_S)
#define DEFAULT_UPSTREAM_IDLE   (60 * NS_PER_S)
#define DEFAULT_HEAD_TIMEOUT    (10 * NS_PER_S)
#define DEFAULT_BODY_TIMEOUT    (300 * NS_PER_S)
#define DEFAULT_CLIENT_IDLE     (3600 * NS_PER_S)
#define DEFAULT_DRAIN_TIMEOUT   (30 * NS_PER_S)
#define DEFAULT_LARGE_BODY      (256u * 1024)
#define DEFAULT_RETRY_BUFFER    (1024u * 1024) /* Envoy's */

#endif
