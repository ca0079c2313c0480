/* SPDX-License-Identifier: Apache-2.0 */
/* The control loop: one turn after another, each with one reading of the clock. */
#include "control/control.h"

#include "base/list.h"
#include "base/memory.h"
#include "base/text.h"
#include "control/discovery.h"
#include "control/event_log.h"
#include "control/health_news.h"
#include "control/host_hand.h"
#include "control/journal.h"
#include "control/limit_watch.h"
#include "control/outlier_watch.h"
#include "control/retired.h"
#include "control/succession.h"
#include "model/messages.h"

#define MESSAGES_A_TURN 1024      /* then timers and events get their turn */
#define REPOST_AFTER    NS_PER_MS /* to a worker whose mailbox was full */

/* What one worker is still to be told, and in this order; and whether it is done. */
struct outbox {
    struct snapshot *snapshot; /* a reference; NULL: none */
    bool shed;
    bool drain;
    bool quit;
    bool done;
};

struct control {
    struct clock *clock;
    struct poller *poller;
    struct mailbox *inbox;
    struct mailbox *const *workers;
    struct outbox *outboxes; /* [worker] */
    uint32_t worker_count;
    uint32_t done;
    struct log *log;
    struct process_state *process;
    struct wheel wheel;
    struct timer repost;
    struct timer limits; /* are looked at */
    struct timer drain;  /* the drain wait is over */
    struct event_log *events;
    struct journal *journal;
    struct outlier_watch *watch;
    struct list readers; /* struct control_reader */
    struct host_hand *hand;
    struct discovery *discovery;
    mono_ns now;
    mono_ns drain_until;
    bool turning; /* inside a turn: |now| is fresh */
    bool more;    /* messages were left in the inbox */
    bool shedding;
    bool draining;
    bool quitting;
    bool settled; /* all workers are at |snapshot|, and what it does not name is picked no more */
    bool freeing; /* more is left of snapshots that nobody holds */
    struct snapshot *snapshot; /* in force */
    struct retired retired;    /* those before */
    uint64_t version;          /* the last one given */
    struct reloader *reloader; /* NULL: none */
};

/* --- to the workers --- */

static bool post(struct control *c, uint32_t worker, const struct message *m, bool *pending)
{
    if (!*pending)
        return true;
    *pending = !mailbox_post(c->workers[worker], m);
    return !*pending;
}

static bool post_snapshot(struct control *c, uint32_t worker, struct outbox *o)
{
    const struct message m = {.kind = MESSAGE_SNAPSHOT, .object = o->snapshot};

    if (o->snapshot == NULL)
        return true;
    if (!mailbox_post(c->workers[worker], &m))
        return false;
    o->snapshot = NULL;
    return true;
}

/* False: the mailbox is full, and something is still pending. */
static bool tell_worker(struct control *c, uint32_t worker)
{
    const struct message shed = {.kind = MESSAGE_SHED};
    const struct message drain = {.kind = MESSAGE_DRAIN, .at = c->drain_until};
    const struct message quit = {.kind = MESSAGE_QUIT};
    struct outbox *o = &c->outboxes[worker];

    return o->done || (post_snapshot(c, worker, o) && post(c, worker, &shed, &o->shed) &&
                       post(c, worker, &drain, &o->drain) && post(c, worker, &quit, &o->quit));
}

static void tell_workers(struct control *c)
{
    bool all = true;

    for (uint32_t i = 0; i < c->worker_count; i++)
        all = tell_worker(c, i) && all;
    if (!all)
        wheel_arm(&c->wheel, &c->repost, mono_after(c->now, REPOST_AFTER));
}

static void repost_due(struct timer *t, mono_ns now)
{
    (void)now;
    tell_workers(CONTAINER_OF(t, struct control, repost));
}

static void limits_due(struct timer *t, mono_ns now)
{
    struct control *c = CONTAINER_OF(t, struct control, limits);

    limit_watch_look(c->snapshot, c->log, now);
    wheel_arm(&c->wheel, &c->limits, mono_after(now, LIMIT_WATCH_EVERY));
}

