/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of effects: lines of the log, gauges. */
#include <inttypes.h>
#include <math.h>

#include "control/detection_say.h"
#include "control/effect_parts.h"
#include "policy/host.h"

static double percent(const struct effect_count *c)
{
    return c->tries > 0 ? 100 * fmin(c->bad / c->tries, 1) : 0;
}

static double seconds(span_ns t)
{
    return (double)(t / NS_PER_MS) / 1000;
}

static const char *grounds_text(uint32_t cause)
{
    if (cause == GROUNDS_HAND)
        return "by hand";
    if (cause < GROUNDS_TRIGGERS)
        return detect_line_text((enum detect_line)cause);
    return outlier_trigger_text((enum outlier_trigger)(cause - GROUNDS_TRIGGERS));
}

static struct effect_count survivors(const struct effect_account *a)
{
    struct effect_count all = {0};

    for (int part = 0; part < EFFECT_PART_COUNT; part++) {
        all.tries += a->parts[part].tries;
        all.bad += a->parts[part].bad;
        all.timed_out += a->parts[part].timed_out;
    }
    return all;
}

void effect_say_undone(struct watched *c, uint32_t index, mono_ns now)
{
    const struct effect_host *h = effect_of(c, index);
    const struct effect_account *a = h->account;
    struct effect_count since = survivors(a);

    log_event(c->watch->setup.log, LOG_WARNING, "endpoint.ejection_undone",
              "%.*s of cluster %.*s: its ejection (%s) %.1f s ago was %s: of its attempts %.1f %% "
              "had failed or were slow, of the survivors' since %.1f %%, of all before %.1f %%; it "
              "is in again, and not ejected for the same within %.0f s while that lasts",
              WHOM(c, index), grounds_text(h->cause), seconds(mono_since(a->opened, now)),
              effect_verdict_text(a->verdict), percent(&a->host.lately), percent(&since),
              percent(&a->fleet.usual), seconds(h->held_for));
}

#define HELD_EVERY (5 * NS_PER_S)

void effect_say_held(struct watched *c, uint32_t index, enum detect_line line, mono_ns now)
{
    struct effect_host *h = effect_of(c, index);

    if (now < h->next_line)
        return;
    h->next_line = mono_after(now, HELD_EVERY);
    log_event(c->watch->setup.log, LOG_WARNING, "endpoint.accusation_held",
              "%.*s of cluster %.*s: line %s accuses it, but its ejection for the same was undone "
              "%.1f s ago, and its peers have the same still",
              WHOM(c, index), detect_line_text(line), seconds(mono_since(h->undone, now)));
}

void effect_say_closed(struct watched *c, uint32_t index, mono_ns now)
{
    const struct effect_host *h = effect_of(c, index);
    const struct effect_account *a = h->account;
    struct effect_claim claim = effect_claims(a);

    log_event(c->watch->setup.log, LOG_INFO, "endpoint.ejection_effect",
              "%.*s of cluster %.*s, ejection (%s), %.1f s: %s; about %.0f failures and %.0f slow "
              "answers avoided; e-values: helped %.3g, useless %.3g, harmful %.3g; p99 %.2f and "
              "timeouts %.2f times as before (negative: not known)",
              WHOM(c, index), grounds_text(h->cause), seconds(mono_since(a->opened, now)),
              effect_verdict_text(a->verdict), claim.failures, claim.slow, exp(a->helped.most),
              exp(a->useless.most), exp(a->harmful.most), effect_p99_ratio(a),
              effect_timeouts_ratio(a));
}

void effect_say_thresholds(struct watched *c, uint32_t index, double ratio)
{
    const struct effect_account *a = effect_of(c, index)->account;
    struct effect_count since = survivors(a);

    log_event(c->watch->setup.log, LOG_WARNING, "cluster.thresholds_need_work",
              "%.*s of cluster %.*s was ejected, and %.2f %% of attempts time out still, before it "
              "were %.2f %%: down by %.0f %%, not by 30 %%; the thresholds need work",
              WHOM(c, index), 100 * since.timed_out / since.tries,
              100 * a->fleet.longer.timed_out / a->fleet.longer.tries, 100 * (1 - ratio));
}

void effect_say_capacity(struct watched *c, uint32_t index, double load)
{
    log_event(c->watch->setup.log, LOG_WARNING, "endpoint.readmitted_for_capacity",
              "%.*s of cluster %.*s, the least bad of those out (%.0f %% of its attempts fail or "
              "are slow), is in again: the others are loaded to %.0f %% of where they slow down; "
              "no more than %" PRIu32 " of %" PRIu32 " hosts may be out for now",
              WHOM(c, index), 100 * effect_of(c, index)->badness, 100 * load, c->judge.most_out,
              c->judge.count);
}

void effect_say_no_help(struct watched *c, double load)
{
    log_event(c->watch->setup.log, LOG_WARNING, "cluster.capacity",
              "the hosts of cluster %.*s that serve are loaded to %.0f %% of where they slow down, "
              "and none of those out would help: no more go out for now",
              bytes_width(c->config->name), (const char *)c->config->name.data, 100 * load);
}

