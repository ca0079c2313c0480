/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/backend.h"

#include <stdio.h>

#include "base/memory.h"
#include "io/error.h"
#include "lab/backend_internal.h"

#define RETRY_AFTER (100 * NS_PER_MS)
#define CONNS_KEPT  4096

static void accepted(void *owner, struct link *l, const struct address *peer)
{
    struct backend_server *s = owner;
    struct backend *b = s->backend;

    (void)peer;
    if (!fault_set_resets(&b->faults, s->index, &b->rng, b->loop->now)) {
        backend_conn_open(s, l);
        return;
    }
    s->counts.accept_resets++;
    backend_arm_expiry(b);
    link_abort(l);
}

static void troubled(void *owner, int error)
{
    struct backend_server *s = owner;

    if (error == IO_NO_DESCRIPTORS || error == IO_NO_MEMORY)
        schedule_arm(&s->backend->loop->schedule, &s->retry,
                     mono_after(s->backend->loop->now, RETRY_AFTER));
}

static const struct listener_events listener_events = {.accepted = accepted, .troubled = troubled};

static int open_server(struct backend_server *s)
{
    int err = poller_listen(s->backend->loop->poller, &s->address, &(struct listen_options){0},
                            &s->listener);

    if (err == IO_OK)
        listener_own(s->listener, &listener_events, s);
    else
        s->listener = NULL;
    return err;
}

static void open_again(struct backend_server *s)
{
    int err = open_server(s);

    if (err == IO_OK)
        return;
    fprintf(stderr, "firebreak backend: cannot listen at %s again: %s; trying on\n", s->name,
            io_error_text(err));
    schedule_arm(&s->backend->loop->schedule, &s->retry,
                 mono_after(s->backend->loop->now, RETRY_AFTER));
}

static bool refuses(const struct backend_server *s)
{
    return fault_set_refuses(&s->backend->faults, s->index, s->backend->loop->now);
}

static void retry(struct appointment *a, mono_ns now)
{
    struct backend_server *s = CONTAINER_OF(a, struct backend_server, retry);

    (void)now;
    if (s->listener != NULL)
        listener_resume(s->listener);
    else if (!refuses(s))
        open_again(s);
}

static void heed_refusals(struct backend_server *s)
{
    bool refuse = refuses(s);

    if (refuse && s->listener != NULL) {
        listener_close(s->listener);
        s->listener = NULL;
    } else if (!refuse && s->listener == NULL) {
        open_again(s);
    }
}

void backend_arm_expiry(struct backend *b)
{
    mono_ns next = fault_set_next(&b->faults);

    if (next != b->expiry.at)
        schedule_arm(&b->loop->schedule, &b->expiry, next);
}

void backend_faults_changed(struct backend *b)
{
    fault_set_expire(&b->faults, b->loop->now);
    for (uint32_t i = 0; i < b->options.count; i++)
        heed_refusals(&b->servers[i]);
    backend_release_held(b);
    backend_arm_expiry(b);
}

static void expired(struct appointment *a, mono_ns now)
{
    (void)now;
    backend_faults_changed(CONTAINER_OF(a, struct backend, expiry));
}

static void name_server(struct backend_server *s)
{
    struct text t;

    text_init(&t, s->name, sizeof(s->name));
    address_write(&t, &s->address);
    text_end(&t);
}

static int start_server(struct backend *b, uint32_t index)
{
    struct backend_server *s = &b->servers[index];
    int err;

    s->backend = b;
    s->index = index;
    s->address = b->options.first;
    if (s->address.port != 0)
        s->address.port = (uint16_t)(s->address.port + index);
    list_init(&s->connections);
    appointment_init(&s->retry, retry);
    slots_init(&s->slots, b->options.workers, b->options.queue);
    name_server(s);
    err = open_server(s);
    if (err != IO_OK)
        return err;
    listener_address(s->listener, &s->address);
    name_server(s);
    return IO_OK;
}

static int start(struct backend *b, struct text *why)
{
    for (uint32_t i = 0; i < b->options.count; i++) {
        int err = start_server(b, i);

        if (err != IO_OK) {
            text_str(why, "cannot listen at ");
            text_str(why, b->servers[i].name);
            text_str(why, ": ");
            text_str(why, io_error_text(err));
            return err;
        }
    }
    if (b->options.has_control) {
        int err = backend_control_open(b);

        if (err != IO_OK) {
            text_str(why, "cannot listen at ");
            address_write(why, &b->options.control);
            text_str(why, " (--control): ");
            text_str(why, io_error_text(err));
            return err;
        }
    }
    return IO_OK;
}

struct backend *backend_create(struct lab_loop *loop, const struct backend_options *o,
                               struct text *why)
{
    struct backend *b = memory_take(sizeof(*b));
    struct backend_server *servers = memory_take_array(o->count, sizeof(*servers));

    if (b == NULL || servers == NULL) {
        memory_give(b);
        memory_give(servers);
        text_str(why, "out of memory");
        return NULL;
    }
    b->loop = loop;
    b->options = *o;
    b->servers = servers;
    rng_init(&b->rng, o->seed);
    fault_set_init(&b->faults);
    appointment_init(&b->expiry, expired);
    slab_init(&b->slab, sizeof(struct backend_conn), CONNS_KEPT);
    list_init(&b->control_connections);
    if (start(b, why) == IO_OK)
        return b;
    backend_free(b);
    return NULL;
}

void backend_address(const struct backend *b, uint32_t index, struct address *out)
{
    *out = b->servers[index].address;
}

void backend_control_address(const struct backend *b, struct address *out)
{
    listener_address(b->control, out);
}

static void stop_server(struct backend_server *s)
{
    if (s->backend == NULL)
        return; /* never started */
    if (s->listener != NULL)
        listener_close(s->listener);
    schedule_cancel(&s->backend->loop->schedule, &s->retry);
    backend_drop_connections(s);
}

void backend_free(struct backend *b)
{
    if (b == NULL)
        return;
    for (uint32_t i = 0; i < b->options.count; i++)
        stop_server(&b->servers[i]);
    backend_control_close(b);
    schedule_cancel(&b->loop->schedule, &b->expiry);
    slab_release(&b->slab);
    memory_give(b->servers);
    memory_give(b);
}
