/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A count over the last ten seconds, the present one included. One writer, any readers: a second
 * and its count are one word, so nobody sees half of a change.
 */
#ifndef STATS_WINDOW_H
#define STATS_WINDOW_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/units.h"

#define WINDOW_SECONDS 10

/* Zeroed memory is an empty one. */
struct window {
    _Atomic uint64_t at[WINDOW_SECONDS]; /* second + 1 above, count below */
};

/* By the owner only. */
void window_add(struct window *w, mono_ns now);

uint64_t window_sum(const struct window *w, mono_ns now);

#endif
