/* SPDX-License-Identifier: Apache-2.0 */
/* Panic of a cluster, noted for those who look: since when, and one line of the log an episode. */
#ifndef CONTROL_PANIC_NOTE_H
#define CONTROL_PANIC_NOTE_H

#include "base/units.h"
#include "io/log.h"
#include "model/snapshot.h"

/* Control thread only; after the health of a host of |c|, or its configuration, has changed. */
void panic_note(const struct cluster *c, struct log *log, mono_ns now);

#endif
