/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/demo_scenario.h"

#include <stddef.h>

#include "lab/show.h"

#define ZONE_B 4 /* the first server of it */
#define ZONE_C 7

const struct demo_scenario demo_scenarios[] = {
    {"slow", "takes three times as long", "\"fault\": \"slow\", \"value\": 3", 1, 28,
     "one is slow against its peers, and goes though it answers everything"},
    {"minority", "takes twenty times as long for 5 % of its answers",
     "\"fault\": \"slow\", \"value\": 20, \"probability\": 0.05", 1, 90,
     "a mean would hide it; latency alone cuts its share; with other evidence beside it, it goes"},
    {"fleet", "take three times as long", "\"fault\": \"slow\", \"value\": 3", DEMO_PEERS, 28,
     "all are slow alike: nobody is to blame, and nobody goes"},
    {"blackhole", "takes requests and never answers", "\"fault\": \"hang\"", 1, 28,
     "requests that stay open accuse it, before a single timeout has passed"},
    {"zone", "take three times as long: all of zone c", "\"fault\": \"slow\", \"value\": 3",
     DEMO_PEERS - ZONE_C, 28,
     "a whole zone is slow: its share shrinks, and none of its hosts goes"},
    {.name = NULL},
};

const struct demo_scenario *demo_scenario_find(struct bytes name)
{
    for (const struct demo_scenario *s = demo_scenarios; s->name != NULL; s++)
        if (bytes_equal(bytes_of(s->name), name))
            return s;
    return NULL;
}

const char *demo_zone(uint32_t i)
{
    if (i < ZONE_B)
        return "a";
    return i < ZONE_C ? "b" : "c";
}

uint32_t demo_bad_servers(const struct demo_scenario *s, uint32_t drawn)
{
    uint32_t first = s->bad == 1 ? drawn : DEMO_PEERS - s->bad;

    return ((1u << s->bad) - 1) << first;
}

/* --- side by side --- */

typedef void (*put_cell)(struct text *t, const struct demo_half *h);

static void put_requests(struct text *t, const struct demo_half *h)
{
    text_u64(t, h->since_fault.ended);
}

static void put_success(struct text *t, const struct demo_half *h)
{
    show_share(t, h->since_fault.succeeded, h->since_fault.ended);
}

static void put_quantile(struct text *t, const struct demo_score *s, double q)
{
    if (s->ended == 0)
        text_char(t, '-');
    else
        show_span(t, latency_quantile(&s->latency, q));
}

static void put_p50(struct text *t, const struct demo_half *h)
{
    put_quantile(t, &h->since_fault, 0.5);
}

static void put_p99(struct text *t, const struct demo_half *h)
{
    put_quantile(t, &h->since_fault, 0.99);
}

static void put_p999(struct text *t, const struct demo_half *h)
{
    put_quantile(t, &h->since_fault, 0.999);
}

static void put_late_p99(struct text *t, const struct demo_half *h)
{
    put_quantile(t, &h->late, 0.99);
}

/* Of those that anybody answered. */
static void put_bad_share(struct text *t, const struct demo_half *h)
{
    show_share(t, h->answered_by_bad, h->answered);
}

static void put_outs(struct text *t, const struct demo_half *h)
{
    uint32_t n = 0;

    for (uint32_t outs = h->outs; outs != 0; outs &= outs - 1)
        n++;
    text_u64(t, n);
    if (n == 0)
        return;
    text_str(t, n == 1 ? ", after " : ", the first after ");
    show_span(t, mono_since(h->fault_at, h->out_at));
}

static void put_row(struct text *t, const char *label, const struct demo_half *off,
                    const struct demo_half *on, put_cell put)
{
    size_t from = t->len;

    text_str(t, "  ");
    text_str(t, label);
    show_pad(t, from, 29);
    put(t, off);
    show_pad(t, from, 45);
    put(t, on);
    text_char(t, '\n');
}

void demo_write_scenario(struct text *t, const struct demo_scenario *s, const struct demo_half *off,
                         const struct demo_half *on)
{
    text_str(t, "  since the fault began      detection off   detection on\n");
    put_row(t, "requests", off, on, put_requests);
    put_row(t, "success", off, on, put_success);
    put_row(t, "p50", off, on, put_p50);
    put_row(t, "p99", off, on, put_p99);
    put_row(t, "p99.9", off, on, put_p999);
    put_row(t, "p99 in the second half", off, on, put_late_p99);
    put_row(t, "answered by bad servers", off, on, put_bad_share);
    put_row(t, "servers taken out", off, on, put_outs);
    text_str(t, "\n  ");
    text_str(t, s->name);
    text_str(t, ": ");
    text_str(t, s->see);
    text_str(t, ".\n");
}
