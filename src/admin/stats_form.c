/* SPDX-License-Identifier: Apache-2.0 */
#include "admin/stats_form.h"

#include <string.h>

#include "stats/metrics.h"

#define LINE_ROOM 4096 /* more than any line: a name and labels are at most 1 KiB each */
#define US_PER_MS 1000.0

static const double quantiles[] = {0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 1};
static const char *const quantile_names[] = {"0",  "25", "50",   "75",   "90",
                                             "95", "99", "99.5", "99.9", "100"};
#define QUANTILES (sizeof(quantiles) / sizeof(quantiles[0]))

/* Upper bounds of Envoy's buckets in us; and in ms as they are written, for OpenMetrics as Go
 * writes floating point. */
static const struct {
    uint64_t us;
    const char *ms;
    const char *canonical;
} buckets[] = {
    {500, "0.5", "0.5"},
    {1000, "1", "1.0"},
    {5000, "5", "5.0"},
    {10000, "10", "10.0"},
    {25000, "25", "25.0"},
    {50000, "50", "50.0"},
    {100000, "100", "100.0"},
    {250000, "250", "250.0"},
    {500000, "500", "500.0"},
    {1000000, "1000", "1000.0"},
    {2500000, "2500", "2500.0"},
    {5000000, "5000", "5000.0"},
    {10000000, "10000", "10000.0"},
    {30000000, "30000", "30000.0"},
    {60000000, "60000", "60000.0"},
    {300000000, "300000", "300000.0"},
    {600000000, "600000", "600000.0"},
    {1800000000, "1800000", "1.8e+06"},
    {3600000000, "3600000", "3.6e+06"},
};
#define BUCKETS (sizeof(buckets) / sizeof(buckets[0]))

/* |us| in ms, with as many decimals as it has. */
static void put_ms(struct text *t, uint64_t us)
{
    unsigned decimals = us % 1000 == 0 ? 0 : us % 100 == 0 ? 1 : us % 10 == 0 ? 2 : 3;

    text_double(t, (double)us / US_PER_MS, decimals);
}

/* --- text and HTML --- */

/* Over no interval: there is none here, only all since the start. */
static void text_quantiles(struct text *t, const struct histogram *h)
{
    for (size_t i = 0; i < QUANTILES; i++) {
        text_str(t, i == 0 ? "P" : " P");
        text_str(t, quantile_names[i]);
        text_str(t, "(nan,");
        put_ms(t, histogram_quantile(h, quantiles[i]));
        text_char(t, ')');
    }
}

/* How many fell into bucket |i|, or into it and those below. */
static uint64_t bucket_value(const struct histogram *h, size_t i, enum stats_buckets kind)
{
    uint64_t up_to = i == BUCKETS ? cell_read(&h->count) : histogram_at_most(h, buckets[i].us);

    if (kind == BUCKETS_CUMULATIVE || i == 0)
        return up_to;
    return up_to - histogram_at_most(h, buckets[i - 1].us);
}

static void text_buckets(struct text *t, const struct histogram *h, enum stats_buckets kind)
{
    for (size_t i = 0; i < BUCKETS; i++) {
        text_str(t, i == 0 ? "B" : " B");
        text_str(t, buckets[i].ms);
        text_str(t, "(nan,");
        text_u64(t, bucket_value(h, i, kind));
        text_char(t, ')');
    }
}

static void put_number(struct text *t, const struct sample *sample)
{
    if (sample->thousandths)
        text_double(t, (double)sample->value / 1000, 3);
    else
        text_u64(t, sample->value);
}

static void put_value(const struct stats_writer *w, const struct sample *sample)
{
    struct text *t = &w->page->text;

    if (sample->kind != SAMPLE_HISTOGRAM)
        put_number(t, sample);
    else if (cell_read(&sample->histogram->count) == 0)
        text_str(t, "No recorded values");
    else if (w->buckets == BUCKETS_NONE)
        text_quantiles(t, sample->histogram);
    else
        text_buckets(t, sample->histogram, w->buckets);
}

