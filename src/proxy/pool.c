/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/pool.h"

#include "base/memory.h"
#include "exchange/bounds.h"
#include "exchange/cluster_rt.h"
#include "io/mailbox.h"
#include "model/messages.h"
#include "proxy/stream.h"
#include "proxy/upstream.h"

#define NO_HOST UINT32_MAX

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
    return cluster_rt_init(&c->rt, config, w->setup.index, &w->rng) &&
           (config->hosts.count == 0 || grow(c, config->hosts.count));
}

bool pools_reserve(struct cluster_pools *c, uint32_t hosts)
{
    return cluster_rt_reserve(&c->rt, hosts) && (hosts <= c->pool_count || grow(c, hosts));
}

void pools_release(struct cluster_pools *c)
{
    struct list *block;

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
        if (!list_empty(&c->pools[i]->idle) && cluster_rt_serves(&c->rt, i))
            return take_idle(c->pools[i]);
    return NULL;
}

static void close_idle(struct pool *p)
{
    struct upstream *up;

    while ((up = take_idle(p)) != NULL)
        upstream_close(up);
}

void pools_look(struct cluster_pools *c)
{
    uint32_t epoch = atomic_load_explicit(c->rt.hosts.epoch, memory_order_acquire);

    if (epoch == c->epoch)
        return;
    c->epoch = epoch;
    for (uint32_t i = 0; c->idle_count > 0 && i < c->pool_count; i++)
        if (!list_empty(&c->pools[i]->idle) && !cluster_rt_serves(&c->rt, i))
            close_idle(c->pools[i]);
}

void pools_adopt(struct cluster_pools *c, const struct cluster *config)
{
    cluster_rt_adopt(&c->rt, config);
}

void pools_retire(struct cluster_pools *c, struct snapshot *last)
{
    c->kept = snapshot_take(last);
    for (uint32_t i = 0; i < c->pool_count; i++)
        close_idle(c->pools[i]);
}

bool pools_over(const struct cluster_pools *c)
{
    return c->kept != NULL && c->connections == 0 && c->streams == 0;
}

/* --- slots, shared with the other workers --- */

static uint32_t slots_wanted(const struct cluster_pools *c)
{
    return atomic_load_explicit(&c->rt.state->waiting, memory_order_acquire);
}

static void tell_peers(struct cluster_pools *c)
{
    const struct worker_setup *setup = &c->worker->setup;
    struct message m = {.kind = MESSAGE_SLOT, .object = c->rt.state};

    for (uint32_t i = 0; i < setup->peer_count; i++)
        if (i != setup->index)
            mailbox_post(setup->peers[i], &m);
}

/* --- waiting --- */

static void wait_at_host(struct pool *p, struct stream *s)
{
    s->pool = p;
    s->queued_for_slot = false;
    p->waiting_count++;
    list_push_back(&p->waiting, &s->waiting);
}

static void wait_for_slot(struct pool *p, struct stream *s)
{
    struct cluster_pools *c = p->cluster;

    s->pool = p;
    s->queued_for_slot = true;
    list_push_back(&c->queue, &s->waiting);
    atomic_fetch_add_explicit(&c->rt.state->waiting, 1, memory_order_acq_rel);
    tell_peers(c);
}

