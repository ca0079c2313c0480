/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection to a host, speaking HTTP/1.
 *
 *     CONNECTING ----> IDLE <----> BUSY ----> DEAD
 *          '-------------'------------------->
 */
#ifndef PROXY_UPSTREAM_H
#define PROXY_UPSTREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "codec/http1.h"
#include "exchange/exchange.h"
#include "io/link.h"
#include "proxy/alarm.h"
#include "proxy/inbuf.h"
#include "proxy/worker_state.h"

struct stream;

enum upstream_state { UPSTREAM_CONNECTING, UPSTREAM_IDLE, UPSTREAM_BUSY, UPSTREAM_DEAD };

struct upstream {
    struct list all;     /* the worker's; then its graveyard */
    struct list in_pool; /* IDLE: the pool's idle list */
    struct link *link;
    struct pool *pool;
    struct stream *stream; /* BUSY */
    enum upstream_state state;
    bool reading;
    bool write_failed;   /* no more can be written; what the host said before is still to be read */
    bool head_done;      /* BUSY: the final answer's head was seen */
    bool answer_seen;    /* BUSY: a byte of an answer has come */
    bool reusable;       /* BUSY: the answer lets the connection live on */
    bool close_notified; /* BUSY: it said connection: close */
    bool ended;          /* the host's FIN */
    bool parked;         /* was idle before: the host may have closed it unseen */
    bool held_up;        /* BUSY: its client did not take what there was of the answer */
    bool discarding;     /* BUSY: the answer whose head is being read is nobody's */
    bool sent_whole;     /* discarding: the request was sent to its end */
    uint32_t requests;   /* begun on it */
    uint32_t looked_requests; /* the same when its path was last looked at, and ... */
    uint32_t looked_resent;   /* ... its retransmits */
    mono_ns look_at;          /* not again before */
    struct alarm alarm;       /* connect timeout, idle timeout */
    mono_ns connect_at;
    mono_ns retire_at; /* no request is begun on it any more; MONO_NEVER: no limit */
    struct inbuf in;
    struct http1_scan scan;
};

/* Begins to connect; the slot is taken. FAULT_NONE, or FAULT_LOCAL and nothing was made. */
enum attempt_fault upstream_connect(struct pool *pool);

/* A stream takes it (IDLE or just connected). */
void upstream_attach(struct upstream *up, struct stream *s);

/* The stream is done with it: back to the pool if it is clean, else closed. */
void upstream_release(struct upstream *up);

/* The stream gives up on it, in mid-exchange: closed. */
void upstream_abandon(struct upstream *up);

/*
 * The stream does not want the answer whose head it was just told of: back to the pool if all of it
 * is there and was whole, else closed.
 */
void upstream_discard(struct upstream *up);

/* Reads the host, or not, as there is room for what it sends. */
void upstream_pace(struct upstream *up);

/* The link takes no more: see |write_failed|. */
void upstream_write_failed(struct upstream *up);

/* Busy, it is closed after the request that it carries. */
void upstream_drain(struct upstream *up);

void upstream_close(struct upstream *up);
void upstream_bury(struct upstream *up);

#endif
