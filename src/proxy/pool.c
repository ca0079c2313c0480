/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/pool.h"

#include "base/memory.h"
#include "exchange/cluster_rt.h"
#include "exchange/slot.h"
#include "io/mailbox.h"
#include "model/messages.h"
#include "proxy/stream.h"
#include "proxy/upstream.h"

#define RETELL_AFTER NS_PER_MS         /* another worker whose mailbox was full */
#define DRY_FOR      (100 * NS_PER_MS) /* ports, memory: then it is tried again for who waits */

static void on_retell(struct timer *t, mono_ns now);
static void on_left(struct timer *t, mono_ns now);

/* --- life --- */

/* Pools stay where they are, whatever is added: connections and requests point to theirs. */
struct pool_block {
    struct list link;
    struct pool at[];
};

static void make_pool(struct cluster_pools *c, struct pool *p, uint32_t host)
{
    *p = (struct pool){.cluster = c, .host = host};
    list_init(&p->idle);
    list_init(&p->waiting);
    list_init(&p->served);
    timer_init(&p->left, on_left);
    c->pools[host] = p;
}

/* Pools for |count| hosts in all. */
static bool grow(struct cluster_pools *c, uint32_t count)
{
    uint32_t more = count - c->pool_count;
    struct pool **pools = memory_take_array(count, sizeof(*pools));
    struct pool_block *block = memory_take(sizeof(*block) + more * sizeof(struct pool));

    if (pools == NULL || block == NULL) {
        memory_give(pools);
        memory_give(block);
        return false;
    }
    for (uint32_t i = 0; i < c->pool_count; i++)
        pools[i] = c->pools[i];
    memory_give(c->pools);
    c->pools = pools;
    list_push_back(&c->blocks, &block->link);
    for (uint32_t i = 0; i < more; i++)
        make_pool(c, &block->at[i], c->pool_count + i);
    c->pool_count = count;
    return true;
}

bool pools_init(struct cluster_pools *c, struct worker *w, const struct cluster *config)
{
    *c = (struct cluster_pools){.worker = w};
    list_init(&c->queue);
    list_init(&c->blocks);
    timer_init(&c->retell, on_retell);
    if (!cluster_rt_init(&c->rt, config, w->setup.index, &w->rng, &w->now))
        return false;
    c->rt.witness = &w->witness;
    return config->hosts.count == 0 || grow(c, config->hosts.count);
}

bool pools_reserve(struct cluster_pools *c, uint32_t hosts)
{
    return cluster_rt_reserve(&c->rt, hosts) && (hosts <= c->pool_count || grow(c, hosts));
}

void pools_release(struct cluster_pools *c)
{
    struct list *block;

    wheel_cancel(&c->worker->wheel, &c->retell);
    for (uint32_t i = 0; i < c->pool_count; i++)
        wheel_cancel(&c->worker->wheel, &c->pools[i]->left);
    cluster_rt_release(&c->rt);
    while ((block = list_pop_front(&c->blocks)) != NULL)
        memory_give(CONTAINER_OF(block, struct pool_block, link));
    memory_give(c->pools);
    c->pools = NULL;
}

/* --- idle connections --- */

static struct upstream *take_idle(struct pool *p)
{
    struct list *first = list_pop_front(&p->idle);

    if (first == NULL)
        return NULL;
    p->cluster->idle_count--;
    return CONTAINER_OF(first, struct upstream, in_pool);
}

static struct upstream *take_idle_anywhere(struct cluster_pools *c)
{
    for (uint32_t i = 0; c->idle_count > 0 && i < c->pool_count; i++)
        if (!list_empty(&c->pools[i]->idle) && cluster_rt_serves(&c->rt, i) &&
            cluster_rt_room(&c->rt, i))
            return take_idle(c->pools[i]);
    return NULL;
}

