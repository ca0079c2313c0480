/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks over all there is to count and gives each metric its names (reference/envoy-semantics.md
 * 7.1 to 7.3): Envoy's metrics as "envoy_*", our own as "firebreak_*" with a help text.
 */
#ifndef ADMIN_COLLECT_H
#define ADMIN_COLLECT_H

#include "admin/samples.h"
#include "admin/view.h"

/* What a scrape of many hosts may leave out, as Envoy does by default. */
enum collect_scope { COLLECT_NO_ENDPOINTS, COLLECT_ENDPOINTS };

/* Where the walk is; zeroed: at its beginning. */
struct collector {
    enum collect_scope scope;
    uint32_t cluster;
    uint32_t host; /* of |cluster|; the cluster's own come before its first host's */
    uint32_t listener;
    bool in_cluster;
    bool done;
};

/* One step of the walk over |view|: a cluster, a host, a listener. False: it was over. */
bool collect_step(struct collector *c, struct samples *s, const struct admin_view *view);

#endif
