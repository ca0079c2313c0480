/* SPDX-License-Identifier: Apache-2.0 */
/* /stats: all metrics, as text, JSON or for Prometheus (reference/envoy-semantics.md 7.3, 7.4). */
#include <string.h>

#include "admin/collect.h"
#include "admin/pages.h"
#include "admin/samples.h"

#define LINE_ROOM 4096 /* more than any line: a name and labels are at most 1 KiB each */
#define US_PER_MS 1000.0

static const double quantiles[] = {0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 1};
static const char *const quantile_names[] = {"0",  "25", "50",   "75",   "90",
                                             "95", "99", "99.5", "99.9", "100"};
#define QUANTILES (sizeof(quantiles) / sizeof(quantiles[0]))

/* Upper bounds of Envoy's buckets, in microseconds, and as they are written, in milliseconds. */
static const struct {
    uint64_t us;
    const char *ms;
} buckets[] = {
    {500, "0.5"},
    {1000, "1"},
    {5000, "5"},
    {10000, "10"},
    {25000, "25"},
    {50000, "50"},
    {100000, "100"},
    {250000, "250"},
    {500000, "500"},
    {1000000, "1000"},
    {2500000, "2500"},
    {5000000, "5000"},
    {10000000, "10000"},
    {30000000, "30000"},
    {60000000, "60000"},
    {300000000, "300000"},
    {600000000, "600000"},
    {1800000000, "1800000"},
    {3600000000, "3600000"},
};
#define BUCKETS (sizeof(buckets) / sizeof(buckets[0]))

/* |us| in ms, with as many decimals as it has. */
static void put_ms(struct text *t, uint64_t us)
{
    unsigned decimals = us % 1000 == 0 ? 0 : us % 100 == 0 ? 1 : us % 10 == 0 ? 2 : 3;

    text_double(t, (double)us / US_PER_MS, decimals);
}

/* --- text --- */

/* Over no interval: there is none here, only all since the start. */
static void text_histogram(struct text *t, const struct histogram *h)
{
    if (cell_read(&h->count) == 0) {
        text_str(t, "No recorded values");
        return;
    }
    for (size_t i = 0; i < QUANTILES; i++) {
        text_str(t, i == 0 ? "P" : " P");
        text_str(t, quantile_names[i]);
        text_str(t, "(nan,");
        put_ms(t, histogram_quantile(h, quantiles[i]));
        text_char(t, ')');
    }
}

static void stats_text(struct page *p, struct samples *s)
{
    struct text *t = &p->text;

    samples_sort_by_name(s);
    for (size_t i = 0; i < s->count; i++) {
        page_room(p, LINE_ROOM);
        text_str(t, s->at[i].name);
        text_str(t, ": ");
        if (s->at[i].kind == SAMPLE_HISTOGRAM)
            text_histogram(t, s->at[i].histogram);
        else
            text_u64(t, s->at[i].value);
        text_char(t, '\n');
    }
}

/* --- JSON --- */

static void json_histogram(struct json *j, const struct sample *sample)
{
    const struct histogram *h = sample->histogram;

    json_object(j, NULL);
    json_text(j, "name", sample->name);
    json_array(j, "values");
    for (size_t i = 0; i < QUANTILES; i++) {
        json_object(j, NULL);
        json_null(j, "interval");
        if (cell_read(&h->count) == 0)
            json_null(j, "cumulative");
        else
            json_double(j, "cumulative", (double)histogram_quantile(h, quantiles[i]) / US_PER_MS,
                        3);
        json_object_end(j);
    }
    json_array_end(j);
    json_object_end(j);
}

/* The last element of "stats" holds all histograms. */
static void json_histograms(struct page *p, struct json *j, const struct samples *s, size_t from)
{
    page_room(p, LINE_ROOM);
    json_object(j, NULL);
    json_object(j, "histograms");
    json_array(j, "supported_quantiles");
    for (size_t i = 0; i < QUANTILES; i++)
        json_double(j, NULL, quantiles[i] * 100, strchr(quantile_names[i], '.') == NULL ? 0 : 1);
    json_array_end(j);
    json_array(j, "computed_quantiles");
    for (size_t i = from; i < s->count; i++) {
        page_room(p, LINE_ROOM + 6 * strlen(s->at[i].name));
        json_histogram(j, &s->at[i]);
    }
    page_room(p, LINE_ROOM);
    json_array_end(j);
    json_object_end(j);
    json_object_end(j);
}

