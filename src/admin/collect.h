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

void collect(struct samples *s, const struct admin_view *view, enum collect_scope scope);

#endif
