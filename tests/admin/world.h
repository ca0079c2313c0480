/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the tests of the admin server: a process with two clusters and two listeners, the real
 * control loop on a clock set by hand, and links whose two ends the test holds.
 */
#ifndef TESTS_ADMIN_WORLD_H
#define TESTS_ADMIN_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "admin/admin.h"
#include "base/list.h"
#include "base/memory.h"
#include "control/control.h"
#include "io/error.h"
#include "model/messages.h"

#define WORKERS  2
#define LINKS    64
#define ANY_ROOM SIZE_MAX
#define START_AT (1000 * NS_PER_S)

/* The proxy's end of a connection; the test plays the peer. */
struct fake_link {
    struct link base;
    char *out; /* what the peer received, a string */
    size_t out_len;
    size_t room; /* how much more the peer takes */
    bool reading;
    bool blocked; /* told that there is no room: owed a |writable| */
    bool shut;
    bool closed;
    bool aborted;
};

struct world {
    struct clock clock;
    mono_ns now;
    struct poller poller;
    int listen_error;
    struct listener listener;
    bool listening;
    unsigned resumed;
    struct fake_link links[LINKS];
    unsigned link_count;
    void (*in_dispatch)(struct world *w); /* once */
    struct fake_link *at_link;
    struct bytes at_data;
    struct mailbox inbox;
    struct mailbox worker_inboxes[WORKERS];
    struct mailbox *workers[WORKERS];
    struct message told[WORKERS]; /* the last thing a worker was told */
    unsigned told_count;
    struct process_state *process;
    struct snapshot *snapshot;
    struct control *control;
    struct admin *admin;
};

static struct world world;

/* Not every test uses all of them. */
#define HELPER static __attribute__((unused))

/* --- links --- */

HELPER void fake_read_start(struct link *l)
{
    CONTAINER_OF(l, struct fake_link, base)->reading = true;
}

HELPER void fake_read_stop(struct link *l)
{
    CONTAINER_OF(l, struct fake_link, base)->reading = false;
}

HELPER ptrdiff_t fake_write(struct link *l, const struct bytes *parts, size_t n)
{
    struct fake_link *f = CONTAINER_OF(l, struct fake_link, base);
    size_t taken = 0;

    assert_false(f->closed);
    assert_false(f->shut);
    assert_in_range(n, 1, LINK_PARTS_MAX);
    for (size_t i = 0; i < n; i++) {
        size_t len = parts[i].len < f->room ? parts[i].len : f->room;

        assert_true(parts[i].len > 0);
        f->out = realloc(f->out, f->out_len + len + 1);
        assert_non_null(f->out);
        memcpy(f->out + f->out_len, parts[i].data, len);
        f->out_len += len;
        f->out[f->out_len] = '\0';
        f->room -= f->room == ANY_ROOM ? 0 : len;
        taken += len;
        if (len < parts[i].len) {
            f->blocked = true;
            break;
        }
    }
    return (ptrdiff_t)taken;
}

HELPER void fake_shut(struct link *l)
{
    CONTAINER_OF(l, struct fake_link, base)->shut = true;
}

HELPER void fake_close(struct link *l, bool reset)
{
    struct fake_link *f = CONTAINER_OF(l, struct fake_link, base);

    assert_false(f->closed);
    f->closed = true;
    f->aborted = reset;
}

static const struct link_ops fake_link_ops = {.read_start = fake_read_start,
                                              .read_stop = fake_read_stop,
                                              .write = fake_write,
                                              .shut = fake_shut,
                                              .close = fake_close};

/* --- listener, poller, clock, mailboxes --- */

HELPER void fake_pause(struct listener *l)
{
    (void)l;
}

HELPER void fake_resume(struct listener *l)
{
    (void)l;
    world.resumed++;
}

HELPER void fake_address(struct listener *l, struct address *out)
{
    (void)l;
    *out = (struct address){.kind = ADDRESS_IPV4, .port = 9901, .ip = {127, 0, 0, 1}};
}

