/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one way to the heap for every layer but os, lab and main. Only base/memory.c calls malloc.
 * Out of memory is an answer (NULL), never an exit.
 */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stddef.h>

/* Zeroed; NULL where there is none. |size| > 0. */
void *memory_take(size_t size);

/* |count| zeroed elements of |size|; NULL where the product overflows or there is none. */
void *memory_take_array(size_t count, size_t size);

/* As realloc; what is added is not zeroed. NULL leaves |old| as it was. */
void *memory_resize(void *old, size_t size);

/* Takes NULL. */
void memory_give(void *p);

#endif