static struct upstream *take_idle_to_give_up(struct cluster_pools *c)
{
    for (uint32_t i = 0; c->idle_count > 0 && i < c->pool_count; i++)
        if (!list_empty(&c->pools[i]->idle))
            return take_idle(c->pools[i]);
    return NULL;
}

static void close_idle(struct pool *p)
{
    struct upstream *up;

    while ((up = take_idle(p)) != NULL)
        upstream_close(up);
}

/* --- hosts that left --- */

static bool has_left(const struct pool *p)
{
    return p->cluster->kept != NULL || cluster_rt_left(&p->cluster->rt, p->host);
}

static struct stream *busy_with(const struct pool *p)
{
    const struct list *all = &p->cluster->worker->upstream_links;

    for (struct list *at = all->next; at != all; at = at->next) {
        struct upstream *up = CONTAINER_OF(at, struct upstream, all);

        if (up->pool == p && up->stream != NULL)
            return up->stream;
    }
    return NULL;
}

static void on_left(struct timer *t, mono_ns now)
{
    struct pool *p = CONTAINER_OF(t, struct pool, left);
    struct stream *s;
    (void)now;

    if (!has_left(p))
        return;
    for (uint32_t n = p->open; n > 0 && (s = busy_with(p)) != NULL; n--)
        stream_refuse(s, REASON_HOST_DRAIN);
}

/* A host that came back is let alone. */
static void time_those_who_left(struct cluster_pools *c)
{
    struct worker *w = c->worker;
    span_ns most = c->rt.config->host_drain_timeout;

    for (uint32_t i = 0; most != 0 && i < c->pool_count; i++) {
        struct pool *p = c->pools[i];

        if (p->open == 0 || !has_left(p))
            wheel_cancel(&w->wheel, &p->left);
        else if (!timer_armed(&p->left))
            wheel_arm(&w->wheel, &p->left, mono_after(w->now, most));
    }
}

/* --- what the control loop says of hosts --- */

static void drain_busy(struct pool *p)
{
    struct list *all = &p->cluster->worker->upstream_links;

    for (struct list *at = all->next; at != all; at = at->next) {
        struct upstream *up = CONTAINER_OF(at, struct upstream, all);

        if (up->pool == p)
            upstream_drain(up);
    }
}

/* The connections of hosts that have gone out since the last look, whether they serve or not. */
static void close_ejected(struct cluster_pools *c)
{
    for (uint32_t i = 0; i < c->rt.hosts.count; i++) {
        struct pool *p = c->pools[i];
        bool out = cluster_rt_is_out(&c->rt, i);

        if (out && !p->out) {
            close_idle(p);
            drain_busy(p);
        }
        p->out = out;
    }
}

/* Requests hang on connections to it: the next ones get fresh ones. */
static void refresh(struct cluster_pools *c)
{
    for (uint32_t i = 0; i < c->rt.hosts.count; i++) {
        const struct host *h = c->rt.hosts.at[i];
        struct pool *p = c->pools[i];
        uint32_t refreshed =
            h == NULL ? 0 : atomic_load_explicit(&h->refreshed, memory_order_relaxed);

        if (refreshed == p->refreshed)
            continue;
        p->refreshed = refreshed;
        close_idle(p);
        drain_busy(p);
    }
}

void pools_look(struct cluster_pools *c)
{
    uint32_t epoch = atomic_load_explicit(c->rt.hosts.epoch, memory_order_acquire);

    if (epoch == c->epoch)
        return;
    c->epoch = epoch;
    if (cluster_rt_ejection_closes(&c->rt))
        close_ejected(c);
    refresh(c);
    for (uint32_t i = 0; c->idle_count > 0 && i < c->pool_count; i++)
        if (!list_empty(&c->pools[i]->idle) && !cluster_rt_serves(&c->rt, i))
            close_idle(c->pools[i]);
    time_those_who_left(c);
}

void pools_retire(struct cluster_pools *c, struct snapshot *last)
{
    c->kept = snapshot_take(last);
    for (uint32_t i = 0; i < c->pool_count; i++)
        close_idle(c->pools[i]);
    time_those_who_left(c);
}

