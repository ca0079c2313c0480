/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/load_report.h"

#include "codec/json.h"
#include "lab/show.h"

#define LABEL  14 /* width of what stands before the numbers */
#define NUMBER 12

struct quantile_row {
    const char *name;
    double q;
};

static const struct quantile_row quantiles[] = {
    {"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}, {"p99.9", 0.999},
};

#define QUANTILE_COUNT (sizeof(quantiles) / sizeof(quantiles[0]))

static double seconds(span_ns ns)
{
    return (double)ns / (double)NS_PER_S;
}

static double per_second(uint64_t n, span_ns time)
{
    return time == 0 ? 0 : (double)n / seconds(time);
}

static const char *arrivals_text(enum arrivals_kind k)
{
    return k == ARRIVALS_POISSON ? "poisson" : "constant";
}

static uint64_t in_flight(const struct load_report *r)
{
    return load_in_flight(r->load);
}

static uint64_t failed(const struct load_report *r)
{
    const struct tally *n = load_tally(r->load);

    return n->sent - n->succeeded - in_flight(r);
}

/* Answers with a status that is no success. */
static uint64_t failed_by_status(const struct tally *n)
{
    return n->outcomes[CALL_ANSWERED] - n->succeeded;
}

/* --- text --- */

static size_t begin_line(struct text *t, const char *label)
{
    size_t from = t->len;

    text_str(t, "  ");
    text_str(t, label);
    show_pad(t, from, LABEL);
    return from;
}

static size_t put_count(struct text *t, const char *label, uint64_t n)
{
    size_t from = begin_line(t, label);

    text_u64(t, n);
    show_pad(t, from, LABEL + NUMBER);
    return from;
}

static void put_title(const struct load_report *r, struct text *t)
{
    text_str(t, r->url);
    text_str(t, ": ");
    text_double(t, r->options->rate, 1);
    text_str(t, "/s ");
    text_str(t, arrivals_text(r->options->arrivals));
    text_str(t, " for ");
    text_duration(t, r->options->duration);
    text_str(t, ", timeout ");
    text_duration(t, r->options->timeout);
    text_str(t, r->interrupted ? ", interrupted after " : "\n\n");
    if (r->interrupted) {
        show_span(t, load_elapsed(r->load));
        text_str(t, "\n\n");
    }
}

static void put_rate(struct text *t, uint64_t n, span_ns time)
{
    text_double(t, per_second(n, time), 1);
    text_str(t, "/s");
}

static void put_requests(const struct load_report *r, struct text *t)
{
    const struct tally *n = load_tally(r->load);
    span_ns time = load_elapsed(r->load);

    put_count(t, "due", n->due);
    put_rate(t, n->due, time);
    text_char(t, '\n');
    put_count(t, "dropped", n->dropped);
    text_str(t, n->dropped == 0 ? "\n" : "no connection was free: raise --connections\n");
    put_count(t, "sent", n->sent);
    put_rate(t, n->sent, time);
    if (n->resent > 0) {
        text_str(t, ", ");
        text_u64(t, n->resent);
        text_str(t, " of them again, as an idle connection had just been closed");
    }
    text_char(t, '\n');
    put_count(t, "succeeded", n->succeeded);
    show_share(t, n->succeeded, n->sent);
    text_str(t, " of those sent\n");
}

static void put_failures(const struct load_report *r, struct text *t)
{
    const struct tally *n = load_tally(r->load);

    put_count(t, "failed", failed(r));
    if (failed_by_status(n) > 0) {
        text_str(t, "status ");
        text_u64(t, failed_by_status(n));
        text_str(t, "  ");
    }
    for (int o = CALL_ANSWERED + 1; o < CALL_OUTCOME_COUNT; o++)
        if (n->outcomes[o] > 0) {
            text_str(t, call_outcome_text((enum call_outcome)o));
            text_char(t, ' ');
            text_u64(t, n->outcomes[o]);
            text_str(t, "  ");
        }
    text_char(t, '\n');
    if (in_flight(r) > 0) {
        put_count(t, "unfinished", in_flight(r));
        text_char(t, '\n');
    }
    begin_line(t, "statuses");
    for (uint32_t s = 0; s < TALLY_STATUSES; s++)
        if (n->statuses[s] > 0) {
            text_u64(t, s);
            text_str(t, ": ");
            text_u64(t, n->statuses[s]);
            text_str(t, "  ");
        }
    text_char(t, '\n');
}

static void put_latency(struct text *t, const char *label, const struct latency *l)
{
    begin_line(t, label);
    if (latency_count(l) == 0) {
        text_str(t, "-\n");
        return;
    }
    for (size_t i = 0; i < QUANTILE_COUNT; i++) {
        text_str(t, quantiles[i].name);
        text_char(t, ' ');
        show_span(t, latency_quantile(l, quantiles[i].q));
        text_str(t, "  ");
    }
    text_str(t, "max ");
    show_span(t, l->max);
    text_char(t, '\n');
}

void load_report_text(const struct load_report *r, struct text *t)
{
    const struct tally *n = load_tally(r->load);

    put_title(r, t);
    put_requests(r, t);
    put_failures(r, t);
    text_str(t, "\n  latency, from the moment each request was due\n");
    put_latency(t, "successes", &n->successes);
    put_latency(t, "all", &n->all);
    text_str(t, "  from when it was sent\n");
    put_latency(t, "successes", &n->service);
    put_latency(t, "sent late by", &n->lag);
    text_char(t, '\n');
    put_count(t, "connections", n->opened);
    text_str(t, "opened, most requests at once ");
    text_u64(t, load_most_in_flight(r->load));
    text_str(t, " of ");
    text_u64(t, r->options->connections);
    text_char(t, '\n');
}

/* --- JSON --- */

static void json_latency(struct json *j, const char *key, const struct latency *l)
{
    json_object(j, key);
    json_u64(j, "count", latency_count(l));
    for (size_t i = 0; i < QUANTILE_COUNT; i++)
        json_double(j, quantiles[i].name,
                    (double)latency_quantile(l, quantiles[i].q) / (double)NS_PER_MS, 3);
    json_double(j, "max", (double)l->max / (double)NS_PER_MS, 3);
    json_double(j, "mean", histogram_mean(&l->histogram) / 1000, 3);
    json_object_end(j);
}

static void json_setting(const struct load_report *r, struct json *j)
{
    json_text(j, "url", r->url);
    json_double(j, "rate", r->options->rate, 3);
    json_text(j, "arrivals", arrivals_text(r->options->arrivals));
    json_double(j, "duration_s", seconds(r->options->duration), 3);
    json_double(j, "timeout_s", seconds(r->options->timeout), 3);
    json_u64(j, "max_connections", r->options->connections);
    json_u64(j, "seed", r->options->seed);
    json_bool(j, "interrupted", r->interrupted);
}

static void json_counts(const struct load_report *r, struct json *j)
{
    const struct tally *n = load_tally(r->load);

    json_double(j, "elapsed_s", seconds(load_elapsed(r->load)), 3);
    json_double(j, "achieved_rate", per_second(n->sent, load_elapsed(r->load)), 3);
    json_u64(j, "due", n->due);
    json_u64(j, "dropped", n->dropped);
    json_u64(j, "sent", n->sent);
    json_u64(j, "resent", n->resent);
    json_u64(j, "succeeded", n->succeeded);
    json_u64(j, "failed", failed(r));
    json_u64(j, "unfinished", in_flight(r));
    json_double(j, "success_rate", n->sent == 0 ? 0 : (double)n->succeeded / (double)n->sent, 6);
    json_u64(j, "body_bytes", n->body_bytes);
    json_u64(j, "connections_opened", n->opened);
    json_u64(j, "most_in_flight", load_most_in_flight(r->load));
}

static void json_outcomes(const struct tally *n, struct json *j)
{
    json_object(j, "errors");
    json_u64(j, "status", failed_by_status(n));
    for (int o = CALL_ANSWERED + 1; o < CALL_OUTCOME_COUNT; o++)
        json_u64(j, call_outcome_text((enum call_outcome)o), n->outcomes[o]);
    json_object_end(j);
    json_object(j, "statuses");
    for (uint32_t s = 0; s < TALLY_STATUSES; s++) {
        char key[8];
        struct text t;

        if (n->statuses[s] == 0)
            continue;
        text_init(&t, key, sizeof(key));
        text_u64(&t, s);
        json_u64(j, text_end(&t), n->statuses[s]);
    }
    json_object_end(j);
}

void load_report_json(const struct load_report *r, struct text *t)
{
    const struct tally *n = load_tally(r->load);
    struct json j;

    json_init(&j, t);
    json_object(&j, NULL);
    json_setting(r, &j);
    json_counts(r, &j);
    json_outcomes(n, &j);
    json_latency(&j, "latency_ms", &n->successes);
    json_latency(&j, "latency_all_ms", &n->all);
    json_latency(&j, "service_ms", &n->service);
    json_latency(&j, "lag_ms", &n->lag);
    json_object_end(&j);
    text_char(t, '\n');
}
