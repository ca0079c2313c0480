/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/demo_score.h"

#include <string.h>

#include "lab/show.h"

static void learn(struct demo_score *score, const struct shot *s)
{
    score->ended++;
    score->succeeded += shot_succeeded(s);
    latency_record(&score->latency, shot_latency(s));
}

static struct demo_peer *find(struct demo_half *h, const char *name)
{
    for (uint32_t i = 0; i < DEMO_PEERS; i++)
        if (strcmp(h->peers[i].name, name) == 0)
            return &h->peers[i];
    return NULL;
}

void demo_half_init(struct demo_half *h, const char *title, const struct address *servers)
{
    memset(h, 0, sizeof(*h));
    h->title = title;
    for (uint32_t i = 0; i < DEMO_PEERS; i++) {
        struct text t;

        text_init(&t, h->peers[i].name, sizeof(h->peers[i].name));
        address_write(&t, &servers[i]);
        text_end(&t);
        h->peers[i].state.address = servers[i];
    }
}

void demo_half_break(struct demo_half *h, uint32_t bad, mono_ns now, mono_ns until)
{
    h->bad = bad;
    h->faulty = true;
    h->fault_at = now;
    h->late_at = now + mono_since(now, until) / 2;
}

static void learn_since_fault(struct demo_half *h, const struct shot *s, const struct demo_peer *p)
{
    if (!h->faulty || s->due_at < h->fault_at)
        return;
    learn(&h->since_fault, s);
    if (s->due_at >= h->late_at)
        learn(&h->late, s);
    if (p == NULL)
        return;
    h->answered++;
    h->answered_by_bad += h->bad >> (p - h->peers) & 1;
}

void demo_half_learn(struct demo_half *h, const struct shot *s, const char *peer)
{
    struct demo_peer *p = find(h, peer);

    learn(&h->whole, s);
    if (h->ejected && s->due_at >= h->ejection_seen_at)
        learn(&h->since_ejection, s);
    if (p != NULL)
        learn(&p->score, s);
    learn_since_fault(h, s, p);
}

static void note_ejection(struct demo_half *h, const struct demo_peer *p, span_ns elapsed,
                          mono_ns now)
{
    span_ns ago = p->state.ejected_ms_ago * NS_PER_MS;

    if (h->ejected)
        return;
    h->ejected = true;
    h->ejection_seen_at = now;
    memcpy(h->ejected_name, p->name, sizeof(h->ejected_name));
    memcpy(h->ejected_reason, p->state.reason, sizeof(h->ejected_reason));
    h->ejected_after = elapsed > ago ? elapsed - ago : 0;
}

static void note_out(struct demo_half *h, uint32_t k, mono_ns now)
{
    span_ns ago = h->peers[k].state.ejected_ms_ago * NS_PER_MS;

    if (!h->faulty)
        return;
    if (h->outs == 0)
        h->out_at = now - ago > h->fault_at ? now - ago : h->fault_at;
    h->outs |= 1u << k;
}

void demo_half_see(struct demo_half *h, const struct peer_state *states, uint32_t n,
                   span_ns elapsed, mono_ns now)
{
    h->attempts = 0;
    for (uint32_t i = 0; i < n; i++) {
        h->attempts += states[i].attempts;
        for (uint32_t k = 0; k < DEMO_PEERS; k++)
            if (address_equal(&h->peers[k].state.address, &states[i].address))
                h->peers[k].state = states[i];
    }
    for (uint32_t k = 0; k < DEMO_PEERS; k++) {
        if (!h->peers[k].state.ejected)
            continue;
        note_ejection(h, &h->peers[k], elapsed, now);
        note_out(h, k, now);
    }
}

static void put_quantile(struct text *t, const struct demo_score *s, double q)
{
    if (s->ended == 0)
        text_char(t, '-');
    else
        show_span(t, latency_quantile(&s->latency, q));
}

/* A row fits a terminal of 80 columns: drawn over itself, a wrapped line would not. */
static void put_state(struct text *t, const struct peer_state *s)
{
    if (!s->ejected) {
        text_str(t, "in");
        return;
    }
    text_str(t, "OUT ");
    text_u64(t, (s->back_in_ms + 999) / 1000);
    text_str(t, "s ");
    text_str(t, s->reason);
}

static void put_score(struct text *t, const struct demo_score *s, size_t from)
{
    text_u64(t, s->ended);
    show_pad(t, from, 31);
    show_share(t, s->succeeded, s->ended);
    show_pad(t, from, 40);
    put_quantile(t, s, 0.5);
    show_pad(t, from, 47);
    put_quantile(t, s, 0.99);
}

