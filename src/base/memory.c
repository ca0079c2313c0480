/* SPDX-License-Identifier: Apache-2.0 */
/* The one place, besides os, lab and main, that asks the C library for memory. */
#include "base/memory.h"

#include <stdint.h>
#include <stdlib.h>

/* What the C library does with a size of zero is its own choice; ours is one byte. */
static size_t at_least_one(size_t size)
{
    return size == 0 ? 1 : size;
}

void *memory_take(size_t size)
{
    return calloc(1, at_least_one(size));
}

void *memory_take_array(size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / size)
        return NULL;
    return memory_take(count * size);
}

void *memory_resize(void *old, size_t size)
{
    return realloc(old, at_least_one(size));
}

void memory_give(void *p)
{
    free(p);
}