HELPER void fake_listener_close(struct listener *l)
{
    (void)l;
    world.listening = false;
}

static const struct listener_ops fake_listener_ops = {.pause = fake_pause,
                                                      .resume = fake_resume,
                                                      .address = fake_address,
                                                      .close = fake_listener_close};

HELPER int fake_listen(struct poller *p, const struct address *at, const struct listen_options *o,
                       struct listener **out)
{
    (void)p;
    (void)at;
    (void)o;
    if (world.listen_error != IO_OK)
        return world.listen_error;
    world.listener.ops = &fake_listener_ops;
    world.listening = true;
    *out = &world.listener;
    return IO_OK;
}

HELPER void fake_wait(struct poller *p, span_ns most)
{
    (void)p;
    (void)most;
}

HELPER void fake_dispatch(struct poller *p)
{
    void (*what)(struct world * w) = world.in_dispatch;
    (void)p;

    world.in_dispatch = NULL;
    if (what != NULL)
        what(&world);
}

static const struct poller_ops fake_poller_ops = {
    .wait = fake_wait, .dispatch = fake_dispatch, .listen = fake_listen};

HELPER mono_ns fake_clock_read(struct clock *c)
{
    (void)c;
    return world.now;
}

HELPER bool fake_post(struct mailbox *m, const struct message *message)
{
    for (unsigned i = 0; i < WORKERS; i++)
        if (m == &world.worker_inboxes[i])
            world.told[i] = *message;
    world.told_count++;
    return true;
}

HELPER bool fake_take(struct mailbox *m, struct message *out)
{
    (void)m;
    (void)out;
    return false;
}

static const struct mailbox_ops fake_mailbox_ops = {.post = fake_post, .take = fake_take};

/* --- what happens in a turn --- */

HELPER void turn(void (*what)(struct world *w))
{
    world.in_dispatch = what;
    control_turn(world.control);
}

HELPER void turn_at(mono_ns now)
{
    world.now = now;
    turn(NULL);
}

HELPER void do_accept(struct world *w)
{
    const struct address peer = {.kind = ADDRESS_IPV4, .port = 5555, .ip = {127, 0, 0, 1}};

    w->listener.events->accepted(w->listener.owner, &w->at_link->base, &peer);
}

HELPER struct fake_link *connect_client(void)
{
    assert_true(world.link_count < LINKS);
    world.at_link = &world.links[world.link_count++];
    world.at_link->base.ops = &fake_link_ops;
    world.at_link->room = ANY_ROOM;
    turn(do_accept);
    return world.at_link;
}

HELPER void do_receive(struct world *w)
{
    struct fake_link *l = w->at_link;
    uint8_t *lent = malloc(w->at_data.len); /* gone after the call, as it may be */

    memcpy(lent, w->at_data.data, w->at_data.len);
    l->base.events->received(l->base.owner, bytes_from(lent, w->at_data.len));
    free(lent);
}

/* False: the server does not read now. */
HELPER bool send_bytes(struct fake_link *l, const void *data, size_t len)
{
    if (l->closed || !l->reading)
        return false;
    world.at_link = l;
    world.at_data = bytes_from(data, len);
    turn(do_receive);
    return true;
}

HELPER void send_text(struct fake_link *l, const char *text)
{
    assert_true(send_bytes(l, text, strlen(text)));
}

HELPER void do_end(struct world *w)
{
    w->at_link->base.events->ended(w->at_link->base.owner);
}

HELPER void end(struct fake_link *l)
{
    assert_true(l->reading && !l->closed);
    world.at_link = l;
    turn(do_end);
}

HELPER void do_fail(struct world *w)
{
    w->at_link->base.events->failed(w->at_link->base.owner, IO_RESET);
}

HELPER void fail_link(struct fake_link *l)
{
    assert_false(l->closed);
    world.at_link = l;
    turn(do_fail);
}

HELPER void do_writable(struct world *w)
{
    w->at_link->blocked = false;
    w->at_link->base.events->writable(w->at_link->base.owner);
}