static void drain_workers(struct control *c)
{
    atomic_store_explicit(&c->process->draining, true, memory_order_release);
    for (uint32_t i = 0; i < c->worker_count; i++)
        c->outboxes[i].drain = true;
    tell_workers(c);
}

static void drain_due(struct timer *t, mono_ns now)
{
    struct control *c = CONTAINER_OF(t, struct control, drain);
    (void)now;

    log_event(c->log, LOG_INFO, "process.closing", "no new connections from now on");
    drain_workers(c);
}

/* Between turns |now| may be long ago: the loop slept. */
static void freshen(struct control *c)
{
    if (!c->turning)
        c->now = clock_read(c->clock);
}

/* --- from the workers --- */

static void worker_done(struct control *c, uint32_t worker)
{
    if (worker >= c->worker_count || c->outboxes[worker].done)
        return;
    c->outboxes[worker].done = true;
    c->done++;
}

static void on_message(struct control *c, const struct message *m)
{
    switch ((enum message_kind)m->kind) {
    case MESSAGE_OUTLIER:
        outlier_watch_tell(c->watch, m, c->now);
        return;
    case MESSAGE_EVIDENCE:
        outlier_watch_wake(c->watch, c->now);
        return;
    case MESSAGE_WORKER_DONE:
        worker_done(c, m->index);
        return;
    case MESSAGE_ADOPTED:  /* was only to wake us: settle() */
    case MESSAGE_SNAPSHOT: /* these are for workers */
    case MESSAGE_SHED:
    case MESSAGE_DRAIN:
    case MESSAGE_QUIT:
    case MESSAGE_SLOT:
    case MESSAGE_HEALTH:
        return;
    }
}

static void drain_inbox(struct control *c)
{
    struct message m;
    uint32_t n = 0;

    while (n < MESSAGES_A_TURN && mailbox_take(c->inbox, &m)) {
        on_message(c, &m);
        n++;
    }
    c->more = n == MESSAGES_A_TURN;
}

/* --- snapshots --- */

/* The oldest version that a worker may be at. */
static uint64_t oldest_adopted(const struct control *c)
{
    uint64_t oldest = c->snapshot->version;

    for (uint32_t i = 0; i < c->worker_count; i++) {
        uint64_t at =
            atomic_load_explicit(&c->process->worker_cells[i].version, memory_order_acquire);

        if (!c->outboxes[i].done && at < oldest)
            oldest = at;
    }
    return oldest;
}

/* The same, of those who look at one beside the workers. */
static uint64_t oldest_in_use(const struct control *c)
{
    uint64_t oldest = oldest_adopted(c);

    for (struct list *l = c->readers.next; l != &c->readers; l = l->next) {
        const struct control_reader *r = CONTAINER_OF(l, struct control_reader, link);

        if (r->version < oldest)
            oldest = r->version;
    }
    return oldest;
}

static void hosts_left(void *owner, struct cluster_state *state)
{
    struct control *c = owner;

    health_news(c->workers, c->worker_count, state);
}

static void settle(struct control *c)
{
    if (c->settled || oldest_adopted(c) < c->snapshot->version)
        return;
    succession_commit(c->snapshot, hosts_left, c);
    c->settled = true;
}

static void send_snapshot(struct control *c)
{
    for (uint32_t i = 0; i < c->worker_count; i++) {
        if (c->outboxes[i].done)
            continue;
        snapshot_drop(c->outboxes[i].snapshot);
        c->outboxes[i].snapshot = snapshot_take(c->snapshot);
    }
    tell_workers(c);
}

/* |full|: what discovery makes of |root|. Takes references of its own. */
static bool put_in_force(struct control *c, struct snapshot *root, struct snapshot *full)
{
    struct snapshot *before = c->snapshot;

    root->version = full->version = ++c->version;
    if (!succession_prepare(full, before, oldest_in_use(c), c->worker_count) ||
        !outlier_watch_adopt(c->watch, full, c->now))
        return false;
    c->snapshot = snapshot_take(full);
    event_log_set(c->events, full->outlier_event_log);
    journal_set(c->journal, full->journal);
    host_hand_adopt(c->hand, full);
    discovery_adopt(c->discovery, root, full);
    c->settled = false;
    send_snapshot(c);
    retired_add(&c->retired, before);
    return true;
}

