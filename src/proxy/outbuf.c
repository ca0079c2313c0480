/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/outbuf.h"

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
    }
    if (data.len > OUTBUF_SIZE - b->end)
        forget_written(b);
    if (data.len > OUTBUF_SIZE - b->end)
        return false;
    memcpy(b->data + b->end, data.data, data.len);
    b->end += (uint32_t)data.len;
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
    slab_give(slab, b->data);
    b->data = NULL;
    b->begin = 0;
    b->end = 0;
}
