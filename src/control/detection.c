/* SPDX-License-Identifier: Apache-2.0 */
#include "control/detection.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "control/decision_take.h"
#include "control/detection_age.h"
#include "control/detection_alarms.h"
#include "control/detection_rules.h"
#include "control/detection_say.h"
#include "control/detection_scope.h"
#include "control/effect_watch.h"
#include "policy/detect_verdict.h"
#include "policy/detection.h"
#include "policy/host.h"

#define CATCH_UP_MOST 120 /* half seconds without evidence that are gone through one by one */

#define QUIET_LOOKS 400 /* without evidence, and nothing under way: no more till there is some */

/* --- who is judged --- */

static struct host *host_of(const struct watched *c, uint32_t index)
{
    return c->state->hosts.at[c->roster.hosts[index].slot];
}

static struct life *life_of(const struct watched *c, uint32_t index)
{
    return &host_of(c, index)->life;
}

static const struct life_config *rules_of_life(const struct watched *c)
{
    return &c->config->detection.life;
}

static bool acts(const struct watched *c)
{
    return c->config->detection.mode == DETECTION_ENFORCE;
}

void detection_free(struct detection *d)
{
    if (d == NULL)
        return;
    detect_release(&d->judge);
    memory_give(d->members);
    memory_give(d->notes);
    memory_give(d->scoped);
    memory_give(d->ruled);
    memory_give(d);
}

/* False: no memory. */
static bool make_members(struct watched *c, struct detection *d)
{
    uint32_t room = c->roster.count == 0 ? 1 : c->roster.count;

    d->members = memory_take_array(room, sizeof(struct detect_host *));
    d->notes = memory_take_array(room, sizeof(*d->notes));
    d->scoped = memory_take_array(room, sizeof(*d->scoped));
    d->ruled = memory_take_array(room, sizeof(struct rules_host *));
    if (d->members == NULL || d->notes == NULL || d->scoped == NULL || d->ruled == NULL)
        return false;
    for (uint32_t i = 0; i < c->roster.count; i++) {
        struct host *h = host_of(c, i);

        if (h->detected == NULL)
            h->detected = memory_take(sizeof(*h->detected));
        if (h->detected == NULL)
            return false;
        d->members[i] = h->detected;
        d->ruled[i] = &h->ruled;
        d->notes[i] = (struct detection_note){
            .path_requests = atomic_load_explicit(&h->path.requests, memory_order_relaxed),
            .path_retransmits = atomic_load_explicit(&h->path.retransmits, memory_order_relaxed)};
    }
    return true;
}

static struct detection *make(struct watched *c, mono_ns now)
{
    struct detection *d = memory_take(sizeof(*d));

    if (d == NULL)
        return NULL;
    detect_init(&d->judge);
    d->next_turn = mono_after(now, DETECT_BUCKET);
    d->next_glance = mono_after(now, DETECT_GLANCE);
    if (make_members(c, d))
        return d;
    detection_free(d);
    return NULL;
}

/* What the fleet was like is still known when hosts come and go. */
static void inherit(struct detection *d, const struct detection *old)
{
    memcpy(d->judge.classes, old->judge.classes, sizeof(d->judge.classes));
    memcpy(d->judge.late_after, old->judge.late_after, sizeof(d->judge.late_after));
    d->judge.fleet = old->judge.fleet;
    d->judge.bucket = old->judge.bucket;
    d->judge.learnt = old->judge.learnt;
    d->judge.deviation = old->judge.deviation;
    d->scope = old->scope;
    d->said = old->said;
    d->doubts = old->doubts;
    d->asked = old->asked;
    d->judge.tenth = old->judge.tenth;
    d->next_turn = old->next_turn;
    d->next_glance = old->next_glance;
    d->alarms = old->alarms;
}

/* --- what the workers are told --- */

static bool mistrusted(struct watched *c, uint32_t index)
{
    return atomic_load_explicit(&host_of(c, index)->probes, memory_order_relaxed) > 0 ||
           host_share(host_of(c, index)) < HOST_WHOLE;
}

