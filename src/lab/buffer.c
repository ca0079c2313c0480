/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/buffer.h"

#include <assert.h>

#include "base/memory.h"

#define ROOM_FIRST 1024
#define ROOM_KEPT  4096

static void move_to_front(struct buffer *b)
{
    if (b->start == 0)
        return;
    memmove(b->data, b->data + b->start, b->end - b->start);
    b->end -= b->start;
    b->start = 0;
}

static bool make_room(struct buffer *b, size_t n)
{
    size_t room = b->room == 0 ? ROOM_FIRST : b->room;
    uint8_t *data;

    if (n <= b->room - b->end)
        return true;
    move_to_front(b);
    if (n <= b->room - b->end)
        return true;
    while (room - b->end < n) {
        if (room > SIZE_MAX / 2)
            return false;
        room *= 2;
    }
    data = memory_resize(b->data, room);
    if (data == NULL)
        return false;
    b->data = data;
    b->room = room;
    return true;
}

uint8_t *buffer_grow(struct buffer *b, size_t n)
{
    uint8_t *at;

    if (!make_room(b, n))
        return NULL;
    at = b->data + b->end;
    b->end += n;
    return at;
}

bool buffer_add(struct buffer *b, struct bytes data)
{
    uint8_t *at;

    if (data.len == 0)
        return true;
    at = buffer_grow(b, data.len);
    if (at == NULL)
        return false;
    memcpy(at, data.data, data.len);
    return true;
}

void buffer_take(struct buffer *b, size_t n)
{
    assert(n <= buffer_len(b));

    b->start += n;
    if (b->start < b->end)
        return;
    b->start = b->end = 0;
    if (b->room > ROOM_KEPT)
        buffer_release(b);
}

void buffer_release(struct buffer *b)
{
    memory_give(b->data);
    buffer_init(b);
}
