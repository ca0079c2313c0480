/* SPDX-License-Identifier: Apache-2.0 */
/* One small request and its whole answer: for admin pages and switches. Waits by turning the loop.
 */
#ifndef LAB_FETCH_H
#define LAB_FETCH_H

#include <stdint.h>

#include "base/address.h"
#include "base/bytes.h"
#include "lab/buffer.h"
#include "lab/caller.h"
#include "lab/loop.h"

#define FETCH_BODY_MAX (4u * 1024 * 1024)

struct fetch {
    struct address to;
    const char *method;
    const char *target;
    struct bytes body;
    span_ns timeout;
};

/*
 * The status, with |*answer| the body, to be released; or 0: no whole answer in time, |*outcome|
 * says why. Other events are told meanwhile, so it must not be called from inside one.
 */
uint32_t fetch(struct lab_loop *loop, const struct fetch *f, struct buffer *answer,
               enum call_outcome *outcome);

#endif
