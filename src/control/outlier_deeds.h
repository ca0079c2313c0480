/* SPDX-License-Identifier: Apache-2.0 */
/* For outlier_watch.c only: one cluster under watch, and what is done about its hosts. */
#ifndef CONTROL_OUTLIER_DEEDS_H
#define CONTROL_OUTLIER_DEEDS_H

#include "base/rng.h"
#include "control/outlier_watch.h"
#include "policy/outlier_judge.h"

/* One host under watch. */
struct watched_host {
    uint32_t slot; /* in the cluster's host set */
    struct bytes text;
    const struct endpoint *endpoint; /* of the snapshot in force */
    mono_ns next_line;               /* no line before about its staying in though a run was seen */
    uint32_t held_back;              /* such lines since the last */
    bool late;                       /* its health is not published yet: release_due */
};

/* The hosts of one snapshot's cluster, in the order of their slots. */
struct roster {
    uint32_t count;
    struct watched_host *hosts;
    struct outlier_member *members;
    uint32_t *scratch;
};

struct detection;
struct effects;

struct watched {
    struct timer sweep;
    struct timer release; /* of healths that are late */
    struct outlier_watch *watch;
    const struct cluster *config; /* of the snapshot in force */
    struct cluster_state *state;  /* a reference */
    struct outlier judge;
    struct roster roster;
    struct detection *detection; /* NULL: off */
    struct effects *effects;     /* the same */
    struct detect_rate connects; /* lately, and those that came to nothing: caller.h */
    bool lossy;                  /* our own link is: no wait says anything of a host */
    mono_ns changed_at;          /* a health was last published */
    uint32_t changed_slot;       /* whose */
};

struct outlier_watch {
    struct outlier_watch_setup setup;
    struct rng rng;
    struct watched **all;      /* in the order of the snapshot */
    struct watched **by_state; /* the same, by address, to be found */
    uint32_t count;
    struct timer tick; /* evidence is read; idle while there is none */
    struct evidence *batch;
    mono_ns looked_at; /* caller.h */
    bool cut_off;      /* nobody can be reached: what is seen is no evidence */
};

/* The watched cluster of |state|, and which of its members is in |slot|. NULL: there is none. */
const struct watched *watched_find(const struct outlier_watch *w, const void *state, uint32_t slot,
                                   uint32_t *index);

/* A trigger against member |index|: weighed, done, counted, told. */
void deeds_consider(struct watched *c, uint32_t index, enum outlier_trigger t, mono_ns now);

/* Detection accuses; what is against it, OUTLIER_GUARD_NONE: it is out. */
enum outlier_guard deeds_detected(struct watched *c, uint32_t index, mono_ns now);

/* A host that was out may serve again, if with a share. */
void deeds_readmit(struct watched *c, uint32_t index, mono_ns now);

/* By hand: what is against it; OUTLIER_GUARD_NONE: it is out. False: it was not out. */
enum outlier_guard deeds_eject(struct watched *c, uint32_t index, mono_ns now);
bool deeds_pardon(struct watched *c, uint32_t index, mono_ns now);

/* The same by itself: the ejection of a host that is out did no good. */
void deeds_undo(struct watched *c, uint32_t index, mono_ns now);

/* What is done by hand elsewhere, for the event log. */
void deeds_note_drain(struct watched *c, uint32_t index);
void deeds_note_undrain(struct watched *c, uint32_t index, span_ns drained);

/* The sweep. */
void deeds_sweep(struct watched *c, mono_ns now);

/* What was held back of the hosts' health is published. */
void deeds_release(struct watched *c, mono_ns now);

/* How many are out, for the gauge. */
void deeds_show_active(struct watched *c);

#endif