static void stats_json(struct page *p, struct samples *s)
{
    struct json j;
    size_t i;

    samples_sort_by_name(s);
    page_room(p, LINE_ROOM);
    json_init(&j, &p->text);
    json_object(&j, NULL);
    json_array(&j, "stats");
    for (i = 0; i < s->count && s->at[i].kind != SAMPLE_HISTOGRAM; i++) {
        page_room(p, LINE_ROOM + 6 * strlen(s->at[i].name));
        json_object(&j, NULL);
        json_text(&j, "name", s->at[i].name);
        json_u64(&j, "value", s->at[i].value);
        json_object_end(&j);
    }
    if (i < s->count)
        json_histograms(p, &j, s, i);
    page_room(p, LINE_ROOM);
    json_array_end(&j);
    json_object_end(&j);
    text_char(&p->text, '\n');
}

/* --- Prometheus --- */

static void put_type(struct text *t, const struct sample *sample)
{
    static const char *const types[] = {" counter\n", " gauge\n", " histogram\n"};

    if (sample->help != NULL) {
        text_str(t, "# HELP ");
        text_str(t, sample->family);
        text_char(t, ' ');
        text_str(t, sample->help);
        text_char(t, '\n');
    }
    text_str(t, "# TYPE ");
    text_str(t, sample->family);
    text_str(t, types[sample->kind]);
}

/* Envoy writes "{}" where there are no labels. */
static void put_series(struct text *t, const struct sample *sample, const char *suffix,
                       const char *le)
{
    text_str(t, sample->family);
    text_str(t, suffix);
    text_char(t, '{');
    text_str(t, sample->labels);
    if (le != NULL) {
        text_str(t, sample->labels[0] == '\0' ? "le=\"" : ",le=\"");
        text_str(t, le);
        text_char(t, '"');
    }
    text_str(t, "} ");
}

static void prometheus_histogram(struct page *p, const struct sample *sample)
{
    const struct histogram *h = sample->histogram;
    struct text *t = &p->text;

    for (size_t i = 0; i < BUCKETS; i++) {
        page_room(p, LINE_ROOM);
        put_series(t, sample, "_bucket", buckets[i].ms);
        text_u64(t, histogram_at_most(h, buckets[i].us));
        text_char(t, '\n');
    }
    page_room(p, LINE_ROOM + LINE_ROOM);
    put_series(t, sample, "_bucket", "+Inf");
    text_u64(t, cell_read(&h->count));
    text_char(t, '\n');
    put_series(t, sample, "_sum", NULL);
    put_ms(t, cell_read(&h->sum));
    text_char(t, '\n');
    put_series(t, sample, "_count", NULL);
    text_u64(t, cell_read(&h->count));
    text_char(t, '\n');
}

static void stats_prometheus(struct page *p, struct samples *s)
{
    const char *family = "";

    samples_sort_by_family(s);
    for (size_t i = 0; i < s->count; i++) {
        const struct sample *sample = &s->at[i];

        page_room(p, LINE_ROOM);
        if (strcmp(family, sample->family) != 0)
            put_type(&p->text, sample);
        family = sample->family;
        if (sample->kind == SAMPLE_HISTOGRAM) {
            prometheus_histogram(p, sample);
            continue;
        }
        put_series(&p->text, sample, "", NULL);
        text_u64(&p->text, sample->value);
        text_char(&p->text, '\n');
    }
}

/* --- the pages --- */

static void write_stats(struct admin_call *call, struct samples *s, enum page_format format)
{
    switch (format) {
    case FORMAT_JSON:
        call->type = ADMIN_JSON;
        stats_json(call->page, s);
        break;
    case FORMAT_PROMETHEUS:
        call->type = ADMIN_PROMETHEUS;
        stats_prometheus(call->page, s);
        break;
    case FORMAT_TEXT:
    case FORMAT_COUNT:
        stats_text(call->page, s);
        break;
    }
}

static void show_in(struct admin_call *call, enum page_format format)
{
    struct filter filter;
    struct samples s;

    if (!call_filter(call, &filter))
        return;
    samples_init(&s, &filter);
    s.used_only = call_flag(call, "usedonly");
    collect(&s, call->view, format == FORMAT_PROMETHEUS ? COLLECT_ENDPOINTS : COLLECT_NO_ENDPOINTS);
    if (s.failed)
        call_refuse(call, 503, "out of memory: too many metrics; narrow them by filter=");
    else
        write_stats(call, &s, format);
    samples_release(&s);
    filter_release(&filter);
}

void show_stats(struct admin_call *call)
{
    enum page_format format;

    if (call_format(call, 1u << FORMAT_TEXT | 1u << FORMAT_JSON | 1u << FORMAT_PROMETHEUS, &format))
        show_in(call, format);
}

void show_prometheus(struct admin_call *call)
{
    show_in(call, FORMAT_PROMETHEUS);
}