void pool_leave(struct stream *s)
{
    if (list_empty(&s->waiting))
        return;
    list_remove(&s->waiting);
    if (s->queued_for_slot)
        atomic_fetch_sub_explicit(&s->pool->cluster->rt.state->waiting, 1, memory_order_acq_rel);
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

/*
 * Where our own descriptors, ports or memory are used up, a request waits for a connection to fall
 * free as if maxConnections were reached, if any worker has one that can.
 */
static enum opened open_one(struct pool *p)
{
    struct cluster_pools *c = p->cluster;
    struct process_state *process = c->worker->setup.process;

    if (!bounds_take_upstream(process))
        return cluster_rt_in_use(&c->rt) ? NO_SLOT : OPEN_FAILED;
    if (!cluster_rt_open(&c->rt, p->host)) {
        bounds_give_upstream(process);
        return NO_SLOT;
    }
    if (upstream_connect(p) == FAULT_NONE) {
        p->connecting++;
        return OPENED;
    }
    cluster_rt_closed(&c->rt, p->host);
    bounds_give_upstream(process);
    return cluster_rt_in_use(&c->rt) ? NO_SLOT : OPEN_FAILED;
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

/* A slot may be free: the longest waiting request gets it, with a host picked anew. */
static void serve_slot(struct cluster_pools *c)
{
    while (!list_empty(&c->queue)) {
        struct stream *s = CONTAINER_OF(c->queue.next, struct stream, waiting);
        uint32_t host = cluster_rt_pick(&c->rt);
        struct pool *p = host == NO_HOST ? s->pool : c->pools[host];
        enum opened opened = open_one(p);

        if (opened == NO_SLOT)
            return;
        pool_leave(s);
        if (p != s->pool)
            exchange_move(&s->x, host);
        if (opened == OPENED)
            wait_at_host(p, s);
        else
            stream_connect_failed(s, FAULT_LOCAL);
    }
}

/* |s| was told to wait and agreed; now see that there is something to wait for. */
static void open_for(struct pool *p, struct stream *s)
{
    enum opened opened = p->connecting > p->waiting_count ? OPENED : open_one(p);
    struct upstream *other;

    if (opened == OPENED) {
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
        /* Another worker may have given one back just before it could see that we wait. */
        if (cluster_rt_room(&p->cluster->rt))
            serve_slot(p->cluster);
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
    if (s->x.state == EXCHANGE_QUEUED)
        open_for(p, s);
}

/* --- what happens to connections --- */

/* Who takes a free connection to |p|: first who waits at the host, then who waits at the cluster.
 */
static struct stream *next_for(struct pool *p)
{
    struct stream *s = next_waiting(&p->waiting);

    if (s != NULL || !cluster_rt_serves(&p->cluster->rt, p->host))
        return s;
    s = next_waiting(&p->cluster->queue);
    if (s != NULL)
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
              mono_after(p->cluster->worker->now, p->cluster->rt.config->idle_timeout));
}

/* Will there be requests for an idle connection to |host|? */
static bool may_be_kept(struct cluster_pools *c, uint32_t host)
{
    return !c->worker->draining && c->kept == NULL && cluster_rt_serves(&c->rt, host);
}

void pool_ready(struct pool *p, struct upstream *up)
{
    struct cluster_pools *c = p->cluster;
    struct stream *s;

    if (!cluster_rt_serves(&c->rt, p->host) && list_empty(&p->waiting)) {
        upstream_close(up);
        return;
    }
    while ((s = next_for(p)) != NULL)
        if (stream_connected(s, up))
            return;
    if (slots_wanted(c) > 0 || !may_be_kept(c, p->host))
        upstream_close(up);
    else
        park(p, up);
}

void pool_closed(struct pool *p)
{
    struct cluster_pools *c = p->cluster;

    cluster_rt_closed(&c->rt, p->host);
    bounds_give_upstream(c->worker->setup.process);
    if (!list_empty(&c->queue))
        serve_slot(c);
    else if (slots_wanted(c) > 0)
        tell_peers(c);
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
    struct stream *s = p->waiting_count > p->connecting ? next_waiting(&p->waiting) : NULL;

    if (s != NULL)
        stream_connect_failed(s, fault);
    else if (fault != FAULT_LOCAL)
        charge(p);
}

void pools_slot_news(struct cluster_pools *c)
{
    struct upstream *up;

    pools_look(c);
    if (!list_empty(&c->queue)) {
        serve_slot(c);
        return;
    }
    if (slots_wanted(c) == 0)
        return;
    up = take_idle_anywhere(c);
    if (up != NULL)
        upstream_close(up);
}
