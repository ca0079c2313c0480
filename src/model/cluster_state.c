/* SPDX-License-Identifier: Apache-2.0 */
/* Run-time state of a cluster: one block of memory, and one for each host. */
#include "model/cluster_state.h"

#include <assert.h>
#include <string.h>

#include "base/list.h"
#include "base/memory.h"
#include "model/block.h"

#define SLOTS_FIRST 4u

struct cluster_block {
    struct cluster_state state;
    void *raw;
};

/* Each worker's cells are apart from the others', so that counting shares no cache line. */
static struct cluster_block *lay_out(struct block *b, uint32_t workers)
{
    struct cluster_block *c = block_take(b, 1, sizeof(*c));
    struct cluster_cells **cells = block_take(b, workers, sizeof(*cells));
    void **local = block_take(b, workers, sizeof(*local));
    struct slot_line *lines = block_take(b, workers, sizeof(*lines));

    if (b->base != NULL) {
        c->raw = b->raw;
        c->state.workers = workers;
        c->state.cells = cells;
        c->state.local = local;
        slot_order_init(&c->state.queue, lines, workers);
    }
    for (uint32_t w = 0; w < workers; w++) {
        struct cluster_cells *own = block_take(b, 1, sizeof(*own));

        if (b->base != NULL)
            cells[w] = own;
    }
    return c;
}

static bool add_unnamed(struct cluster_state *s, uint32_t hosts)
{
    const struct address nowhere = {.kind = ADDRESS_NONE};

    for (uint32_t i = 0; i < hosts; i++)
        if (cluster_state_add(s, &nowhere, BYTES("")) == HOST_NO_SLOT)
            return false;
    return true;
}

struct cluster_state *cluster_state_create(uint32_t hosts, uint32_t workers)
{
    struct block b;

    block_init(&b);
    lay_out(&b, workers);
    if (!block_allocate(&b))
        return NULL;

    struct cluster_state *s = &lay_out(&b, workers)->state;

    atomic_init(&s->refs, 1);
    s->hosts.epoch = &s->epoch;
    s->hosts.typical = &s->typical;
    limit_init(&s->connections);
    limit_init(&s->pending);
    limit_init(&s->requests);
    atomic_init(&s->panic_since, MONO_NEVER);
    for (unsigned i = 0; i < OUTLIER_ORIGIN_COUNT; i++) {
        atomic_init(&s->rates[i].average, OUTLIER_NO_RATE);
        atomic_init(&s->rates[i].threshold, OUTLIER_NO_RATE);
    }
    limit_init(&s->retries);
    retry_budget_init(&s->retry_budget);
    if (add_unnamed(s, hosts))
        return s;
    cluster_state_drop(s);
    return NULL;
}

