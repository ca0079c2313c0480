/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The demonstration: ten servers, one of them bad, or what a scenario says; steady open-loop load
 * through the proxy, first with ejection off, then on. Real processes of this very program on
 * loopback, nothing else.
 */
#ifndef LAB_DEMO_H
#define LAB_DEMO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/units.h"
#include "lab/demo_scenario.h"

enum demo_style {
    DEMO_LIVE, /* a table that is drawn over itself */
    DEMO_PLAIN /* a line a second */
};

struct demo_options {
    uint64_t seconds; /* of load, both halves together */
    double rate;      /* requests a second */
    uint64_t seed;
    const struct demo_scenario *scenario; /* NULL: the one that fails half of its requests */
    enum demo_style style;
    bool keep; /* go on after the comparison until interrupted */
};

/* Prints to standard output. True: all was shown. Errors go to standard error. */
bool demo_run(const struct demo_options *o);

#endif
