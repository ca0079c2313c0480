/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/caller.h"

#include <assert.h>

#include "io/error.h"

#define TRAILER_MAX 16384
#define FILLER_SIZE 16384

static const struct http1_limits limits = {.head_bytes = 65536, .fields = MESSAGE_FIELDS_MAX};

static const uint8_t filler[FILLER_SIZE]; /* NULs: what is sent does not matter, its length does */

const char *call_outcome_text(enum call_outcome o)
{
#define X(name, text) text,
    static const char *const texts[] = {CALL_OUTCOMES(X)};
#undef X

    return texts[o];
}

void caller_drop(struct caller *c)
{
    if (c->link != NULL)
        link_abort(c->link);
    c->link = NULL;
    c->state = CALLER_CLOSED;
    c->request = NULL;
    buffer_release(&c->in);
}

/* Closes, politely where the answer was whole, and says how it went. */
static void finish(struct caller *c, enum call_outcome outcome)
{
    bool whole = outcome == CALL_ANSWERED;
    bool sent = c->request != NULL && c->head_sent == c->request->head.len && c->body_left == 0;

    c->request = NULL;
    if (whole && sent && c->keep_alive && buffer_len(&c->in) == 0) {
        c->state = CALLER_IDLE;
    } else {
        if (whole && c->link != NULL) {
            link_close(c->link);
            c->link = NULL;
        }
        caller_drop(c);
    }
    c->events->done(c, outcome);
}

/* What is next of the request. */
static struct bytes next_piece(const struct caller *c)
{
    struct bytes rest = bytes_skip(c->request->head, c->head_sent);

    if (rest.len > 0)
        return rest;
    return bytes_from(filler, c->body_left < FILLER_SIZE ? (size_t)c->body_left : FILLER_SIZE);
}

static void account(struct caller *c, size_t n)
{
    if (c->head_sent < c->request->head.len)
        c->head_sent += n;
    else
        c->body_left -= n;
}

static void send_on(struct caller *c)
{
    while (c->request != NULL) {
        struct bytes piece = next_piece(c);
        ptrdiff_t n;

        if (piece.len == 0)
            return;
        n = link_write(c->link, &piece, 1);
        if (n < 0)
            return; /* what the peer said before is still to be read: |ended| or |failed| comes */
        account(c, (size_t)n);
        if ((size_t)n < piece.len)
            return;
    }
}

/* True: go on with what is left in |c->in|. */
static bool read_head(struct caller *c)
{
    struct message_head head;
    struct http1_fault fault;
    size_t used = 0;

    switch (http1_parse_response(buffer_bytes(&c->in), &c->scan, &limits, c->request->method, &head,
                                 &used, &fault)) {
    case HTTP1_MORE:
        return false;
    case HTTP1_BAD:
        finish(c, CALL_BAD);
        return false;
    case HTTP1_OK:
        break;
    }
    c->scan = (struct http1_scan){0};
    if (head.status == 101) {
        finish(c, CALL_BAD); /* nobody asked for it */
        return false;
    }
    if (head.status >= 200) {
        c->in_body = true;
        c->keep_alive = head.keep_alive;
        http1_body_init(&c->body, &head, TRAILER_MAX);
        c->events->head(c, &head);
    }
    buffer_take(&c->in, used);
    return true;
}

static bool read_body(struct caller *c)
{
    struct bytes rest = buffer_bytes(&c->in);
    struct bytes data = BYTES_NONE;
    struct bytes trailers = BYTES_NONE;
    struct http1_fault fault;
    enum http1_result result;

    if (http1_body_done(&c->body)) {
        finish(c, CALL_ANSWERED);
        return false;
    }
    if (rest.len == 0)
        return false;
    result = http1_body_read(&c->body, &rest, &data, &trailers, &fault);
    if (result == HTTP1_BAD) {
        finish(c, CALL_BAD);
        return false;
    }
    if (data.len > 0)
        c->events->body(c, data);
    buffer_take(&c->in, buffer_len(&c->in) - rest.len);
    return result == HTTP1_OK;
}

static void process(struct caller *c)
{
    bool more = true;

    while (more && c->request != NULL)
        more = c->in_body ? read_body(c) : read_head(c);
}

static void lose(struct caller *c)
{
    caller_drop(c);
    c->events->lost(c);
}

static void on_opened(void *owner)
{
    struct caller *c = owner;

    c->state = c->request != NULL ? CALLER_CALLING : CALLER_IDLE;
    link_read_start(c->link);
    send_on(c);
}

static void on_received(void *owner, struct bytes data)
{
    struct caller *c = owner;

    if (c->state != CALLER_CALLING) {
        lose(c); /* an answer that nobody asked for */
        return;
    }
    c->started = true;
    if (buffer_add(&c->in, data))
        process(c);
    else
        finish(c, CALL_LOCAL);
}

static void on_ended(void *owner)
{
    struct caller *c = owner;

    if (c->state != CALLER_CALLING) {
        lose(c);
        return;
    }
    c->keep_alive = false;
    if (c->in_body && http1_body_ended(&c->body))
        finish(c, CALL_ANSWERED);
    else
        finish(c, CALL_CLOSED);
}

static void on_writable(void *owner)
{
    send_on(owner);
}

static enum call_outcome outcome_of(int error)
{
    switch (error) {
    case IO_REFUSED:
        return CALL_REFUSED;
    case IO_RESET:
    case IO_CLOSED:
        return CALL_RESET;
    case IO_NO_DESCRIPTORS:
    case IO_NO_MEMORY:
    case IO_NO_PORTS:
    case IO_DENIED:
        return CALL_LOCAL;
    }
    return CALL_UNREACHABLE;
}

static void on_failed(void *owner, int error)
{
    struct caller *c = owner;

    if (c->request == NULL)
        lose(c);
    else
        finish(c, outcome_of(error));
}

static const struct link_events link_events = {
    .opened = on_opened,
    .received = on_received,
    .ended = on_ended,
    .writable = on_writable,
    .failed = on_failed,
};

void caller_init(struct caller *c, const struct caller_events *events, struct lab_loop *loop)
{
    *c = (struct caller){.events = events, .loop = loop, .state = CALLER_CLOSED};
    buffer_init(&c->in);
}

int caller_connect(struct caller *c, const struct address *to)
{
    int err;

    assert(c->state == CALLER_CLOSED);
    err = poller_connect(c->loop->poller, to, &(struct connect_options){0}, &c->link);
    if (err != IO_OK) {
        c->link = NULL;
        return err;
    }
    link_own(c->link, &link_events, c);
    c->state = CALLER_CONNECTING;
    c->calls = 0;
    return IO_OK;
}

void caller_call(struct caller *c, const struct call_request *r)
{
    assert(c->request == NULL && c->state != CALLER_CLOSED);

    c->request = r;
    c->head_sent = 0;
    c->body_left = r->body;
    c->scan = (struct http1_scan){0};
    c->in_body = c->started = false;
    c->calls++;
    if (c->state != CALLER_IDLE)
        return;
    c->state = CALLER_CALLING;
    send_on(c);
}
