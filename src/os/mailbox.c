/* SPDX-License-Identifier: Apache-2.0 */
#include "os/mailbox.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/list.h"

/*
 * |turn| of cell i of a ring of n: i + k n when it waits for the message number i + k n, one more
 * when that message lies in it. So neither side needs to look at the other's position.
 */
struct cell {
    atomic_uint_fast64_t turn;
    struct message message;
};

struct os_mailbox {
    struct mailbox base;
    struct poller *receiver;
    uint64_t mask;
    _Alignas(64) atomic_uint_fast64_t posted; /* senders' */
    _Alignas(64) uint64_t taken;              /* the receiver's */
    _Alignas(64) struct cell cells[];
};

static struct os_mailbox *mailbox_of(struct mailbox *m)
{
    return CONTAINER_OF(m, struct os_mailbox, base);
}

/* The cell for the next message, claimed; NULL: full. */
static struct cell *claim(struct os_mailbox *m, uint64_t *number)
{
    uint64_t n = atomic_load_explicit(&m->posted, memory_order_relaxed);

    for (;;) {
        struct cell *c = &m->cells[n & m->mask];
        uint64_t turn = atomic_load_explicit(&c->turn, memory_order_acquire);

        if (turn < n)
            return NULL; /* last round's message is still in it */
        if (turn > n) {
            n = atomic_load_explicit(&m->posted, memory_order_relaxed);
        } else if (atomic_compare_exchange_weak_explicit(
                       &m->posted, &n, n + 1, memory_order_relaxed, memory_order_relaxed)) {
            *number = n;
            return c;
        }
    }
}

static bool os_mailbox_post(struct mailbox *base, const struct message *message)
{
    struct os_mailbox *m = mailbox_of(base);
    uint64_t number = 0;
    struct cell *c = claim(m, &number);

    if (c == NULL)
        return false;
    c->message = *message;
    atomic_store_explicit(&c->turn, number + 1, memory_order_release);
    if (m->receiver != NULL)
        poller_wake(m->receiver);
    return true;
}

/* Empty also where a sender has claimed the next cell but not yet filled it: it will wake us. */
static bool os_mailbox_take(struct mailbox *base, struct message *out)
{
    struct os_mailbox *m = mailbox_of(base);
    struct cell *c = &m->cells[m->taken & m->mask];

    if (atomic_load_explicit(&c->turn, memory_order_acquire) != m->taken + 1)
        return false;
    *out = c->message;
    atomic_store_explicit(&c->turn, m->taken + m->mask + 1, memory_order_release);
    m->taken++;
    return true;
}

static const struct mailbox_ops ops = {.post = os_mailbox_post, .take = os_mailbox_take};

static size_t rounded(size_t size)
{
    return (size + 63) / 64 * 64;
}

struct mailbox *os_mailbox_create(struct poller *receiver, uint32_t room)
{
    struct os_mailbox *m;

    assert(room >= 2 && (room & (room - 1)) == 0);
    m = aligned_alloc(64, rounded(sizeof(*m) + room * sizeof(struct cell)));
    if (m == NULL)
        return NULL;
    m->base.ops = &ops;
    m->receiver = receiver;
    m->mask = room - 1;
    m->taken = 0;
    atomic_init(&m->posted, 0);
    for (uint32_t i = 0; i < room; i++)
        atomic_init(&m->cells[i].turn, i);
    return &m->base;
}

void os_mailbox_free(struct mailbox *m)
{
    if (m != NULL)
        free(mailbox_of(m));
}
