/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/inbuf.h"

#include "base/memory.h"

#define FIRST_SIZE 2048u

static bool make_room(struct inbuf *b, uint32_t needed, uint64_t *allocations)
{
    uint32_t size = b->size == 0 ? FIRST_SIZE : b->size;
    uint8_t *data;

    while (size < needed)
        size *= 2;
    if (size == b->size)
        return true;
    data = memory_resize(b->data, size);
    if (data == NULL)
        return false;
    ++*allocations;
    b->data = data;
    b->size = size;
    return true;
}

bool inbuf_append(struct inbuf *b, struct bytes more, uint64_t *allocations)
{
    if (more.len == 0)
        return true;
    if (more.len > INBUF_MAX - b->len)
        return false;
    if (!make_room(b, b->len + (uint32_t)more.len, allocations))
        return false;
    memcpy(b->data + b->len, more.data, more.len);
    b->len += (uint32_t)more.len;
    return true;
}

void inbuf_keep(struct inbuf *b, struct bytes rest)
{
    if (rest.len == 0) {
        inbuf_release(b);
        return;
    }
    if (rest.data != b->data)
        memmove(b->data, rest.data, rest.len);
    b->len = (uint32_t)rest.len;
}

void inbuf_free(struct inbuf *b)
{
    memory_give(b->data);
    *b = (struct inbuf){.data = NULL};
}