bool pools_over(const struct cluster_pools *c)
{
    return c->kept != NULL && c->connections == 0 && c->streams == 0;
}

/* --- waiting --- */

static void wait_at_host(struct pool *p, struct stream *s)
{
    s->pool = p;
    s->queued_for_slot = false;
    p->waiting_count++;
    list_push_back(&p->waiting, &s->waiting);
}

static mono_ns first_since(const struct cluster_pools *c)
{
    if (list_empty(&c->queue))
        return MONO_NEVER;
    return CONTAINER_OF(c->queue.next, struct stream, waiting)->queued_since;
}

static void wait_for_slot(struct pool *p, struct stream *s)
{
    struct cluster_pools *c = p->cluster;

    exchange_await_slot(&s->x, c->worker->now);
    s->pool = p;
    s->queued_for_slot = true;
    s->queued_since = c->worker->now;
    list_push_back(&c->queue, &s->waiting);
    slot_join(&c->rt, first_since(c));
    slot_count_overflow(&c->rt);
}

void pool_leave(struct stream *s)
{
    if (list_empty(&s->waiting))
        return;
    list_remove(&s->waiting);
    if (s->queued_for_slot)
        slot_leave(&s->pool->cluster->rt, first_since(s->pool->cluster));
    else
        s->pool->waiting_count--;
    s->queued_for_slot = false;
}

static struct stream *next_waiting(struct list *queue)
{
    struct stream *s;

    if (list_empty(queue))
        return NULL;
    s = CONTAINER_OF(queue->next, struct stream, waiting);
    pool_leave(s);
    return s;
}

/* --- opening --- */

enum opened { OPENED, NO_SLOT, OPEN_FAILED };

static void try_again(struct cluster_pools *c, span_ns after)
{
    wheel_arm(&c->worker->wheel, &c->retell, mono_after(c->worker->now, after));
}

/*
 * Where our own descriptors, ports or memory are used up, a request waits for a connection to fall
 * free as if maxConnections were reached, if any worker has one that can.
 */
static enum opened connect_in(struct pool *p, enum slot slot)
{
    struct cluster_pools *c = p->cluster;

    if (slot == SLOT_TAKEN && upstream_connect(p) != FAULT_NONE) {
        slot = slot_unused(&c->rt, c->worker->setup.process, p->host);
        try_again(c, DRY_FOR);
    }
    switch (slot) {
    case SLOT_TAKEN:
        slot_used(&c->rt);
        p->open++;
        p->connecting++;
        return OPENED;
    case SLOT_HOST_FULL:
    case SLOT_CLUSTER_FULL:
        return NO_SLOT;
    case SLOT_NO_DESCRIPTOR:
        break;
    }
    return OPEN_FAILED;
}

static enum opened open_one(struct pool *p)
{
    struct cluster_pools *c = p->cluster;

    return connect_in(p, slot_take(&c->rt, c->worker->setup.process, p->host));
}

/* An idle connection to |s|; where that may not have it, it is idle again. */
static void offer(struct stream *s, struct upstream *up)
{
    struct pool *p = up->pool;

    if (!stream_connected(s, up))
        pool_ready(p, up);
}

static void must_wait(struct stream *s)
{
    stream_event(s, &(struct exchange_event){.kind = EVENT_MUST_WAIT});
}

/* A request that waited has got a connection: see what the others get when the turn ends. */
static void note_served(struct pool *p)
{
    if (list_empty(&p->served))
        list_push_back(&p->cluster->worker->served_pools, &p->served);
}

/* --- slots, shared with the other workers --- */

