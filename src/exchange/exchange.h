/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request's life, as a pure function from events to actions. The glue (proxy/) tells what
 * happened, performs what comes out, and decides nothing. Every request ends exactly once, with one
 * status, one reason (law 6).
 *
 *            BEGIN            MUST_WAIT
 *     NEW ---------> PICKED -----------> QUEUED
 *      |               |  ^ ^               |
 *      |     CONNECTED |  | | failed:       |  CONNECTED
 *      |               v  | | another host  v
 *      |             SENT <-----------------'
 *      |               |    '--- WAITING: the back-off before a retry
 *      |               |     HEAD                  UPSTREAM_COMPLETE
 *      |               '------------> ANSWERING ---------------------.
 *      |   refused, failed: RESPOND                                  v      DELIVERED
 *      '---------------------------------------------------> DELIVERING ----------------> DONE
 *
 * From every state but NEW: CLIENT_GONE, and once the answer has begun a failure, lead to DONE at
 * once (CUT).
 */
#ifndef EXCHANGE_EXCHANGE_H
#define EXCHANGE_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/units.h"
#include "exchange/cluster_rt.h"
#include "exchange/reason.h"
#include "model/process_state.h"
#include "model/record.h"
#include "model/snapshot.h"

enum exchange_state {
    EXCHANGE_NEW,
    EXCHANGE_PICKED,     /* a host is chosen, a connection to it is being looked for */
    EXCHANGE_QUEUED,     /* waits for a connection */
    EXCHANGE_SENT,       /* has one: the request goes out, the answer is awaited */
    EXCHANGE_WAITING,    /* an attempt failed, the next begins at |try_deadline| */
    EXCHANGE_ANSWERING,  /* the answer's head was forwarded */
    EXCHANGE_DELIVERING, /* the answer is whole (or local); its last bytes go to the client */
    EXCHANGE_DONE
};

enum exchange_event_kind {
    EVENT_BEGIN,            /* the head is here and was routed */
    EVENT_REQUEST_COMPLETE, /* the request's last byte is here */
    EVENT_MUST_WAIT,        /* no idle connection to the host */
    EVENT_CONNECTED,        /* a connection is there: |reused| or fresh */
    EVENT_CONNECT_FAILED,   /* |fault| */
    EVENT_HEAD,             /* final answer's head, |status| */
    EVENT_TUNNEL, /* 101 to an upgrade that was asked for: from here on only the idle timeout */
    EVENT_UPSTREAM_COMPLETE, /* the answer's last byte is here */
    EVENT_DELIVERED,         /* all of the answer was handed to the client's link */
    EVENT_BROKEN, /* the upstream connection is lost, or what it says is no HTTP: |fault| */
    EVENT_TIME,   /* exchange_wakeup has come */
    EVENT_CLIENT_GONE,
    EVENT_REFUSED /* by the proxy itself: |reason| */
};

enum attempt_fault {
    FAULT_NONE,
    FAULT_REFUSED,     /* connect: nobody listens */
    FAULT_UNREACHABLE, /* connect: no way to the host */
    FAULT_UNCONNECTED, /* connect: ended by the host or the network in some other way */
    FAULT_CONNECT_TIMEOUT,
    FAULT_LOCAL,   /* connect: ours, no descriptors or ports */
    FAULT_RESET,   /* connection lost */
    FAULT_PROTOCOL /* malformed answer */
};

struct exchange_event {
    enum exchange_event_kind kind;
    enum attempt_fault fault;
    enum reason reason;
    uint32_t status;
    bool reused;       /* CONNECTED: it has served another request before */
    bool untouched;    /* BROKEN: not one byte of an answer had come, or of the one after a 1xx */
    bool replayable;   /* HEAD, CONNECT_FAILED, BROKEN, TIME: all that was sent can be sent again */
    bool marked;       /* HEAD: it has one of the route's retriable headers */
    bool rate_limited; /* HEAD: it has x-envoy-ratelimited */
    bool held_up;      /* TIME, UPSTREAM_COMPLETE: the client does not, or once did not, take what
                          there is of the answer */
    uint64_t bytes;    /* UPSTREAM_COMPLETE: of the answer's body */
    const struct load_report *load; /* HEAD: the host's own word; NULL: it said nothing */
};

enum action_kind {
    ACTION_ATTEMPT,       /* get a connection to |host|; answered by MUST_WAIT or CONNECTED */
    ACTION_ATTEMPT_FRESH, /* the same, but not a used one */
    ACTION_SEND,          /* the connection is yours: send */
    ACTION_RELEASE,       /* done with the connection: back to the pool if it is clean */
    ACTION_ABANDON,       /* leave the queue, or close the connection: the attempt is over */
    ACTION_DISCARD,       /* nobody wants the answer whose head has come: the attempt is over */
    ACTION_FORWARD,       /* the answer's head to the client, and what follows it */
    ACTION_RESPOND,       /* a local answer for |reason|; then DELIVERED */
    ACTION_CUT,           /* the client gets no whole answer: break its connection off */
    ACTION_ACCUSE,        /* tell the outlier watch: |host|, |triggers| */
    ACTION_FINISH         /* it is over: make the record, then forget it */
};

struct action {
    enum action_kind kind;
    uint32_t host;
    uint32_t triggers;
    enum reason reason;
};

#define ACTIONS_MAX 6

struct actions {
    unsigned count;
    struct action at[ACTIONS_MAX];
};

