/* SPDX-License-Identifier: Apache-2.0 */
/* Time, in the one unit the whole tree uses. Nothing here reads a clock. */
#ifndef BASE_UNITS_H
#define BASE_UNITS_H

#include <stdint.h>

typedef uint64_t mono_ns; /* an instant: nanoseconds on the monotonic clock */
typedef uint64_t span_ns; /* a length of time */
typedef uint64_t
    wall_ns; /* nanoseconds since 1970-01-01 UTC; only to be shown, never computed with */

#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S  UINT64_C(1000000000)

#define MONO_NEVER UINT64_MAX /* later than every instant */

/* The instant |d| after |t|, or MONO_NEVER where that does not exist. */
static inline mono_ns mono_after(mono_ns t, span_ns d)
{
    return d > MONO_NEVER - t ? MONO_NEVER : t + d;
}

/* Time left from |now| to |t|; zero where it has come, MONO_NEVER where it never comes. */
static inline span_ns mono_until(mono_ns now, mono_ns t)
{
    if (t == MONO_NEVER)
        return MONO_NEVER;
    return t > now ? t - now : 0;
}

/* Time gone from |t| to |now|; zero where |now| is not later than |t|. */
static inline span_ns mono_since(mono_ns t, mono_ns now)
{
    return now > t ? now - t : 0;
}

static inline mono_ns mono_min(mono_ns a, mono_ns b)
{
    return a < b ? a : b;
}

#endif