static void tell(struct cluster_pools *c, uint32_t worker)
{
    const struct worker_setup *setup = &c->worker->setup;
    const struct message m = {.kind = MESSAGE_SLOT, .object = c->rt.state};

    if (worker >= setup->peer_count || !slot_tell(&c->rt, worker) ||
        mailbox_post(setup->peers[worker], &m))
        return;
    slot_heard(&c->rt, worker);
    try_again(c, RETELL_AFTER);
}

static void tell_all(struct cluster_pools *c)
{
    for (uint32_t i = 0; i < c->worker->setup.peer_count; i++)
        if (i != c->worker->setup.index)
            tell(c, i);
}

/*
 * A slot is free: to our first request, with a host picked anew. False: it cannot be used now; but
 * perhaps a connection is under way that will serve it.
 */
static bool serve_first(struct cluster_pools *c)
{
    struct stream *s = CONTAINER_OF(c->queue.next, struct stream, waiting);
    uint32_t host = cluster_rt_pick_open(&c->rt);
    enum opened opened;
    struct pool *p;

    if (host == CLUSTER_RT_ALL_FULL)
        return false;
    p = host == CLUSTER_RT_NO_HOST ? s->pool : c->pools[host];
    if (p->host != exchange_host(&s->x))
        exchange_move(&s->x, p->host);
    opened = open_one(p);
    if (opened == NO_SLOT || (opened == OPENED && !exchange_await_connect(&s->x)))
        return false;
    pool_leave(s);
    if (opened == OPENED)
        wait_at_host(p, s);
    else
        stream_connect_failed(s, FAULT_LOCAL);
    note_served(p);
    return true;
}

/* A free slot goes to whoever waits longest, on whatever worker. True: there may be another. */
static bool hand_out_one(struct cluster_pools *c)
{
    const struct worker_setup *setup = &c->worker->setup;
    uint32_t next;

    if (slot_waiting(&c->rt) == 0 || slot_free_count(&c->rt, setup->process) == 0)
        return false;
    next = slot_next(&c->rt);
    if (next == setup->index)
        return !list_empty(&c->queue) && serve_first(c);
    if (next != SLOT_NO_WORKER)
        tell(c, next);
    return false;
}

/* What fails at once may lead here again: its turn comes in the loop that is running. */
static void hand_out(struct cluster_pools *c)
{
    if (c->handing_out)
        return;
    c->handing_out = true;
    while (hand_out_one(c))
        continue;
    c->handing_out = false;
}

/* Our first request has just begun to wait, or a mailbox was full. */
static void call_for_slots(struct cluster_pools *c)
{
    if (slot_idle_somewhere(&c->rt))
        tell_all(c);
    hand_out(c); /* one may have come back before it could be seen that we wait */
}

static void on_retell(struct timer *t, mono_ns now)
{
    (void)now;
    call_for_slots(CONTAINER_OF(t, struct cluster_pools, retell));
}

/* As many idle connections as there are requests that would not get a slot without. */
static void give_up_idle(struct cluster_pools *c)
{
    const struct process_state *process = c->worker->setup.process;
    struct upstream *up;

    while (slot_needed(&c->rt, process) && (up = take_idle_to_give_up(c)) != NULL)
        upstream_close(up);
}

void pools_slot_news(struct cluster_pools *c)
{
    slot_heard(&c->rt, c->worker->setup.index);
    pools_look(c);
    give_up_idle(c);
    hand_out(c);
}

/* --- queues at the hosts, as Envoy has them --- */

#define CONNECTS_AT_A_TIME 3 /* Envoy's */

static void fail_waiting(struct pool *p, enum attempt_fault fault)
{
    struct stream *s;

    /* Who comes back at once, for another attempt, is not failed again. */
    for (uint32_t n = p->waiting_count; n > 0 && (s = next_waiting(&p->waiting)) != NULL; n--)
        stream_connect_failed(s, fault);
}