/* |index| first: where it is, no other is looked at. */
static void show_mistrust(struct watched *c, uint32_t index)
{
    bool any = mistrusted(c, index);

    for (uint32_t i = 0; i < c->roster.count && !any; i++)
        any = mistrusted(c, i);
    atomic_store_explicit(&c->state->mistrusts, any, memory_order_relaxed);
}

static void grant(struct watched *c, uint32_t index, uint32_t n)
{
    atomic_store_explicit(&host_of(c, index)->probes, n, memory_order_relaxed);
    show_mistrust(c, index);
}

static void set_cut(struct watched *c, uint32_t index, uint32_t share)
{
    struct host *h = host_of(c, index);
    uint32_t cut = LIFE_WHOLE - share;

    if (atomic_load_explicit(&h->cut, memory_order_relaxed) == cut)
        return;
    atomic_store_explicit(&h->cut, cut, memory_order_relaxed);
    show_mistrust(c, index);
    atomic_fetch_add_explicit(c->state->hosts.epoch, 1, memory_order_release);
}

/* A host that is out has no share, but keeps none cut: what it gets is its health's to say. */
static void show_share(struct watched *c, uint32_t index)
{
    const struct life *l = life_of(c, index);

    set_cut(c, index, life_serves(l) ? l->share : LIFE_WHOLE);
}

#define PROBE_TIMES 2 /* of its peers' p99: no single probe may take longer */

/* Whether a request without a class of its own is a large one is known by its answer only. */
static uint32_t of_class(const uint32_t us[EVIDENCE_CLASS_MAX], uint32_t class)
{
    return class < CLASS_LARGE && us[CLASS_LARGE] > us[class] ? us[CLASS_LARGE] : us[class];
}

static void show_fleet(struct watched *c)
{
    const struct detect *judge = &c->detection->judge;

    for (uint32_t class = 0; class < EVIDENCE_CLASS_MAX; class ++) {
        atomic_store_explicit(&c->state->late_after[class], of_class(judge->late_after, class),
                              memory_order_relaxed);
        atomic_store_explicit(&c->state->probe_within[class],
                              PROBE_TIMES * of_class(judge->p99, class), memory_order_relaxed);
    }
    atomic_store_explicit(&c->state->retries_held, judge->fleet.slow && acts(c),
                          memory_order_relaxed);
}

/* --- other hosts, another configuration --- */

/* Nothing is cut, tried or held any more. */
static void let_go(struct watched *c)
{
    for (uint32_t i = 0; i < c->roster.count; i++) {
        life_init(life_of(c, i));
        grant(c, i, 0);
        show_share(c, i);
    }
    for (uint32_t class = 0; class < EVIDENCE_CLASS_MAX; class ++) {
        atomic_store_explicit(&c->state->late_after[class], 0, memory_order_relaxed);
        atomic_store_explicit(&c->state->probe_within[class], 0, memory_order_relaxed);
    }
    atomic_store_explicit(&c->state->retries_held, false, memory_order_relaxed);
}

/* Those that went out while the clock was to let them back. */
static void take_over(struct watched *c, mono_ns now)
{
    for (uint32_t i = 0; i < c->roster.count; i++) {
        if (!c->roster.members[i].host->ejected || !life_serves(life_of(c, i)))
            continue;
        (void)life_eject(life_of(c, i), rules_of_life(c), now);
        show_share(c, i);
    }
}

static void install(struct watched *c, const struct detection *old, mono_ns now)
{
    struct detection *d = c->detection;

    d->quiet = old != NULL ? old->quiet : QUIET_LOOKS;
    if (old != NULL)
        inherit(d, old);
    detection_stratify(c);
    detect_adopt(&d->judge, &c->config->detection.detect, d->members, c->roster.count);
    detection_rules_adopt(c, old);
    if (acts(c))
        take_over(c, now);
    else
        let_go(c);
    for (uint32_t i = 0; i < c->roster.count; i++) {
        d->busy |= life_of(c, i)->state != LIFE_HEALTHY;
        detect_set_serving(&d->judge, i, life_serves(life_of(c, i)));
        d->ruled[i]->serving = life_serves(life_of(c, i));
    }
}

