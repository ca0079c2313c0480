/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is it us? What this proxy sees is no evidence of its hosts while its own loops are late, or while
 * it reaches nobody: connects to unrelated clusters fail at once. For outlier_watch.c.
 */
#ifndef CONTROL_CALLER_H
#define CONTROL_CALLER_H

#include <stdbool.h>

#include "base/units.h"
#include "control/outlier_deeds.h"
#include "policy/evidence.h"

/* Of what is seen of |c|: was it connected to? */
void caller_learn(struct watched *c, const struct evidence *e);

/* A look at all clusters; nothing more often than each half second. */
void caller_look(struct outlier_watch *w, mono_ns now);

/*
 * Does |e|, read at |now|, say anything of its host in |c|? Answers always do; a wait only where we
 * are well. |e| is flagged where its times say nothing.
 */
bool caller_believes(const struct watched *c, struct evidence *e, mono_ns now);

#endif
