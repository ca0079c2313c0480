/* SPDX-License-Identifier: Apache-2.0 */
#include "control/detection_say.h"

#include <inttypes.h>
#include <math.h>

#include "model/snapshot.h"
#include "policy/host.h"

#define SAY_EVERY (5 * NS_PER_S)

/* For "%.*s". */
static int width(struct bytes b)
{
    return b.len > 256 ? 256 : (int)b.len;
}

static const struct life *life_of(const struct watched *c, uint32_t index)
{
    return &c->state->hosts.at[c->roster.hosts[index].slot]->life;
}

#define WHOM(c, index)                                                                             \
    width((c)->roster.hosts[index].text), (const char *)(c)->roster.hosts[index].text.data,        \
        width((c)->config->name), (const char *)(c)->config->name.data

void say_state(struct watched *c, uint32_t index, enum life_state before, mono_ns now)
{
    const struct life *l = life_of(c, index);

    (void)now;
    log_event(c->watch->setup.log, LOG_INFO, "endpoint.state",
              "%.*s of cluster %.*s is %s, was %s; share %" PRIu32 ".%" PRIu32 " %%",
              WHOM(c, index), life_state_text(l->state), life_state_text(before), l->share / 10,
              l->share % 10);
}

void say_escalated(struct watched *c, uint32_t index, mono_ns now)
{
    (void)now;
    log_event(c->watch->setup.log, LOG_WARNING, "endpoint.needs_human",
              "%.*s of cluster %.*s was out too often or for too long: it stays out, probed only, "
              "until it is pardoned; replace it, roll it back, or check the rollout",
              WHOM(c, index));
}

/* --- accusations --- */

static void say_evidence(struct watched *c, uint32_t index, enum detect_line line,
                         const char *event, const char *what)
{
    const struct detect_host *h = c->detection->members[index];
    double ratio = h->rated ? h->ratio : 0;

    log_event(c->watch->setup.log, LOG_WARNING, event,
              "%.*s of cluster %.*s: %s: line %s at %.1f of %.1f nats, median %.2f times its "
              "peers', gate %.2f",
              WHOM(c, index), what, detect_line_text(line),
              detect_sum(&c->detection->judge, index, line), c->detection->judge.config.threshold,
              exp(ratio), exp(h->gate));
}

bool say_may(struct watched *c, uint32_t index, mono_ns now)
{
    struct detection_note *n = &c->detection->notes[index];

    if (now < n->next_line)
        return false;
    n->next_line = mono_after(now, SAY_EVERY);
    return true;
}

void say_accused(struct watched *c, uint32_t index, enum detect_line line, enum outlier_guard guard,
                 mono_ns now)
{
    if (guard == OUTLIER_GUARD_NONE)
        say_evidence(c, index, line, "endpoint.accused", "ejected");
    else if (say_may(c, index, now))
        say_evidence(c, index, line, "endpoint.accused", outlier_guard_text(guard));
}

void say_held(struct watched *c, uint32_t index, enum detect_line line, enum detect_guard guard,
              mono_ns now)
{
    if (say_may(c, index, now))
        say_evidence(c, index, line, "endpoint.accusation_held", detect_guard_text(guard));
}

void say_full(struct watched *c, uint32_t index, enum detect_line line, mono_ns now)
{
    if (say_may(c, index, now))
        say_evidence(c, index, line, "endpoint.capacity", "the others could not carry its load");
}

void say_observed(struct watched *c, uint32_t index, enum detect_line line, mono_ns now)
{
    if (say_may(c, index, now))
        say_evidence(c, index, line, "endpoint.observed", "would be cut or ejected");
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

void say_fleet(struct watched *c, mono_ns now)
{
    const struct detect_fleet *f = &c->detection->judge.fleet;

    (void)now;
    if (f->slow == c->detection->said_slow)
        return;
    c->detection->said_slow = f->slow;
    log_event(
        c->watch->setup.log, LOG_WARNING,
        f->slow ? "cluster.fleet_slowdown" : "cluster.fleet_recovered",
        "cluster %.*s answers %.2f times as slow as usual, all hosts alike: nobody is ejected "
        "for it, retries %s",
        width(c->config->name), (const char *)c->config->name.data, exp(f->ratio),
        f->slow ? "stop" : "go on");
}

/* --- the verdict --- */

void say_scoped(struct watched *c, uint32_t index, enum detect_line line, enum scope_kind whose,
                mono_ns now)
{
    cell_add(&c->state->outlier[OUTLIER_STAT_accusations_held_by_verdict], 1);
    if (say_may(c, index, now))
        say_evidence(c, index, line, "endpoint.accusation_held", scope_kind_text(whose));
}

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

    (void)now;
    atomic_store_explicit(&c->state->outlier[OUTLIER_STAT_verdict], (uint64_t)v->kind,
                          memory_order_relaxed);
    if (v->kind == c->detection->said)
        return;
    c->detection->said = v->kind;
    cell_add(&c->state->outlier[OUTLIER_STAT_verdict_changes], 1);
    log_event(c->watch->setup.log, v->kind == SCOPE_NONE ? LOG_INFO : LOG_WARNING,
              "cluster.verdict",
              "cluster %.*s: %s %.*s; by %s of %" PRIu32 " of %" PRIu32
              " hosts, %.1f nats, %.2f times as slow, %.1f %% fail, %.1f %% elsewhere: %s",
              width(c->config->name), (const char *)c->config->name.data, scope_kind_text(v->kind),
              width(name), (const char *)name.data, scope_sign_text(v->sign), v->hosts, v->of,
              v->nats, exp(v->ratio), 100 * v->share, 100 * v->others, advice_of(v));
}
