/* SPDX-License-Identifier: Apache-2.0 */
#include "control/decision_take.h"

#include <math.h>

#include "control/journal.h"
#include "policy/detect_verdict.h"
#include "policy/host.h"

static const struct host *host_of(const struct watched *c, uint32_t index)
{
    return c->state->hosts.at[c->roster.hosts[index].slot];
}

/* --- what is known --- */

static void take_evidence(const struct watched *c, uint32_t index, struct decision *d)
{
    const struct detect *judge = &c->detection->judge;
    const struct detect_host *h = c->detection->members[index];

    d->rated = h->rated;
    d->ratio = exp(h->rated ? h->ratio : 0);
    d->gate = exp(h->gate);
    d->usual = exp(h->usual);
    d->late_for = detect_late_for(judge, index) * (NS_PER_S / 10);
    d->sure_for = detect_much_slower(judge, index) * (NS_PER_S / 10);
    d->load_most = c->config->detection.max_load;
    d->load = detect_load_without(judge, index);
    for (int line = 0; line < DETECT_LINE_COUNT; line++)
        d->sums[line] = detect_sum(judge, index, (enum detect_line)line);
}

static void take_line(const struct watched *c, uint32_t index, struct decision *d)
{
    const struct detect *judge = &c->detection->judge;
    uint32_t n = 0;
    struct detect_step step;

    d->alike = detect_alike(judge, d->line);
    d->statistic = d->sums[d->line];
    d->threshold = judge->config.threshold;
    while (n < DECISION_STEPS && detect_past(judge, index, d->line, n, &step))
        n++;
    for (d->step_count = n; n > 0; n--)
        (void)detect_past(judge, index, d->line, n - 1, &d->steps[d->step_count - n]);
}

static void take_fleet(const struct watched *c, struct decision *d)
{
    const struct detect_fleet *f = &c->detection->judge.fleet;

    d->whose = c->detection->scope.now.kind;
    d->fleet_slow = f->slow;
    d->fleet_ratio = exp(f->ratio);
}

/* --- what the guards say --- */

static uint8_t verdict(bool holds)
{
    return holds ? GUARD_HOLDS : GUARD_PASSES;
}

static void ask_judge(const struct watched *c, uint32_t index, struct decision *d)
{
    static const struct {
        enum detect_guard judge;
        enum decision_guard name;
    } each[] = {{DETECT_FLEET, GUARD_FLEET},
                {DETECT_CROWD, GUARD_CROWD},
                {DETECT_NOT_RATED, GUARD_RATED},
                {DETECT_GATE, GUARD_GATE}};
    const struct detect *judge = &c->detection->judge;

    for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
        if (detect_guard_asked(d->line, each[i].judge))
            d->verdicts[each[i].name] =
                verdict(detect_guard_holds(judge, index, d->line, each[i].judge));
    }
}

static void ask_rules(const struct watched *c, uint32_t index, struct decision *d)
{
    bool latency = detect_by_half_seconds(d->line);

    d->verdicts[GUARD_MODE] = verdict(c->config->detection.mode != DETECTION_ENFORCE);
    d->verdicts[GUARD_PROFILE] = verdict(!verdict_may_eject(c->config->detection.profile, d->line));
    if (latency)
        d->verdicts[GUARD_CERTAIN] =
            verdict(!verdict_is_enough(&c->detection->judge, index, d->line));
    if (detect_of_latency(d->line))
        d->verdicts[GUARD_CAPACITY] = verdict(d->load > d->load_most);
}

static void ask_ejection(struct decision *d)
{
    static const struct {
        enum outlier_guard judge;
        enum decision_guard name;
    } each[] = {{OUTLIER_GUARD_ALREADY_OUT, GUARD_ALREADY_OUT},
                {OUTLIER_GUARD_LAST_HOST, GUARD_LAST_HOST},
                {OUTLIER_GUARD_CAP, GUARD_CAP},
                {OUTLIER_GUARD_FEW_HEALTHY, GUARD_FEW_HEALTHY}};

    for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++)
        d->verdicts[each[i].name] = verdict(d->look.holds[each[i].judge]);
}

static void take_cluster(const struct watched *c, mono_ns now, struct decision *d)
{
    *d = (struct decision){.when = now, .line = DETECT_LINE_COUNT, .guard = GUARD_COUNT};
    if (c->watch->setup.journal != NULL)
        d->at = clock_wall(c->watch->setup.clock);
    decision_name_set(&d->cluster, c->config->name);
    if (c->detection != NULL)
        take_fleet(c, d);
}

