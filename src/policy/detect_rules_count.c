/* SPDX-License-Identifier: Apache-2.0 */
/* The rules that count: runs, numbers and shares within a time. */
#include <string.h>

#include "policy/detect_rules_parts.h"

/* --- what a sample says --- */

enum meaning { MEANS_NOTHING, MEANS_GOOD, MEANS_BAD };

static bool is_5xx(const struct evidence *e)
{
    return e->outcome == EVIDENCE_ERROR || e->outcome == EVIDENCE_GATEWAY;
}

static bool is_connect_failure(const struct evidence *e)
{
    return e->outcome == EVIDENCE_CONNECT_FAILED || e->outcome == EVIDENCE_REFUSED;
}

static bool is_lost(const struct evidence *e)
{
    return e->outcome == EVIDENCE_RESET || e->outcome == EVIDENCE_CUT;
}

/* It says nothing of whether the host failed. */
static bool is_undecided(const struct evidence *e)
{
    return e->outcome == EVIDENCE_LATE || e->outcome == EVIDENCE_ABANDONED;
}

bool rule_shows(enum rule_signal s, const struct evidence *e)
{
    bool timeout = e->outcome == EVIDENCE_TIMEOUT;

    switch (s) {
    case RULE_ERROR:
        return is_5xx(e);
    case RULE_TIMEOUT:
        return timeout;
    case RULE_RESET:
        return is_lost(e);
    case RULE_REFUSED:
        return e->outcome == EVIDENCE_REFUSED;
    case RULE_TIMEOUT_OR_RESET:
        return timeout || is_lost(e);
    case RULE_CONSECUTIVE_5XX:
    case RULE_LOCAL_ORIGIN:
    case RULE_CONNECT_FAILURE:
    case RULE_QUEUE_DELAY:
    case RULE_P95:
    case RULE_P99:
    case RULE_SIGNAL_COUNT:
        return false;
    }
    return false;
}

static enum meaning of_5xx(const struct evidence *e)
{
    if (is_5xx(e))
        return MEANS_BAD;
    return e->outcome == EVIDENCE_OK ? MEANS_GOOD : MEANS_NOTHING;
}

static enum meaning of_local_origin(const struct evidence *e)
{
    if (is_connect_failure(e) || is_lost(e) || e->outcome == EVIDENCE_TIMEOUT)
        return MEANS_BAD;
    return e->outcome == EVIDENCE_OK || is_5xx(e) ? MEANS_GOOD : MEANS_NOTHING;
}

/* --- failures in a row, and how many of them --- */

static void add_time(struct rule_times *t, mono_ns at)
{
    t->at[t->next % RULE_AT_LEAST_MAX] = at;
    t->next = (t->next + 1) % RULE_AT_LEAST_MAX;
    t->count += t->count < UINT32_MAX;
}

/* When the |n|-th latest was, the latest being the first. */
static mono_ns nth_latest(const struct rule_times *t, uint32_t n)
{
    return t->at[(t->next + RULE_AT_LEAST_MAX - n) % RULE_AT_LEAST_MAX];
}

static void judge_times(struct rule_cell *cell, const struct rule *r, mono_ns now)
{
    const struct rule_times *t = &cell->times;
    bool found =
        t->count >= r->at_least && mono_since(nth_latest(t, r->at_least), now) <= r->within;

    cell->finding.level = found ? RULE_CANDIDATE : RULE_QUIET;
    cell->finding.value = r->at_least;
    cell->finding.requests = r->at_least;
    cell->finding.agreed = true;
    cell->found_at = now;
}

static void learn_run(struct rule_cell *cell, const struct rule *r, enum meaning m, mono_ns now)
{
    if (m == MEANS_GOOD) {
        cell->times.count = 0;
        cell->finding.level = RULE_QUIET;
    } else if (m == MEANS_BAD) {
        add_time(&cell->times, now);
        judge_times(cell, r, now);
    }
}

/* --- shares --- */

static void advance(struct rule_slices *s, uint64_t slice)
{
    uint64_t gone = slice > s->newest ? slice - s->newest : 0;

    if (gone >= RULE_SLICES) {
        memset(s, 0, sizeof(*s));
    } else {
        for (uint64_t i = s->newest + 1; i <= slice; i++)
            s->tries[i % RULE_SLICES] = s->bad[i % RULE_SLICES] = s->with[i % RULE_SLICES] = 0;
    }
    if (gone > 0)
        s->newest = slice;
}

