/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples on their way from one worker to the watch: one writer, one reader, no locks. Above its
 * share of EVIDENCE_RATE in half a second the writer thins: of answers that are no failures only
 * one of two, four, ... goes on, and says for how many it stands, so that no share is bent. What
 * finds no room is lost. Pure.
 */
#ifndef POLICY_EVIDENCE_RING_H
#define POLICY_EVIDENCE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "policy/evidence.h"

#define EVIDENCE_RING_ROOM 8192u /* a power of two */
#define EVIDENCE_RATE      4096u /* all workers together */

/* Zeroed memory is an empty one. Fields only touched by evidence_ring.c. */
struct evidence_ring {
    _Alignas(64) _Atomic uint32_t written;
    _Atomic bool asked_for; /* the reader has seen it empty, and wants to be told of the next */
    uint32_t others;        /* workers beside this one */
    uint32_t in_slice;      /* of the writer, here and below: put in this half second */
    uint32_t draws;
    uint64_t slice;
    _Alignas(64) _Atomic uint32_t read;
    struct evidence at[EVIDENCE_RING_ROOM];
};

enum evidence_put {
    EVIDENCE_PUT,
    EVIDENCE_PUT_TELL, /* the reader sleeps: tell it */
    EVIDENCE_THINNED,  /* another one stands for it */
    EVIDENCE_LOST      /* there is no room */
};

/* The writer only. */
enum evidence_put evidence_ring_put(struct evidence_ring *r, const struct evidence *s);

/* The reader only. False: empty. */
bool evidence_ring_take(struct evidence_ring *r, struct evidence *out);

/* The reader only: it sleeps until it is told. False: there is something already. */
bool evidence_ring_sleep(struct evidence_ring *r);

#endif
