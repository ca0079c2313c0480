/* SPDX-License-Identifier: Apache-2.0 */
/* One line of the outlier event log, as Envoy writes it (reference/envoy-semantics.md 1.9). */
#ifndef CONTROL_OUTLIER_EVENT_H
#define CONTROL_OUTLIER_EVENT_H

#include "control/event_log.h"
#include "policy/outlier_judge.h"

struct outlier_event {
    enum outlier_trigger trigger; /* OUTLIER_NONE: the host is in again */
    bool enforced;                /* it is out now; else it was only counted */
    bool acted_before;            /* there was an ejection before, or a return */
    span_ns since_action;
    wall_ns at;
    struct bytes cluster;
    struct bytes host;
    const struct outlier *judge;
    const struct outlier_host *judged;
};

void outlier_event_put(struct event_log *l, const struct outlier_event *e);

#endif