bool control_publish(struct control *c, struct snapshot *s)
{
    struct snapshot *full = discovery_fill(c->discovery, s);
    bool ok;

    freshen(c);
    ok = full != NULL && put_in_force(c, s, full);
    snapshot_drop(full);
    return ok;
}

/* Where there is no memory for it, the next turn tries again. */
static void follow_names(struct control *c)
{
    struct snapshot *root = discovery_changed(c->discovery);

    if (root != NULL)
        (void)control_publish(c, root);
}

/* --- a turn --- */

mono_ns control_wakeup(const struct control *c)
{
    return c->more || c->freeing ? c->now : wheel_next(&c->wheel);
}

void control_turn(struct control *c)
{
    poller_wait(c->poller, mono_until(clock_read(c->clock), control_wakeup(c)));
    c->now = clock_read(c->clock);
    c->turning = true;
    poller_dispatch(c->poller);
    drain_inbox(c);
    wheel_run(&c->wheel, c->now);
    follow_names(c);
    settle(c);
    c->freeing = retired_free_some(&c->retired);
    c->turning = false;
}

/* --- what others ask for --- */

mono_ns control_now(const struct control *c)
{
    return c->now;
}

struct wheel *control_wheel(struct control *c)
{
    return &c->wheel;
}

struct poller *control_poller(struct control *c)
{
    return c->poller;
}

struct snapshot *control_snapshot(const struct control *c)
{
    return c->snapshot;
}

struct process_state *control_process(const struct control *c)
{
    return c->process;
}

void control_set_reloader(struct control *c, struct reloader *r)
{
    c->reloader = r;
}

struct reloader *control_reloader(const struct control *c)
{
    return c->reloader;
}

void control_read_begin(struct control *c, struct control_reader *r)
{
    r->version = c->snapshot->version;
    list_push_back(&c->readers, &r->link);
}

void control_read_end(struct control_reader *r)
{
    list_remove(&r->link);
}

static void shed_workers(struct control *c)
{
    c->shedding = true;
    atomic_store_explicit(&c->process->draining, true, memory_order_release);
    for (uint32_t i = 0; i < c->worker_count; i++)
        c->outboxes[i].shed = true;
    tell_workers(c);
}

void control_shed(struct control *c)
{
    if (c->shedding || c->draining || c->quitting)
        return;
    freshen(c);
    log_event(c->log, LOG_INFO, "process.shedding",
              "each answer ends its connection, idle ones are closed; listening goes on");
    shed_workers(c);
}

static void log_draining(const struct control *c)
{
    span_ns wait = c->snapshot->drain_wait;
    char room[96];
    struct text t;

    text_init(&t, room, sizeof(room));
    text_str(&t, "no new connections");
    if (wait != 0) {
        text_str(&t, " after ");
        text_duration(&t, wait);
    }
    text_str(&t, "; what is under way may take ");
    text_duration(&t, c->snapshot->drain_timeout);
    log_event(c->log, LOG_INFO, "process.draining", "%s", text_end(&t));
}

void control_drain(struct control *c)
{
    if (c->draining || c->quitting)
        return;
    freshen(c);
    c->draining = true;
    c->drain_until = mono_after(c->now, c->snapshot->drain_timeout);
    log_draining(c);
    if (c->snapshot->drain_wait == 0) {
        drain_workers(c);
        return;
    }
    if (!c->shedding)
        shed_workers(c);
    wheel_arm(&c->wheel, &c->drain, mono_after(c->now, c->snapshot->drain_wait));
}

bool control_drains(const struct control *c)
{
    return c->draining;
}

void control_reopen(struct control *c)
{
    event_log_reopen(c->events);
    journal_reopen(c->journal);
}

const _Atomic uint64_t *control_events_dropped(const struct control *c)
{
    return event_log_dropped(c->events);
}

const _Atomic uint64_t *control_journal_dropped(const struct control *c)
{
    return journal_dropped(c->journal);
}

struct journal *control_journal(const struct control *c)
{
    return c->journal;
}

