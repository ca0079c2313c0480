/* SPDX-License-Identifier: Apache-2.0 */
#include "admin/admin.h"

#include <assert.h>

#include "admin/server.h"
#include "base/memory.h"
#include "io/error.h"

#define RESUME_AFTER (100 * NS_PER_MS)

/*
 * When all are taken, one that only waits for its next request has to make room; else the new one
 * is told so, but there is no time for more than a few of these either.
 */
static void on_accepted(void *owner, struct link *l, const struct address *peer)
{
    struct admin *a = owner;
    bool taken = false;
    (void)peer;

    if (a->conn_count < ADMIN_CONNECTIONS_MAX || conn_close_idle(a))
        taken = conn_open(a, l);
    else if (a->refused_count < ADMIN_REFUSALS_MAX)
        taken = conn_refuse(a, l);
    if (!taken)
        link_close(l);
}

static void on_troubled(void *owner, int error)
{
    struct admin *a = owner;

    if (error == IO_NO_DESCRIPTORS || error == IO_NO_MEMORY)
        wheel_arm(control_wheel(a->setup.control), &a->resume,
                  mono_after(control_now(a->setup.control), RESUME_AFTER));
    log_event(a->setup.log, LOG_WARNING, "admin.accept", "cannot accept an admin connection: %s",
              io_error_text(error));
}

static void resume_due(struct timer *t, mono_ns now)
{
    (void)now;
    listener_resume(CONTAINER_OF(t, struct admin, resume)->listener);
}

static const struct listener_events listener_events = {.accepted = on_accepted,
                                                       .troubled = on_troubled};

static void work_due(struct timer *t, mono_ns now)
{
    (void)now;
    conn_work(CONTAINER_OF(t, struct admin, work));
}

static struct admin_view look(struct admin *a)
{
    return (struct admin_view){
        .snapshot = control_snapshot(a->setup.control),
        .process = control_process(a->setup.control),
        .now = control_now(a->setup.control),
        .clock = a->setup.clock,
        .log = a->setup.log,
        .usage = a->setup.usage,
        .extras = a->setup.extras,
        .extra_count = a->setup.extra_count,
        .extras_before = a->extras_before,
    };
}

void admin_ask(struct admin *a, struct admin_call *call)
{
    const struct admin_view view = look(a);

    call->view = &view;
    call->control = a->setup.control;
    call->head = &a->head;
    admin_answer(call, &a->head);
    call->view = NULL;
    call->head = NULL;
    call->query = BYTES_NONE;
}

enum work_state admin_work(struct admin *a, struct admin_call *call)
{
    struct admin_view view = look(a);
    enum work_state state;

    if (call->work->snapshot != NULL)
        view.snapshot = call->work->snapshot;
    call->view = &view;
    call->slice_end = mono_after(clock_read(a->setup.clock), WORK_SLICE);
    state = call->work->more(call->work, call);
    call->view = NULL;
    return state;
}

int admin_create(const struct admin_setup *setup, struct admin **out)
{
    const struct listen_options options = {.private_path = true};
    struct admin *a = memory_take(sizeof(*a));
    int error;

    assert(setup->extra_count <= ADMIN_EXTRAS_MAX);
    if (a == NULL)
        return IO_NO_MEMORY;
    a->setup = *setup;
    list_init(&a->conns);
    list_init(&a->working);
    timer_init(&a->resume, resume_due);
    timer_init(&a->work, work_due);
    error = poller_listen(control_poller(setup->control), &setup->address, &options, &a->listener);
    if (error != IO_OK) {
        memory_give(a);
        return error;
    }
    listener_own(a->listener, &listener_events, a);
    *out = a;
    return IO_OK;
}

void admin_address(const struct admin *a, struct address *out)
{
    listener_address(a->listener, out);
}

void admin_free(struct admin *a)
{
    if (a == NULL)
        return;
    conn_close_all(a);
    wheel_cancel(control_wheel(a->setup.control), &a->resume);
    wheel_cancel(control_wheel(a->setup.control), &a->work);
    listener_close(a->listener);
    memory_give(a);
}
