/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that come in at the end and go out at the front. Grows; whoever fills it bounds it. */
#ifndef LAB_BUFFER_H
#define LAB_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

struct buffer {
    uint8_t *data;
    size_t start; /* of what has not gone out */
    size_t end;
    size_t room;
};

static inline void buffer_init(struct buffer *b)
{
    *b = (struct buffer){NULL, 0, 0, 0};
}

static inline size_t buffer_len(const struct buffer *b)
{
    return b->end - b->start;
}

/* Valid until the buffer is next added to. */
static inline struct bytes buffer_bytes(const struct buffer *b)
{
    return bytes_from(b->data == NULL ? NULL : b->data + b->start, buffer_len(b));
}

/* False: no memory, nothing was added. */
bool buffer_add(struct buffer *b, struct bytes data);

/* |n| bytes more to be written at the place returned; NULL: no memory. */
uint8_t *buffer_grow(struct buffer *b, size_t n);

/* The first |n| are done with. Memory is kept up to a small size once the buffer is empty. */
void buffer_take(struct buffer *b, size_t n);

void buffer_release(struct buffer *b);

#endif
