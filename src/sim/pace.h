/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a server works on a request, and what of that is a fault: slow by a factor, at once or
 * little by little; slow on some requests only; frozen now and then; given the heavy ones.
 */
#ifndef SIM_PACE_H
#define SIM_PACE_H

#include <stdbool.h>
#include <stdint.h>

#include "codec/method.h"
#include "sim/world.h"

/* Which requests are met by the fault. */
enum pace_whom { PACE_ALL, PACE_READS, PACE_WRITES };

/* Zeroed: as fast as ever. */
struct pace {
    double sigma; /* log-normal, the usual time its median; 0: the usual time and an exponential */
    double slow;  /* factor; 0 is 1 */
    mono_ns slow_from;
    span_ns slow_ramp;      /* from |slow_from| on until it is slow by all of the factor */
    uint32_t tail_permille; /* of requests are slow by |tail| */
    double tail;
    uint32_t heavy_permille; /* of requests are heavy: no fault, they take so much longer */
    double heavy;
    uint64_t heavy_bytes; /* their answer's body, so that they can be told apart */
    span_ns freeze_every; /* 0: never */
    mono_ns freeze_from;  /* a while begins there, with the time that it runs */
    span_ns freeze_for;
    enum pace_whom whom; /* of |slow| and |tail| */
};

/* What one request will take. */
struct pace_time {
    span_ns work;
    bool heavy;
    bool blamed; /* longer than its work is worth */
};

struct pace_time pace_draw(const struct pace *p, struct world *w, span_ns usual,
                           enum method method);

/* The factor by which it is slow at |now|. */
double pace_slow_by(const struct pace *p, mono_ns now);

/* |work| begun at |now| takes so long: while it is frozen nothing goes on. */
span_ns pace_thawed(const struct pace *p, mono_ns now, span_ns work);

#endif
