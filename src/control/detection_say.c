/* SPDX-License-Identifier: Apache-2.0 */
#include "control/detection_say.h"

#include <inttypes.h>
#include <math.h>

#include "control/decision_take.h"
#include "model/snapshot.h"
#include "policy/host.h"

#define SAY_EVERY (5 * NS_PER_S)

static const struct life *life_of(const struct watched *c, uint32_t index)
{
    return &c->state->hosts.at[c->roster.hosts[index].slot]->life;
}

/* --- what becomes of a host --- */

static void say_proof(struct watched *c, uint32_t index, enum decision_what what,
                      enum life_state before, mono_ns now)
{
    struct decision d;

    decision_take(c, index, DETECT_LINE_COUNT, now, &d);
    d.cause = what == DECISION_PROBING ? CAUSE_TIME : CAUSE_PROOF;
    d.before = before;
    decision_done(c, index, what, &d);
}

/* Suspicion and ejection are said with their evidence, and what is done by hand by whoever does it.
 */
void say_state(struct watched *c, uint32_t index, enum life_state before, mono_ns now)
{
    switch (life_of(c, index)->state) {
    case LIFE_PROBING:
        say_proof(c, index, DECISION_PROBING, before, now);
        return;
    case LIFE_RAMPING:
        say_proof(c, index, DECISION_RAMPING, before, now);
        return;
    case LIFE_HEALTHY:
        if (before == LIFE_SUSPECT)
            say_proof(c, index, DECISION_CLEARED, before, now);
        else if (before == LIFE_RAMPING)
            say_proof(c, index, DECISION_RETURNED, before, now);
        return;
    case LIFE_SUSPECT:
    case LIFE_EJECTED:
    case LIFE_STATE_COUNT:
        return;
    }
}

void say_escalated(struct watched *c, uint32_t index, mono_ns now)
{
    say_proof(c, index, DECISION_NEEDS_HUMAN, life_of(c, index)->state, now);
}

/* --- accusations --- */

static bool may_say(mono_ns *next, mono_ns now)
{
    if (now < *next)
        return false;
    *next = mono_after(now, SAY_EVERY);
    return true;
}

static void say_now(struct watched *c, uint32_t index, enum detect_line line,
                    enum decision_what what, mono_ns now)
{
    struct decision d;

    decision_take(c, index, line, now, &d);
    decision_done(c, index, what, &d);
}

void say_suspected(struct watched *c, uint32_t index, struct decision *d)
{
    decision_done(c, index, DECISION_SUSPECTED, d);
}

void say_accused(struct watched *c, uint32_t index, enum outlier_guard guard, struct decision *d)
{
    if (guard == OUTLIER_GUARD_NONE)
        decision_done(c, index, DECISION_EJECTED, d);
    else if (guard != OUTLIER_GUARD_ALREADY_OUT &&
             may_say(&c->detection->notes[index].next_refused, d->when))
        decision_done(c, index, DECISION_REFUSED, d);
}

void say_held(struct watched *c, uint32_t index, enum detect_line line, mono_ns now)
{
    if (may_say(&c->detection->notes[index].next_held, now))
        say_now(c, index, line, DECISION_HELD, now);
}

void say_full(struct watched *c, uint32_t index, enum detect_line line, mono_ns now)
{
    if (may_say(&c->detection->notes[index].next_refused, now))
        say_now(c, index, line, DECISION_REFUSED, now);
}

void say_observed(struct watched *c, uint32_t index, enum detect_line line, mono_ns now)
{
    if (may_say(&c->detection->notes[index].next_observed, now))
        say_now(c, index, line, DECISION_OBSERVED, now);
}

/* --- rules --- */

bool say_may(struct watched *c, uint32_t index, mono_ns now)
{
    return may_say(&c->detection->notes[index].next_line, now);
}

#define VALUE_ROOM 96

/* What it found, in the rule's own terms. */
static const char *finding_text(const struct rule *r, const struct rule_finding *f, char *room)
{
    struct text t;

    text_init(&t, room, VALUE_ROOM);
    switch (rule_kind_of(r->signal)) {
    case RULE_OF_RUN:
    case RULE_OF_COUNT:
        text_u64(&t, f->requests);
        text_str(&t, " of them");
        break;
    case RULE_OF_SHARE:
    case RULE_OF_WAIT:
        text_double(&t, 100 * f->value, 1);
        text_str(&t, " % of ");
        text_u64(&t, f->requests);
        text_str(&t, " requests");
        break;
    case RULE_OF_MULTIPLE:
        text_double(&t, f->value, 2);
        text_str(&t, " times its peers' median, window ");
        text_u64(&t, f->windows);
        break;
    }
    return text_end(&t);
}

