/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client connection speaking HTTP/1: reads heads, hands requests to streams one at a time, writes
 * answers.
 *
 *            first byte            head whole              answered, keep-alive
 *     IDLE ------------> HEAD ------------------> BUSY ------------------------> IDLE
 *       |                  | bad, too slow          | answered, to be closed
 *       |                  v                        v
 *       |               LINGER <--------------------'   (101: BUSY stays, as a tunnel)
 *       v                  v
 *      DEAD <--------------'
 */
#ifndef PROXY_DOWNSTREAM_H
#define PROXY_DOWNSTREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "codec/http1.h"
#include "exchange/reason.h"
#include "io/link.h"
#include "proxy/alarm.h"
#include "proxy/inbuf.h"
#include "proxy/outbuf.h"
#include "proxy/worker_state.h"

struct stream;

enum downstream_state {
    DOWNSTREAM_IDLE,
    DOWNSTREAM_HEAD,
    DOWNSTREAM_BUSY,
    DOWNSTREAM_LINGER, /* all is said: reads on for a while so that the client can read the answer
                        */
    DOWNSTREAM_DEAD
};

struct downstream {
    struct list all; /* the worker's connections; then its graveyard */
    struct link *link;
    struct worker *worker;
    struct listener_rt *listener;
    struct stream *stream; /* BUSY */
    enum downstream_state state;
    bool reading;
    bool client_ended; /* sent its FIN */
    bool processing;   /* in the midst of what it received */
    bool write_failed; /* what is written goes nowhere */
    struct alarm alarm;
    struct inbuf in;
    struct outbuf out;
    struct http1_scan scan;
    mono_ns head_since; /* first byte of the present head */
    mono_ns retire_at;  /* each answer is the last from then on; MONO_NEVER: no limit */
    struct address peer;
};

/* Takes |link|; on failure closes it. */
void downstream_accept(struct listener_rt *listener, struct link *link, const struct address *peer);

/* Writes to the client; what its link has no room for is held, and its source must be paused. */
void downstream_write(struct downstream *d, const struct bytes *parts, size_t n);

static inline bool downstream_flushed(const struct downstream *d)
{
    return outbuf_empty(&d->out);
}

/* Reads the client, or not, as there is room for what it sends. */
void downstream_pace(struct downstream *d);

enum downstream_after {
    DOWNSTREAM_GOES_ON,   /* with the next request */
    DOWNSTREAM_CLOSES,    /* the answer is whole, and the last one */
    DOWNSTREAM_BREAKS_OFF /* the client has left, or was left, in the middle */
};

/* Its stream is over. */
void downstream_next(struct downstream *d, enum downstream_after after);

/* The stream is a tunnel from here on: what the client sent ahead is its first bytes. */
void downstream_tunnel(struct downstream *d);

/* Breaks the connection off: the client must not take what it has for whole. */
void downstream_cut(struct downstream *d);

/* Is the present request the last? The process drains, or the listener is no longer configured. */
bool downstream_ending(const struct downstream *d);

/* It is ending now: a client that is idle has little time left to come with a last request. */
void downstream_drain(struct downstream *d);

/* At once, whatever is under way. */
void downstream_kill(struct downstream *d);

/* A local answer to what is no request, then the connection ends. */
void downstream_reject(struct downstream *d, uint32_t status, const char *body);

/* Frees a dead one. */
void downstream_bury(struct downstream *d);

#endif
