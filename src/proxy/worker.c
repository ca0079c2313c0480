/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/worker.h"

#include "base/memory.h"
#include "base/text.h"
#include "io/error.h"
#include "model/messages.h"
#include "proxy/accepting.h"
#include "proxy/adopting.h"
#include "proxy/downstream.h"
#include "proxy/outbuf.h"
#include "proxy/pool.h"
#include "proxy/stream.h"
#include "proxy/upstream.h"
#include "proxy/worker_state.h"

/* Objects of each kind kept for reuse; beyond that they go back to the heap. */
#define KEEP_OBJECTS 4096u
#define KEEP_BUFFERS 64u

/* --- the end of a turn --- */

static void bury_streams(struct worker *w)
{
    struct list *dead;

    while ((dead = list_pop_front(&w->dead_streams)) != NULL)
        stream_bury(CONTAINER_OF(dead, struct stream, waiting));
}

static void bury(struct worker *w)
{
    bury_streams(w);
    while (!list_empty(&w->dead_downstreams))
        downstream_bury(CONTAINER_OF(w->dead_downstreams.next, struct downstream, all));
    while (!list_empty(&w->dead_upstreams))
        upstream_bury(CONTAINER_OF(w->dead_upstreams.next, struct upstream, all));
    if (w->going_over)
        adopting_sweep(w);
}

/* --- draining --- */

static void close_idle_upstreams(struct worker *w)
{
    struct list *at = w->upstream_links.next;

    while (at != &w->upstream_links) {
        struct upstream *up = CONTAINER_OF(at, struct upstream, all);

        at = at->next;
        if (up->state != UPSTREAM_DEAD)
            upstream_close(up);
    }
}

static void kill_clients(struct worker *w)
{
    while (!list_empty(&w->connections))
        downstream_kill(CONTAINER_OF(w->connections.next, struct downstream, all));
}

static void finish(struct worker *w)
{
    const struct message m = {.kind = MESSAGE_WORKER_DONE, .index = w->setup.index};

    if (w->done)
        return;
    w->done = true;
    close_idle_upstreams(w);
    mailbox_post(w->setup.control, &m);
}

static void on_drain_end(struct timer *t, mono_ns now)
{
    struct worker *w = CONTAINER_OF(t, struct worker, drain_end);

    (void)now;
    kill_clients(w);
}

static void shed(struct worker *w)
{
    w->draining = true;
    for (struct list *at = w->connections.next; at != &w->connections; at = at->next)
        downstream_drain(CONTAINER_OF(at, struct downstream, all));
}

static void drain(struct worker *w, mono_ns until)
{
    if (w->leaving)
        return;
    w->leaving = true;
    accepting_drain(w);
    wheel_arm(&w->wheel, &w->drain_end, until);
    shed(w);
}

static void quit(struct worker *w)
{
    accepting_close(w);
    kill_clients(w);
    finish(w);
}

/* --- messages --- */

static void tell_pools(struct worker *w, const struct cluster_state *state,
                       void (*tell)(struct cluster_pools *c))
{
    for (uint32_t i = 0; i < w->cluster_count; i++)
        if (w->clusters[i]->rt.state == state)
            tell(w->clusters[i]);
    for (struct list *at = w->retired.next; at != &w->retired; at = at->next)
        if (CONTAINER_OF(at, struct cluster_pools, link)->rt.state == state)
            tell(CONTAINER_OF(at, struct cluster_pools, link));
}

static void read_message(struct worker *w, const struct message *m)
{
    switch ((enum message_kind)m->kind) {
    case MESSAGE_SHED:
        shed(w);
        return;
    case MESSAGE_DRAIN:
        drain(w, m->at);
        return;
    case MESSAGE_QUIT:
        quit(w);
        return;
    case MESSAGE_SLOT:
        tell_pools(w, m->object, pools_slot_news);
        return;
    case MESSAGE_HEALTH:
        tell_pools(w, m->object, pools_look);
        return;
    case MESSAGE_SNAPSHOT:
        adopting_go_over(w, m->object);
        return;
    case MESSAGE_OUTLIER:
    case MESSAGE_EVIDENCE:
    case MESSAGE_ADOPTED:
    case MESSAGE_WORKER_DONE:
        return;
    }
}

