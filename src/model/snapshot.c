/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a snapshot: made empty, given its run-time state, counted, freed whole. */
#include "model/snapshot.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "base/list.h"
#include "base/memory.h"
#include "model/block.h"

#define FIRST_BLOCK 4096

struct listener_block {
    struct listener_state state;
    void *raw;
};

static struct listener_block *lay_out_listener(struct block *b, uint32_t workers)
{
    struct listener_block *l = block_take(b, 1, sizeof(*l));
    struct http_cells **cells = block_take(b, workers, sizeof(*cells));

    if (b->base != NULL) {
        l->raw = b->raw;
        l->state.workers = workers;
        l->state.cells = cells;
    }
    for (uint32_t w = 0; w < workers; w++) {
        struct http_cells *own = block_take(b, 1, sizeof(*own));

        if (b->base != NULL)
            cells[w] = own;
    }
    return l;
}

static struct listener_state *listener_state_create(uint32_t workers)
{
    struct block b;

    block_init(&b);
    lay_out_listener(&b, workers);
    if (!block_allocate(&b))
        return NULL;

    struct listener_state *s = &lay_out_listener(&b, workers)->state;

    atomic_init(&s->refs, 1);
    return s;
}

struct listener_state *listener_state_take(struct listener_state *s)
{
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

void listener_state_drop(struct listener_state *s)
{
    if (s == NULL || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
        return;
    memory_give(CONTAINER_OF(s, struct listener_block, state)->raw);
}

static uint64_t sum_of_all(const struct listener_state *s, unsigned m)
{
    uint64_t sum = 0;

    for (uint32_t w = 0; w < s->workers; w++)
        sum += cell_read(&s->cells[w]->at[m]);
    return sum;
}

uint64_t listener_state_sum(const struct listener_state *s, enum http_metric m)
{
    return sum_of_all(s, m) - cell_read(&s->before[m]);
}

static uint64_t all_of_flag(const struct listener_state *s, uint32_t flag)
{
    uint64_t sum = 0;

    for (uint32_t w = 0; w < s->workers; w++)
        sum += cell_read(&s->cells[w]->flags.at[flag]);
    return sum;
}

uint64_t listener_state_flag(const struct listener_state *s, uint32_t flag)
{
    return all_of_flag(s, flag) - cell_read(&s->flags_before.at[flag]);
}

void listener_state_reset(struct listener_state *s)
{
    for (unsigned m = 0; m < HTTP_METRIC_COUNT; m++)
        if (http_metric_info[m].kind == METRIC_COUNTER)
            atomic_store_explicit(&s->before[m], sum_of_all(s, m), memory_order_relaxed);
    for (uint32_t f = 0; f < FLAG_SLOTS; f++)
        atomic_store_explicit(&s->flags_before.at[f], all_of_flag(s, f), memory_order_relaxed);
}

/* The arrays are ours and in our arena; const is what everybody else sees. */
static struct listener_config *own_listeners(struct snapshot *s)
{
    return (struct listener_config *)(uintptr_t)s->listeners;
}

static struct cluster *own_clusters(struct snapshot *s)
{
    return (struct cluster *)(uintptr_t)s->clusters;
}

/* The host of each endpoint, and the view of them all. */
static bool make_hosts(struct snapshot *s, struct cluster *c)
{
    struct endpoint *endpoints = (struct endpoint *)(uintptr_t)c->endpoints;

    for (uint32_t i = 0; endpoints != NULL && i < c->endpoint_count; i++) {
        endpoints[i].slot = cluster_state_add(c->state, &endpoints[i].address, endpoints[i].text);
        if (endpoints[i].slot == HOST_NO_SLOT)
            return false;
        host_state_of(c->state->slots[endpoints[i].slot])->named_by = s->version;
    }
    c->state->named = c->endpoint_count;
    atomic_store_explicit(&c->state->membership_changes, c->endpoint_count > 0,
                          memory_order_relaxed);
    return cluster_state_view(c->state, &s->arena, &c->hosts);
}

static bool make_cluster(struct snapshot *s, struct cluster *c, uint32_t workers)
{
    if (c->state != NULL)
        return true;
    c->state = cluster_state_create(c->endpoints == NULL ? c->endpoint_count : 0, workers);
    return c->state != NULL && make_hosts(s, c);
}

bool snapshot_attach_state(struct snapshot *s, uint32_t workers)
{
    for (uint32_t i = 0; i < s->listener_count; i++) {
        struct listener_config *l = &own_listeners(s)[i];

        if (l->state == NULL)
            l->state = listener_state_create(workers);
        if (l->state == NULL)
            return false;
    }
    for (uint32_t i = 0; i < s->cluster_count; i++) {
        if (!make_cluster(s, &own_clusters(s)[i], workers))
            return false;
    }
    return true;
}

struct snapshot *snapshot_create(void)
{
    struct snapshot *s = memory_take(sizeof(*s));

    if (s == NULL)
        return NULL;
    atomic_init(&s->refs, 1);
    s->classes[CLASS_READ] = BYTES("read");
    s->classes[CLASS_WRITE] = BYTES("write");
    s->classes[CLASS_LARGE] = BYTES("large");
    s->class_count = CLASS_NAMED_FIRST;
    arena_init(&s->arena, FIRST_BLOCK, SIZE_MAX);
    return s;
}

struct snapshot *snapshot_derive(struct snapshot *base)
{
    const size_t from = offsetof(struct snapshot, listener_count);
    struct snapshot *s = snapshot_create();

    if (s == NULL)
        return NULL;
    memcpy((char *)s + from, (const char *)base + from, sizeof(*s) - from);
    s->cluster_count = 0;
    s->clusters = NULL;
    s->base = snapshot_take(base);
    return s;
}

struct snapshot *snapshot_take(struct snapshot *s)
{
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

void snapshot_drop(struct snapshot *s)
{
    if (s == NULL || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (uint32_t i = 0; s->base == NULL && i < s->listener_count; i++)
        listener_state_drop(s->listeners[i].state);
    snapshot_drop(s->base);
    for (uint32_t i = 0; i < s->cluster_count; i++)
        cluster_state_drop(s->clusters[i].state);
    arena_release(&s->arena);
    memory_give(s);
}

bool snapshot_is_unshared(const struct snapshot *s)
{
    return atomic_load_explicit(&s->refs, memory_order_acquire) == 1;
}

bool snapshot_shed_clusters(struct snapshot *s, uint32_t most)
{
    assert(snapshot_is_unshared(s));
    for (; s->cluster_count > 0 && most > 0; most--)
        cluster_state_drop(s->clusters[--s->cluster_count].state);
    return s->cluster_count > 0;
}

static const struct cluster *find_by_host(const struct snapshot *s, struct bytes host)
{
    const struct cluster *found = NULL;

    for (uint32_t i = 0; i < s->cluster_count; i++) {
        const struct cluster *c = &s->clusters[i];

        if (c->alias.len == 0 || !bytes_equal(c->host, host))
            continue;
        if (found != NULL)
            return NULL;
        found = c;
    }
    return found;
}

const struct cluster *snapshot_find_cluster(const struct snapshot *s, struct bytes name)
{
    if (name.len == 0)
        return NULL;
    for (uint32_t i = 0; i < s->cluster_count; i++)
        if (bytes_equal(s->clusters[i].name, name))
            return &s->clusters[i];
    for (uint32_t i = 0; i < s->cluster_count; i++)
        if (bytes_equal(s->clusters[i].alias, name))
            return &s->clusters[i];
    return find_by_host(s, name);
}
