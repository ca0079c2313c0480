/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a link had no room for. While it holds anything, its source is not read, so it never holds
 * more than came of one loan: a slow reader costs one buffer.
 *
 *    0 ......... begin ......... end ......... size
 *    | written     |  to write    |   room       |
 *
 * With |keep|, what was written stays, so that all can be written again to another link. Only that
 * can make it larger than OUTBUF_SIZE.
 */
#ifndef PROXY_OUTBUF_H
#define PROXY_OUTBUF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/slab.h"
#include "io/error.h"
#include "io/link.h"

/* One loan, what is kept beside it, and the framing put around both. */
#define OUTBUF_SIZE (2u * LINK_LOAN_MAX)

struct outbuf {
    uint8_t *data; /* from the worker's slab, or grown; NULL: holds nothing */
    uint32_t begin;
    uint32_t end;
    uint32_t size;
    bool keep;
};

static inline bool outbuf_empty(const struct outbuf *b)
{
    return b->begin == b->end;
}

/* Appends a copy. False: no memory or no room. */
bool outbuf_append(struct outbuf *b, struct slab *slab, struct bytes data);

/* Makes one that holds something |size| large, more than it is. False: no memory. */
bool outbuf_grow(struct outbuf *b, struct slab *slab, uint32_t size);

/*
 * Writes |parts| to |link| behind what is already held; what the link does not take is held. The
 * result: 0, or a negative io_error of the link's (then nothing is held), or IO_NO_MEMORY.
 */
int outbuf_write(struct outbuf *b, struct slab *slab, struct link *link, const struct bytes *parts,
                 size_t n);

/* Writes what is held, as far as the link takes it. 0 or a negative io_error. */
int outbuf_flush(struct outbuf *b, struct slab *slab, struct link *link);

/* All that was kept is to be written again. */
static inline void outbuf_rewind(struct outbuf *b)
{
    b->begin = 0;
}

void outbuf_release(struct outbuf *b, struct slab *slab);

#endif
