/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange/lifetime.h"

#define STEPS 100 /* of the tenth, in thousandths of the age */

mono_ns lifetime_end(mono_ns now, span_ns age, struct rng *rng)
{
    if (age == 0)
        return MONO_NEVER;
    return mono_after(now, age - age / 1000 * rng_below(rng, STEPS + 1));
}