static void read_mail(struct worker *w)
{
    struct message m;

    while (mailbox_take(w->setup.inbox, &m))
        read_message(w, &m);
}

/* --- evidence --- */

#define LOOKOUT_EVERY (25 * NS_PER_MS)
#define LOOKOUT_FOR   NS_PER_S /* after the last attempt, too: by it a loop sees how late it is */

static void on_lookout(struct timer *t, mono_ns now)
{
    struct worker *w = CONTAINER_OF(t, struct worker, lookout);

    for (uint32_t i = 0; i < w->cluster_count; i++)
        witness_look(&w->clusters[i]->rt, now);
}

/* The watch sleeps while there is nothing to see. */
static void tell_watch(struct worker *w)
{
    const struct message m = {.kind = MESSAGE_EVIDENCE, .index = w->setup.index};

    if (w->witness.tell)
        w->witness.tell = !mailbox_post(w->setup.control, &m);
    if (w->witness.lost > 0)
        worker_count(w, WORKER_evidence_lost, w->witness.lost);
    w->witness.lost = 0;
    if (w->witness.open > 0)
        w->lookout_until = mono_after(w->now, LOOKOUT_FOR);
    if (w->now < w->lookout_until && !timer_armed(&w->lookout))
        wheel_arm(&w->wheel, &w->lookout, mono_after(w->now, LOOKOUT_EVERY));
}

/* --- the turn --- */

mono_ns worker_wakeup(const struct worker *w)
{
    return wheel_next(&w->wheel);
}

/* The wait was to end at |due| at the latest. */
static void end_turn(struct worker *w, mono_ns due)
{
    mono_ns began = w->ended;
    span_ns lag;

    w->ended = clock_read(w->setup.clock);
    lag = lag_of(began, due, w->now, w->ended);
    if (lag >= LAG_NOTED)
        lag_note(&w->cells->lag, lag, w->ended);
    if (lag >= LAG_SICK)
        lag_health_note(&w->health, lag, w->ended);
    worker_count(w, WORKER_turns, 1);
    atomic_store_explicit(&w->cells->at[WORKER_heap_allocations], w->allocations,
                          memory_order_relaxed);
}

/* Known before what is ready is looked at: how late that is, and so how much it says. */
static void look_at_health(struct worker *w, mono_ns due)
{
    span_ns lag = lag_of(w->ended, due, w->now, w->now);

    if (lag >= LAG_SICK)
        lag_health_note(&w->health, lag, w->now);
    w->witness.late = lag_health_is_sick(&w->health, w->now);
}

void worker_turn(struct worker *w)
{
    mono_ns due = worker_wakeup(w);

    poller_wait(w->setup.poller, mono_until(w->ended, due));
    w->now = clock_read(w->setup.clock);
    look_at_health(w, due);
    poller_dispatch(w->setup.poller);
    read_mail(w);
    wheel_run(&w->wheel, w->now);
    pools_end_turn(w);
    tell_watch(w);
    if (w->leaving && list_empty(&w->connections) && accepting_closed(w))
        finish(w);
    bury(w);
    end_turn(w, due);
}

bool worker_done(const struct worker *w)
{
    return w->done;
}

/* --- the date --- */

static void put_two(struct text *t, uint64_t v)
{
    if (v < 10)
        text_char(t, '0');
    text_u64(t, v);
}

/* Days since 1970-01-01 to a date (Hinnant, "chrono-compatible low-level date algorithms"). */
static void civil(uint64_t days, uint64_t *year, uint64_t *month, uint64_t *day)
{
    uint64_t z = days + 719468;
    uint64_t era = z / 146097;
    uint64_t doe = z - era * 146097;
    uint64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    uint64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    uint64_t mp = (5 * doy + 2) / 153;

    *day = doy - (153 * mp + 2) / 5 + 1;
    *month = mp < 10 ? mp + 3 : mp - 9;
    *year = yoe + era * 400 + (*month <= 2);
}