struct cluster_state *cluster_state_take(struct cluster_state *s)
{
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

void cluster_state_drop(struct cluster_state *s)
{
    if (s == NULL || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (uint32_t i = 0; i < s->hosts.count; i++)
        cluster_state_vacate(s, i);
    memory_give(s->slots);
    memory_give(CONTAINER_OF(s, struct cluster_block, state)->raw);
}

/* --- slots --- */

static bool grow(struct cluster_state *s)
{
    uint32_t room = s->slot_room == 0 ? SLOTS_FIRST : s->slot_room * 2;
    struct host **slots;

    if (s->slot_room > UINT32_MAX / 4)
        return false;
    slots = memory_take_array(room, sizeof(*slots));
    if (slots == NULL)
        return false;
    if (s->hosts.count > 0)
        memcpy(slots, s->slots, s->hosts.count * sizeof(struct host *));
    memory_give(s->slots);
    s->slots = slots;
    s->slot_room = room;
    s->hosts.at = slots;
    return true;
}

/* HOST_NO_SLOT: no memory. */
static uint32_t empty_slot(struct cluster_state *s)
{
    for (; s->first_empty < s->hosts.count; s->first_empty++)
        if (s->slots[s->first_empty] == NULL)
            return s->first_empty;
    if (s->hosts.count == s->slot_room && !grow(s))
        return HOST_NO_SLOT;
    return s->hosts.count++;
}

uint32_t cluster_state_add(struct cluster_state *s, const struct address *address,
                           struct bytes text)
{
    struct host_state *h = host_state_create(address, text, s->workers);
    uint32_t slot = h == NULL ? HOST_NO_SLOT : empty_slot(s);

    if (slot == HOST_NO_SLOT) {
        host_state_free(h);
        return HOST_NO_SLOT;
    }
    s->slots[slot] = &h->host;
    return slot;
}

void cluster_state_vacate(struct cluster_state *s, uint32_t slot)
{
    assert(slot < s->hosts.count);
    if (s->slots[slot] == NULL)
        return;
    host_state_free(host_state_of(s->slots[slot]));
    s->slots[slot] = NULL;
    if (slot < s->first_empty)
        s->first_empty = slot;
}

bool cluster_state_view(struct cluster_state *s, struct arena *arena, struct host_set *out)
{
    struct host **at = arena_take(arena, (s->hosts.count + (size_t)1) * sizeof(*at));

    if (at == NULL)
        return false;
    for (uint32_t i = 0; i < s->hosts.count; i++)
        at[i] =
            s->slots[i] != NULL && host_state_of(s->slots[i])->gone_since == 0 ? s->slots[i] : NULL;
    *out = (struct host_set){
        .at = at, .count = s->hosts.count, .epoch = &s->epoch, .typical = &s->typical};
    return true;
}

static uint64_t sum_of_all(const struct cluster_state *s, unsigned m)
{
    uint64_t sum = 0;

    for (uint32_t w = 0; w < s->workers; w++)
        sum += cell_read(&s->cells[w]->at[m]);
    return sum;
}

uint64_t cluster_state_sum(const struct cluster_state *s, enum cluster_metric m)
{
    assert(m < CLUSTER_METRIC_COUNT);
    return sum_of_all(s, m) - cell_read(&s->before[m]);
}

static uint64_t all_of_flag(const struct cluster_state *s, uint32_t flag)
{
    uint64_t sum = 0;

    for (uint32_t w = 0; w < s->workers; w++)
        sum += cell_read(&s->cells[w]->flags.at[flag]);
    return sum;
}

uint64_t cluster_state_flag(const struct cluster_state *s, uint32_t flag)
{
    return all_of_flag(s, flag) - cell_read(&s->flags_before.at[flag]);
}

static uint64_t sum_of_retries(const struct cluster_state *s, unsigned m)
{
    uint64_t sum = 0;

    for (uint32_t w = 0; w < s->workers; w++)
        sum += cell_read(&s->cells[w]->retry[m]);
    return sum;
}

uint64_t cluster_state_retry_sum(const struct cluster_state *s, enum retry_metric m)
{
    assert(m < RETRY_METRIC_COUNT);
    return sum_of_retries(s, m) - cell_read(&s->retry_before[m]);
}

/* The table has as much room as a worker's: codes that were seen when it is full go on counting. */
static void reset_statuses(struct cluster_state *s, enum status_table which)
{
    struct status_cells *before = &s->statuses_before[which];

    memset(before, 0, sizeof(*before));
    for (uint32_t w = 0; w < s->workers; w++) {
        const struct status_cells *cells = status_table(s->cells[w], which);

        for (unsigned i = 0; i < STATUS_SLOTS; i++)
            status_cells_add_many(before,
                                  atomic_load_explicit(&cells->code[i], memory_order_acquire),
                                  cell_read(&cells->count[i]));
    }
}

void cluster_state_reset(struct cluster_state *s)
{
    for (unsigned m = 0; m < CLUSTER_METRIC_COUNT; m++)
        if (cluster_metric_info[m].kind == METRIC_COUNTER)
            atomic_store_explicit(&s->before[m], sum_of_all(s, m), memory_order_relaxed);
    for (unsigned m = 0; m < OUTLIER_METRIC_COUNT; m++)
        if (outlier_metric_info[m].kind == METRIC_COUNTER)
            atomic_store_explicit(&s->outlier[m], 0, memory_order_relaxed);
    for (unsigned m = 0; m < EFFECT_METRIC_COUNT; m++)
        if (effect_metric_info[m].kind == METRIC_COUNTER)
            atomic_store_explicit(&s->effect[m], 0, memory_order_relaxed);
    for (uint32_t f = 0; f < FLAG_SLOTS; f++)
        atomic_store_explicit(&s->flags_before.at[f], all_of_flag(s, f), memory_order_relaxed);
    for (unsigned m = 0; m < DISCOVERY_METRIC_COUNT; m++)
        atomic_store_explicit(&s->discovery[m], 0, memory_order_relaxed);
    for (unsigned m = 0; m < RETRY_METRIC_COUNT; m++)
        atomic_store_explicit(&s->retry_before[m], sum_of_retries(s, m), memory_order_relaxed);
    reset_statuses(s, STATUS_FINAL);
    reset_statuses(s, STATUS_RETRIED);
    for (uint32_t i = 0; i < s->hosts.count; i++)
        if (s->hosts.at[i] != NULL)
            host_state_reset(host_state_of(s->hosts.at[i]));
}

struct amplification cluster_state_amplification(const struct cluster_state *s, mono_ns now)
{
    struct amplification a = {.requests = 0};

    for (uint32_t w = 0; w < s->workers; w++) {
        a.requests += window_sum(&s->cells[w]->first_attempts, now);
        a.extra += window_sum(&s->cells[w]->extra_attempts, now);
    }
    return a;
}
