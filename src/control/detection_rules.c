/* SPDX-License-Identifier: Apache-2.0 */
#include "control/detection_rules.h"

#include <math.h>
#include <string.h>

#include "control/decision_take.h"
#include "policy/detection.h"
#include "policy/host.h"

#define ASK_AGAIN NS_PER_S

static const struct host *host_of(const struct watched *c, uint32_t index)
{
    return c->state->hosts.at[c->roster.hosts[index].slot];
}

static bool acts(const struct watched *c)
{
    return c->config->detection.mode == DETECTION_ENFORCE && c->config->detection.rules_act;
}

void detection_rules_adopt(struct watched *c, const struct detection *old)
{
    struct detection *d = c->detection;

    if (old != NULL) {
        memcpy(d->rules.window, old->rules.window, sizeof(d->rules.window));
        d->rules.layout = old->rules.layout;
    }
    for (uint32_t i = 0; i < c->roster.count; i++) {
        d->ruled[i]->stratum = d->members[i]->stratum;
        d->ruled[i]->serving = life_serves(&host_of(c, i)->life);
    }
    rules_adopt(&d->rules, c->config->detection.rules, c->config->detection.rule_count, d->ruled,
                c->roster.count);
}

/* --- what is counted --- */

static void count(struct watched *c, enum outlier_metric m)
{
    atomic_fetch_add_explicit(&c->state->outlier[m], 1, memory_order_relaxed);
}

/* Once for as long as it lasts. */
static void note(struct watched *c, uint32_t index, const struct rule_finding *f)
{
    struct detection_note *n = &c->detection->notes[index];
    bool candidate = f->level == RULE_CANDIDATE;

    if (candidate && !n->ruled)
        count(c, OUTLIER_STAT_ejections_detected_rules);
    n->ruled = candidate;
}

/* --- what is done --- */

static enum rule_signal signal_of(const struct watched *c, const struct rule_finding *f)
{
    return c->detection->rules.rules[f->number].signal;
}

static bool too_full(const struct watched *c, uint32_t index, const struct rule_finding *f)
{
    return rule_kind_of(signal_of(c, f)) == RULE_OF_MULTIPLE &&
           detect_load_without(&c->detection->judge, index) > c->config->detection.max_load;
}

/* So much slower, or so much of it lost: so much less. */
static uint32_t share_for(const struct watched *c, const struct rule_finding *f)
{
    if (rule_kind_of(signal_of(c, f)) == RULE_OF_MULTIPLE)
        return (uint32_t)(LIFE_WHOLE / fmax(f->value, 1));
    return (uint32_t)(LIFE_WHOLE * fmax(1 - f->value, 0));
}

static void suspect(struct watched *c, uint32_t index, const struct rule_finding *f,
                    const char *why, mono_ns now)
{
    struct decision d;

    decision_take_rule(c, index, f, now, &d);
    if (say_may(c, index, now))
        say_ruled(c, index, f, why);
    detection_suspect_for(c, index, share_for(c, f), &d);
}

/* Where a guard keeps it in, its share is cut all the same. */
static void eject(struct watched *c, uint32_t index, const struct rule_finding *f, mono_ns now)
{
    enum outlier_guard guard;
    struct decision d;

    decision_take_rule(c, index, f, now, &d);
    guard = deeds_detected(c, index, now);
    if (guard == OUTLIER_GUARD_NONE) {
        count(c, OUTLIER_STAT_ejections_enforced_rules);
        say_ruled(c, index, f, "ejected");
        decision_done(c, index, DECISION_EJECTED, &d);
        return;
    }
    c->detection->notes[index].next_try = mono_after(now, ASK_AGAIN);
    if (say_may(c, index, now)) {
        say_ruled(c, index, f, outlier_guard_text(guard));
        decision_done(c, index, DECISION_REFUSED, &d);
    }
    if (guard == OUTLIER_GUARD_CAP || guard == OUTLIER_GUARD_FEW_HEALTHY)
        detection_suspect_for(c, index, 0, &d);
}

static void act(struct watched *c, uint32_t index, const struct rule_finding *f, mono_ns now)
{
    if (detection_is_common(c, index, now)) {
        if (say_may(c, index, now))
            say_ruled(c, index, f, "its peers fare alike");
    } else if (f->level == RULE_SUSPECT) {
        suspect(c, index, f, "suspect", now);
    } else if (too_full(c, index, f)) {
        suspect(c, index, f, "the others could not carry its load", now);
    } else {
        eject(c, index, f, now);
    }
}

static void observe(struct watched *c, uint32_t index, const struct rule_finding *f, mono_ns now)
{
    struct decision d;

    say_ruled(c, index, f, "would be ejected");
    decision_take_rule(c, index, f, now, &d);
    d.verdicts[GUARD_MODE] = GUARD_HOLDS;
    decision_done(c, index, DECISION_OBSERVED, &d);
}

void detection_rules_look(struct watched *c, uint32_t index, mono_ns now)
{
    struct rule_finding f = rules_look(&c->detection->rules, index, now);

    note(c, index, &f);
    if (f.level == RULE_QUIET || !life_serves(&host_of(c, index)->life))
        return;
    if (!acts(c)) {
        if (f.level == RULE_CANDIDATE && say_may(c, index, now))
            observe(c, index, &f, now);
        return;
    }
    if (now >= c->detection->notes[index].next_try)
        act(c, index, &f, now);
}

bool detection_rules_suspect(struct watched *c, uint32_t index, mono_ns now)
{
    return acts(c) && rules_look(&c->detection->rules, index, now).level != RULE_QUIET;
}
