/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a snapshot takes over from the one before: clusters and listeners that are still there keep
 * their state, hosts keep their slots. Control thread only.
 *
 * A host that is no longer configured goes in three steps, each when all workers have adopted what
 * the last one said: it is absent (picked no more, but who is at work on it finishes), gone (in
 * nobody's view, once nobody is at work on it or remembers it), freed (its slot may be used again).
 */
#ifndef CONTROL_SUCCESSION_H
#define CONTROL_SUCCESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "model/snapshot.h"

/*
 * Gives |next|, whose version is higher than that of any before, all its run-time state: what
 * |before| has, and what is new. |adopted|: the oldest version that a worker may still be at.
 * Workers notice nothing yet. False: no memory; |next| is to be dropped.
 */
bool succession_prepare(struct snapshot *next, const struct snapshot *before, uint64_t adopted,
                        uint32_t workers);

/*
 * All workers have adopted |s|, the newest: hosts that it does not name are picked no more. Tells
 * of each cluster that some left.
 */
typedef void (*succession_left)(void *owner, struct cluster_state *state);
void succession_commit(const struct snapshot *s, succession_left left, void *owner);

#endif
