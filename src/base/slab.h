/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of one size, kept for reuse: in steady state taking and giving touch no heap.
 * Not shared between threads.
 */
#ifndef BASE_SLAB_H
#define BASE_SLAB_H

#include <stddef.h>
#include <stdint.h>

struct slab_free;

struct slab {
    size_t size;
    struct slab_free *free;
    uint32_t kept;     /* objects on the free list */
    uint32_t keep_max; /* given back above that: to the heap */
    uint64_t in_use;
    uint64_t *grown; /* raised by each heap allocation; slab_init leaves it NULL: nobody asks */
};

void slab_init(struct slab *s, size_t size, uint32_t keep_max);

/* Not zeroed; NULL out of memory. */
void *slab_take(struct slab *s);

/* Takes NULL. */
void slab_give(struct slab *s, void *object);

/* Frees what is kept; objects still out must have been given back. */
void slab_release(struct slab *s);

#endif
