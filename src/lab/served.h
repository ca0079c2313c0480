/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's side of one HTTP/1.1 connection: requests in, one at a time; answers out. Knows
 * nothing of what is asked for. Pipelined requests wait in a bounded buffer for their turn; an
 * answer that the peer does not take stops the reading.
 */
#ifndef LAB_SERVED_H
#define LAB_SERVED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "codec/http1.h"
#include "io/link.h"
#include "lab/buffer.h"
#include "lab/loop.h"
#include "lab/schedule.h"

struct served;

/* A const table a kind of owner. Every entry is set. */
struct served_events {
    /* Views die when this returns. The body stays unread until served_read_body. */
    void (*head)(struct served *s, const struct message_head *head);
    /* A piece of the body. */
    void (*body)(struct served *s, struct bytes data);
    /* The request was read whole. */
    void (*complete)(struct served *s);
    /* All that was written so far has gone out, and there was more than went at once. */
    void (*writable)(struct served *s);
    /* The peer will send no more; it may still want its answer. */
    void (*half_closed)(struct served *s);
    /* The connection is closed. The last call: the owner may free the object in it. */
    void (*gone)(struct served *s);
};

enum served_state {
    SERVED_HEAD,    /* waits for a request */
    SERVED_WAITING, /* the head was told; the body is not read */
    SERVED_BODY,    /* the body is read */
    SERVED_WHOLE,   /* the request was read; its answer is awaited or written */
    SERVED_CLOSING, /* all was said; the peer is given time to read it */
    SERVED_STUCK,   /* nothing is read any more, by order of a fault */
    SERVED_DEAD
};

struct served {
    const struct served_events *events;
    struct lab_loop *loop;
    struct link *link;
    struct buffer in;
    struct buffer out;
    struct http1_scan scan;
    struct http1_body body;
    struct appointment linger;
    enum served_state state;
    bool processing; /* inside the loop that tells the owner */
    bool reading;
    bool broken;      /* nothing can be written any more */
    bool peer_ended;  /* FIN */
    bool keep_alive;  /* after the present request */
    bool old_peer;    /* HTTP/1.0 */
    bool head_only;   /* asked with HEAD */
    bool wants_100;   /* Expect: 100-continue, not yet said */
    bool reads_later; /* the body, after the answer has begun */
    bool begun;       /* the answer's head is written */
    bool ended;       /* the answer is written */
    bool chunked;     /* the answer */
    bool bodiless;    /* the answer: what the owner writes is not sent */
    bool owes_writable;
};

enum served_framing { SERVED_LENGTH, SERVED_STREAM };

struct served_answer {
    uint32_t status;
    enum served_framing framing;
    uint64_t length;     /* SERVED_LENGTH */
    struct bytes fields; /* more field lines, each with its CR LF */
};

/* Takes the link over and begins to read. */
void served_open(struct served *s, const struct served_events *events, struct lab_loop *loop,
                 struct link *link);

/* From |head| on, once a request. */
void served_read_body(struct served *s);

/* The body will be read after the answer has begun: says "100 Continue" where that is awaited. */
void served_invite_body(struct served *s);

void served_begin(struct served *s, const struct served_answer *a);
void served_write(struct served *s, struct bytes data);
void served_end(struct served *s);

/* Begins, writes |body| and ends. */
void served_answer_with(struct served *s, const struct served_answer *a, struct bytes body);

/* Sends what is written without waiting for the answer's end. */
void served_flush(struct served *s);

/* Bytes that the peer has not taken yet. */
static inline size_t served_backlog(const struct served *s)
{
    return buffer_len(&s->out);
}

/* Reads nothing any more, not even the peer's FIN. */
void served_stop_reading(struct served *s);

/* Ends it now: |gone| comes, inside this call unless this is inside another event. */
void served_close(struct served *s);
void served_reset(struct served *s);

#endif