void decision_take_fleet(const struct watched *c, mono_ns now, struct decision *d)
{
    take_cluster(c, now, d);
    d->cause = CAUSE_FLEET;
    d->what = d->fleet_slow ? DECISION_FLEET_SLOWDOWN : DECISION_FLEET_RECOVERED;
    d->look.hosts = c->roster.count;
    d->look.ejected = c->judge.ejected;
}

void decision_take(const struct watched *c, uint32_t index, enum detect_line line, mono_ns now,
                   struct decision *d)
{
    take_cluster(c, now, d);
    decision_name_set(&d->host, c->roster.hosts[index].text);
    d->before = host_of(c, index)->life.state;
    outlier_look(&c->judge, index, now, &d->look);
    ask_ejection(d);
    if (c->detection == NULL)
        return;
    d->line = line;
    take_evidence(c, index, d);
    if (line == DETECT_LINE_COUNT)
        return;
    take_line(c, index, d);
    ask_judge(c, index, d);
    ask_rules(c, index, d);
}

/* --- what is told --- */

static enum log_level level_of(enum decision_what w)
{
    switch (w) {
    case DECISION_EJECTED:
    case DECISION_REFUSED:
    case DECISION_HELD:
    case DECISION_NEEDS_HUMAN:
    case DECISION_OBSERVED:
    case DECISION_SUSPECTED:
    case DECISION_FLEET_SLOWDOWN:
    case DECISION_FLEET_RECOVERED:
    case DECISION_VERDICT:
        return LOG_WARNING;
    case DECISION_CLEARED:
    case DECISION_PROBING:
    case DECISION_RAMPING:
    case DECISION_RETURNED:
    case DECISION_COUNT:
        return LOG_INFO;
    }
    return LOG_INFO;
}

/* One word that never changes; endpoint.ejected and .returned are said by outlier_deeds.c. */
static const char *event_of(enum decision_what w)
{
    static const char *const events[DECISION_COUNT] = {
        [DECISION_SUSPECTED] = "endpoint.suspected",
        [DECISION_CLEARED] = "endpoint.cleared",
        [DECISION_EJECTED] = "endpoint.accused",
        [DECISION_REFUSED] = "endpoint.accused",
        [DECISION_HELD] = "endpoint.accusation_held",
        [DECISION_PROBING] = "endpoint.probing",
        [DECISION_RAMPING] = "endpoint.ramping",
        [DECISION_RETURNED] = "endpoint.whole",
        [DECISION_NEEDS_HUMAN] = "endpoint.needs_human",
        [DECISION_OBSERVED] = "endpoint.observed",
        [DECISION_FLEET_SLOWDOWN] = "cluster.fleet_slowdown",
        [DECISION_FLEET_RECOVERED] = "cluster.fleet_recovered",
        [DECISION_VERDICT] = "cluster.verdict",
    };

    return events[w];
}

/* Logged elsewhere: what outlier detection does, hands and rules; and whose trouble it is. */
static bool is_said(const struct decision *d)
{
    return d->cause == CAUSE_TRIGGER || d->cause == CAUSE_RULE || d->cause == CAUSE_HAND ||
           d->cause == CAUSE_UNDONE || (d->cause == CAUSE_TIME && d->what == DECISION_RETURNED) ||
           d->what == DECISION_VERDICT;
}

void decision_tell(struct watched *c, struct decision *d)
{
    char room[DECISION_WORDS_ROOM];
    struct text t;

    if (c->watch->setup.journal != NULL)
        journal_put(c->watch->setup.journal, d);
    if (is_said(d))
        return;
    text_init(&t, room, sizeof(room));
    decision_words(&t, d);
    log_event(c->watch->setup.log, level_of(d->what), event_of(d->what), "%s", text_end(&t));
}

/* Is there one that kept more from being done? */
static bool has_guard(enum decision_what w)
{
    return w == DECISION_SUSPECTED || w == DECISION_REFUSED || w == DECISION_HELD ||
           w == DECISION_OBSERVED;
}

void decision_done(struct watched *c, uint32_t index, enum decision_what what, struct decision *d)
{
    const struct host *h = host_of(c, index);
    bool out = h->judged.ejected;

    d->what = what;
    if (d->line < DETECT_LINE_COUNT && what != DECISION_HELD)
        d->verdicts[GUARD_SCOPE] = GUARD_PASSES; /* detection.c has asked */
    if (has_guard(what))
        d->guard = decision_first_guard(d);
    d->state = h->life.state;
    if (out && c->detection == NULL)
        d->state = LIFE_EJECTED; /* nobody leads its life */
    d->share = life_serves(&h->life) && !out ? h->life.share : 0;
    d->times = h->judged.ejections;
    if (what == DECISION_EJECTED)
        d->out_for = c->config->outlier.return_on_proof && h->life.wake != MONO_NEVER
                         ? mono_until(d->when, h->life.wake)
                         : h->judged.eject_for;
    decision_tell(c, d);
}

