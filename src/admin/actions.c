/* SPDX-License-Identifier: Apache-2.0 */
/* What is done by POST. An action that succeeded says "OK", as Envoy's do. */
#include <string.h>

#include "admin/pages.h"
#include "admin/work.h"
#include "base/list.h"
#include "base/memory.h"
#include "control/reloader.h"

static void say_ok(struct admin_call *call)
{
    page_str(call->page, "OK\n");
}

/*
 * It always lets requests finish, and all listeners are inbound: |graceful| and |inboundonly|
 * change nothing. With |skip_exit| only connections are drained, as Envoy does; it wants |graceful|
 * beside it, and scripts know that.
 */
void start_drain(struct admin_call *call)
{
    bool stays = call_flag(call, "skip_exit");

    if (stays && !call_flag(call, "graceful")) {
        call_refuse(call, 400, "skip_exit requires graceful");
        return;
    }
    call->action = stays ? ADMIN_SHED : ADMIN_DRAIN;
    say_ok(call);
}

void start_quit(struct admin_call *call)
{
    call->action = ADMIN_QUIT;
    say_ok(call);
}

static void set_health(struct admin_call *call, enum log_level level, uint32_t failed,
                       const char *text)
{
    struct process_state *p = call->view->process;

    if (atomic_exchange_explicit(&p->health_failed, failed, memory_order_relaxed) != failed)
        log_event(call->view->log, level, "process.healthcheck", "%s", text);
    say_ok(call);
}

void fail_healthcheck(struct admin_call *call)
{
    set_health(call, LOG_WARNING, 1,
               "told to fail: /ready says 503, and each answer ends its connection");
}

void pass_healthcheck(struct admin_call *call)
{
    set_health(call, LOG_INFO, 0, "told to pass: /ready says 200 again");
}

/*
 * Workers go on counting: what they have counted so far is remembered, and taken off what is shown.
 * Histograms stay, as with Envoy.
 */
void reset_counters(struct admin_call *call)
{
    const struct admin_view *v = call->view;

    for (uint32_t i = 0; i < v->snapshot->cluster_count; i++)
        cluster_state_reset(v->snapshot->clusters[i].state);
    for (uint32_t i = 0; i < v->snapshot->listener_count; i++)
        listener_state_reset(v->snapshot->listeners[i].state);
    process_state_reset(v->process);
    for (uint32_t i = 0; i < v->extra_count; i++)
        if (v->extras[i].info.kind == METRIC_COUNTER)
            v->extras_before[i] = cell_read(v->extras[i].cell);
    say_ok(call);
}

/* --- /logging --- */

static void show_levels(struct admin_call *call)
{
    page_str(call->page, "active loggers:\n  firebreak: ");
    page_str(call->page,
             call->view->log == NULL ? "off" : log_level_text(log_least(call->view->log)));
    page_str(call->page, "\n");
}

void set_logging(struct admin_call *call)
{
    char room[32];
    struct bytes wanted = call_value(call, "level", room, sizeof(room) - 1);
    enum log_level level;

    if (call->query.len <= 1) {
        show_levels(call);
        return;
    }
    room[wanted.len] = '\0';
    if (wanted.len == 0 || !log_level_parse(room, &level)) {
        call_refuse(call, 400, "usage: /logging?level=(debug|info|warning|error)");
        return;
    }
    if (call->view->log != NULL)
        log_set_least(call->view->log, level);
    show_levels(call);
}

/* --- /reload --- */

struct reloading {
    struct admin_work work;
    const struct reloader *reloader;
    uint64_t wish;
};

static enum work_state reload_more(struct admin_work *w, struct admin_call *call)
{
    const struct reloading *r = CONTAINER_OF(w, struct reloading, work);

    if (r->reloader->done < r->wish)
        return WORK_WAITS;
    if (r->reloader->ok) {
        say_ok(call);
        return WORK_DONE;
    }
    call_refuse(call, 400, r->reloader->why);
    return WORK_FAILED;
}

static void reload_free(struct admin_work *w)
{
    memory_give(CONTAINER_OF(w, struct reloading, work));
}

void start_reload(struct admin_call *call)
{
    struct reloader *reloader = control_reloader(call->control);
    struct reloading *r;

    if (reloader == NULL) {
        call_refuse(call, 400, "there is no file to load: firebreak runs with --to, not with -c");
        return;
    }
    r = work_begin(call, sizeof(*r));
    if (r == NULL)
        return;
    reloader->begin(reloader);
    r->work.more = reload_more;
    r->work.free = reload_free;
    r->reloader = reloader;
    r->wish = reloader->asked;
}

/* --- hosts --- */

#define SAID_ROOM 256

static void list_clusters(struct admin_call *call)
{
    const struct snapshot *s = call->view->snapshot;

    page_str(call->page, "clusters are:");
    for (uint32_t i = 0; i < s->cluster_count && i < 100; i++) {
        page_str(call->page, " ");
        page_put(call->page, s->clusters[i].name);
    }
    page_str(call->page, "\n");
}

static void answer(struct admin_call *call, enum host_answer a, struct bytes said)
{
    switch (a) {
    case HOST_ANSWER_NO_CLUSTER:
        call_refuse(call, 404, "no such cluster");
        list_clusters(call);
        return;
    case HOST_ANSWER_NO_HOST:
        call_refuse(call, 404,
                    "the cluster has no such host; /clusters shows how they are written");
        return;
    case HOST_ANSWER_REFUSED:
        call_refuse(call, 409, "refused");
        break;
    case HOST_ANSWER_DONE:
    case HOST_ANSWER_ALREADY:
        break;
    }
    page_put(call->page, said);
    page_str(call->page, "\n");
}

static void order_host(struct admin_call *call, enum host_deed deed)
{
    const struct host_order order = {
        .deed = deed, .cluster = call->parts[0], .host = call->parts[1]};
    char room[SAID_ROOM];
    enum host_answer came;
    struct text said;

    text_init(&said, room, sizeof(room));
    came = control_host(call->control, &order, &said);
    answer(call, came, text_bytes(&said));
}

void drain_host(struct admin_call *call)
{
    order_host(call, HOST_DEED_DRAIN);
}

void eject_host(struct admin_call *call)
{
    order_host(call, HOST_DEED_EJECT);
}

void pardon_host(struct admin_call *call)
{
    order_host(call, HOST_DEED_PARDON);
}

void undrain_host(struct admin_call *call)
{
    order_host(call, HOST_DEED_UNDRAIN);
}