enum attempt_outcome {
    ATTEMPT_PENDING,
    ATTEMPT_ANSWERED,
    ATTEMPT_CONNECT_FAILED,
    ATTEMPT_RESET,
    ATTEMPT_TIMED_OUT,
    ATTEMPT_CANCELLED,
    ATTEMPT_OVERFLOW
};

/* A host that is not trusted is given it: another answers where it fails or is late, and a token of
 * the retry budget is held for that. */
enum attempt_trial {
    TRIAL_NONE,
    TRIAL_SUSPECT, /* it has next to no share of the requests */
    TRIAL_PROBE    /* it is out */
};

struct attempt {
    uint32_t host;
    enum attempt_outcome outcome;
    uint32_t status;
    uint32_t flags;
    uint16_t ahead;  /* attempts under way on the host when it was picked */
    uint8_t trial;   /* enum attempt_trial */
    span_ns backoff; /* waited before it */
    mono_ns picked_at;
    mono_ns connected_at; /* MONO_NEVER: not */
    mono_ns ended_at;
};

/* Embed by value. The glue reads the fields, only exchange.c writes them. */
struct exchange {
    enum exchange_state state;
    struct cluster_rt *cluster; /* NULL: none was found */
    const struct route *route;  /* NULL: none was found */
    struct process_state *process;
    mono_ns started_at;
    mono_ns complete_at; /* of the request; MONO_NEVER: not yet */
    mono_ns head_at;     /* of the answer; MONO_NEVER: not yet */
    mono_ns deadline;    /* route timeout */
    mono_ns
        try_deadline; /* per-try timeout; QUEUED: of the wait; WAITING: the next attempt's begin */
    span_ns backoff;  /* before the attempt that comes next */
    mono_ns body_deadline; /* for the request's last byte */
    mono_ns active_at;     /* something last moved; kept by exchange_touch */
    span_ns idle_timeout;  /* where no route says another */
    span_ns timeout;       /* total, from |complete_at| */
    span_ns per_try_timeout;
    const struct retry_policy *retry; /* NULL: none */
    uint32_t status;                  /* sent to the client; 0: none */
    uint32_t flags;
    enum reason reason;
    uint32_t attempt_count;
    struct attempt attempts[RECORD_ATTEMPTS_MAX];
    uint8_t failovers;
    uint8_t resends;
    uint8_t retries; /* used up, the present one included */
    bool idempotent;
    bool repeatable;    /* may reach hosts more than once: idempotent, or named by the route */
    bool sent;          /* a byte of the request has gone out, in any attempt */
    bool interim;       /* an interim answer was forwarded: it has begun */
    bool reused;        /* the present attempt's connection */
    bool holds_process; /* limits taken, to be given back */
    bool holds_pending;
    bool holds_host_pending;
    bool holds_request;
    bool holds_host_request;
    bool waits; /* counted as waiting */
    bool holds_retry;
    bool tunnel;
    bool cut;              /* the answer was broken off by us */
    uint8_t class;         /* of requests, as detection tells them apart */
    bool watched;          /* in |open| */
    struct list open;      /* of those that may be late; witness.c */
    uint64_t answer_bytes; /* of the body, once it is whole */
    bool held_up;          /* the client's pace was the answer's, not the host's */
};

struct exchange_setup {
    struct cluster_rt *cluster;
    const struct route *route;
    struct process_state *process;
    span_ns body_timeout;
    span_ns idle_timeout; /* where there is no route */
    bool idempotent;
    bool named; /* the route lets its method be retried all the same */
    uint8_t class;
};

void exchange_init(struct exchange *x, const struct exchange_setup *setup, mono_ns now);

/* |out| is emptied first. */
void exchange_step(struct exchange *x, const struct exchange_event *event, mono_ns now,
                   struct actions *out);

/* A tunnel: from here on it refers to |own|, and no more to the route it came by. */
void exchange_settle(struct exchange *x, const struct route *own);

/* When EVENT_TIME is due, if nothing else happens before. */
mono_ns exchange_wakeup(const struct exchange *x);

/* Bytes moved, either way: the idle timeout starts anew. */
static inline void exchange_touch(struct exchange *x, mono_ns now)
{
    x->active_at = now;
}

/* Bytes of the request went out. */
static inline void exchange_sent(struct exchange *x, mono_ns now)
{
    x->active_at = now;
    x->sent = true;
}

/* A 1xx was forwarded. */
static inline void exchange_interim(struct exchange *x)
{
    x->interim = true;
}

static inline bool exchange_request_complete(const struct exchange *x)
{
    return x->complete_at != MONO_NEVER;
}

/* The present attempt's host. Only while there is an attempt. */
static inline uint32_t exchange_host(const struct exchange *x)
{
    return x->attempts[(x->attempt_count - 1) % RECORD_ATTEMPTS_MAX].host;
}

/* A request without a connection gets another host than first picked. */
void exchange_move(struct exchange *x, uint32_t host);

/* After the last look at its attempts, once it is done: their hosts may be forgotten. */
void exchange_release(struct exchange *x);
/* It waits for a connection slot, and so for no host in particular unless queues are at hosts. */
void exchange_await_slot(struct exchange *x, mono_ns now);

/*
 * It waits for a connection to its host that is, or is about to be, under way. False: as many wait
 * there as may.
 */
bool exchange_await_connect(struct exchange *x);

const char *attempt_outcome_text(enum attempt_outcome outcome);

#endif
