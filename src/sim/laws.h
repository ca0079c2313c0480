/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The laws of DESIGN.md 2, held against what the simulator knows to be true: after every turn of a
 * loop what is cheap, each virtual second what is not, the rest at the end. The first law broken
 * stops the world; world.failure names it with seed and time.
 *
 * Law 9 is checked by running twice.
 */
#ifndef SIM_LAWS_H
#define SIM_LAWS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/rig.h"

/* Timers' ticks, stalls, the way to the client and back, one lost segment. */
#define LAWS_SLACK (2 * NS_PER_S)

struct laws {
    struct world_watch watch; /* first */
    struct rig *rig;
    const struct rig_settings *truth; /* what ought to hold: not asked of the proxy */
    uint32_t epoch;
    uint32_t ejected_count;
    bool ejected[RIG_HOSTS_MAX];
    uint64_t ejections;
    uint64_t checks;
    mono_ns started;
    mono_ns next_second;
    mono_ns unused_since; /* a slot was free, and a request waited for one; MONO_NEVER: not now */
};

/* From now on they are checked. |truth| is what the proxy was, or should have been, given. */
void laws_init(struct laws *l, struct rig *r, const struct rig_settings *truth);

/* When the clients are quiet and each has had its time: nothing is under way, nothing is held. */
void laws_check_quiet(struct laws *l);

/* When the proxy is freed as well. */
void laws_check_freed(struct laws *l);

#endif
