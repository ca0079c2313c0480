/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open-loop load on one URL: requests are due by a schedule that no answer can slow down. Each is
 * sent on the connection used last, on a new one where none is idle, and dropped, and counted,
 * where so many are open already.
 */
#ifndef LAB_LOAD_H
#define LAB_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"
#include "lab/arrivals.h"
#include "lab/loop.h"
#include "lab/tally.h"

#define LOAD_PEER_MAX 64

struct load_options {
    struct address to;
    struct call_request request; /* outlives the load */
    enum arrivals_kind arrivals;
    double rate; /* a second */
    span_ns duration;
    span_ns timeout; /* of a request, from when it was due */
    uint32_t connections;
    uint64_t seed;
    /* May be NULL: told of each request that is over, with the x-firebreak-backend of its answer.
     */
    void (*observe)(void *observer, const struct shot *s, const char *peer);
    void *observer;
};

struct load;

/* NULL: no memory. */
struct load *load_create(struct lab_loop *loop, const struct load_options *o);

/* The first request is due now, or thereabouts. Once. */
void load_start(struct load *l);

/* All that was due was sent or dropped, and has ended. */
bool load_done(const struct load *l);

/* Nothing more becomes due; what is under way goes on. */
void load_stop(struct load *l);

const struct tally *load_tally(const struct load *l);
uint32_t load_in_flight(const struct load *l);
uint32_t load_most_in_flight(const struct load *l);

/* Of the schedule: how long requests became due, up to |now|. */
span_ns load_elapsed(const struct load *l);

/* Drops what is under way. Takes NULL. */
void load_free(struct load *l);

#endif