bool detection_adopt(struct watched *c, mono_ns now)
{
    struct detection *old = c->detection;

    c->detection = c->config->detection.on ? make(c, now) : NULL;
    if (c->detection != NULL)
        install(c, old, now);
    else
        let_go(c);
    detection_free(old);
    return c->detection != NULL || !c->config->detection.on;
}

/* --- steps of a life --- */

#define PROBE_SHARE 0.1 /* of a fair share, at most, whatever the gap between probes */
#define LATELY_SPAN 2.5 /* seconds that detect_rate |lately| is of */

/* Where there is little traffic, a probe every few seconds would be much of it. */
static span_ns least_gap(const struct watched *c)
{
    double serving = 0, rate;

    for (uint32_t i = 0; i < c->roster.count; i++)
        serving += c->detection->members[i]->serving;
    rate = c->detection->judge.lately[DETECT_OF_ERRORS].tries / LATELY_SPAN / fmax(serving, 1);
    return rate * PROBE_SHARE < 0.01 ? 0 : (span_ns)((double)NS_PER_S / (rate * PROBE_SHARE));
}

#define REPORTS_LAG (5 * NS_PER_S) /* hosts say how loaded they were over some seconds */

/* What it carried a moment ago comes upon the others, who do not say so yet. */
static void note_share(struct watched *c, uint32_t index, mono_ns now)
{
    struct detection_note *n = &c->detection->notes[index];
    const struct life *l = life_of(c, index);
    uint32_t share = life_serves(l) ? host_share(host_of(c, index)) : 0;

    if (share >= n->share || (n->share_until != 0 && now >= n->share_until)) {
        n->share = share;
        n->share_until = 0;
    } else if (n->share_until == 0) {
        n->share_until = mono_after(now, REPORTS_LAG);
    }
    c->detection->members[index]->cut = LIFE_WHOLE - share;
    c->detection->members[index]->moved = n->share - share;
}

static void follow(struct watched *c, uint32_t index, enum life_state before, struct life_step step,
                   mono_ns now)
{
    const struct life *l = life_of(c, index);

    if (step.grant > 0 || (before == LIFE_PROBING && l->state != LIFE_PROBING))
        grant(c, index, step.grant); /* those under way are not granted again */
    if (step.escalated)
        say_escalated(c, index, now);
    if (!step.changed)
        return;
    c->detection->looked = false;
    detect_set_serving(&c->detection->judge, index, life_serves(l));
    c->detection->ruled[index]->serving = life_serves(l);
    if (l->state == LIFE_PROBING && before == LIFE_EJECTED)
        c->detection->notes[index].places = 0;
    if (l->state == LIFE_RAMPING && before == LIFE_PROBING)
        deeds_readmit(c, index, now);
    show_share(c, index);
    note_share(c, index, now);
    if (l->state != before)
        say_state(c, index, before, now);
}

static void learn_life(struct watched *c, uint32_t index, bool passed, mono_ns now)
{
    enum life_state before = life_of(c, index)->state;

    life_of(c, index)->least_gap = least_gap(c);
    if (before == LIFE_RAMPING && !passed) {
        detection_eject(c, index, DETECT_LINE_COUNT, now);
        return;
    }
    follow(c, index, before, life_learn(life_of(c, index), rules_of_life(c), passed, now), now);
}

static void acquit(struct watched *c, uint32_t index)
{
    c->detection->looked = false;
    detect_acquit(&c->detection->judge, index);
    rules_acquit(&c->detection->rules, index);
}

void detection_note_ejected(struct watched *c, uint32_t index, mono_ns now)
{
    enum life_state before;

    if (c->detection == NULL)
        return;
    detection_alarms_over(c, index);
    if (!c->config->outlier.return_on_proof)
        return;
    before = life_of(c, index)->state;
    c->detection->busy = true;
    c->detection->notes[index].tried = c->detection->notes[index].failed = 0;
    life_of(c, index)->pause = detect_pause(&c->detection->judge, index);
    follow(c, index, before, life_eject(life_of(c, index), rules_of_life(c), now), now);
    acquit(c, index);
}

void detection_note_pardoned(struct watched *c, uint32_t index, mono_ns now)
{
    enum life_state before;

    if (c->detection == NULL)
        return;
    before = life_of(c, index)->state;
    detection_alarms_over(c, index);
    acquit(c, index);
    follow(c, index, before, life_pardon(life_of(c, index), now), now);
}

