/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an exchange tells of its attempts: one piece of evidence at each one's end, and before that
 * where it is open for longer than nearly all others take. What the proxy itself refused, and a
 * connection the host had closed before our bytes came, are never evidence (law 2).
 */
#ifndef EXCHANGE_WITNESS_H
#define EXCHANGE_WITNESS_H

#include <stdbool.h>
#include <stdint.h>

#include "exchange/exchange.h"
#include "policy/evidence.h"

struct evidence_ring;

/* One worker's. */
struct witness {
    struct evidence_ring *ring;
    uint32_t open; /* attempts that may yet be late */
    bool late;     /* our loop is: times say nothing */
    bool tell;     /* the watch sleeps: wake it, then say false */
    uint32_t lost; /* for want of room in the ring; to be counted, then 0 */
};

/*
 * The present attempt waits for a connect, or its request is whole at the host: its time runs, anew
 * each time.
 */
void witness_open(struct exchange *x);

/* The present attempt has come to |outcome|. */
void witness_end(struct exchange *x, enum evidence_outcome outcome, mono_ns now);

/* It comes to nothing that would be evidence. */
void witness_forget(struct exchange *x);

/* Was it waited for in vain while our own loop was late? It is no sign of the host then. */
bool witness_doubts(const struct cluster_rt *rt, enum outlier_report report);

/* Tells of those that have become late. */
void witness_look(struct cluster_rt *rt, mono_ns now);

#endif
