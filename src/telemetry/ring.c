/* SPDX-License-Identifier: Apache-2.0 */
/* Each run has a head that says how long it is, or that the rest up to the end is skipped. */
#include "telemetry/ring.h"

#include <assert.h>

#include "base/memory.h"

#define SKIP UINT64_MAX

struct run {
    uint64_t size; /* with this head, a multiple of RING_ALIGN; or SKIP */
    uint8_t data[];
};

static struct run *run_at(struct ring *r, uint64_t position)
{
    return (struct run *)(void *)(r->data + (position & (r->size - 1)));
}

static uint64_t run_size(size_t size)
{
    return (sizeof(struct run) + size + RING_ALIGN - 1) & ~(uint64_t)(RING_ALIGN - 1);
}

bool ring_init(struct ring *r, size_t size)
{
    assert(size >= 64 && (size & (size - 1)) == 0);

    *r = (struct ring){.data = memory_take(size), .size = size};
    return r->data != NULL;
}

void ring_release(struct ring *r)
{
    memory_give(r->data);
    r->data = NULL;
}

/* Looks at the reader's position only when the last look does not suffice. */
static bool room_for(struct ring *r, uint64_t head, uint64_t size)
{
    if (head + size - r->tail_seen <= r->size)
        return true;
    r->tail_seen = atomic_load_explicit(&r->tail, memory_order_acquire);
    return head + size - r->tail_seen <= r->size;
}

void *ring_reserve(struct ring *r, size_t size)
{
    if (size > r->size / 2 - sizeof(struct run))
        return NULL;

    uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
    uint64_t need = run_size(size);
    uint64_t to_end = r->size - (head & (r->size - 1));
    uint64_t skipped = need > to_end ? to_end : 0;

    if (!room_for(r, head, skipped + need))
        return NULL;
    if (skipped > 0)
        run_at(r, head)->size = SKIP;
    r->reserved = head + skipped;
    run_at(r, r->reserved)->size = need;
    return run_at(r, r->reserved)->data;
}

void ring_commit(struct ring *r)
{
    uint64_t end = r->reserved + run_at(r, r->reserved)->size;

    atomic_store_explicit(&r->head, end, memory_order_release);
}

void *ring_peek(struct ring *r)
{
    uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);

    if (tail == atomic_load_explicit(&r->head, memory_order_acquire))
        return NULL;
    if (run_at(r, tail)->size == SKIP) {
        tail += r->size - (tail & (r->size - 1));
        atomic_store_explicit(&r->tail, tail, memory_order_release);
    }
    return run_at(r, tail)->data;
}

void ring_consume(struct ring *r)
{
    uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);

    atomic_store_explicit(&r->tail, tail + run_at(r, tail)->size, memory_order_release);
}
