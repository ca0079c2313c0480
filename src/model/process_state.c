/* SPDX-License-Identifier: Apache-2.0 */
/* What the whole process shares: bounds computed from what the machine grants. */
#include "model/process_state.h"

#include "base/list.h"
#include "base/memory.h"
#include "model/block.h"

#define RESERVE_MAX 64u

struct process_block {
    struct process_state state;
    void *raw;
};

/* At least one, and a real limit even where the machine names none. */
static uint32_t as_limit(uint64_t n)
{
    if (n == 0)
        return 1;
    return n < LIMIT_NONE ? (uint32_t)n : LIMIT_NONE - 1;
}

/* Without overflow, whatever |n|. */
static uint64_t seventy_percent(uint64_t n)
{
    return n / 10 * 7 + n % 10 * 7 / 10;
}

static struct process_block *lay_out(struct block *b, uint32_t workers)
{
    struct process_block *p = block_take(b, 1, sizeof(*p));
    struct worker_cells *cells = block_take(b, workers, sizeof(*cells));
    struct worker_cells *before = block_take(b, workers, sizeof(*before));
    struct evidence_ring *rings = block_take(b, workers, sizeof(*rings));

    if (b->base != NULL) {
        p->raw = b->raw;
        p->state.workers = workers;
        p->state.worker_cells = cells;
        p->state.before = before;
        p->state.rings = rings;
        for (uint32_t i = 0; i < workers; i++)
            rings[i].others = workers - 1;
    }
    return p;
}

/* For what is no connection of the data plane: listeners, pollers, admin, logs, names. */
static uint64_t reserve(uint64_t descriptors)
{
    return descriptors / 8 < RESERVE_MAX ? descriptors / 8 : RESERVE_MAX;
}

struct process_state *process_state_create(uint32_t workers, uint64_t descriptors,
                                           uint64_t memory_limit, mono_ns now)
{
    struct block b;

    block_init(&b);
    lay_out(&b, workers);
    if (!block_allocate(&b))
        return NULL;

    struct process_state *p = &lay_out(&b, workers)->state;
    uint64_t by_descriptors = seventy_percent(descriptors);
    uint64_t by_memory = memory_limit / REQUEST_MEMORY_MAX;

    limit_init(&p->downstream);
    limit_init(&p->upstream);
    limit_init(&p->requests);
    p->downstream_max = as_limit(by_descriptors);
    p->upstream_max = as_limit(descriptors - by_descriptors - reserve(descriptors));
    p->requests_max = as_limit(by_memory < by_descriptors ? by_memory : by_descriptors);
    p->replay_max = memory_limit / 8;
    p->started = now;
    atomic_init(&p->draining, false);
    return p;
}

uint64_t process_state_worker(const struct process_state *p, uint32_t worker, enum worker_metric m)
{
    return cell_read(&p->worker_cells[worker].at[m]) - cell_read(&p->before[worker].at[m]);
}

void process_state_reset(struct process_state *p)
{
    for (uint32_t w = 0; w < p->workers; w++)
        for (unsigned m = 0; m < WORKER_METRIC_COUNT; m++)
            if (worker_metric_info[m].kind == METRIC_COUNTER)
                atomic_store_explicit(&p->before[w].at[m], cell_read(&p->worker_cells[w].at[m]),
                                      memory_order_relaxed);
}

void process_state_free(struct process_state *p)
{
    if (p != NULL)
        memory_give(CONTAINER_OF(p, struct process_block, state)->raw);
}
