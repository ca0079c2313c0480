/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded mailbox of the simulator; posting wakes the receiver's loop. */
#ifndef SIM_MAILBOX_H
#define SIM_MAILBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "io/mailbox.h"
#include "sim/world.h"

#define SIM_MAILBOX_ROOM 1024

struct sim_mailbox {
    struct mailbox base; /* first */
    struct world_loop *receiver;
    uint32_t room; /* most messages held: less than SIM_MAILBOX_ROOM to see a full one */
    uint32_t first;
    uint32_t count;
    uint64_t refused;
    struct message ring[SIM_MAILBOX_ROOM];
};

void sim_mailbox_init(struct sim_mailbox *m, struct world_loop *receiver);

#endif
