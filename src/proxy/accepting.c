/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/accepting.h"

#include "base/memory.h"
#include "exchange/bounds.h"
#include "io/error.h"
#include "proxy/downstream.h"

/* How long accepting rests when descriptors or memory ran out. */
#define ACCEPT_REST (100 * NS_PER_MS)

/*
 * How long a listener that is to close still takes what is on its way: long enough for the third
 * packet of a handshake that has begun, from far away.
 */
#define TURN_AWAY (500 * NS_PER_MS)

/* How often that is worth a line in the log. */
#define ACCEPT_QUIET NS_PER_S

static struct listener_rt *listener_of(struct list *at)
{
    return CONTAINER_OF(at, struct listener_rt, link);
}

static void pause_all(struct worker *w)
{
    for (struct list *at = w->listeners.next; at != &w->listeners; at = at->next)
        if (listener_of(at)->listener != NULL)
            listener_pause(listener_of(at)->listener);
}

static void resume_all(struct worker *w)
{
    for (struct list *at = w->listeners.next; at != &w->listeners; at = at->next)
        if (listener_of(at)->listener != NULL)
            listener_resume(listener_of(at)->listener);
}

static void rest(struct worker *w, const char *why)
{
    wheel_arm(&w->wheel, &w->accept_retry, mono_after(w->now, ACCEPT_REST));
    if (w->accepting_paused)
        return;
    w->accepting_paused = true;
    pause_all(w);
    worker_count(w, WORKER_accept_paused, 1);
    if (w->now < w->accept_quiet_until)
        return; /* room comes and goes: once was enough */
    w->accept_quiet_until = mono_after(w->now, ACCEPT_QUIET);
    w->accept_told = true;
    log_event(w->setup.log, LOG_WARNING, "accept.paused",
              "worker %u: %s; new connections wait in the kernel's queue", w->setup.index, why);
}

void accepting_on_retry(struct timer *t, mono_ns now)
{
    struct worker *w = CONTAINER_OF(t, struct worker, accept_retry);

    (void)now;
    if (!bounds_client_room(w->setup.process)) {
        wheel_arm(&w->wheel, t, mono_after(w->now, ACCEPT_REST));
        return;
    }
    w->accepting_paused = false;
    log_event(w->setup.log, LOG_INFO, "accept.resumed", "worker %u accepts again", w->setup.index);
    resume_all(w);
}

static void on_accepted(void *owner, struct link *link, const struct address *peer)
{
    struct listener_rt *l = owner;
    struct worker *w = l->worker;

    bounds_add_client(w->setup.process);
    l->connections++;
    downstream_accept(l, link, peer);
    if (!bounds_client_room(w->setup.process)) {
        listener_count(l, HTTP_downstream_cx_overflow, 1);
        rest(w, "as many client connections as the descriptors allow");
    }
}

static void on_troubled(void *owner, int error)
{
    struct listener_rt *l = owner;

    listener_count(l, HTTP_downstream_cx_overflow, 1);
    rest(l->worker, io_error_text(error));
}

static const struct listener_events accepting_events = {
    .accepted = on_accepted,
    .troubled = on_troubled,
};

void accepting_left(struct listener_rt *l)
{
    l->connections--;
    bounds_give_client(l->worker->setup.process);
}

/* Where port 0 was asked for, the first worker's port is everybody's. */
static struct address address_of(const struct listener_config *c)
{
    struct address at = c->address;

    if (at.port == 0)
        at.port = (uint16_t)atomic_load_explicit(&c->state->port, memory_order_acquire);
    return at;
}

static int open_one(struct worker *w, struct listener_rt *l)
{
    const struct listen_options options = {.reuse_port = true};
    struct address at = address_of(l->config);
    int error = poller_listen(w->setup.poller, &at, &options, &l->listener);

    if (error != IO_OK)
        return error;
    listener_address(l->listener, &l->local);
    if (l->local.kind == ADDRESS_UNIX)
        l->local = l->config->address; /* the listener's path goes with it; records come later */
    atomic_store_explicit(&l->config->state->port, l->local.port, memory_order_release);
    listener_own(l->listener, &accepting_events, l);
    return IO_OK;
}

/* --- closing --- */

static void close_now(struct listener_rt *l)
{
    wheel_cancel(&l->worker->wheel, &l->close);
    if (l->listener != NULL)
        listener_close(l->listener);
    l->listener = NULL;
}

static void on_close(struct timer *t, mono_ns now)
{
    (void)now;
    close_now(CONTAINER_OF(t, struct listener_rt, close));
}