void say_ruled(struct watched *c, uint32_t index, const struct rule_finding *f, const char *what)
{
    const struct rule *r = &c->detection->rules.rules[f->number];
    char room[VALUE_ROOM];

    log_event(c->watch->setup.log, LOG_WARNING, "endpoint.rule",
              "%.*s of cluster %.*s: %s: rule %" PRIu32 " (%s): %s%s; %s", WHOM(c, index), what,
              f->number + 1, rule_signal_text(r->signal), finding_text(r, f, room),
              f->agreed ? "" : ", the signal beside it does not agree", rule_basis_text(f->basis));
}

/* --- whose trouble it is --- */

void say_scoped(struct watched *c, uint32_t index, enum detect_line line, enum scope_kind whose,
                mono_ns now)
{
    struct decision d;

    cell_add(&c->state->outlier[OUTLIER_STAT_accusations_held_by_verdict], 1);
    if (!may_say(&c->detection->notes[index].next_held, now))
        return;
    decision_take(c, index, line, now, &d);
    d.whose = whose;
    d.verdicts[GUARD_SCOPE] = GUARD_HOLDS;
    decision_done(c, index, DECISION_HELD, &d);
}

/* --- the cluster --- */

/* What is to be done, or is done. */
static const char *advice_of(const struct scope_verdict *v)
{
    switch (v->kind) {
    case SCOPE_NONE:
        return "nothing is wrong any more";
    case SCOPE_NODE:
    case SCOPE_NODES:
        return "what it is accused of is its own";
    case SCOPE_VERSION:
        return "no host is ejected for it: drain the version and roll it back";
    case SCOPE_ZONE:
        return v->groups > 1 ? "no host is ejected for it"
                             : "no host is ejected for it: requests go to other zones";
    case SCOPE_FLEET:
        return "no host is ejected for it";
    case SCOPE_DEPENDENCY:
        return "no host is ejected for it: look at what all of them depend on";
    case SCOPE_CALLER:
        return "what this proxy sees is no evidence: look at its own machine and network";
    case SCOPE_CLASS_SKEW:
        return "a host gets the heavier requests, and is as fast as others in each class";
    case SCOPE_CAPACITY:
        return "no host is ejected for it: requests queue everywhere, more hosts are needed";
    case SCOPE_KIND_COUNT:
        break;
    }
    return "";
}

/* Of the zone or version it is about. */
static struct bytes group_name(const struct watched *c, const struct scope_verdict *v)
{
    bool zone = v->kind == SCOPE_ZONE;
    enum scope_by by = zone ? SCOPE_ZONES : SCOPE_VERSIONS;

    for (uint32_t i = 0; i < c->roster.count && (zone || v->kind == SCOPE_VERSION); i++) {
        const struct endpoint *e = c->roster.hosts[i].endpoint;

        if (c->detection->scoped[i].group[by] == v->group)
            return zone ? e->zone : e->version;
    }
    return BYTES_NONE;
}

void say_verdict(struct watched *c, mono_ns now)
{
    const struct scope_verdict *v = &c->detection->scope.now;
    struct bytes name = group_name(c, v);
    struct decision d;

    atomic_store_explicit(&c->state->outlier[OUTLIER_STAT_verdict], (uint64_t)v->kind,
                          memory_order_relaxed);
    if (v->kind == c->detection->said)
        return;
    c->detection->said = v->kind;
    cell_add(&c->state->outlier[OUTLIER_STAT_verdict_changes], 1);
    log_event(c->watch->setup.log, v->kind == SCOPE_NONE ? LOG_INFO : LOG_WARNING,
              "cluster.verdict",
              "cluster %.*s: %s%s%.*s; by %s of %" PRIu32 " of %" PRIu32
              " hosts, %.1f nats, %.2f times as slow, %.1f %% fail, %.1f %% elsewhere: %s",
              bytes_width(c->config->name), (const char *)c->config->name.data,
              scope_kind_text(v->kind), name.len > 0 ? " " : "", bytes_width(name),
              (const char *)name.data, scope_sign_text(v->sign), v->hosts, v->of, v->nats,
              exp(v->ratio), 100 * v->share, 100 * v->others, advice_of(v));
    decision_take_fleet(c, now, &d);
    d.what = DECISION_VERDICT;
    decision_tell(c, &d);
}
void say_fleet(struct watched *c, mono_ns now)
{
    struct decision d;

    if (c->detection->judge.fleet.slow == c->detection->said_slow)
        return;
    c->detection->said_slow = c->detection->judge.fleet.slow;
    decision_take_fleet(c, now, &d);
    decision_tell(c, &d);
}
