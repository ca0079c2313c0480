/* SPDX-License-Identifier: Apache-2.0 */
#include "control/detection_scope.h"

#include <math.h>

#include "model/snapshot.h"
#include "policy/host.h"

static struct host *host_of(const struct watched *c, uint32_t index)
{
    return c->state->hosts.at[c->roster.hosts[index].slot];
}

/* --- zones and versions --- */

#define FNV_BASIS UINT64_C(14695981039346656037)
#define FNV_PRIME UINT64_C(1099511628211)

/* FNV-1a; 0: there is none. */
static uint64_t name_of(struct bytes text)
{
    uint64_t h = FNV_BASIS;

    if (text.len == 0)
        return 0;
    for (size_t i = 0; i < text.len; i++)
        h = (h ^ text.data[i]) * FNV_PRIME;
    return h == 0 ? 1 : h;
}

#define STRATUM_LEAST 4 /* hosts: three peers each */

struct strata {
    uint32_t of_zone[SCOPE_GROUPS_MAX + 1]; /* its hosts, then its stratum */
    bool used[DETECT_STRATUM_MAX];          /* before */
};

static void find_strata(const struct watched *c, struct strata *s)
{
    *s = (struct strata){.of_zone = {0}};
    for (uint32_t i = 0; i < c->roster.count; i++) {
        s->of_zone[c->detection->scoped[i].group[SCOPE_ZONES]]++;
        s->used[c->detection->members[i]->stratum] = true;
    }
    for (uint32_t g = 0; g <= SCOPE_GROUPS_MAX; g++) {
        bool own = g + 1 < DETECT_STRATUM_MAX && s->of_zone[g] >= STRATUM_LEAST;

        s->of_zone[g] = own ? g + 1 : 0;
    }
}

/* What is known of the stratum is of hosts that are others now. */
static void begin_stratum(struct detect *d, uint32_t stratum)
{
    for (uint32_t class = 0; class < EVIDENCE_CLASS_MAX; class ++)
        d->classes[class][stratum] = (struct detect_class){-1, -1, 0};
}

/* Its usual place was one among other peers. */
static void move(struct watched *c, uint32_t index, const struct strata *s)
{
    struct detect_host *h = c->detection->members[index];
    uint32_t stratum = s->of_zone[c->detection->scoped[index].group[SCOPE_ZONES]];

    if (h->stratum == stratum)
        return;
    if (!s->used[stratum])
        begin_stratum(&c->detection->judge, stratum);
    h->stratum = stratum;
    h->usual = h->offset = h->usual_slow = 0;
}

/* Attempts but retries: what comes of a trouble does not count as its cause. */
static uint64_t asked_of(const struct watched *c)
{
    uint64_t attempts = cluster_state_sum(c->state, CLUSTER_upstream_rq_total);
    uint64_t retries = cluster_state_sum(c->state, CLUSTER_upstream_rq_retry);

    return attempts > retries ? attempts - retries : 0;
}

void detection_stratify(struct watched *c)
{
    struct detection *d = c->detection;
    struct strata strata;

    for (uint32_t i = 0; i < c->roster.count; i++) {
        const struct endpoint *e = c->roster.hosts[i].endpoint;

        d->scoped[i] = (struct scope_host){
            .name = {[SCOPE_ZONES] = name_of(e->zone), [SCOPE_VERSIONS] = name_of(e->version)}};
    }
    if (d->asked == 0)
        d->asked = asked_of(c);
    scope_adopt(&d->scope, &d->judge, d->scoped, c->roster.count);
    find_strata(c, &strata);
    for (uint32_t i = 0; i < c->roster.count; i++)
        move(c, i, &strata);
}

/* --- the verdict --- */

/* Out for what it was accused of, not by hand. */
static bool is_out(const struct host *h)
{
    return !life_serves(&h->life) &&
           atomic_load_explicit(&h->last_trigger, memory_order_relaxed) != OUTLIER_NONE;
}

/* What is done to it, and for whose sake. */
static void see(struct watched *c, uint32_t index)
{
    const struct host *h = host_of(c, index);
    enum scope_kind cut_for = c->detection->notes[index].cut_for;
    struct scope_host *seen = &c->detection->scoped[index];
    bool suspect = h->life.state == LIFE_SUSPECT;

    seen->out = is_out(h);
    seen->suspect = suspect && cut_for == SCOPE_NONE;
    seen->cut_for = suspect ? cut_for : SCOPE_NONE;
}

static void look(struct watched *c)
{
    if (c->detection->looked)
        return;
    c->detection->looked = true;
    for (uint32_t i = 0; i < c->roster.count; i++)
        see(c, i);
    (void)scope_look(&c->detection->scope);
}

