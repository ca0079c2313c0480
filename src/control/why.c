/* SPDX-License-Identifier: Apache-2.0 */
#include "control/why.h"

#include <math.h>

#include "base/date.h"
#include "codec/json.h"
#include "control/decision_take.h"
#include "control/effect_watch.h"
#include "policy/detect_delay.h"
#include "policy/host.h"

#define LATELY_SPAN        2.5 /* seconds that detect_rate |lately| is of */
#define SIGMA_USUAL        0.5 /* where too few answers are known */
#define HALF_SECONDS_LEAST 2.0 /* seconds that latency takes at least: four half seconds */

/* A host that is watched, as it is now. */
struct subject {
    const struct watched *c;
    uint32_t index;
    const struct host *host;
    mono_ns now;
};

static bool find(const struct outlier_watch *w, const struct cluster *c, uint32_t endpoint,
                 mono_ns now, struct subject *out)
{
    uint32_t slot = c->endpoints[endpoint].slot;

    *out = (struct subject){.host = c->hosts.at[slot], .now = now};
    out->c = watched_find(w, c->state, slot, &out->index);
    return out->c != NULL;
}

/* --- how it is --- */

static const char *state_of(const struct host *h)
{
    if (host_is_ejected(h) && life_serves(&h->life))
        return life_state_text(LIFE_EJECTED);
    return life_state_text(h->life.state);
}

static void put_state(struct text *t, const struct subject *s, struct bytes name)
{
    const struct life *l = &s->host->life;

    text_put(t, name);
    text_str(t, " is ");
    text_str(t, state_of(s->host));
    if (l->state == LIFE_PROBING) {
        text_str(t, ", ");
        text_u64(t, l->in_row);
        text_str(t, " good probes in a row");
    }
    if (host_is_drained(s->host))
        text_str(t, ", drained by hand");
    if (l->needs_human)
        text_str(t, ", needs a human");
    if (life_serves(l) && !host_is_ejected(s->host)) {
        text_str(t, ", with a share of ");
        text_double(t, l->share / 10.0, 1);
        text_str(t, " %");
    }
}

static enum detect_line nearest_line(const struct decision *d)
{
    enum detect_line most = DETECT_RANK;

    for (int line = 0; line < DETECT_LINE_COUNT; line++)
        most = d->sums[line] > d->sums[most] ? (enum detect_line)line : most;
    return most;
}

void why_line(const struct outlier_watch *w, const struct cluster *c, uint32_t endpoint,
              mono_ns now, struct text *t)
{
    struct subject s;
    struct decision d;

    if (!find(w, c, endpoint, now, &s))
        return;
    put_state(t, &s, c->endpoints[endpoint].text);
    if (s.c->detection != NULL) {
        decision_take(s.c, s.index, DETECT_LINE_COUNT, now, &d);
        text_str(t, "; most against it: ");
        text_str(t, detect_line_text(nearest_line(&d)));
        text_char(t, ' ');
        text_double(t, d.sums[nearest_line(&d)], 1);
        text_str(t, " of ");
        text_double(t, s.c->detection->judge.config.threshold, 1);
        text_str(t, " nats");
    }
    text_char(t, '\n');
}

/* --- the evidence, and what the guards would say --- */

static void put_sums(struct text *t, const struct decision *d)
{
    text_str(t, "\nEvidence against it, in nats; ");
    text_double(t, d->threshold, 1);
    text_str(t, " accuse it:\n");
    for (int line = 0; line < DETECT_LINE_COUNT; line++) {
        text_str(t, "  ");
        text_str(t, detect_line_text((enum detect_line)line));
        text_str(t, ": ");
        text_double(t, d->sums[line], 1);
        text_char(t, '\n');
    }
    if (!d->rated)
        return;
    text_str(t, "Its median is ");
    text_double(t, d->ratio, 2);
    text_str(t, " times its peers' (gate ");
    text_double(t, d->gate, 2);
    text_str(t, ", usually ");
    text_double(t, d->usual, 2);
    text_str(t, ").\n");
}

static void put_outcome(struct text *t, const struct decision *d)
{
    enum decision_guard first = decision_first_guard(d);
    struct decision held = *d;

    if (first == GUARD_COUNT) {
        text_str(t, "  so it would be ejected\n");
        return;
    }
    held.guard = first;
    text_str(t, "  so it would not be ejected; what would change that: ");
    decision_remedy(t, &held);
    text_char(t, '\n');
}

static void put_guards(struct text *t, const struct subject *s, enum detect_line line,
                       const char *head)
{
    struct decision d;

    decision_take(s->c, s->index, line, s->now, &d);
    text_str(t, head);
    for (int g = 0; g < GUARD_COUNT; g++) {
        if (d.verdicts[g] == GUARD_NOT_ASKED)
            continue;
        text_str(t, "  ");
        text_str(t, decision_guard_name((enum decision_guard)g));
        text_str(t, d.verdicts[g] == GUARD_HOLDS ? " HOLDS: " : " passes: ");
        decision_guard_words(t, &d, (enum decision_guard)g);
        text_char(t, '\n');
    }
    put_outcome(t, &d);
}

/* --- how long it would take --- */

/* Where hardly anything comes in that time: by its latest tries, and by how long there were none.
 */
