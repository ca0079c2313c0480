/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values of all metrics at one moment, each with both its names: the dotted one of /stats and
 * the family and labels of the Prometheus form. Filled by collect.h, shown by the stats pages.
 */
#ifndef ADMIN_SAMPLES_H
#define ADMIN_SAMPLES_H

#include <stdbool.h>
#include <stdint.h>

#include "admin/filter.h"
#include "base/arena.h"
#include "stats/histogram.h"

enum sample_kind { SAMPLE_COUNTER, SAMPLE_GAUGE, SAMPLE_HISTOGRAM };

struct sample {
    const char *name;   /* "cluster.a.upstream_rq_503" */
    const char *family; /* "envoy_cluster_upstream_rq" */
    const char *labels; /* "envoy_response_code=\"503\",envoy_cluster_name=\"a\"", or "" */
    const char *help;   /* NULL: Envoy's, which have none */
    enum sample_kind kind;
    uint64_t value;
    bool thousandths;            /* |value| is in them */
    struct histogram *histogram; /* SAMPLE_HISTOGRAM: its sum over the workers, in us */
};

enum samples_order {
    SAMPLES_BY_NAME,  /* histograms last; families and labels are not kept */
    SAMPLES_BY_FAMILY /* then by labels; names are not kept */
};

#define SAMPLES_FAMILIES 1024 /* kept once each, those beyond once a sample; a power of two */

/* A merge sort that can be left and gone on with: runs of |width| in from[] become longer in to[].
 */
struct samples_sorting {
    struct sample **from;
    struct sample **to;
    size_t width;
    size_t low; /* where the present pair of runs begins */
    size_t left, right, out;
};

struct samples {
    struct arena arena;
    struct sample *at;
    size_t count;
    size_t room;
    enum samples_order order;
    const struct filter *filter; /* on |name| */
    bool used_only;              /* nothing that is zero */
    bool failed;                 /* out of memory: what is here is not all */
    const char *families[SAMPLES_FAMILIES];
    size_t family_count;
    struct samples_sorting sorting;
    size_t next; /* of samples_next */
};

void samples_init(struct samples *s, const struct filter *filter, enum samples_order order);

/* True where the filter takes |name|. */
bool samples_wanted(const struct samples *s, const char *name);

/*
 * Adds a copy of |sample|: all texts but |help| are copied. A histogram has to be of the arena.
 * Dropped where it is zero and |used_only|.
 */
void samples_add(struct samples *s, const struct sample *sample);

/* An empty histogram that lives as long as the samples; NULL: failed. */
struct histogram *samples_histogram(struct samples *s);

/* Sorts on, about |steps| comparisons. True: all is in order (or |failed|). */
bool samples_sort(struct samples *s, size_t steps);

/*
 * In order, once all is sorted; NULL: that was all. What has the same name, or the same family and
 * labels, is one, added up.
 */
const struct sample *samples_next(struct samples *s);

void samples_release(struct samples *s);

#endif
