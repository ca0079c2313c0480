/* SPDX-License-Identifier: Apache-2.0 */
#include "control/health_news.h"

#include "model/messages.h"

void health_news(struct mailbox *const *workers, uint32_t count, struct cluster_state *state)
{
    const struct message m = {.kind = MESSAGE_HEALTH, .object = state};

    for (uint32_t i = 0; i < count; i++)
        mailbox_post(workers[i], &m);
}
