/* SPDX-License-Identifier: Apache-2.0 */
/* Bad days of the hosts of a rig: which host, what, when and for how long, drawn from the seed. */
#ifndef SIM_BAD_DAYS_H
#define SIM_BAD_DAYS_H

#include "sim/rig.h"

struct bad_day {
    struct world_event over;
    struct server *server;
    bool on;
};

struct bad_days {
    struct rig *rig;
    uint32_t hosts; /* only the first so many */
    span_ns calm;
    mono_ns until; /* none begins later */
    struct world_event next;
    struct bad_day days[RIG_HOSTS_MAX]; /* one a host */
    uint64_t count;
};

void bad_days_start(struct bad_days *b, struct rig *r, uint32_t hosts, span_ns calm, mono_ns until);

/* All hosts are well again, at once. */
void bad_days_end(struct bad_days *b);

#endif