/* --- accusations --- */

#define ASK_AGAIN     NS_PER_S
#define PASSED_CLEARS 10
#define COMMON_RATE   0.1 /* of the peers' requests fail: what is common is never blamed on one */

/* By what was taken before. */
void detection_suspect_for(struct watched *c, uint32_t index, uint32_t share, struct decision *d)
{
    enum life_state before = life_of(c, index)->state;
    mono_ns now = d->when;

    if (d->cause != CAUSE_SCOPE)
        c->detection->notes[index].cut_for = SCOPE_NONE;
    if (before == LIFE_HEALTHY) {
        c->detection->notes[index].passed = 0;
        c->detection->notes[index].bad_at = now;
    }
    follow(c, index, before, life_suspect(life_of(c, index), rules_of_life(c), share, now), now);
    if (before == LIFE_HEALTHY)
        say_suspected(c, index, d);
}

void detection_suspect(struct watched *c, uint32_t index, uint32_t share, mono_ns now)
{
    struct decision d;

    decision_take(c, index, DETECT_LINE_COUNT, now, &d);
    d.cause = CAUSE_SCOPE;
    c->detection->notes[index].cut_for = c->detection->scope.now.kind;
    detection_suspect_for(c, index, share, &d);
}

/* By what was taken before. Where a guard keeps it in, its share is cut all the same. */
static void eject(struct watched *c, uint32_t index, struct decision *d)
{
    enum outlier_guard guard;

    effect_accused(c, d->line);
    guard = deeds_detected(c, index, d->when);
    say_accused(c, index, guard, d);
    if (guard == OUTLIER_GUARD_NONE)
        return;
    c->detection->notes[index].next_try = mono_after(d->when, ASK_AGAIN);
    if (guard == OUTLIER_GUARD_CAP || guard == OUTLIER_GUARD_FEW_HEALTHY)
        detection_suspect_for(c, index, 0, d);
}

void detection_eject(struct watched *c, uint32_t index, enum detect_line line, mono_ns now)
{
    struct decision d;

    decision_take(c, index, line, now, &d);
    if (line == DETECT_LINE_COUNT)
        d.cause = CAUSE_RELAPSED;
    eject(c, index, &d);
}

static void act(struct watched *c, uint32_t index, enum detect_line line, const struct verdict *v,
                mono_ns now)
{
    struct decision d;

    if (v->deed == VERDICT_EJECT && effect_holds_line(c, index, line, now)) {
        effect_say_held(c, index, line, now);
        return;
    }
    decision_take(c, index, line, now, &d);
    if (v->full)
        say_full(c, index, line, now);
    if (v->deed == VERDICT_EJECT)
        eject(c, index, &d);
    else
        detection_suspect_for(c, index, v->share, &d);
}

/* What all have accuses nobody, and is no false alarm. */
static void note_held(struct watched *c, uint32_t index, enum detect_line line)
{
    enum detect_guard guard = detect_guard_of(&c->detection->judge, index, line);

    if (guard == DETECT_FLEET || guard == DETECT_CROWD)
        detection_alarm_common(c, index, line);
}

static void accuse(struct watched *c, uint32_t index, enum detect_line line, mono_ns now)
{
    struct verdict v = verdict_of(&c->detection->judge, &c->config->detection, index, line);
    enum scope_kind whose;

    detection_alarm(c, index, line);
    if (v.deed == VERDICT_NOTHING) {
        note_held(c, index, line);
        say_held(c, index, line, now);
        return;
    }
    whose = detection_scope_of(c, index, line);
    if (whose != SCOPE_NODE) {
        if (scope_says(&c->detection->scope, index, line) != SCOPE_NODE)
            detection_alarm_common(c, index, line); /* else it only may come to be that */
        say_scoped(c, index, line, whose, now);
    } else if (!acts(c)) {
        say_observed(c, index, line, now);
    } else {
        act(c, index, line, &v, now);
    }
}

#define STALE_AFTER (5 * NS_PER_S)