static uint64_t slice_of(const struct rule *r, mono_ns at)
{
    return at / (r->within / RULE_SLICES);
}

static uint64_t sum(const uint32_t *slices)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < RULE_SLICES; i++)
        n += slices[i];
    return n;
}

static void add(uint32_t *to, uint32_t n)
{
    *to += n < UINT32_MAX - *to ? n : UINT32_MAX - *to;
}

static struct rule_with with_of(const struct rule_slices *s)
{
    return (struct rule_with){.tries = sum(s->tries), .bad = sum(s->with)};
}

/* All other serving hosts' at the same time. */
static struct rule_with peers_with(const struct rules_judge *j, uint32_t index, uint32_t number,
                                   const struct evidence *e)
{
    struct rule_with all = {0, 0};

    for (uint32_t i = 0; i < j->count; i++) {
        const struct rules_host *h = j->hosts[i];
        struct rule_with one = {0, 0};

        if (i == index || !h->serving || h->cells[e->class] == NULL)
            continue;
        advance(&h->cells[e->class][number].slices, slice_of(&j->rules[number], e->at));
        one = with_of(&h->cells[e->class][number].slices);
        all.tries += one.tries;
        all.bad += one.bad;
    }
    return all;
}

static bool agrees(const struct rules_judge *j, uint32_t index, uint32_t number,
                   const struct rule_slices *own, const struct evidence *e)
{
    struct rule_with mine = with_of(own), theirs;

    if (j->rules[number].with == RULE_WITH_NONE)
        return true;
    if (mine.bad < RULE_WITH_LEAST)
        return false;
    theirs = peers_with(j, index, number, e);
    return rule_with_above(&mine, &theirs);
}

static bool is_above(const struct rule *r, uint64_t bad, uint64_t tries)
{
    uint32_t above = rule_kind_of(r->signal) == RULE_OF_WAIT ? 500 : r->above;

    return tries >= r->min_requests && bad * 1000 > tries * above;
}

static bool is_bad(const struct rule *r, const struct evidence *e)
{
    if (rule_kind_of(r->signal) == RULE_OF_WAIT)
        return (span_ns)e->queue_us * NS_PER_US > r->delay;
    return rule_shows(r->signal, e);
}

static void learn_share(const struct rules_judge *j, uint32_t index, uint32_t number,
                        struct rule_cell *cell, const struct evidence *e)
{
    const struct rule *r = &j->rules[number];
    struct rule_slices *s = &cell->slices;
    uint64_t slice = slice_of(r, e->at), tries, bad;

    advance(s, slice);
    add(&s->tries[s->newest % RULE_SLICES], rule_weight(e));
    add(&s->bad[s->newest % RULE_SLICES], is_bad(r, e) ? rule_weight(e) : 0);
    add(&s->with[s->newest % RULE_SLICES], rule_shows(r->with, e) ? rule_weight(e) : 0);
    tries = sum(s->tries);
    bad = sum(s->bad);
    cell->finding.level = RULE_QUIET;
    if (!is_above(r, bad, tries))
        return;
    cell->finding.agreed = agrees(j, index, number, s, e);
    cell->finding.level = cell->finding.agreed ? RULE_CANDIDATE : RULE_SUSPECT;
    cell->finding.value = (double)bad / (double)tries;
    cell->finding.requests = tries > UINT32_MAX ? UINT32_MAX : (uint32_t)tries;
    cell->found_at = e->at;
}

/* --- one sample --- */

void rule_count_learn(const struct rules_judge *j, uint32_t index, uint32_t number,
                      struct rule_cell *cell, const struct evidence *e)
{
    const struct rule *r = &j->rules[number];

    cell->finding.number = number;
    cell->finding.class = e->class;
    if (r->signal == RULE_CONSECUTIVE_5XX)
        learn_run(cell, r, of_5xx(e), e->at);
    else if (r->signal == RULE_LOCAL_ORIGIN)
        learn_run(cell, r, of_local_origin(e), e->at);
    else if (r->signal == RULE_CONNECT_FAILURE)
        learn_run(cell, r, is_connect_failure(e) ? MEANS_BAD : MEANS_NOTHING, e->at);
    else if (!is_undecided(e))
        learn_share(j, index, number, cell, e);
}
