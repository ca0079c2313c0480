/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outlier watch: what workers saw goes to the judge of its cluster, and the verdict becomes a
 * deed: health, counters, log. One judge and one sweep timer a cluster. Control thread only.
 */
#ifndef CONTROL_OUTLIER_WATCH_H
#define CONTROL_OUTLIER_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/units.h"
#include "base/wheel.h"
#include "io/log.h"
#include "io/mailbox.h"
#include "model/snapshot.h"

struct outlier_watch;

/* Watches nothing yet. |wheel| and |log| outlive it. NULL: no memory. */
struct outlier_watch *outlier_watch_create(struct wheel *wheel, struct log *log, uint64_t seed);

/*
 * Watches the clusters of |s| from now on, which must stay alive until the next one is adopted. A
 * cluster whose state was watched already keeps its judge's memory; of one that is gone all is
 * forgotten. False: no memory, and nothing has changed.
 */
bool outlier_watch_adopt(struct outlier_watch *w, const struct snapshot *s, mono_ns now);

/* A MESSAGE_OUTLIER. One about a cluster or host that is no longer there is ignored. */
void outlier_watch_tell(struct outlier_watch *w, const struct message *m, mono_ns now);

void outlier_watch_free(struct outlier_watch *w);

#endif
