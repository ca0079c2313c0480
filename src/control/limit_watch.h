/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Says in the log where a limit is at work: once when it begins to cut, once when it has not cut
 * for a while, never for each request.
 */
#ifndef CONTROL_LIMIT_WATCH_H
#define CONTROL_LIMIT_WATCH_H

#include "base/units.h"
#include "io/log.h"
#include "model/snapshot.h"

#define LIMIT_WATCH_EVERY NS_PER_S
#define LIMIT_WATCH_QUIET (10 * NS_PER_S) /* without a cut: it is over */

/* To be called every LIMIT_WATCH_EVERY, by the control thread. */
void limit_watch_look(const struct snapshot *s, struct log *log, mono_ns now);

#endif
