/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line of the outlier event log, as Envoy writes it (reference/envoy-semantics.md 1.9). What is
 * done by hand has no counterpart there: its type is BY_HAND, and hosts are drained and taken back
 * besides.
 */
#ifndef CONTROL_OUTLIER_EVENT_H
#define CONTROL_OUTLIER_EVENT_H

#include "control/event_log.h"
#include "policy/outlier_judge.h"

enum outlier_action {
    OUTLIER_ACTION_EJECT,
    OUTLIER_ACTION_UNEJECT,
    OUTLIER_ACTION_DRAIN,
    OUTLIER_ACTION_UNDRAIN
};

struct outlier_event {
    enum outlier_action action;
    enum outlier_trigger trigger; /* of an ejection; OUTLIER_NONE: by hand, or none */
    bool by_hand;
    bool enforced;     /* it is out now; else it was only counted */
    bool acted_before; /* there was an action before of which this is the next */
    span_ns since_action;
    wall_ns at;
    struct bytes cluster;
    struct bytes host;
    const struct outlier *judge;
    const struct outlier_host *judged;
};

void outlier_event_put(struct event_log *l, const struct outlier_event *e);

#endif