static double rate_of(const struct subject *s)
{
    const struct detect_host *h = s->c->detection->members[s->index];
    const mono_ns *tried = h->tried[DETECT_OF_ERRORS];
    double lately = h->lately[DETECT_OF_ERRORS].tries, gaps = DETECT_TRIES - 1, over;

    if (lately >= DETECT_TRIES || tried[DETECT_TRIES - 1] == 0)
        return lately / LATELY_SPAN;
    over = fmax((double)mono_since(tried[DETECT_TRIES - 1], tried[0]),
                (double)mono_since(tried[DETECT_TRIES - 1], s->now) * gaps / DETECT_TRIES);
    return over == 0 ? lately / LATELY_SPAN : gaps * (double)NS_PER_S / over;
}

/* Of the logarithms of its latencies, in the class with most of them: half of the way from the
 * 16th to the 84th percentile. */
static double sigma_of(const struct subject *s)
{
    const struct detect_host *h = s->c->detection->members[s->index];
    const struct peer_series *most = NULL;

    for (uint32_t class = 0; class < EVIDENCE_CLASS_MAX; class ++) {
        const struct peer_series *one = h->series[class];

        if (one != NULL && (most == NULL || one->count > most->count))
            most = one;
    }
    if (most == NULL || most->count < PEER_RECENT)
        return SIGMA_USUAL;
    return peer_log_ratio(peer_quantile(most, 0.84) - peer_quantile(most, 0.16)) / 2;
}

static void put_delay(struct text *t, const char *fault, double answers, double rate, double least)
{
    text_str(t, "  ");
    text_str(t, fault);
    text_str(t, ": ");
    if (answers < 0) {
        text_str(t, "never\n");
        return;
    }
    text_double(t, ceil(answers), 0);
    text_str(t, " answers");
    if (rate > 0) {
        text_str(t, ", ");
        text_double(t, fmax(answers / rate, least), 1);
        text_str(t, " s");
    }
    text_char(t, '\n');
}

static void put_delays(struct text *t, const struct subject *s)
{
    const struct detect *judge = &s->c->detection->judge;
    double h = judge->config.threshold, rate = rate_of(s), sigma = sigma_of(s);
    double usual = detect_peers_rate(judge, s->index, DETECT_OF_ERRORS);

    text_str(t, "\nHow long detection takes at its present rate of ");
    text_double(t, rate, rate < 1 ? 2 : 1);
    text_str(t, " requests/s, from the first bad answer on:\n");
    put_delay(t, "twice as slow", detect_answers_slower(h, 2, sigma), rate, HALF_SECONDS_LEAST);
    put_delay(t, "three times as slow", detect_answers_slower(h, 3, sigma), rate,
              HALF_SECONDS_LEAST);
    put_delay(t, "5 % fail", detect_answers_failing(h, usual, 0.05), rate, 0);
    put_delay(t, "20 % fail", detect_answers_failing(h, usual, 0.2), rate, 0);
    put_delay(t, "all fail", detect_answers_failing(h, usual, 1), rate, 0);
}

void why_host(const struct outlier_watch *w, const struct cluster *c, uint32_t endpoint,
              mono_ns now, struct text *t)
{
    struct subject s;
    struct decision d;

    if (!find(w, c, endpoint, now, &s))
        return;
    put_state(t, &s, c->endpoints[endpoint].text);
    text_str(t, ".\n");
    if (s.c->detection == NULL) {
        text_str(t, "Detection is off for its cluster: only the rules of outlier detection are at "
                    "work.\n");
        return;
    }
    decision_take(s.c, s.index, DETECT_RANK, now, &d);
    put_sums(t, &d);
    put_guards(t, &s, DETECT_RANK, "\nIf it were accused of latency now:\n");
    put_guards(t, &s, DETECT_ERRORS_MANY, "\nIf it were accused of failures now:\n");
    effect_why(s.c, s.index, t);
    put_delays(t, &s);
}

void why_json(const struct outlier_watch *w, const struct cluster *c, uint32_t endpoint,
              mono_ns now, struct text *t)
{
    struct subject s;
    struct decision d;

    if (!find(w, c, endpoint, now, &s)) {
        text_str(t, "null");
        return;
    }
    text_str(t, "{\"latency\":");
    decision_take(s.c, s.index, DETECT_RANK, now, &d);
    d.state = d.before;
    d.share = s.host->life.share;
    d.guard = decision_first_guard(&d);
    decision_json(t, &d);
    text_str(t, ",\"failures\":");
    decision_take(s.c, s.index, DETECT_ERRORS_MANY, now, &d);
    d.state = d.before;
    d.share = s.host->life.share;
    d.guard = decision_first_guard(&d);
    decision_json(t, &d);
    text_str(t, ",\"requests_per_second\":");
    text_double(t, s.c->detection == NULL ? 0 : rate_of(&s), 3);
    text_char(t, '}');
}

/* --- what was decided --- */

void why_decision(const struct decision *d, struct text *t)
{
    size_t from;

    text_char(t, '#');
    text_u64(t, d->number);
    text_char(t, ' ');
    date_utc(t, d->at);
    text_char(t, ' ');
    text_str(t, decision_what_text(d->what));
    text_str(t, ": ");
    decision_words(t, d);
    text_char(t, '\n');
    from = t->len;
    text_str(t, "  what would change it: ");
    decision_remedy(t, d);
    if (t->len == from + 24)
        t->len = from;
    else
        text_char(t, '\n');
}
