/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outlier watch: what workers saw goes to the judge of its cluster, and the verdict becomes a
 * deed: health, counters, log, event. One judge and one sweep timer a cluster. Control thread only.
 */
#ifndef CONTROL_OUTLIER_WATCH_H
#define CONTROL_OUTLIER_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/units.h"
#include "base/wheel.h"
#include "control/event_log.h"
#include "io/clock.h"
#include "io/log.h"
#include "io/mailbox.h"
#include "model/snapshot.h"

struct outlier_watch;
struct journal;

struct outlier_watch_setup {
    struct wheel *wheel;
    struct clock *clock; /* the wall clock of events and journal */
    struct log *log;
    struct event_log *events;       /* NULL: none */
    struct journal *journal;        /* of decisions; NULL: none */
    struct mailbox *const *workers; /* told of ejections */
    struct evidence_ring *rings;    /* one a worker */
    uint32_t worker_count;
    uint64_t seed;
};

/* Watches nothing yet. What |setup| points to outlives it. NULL: no memory. */
struct outlier_watch *outlier_watch_create(const struct outlier_watch_setup *setup);

/*
 * Watches the clusters of |s| from now on, which must stay alive until the next one is adopted.
 * What is remembered of a host hangs in its cluster's state; of a cluster that is gone nothing is
 * kept. False: no memory, and nothing has changed.
 */
bool outlier_watch_adopt(struct outlier_watch *w, const struct snapshot *s, mono_ns now);

/* A MESSAGE_EVIDENCE. */
void outlier_watch_wake(struct outlier_watch *w, mono_ns now);

/* A MESSAGE_OUTLIER. One about a cluster or host that is no longer there is ignored. */
void outlier_watch_tell(struct outlier_watch *w, const struct message *m, mono_ns now);

/* What an operator does. Is detection on; what is against an ejection; was the host out? */
bool outlier_watch_on(const struct outlier_watch *w, const struct cluster_state *state);
enum outlier_guard outlier_watch_eject(struct outlier_watch *w, const struct cluster_state *state,
                                       uint32_t slot, mono_ns now);
bool outlier_watch_pardon(struct outlier_watch *w, const struct cluster_state *state, uint32_t slot,
                          mono_ns now);
/* A drain, and its end after |drained|, are only for the event log. */
void outlier_watch_note_drain(struct outlier_watch *w, const struct cluster_state *state,
                              uint32_t slot);
void outlier_watch_note_undrain(struct outlier_watch *w, const struct cluster_state *state,
                                uint32_t slot, span_ns drained);

void outlier_watch_free(struct outlier_watch *w);

#endif