static void write_text(const struct stats_writer *w, const struct sample *sample)
{
    struct text *t = &w->page->text;

    text_str(t, sample->name);
    text_str(t, ": ");
    put_value(w, sample);
    text_char(t, '\n');
}

/* Names are the operator's, but hold what they like. */
static void put_html(struct text *t, const char *name)
{
    for (const char *c = name; *c != '\0'; c++) {
        if (*c == '<')
            text_str(t, "&lt;");
        else if (*c == '&')
            text_str(t, "&amp;");
        else
            text_char(t, *c);
    }
}

static void write_html(const struct stats_writer *w, const struct sample *sample)
{
    struct text *t = &w->page->text;

    text_str(t, "<tr><td>");
    put_html(t, sample->name);
    text_str(t, "</td><td>");
    put_value(w, sample);
    text_str(t, "</td></tr>\n");
}

#define HTML_HEAD                                                                                  \
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Firebreak stats"      \
    "</title></head><body>\n<form><input type=\"hidden\" name=\"format\" value=\"html\">"          \
    "<label>filter <input name=\"filter\"></label> <label><input type=\"checkbox\" "               \
    "name=\"usedonly\"> used only</label> <input type=\"submit\" value=\"show\"></form>\n"         \
    "<table>\n"
#define HTML_TAIL "</table>\n</body></html>\n"

/* --- JSON --- */

static void json_quantiles(struct json *j, const struct histogram *h)
{
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
}

static void json_buckets(struct json *j, const struct histogram *h, enum stats_buckets kind)
{
    json_array(j, "buckets");
    for (size_t i = 0; i < BUCKETS; i++) {
        json_object(j, NULL);
        json_double(j, "upper_bound", (double)buckets[i].us / US_PER_MS, i == 0 ? 1 : 0);
        json_null(j, "interval");
        json_u64(j, "cumulative", bucket_value(h, i, kind));
        json_object_end(j);
    }
    json_array_end(j);
}

/* The last element of "stats" holds all histograms. */
static void json_begin_histograms(struct stats_writer *w)
{
    struct json *j = &w->json;

    w->in_histograms = true;
    json_object(j, NULL);
    if (w->buckets != BUCKETS_NONE) {
        json_array(j, "histograms");
        return;
    }
    json_object(j, "histograms");
    json_array(j, "supported_quantiles");
    for (size_t i = 0; i < QUANTILES; i++)
        json_double(j, NULL, quantiles[i] * 100, strchr(quantile_names[i], '.') == NULL ? 0 : 1);
    json_array_end(j);
    json_array(j, "computed_quantiles");
}

static void json_end_histograms(struct stats_writer *w)
{
    json_array_end(&w->json);
    if (w->buckets == BUCKETS_NONE)
        json_object_end(&w->json);
    json_object_end(&w->json);
}

static void write_json(struct stats_writer *w, const struct sample *sample)
{
    struct json *j = &w->json;

    page_room(w->page, 6 * strlen(sample->name) + 2 * LINE_ROOM);
    if (sample->kind == SAMPLE_HISTOGRAM && !w->in_histograms)
        json_begin_histograms(w);
    json_object(j, NULL);
    json_text(j, "name", sample->name);
    if (sample->thousandths)
        json_double(j, "value", (double)sample->value / 1000, 3);
    else if (sample->kind != SAMPLE_HISTOGRAM)
        json_u64(j, "value", sample->value);
    else if (w->buckets == BUCKETS_NONE)
        json_quantiles(j, sample->histogram);
    else
        json_buckets(j, sample->histogram, w->buckets);
    json_object_end(j);
}

/* --- Prometheus --- */

/*
 * OpenMetrics wants the samples of a counter to end in "_total" and its family not to; Envoy's
 * names keep neither rule, and shall be the same in both formats.
 */
