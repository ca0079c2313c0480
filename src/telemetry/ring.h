/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bounded ring of byte runs from one thread to one other, without locks. A run is contiguous, so
 * that it can be built and read in place; where it does not fit before the end, the end is skipped.
 */
#ifndef TELEMETRY_RING_H
#define TELEMETRY_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RING_ALIGN 8

/* Positions only grow; the place is the position modulo the size. */
struct ring {
    uint8_t *data;
    uint64_t size;                      /* a power of two */
    _Alignas(64) _Atomic uint64_t head; /* by the writer: what is published ends here */
    uint64_t tail_seen;                 /* the writer's last look at |tail| */
    uint64_t reserved;                  /* where the run being built begins */
    _Alignas(64) _Atomic uint64_t tail; /* by the reader: what is taken ends here */
};

/* |size|: a power of two, at least 64. False: no memory. */
bool ring_init(struct ring *r, size_t size);
void ring_release(struct ring *r);

/* Writer. Room for |size| bytes, aligned to RING_ALIGN; NULL: full, or a run larger than half the
 * ring. */
void *ring_reserve(struct ring *r, size_t size);

/* Writer. Publishes what was reserved last. */
void ring_commit(struct ring *r);

/* Reader. The oldest run, NULL where there is none; valid until ring_consume. */
void *ring_peek(struct ring *r);

/* Reader. Gives back the room of the run peeked at. */
void ring_consume(struct ring *r);

#endif
