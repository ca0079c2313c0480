/* SPDX-License-Identifier: Apache-2.0 */
/* Run-time state of a cluster: one block of memory, counted. */
#include "model/cluster_state.h"

#include <assert.h>

#include "base/list.h"
#include "base/memory.h"
#include "model/block.h"

struct cluster_block {
    struct cluster_state state;
    void *raw;
};

/* Each worker's cells are apart from the others', so that counting shares no cache line. */
static struct cluster_block *lay_out(struct block *b, uint32_t hosts, uint32_t workers)
{
    struct cluster_block *c = block_take(b, 1, sizeof(*c));
    struct host *at = block_take(b, hosts, sizeof(*at));
    struct cluster_cells **cells = block_take(b, workers, sizeof(*cells));
    struct endpoint_cells **endpoint_cells = block_take(b, workers, sizeof(*endpoint_cells));

    if (b->base != NULL) {
        c->raw = b->raw;
        c->state.hosts.at = at;
        c->state.hosts.count = hosts;
        c->state.workers = workers;
        c->state.cells = cells;
        c->state.endpoint_cells = endpoint_cells;
    }
    for (uint32_t w = 0; w < workers; w++) {
        struct cluster_cells *own = block_take(b, 1, sizeof(*own));
        struct endpoint_cells *of_hosts = block_take(b, hosts, sizeof(*of_hosts));

        if (b->base != NULL) {
            cells[w] = own;
            endpoint_cells[w] = of_hosts;
        }
    }
    return c;
}

struct cluster_state *cluster_state_create(uint32_t hosts, uint32_t workers)
{
    struct block b;

    block_init(&b);
    lay_out(&b, hosts, workers);
    if (!block_allocate(&b))
        return NULL;

    struct cluster_state *s = &lay_out(&b, hosts, workers)->state;

    atomic_init(&s->refs, 1);
    limit_init(&s->connections);
    limit_init(&s->pending);
    limit_init(&s->requests);
    for (uint32_t i = 0; i < hosts; i++) {
        atomic_init(&s->hosts.at[i].health, (uint32_t)HOST_HEALTHY);
        outlier_runs_init(&s->hosts.at[i].runs);
    }
    return s;
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
    memory_give(CONTAINER_OF(s, struct cluster_block, state)->raw);
}

uint64_t cluster_state_sum(const struct cluster_state *s, enum cluster_metric m)
{
    uint64_t sum = 0;

    assert(m < CLUSTER_METRIC_COUNT);
    for (uint32_t w = 0; w < s->workers; w++)
        sum += cell_read(&s->cells[w]->at[m]);
    return sum;
}

uint64_t endpoint_state_sum(const struct cluster_state *s, uint32_t host, enum endpoint_metric m)
{
    uint64_t sum = 0;

    assert(host < s->hosts.count && m < ENDPOINT_METRIC_COUNT);
    for (uint32_t w = 0; w < s->workers; w++)
        sum += cell_read(&s->endpoint_cells[w][host].at[m]);
    return sum;
}