static const char *type_of(const struct stats_writer *w, const struct sample *sample)
{
    static const char *const types[] = {" counter\n", " gauge\n", " histogram\n"};

    if (w->form == STATS_OPENMETRICS && sample->kind == SAMPLE_COUNTER && sample->help == NULL)
        return " unknown\n";
    return types[sample->kind];
}

static struct bytes family_name(const struct stats_writer *w, const struct sample *sample)
{
    struct bytes family = bytes_of(sample->family);

    if (w->form == STATS_OPENMETRICS && sample->kind == SAMPLE_COUNTER && sample->help != NULL)
        family.len -= strlen("_total");
    return family;
}

static void put_type(const struct stats_writer *w, const struct sample *sample)
{
    struct text *t = &w->page->text;

    if (sample->help != NULL) {
        text_str(t, "# HELP ");
        text_put(t, family_name(w, sample));
        text_char(t, ' ');
        text_str(t, sample->help);
        text_char(t, '\n');
    }
    text_str(t, "# TYPE ");
    text_put(t, family_name(w, sample));
    text_str(t, type_of(w, sample));
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

static void put_histogram(const struct stats_writer *w, const struct sample *sample)
{
    const struct histogram *h = sample->histogram;
    bool canonical = w->form == STATS_OPENMETRICS;
    struct text *t = &w->page->text;

    for (size_t i = 0; i <= BUCKETS; i++) {
        page_room(w->page, LINE_ROOM);
        if (i == BUCKETS)
            put_series(t, sample, "_bucket", "+Inf");
        else
            put_series(t, sample, "_bucket", canonical ? buckets[i].canonical : buckets[i].ms);
        text_u64(t, bucket_value(h, i, BUCKETS_CUMULATIVE));
        text_char(t, '\n');
    }
    page_room(w->page, LINE_ROOM + LINE_ROOM);
    put_series(t, sample, "_sum", NULL);
    put_ms(t, cell_read(&h->sum));
    text_char(t, '\n');
    put_series(t, sample, "_count", NULL);
    text_u64(t, cell_read(&h->count));
    text_char(t, '\n');
}

static void write_prometheus(struct stats_writer *w, const struct sample *sample)
{
    if (w->family == NULL || strcmp(w->family, sample->family) != 0)
        put_type(w, sample);
    w->family = sample->family;
    if (sample->kind == SAMPLE_HISTOGRAM) {
        put_histogram(w, sample);
        return;
    }
    put_series(&w->page->text, sample, "", NULL);
    put_number(&w->page->text, sample);
    text_char(&w->page->text, '\n');
}

/* --- all --- */

void stats_write_begin(struct stats_writer *w)
{
    page_room(w->page, LINE_ROOM);
    if (w->form == STATS_HTML)
        text_str(&w->page->text, HTML_HEAD);
    if (w->form != STATS_JSON)
        return;
    json_init(&w->json, &w->page->text);
    json_object(&w->json, NULL);
    json_array(&w->json, "stats");
}

void stats_write(struct stats_writer *w, const struct sample *sample)
{
    page_room(w->page, LINE_ROOM);
    switch (w->form) {
    case STATS_TEXT:
        write_text(w, sample);
        return;
    case STATS_HTML:
        write_html(w, sample);
        return;
    case STATS_JSON:
        write_json(w, sample);
        return;
    case STATS_PROMETHEUS:
    case STATS_OPENMETRICS:
        write_prometheus(w, sample);
        return;
    }
}

void stats_write_end(struct stats_writer *w)
{
    page_room(w->page, LINE_ROOM);
    if (w->form == STATS_HTML)
        text_str(&w->page->text, HTML_TAIL);
    if (w->form == STATS_OPENMETRICS)
        text_str(&w->page->text, "# EOF\n");
    if (w->form != STATS_JSON)
        return;
    if (w->in_histograms)
        json_end_histograms(w);
    json_array_end(&w->json);
    json_object_end(&w->json);
    text_char(&w->page->text, '\n');
}