/* A connection for each who waits, while there are slots; one in any case. */
static void open_wished(struct pool *p)
{
    struct cluster_pools *c = p->cluster;
    enum opened opened = OPENED;

    for (unsigned n = 0; n < CONNECTS_AT_A_TIME && p->waiting_count > p->connecting; n++) {
        opened = open_one(p);
        if (opened != OPENED)
            break;
    }
    if (opened == NO_SLOT)
        slot_count_overflow(&c->rt);
    if (opened != OPENED && p->open == 0)
        opened = connect_in(p, slot_take_beyond(&c->rt, c->worker->setup.process, p->host));
    if (opened != OPENED && p->open == 0)
        fail_waiting(p, FAULT_LOCAL);
}

static void wait_in_hosts_queue(struct pool *p, struct stream *s)
{
    (void)exchange_await_connect(&s->x); /* it has its place at the host already */
    wait_at_host(p, s);
    open_wished(p);
    if (s->pool == p && !list_empty(&s->waiting) && p->waiting_count > p->connecting)
        exchange_await_slot(&s->x, p->cluster->worker->now);
}

/* --- a request comes --- */

/* A connect is under way that nobody waits for any more. */
static bool one_to_spare(const struct pool *p)
{
    return p->connecting > p->waiting_count;
}

/* A connection of its own for |s|, at its host or at another that may have one more. */
static enum opened open_for(struct pool **p, struct stream *s)
{
    struct cluster_pools *c = (*p)->cluster;
    enum opened opened;
    uint32_t host;

    if (slot_waiting(&c->rt) > 0)
        return NO_SLOT; /* others came first */
    opened = open_one(*p);
    if (opened != NO_SLOT)
        return opened;
    host = cluster_rt_pick_open(&c->rt);
    if (host == CLUSTER_RT_NO_HOST || host == CLUSTER_RT_ALL_FULL || host == (*p)->host)
        return NO_SLOT;
    opened = open_one(c->pools[host]);
    if (opened == NO_SLOT)
        return NO_SLOT;
    *p = c->pools[host];
    exchange_move(&s->x, host);
    return opened;
}

/* |s| was told to wait and agreed; now see that there is something to wait for. */
static void find_way(struct pool *p, struct stream *s)
{
    enum opened opened = one_to_spare(p) ? OPENED : open_for(&p, s);
    struct upstream *other;

    if (opened == OPENED && exchange_await_connect(&s->x)) {
        wait_at_host(p, s);
        return;
    }
    if (opened == OPEN_FAILED) {
        stream_connect_failed(s, FAULT_LOCAL);
        return;
    }
    other = take_idle_anywhere(p->cluster);
    if (other == NULL) {
        wait_for_slot(p, s);
        call_for_slots(p->cluster);
        return;
    }
    exchange_move(&s->x, other->pool->host);
    offer(s, other);
}

void pool_get(struct cluster_pools *c, uint32_t host, struct stream *s, enum pool_wish wish)
{
    struct pool *p = c->pools[host];
    struct upstream *up;

    pools_look(c);
    s->pool = p;
    up = wish == POOL_ANY ? take_idle(p) : NULL;
    if (up != NULL) {
        offer(s, up);
        return;
    }
    must_wait(s);
    if (s->x.state != EXCHANGE_QUEUED)
        return;
    if (cluster_rt_queues_at_hosts(&c->rt))
        wait_in_hosts_queue(c->pools[exchange_host(&s->x)], s);
    else
        find_way(c->pools[exchange_host(&s->x)], s);
}

/* --- what happens to connections --- */

/*
 * Who takes a free connection to |p|: first who waits at the host, then who waits at the cluster,
 * unless another worker's request came long before ours.
 */
static struct stream *next_for(struct pool *p)
{
    struct cluster_pools *c = p->cluster;
    struct stream *s = next_waiting(&p->waiting);

    if (s != NULL || !cluster_rt_serves(&p->cluster->rt, p->host))
        return s;
    if (list_empty(&c->queue) || !slot_may_keep(&c->rt) || !cluster_rt_room(&c->rt, p->host))
        return NULL;
    s = next_waiting(&c->queue);
    if (p->host != exchange_host(&s->x))
        exchange_move(&s->x, p->host);
    return s;
}

