/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One direction of a message's body: decoded as it came, framed anew as it goes. Chunks are always
 * re-encoded, so what a peer put between them never passes.
 */
#ifndef PROXY_RELAY_H
#define PROXY_RELAY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "codec/http1.h"
#include "io/link.h"

/* Takes what is to be written; it is used or copied before this returns. */
typedef void (*relay_sink)(void *to, const struct bytes *parts, size_t n);

/* Parts on their way to one write. */
struct gather {
    relay_sink sink;
    void *to;
    unsigned count;
    unsigned frame_count;
    struct bytes parts[LINK_PARTS_MAX];
    uint8_t frames[LINK_PARTS_MAX][HTTP1_CHUNK_HEAD_MAX];
};

static inline void gather_init(struct gather *g, relay_sink sink, void *to)
{
    g->sink = sink;
    g->to = to;
    g->count = 0;
    g->frame_count = 0;
}

void gather_flush(struct gather *g);
void gather_add(struct gather *g, struct bytes part);

enum relay_framing {
    RELAY_PLAIN, /* with a length, or until close: as it is */
    RELAY_CHUNKED
};

struct relay {
    struct http1_body body;
    enum relay_framing framing;
    uint64_t moved; /* body bytes, without framing */
};

enum relay_result { RELAY_MORE, RELAY_DONE, RELAY_BAD };

/*
 * Moves what |*in| holds of the body into |g|. RELAY_MORE: all that could be used was; what is
 * left in |*in| (part of a trailer section) must come again, with more behind it. RELAY_DONE: the
 * body is whole and its end framed; |*in| is what follows. RELAY_BAD: |fault| is filled.
 */
enum relay_result relay_feed(struct relay *r, struct bytes *in, struct gather *g,
                             struct http1_fault *fault);

/* The sender has closed: RELAY_DONE where that ends the body properly (framed anew), else
 * RELAY_BAD. */
enum relay_result relay_end(struct relay *r, struct gather *g);

#endif