struct outlier_watch *control_watch(const struct control *c)
{
    return c->watch;
}

void control_quit(struct control *c)
{
    if (c->quitting)
        return;
    freshen(c);
    c->quitting = true;
    atomic_store_explicit(&c->process->draining, true, memory_order_release);
    wheel_cancel(&c->wheel, &c->drain);
    log_event(c->log, LOG_INFO, "process.quitting", "what is under way is broken off");
    for (uint32_t i = 0; i < c->worker_count; i++)
        c->outboxes[i].quit = true;
    tell_workers(c);
}

enum host_answer control_host(struct control *c, const struct host_order *order, struct text *said)
{
    freshen(c);
    return host_hand_obey(c->hand, order, said, c->now);
}

bool control_done(const struct control *c)
{
    return c->done == c->worker_count;
}

static bool start_hand(struct control *c)
{
    const struct host_hand_setup setup = {.wheel = &c->wheel,
                                          .log = c->log,
                                          .watch = c->watch,
                                          .workers = c->workers,
                                          .worker_count = c->worker_count};

    c->hand = host_hand_create(&setup);
    return c->hand != NULL;
}

static bool start_watch(struct control *c, const struct control_setup *setup)
{
    struct outlier_watch_setup watch = {
        .wheel = &c->wheel,
        .clock = c->clock,
        .log = c->log,
        .workers = c->workers,
        .rings = c->process->rings,
        .worker_count = c->worker_count,
        .seed = setup->seed,
    };

    c->events = watch.events = event_log_create(setup->files, c->log);
    c->journal = watch.journal = journal_create(setup->files, c->log);
    if (c->events == NULL || c->journal == NULL)
        return false;
    event_log_set(c->events, c->snapshot->outlier_event_log);
    journal_set(c->journal, c->snapshot->journal);
    c->watch = outlier_watch_create(&watch);
    return c->watch != NULL && outlier_watch_adopt(c->watch, c->snapshot, c->now);
}

static struct discovery *create_discovery(struct control *c, struct resolver *resolver)
{
    const struct discovery_setup setup = {
        .wheel = &c->wheel, .clock = c->clock, .log = c->log, .resolver = resolver};

    return discovery_create(&setup);
}

struct control *control_create(const struct control_setup *setup)
{
    struct control *c = memory_take(sizeof(*c));

    if (c == NULL)
        return NULL;
    c->clock = setup->clock;
    c->poller = setup->poller;
    c->inbox = setup->inbox;
    c->workers = setup->workers;
    c->worker_count = setup->worker_count;
    c->log = setup->log;
    c->process = setup->process;
    c->now = clock_read(c->clock);
    c->snapshot = snapshot_take(setup->snapshot);
    c->version = c->snapshot->version;
    c->settled = true;
    list_init(&c->readers);
    retired_init(&c->retired);
    wheel_init(&c->wheel, c->now);
    timer_init(&c->repost, repost_due);
    timer_init(&c->limits, limits_due);
    timer_init(&c->drain, drain_due);
    wheel_arm(&c->wheel, &c->limits, mono_after(c->now, LIMIT_WATCH_EVERY));
    c->outboxes = memory_take_array(c->worker_count + (size_t)1, sizeof(*c->outboxes));
    c->discovery = create_discovery(c, setup->resolver);
    if (c->outboxes == NULL || c->discovery == NULL || !start_watch(c, setup) || !start_hand(c) ||
        !discovery_begin(c->discovery, c->snapshot)) {
        control_free(c);
        return NULL;
    }
    host_hand_adopt(c->hand, c->snapshot);
    return c;
}

void control_free(struct control *c)
{
    if (c == NULL)
        return;
    discovery_free(c->discovery);
    host_hand_free(c->hand);
    outlier_watch_free(c->watch);
    for (uint32_t i = 0; c->outboxes != NULL && i < c->worker_count; i++)
        snapshot_drop(c->outboxes[i].snapshot);
    event_log_free(c->events);
    journal_free(c->journal);
    snapshot_drop(c->snapshot);
    retired_release(&c->retired);
    memory_give(c->outboxes);
    memory_give(c);
}
