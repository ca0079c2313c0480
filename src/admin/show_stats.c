/* SPDX-License-Identifier: Apache-2.0 */
/* /stats: all metrics; collected, sorted and written in slices. */
#include "admin/accept.h"
#include "admin/collect.h"
#include "admin/pages.h"
#include "admin/samples.h"
#include "admin/stats_form.h"
#include "admin/work.h"
#include "base/list.h"
#include "base/memory.h"

#define SORT_STEPS 1000 /* comparisons between two looks at the clock */

struct stats_page {
    struct admin_work work;
    struct filter filter;
    struct samples samples;
    struct collector collector;
    struct stats_writer writer;
    bool collected;
    bool sorted;
};

static bool collected(struct stats_page *p, struct admin_call *call)
{
    while (!p->collected && work_goes_on(call))
        p->collected = !collect_step(&p->collector, &p->samples, call->view);
    return p->collected;
}

static bool sorted(struct stats_page *p, struct admin_call *call)
{
    while (!p->sorted && work_goes_on(call))
        p->sorted = samples_sort(&p->samples, SORT_STEPS);
    return p->sorted;
}

static enum work_state write_some(struct stats_page *p, struct admin_call *call)
{
    const struct sample *sample;

    if (p->samples.next == 0)
        stats_write_begin(&p->writer);
    while ((sample = samples_next(&p->samples)) != NULL) {
        stats_write(&p->writer, sample);
        if (!work_goes_on(call))
            return WORK_MORE;
    }
    stats_write_end(&p->writer);
    return WORK_DONE;
}

static enum work_state stats_more(struct admin_work *w, struct admin_call *call)
{
    struct stats_page *p = CONTAINER_OF(w, struct stats_page, work);
    bool ready = collected(p, call) && sorted(p, call);

    if (p->samples.failed) {
        call_refuse(call, 503, "out of memory: too many metrics; narrow them by filter=");
        return WORK_FAILED;
    }
    return ready ? write_some(p, call) : WORK_MORE;
}

static void stats_free(struct admin_work *w)
{
    struct stats_page *p = CONTAINER_OF(w, struct stats_page, work);

    filter_release(&p->filter);
    samples_release(&p->samples);
    memory_give(p);
}

static const char *type_of(enum stats_form form)
{
    switch (form) {
    case STATS_TEXT:
        return ADMIN_TEXT;
    case STATS_HTML:
        return ADMIN_HTML;
    case STATS_JSON:
        return ADMIN_JSON;
    case STATS_PROMETHEUS:
        return ADMIN_PROMETHEUS;
    case STATS_OPENMETRICS:
        return ADMIN_OPENMETRICS;
    }
    return ADMIN_TEXT;
}

/* Reads "histogram_buckets=". False: it is none, and the call is answered with 400. */
static bool read_buckets(struct admin_call *call, enum stats_buckets *out)
{
    static const char *const names[] = {"none", "cumulative", "disjoint"};
    char room[32];
    struct bytes wanted = call_value(call, "histogram_buckets", room, sizeof(room));

    *out = BUCKETS_NONE;
    if (!call_flag(call, "histogram_buckets"))
        return true;
    for (unsigned i = 0; i < BUCKETS_COUNT; i++) {
        *out = (enum stats_buckets)i;
        if (bytes_equal(wanted, bytes_of(names[i])))
            return true;
    }
    call_refuse(call, 400, "usage: ?histogram_buckets=(none|cumulative|disjoint)");
    return false;
}

static void show_in(struct admin_call *call, enum stats_form form)
{
    bool by_family = form == STATS_PROMETHEUS || form == STATS_OPENMETRICS;
    enum stats_buckets buckets;
    struct stats_page *p;

    if (!read_buckets(call, &buckets))
        return;
    p = work_begin(call, sizeof(*p));
    if (p == NULL)
        return;
    p->work.more = stats_more;
    p->work.free = stats_free;
    samples_init(&p->samples, &p->filter, by_family ? SAMPLES_BY_FAMILY : SAMPLES_BY_NAME);
    p->samples.used_only = call_flag(call, "usedonly");
    p->collector.scope = by_family ? COLLECT_ENDPOINTS : COLLECT_NO_ENDPOINTS;
    p->writer = (struct stats_writer){.page = call->page, .form = form, .buckets = buckets};
    if (call_filter(call, &p->filter))
        call->type = type_of(form);
    else
        work_end(call);
}

static enum stats_form prometheus_form(const struct admin_call *call)
{
    return accept_openmetrics(call->head) ? STATS_OPENMETRICS : STATS_PROMETHEUS;
}

void show_stats(struct admin_call *call)
{
    enum page_format format;

    if (!call_format(call,
                     1u << FORMAT_TEXT | 1u << FORMAT_JSON | 1u << FORMAT_PROMETHEUS |
                         1u << FORMAT_HTML,
                     &format))
        return;
    switch (format) {
    case FORMAT_JSON:
        show_in(call, STATS_JSON);
        return;
    case FORMAT_PROMETHEUS:
        show_in(call, prometheus_form(call));
        return;
    case FORMAT_HTML:
        show_in(call, STATS_HTML);
        return;
    case FORMAT_TEXT:
    case FORMAT_COUNT:
        show_in(call, STATS_TEXT);
        return;
    }
}

void show_prometheus(struct admin_call *call)
{
    show_in(call, prometheus_form(call));
}
