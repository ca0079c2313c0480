/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client's side of one HTTP/1.1 connection: one call at a time, kept open between calls where
 * the server lets it. Reads while it writes; an answer may come before the request is out.
 */
#ifndef LAB_CALLER_H
#define LAB_CALLER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"
#include "base/bytes.h"
#include "codec/http1.h"
#include "io/link.h"
#include "lab/buffer.h"
#include "lab/loop.h"

/* How a call ends. */
#define CALL_OUTCOMES(X)                                                                           \
    X(ANSWERED, "answered")                                                                        \
    X(REFUSED, "refused")         /* nobody listens there */                                       \
    X(RESET, "reset")             /* by the peer, before the answer was whole */                   \
    X(CLOSED, "closed")           /* by the peer, before the answer was whole */                   \
    X(TIMEOUT, "timeout")         /* by whoever calls: see caller_drop */                          \
    X(BAD, "bad")                 /* the answer is not HTTP/1.1 */                                 \
    X(UNREACHABLE, "unreachable") /* no route, or the kernel gave up */                            \
    X(LOCAL, "local")             /* no descriptors, ports or memory on this side */

#define X(name, text) CALL_##name,
enum call_outcome { CALL_OUTCOMES(X) CALL_OUTCOME_COUNT };
#undef X

const char *call_outcome_text(enum call_outcome o);

struct caller;

/* A const table a kind of owner. Every entry is set. */
struct caller_events {
    /* The final head of the answer; views die when this returns. */
    void (*head)(struct caller *c, const struct message_head *head);
    void (*body)(struct caller *c, struct bytes data);
    /* The call is over; caller_is_open says whether the connection can take the next. */
    void (*done)(struct caller *c, enum call_outcome outcome);
    /* An idle connection was closed by the peer. */
    void (*lost)(struct caller *c);
};

enum caller_state { CALLER_CLOSED, CALLER_CONNECTING, CALLER_IDLE, CALLER_CALLING };

/* Bytes that stay where they are while the call is under way. */
struct call_request {
    enum method method;
    struct bytes head; /* with its empty line */
    uint64_t body;     /* bytes of filler after it */
};

struct caller {
    const struct caller_events *events;
    struct lab_loop *loop;
    struct link *link;
    enum caller_state state;
    const struct call_request *request; /* NULL: none under way */
    size_t head_sent;
    uint64_t body_left;
    struct buffer in;
    struct http1_scan scan;
    struct http1_body body;
    bool in_body;    /* the final head was read */
    bool started;    /* a byte of an answer came */
    bool keep_alive; /* the server's word */
    uint64_t calls;  /* begun on this connection */
};

void caller_init(struct caller *c, const struct caller_events *events, struct lab_loop *loop);

/* Opens a connection; IO_OK or an io_error, then it stays closed. What comes of it: |done|. */
int caller_connect(struct caller *c, const struct address *to);

/* Sends |r|, as soon as there is a connection. After caller_connect, or while it is idle. */
void caller_call(struct caller *c, const struct call_request *r);

static inline bool caller_is_open(const struct caller *c)
{
    return c->state == CALLER_IDLE;
}

/* True where the call under way, or just over, was not the first on its connection. */
static inline bool caller_is_reused(const struct caller *c)
{
    return c->calls > 1;
}

/* Closes without a word to the owner. Takes a closed one. */
void caller_drop(struct caller *c);

#endif
