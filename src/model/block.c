/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays in one allocation, each at a cache line. */
#include "model/block.h"

#include "base/memory.h"

/* So that no sum of two of them, and a few cache lines, can overflow. */
#define BLOCK_MAX (SIZE_MAX / 4)

void block_init(struct block *b)
{
    *b = (struct block){.raw = NULL};
}

void *block_take(struct block *b, size_t count, size_t size)
{
    size_t at = b->used;

    if (b->overflow || at > BLOCK_MAX || (size != 0 && count > BLOCK_MAX / size)) {
        b->overflow = true;
        return NULL;
    }
    b->used = (at + count * size + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    return b->base == NULL ? NULL : b->base + at;
}

bool block_allocate(struct block *b)
{
    if (b->overflow || b->used > BLOCK_MAX)
        return false;
    b->raw = memory_take(b->used + CACHE_LINE);
    if (b->raw == NULL)
        return false;

    size_t past = (uintptr_t)b->raw % CACHE_LINE;

    b->base = (uint8_t *)b->raw + (past == 0 ? 0 : CACHE_LINE - past);
    b->used = 0;
    return true;
}
