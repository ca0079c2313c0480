/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1.1 clients of the simulator: keep-alive connections to one address, requests in any shape,
 * each answer checked byte for byte and entered in the ledger.
 */
#ifndef SIM_CLIENT_H
#define SIM_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slab.h"
#include "codec/method.h"
#include "sim/actor.h"
#include "sim/ledger.h"
#include "sim/payload.h"

/* What is asked for, and how. */
struct ask {
    enum method method; /* GET, HEAD, POST, PUT or DELETE */
    enum framing upload;
    uint64_t body;   /* bytes of the request's body */
    uint64_t answer; /* bytes the answer's body is to have */
    enum framing framing;
    uint32_t upload_piece; /* body bytes at a time, each |upload_gap|; 0: all at once */
    span_ns upload_gap;
    span_ns read_gap;     /* reads so seldom; 0: at once */
    span_ns cancel_after; /* its first byte; MONO_NEVER: never */
    bool cancel_softly;   /* by FIN rather than RST */
    bool never_ends;      /* the upload stops half-way and stays so */
    bool says_close;
    bool http10;
    bool expects; /* waits for 100 Continue, a second at most */
};

#define ASK_PLAIN                                                                                  \
    {                                                                                              \
        .method = METHOD_GET, .framing = FRAMING_LENGTH, .answer = 100, .cancel_after = MONO_NEVER \
    }

struct client {
    struct net *net;
    struct actor_loop *loop;
    struct ledger *ledger;
    struct address address;
    uint32_t conns_max;
    struct slab talk_slab;
    struct list talks; /* all connections */
    struct list idle;  /* those without a request, last used first */
    uint32_t talk_count;
    uint64_t dropped; /* asked for while all connections were in use */
    uint64_t refused; /* connects that failed */
    uint64_t interims;
    mono_ns lenient_since; /* the proxy goes away: requests begun since may end without an answer */
    void (*done)(struct client *c, uint64_t id); /* may be NULL */
    void *owner;
};

void client_init(struct client *c, struct actor_loop *loop, struct ledger *ledger,
                 const struct address *address);
void client_release(struct client *c);

/* Sends a request on an idle connection or a new one. Its id; 0: no connection to be had. */
uint64_t client_ask(struct client *c, const struct ask *a);

/* Opens a connection and sends nothing. */
bool client_open_idle(struct client *c);

/* Closes those without a request. */
void client_close_idle(struct client *c);

/* The power fails: all connections are gone without a word, their requests cancelled. */
void client_vanish(struct client *c);

/* The fact of request |id|, which must exist. */
const struct fact *client_fact(const struct client *c, uint64_t id);

#endif
