/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is freed as a whole: blocks of a first size, then doubled as more is asked for.
 * What must outlive the owner is copied out before arena_reset or arena_release.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

struct arena_block;

struct arena {
    struct arena_block *blocks; /* newest first */
    size_t used;                /* of the newest block */
    size_t first_size;
    size_t held;  /* bytes in all blocks */
    size_t limit; /* most bytes ever held; asking for more gives NULL */
};

/* Allocates nothing yet. |limit| bounds what a peer can make it grow to; SIZE_MAX: unbounded. */
void arena_init(struct arena *a, size_t first_size, size_t limit);

/* Aligned for any object, zeroed; NULL past the limit or out of memory. */
void *arena_take(struct arena *a, size_t size);

/* Not aligned, not zeroed: for text and bytes. */
void *arena_take_bytes(struct arena *a, size_t size);

/* A copy that lives as long as the arena; {NULL, 0} with len > 0 asked means no memory. */
struct bytes arena_copy(struct arena *a, struct bytes b);

/* A NUL-terminated copy; NULL: no memory. */
char *arena_text(struct arena *a, struct bytes b);

/* Empty again, keeping the first block for the next user. */
void arena_reset(struct arena *a);

/* Frees all. */
void arena_release(struct arena *a);

#endif
