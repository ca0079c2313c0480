/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Received bytes that could not be used yet: the part of a head, of a trailer section, a
 * pipelined request. Empty most of the time, and then without memory. Bounded by whoever fills it.
 */
#ifndef PROXY_INBUF_H
#define PROXY_INBUF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

struct inbuf {
    uint8_t *data;
    uint32_t len;
    uint32_t size;
};

/* Most it may hold: a whole head that is not quite there, and one loan. */
#define INBUF_MAX (1u << 20)

/* Appends. False: no memory, or over INBUF_MAX. |*allocations| counts what it asked of the heap. */
bool inbuf_append(struct inbuf *b, struct bytes more, uint64_t *allocations);

/* Keeps only |rest|, which lies inside what it holds (or is empty). */
void inbuf_keep(struct inbuf *b, struct bytes rest);

void inbuf_free(struct inbuf *b);

/* Inline, as mostly it holds nothing. */
static inline void inbuf_release(struct inbuf *b)
{
    if (b->data != NULL)
        inbuf_free(b);
}

static inline struct bytes inbuf_bytes(const struct inbuf *b)
{
    return bytes_from(b->data, b->len);
}

#endif
