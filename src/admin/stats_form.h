/* SPDX-License-Identifier: Apache-2.0 */
/* One sample of a stats page, in each of its forms (reference/envoy-semantics.md 7.3, 7.4). */
#ifndef ADMIN_STATS_FORM_H
#define ADMIN_STATS_FORM_H

#include "admin/page.h"
#include "admin/samples.h"
#include "codec/json.h"

enum stats_form {
    STATS_TEXT,
    STATS_HTML,
    STATS_JSON,
    STATS_PROMETHEUS, /* text exposition format 0.0.4 */
    STATS_OPENMETRICS /* the same names; Envoy's counters are of type unknown, as few end in _total
                       */
};

/* How histograms are shown in text, HTML and JSON. */
enum stats_buckets { BUCKETS_NONE, BUCKETS_CUMULATIVE, BUCKETS_DISJOINT, BUCKETS_COUNT };

struct stats_writer {
    struct page *page;
    enum stats_form form;
    enum stats_buckets buckets;
    struct json json;
    bool in_histograms; /* JSON: they are in an object of their own */
    const char *family; /* of the last sample */
};

void stats_write_begin(struct stats_writer *w);
void stats_write(struct stats_writer *w, const struct sample *sample);
void stats_write_end(struct stats_writer *w);

#endif
