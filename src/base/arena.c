/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks in a list, newest first; only the newest is taken from. */
#include "base/arena.h"

#include <stdalign.h>
#include <string.h>

#include "base/memory.h"
#include "base/poison.h"

struct arena_block {
    struct arena_block *older;
    size_t size; /* of |data| */
    alignas(max_align_t) uint8_t data[];
};

static size_t align_up(size_t n)
{
    size_t mask = alignof(max_align_t) - 1;

    return (n + mask) & ~mask;
}

/* The size of the next block: double the newest, but no more than may be held and no less than
 * |need|. */
static size_t next_size(const struct arena *a, size_t need)
{
    size_t size = a->first_size;
    size_t room = a->limit - a->held;

    if (a->blocks != NULL)
        size = a->blocks->size > SIZE_MAX / 4 ? need : 2 * a->blocks->size;
    if (size > room)
        size = room;
    return size > need ? size : need;
}

static bool grow(struct arena *a, size_t need)
{
    struct arena_block *block;
    size_t size;

    if (need > a->limit - a->held || need > SIZE_MAX / 2)
        return false;
    size = next_size(a, need);
    block = memory_resize(NULL, sizeof(*block) + size);
    if (block == NULL)
        return false;
    block->older = a->blocks;
    block->size = size;
    poison(block->data, size);
    a->blocks = block;
    a->held += size;
    a->used = 0;
    return true;
}

static void drop(struct arena_block *block)
{
    unpoison(block->data, block->size);
    memory_give(block);
}

/* |size| bytes from |from| on in the newest block, or from the start of a new one. */
static uint8_t *carve(struct arena *a, size_t from, size_t size)
{
    uint8_t *p;

    if (a->blocks == NULL || from > a->blocks->size || size > a->blocks->size - from) {
        if (!grow(a, size))
            return NULL;
        from = 0;
    }
    p = a->blocks->data + from;
    unpoison(p, size);
    a->used = from + size;
    return p;
}

void arena_init(struct arena *a, size_t first_size, size_t limit)
{
    *a = (struct arena){.first_size = first_size, .limit = limit};
}

void *arena_take(struct arena *a, size_t size)
{
    void *p = carve(a, align_up(a->used), size);

    if (p != NULL)
        memset(p, 0, size);
    return p;
}

void *arena_take_bytes(struct arena *a, size_t size)
{
    return carve(a, a->used, size);
}

struct bytes arena_copy(struct arena *a, struct bytes b)
{
    uint8_t *copy;

    if (b.len == 0)
        return BYTES_NONE;
    copy = arena_take_bytes(a, b.len);
    if (copy == NULL)
        return BYTES_NONE;
    memcpy(copy, b.data, b.len);
    return bytes_from(copy, b.len);
}

char *arena_text(struct arena *a, struct bytes b)
{
    char *copy = b.len == SIZE_MAX ? NULL : arena_take_bytes(a, b.len + 1);

    if (copy == NULL)
        return NULL;
    if (b.len > 0)
        memcpy(copy, b.data, b.len);
    copy[b.len] = '\0';
    return copy;
}

void arena_reset(struct arena *a)
{
    struct arena_block *block = a->blocks;

    while (block != NULL && block->older != NULL) {
        struct arena_block *older = block->older;

        drop(block);
        block = older;
    }
    /* A first block made large for one large piece is not what the next user should carry. */
    if (block != NULL && block->size > a->first_size) {
        drop(block);
        block = NULL;
    }
    if (block != NULL)
        poison(block->data, block->size);
    a->blocks = block;
    a->held = block == NULL ? 0 : block->size;
    a->used = 0;
}

void arena_release(struct arena *a)
{
    while (a->blocks != NULL) {
        struct arena_block *block = a->blocks;

        a->blocks = block->older;
        drop(block);
    }
    a->held = 0;
    a->used = 0;
}
