/* SPDX-License-Identifier: Apache-2.0 */
/* Damage to a text, for the laws of those who read it. There is room for one piece more. */
#ifndef TESTS_CONTROL_MUTATE_H
#define TESTS_CONTROL_MUTATE_H

#include <string.h>

#include "base/rng.h"

/* One change: a byte, a cut, a piece put in, a part said again somewhere else. */
static size_t mutate(char *text, size_t len, const char *const *pieces, size_t count,
                     struct rng *rng)
{
    size_t at = rng_below(rng, (uint32_t)len);
    size_t n = 1 + rng_below(rng, 40);
    const char *piece = pieces[rng_below(rng, (uint32_t)count)];

    if (n > len - at)
        n = len - at;
    switch (rng_below(rng, 4)) {
    case 0:
        text[at] = (char)rng_below(rng, 256);
        return len;
    case 1:
        memmove(text + at, text + at + n, len - at - n);
        return len - n;
    case 2:
        memmove(text + at + strlen(piece), text + at, len - at);
        memcpy(text + at, piece, strlen(piece));
        return len + strlen(piece);
    default:
        memmove(text + rng_below(rng, (uint32_t)(len - n + 1)), text + at, n);
        return len;
    }
}

#endif
