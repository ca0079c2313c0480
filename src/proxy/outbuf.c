/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/outbuf.h"

#include <assert.h>

#include "base/memory.h"

static void forget_written(struct outbuf *b)
{
    if (b->keep || b->begin == 0)
        return;
    memmove(b->data, b->data + b->begin, b->end - b->begin);
    b->end -= b->begin;
    b->begin = 0;
}

bool outbuf_append(struct outbuf *b, struct slab *slab, struct bytes data)
{
    if (data.len == 0)
        return true;
    if (b->data == NULL) {
        b->data = slab_take(slab);
        if (b->data == NULL)
            return false;
        b->begin = 0;
        b->end = 0;
        b->size = OUTBUF_SIZE;
    }
    if (data.len > b->size - b->end)
        forget_written(b);
    if (data.len > b->size - b->end)
        return false;
    memcpy(b->data + b->end, data.data, data.len);
    b->end += (uint32_t)data.len;
    return true;
}

static void give_data(struct outbuf *b, struct slab *slab)
{
    if (b->size > OUTBUF_SIZE)
        memory_give(b->data);
    else
        slab_give(slab, b->data);
}

bool outbuf_grow(struct outbuf *b, struct slab *slab, uint32_t size)
{
    uint8_t *data = memory_take(size);

    assert(b->data != NULL && size > b->size);
    if (data == NULL)
        return false;
    memcpy(data, b->data, b->end);
    give_data(b, slab);
    b->data = data;
    b->size = size;
    return true;
}

static bool hold_rest(struct outbuf *b, struct slab *slab, const struct bytes *parts, size_t n,
                      size_t taken)
{
    for (size_t i = 0; i < n; i++) {
        size_t skip = taken < parts[i].len ? taken : parts[i].len;

        taken -= skip;
        if (!outbuf_append(b, slab, bytes_skip(parts[i], skip)))
            return false;
    }
    return true;
}

int outbuf_write(struct outbuf *b, struct slab *slab, struct link *link, const struct bytes *parts,
                 size_t n)
{
    ptrdiff_t taken = 0;

    if (outbuf_empty(b) && !b->keep) {
        taken = link_write(link, parts, n);
        if (taken < 0)
            return (int)taken;
    }
    if (!hold_rest(b, slab, parts, n, (size_t)taken))
        return IO_NO_MEMORY;
    return b->keep ? outbuf_flush(b, slab, link) : 0;
}

int outbuf_flush(struct outbuf *b, struct slab *slab, struct link *link)
{
    struct bytes held;
    ptrdiff_t taken;

    if (outbuf_empty(b))
        return 0;
    held = bytes_from(b->data + b->begin, b->end - b->begin);
    taken = link_write(link, &held, 1);
    if (taken < 0)
        return (int)taken;
    b->begin += (uint32_t)taken;
    if (outbuf_empty(b) && !b->keep)
        outbuf_release(b, slab);
    return 0;
}

void outbuf_release(struct outbuf *b, struct slab *slab)
{
    give_data(b, slab);
    b->data = NULL;
    b->size = 0;
    b->begin = 0;
    b->end = 0;
}