enum scope_kind detection_scope_of(struct watched *c, uint32_t index, enum detect_line line)
{
    look(c);
    return scope_of(&c->detection->scope, index, line);
}

enum scope_kind detection_scope_says(struct watched *c, uint32_t index, enum detect_line line)
{
    look(c);
    return scope_says(&c->detection->scope, index, line);
}

/* --- what is done about a zone or version --- */

#define SURE_AFTER 1    /* half seconds */
#define LOAD_MOST  0.75 /* of the others, that they may get more: 1 is where they slow down */
#define HALF       (LIFE_WHOLE / 2)
#define MOST_OF_IT (LIFE_WHOLE / 5)

static bool others_can_carry(const struct watched *c)
{
    const struct detection *d = c->detection;
    uint32_t serving = 0, others = 0;

    for (uint32_t i = 0; i < c->roster.count; i++) {
        serving += d->members[i]->serving;
        others += d->members[i]->serving && !scope_concerns(&d->scope, i);
    }
    return others > 0 && knee_load(&d->judge.knee, serving, others) <= LOAD_MOST;
}

/* By degree; where the others cannot carry all of it, so that none works longer than others. */
static uint32_t share_of(const struct watched *c)
{
    const struct scope_verdict *v = &c->detection->scope.now;
    bool free = others_can_carry(c);

    if (v->sign == SCOPE_BY_LATENCY)
        return (uint32_t)(LIFE_WHOLE * exp((free ? -3 : -1) * fmax(v->ratio, 0)));
    if (!free)
        return HALF;
    return v->sign == SCOPE_BY_MARKS || v->sign == SCOPE_BY_PATH ? MOST_OF_IT : 0;
}

static void shift(struct watched *c, mono_ns now)
{
    const struct scope *s = &c->detection->scope;
    uint32_t share;

    if (s->judge->bucket - s->now.since < SURE_AFTER ||
        c->config->detection.mode != DETECTION_ENFORCE)
        return;
    share = share_of(c);
    for (uint32_t i = 0; i < c->roster.count; i++) {
        if (scope_concerns(s, i))
            detection_suspect(c, i, share, now);
    }
}

#define DOUBT_KEEPS  0.8 /* of what was seen, from one half second to the next */
#define DOUBT_PARTLY 0.1 /* of what was seen lately */
#define SEEN_LEAST   10.0

/* Most of what was seen in the half second is to be doubted, or some of what was lately. */
static enum scope_caller caller_of(struct watched *c)
{
    struct detection *d = c->detection;
    bool most = d->learnt > 0 && d->doubted * 2 >= d->learnt;

    d->doubts.tries = DOUBT_KEEPS * d->doubts.tries + d->learnt;
    d->doubts.bad = DOUBT_KEEPS * d->doubts.bad + d->doubted;
    if (most)
        return c->watch->cut_off ? SCOPE_CALLER_CUT_OFF : SCOPE_CALLER_LATE;
    return d->doubts.tries >= SEEN_LEAST && d->doubts.bad >= DOUBT_PARTLY * d->doubts.tries
               ? SCOPE_CALLER_PARTLY
               : SCOPE_CALLER_WELL;
}

static void learn_path(struct watched *c, uint32_t index)
{
    const struct host_path *path = &host_of(c, index)->path;
    struct detection_note *n = &c->detection->notes[index];
    uint64_t requests = atomic_load_explicit(&path->requests, memory_order_relaxed);
    uint64_t retransmits = atomic_load_explicit(&path->retransmits, memory_order_relaxed);

    scope_learn_path(&c->detection->scope, index, (double)(requests - n->path_requests),
                     (double)(retransmits - n->path_retransmits));
    n->path_requests = requests;
    n->path_retransmits = retransmits;
}

static void learn_demand(struct watched *c)
{
    uint64_t asked = asked_of(c);

    if (asked > c->detection->asked)
        scope_learn_demand(&c->detection->scope, (double)(asked - c->detection->asked));
    c->detection->asked = asked;
}

void detection_scope_turn(struct watched *c, mono_ns now)
{
    for (uint32_t i = 0; i < c->roster.count; i++) {
        see(c, i);
        learn_path(c, i);
    }
    learn_demand(c);
    scope_turn(&c->detection->scope, caller_of(c));
    scope_amend(&c->detection->scope, &c->detection->judge);
    c->lossy = scope_doubts(&c->detection->scope);
    c->detection->learnt = c->detection->doubted = 0;
    shift(c, now);
    say_verdict(c, now);
}
