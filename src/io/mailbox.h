/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages from any loop to one loop. Posting wakes the receiver's poller. First in, first out
 * for one sender. Bounded: a full mailbox refuses, and the sender must be able to live with that.
 */
#ifndef IO_MAILBOX_H
#define IO_MAILBOX_H

#include <stdbool.h>
#include <stdint.h>

struct mailbox;

/* Copied whole. What the fields mean is between sender and receiver. */
struct message {
    uint32_t kind;
    uint32_t index;
    uint64_t value;
    uint64_t at; /* mono_ns, where it matters */
    void *object;
};

struct mailbox_ops {
    bool (*post)(struct mailbox *m, const struct message *message);
    bool (*take)(struct mailbox *m, struct message *out);
};

struct mailbox {
    const struct mailbox_ops *ops;
};

/* From any thread. False: full, nothing was posted. */
static inline bool mailbox_post(struct mailbox *m, const struct message *message)
{
    return m->ops->post(m, message);
}

/* By the receiver only. False: empty. */
static inline bool mailbox_take(struct mailbox *m, struct message *out)
{
    return m->ops->take(m, out);
}

#endif