static void write_date(struct text *t, uint64_t seconds)
{
    static const char days[7][4] = {"Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"};
    static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    uint64_t year, month, day;

    civil(seconds / 86400, &year, &month, &day);
    text_str(t, days[seconds / 86400 % 7]);
    text_str(t, ", ");
    put_two(t, day);
    text_char(t, ' ');
    text_str(t, months[month - 1]);
    text_char(t, ' ');
    text_u64(t, year);
    text_char(t, ' ');
    put_two(t, seconds / 3600 % 24);
    text_char(t, ':');
    put_two(t, seconds / 60 % 60);
    text_char(t, ':');
    put_two(t, seconds % 60);
    text_str(t, " GMT");
}

struct bytes worker_date(struct worker *w)
{
    struct text t;

    if (w->now >= w->date_until) {
        wall_ns wall = clock_wall(w->setup.clock);

        text_init(&t, w->date, sizeof(w->date));
        write_date(&t, wall / NS_PER_S);
        text_end(&t);
        w->date_until = mono_after(w->now, NS_PER_S - wall % NS_PER_S);
    }
    return bytes_of(w->date);
}

/* --- life --- */

static void init_slab(struct worker *w, struct slab *s, size_t size, uint32_t keep_max)
{
    slab_init(s, size, keep_max);
    s->grown = &w->allocations;
}

static void init_slabs(struct worker *w)
{
    init_slab(w, &w->streams, sizeof(struct stream), KEEP_OBJECTS);
    init_slab(w, &w->downstreams, sizeof(struct downstream), KEEP_OBJECTS);
    init_slab(w, &w->upstreams, sizeof(struct upstream), KEEP_OBJECTS);
    init_slab(w, &w->heads, SMALL_HEAD_SIZE, KEEP_OBJECTS);
    init_slab(w, &w->outbufs, OUTBUF_SIZE, KEEP_BUFFERS);
}

static void init(struct worker *w, const struct worker_setup *setup)
{
    w->setup = *setup;
    w->cells = &setup->process->worker_cells[setup->index];
    w->now = clock_read(setup->clock);
    w->ended = w->now;
    wheel_init(&w->wheel, w->now);
    rng_init(&w->rng, setup->seed);
    init_slabs(w);
    list_init(&w->connections);
    list_init(&w->upstream_links);
    list_init(&w->served_pools);
    list_init(&w->dead_downstreams);
    list_init(&w->dead_upstreams);
    list_init(&w->dead_streams);
    list_init(&w->listeners);
    list_init(&w->adopted);
    list_init(&w->retired);
    timer_init(&w->drain_end, on_drain_end);
    timer_init(&w->lookout, on_lookout);
    w->witness.ring = &setup->process->rings[setup->index];
    timer_init(&w->accept_retry, accepting_on_retry);
}

static int open_listeners(struct worker *w, const struct listener_config **failed)
{
    for (uint32_t i = 0; i < w->snapshot->listener_count; i++) {
        int error = accepting_open(w, &w->snapshot->listeners[i]);

        if (error == IO_OK)
            continue;
        *failed = &w->snapshot->listeners[i];
        return error;
    }
    return IO_OK;
}

int worker_create(const struct worker_setup *setup, struct worker **out,
                  const struct listener_config **failed)
{
    struct worker *w = memory_take(sizeof(*w));
    int error = IO_NO_MEMORY;

    *failed = NULL;
    if (w == NULL)
        return error;
    init(w, setup);
    if (adopting_begin(w, setup->snapshot))
        error = open_listeners(w, failed);
    if (error != IO_OK) {
        worker_free(w);
        return error;
    }
    *out = w;
    return IO_OK;
}

static void release_slabs(struct worker *w)
{
    slab_release(&w->streams);
    slab_release(&w->downstreams);
    slab_release(&w->upstreams);
    slab_release(&w->heads);
    slab_release(&w->outbufs);
}

/* Snapshots that came too late. */
static void drop_mail(struct worker *w)
{
    struct message m;

    while (mailbox_take(w->setup.inbox, &m))
        if (m.kind == MESSAGE_SNAPSHOT)
            snapshot_drop(m.object);
}

void worker_free(struct worker *w)
{
    if (w == NULL)
        return;
    accepting_close(w);
    kill_clients(w);
    close_idle_upstreams(w);
    bury(w);
    drop_mail(w);
    adopting_free(w);
    release_slabs(w);
    memory_give(w);
}