HELPER void take_more(struct fake_link *l, size_t room)
{
    assert_true(l->blocked && !l->closed);
    l->room = room;
    world.at_link = l;
    turn(do_writable);
}

/* --- the process --- */

HELPER struct address ipv4(uint8_t last, uint16_t port)
{
    return (struct address){.kind = ADDRESS_IPV4, .port = port, .ip = {10, 0, 0, last}};
}

HELPER void make_clusters(struct snapshot *s)
{
    struct cluster *clusters = arena_take(&s->arena, 2 * sizeof(*clusters));
    struct endpoint *endpoints = arena_take(&s->arena, 3 * sizeof(*endpoints));

    endpoints[0] = (struct endpoint){.address = ipv4(1, 8080),
                                     .text = BYTES("10.0.0.1:8080"),
                                     .hostname = BYTES("10.0.0.1:8080"),
                                     .zone = BYTES("a"),
                                     .weight = 1};
    endpoints[1] = (struct endpoint){.address = ipv4(2, 8080),
                                     .text = BYTES("10.0.0.2:8080"),
                                     .hostname = BYTES("web.example.test"),
                                     .weight = 3};
    endpoints[2] = (struct endpoint){.address = ipv4(9, 9),
                                     .text = BYTES("10.0.0.9:9"),
                                     .hostname = BYTES("10.0.0.9:9"),
                                     .weight = 1};
    clusters[0] = (struct cluster){
        .name = BYTES("shop:web"),
        .stat_name = BYTES("shop_web"),
        .endpoint_count = 2,
        .endpoints = endpoints,
        .limits = {.max_connections = 100,
                   .max_pending = 10,
                   .max_requests = LIMIT_NONE,
                   .max_retries = 3},
        .outlier = {.enabled = true, .interval = 10 * NS_PER_S, .max_ejection_percent = 50}};
    clusters[1] = (struct cluster){.name = BYTES("b"),
                                   .stat_name = BYTES("b"),
                                   .endpoint_count = 1,
                                   .endpoints = endpoints + 2,
                                   .limits = {.max_connections = LIMIT_NONE}};
    s->clusters = clusters;
    s->cluster_count = 2;
}

HELPER void make_listeners(struct snapshot *s)
{
    struct listener_config *listeners = arena_take(&s->arena, 2 * sizeof(*listeners));

    listeners[0] = (struct listener_config){.name = BYTES("web"),
                                            .address = {.kind = ADDRESS_IPV4, .port = 0}};
    listeners[1] = (struct listener_config){
        .name = BYTES("six"), .address = {.kind = ADDRESS_IPV6, .port = 81, .ip = {[15] = 1}}};
    s->listeners = listeners;
    s->listener_count = 2;
}

HELPER struct snapshot *make_snapshot(void)
{
    struct snapshot *s = snapshot_create();

    assert_non_null(s);
    make_clusters(s);
    make_listeners(s);
    s->version = 4;
    s->drain_timeout = 30 * NS_PER_S;
    assert_true(snapshot_attach_state(s, WORKERS));
    s->listeners[0].state->port = 8080;
    return s;
}

HELPER void fake_usage(struct admin_usage *out)
{
    *out = (struct admin_usage){.allocated = 1001,
                                .heap = 2002,
                                .resident = 3003,
                                .descriptors = 44,
                                .descriptors_max = 1024};
}

static const _Atomic uint64_t extra_cell = 12;
static const struct admin_extra extras[] = {
    {{"access_log_lines", METRIC_COUNTER, "access log lines written"}, &extra_cell}};

