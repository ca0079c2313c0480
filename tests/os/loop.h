/* SPDX-License-Identifier: Apache-2.0 */
/* A loop with a listener and two ends of connections that keep account of what they are told. */
#ifndef TESTS_OS_LOOP_H
#define TESTS_OS_LOOP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/address.h"
#include "io/clock.h"
#include "io/error.h"
#include "io/poller.h"
#include "os/clock.h"
#include "os/poller.h"

#define PATIENCE (20 * NS_PER_S) /* only a broken build waits so long */

struct end;

struct end {
    struct link *link;
    struct loop *loop;
    unsigned opened, ended, failed, writable, late;
    int error;
    size_t received;
    uint64_t sum; /* of the bytes received, in order */
    uint8_t last[256];
    void (*on_received)(struct end *e, struct bytes data);
    void (*on_writable)(struct end *e);
    void (*on_opened)(struct end *e);
    bool gone;
};

struct loop {
    struct clock clock;
    struct poller *poller;
    struct listener *listener;
    struct address at;
    struct end *accept_into; /* the next accepted link's owner */
    void (*on_accepted)(struct loop *l, struct link *link);
    struct address peer;
    unsigned accepted, troubled;
    int trouble;
};

static inline uint64_t sum_on(uint64_t sum, struct bytes b)
{
    for (size_t i = 0; i < b.len; i++)
        sum = sum * 31 + b.data[i] + 1;
    return sum;
}

static inline void end_opened(void *owner)
{
    struct end *e = owner;

    e->late += e->gone || e->failed;
    e->opened++;
    if (e->on_opened != NULL)
        e->on_opened(e);
}

static inline void end_received(void *owner, struct bytes data)
{
    struct end *e = owner;
    size_t kept = data.len < sizeof(e->last) ? data.len : sizeof(e->last);

    assert_true(data.len > 0 && data.len <= LINK_LOAN_MAX);
    e->late += e->gone || e->failed || e->ended;
    e->received += data.len;
    e->sum = sum_on(e->sum, data);
    memcpy(e->last, data.data, kept);
    if (e->on_received != NULL)
        e->on_received(e, data);
}

static inline void end_ended(void *owner)
{
    struct end *e = owner;

    e->late += e->gone || e->failed || e->ended;
    e->ended++;
}

static inline void end_writable(void *owner)
{
    struct end *e = owner;

    e->late += e->gone || e->failed;
    e->writable++;
    if (e->on_writable != NULL)
        e->on_writable(e);
}

static inline void end_failed(void *owner, int error)
{
    struct end *e = owner;

    e->late += e->gone || e->failed;
    e->failed++;
    e->error = error;
}

static const struct link_events end_events = {
    .opened = end_opened,
    .received = end_received,
    .ended = end_ended,
    .writable = end_writable,
    .failed = end_failed,
};

static inline void loop_accepted(void *owner, struct link *link, const struct address *peer)
{
    struct loop *l = owner;

    l->accepted++;
    l->peer = *peer;
    if (l->on_accepted != NULL) {
        l->on_accepted(l, link);
        return;
    }
    assert_non_null(l->accept_into);
    l->accept_into->link = link;
    l->accept_into->loop = l;
    link_own(link, &end_events, l->accept_into);
    link_read_start(link);
    l->accept_into = NULL;
}

static inline void loop_troubled(void *owner, int error)
{
    struct loop *l = owner;

    l->troubled++;
    l->trouble = error;
}

static const struct listener_events loop_events = {.accepted = loop_accepted,
                                                   .troubled = loop_troubled};

static inline struct address loopback(uint16_t port)
{
    return (struct address){.kind = ADDRESS_IPV4, .port = port, .ip = {127, 0, 0, 1}};
}

static inline void loop_init(struct loop *l)
{
    *l = (struct loop){.listener = NULL};
    os_clock_init(&l->clock);
    assert_int_equal(os_poller_create(&l->poller), IO_OK);
}

static inline void loop_listen(struct loop *l, const struct address *at)
{
    assert_int_equal(poller_listen(l->poller, at, NULL, &l->listener), IO_OK);
    listener_own(l->listener, &loop_events, l);
    listener_address(l->listener, &l->at);
}

static inline void loop_start(struct loop *l)
{
    struct address any = loopback(0);

    loop_init(l);
    loop_listen(l, &any);
}

static inline void loop_stop(struct loop *l)
{
    if (l->listener != NULL)
        listener_close(l->listener);
    os_poller_free(l->poller);
}

static inline void turn(struct loop *l, span_ns at_most)
{
    poller_wait(l->poller, at_most);
    poller_dispatch(l->poller);
}

/* Turns until |condition|; the test fails where it does not come. */
#define UNTIL(l, condition)                                                                        \
    do {                                                                                           \
        mono_ns until_end = mono_after(clock_read(&(l)->clock), PATIENCE);                         \
        while (!(condition)) {                                                                     \
            assert_true(clock_read(&(l)->clock) < until_end);                                      \
            turn((l), 100 * NS_PER_MS);                                                            \
        }                                                                                          \
    } while (0)

/* Turns until nothing happens at once any more. */
static inline void settle_down(struct loop *l)
{
    for (int i = 0; i < 20; i++)
        turn(l, 0);
}

static inline void end_connect(struct end *e, struct loop *l, const struct address *to)
{
    e->loop = l;
    assert_int_equal(poller_connect(l->poller, to, NULL, &e->link), IO_OK);
    link_own(e->link, &end_events, e);
    link_read_start(e->link);
}

static inline void end_close(struct end *e)
{
    if (e->link != NULL && !e->gone)
        link_close(e->link);
    e->gone = true;
}

static inline void end_abort(struct end *e)
{
    link_abort(e->link);
    e->gone = true;
}

/* Two ends of one connection. */
static inline void pair(struct loop *l, struct end *client, struct end *server)
{
    *client = *server = (struct end){.link = NULL};
    l->accept_into = server;
    end_connect(client, l, &l->at);
    UNTIL(l, client->opened && server->link != NULL);
}

static inline ptrdiff_t say(struct end *e, const char *text)
{
    struct bytes b = bytes_of(text);

    return link_write(e->link, &b, 1);
}

#endif
