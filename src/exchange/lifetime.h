/* SPDX-License-Identifier: Apache-2.0 */
/* How long connections live that could go on for ever, clients' and hosts'. */
#ifndef EXCHANGE_LIFETIME_H
#define EXCHANGE_LIFETIME_H

#include "base/rng.h"
#include "base/units.h"

/*
 * The end of a connection that begins |now| and is to reach |age|, less a tenth at most, drawn:
 * connections that were opened together do not all go together. An |age| of 0: MONO_NEVER.
 */
mono_ns lifetime_end(mono_ns now, span_ns age, struct rng *rng);

/*
 * Until when a connection that falls idle |now| may stay so. From its |end| on it goes, but first
 * it is left alone for |grace|: a client that comes again and again is told by its next answer, and
 * never finds the connection closed just as it sends.
 */
static inline mono_ns lifetime_idle(mono_ns now, span_ns idle, mono_ns end, span_ns grace)
{
    mono_ns at = mono_after(now, idle);
    mono_ns last;

    if (end >= at)
        return at;
    last = mono_after(now, grace);
    return mono_min(at, end > last ? end : last);
}

#endif
