/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/accepting.h"

#include "base/memory.h"
#include "exchange/bounds.h"
#include "io/error.h"
#include "proxy/downstream.h"

/* How long accepting rests when descriptors or memory ran out. */
#define ACCEPT_REST (100 * NS_PER_MS)

/* How often that is worth a line in the log. */
#define ACCEPT_QUIET NS_PER_S

static void pause_all(struct worker *w)
{
    for (uint32_t i = 0; i < w->listener_count; i++)
        if (w->listeners[i].listener != NULL)
            listener_pause(w->listeners[i].listener);
}

static void resume_all(struct worker *w)
{
    for (uint32_t i = 0; i < w->listener_count; i++)
        if (w->listeners[i].listener != NULL)
            listener_resume(w->listeners[i].listener);
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

static void on_retry(struct timer *t, mono_ns now)
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

void worker_client_left(struct worker *w)
{
    bounds_give_client(w->setup.process);
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

int accepting_open(struct worker *w, const struct listener_config **failed)
{
    const struct snapshot *s = w->snapshot;

    timer_init(&w->accept_retry, on_retry);
    w->listeners = memory_take_array(s->listener_count, sizeof(*w->listeners));
    if (w->listeners == NULL)
        return IO_NO_MEMORY;
    w->listener_count = s->listener_count;
    for (uint32_t i = 0; i < s->listener_count; i++) {
        struct listener_rt *l = &w->listeners[i];
        int error;

        l->worker = w;
        l->config = &s->listeners[i];
        l->cells = l->config->state->cells[w->setup.index];
        error = open_one(w, l);
        if (error != IO_OK) {
            *failed = l->config;
            return error;
        }
    }
    return IO_OK;
}

void accepting_close(struct worker *w)
{
    wheel_cancel(&w->wheel, &w->accept_retry);
    for (uint32_t i = 0; i < w->listener_count; i++) {
        if (w->listeners[i].listener != NULL)
            listener_close(w->listeners[i].listener);
        w->listeners[i].listener = NULL;
    }
}