/* What was held against it while a guard kept it in may be over: it has few requests to show it. */
static bool is_stale(const struct watched *c, uint32_t index, mono_ns now)
{
    return life_of(c, index)->state == LIFE_SUSPECT &&
           mono_since(c->detection->notes[index].bad_at, now) > STALE_AFTER;
}

/* The same of one line: a host that answers late now may not be put out for connects that failed
 * once. */
static bool is_stale_line(const struct watched *c, uint32_t index, enum detect_line line,
                          mono_ns now)
{
    static const enum detect_kind kinds[DETECT_LINE_COUNT] = {
        [DETECT_ERRORS_SOME] = DETECT_OF_ERRORS, [DETECT_ERRORS_MANY] = DETECT_OF_ERRORS,
        [DETECT_CONNECTS] = DETECT_OF_CONNECTS,  [DETECT_AGE] = DETECT_OF_AGE,
        [DETECT_RANK] = DETECT_KIND_COUNT,       [DETECT_TAIL] = DETECT_KIND_COUNT,
        [DETECT_STALLS] = DETECT_KIND_COUNT};
    const struct detect_host *h = c->detection->members[index];

    return life_of(c, index)->state == LIFE_SUSPECT && kinds[line] != DETECT_KIND_COUNT &&
           mono_since(h->failed[kinds[line]], now) > STALE_AFTER;
}

static void look_at(struct watched *c, uint32_t index, mono_ns now)
{
    if (!detect_accuses_at_all(&c->detection->judge, index) || is_stale(c, index, now))
        return;
    for (int line = 0; line < DETECT_LINE_COUNT; line++) {
        if (!life_serves(life_of(c, index)) || now < c->detection->notes[index].next_try)
            return;
        if (line == DETECT_AGE && !detection_age_accuses(c, index, now))
            continue;
        if (detect_accuses(&c->detection->judge, index, (enum detect_line)line) &&
            !is_stale_line(c, index, (enum detect_line)line, now))
            accuse(c, index, (enum detect_line)line, now);
    }
}

/* --- suspicion that is over --- */

static bool is_cleared(const struct watched *c, uint32_t index)
{
    const struct detect *judge = &c->detection->judge;
    const struct detect_host *h = c->detection->members[index];
    const struct detect_rate *errors = &h->lately[DETECT_OF_ERRORS];

    for (int line = 0; line < DETECT_LINE_COUNT; line++) {
        if (line != DETECT_ERRORS_SOME &&
            detect_sum(judge, index, (enum detect_line)line) > judge->config.threshold / 4)
            return false;
    }
    return errors->bad * 50 <= errors->tries && (!h->rated || h->ratio < h->gate / 2);
}

static void review(struct watched *c, uint32_t index, mono_ns now)
{
    struct life *l = life_of(c, index);

    if (l->state != LIFE_SUSPECT || scope_concerns(&c->detection->scope, index) ||
        detection_rules_suspect(c, index, now) || detect_may_stall(&c->detection->judge, index) ||
        (!is_cleared(c, index) && c->detection->notes[index].passed < PASSED_CLEARS))
        return;
    c->detection->looked = false;
    detect_acquit(&c->detection->judge, index);
    follow(c, index, LIFE_SUSPECT, life_clear(l, now), now);
}

/* --- time --- */

static void turn(struct watched *c, mono_ns now)
{
    c->detection->looked = false;
    scope_mark(&c->detection->scope);
    detect_turn(&c->detection->judge);
    detection_scope_turn(c, now);
    c->detection->next_glance = mono_after(c->detection->next_turn, DETECT_GLANCE);
    c->detection->next_turn = mono_after(c->detection->next_turn, DETECT_BUCKET);
    for (uint32_t i = 0; i < c->roster.count; i++)
        review(c, i, now);
    detection_alarms_turn(c, now);
    effect_turn(c, now);
    say_fleet(c, now);
}

/* All half seconds that were over at |at|. After a long silence they are not all gone through. */
static void turn_until(struct watched *c, mono_ns at, mono_ns now)
{
    struct detection *d = c->detection;

    if (mono_since(d->next_turn, at) > CATCH_UP_MOST * DETECT_BUCKET)
        d->next_turn = at - CATCH_UP_MOST * DETECT_BUCKET;
    while (d->next_turn <= at)
        turn(c, now);
    for (; d->next_glance <= at; d->next_glance += DETECT_GLANCE) {
        d->looked = false;
        detect_glance(&d->judge);
    }
}

