/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A byte stream to a peer, completion style: the owner says what it wants, and is told what
 * happened. epoll, io_uring (multishot receive into provided buffers, batched sends) and the
 * simulated network stand behind it alike.
 *
 * Rules that every back end keeps:
 *  - Events come only out of poller_dispatch, never out of a call on the link. So a call never
 *    re-enters its owner.
 *  - |received| lends the bytes: they belong to the back end and are valid until the callback
 *    returns. The owner takes all of them (uses or copies); it may have asked to stop reading, then
 *    no further call follows until link_read_start. An idle link so holds no buffer at all. At most
 *    LINK_LOAN_MAX bytes are lent at once.
 *  - link_write takes what there is room for (to the kernel, or into the back end's own send
 *    buffer) and says how much. What was not taken stays the caller's; |writable| comes once when
 *    there is room again. A back end never keeps a pointer to the caller's bytes.
 *  - |failed| comes whether reading is on or not, but never before bytes that the peer sent ahead
 * of the failure and that can still be received: while reading is stopped and such bytes wait, it
 *    is held back until they were received.
 *  - After |failed| only link_close and link_abort make sense. After close or abort no event comes
 * any more, even one collected earlier in the same turn, and the link is gone for the owner.
 */
#ifndef IO_LINK_H
#define IO_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/address.h"
#include "base/bytes.h"
#include "base/units.h"

struct link;

/* A const table a kind of owner. Every entry is set. */
struct link_events {
    void (*opened)(void *owner); /* a connect succeeded; once, never for accepted links */
    void (*received)(void *owner, struct bytes data); /* len > 0 */
    void (*ended)(void *owner);                       /* the peer's FIN: no more will be received */
    void (*writable)(void *owner);          /* room again after a write that was not taken whole */
    void (*failed)(void *owner, int error); /* an io_error: connect failed, or reset */
};

/* What the kernel knows of the path (TCP_INFO). */
struct link_info {
    span_ns rtt;
    span_ns rtt_variance;
    uint32_t retransmits; /* in total, over the link's life */
    uint32_t lost;
    uint32_t unacked;
    bool known; /* false: the back end has none (unix sockets) */
};

struct link_ops {
    void (*read_start)(struct link *l);
    void (*read_stop)(struct link *l);
    ptrdiff_t (*write)(struct link *l, const struct bytes *parts, size_t n);
    void (*shut)(struct link *l);
    void (*close)(struct link *l, bool reset);
    void (*info)(struct link *l, struct link_info *out);
};

/* Back ends embed it first. */
struct link {
    const struct link_ops *ops;
    const struct link_events *events;
    void *owner;
};

/* Who is told from now on. A new link from a listener has neither until this is called. */
static inline void link_own(struct link *l, const struct link_events *events, void *owner)
{
    l->events = events;
    l->owner = owner;
}

#define LINK_LOAN_MAX 65536 /* most bytes in one |received| */

/* From now on |received|, |ended|. A link starts stopped. */
static inline void link_read_start(struct link *l)
{
    l->ops->read_start(l);
}

static inline void link_read_stop(struct link *l)
{
    l->ops->read_stop(l);
}

#define LINK_PARTS_MAX 16 /* most parts in one write */

/*
 * Bytes taken, 0 to the sum of |parts|; or a negative io_error: nothing more can be written, ever.
 * A write error is not yet the end: what the peer sent before is still to be received, so the owner
 * reads on until |ended| or |failed| before it judges. Only before |opened| it must not be called.
 */
static inline ptrdiff_t link_write(struct link *l, const struct bytes *parts, size_t n)
{
    return l->ops->write(l, parts, n);
}

/* FIN after all that was taken. Reading goes on. */
static inline void link_shut(struct link *l)
{
    l->ops->shut(l);
}

/* Gives the link back: FIN, and the kernel delivers what was taken. Also ends a connect under way.
 */
static inline void link_close(struct link *l)
{
    l->ops->close(l, false);
}

/* Gives the link back with a RST. */
static inline void link_abort(struct link *l)
{
    l->ops->close(l, true);
}

static inline void link_info(struct link *l, struct link_info *out)
{
    l->ops->info(l, out);
}

#endif
