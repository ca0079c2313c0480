/* SPDX-License-Identifier: Apache-2.0 */
/* The clock. Read by whoever runs a loop, once a turn for all that the turn does and once for how
 * long the wait may be; everybody else is given |now|. */
#ifndef IO_CLOCK_H
#define IO_CLOCK_H

#include "base/units.h"

struct clock {
    mono_ns (*read)(struct clock *c);
    wall_ns (*wall)(struct clock *c); /* only to be shown: it steps */
};

static inline mono_ns clock_read(struct clock *c)
{
    return c->read(c);
}

static inline wall_ns clock_wall(struct clock *c)
{
    return c->wall(c);
}

#endif
