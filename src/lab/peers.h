/* SPDX-License-Identifier: Apache-2.0 */
/* What the admin page /clusters?format=json says of the hosts of a cluster. */
#ifndef LAB_PEERS_H
#define LAB_PEERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"
#include "base/bytes.h"

#define PEER_REASON_MAX 63

struct peer_state {
    struct address address;
    bool ejected;
    char reason[PEER_REASON_MAX + 1]; /* of the last ejection; "": none so far */
    uint64_t ejected_ms_ago;
    uint64_t back_in_ms;
    uint64_t attempts; /* requests sent to it */
};

/* How many hosts of |cluster| were read into |peers|; 0: the page is not what it should be. */
uint32_t peers_read(struct bytes page, const char *cluster, struct peer_state *peers,
                    uint32_t room);

#endif