/* Whoever is in the queue or in the middle of a handshake is still served. */
static void turn_away(struct listener_rt *l)
{
    if (l->listener == NULL || timer_armed(&l->close))
        return;
    listener_turn_away(l->listener);
    wheel_arm(&l->worker->wheel, &l->close, mono_after(l->worker->now, TURN_AWAY));
}

void accepting_drain(struct worker *w)
{
    for (struct list *at = w->listeners.next; at != &w->listeners; at = at->next)
        turn_away(listener_of(at));
}

bool accepting_closed(const struct worker *w)
{
    for (struct list *at = w->listeners.next; at != &w->listeners; at = at->next)
        if (listener_of(at)->listener != NULL)
            return false;
    return true;
}

void accepting_close(struct worker *w)
{
    wheel_cancel(&w->wheel, &w->accept_retry);
    for (struct list *at = w->listeners.next; at != &w->listeners; at = at->next)
        close_now(listener_of(at));
}

/* --- life --- */

static struct listener_rt *create(struct worker *w, const struct listener_config *config)
{
    struct listener_rt *l = memory_take(sizeof(*l));

    if (l == NULL)
        return NULL;
    l->worker = w;
    l->config = config;
    l->adopted = w->config;
    l->adopted->uses++;
    l->cells = config->state->cells[w->setup.index];
    timer_init(&l->close, on_close);
    return l;
}

static void destroy(struct listener_rt *l)
{
    close_now(l);
    l->adopted->uses--;
    list_remove(&l->link);
    memory_give(l);
}

int accepting_open(struct worker *w, const struct listener_config *config)
{
    struct listener_rt *l = create(w, config);
    int error = l == NULL ? IO_NO_MEMORY : open_one(w, l);

    if (error != IO_OK) {
        if (l != NULL)
            l->adopted->uses--;
        memory_give(l);
        return error;
    }
    list_push_back(&w->listeners, &l->link);
    if (w->accepting_paused)
        listener_pause(l->listener);
    return IO_OK;
}

/* --- another configuration --- */

static struct listener_rt *find(struct worker *w, const struct listener_state *state)
{
    for (struct list *at = w->listeners.next; at != &w->listeners; at = at->next)
        if (listener_of(at)->config->state == state && !listener_of(at)->closing)
            return listener_of(at);
    return NULL;
}

static void change(struct listener_rt *l, const struct listener_config *config)
{
    l->adopted->uses--;
    l->adopted = l->worker->config;
    l->adopted->uses++;
    l->config = config;
    l->wanted = true;
}

static void open_late(struct worker *w, const struct listener_config *config)
{
    int error = accepting_open(w, config);

    if (error != IO_OK)
        log_event(w->setup.log, LOG_ERROR, "listener.failed", "worker %u: %.*s: %s", w->setup.index,
                  (int)config->name.len, (const char *)config->name.data, io_error_text(error));
    else
        listener_of(w->listeners.prev)->wanted = true;
}

static void retire(struct listener_rt *l)
{
    struct list *all = &l->worker->connections;

    l->closing = true;
    turn_away(l);
    for (struct list *at = all->next; at != all; at = at->next)
        if (CONTAINER_OF(at, struct downstream, all)->listener == l)
            downstream_drain(CONTAINER_OF(at, struct downstream, all));
}

void accepting_adopt(struct worker *w, const struct snapshot *s)
{
    for (uint32_t i = 0; i < s->listener_count; i++) {
        struct listener_rt *l = find(w, s->listeners[i].state);

        if (l != NULL)
            change(l, &s->listeners[i]);
        else if (!w->leaving)
            open_late(w, &s->listeners[i]);
    }
    for (struct list *at = w->listeners.next; at != &w->listeners; at = at->next) {
        if (!listener_of(at)->wanted && !listener_of(at)->closing)
            retire(listener_of(at));
        listener_of(at)->wanted = false;
    }
}

bool accepting_sweep(struct worker *w)
{
    struct list *at = w->listeners.next;
    bool left = false;

    while (at != &w->listeners) {
        struct listener_rt *l = listener_of(at);

        at = at->next;
        if (l->closing && l->listener == NULL && l->connections == 0)
            destroy(l);
        else
            left = left || l->closing;
    }
    return left;
}

void accepting_free(struct worker *w)
{
    wheel_cancel(&w->wheel, &w->accept_retry);
    while (!list_empty(&w->listeners))
        destroy(listener_of(w->listeners.next));
}