static void park(struct pool *p, struct upstream *up)
{
    up->state = UPSTREAM_IDLE;
    up->parked = true;
    list_push_front(&p->idle, &up->in_pool);
    p->cluster->idle_count++;
    alarm_set(&up->alarm, &p->cluster->worker->wheel,
              mono_min(up->retire_at,
                       mono_after(p->cluster->worker->now, p->cluster->rt.config->idle_timeout)));
}

/* Will there be requests for an idle connection to |host|? */
static bool may_be_kept(struct cluster_pools *c, uint32_t host)
{
    return !c->worker->leaving && c->kept == NULL && cluster_rt_serves(&c->rt, host);
}

void pool_ready(struct pool *p, struct upstream *up)
{
    struct cluster_pools *c = p->cluster;
    struct stream *s;

    if (!cluster_rt_serves(&c->rt, p->host) && list_empty(&p->waiting)) {
        upstream_close(up);
        return;
    }
    while ((s = next_for(p)) != NULL) {
        note_served(p);
        if (stream_connected(s, up))
            return;
    }
    if (slot_needed(&c->rt, c->worker->setup.process) || !may_be_kept(c, p->host))
        upstream_close(up);
    else
        park(p, up);
}

void pool_closed(struct pool *p)
{
    struct cluster_pools *c = p->cluster;

    p->open--;
    if (p->open == 0)
        wheel_cancel(&c->worker->wheel, &p->left);
    slot_give(&c->rt, c->worker->setup.process, p->host);
    if (p->waiting_count > 0)
        note_served(p); /* the others at this host may need one in its place */
    hand_out(c);
}

void pools_adopt(struct cluster_pools *c, const struct cluster *config)
{
    cluster_rt_adopt(&c->rt, config);
    hand_out(c); /* there may be more slots now */
}

void pool_wish_again(struct pool *p)
{
    p->wish_again = p->waiting_count > p->connecting;
}

static void open_all_wished(struct pool *p)
{
    open_wished(p);
    if (p->wish_again && p->waiting_count > p->connecting)
        open_wished(p);
    p->wish_again = false;
}

/* Envoy wishes for a connection anew whenever it has served some of those who wait, and not all. */
void pools_end_turn(struct worker *w)
{
    struct list *at;

    while ((at = list_pop_front(&w->served_pools)) != NULL) {
        struct pool *p = CONTAINER_OF(at, struct pool, served);

        if (p->waiting_count > p->connecting && cluster_rt_queues_at_hosts(&p->cluster->rt))
            open_all_wished(p);
        else if (!list_empty(&p->cluster->queue))
            slot_count_overflow(&p->cluster->rt);
    }
}

void pool_accuse(struct cluster_pools *c, uint32_t host, uint32_t triggers)
{
    const struct message m = {
        .kind = MESSAGE_OUTLIER,
        .index = host,
        .value = triggers,
        .at = c->worker->now,
        .object = c->rt.state,
    };

    mailbox_post(c->worker->setup.control, &m);
}

/* Who waited for it has given up before: else a black hole would never be found out. */
static void charge(struct pool *p)
{
    struct cluster_pools *c = p->cluster;
    uint32_t triggers = cluster_rt_connect_failed(&c->rt, p->host, c->worker->now);

    if (triggers != 0)
        pool_accuse(c, p->host, triggers);
}

void pool_connect_failed(struct pool *p, enum attempt_fault fault)
{
    struct stream *s;

    if (cluster_rt_connect_fails_all(&p->cluster->rt)) {
        fail_waiting(p, fault);
        return;
    }
    s = p->waiting_count > p->connecting ? next_waiting(&p->waiting) : NULL;
    if (s != NULL)
        stream_connect_failed(s, fault);
    else if (fault != FAULT_LOCAL)
        charge(p);
}