/* No failure, and no later than all but a hundredth of its peers' answers. */
static bool passed(const struct watched *c, const struct evidence *e)
{
    uint32_t p99 = c->detection->judge.p99[e->class];

    return e->outcome == EVIDENCE_OK && (p99 == 0 || e->first_us <= p99);
}

#define EXCUSED_TIMES 2.0 /* its peers' rate of failures: that often it may fail as well */
#define EXCUSED_ONCE  0.5

/*
 * On its way back failures count at once, but what is common is no sign that it is not back: where
 * one in ten fails, twenty in a row are one in eight.
 */
static bool is_as_good(struct watched *c, uint32_t index, const struct evidence *e)
{
    struct detection_note *note = &c->detection->notes[index];
    double usual = detect_peers_rate(&c->detection->judge, index, DETECT_OF_ERRORS);

    note->tried++;
    note->failed += e->outcome != EVIDENCE_OK;
    return e->outcome == EVIDENCE_OK ||
           note->failed <= EXCUSED_TIMES * usual * note->tried + EXCUSED_ONCE;
}

#define PLACE_MOST  0.75 /* all probes together take no longer than that, in the mean, ... */
#define PLACE_SLACK 3.0  /* ... give or take */

/* Each may be a little late; all of them together may not be. */
static bool passed_probe(struct watched *c, uint32_t index, const struct evidence *e)
{
    struct detection_note *note = &c->detection->notes[index];
    const struct detect *judge = &c->detection->judge;
    double n = life_of(c, index)->in_row + 1;

    if (!is_as_good(c, index, e))
        return false;
    if (e->outcome != EVIDENCE_OK || (e->flags & EVIDENCE_DOUBTFUL) != 0)
        return true;
    note->places += detect_place(judge, index, e->class, e->first_us);
    return (judge->p99[e->class] == 0 || e->first_us <= PROBE_TIMES * judge->p99[e->class]) &&
           note->places <= n * PLACE_MOST + PLACE_SLACK;
}

static bool tells_of_life(const struct life *l, const struct evidence *e)
{
    if (e->outcome == EVIDENCE_LATE || e->outcome == EVIDENCE_ABANDONED)
        return false;
    return (l->state == LIFE_PROBING && (e->flags & EVIDENCE_PROBE) != 0) ||
           (l->state == LIFE_RAMPING && (e->flags & EVIDENCE_PROBE) == 0);
}

static void learn_suspect(struct watched *c, uint32_t index, const struct evidence *e)
{
    struct detection_note *note = &c->detection->notes[index];

    if (!passed(c, e))
        note->bad_at = e->at;
    if (e->outcome != EVIDENCE_LATE)
        note->passed = passed(c, e) ? note->passed + 1 : 0;
}

/* With more hosts a look at all of them, and at what they have in common, is not worth it each
 * time.
 */
#define HOSTS_MANY      256
#define LOOK_MANY_EVERY (NS_PER_S / 10)

static void look_at_failing(struct watched *c, uint32_t index, mono_ns now)
{
    struct detection_note *note = &c->detection->notes[index];

    if (c->roster.count > HOSTS_MANY && note->looked_at == now)
        return;
    note->looked_at = now;
    look_at(c, index, now);
}

void detection_learn(struct watched *c, uint32_t index, const struct evidence *e, mono_ns now)
{
    const struct life *l = life_of(c, index);

    c->detection->busy = true;
    c->detection->looked = false;
    c->detection->learnt++;
    c->detection->doubted += !c->lossy && (e->flags & EVIDENCE_DOUBTFUL) != 0;
    turn_until(c, e->at, now);
    detect_count(&c->detection->judge, index, e);
    effect_learn(c, index, e);
    if (tells_of_life(l, e))
        learn_life(c, index,
                   l->state == LIFE_RAMPING ? is_as_good(c, index, e) : passed_probe(c, index, e),
                   now);
    if (l->state == LIFE_SUSPECT)
        learn_suspect(c, index, e);
    if (!life_serves(l))
        return; /* what comes of its past, or of a probe, is no evidence of what it is to others */
    if (!detection_age_learn(c, index, e, now))
        return;
    detect_learn(&c->detection->judge, index, e);
    rules_learn(&c->detection->rules, index, e);
    if (e->outcome != EVIDENCE_OK)
        look_at_failing(c, index, now);
    detection_rules_look(c, index, now);
}