/* --- outlier detection --- */

static void take_rate(const struct watched *c, uint32_t index, enum outlier_origin origin,
                      bool success, struct decision *d)
{
    d->statistic = host_of(c, index)->judged.rates[origin];
    d->threshold = c->judge.rates[origin].threshold;
    if (success)
        return;
    d->statistic = 100 - d->statistic;
    d->threshold = c->config->outlier.rates.failure_percent;
}

static void take_trigger(const struct watched *c, uint32_t index, struct decision *d)
{
    switch (d->trigger) {
    case OUTLIER_SUCCESS_RATE:
        take_rate(c, index, OUTLIER_EXTERNAL, true, d);
        return;
    case OUTLIER_SUCCESS_RATE_LOCAL_ORIGIN:
        take_rate(c, index, OUTLIER_LOCAL, true, d);
        return;
    case OUTLIER_FAILURE_PERCENTAGE:
        take_rate(c, index, OUTLIER_EXTERNAL, false, d);
        return;
    case OUTLIER_FAILURE_PERCENTAGE_LOCAL_ORIGIN:
        take_rate(c, index, OUTLIER_LOCAL, false, d);
        return;
    case OUTLIER_CONSECUTIVE_5XX:
    case OUTLIER_CONSECUTIVE_GATEWAY:
    case OUTLIER_CONSECUTIVE_LOCAL_ORIGIN:
        d->statistic = d->threshold = outlier_ejecting_run(&c->config->outlier, d->trigger);
        return;
    case OUTLIER_NONE:
    case OUTLIER_DETECTED:
    case OUTLIER_TRIGGER_COUNT:
        return;
    }
}

static double limit_of(const struct rule *r)
{
    switch (rule_kind_of(r->signal)) {
    case RULE_OF_RUN:
    case RULE_OF_COUNT:
        return r->at_least;
    case RULE_OF_SHARE:
    case RULE_OF_MULTIPLE:
        return r->above / 1000.0;
    case RULE_OF_WAIT:
        return 0.5; /* of them */
    }
    return 0;
}

void decision_take_rule(const struct watched *c, uint32_t index, const struct rule_finding *f,
                        mono_ns now, struct decision *d)
{
    const struct rule *r = &c->detection->rules.rules[f->number];

    decision_take(c, index, DETECT_LINE_COUNT, now, d);
    d->cause = CAUSE_RULE;
    d->rule = r->signal;
    d->statistic = f->value;
    d->threshold = limit_of(r);
    if (rule_kind_of(r->signal) == RULE_OF_MULTIPLE)
        d->verdicts[GUARD_CAPACITY] = verdict(d->load > d->load_most);
    d->verdicts[GUARD_CERTAIN] = verdict(f->level != RULE_CANDIDATE);
}

static enum decision_what what_of(enum outlier_guard g)
{
    if (g == OUTLIER_GUARD_NONE)
        return DECISION_EJECTED;
    return g == OUTLIER_GUARD_NOT_ENFORCED ? DECISION_OBSERVED : DECISION_REFUSED;
}

void decision_take_trigger(const struct watched *c, uint32_t index, enum outlier_trigger t,
                           mono_ns now, struct decision *d)
{
    decision_take(c, index, DETECT_LINE_COUNT, now, d);
    d->cause = t == OUTLIER_NONE ? CAUSE_HAND : CAUSE_TRIGGER;
    d->trigger = t;
    take_trigger(c, index, d);
}

void decision_done_trigger(struct watched *c, uint32_t index, enum outlier_guard guard,
                           struct decision *d)
{
    if (guard == OUTLIER_GUARD_NOT_ENFORCED)
        d->verdicts[GUARD_MODE] = GUARD_HOLDS;
    decision_done(c, index, what_of(guard), d);
}

void decision_of_return(struct watched *c, uint32_t index, enum decision_cause cause, mono_ns now)
{
    struct decision d;

    decision_take(c, index, DETECT_LINE_COUNT, now, &d);
    d.cause = cause;
    d.before = LIFE_EJECTED;
    decision_done(c, index, DECISION_RETURNED, &d);
}
