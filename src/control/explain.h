/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy that was compiled, in words: what will happen, with its numbers, for whoever has to
 * decide whether that is wanted (`firebreak check --explain`).
 */
#ifndef CONTROL_EXPLAIN_H
#define CONTROL_EXPLAIN_H

#include "base/text.h"
#include "model/snapshot.h"

/* One cluster of |s|, several lines. False: no memory. */
bool explain_cluster(struct text *t, const struct snapshot *s, uint32_t cluster);

#endif