HELPER void start_process(void)
{
    struct control_setup setup;

    memset(&world, 0, sizeof(world));
    world.clock.read = fake_clock_read;
    world.clock.wall = fake_clock_read;
    world.now = START_AT;
    world.poller.ops = &fake_poller_ops;
    world.inbox.ops = &fake_mailbox_ops;
    for (unsigned i = 0; i < WORKERS; i++) {
        world.worker_inboxes[i].ops = &fake_mailbox_ops;
        world.workers[i] = &world.worker_inboxes[i];
    }
    world.process = process_state_create(WORKERS, 1000, UINT64_C(1) << 30, world.now);
    world.snapshot = make_snapshot();
    setup = (struct control_setup){.seed = 1,
                                   .clock = &world.clock,
                                   .poller = &world.poller,
                                   .inbox = &world.inbox,
                                   .workers = world.workers,
                                   .worker_count = WORKERS,
                                   .process = world.process,
                                   .snapshot = world.snapshot};
    world.control = control_create(&setup);
    assert_non_null(world.control);
}

HELPER int start_admin(void **state)
{
    struct admin_setup setup;
    (void)state;

    start_process();
    setup = (struct admin_setup){.control = world.control,
                                 .clock = &world.clock,
                                 .extras = extras,
                                 .extra_count = 1,
                                 .usage = fake_usage};
    assert_int_equal(admin_create(&setup, &world.admin), IO_OK);
    return 0;
}

HELPER int stop_admin(void **state)
{
    (void)state;
    admin_free(world.admin);
    assert_false(world.listening);
    control_free(world.control);
    snapshot_drop(world.snapshot);
    process_state_free(world.process);
    for (unsigned i = 0; i < world.link_count; i++) {
        assert_true(world.links[i].closed);
        free(world.links[i].out);
    }
    return 0;
}

/* --- whole requests --- */

/* Begins anew what the peer has received. */
HELPER void forget_output(struct fake_link *l)
{
    free(l->out);
    l->out = NULL;
    l->out_len = 0;
}

/* The answer to one GET, whole, on a connection of its own; valid until the world stops. */
HELPER const char *get(const char *target)
{
    struct fake_link *l = connect_client();
    char request[2048];

    snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nhost: localhost:9901\r\n\r\n", target);
    send_text(l, request);
    assert_non_null(l->out);
    end(l);
    assert_true(l->closed);
    return l->out;
}

HELPER const char *body_of(const char *answer)
{
    const char *end_of_head = strstr(answer, "\r\n\r\n");

    assert_non_null(end_of_head);
    return end_of_head + 4;
}

/* The body of a chunked answer, put together in place; NULL: its end is not there yet. */
HELPER char *unchunked(const char *answer)
{
    char *body = (char *)(uintptr_t)body_of(answer), *to = body, *at = body;

    if (strcmp(at + strlen(at) - 5, "0\r\n\r\n") != 0)
        return NULL;
    assert_non_null(strstr(answer, "\r\ntransfer-encoding: chunked\r\n"));
    for (;;) {
        size_t len = strtoul(at, &at, 16);

        assert_memory_equal(at, "\r\n", 2);
        memmove(to, at + 2, len);
        to += len;
        at += 2 + len;
        assert_memory_equal(at, "\r\n", 2);
        at += 2;
        if (len == 0)
            break;
    }
    assert_int_equal(*at, '\0');
    *to = '\0';
    return body;
}

HELPER int status_of(const char *answer)
{
    assert_memory_equal(answer, "HTTP/1.1 ", 9);
    return atoi(answer + 9);
}

/* Whether |line| stands in |text| as a whole line. */
HELPER bool has_line(const char *text, const char *line)
{
    size_t n = strlen(line);

    for (const char *at = strstr(text, line); at != NULL; at = strstr(at + 1, line))
        if ((at == text || at[-1] == '\n') && (at[n] == '\n' || at[n] == '\0'))
            return true;
    return false;
}

#define assert_line(text, line)                                                                    \
    do {                                                                                           \
        if (!has_line(text, line))                                                                 \
            fail_msg("no line \"%s\" in:\n%.60000s", line, text);                                  \
    } while (0)

#define assert_no(text, part)                                                                      \
    do {                                                                                           \
        if (strstr(text, part) != NULL)                                                            \
            fail_msg("\"%s\" stands in:\n%.60000s", part, text);                                   \
    } while (0)

#endif