static void put_row(struct text *t, const char *name, const struct demo_score *score,
                    const struct peer_state *state)
{
    size_t from = t->len;

    text_str(t, "  ");
    text_str(t, name);
    show_pad(t, from, 22);
    put_score(t, score, from);
    if (state != NULL) {
        show_pad(t, from, 55);
        put_state(t, state);
    }
    text_char(t, '\n');
}

static void put_title(struct text *t, const struct demo_half *h, span_ns elapsed)
{
    text_str(t, h->title);
    text_str(t, ", ");
    text_u64(t, elapsed / NS_PER_S);
    text_str(t, " s\n");
}

void demo_write_table(struct text *t, const struct demo_half *h, span_ns elapsed)
{
    put_title(t, h, elapsed);
    text_str(t, "  peer                requests success  p50    p99     state\n");
    for (uint32_t i = 0; i < DEMO_PEERS; i++)
        put_row(t, h->peers[i].name, &h->peers[i].score, &h->peers[i].state);
    put_row(t, "what clients see", &h->whole, NULL);
    text_char(t, '\n');
}

void demo_write_line(struct text *t, const struct demo_half *h, span_ns elapsed)
{
    text_str(t, h->title);
    text_str(t, ", ");
    text_u64(t, elapsed / NS_PER_S);
    text_str(t, " s: ");
    text_u64(t, h->whole.ended);
    text_str(t, " requests, success ");
    show_share(t, h->whole.succeeded, h->whole.ended);
    text_str(t, ", p50 ");
    put_quantile(t, &h->whole, 0.5);
    text_str(t, ", p99 ");
    put_quantile(t, &h->whole, 0.99);
    text_str(t, ", out: ");
    text_str(t, h->ejected ? h->ejected_name : "nobody");
    if (h->ejected) {
        text_str(t, " (");
        text_str(t, h->ejected_reason);
        text_char(t, ')');
    }
    text_char(t, '\n');
}

/* A line of the comparison: three cells, the last only where somebody was ejected. */
struct comparison {
    const struct demo_half *off;
    const struct demo_half *on;
};

typedef void (*put_cell)(struct text *t, const struct demo_score *s);

static void put_requests(struct text *t, const struct demo_score *s)
{
    text_u64(t, s->ended);
}

static void put_success(struct text *t, const struct demo_score *s)
{
    show_share(t, s->succeeded, s->ended);
}

static void put_p50(struct text *t, const struct demo_score *s)
{
    put_quantile(t, s, 0.5);
}

static void put_p99(struct text *t, const struct demo_score *s)
{
    put_quantile(t, s, 0.99);
}

static void compare(struct text *t, const struct comparison *c, const char *label, put_cell put)
{
    size_t from = t->len;

    text_str(t, "  ");
    text_str(t, label);
    show_pad(t, from, 23);
    put(t, &c->off->whole);
    show_pad(t, from, 39);
    put(t, &c->on->whole);
    if (c->on->ejected) {
        show_pad(t, from, 55);
        put(t, &c->on->since_ejection);
    }
    text_char(t, '\n');
}

static void compare_attempts(struct text *t, const struct comparison *c)
{
    size_t from = t->len;

    text_str(t, "  attempts upstream");
    show_pad(t, from, 23);
    text_u64(t, c->off->attempts);
    show_pad(t, from, 39);
    text_u64(t, c->on->attempts);
    text_char(t, '\n');
}

static void put_dropped(struct text *t, const struct comparison *c)
{
    if (c->off->dropped + c->on->dropped == 0)
        return;
    text_str(t, "  The generator dropped ");
    text_u64(t, c->off->dropped);
    text_str(t, " and ");
    text_u64(t, c->on->dropped);
    text_str(t, " requests for want of a connection; they are in no column.\n");
}

void demo_write_comparison(struct text *t, const struct demo_half *off, const struct demo_half *on)
{
    const struct comparison c = {off, on};

    text_str(t, "                       ejection off    ejection on");
    text_str(t, on->ejected ? "     ... once it was out\n" : "\n");
    compare(t, &c, "requests", put_requests);
    compare(t, &c, "success", put_success);
    compare(t, &c, "p50", put_p50);
    compare(t, &c, "p99", put_p99);
    compare_attempts(t, &c);
    put_dropped(t, &c);
    if (!on->ejected) {
        text_str(t, "\n  Nobody was ejected: the bad server did not fail often enough in a row.\n");
        return;
    }
    text_str(t, "\n  ");
    text_str(t, on->ejected_name);
    text_str(t, " was taken out after ");
    show_span(t, on->ejected_after);
    text_str(t, ": ");
    text_str(t, on->ejected_reason);
    text_str(t, ".\n");
}