void detection_doubt(struct watched *c)
{
    c->detection->busy = true;
    c->detection->learnt++;
    c->detection->doubted +=
        !c->lossy; /* a link that is lossy shows otherwise, and is seen to be well again */
    cell_add(&c->state->outlier[OUTLIER_STAT_evidence_void], 1);
}

static void live(struct watched *c, uint32_t index, mono_ns now)
{
    struct life *l = life_of(c, index);
    enum life_state before = l->state;

    if (now >= l->wake)
        follow(c, index, before, life_turn(l, rules_of_life(c), now), now);
}

/* What hosts say of themselves, for the judge. */
static void read_reports(struct watched *c, mono_ns now)
{
    for (uint32_t i = 0; i < c->roster.count; i++) {
        struct detect_host *h = c->detection->members[i];

        h->utilization = host_report_utilization(&host_of(c, i)->report, now);
        h->reports = h->utilization >= 0;
        note_share(c, i, now);
    }
}

bool detection_look(struct watched *c, mono_ns now)
{
    bool busy = c->detection->busy;

    if (!busy && c->detection->quiet >= QUIET_LOOKS)
        return false;
    if (now < c->detection->next_look) {
        turn_until(c, now, now);
        return true;
    }
    if (c->roster.count > HOSTS_MANY)
        c->detection->next_look = mono_after(now, LOOK_MANY_EVERY);
    read_reports(c, now);
    turn_until(c, now, now);
    rules_turn(&c->detection->rules, now);
    for (uint32_t i = 0; i < c->roster.count; i++) {
        look_at(c, i, now);
        detection_rules_look(c, i, now);
        live(c, i, now);
        busy |= life_of(c, i)->state != LIFE_HEALTHY;
    }
    busy |= effect_look(c, now);
    show_fleet(c);
    c->detection->busy = false;
    c->detection->quiet = busy ? 0 : c->detection->quiet + 1;
    return true;
}

/* A run of failures does not say which of them were waits, and how late we were ourselves. */
static bool is_everybodys(struct watched *c, uint32_t index)
{
    const struct scope *s = &c->detection->scope;

    return detection_scope_says(c, index, DETECT_ERRORS_MANY) != SCOPE_NODE ||
           detection_scope_says(c, index, DETECT_CONNECTS) == SCOPE_CALLER ||
           scope_may_be_lost(s, index) || s->judge->fleet.slow || s->judge->saturated;
}

#define CROWD_SHARE 0.3 /* of its peers */

/* By hosts, not by connects: most answer on connections that stand, and are connected to seldom. */
static bool peers_refuse(const struct watched *c, uint32_t index)
{
    uint32_t peers = 0, failing = 0;

    for (uint32_t i = 0; i < c->roster.count; i++) {
        const struct detect_host *h = c->detection->members[i];
        const struct detect_rate *r = &h->lately[DETECT_OF_CONNECTS];

        peers += i != index && h->serving;
        failing += i != index && h->serving && r->bad > 0 && r->bad >= COMMON_RATE * r->tries;
    }
    return failing > CROWD_SHARE * peers;
}

static bool peers_fail(const struct watched *c, uint32_t index, mono_ns now)
{
    struct outlier_look look;

    if (!peers_refuse(c, index) &&
        detect_peers_rate(&c->detection->judge, index, DETECT_OF_ERRORS) < COMMON_RATE)
        return false;
    outlier_look(&c->judge, index, now, &look);
    return !look.total;
}

bool detection_is_common(struct watched *c, uint32_t index, mono_ns now)
{
    return c->detection != NULL && acts(c) &&
           (is_everybodys(c, index) || peers_fail(c, index, now));
}
