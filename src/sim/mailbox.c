/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/mailbox.h"

static bool post(struct mailbox *base, const struct message *message)
{
    struct sim_mailbox *m = (struct sim_mailbox *)(void *)base;

    if (m->count >= m->room) {
        m->refused++;
        return false;
    }
    m->ring[(m->first + m->count++) % SIM_MAILBOX_ROOM] = *message;
    world_digest_value(m->receiver->world, (uint64_t)message->kind << 32 | message->index);
    world_loop_wake(m->receiver);
    return true;
}

static bool take(struct mailbox *base, struct message *out)
{
    struct sim_mailbox *m = (struct sim_mailbox *)(void *)base;

    if (m->count == 0)
        return false;
    *out = m->ring[m->first];
    m->first = (m->first + 1) % SIM_MAILBOX_ROOM;
    m->count--;
    m->receiver->progress++;
    return true;
}

static const struct mailbox_ops table = {.post = post, .take = take};

void sim_mailbox_init(struct sim_mailbox *m, struct world_loop *receiver)
{
    m->base.ops = &table;
    m->receiver = receiver;
    m->room = SIM_MAILBOX_ROOM;
    m->first = 0;
    m->count = 0;
    m->refused = 0;
}
