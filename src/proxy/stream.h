/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request between its client connection and its upstream connection: feeds the exchange with
 * what happens, performs what it decides.
 */
#ifndef PROXY_STREAM_H
#define PROXY_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "codec/http1.h"
#include "codec/message.h"
#include "exchange/exchange.h"
#include "proxy/alarm.h"
#include "proxy/keeping.h"
#include "proxy/outbuf.h"
#include "proxy/relay.h"
#include "proxy/worker_state.h"

struct downstream;
struct upstream;

/* What the request's head said; views into |head| unless they are empty. For log and answer. */
struct request_facts {
    struct bytes method;
    struct bytes path;
    struct bytes authority;
    struct bytes request_id;
    struct bytes user_agent;
    struct bytes forwarded_for;
    enum method method_id;
    uint8_t minor;
    bool keep_alive; /* the client will go on */
    bool websocket;
    bool expects_continue;
};

struct retry_own {
    struct retry_policy policy;
    uint32_t names_len;
    uint8_t names[]; /* of headers of an answer, as a list */
};

struct stream {
    struct worker *worker;
    struct adopted
        *adopted; /* the configuration it was routed by; NULL: |own_route| is all of it */
    struct route *own_route; /* of a tunnel without |adopted| */
    struct downstream *down;
    struct upstream *up;  /* NULL: none at present */
    struct pool *pool;    /* of the present attempt; NULL: none */
    struct list waiting;  /* in a pool's or a cluster's queue */
    bool queued_for_slot; /* in the cluster's queue */
    mono_ns queued_since;
    bool corked;           /* more of the request is about to follow: write it all at once */
    bool close_client;     /* after the answer */
    bool forwarding;       /* the answer's head is out */
    bool no_memory;        /* part of the body could not be held: to be refused */
    bool host_shut;        /* a tunnel's half towards the host is closed */
    struct retry_own *own; /* the request's own word on retries, from a trusted client; or NULL */
    struct exchange x;
    struct alarm alarm;
    struct request_facts facts;
    struct kept_headers kept_request; /* for the access log */
    struct kept_headers kept_response;
    wall_ns started_wall;
    uint8_t *head; /* the request's head as it goes upstream, and texts for the log */
    uint32_t head_len;
    uint32_t head_sent;
    uint32_t head_size;
    uint32_t count_at;      /* where in it the number of the attempt goes, at its end; 0: nowhere */
    struct outbuf out;      /* of the request's body */
    struct relay request;   /* client to host */
    struct relay response;  /* host to client */
    uint64_t bytes_to_host; /* of the present attempt */
};

/* Nobody looks at it any more. */
void stream_bury(struct stream *s);

/*
 * A request whose head is in |worker->head|. Begins it; on return it may already be over (then
 * |down->stream| is not this one any more). |more|: bytes follow its head in the same loan. False:
 * no memory, and nothing was begun.
 */
bool stream_begin(struct downstream *down, struct bytes path, const struct route *route, bool more);

/* Bytes of the body; takes what it can use off |*in|. */
void stream_receive(struct stream *s, struct bytes *in);

/* May more of the body come? */
bool stream_has_room(const struct stream *s);

/* The client's link has room again, and all that was held for it is written. */
void stream_delivered(struct stream *s);

/* The client's FIN. False: that means it is gone (and the stream over). */
bool stream_client_ended(struct stream *s);

/* The client is gone. Ends the stream. */
void stream_client_gone(struct stream *s);

/* By the proxy itself: |reason|. */
void stream_refuse(struct stream *s, enum reason reason);

static inline bool stream_over(const struct stream *s)
{
    return s->x.state == EXCHANGE_DONE;
}

/* --- for pool.c and upstream.c --- */

void stream_event(struct stream *s, const struct exchange_event *event);

/* A connection for it. False: it may not have it, and was refused; the connection is still free. */
bool stream_connected(struct stream *s, struct upstream *up);

void stream_connect_failed(struct stream *s, enum attempt_fault fault);

/* Writes what there is of the request to the connection. */
void stream_send(struct stream *s);

/*
 * A tunnel may last longer than many configurations: it takes along what it needs of its own, so
 * that they can be freed.
 */
void stream_settle(struct stream *s);

/* The host has closed its half of a tunnel. */
void stream_host_ended(struct stream *s);

/* Is the request wholly written to the connection? */
bool stream_sent_whole(const struct stream *s);

#endif
