/* SPDX-License-Identifier: Apache-2.0 */
/* The one place, besides os, lab and main, that asks the C library for memory. */
#include "base/memory.h"

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
    return calloc(at_least_one(count), at_least_one(size)); /* it checks the product */
}

void *memory_resize(void *old, size_t size)
{
    return realloc(old, at_least_one(size));
}

void memory_give(void *p)
{
    free(p);
}
