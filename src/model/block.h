/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One allocation that holds several arrays, each at the start of a cache line of its own. The
 * same function lays the arrays out twice: first without memory, to learn the size, then in it.
 */
#ifndef MODEL_BLOCK_H
#define MODEL_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CACHE_LINE 64

struct block {
    void *raw;     /* what memory_give takes */
    uint8_t *base; /* at a cache line; NULL while sizes are being added up */
    size_t used;
    bool overflow; /* the sum does not fit in a size_t */
};

/* Nothing laid out, no memory. */
void block_init(struct block *b);

/* The next |count| objects of |size|; NULL while there is no memory, and after an overflow. */
void *block_take(struct block *b, size_t count, size_t size);

/* Zeroed memory for all that was laid out; the layout begins anew. False: none, or an overflow. */
bool block_allocate(struct block *b);

#endif
