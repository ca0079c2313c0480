/* SPDX-License-Identifier: Apache-2.0 */
/* What the admin pages look at, taken together once a request. */
#ifndef ADMIN_VIEW_H
#define ADMIN_VIEW_H

#include <stdint.h>

#include "base/units.h"
#include "io/clock.h"
#include "io/log.h"
#include "model/process_state.h"
#include "model/snapshot.h"
#include "stats/metrics.h"

/* A counter or gauge of a part that admin does not know, as "firebreak.<name>". */
struct admin_extra {
    struct metric_info info;
    const _Atomic uint64_t *cell;
};

/* Bytes: in use on the heap, taken from the system for it, resident; and descriptors. */
struct admin_usage {
    uint64_t allocated;
    uint64_t heap;
    uint64_t resident;
    uint64_t descriptors; /* open */
    uint64_t descriptors_max;
};

struct admin_view {
    struct snapshot *snapshot; /* to be looked at, or kept by a reference */
    struct process_state *process;
    mono_ns now;
    struct clock *clock;
    struct log *log;                          /* may be NULL */
    void (*usage)(struct admin_usage *usage); /* NULL: not known */
    const struct admin_extra *extras;
    uint32_t extra_count;
    uint64_t *extras_before; /* counted before the last reset */
};

#define ADMIN_EXTRAS_MAX 16

/* "0.0.0.0:8080" as bound: the real port where 0 was asked for. */
struct address view_listener_address(const struct listener_config *l);

/* "LIVE" or "DRAINING"; the latter also while told to fail health checks. */
const char *view_state_text(const struct admin_view *v);
bool view_draining(const struct admin_view *v);

#endif