/* --- for whoever asks why --- */

static void put_percent(struct text *t, const char *before, const struct effect_count *of)
{
    text_str(t, before);
    text_double(t, percent(of), 2);
    text_str(t, " %");
}

static void put_times(struct text *t, const char *before, double ratio)
{
    text_str(t, before);
    if (ratio < 0) {
        text_str(t, "not known");
        return;
    }
    text_double(t, ratio, 2);
    text_str(t, " times as before");
}

static void put_account(struct text *t, const struct effect_account *a)
{
    struct effect_count since = survivors(a);
    struct effect_claim claim = effect_claims(a);

    text_str(t, "\nHas it helped to leave it out? So far: ");
    text_str(t, effect_verdict_text(a->verdict));
    put_percent(t, "\n  before, of its requests failed or were slow ", &a->host.lately);
    put_percent(t, ", of all ", &a->fleet.usual);
    put_percent(t, "; since then, of the others' ", &since);
    put_times(t, "\n  p99: ", effect_p99_ratio(a));
    put_times(t, "; timeouts: ", effect_timeouts_ratio(a));
    text_str(t, "\n  avoided: about ");
    text_double(t, claim.failures, 0);
    text_str(t, " failures and ");
    text_double(t, claim.slow, 0);
    text_str(t, " slow answers\n");
}

static struct effect_count less(const struct effect_count *all, const struct effect_count *one)
{
    return (struct effect_count){.tries = fmax(all->tries - one->tries, 0),
                                 .bad = fmax(all->bad - one->bad, 0)};
}

void effect_why(const struct watched *c, uint32_t index, struct text *t)
{
    const struct effect_host *h;
    struct effect_count others;

    if (c->effects == NULL)
        return;
    h = effect_of(c, index);
    if (h->account != NULL && !h->account->summed_up) {
        put_account(t, h->account);
        return;
    }
    others = less(&c->effects->fleet.longer, &h->past.longer);
    put_percent(t,
                "\nWould it help to leave it out? In the last half minute, of all requests "
                "failed or were slow ",
                &c->effects->fleet.longer);
    put_percent(t, ", of its own ", &h->past.longer);
    put_percent(t, "; without it ", &others);
    text_char(t, '\n');
}

/* --- gauges --- */

static void set(struct watched *c, enum effect_metric m, double value)
{
    atomic_store_explicit(&c->state->effect[m], value > 0 ? (uint64_t)(value + 0.5) : 0,
                          memory_order_relaxed);
}

static double mean(const struct effect_mean *m)
{
    return m->count > 0 ? m->sum / m->count : 0;
}

static void show_claims(struct watched *c)
{
    struct effect_claim all = c->effects->closed;

    for (const struct effect_host *h = c->effects->open; h != NULL; h = h->next) {
        struct effect_claim claim = {0};

        if (!h->account->summed_up)
            claim = effect_claims(h->account);
        all.failures += claim.failures;
        all.slow += claim.slow;
    }
    set(c, EFFECT_STAT_failures_avoided, all.failures);
    set(c, EFFECT_STAT_slow_avoided, all.slow);
}

static void show_zones(struct watched *c)
{
    double out[DETECT_STRATUM_MAX] = {0}, all[DETECT_STRATUM_MAX] = {0}, most = 0;

    for (uint32_t i = 0; i < c->roster.count; i++) {
        uint32_t s = c->detection->members[i]->stratum;

        all[s] += 1;
        out[s] += effect_is_out(c, i);
    }
    for (uint32_t s = 0; s < DETECT_STRATUM_MAX; s++)
        most = all[s] > 0 ? fmax(most, out[s] / all[s]) : most;
    if (c->roster.count > 0)
        set(c, EFFECT_STAT_zone_skew, 1000 * (most - (double)c->judge.ejected / c->roster.count));
}

static void show_capacity(struct watched *c)
{
    double left = 0;

    for (uint32_t i = 0; i < c->roster.count; i++) {
        const struct life *l = &c->state->hosts.at[c->roster.hosts[i].slot]->life;

        left += effect_is_out(c, i) ? 0 : l->share;
    }
    if (c->roster.count > 0)
        set(c, EFFECT_STAT_capacity_left, left / c->roster.count);
    set(c, EFFECT_STAT_cap_lowered, c->judge.lowered);
}

void effect_show(struct watched *c)
{
    const struct effects *e = c->effects;

    set(c, EFFECT_STAT_accounts_open, e->open_count);
    show_claims(c);
    if (e->p99.count > 0)
        set(c, EFFECT_STAT_p99_ratio, 1000 * exp(mean(&e->p99)));
    if (e->timeouts.count > 0)
        set(c, EFFECT_STAT_timeout_ratio, 1000 * exp(mean(&e->timeouts)));
    set(c, EFFECT_STAT_time_out_mean, mean(&e->time_out));
    show_zones(c);
    show_capacity(c);
}
