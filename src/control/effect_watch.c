/* SPDX-License-Identifier: Apache-2.0 */
#include "control/effect_watch.h"

#include <math.h>

#include "base/memory.h"
#include "control/detection_alarms.h"
#include "control/effect_parts.h"
#include "policy/host.h"

#define SLOW_TIMES   1.2              /* the peers' p99 in usual times: later is slow */
#define RELAPSE      (600 * NS_PER_S) /* after a return */
#define TIMEOUTS_LOW 0.7              /* of before: less is what an ejection is for */

static struct host *host_of(const struct watched *c, uint32_t index)
{
    return c->state->hosts.at[c->roster.hosts[index].slot];
}

struct effect_host *effect_of(const struct watched *c, uint32_t index)
{
    return host_of(c, index)->effect;
}

bool effect_is_out(const struct watched *c, uint32_t index)
{
    return host_of(c, index)->judged.ejected;
}

void effect_count(struct watched *c, enum effect_metric m)
{
    cell_add(&c->state->effect[m], 1);
}

static bool acts(const struct watched *c)
{
    return c->config->detection.mode == DETECTION_ENFORCE;
}

/* --- who is watched --- */

static void drop(struct effects *e, struct effect_host *h)
{
    struct effect_host **at = &e->open;

    while (*at != NULL && *at != h)
        at = &(*at)->next;
    if (*at == h) {
        *at = h->next;
        e->open_count--;
    }
    effect_host_release(h);
}

void effects_free(struct effects *e)
{
    if (e == NULL)
        return;
    while (e->open != NULL)
        drop(e, e->open);
    memory_give(e);
}

/* False: no memory. */
static bool take_hosts(struct watched *c)
{
    for (uint32_t i = 0; i < c->roster.count; i++) {
        struct host *h = host_of(c, i);

        if (h->effect == NULL)
            h->effect = memory_take(sizeof(*h->effect));
        if (h->effect == NULL)
            return false;
    }
    return true;
}

/* Accounts of hosts that are no longer there are closed without a word: the hosts may be freed. */
static void relink(struct watched *c)
{
    struct effects *e = c->effects;
    struct effect_host *kept = NULL;
    uint32_t count = 0;

    for (uint32_t i = 0; i < c->roster.count; i++) {
        struct effect_host *h = effect_of(c, i), **at = &e->open;

        while (*at != NULL && *at != h)
            at = &(*at)->next;
        if (*at == NULL)
            continue;
        *at = h->next;
        h->next = kept;
        kept = h;
        count++;
    }
    while (e->open != NULL)
        drop(e, e->open);
    e->open = kept;
    e->open_count = count;
}

bool effects_adopt(struct watched *c)
{
    if (c->detection == NULL) {
        effects_free(c->effects);
        c->effects = NULL;
        return true;
    }
    if (c->effects == NULL)
        c->effects = memory_take(sizeof(*c->effects));
    if (c->effects != NULL && take_hosts(c)) {
        c->effects->cause = GROUNDS_HAND;
        relink(c);
        return true;
    }
    effects_free(c->effects);
    c->effects = NULL;
    return false;
}

/* --- an account --- */

void effect_accused(struct watched *c, enum detect_line line)
{
    if (c->effects != NULL)
        c->effects->cause = (uint32_t)line;
}

static uint32_t cause_of(const struct watched *c, uint32_t index)
{
    uint32_t trigger = atomic_load_explicit(&host_of(c, index)->last_trigger, memory_order_relaxed);

    if (trigger == OUTLIER_NONE)
        return GROUNDS_HAND;
    return trigger == OUTLIER_DETECTED ? c->effects->cause : GROUNDS_TRIGGERS + trigger;
}

static void mean_add(struct effect_mean *m, double x)
{
    m->sum += x;
    m->count++;
}

static void count_verdict(struct watched *c, enum effect_verdict v)
{
    static const enum effect_metric metrics[EFFECT_VERDICT_COUNT] = {
        [EFFECT_UNDECIDED] = EFFECT_STAT_undecided,
        [EFFECT_HELPED] = EFFECT_STAT_helped,
        [EFFECT_USELESS] = EFFECT_STAT_useless,
        [EFFECT_HARMFUL] = EFFECT_STAT_harmful,
    };

    effect_count(c, metrics[v]);
}

/* Its latest ejection was. */
static bool undone(const struct effect_host *h)
{
    return h->undone >= h->account->opened;
}

/* The time out is over, or five minutes of it are. */
static void sum_up(struct watched *c, uint32_t index, mono_ns now)
{
    struct effect_host *h = effect_of(c, index);
    struct effect_claim claim = effect_claims(h->account);
    double timeouts = effect_timeouts_ratio(h->account), p99 = effect_p99_ratio(h->account);

    c->effects->closed.failures += claim.failures;
    c->effects->closed.slow += claim.slow;
    h->badness = effect_badness(h->account);
    h->account->summed_up = true;
    count_verdict(c, h->account->verdict);
    effect_say_closed(c, index, now);
    if (p99 > 0)
        mean_add(&c->effects->p99, log(p99));
    if (timeouts >= 0)
        mean_add(&c->effects->timeouts, log(fmax(timeouts, 0.001)));
    if (timeouts <= TIMEOUTS_LOW || undone(h))
        return;
    effect_count(c, EFFECT_STAT_thresholds_need_work);
    effect_say_thresholds(c, index, timeouts);
}

static void finish(struct watched *c, uint32_t index, mono_ns now)
{
    struct effect_host *h = effect_of(c, index);

    if (!h->account->summed_up)
        sum_up(c, index, now);
    if (effect_seems_false(h->account))
        effect_count(c, EFFECT_STAT_false_ejections);
    if (h->cause < GROUNDS_TRIGGERS && (undone(h) || effect_seems_false(h->account)))
        detection_alarm_false(c, now);
    drop(c->effects, h);
}

/* Out of line when it went, whatever its shares say? */
static bool was_slow(const struct watched *c, uint32_t index)
{
    const struct detect_host *h = c->detection->members[index];

    return h->rated && h->gate > 0 && h->ratio >= h->gate;
}

static void open_account(struct watched *c, uint32_t index, mono_ns now)
{
    struct effect_host *h = effect_of(c, index);
    const struct effect_before before = {
        .host = &h->past,
        .fleet = &c->effects->fleet,
        .times = &c->effects->times,
        .limits = c->effects->limits,
        .share = h->share,
        .was_slow = was_slow(c, index),
    };

    if (c->effects->open_count < EFFECT_OPEN_MOST)
        h->account = memory_take(sizeof(*h->account));
    if (h->account == NULL)
        return; /* it is out all the same, and nothing is said of what came of it */
    effect_open(h->account, &before, now);
    h->next = c->effects->open;
    c->effects->open = h;
    c->effects->open_count++;
}

void effect_ejected(struct watched *c, uint32_t index, mono_ns now)
{
    struct effect_host *h;

    if (c->effects == NULL)
        return;
    h = effect_of(c, index);
    if (h->account != NULL)
        finish(c, index, now);
    if (h->returned != 0 && mono_since(h->returned, now) <= RELAPSE)
        effect_count(c, EFFECT_STAT_reejections);
    h->returned = 0;
    h->cause = cause_of(c, index);
    h->badness = 1;
    open_account(c, index, now);
    c->effects->cause = GROUNDS_HAND;
}

void effect_returned(struct watched *c, uint32_t index, mono_ns now)
{
    struct effect_host *h;
    span_ns out = mono_since(host_of(c, index)->judged.ejected_at, now);

    if (c->effects == NULL)
        return;
    h = effect_of(c, index);
    h->returned = now;
    mean_add(&c->effects->time_out, (double)(out / NS_PER_MS));
    if (h->account != NULL && !h->account->summed_up)
        sum_up(c, index, now);
}

/* --- evidence --- */

static void learn_open(struct effect_account *a, const struct evidence *e, uint32_t late, bool own)
{
    if (a->summed_up)
        effect_learn_later(a, e, late, own);
    else if (own)
        effect_learn_host(a, e, late);
    else
        effect_learn_survivor(a, e, late);
}

void effect_learn(struct watched *c, uint32_t index, const struct evidence *e)
{
    struct effects *all = c->effects;
    struct effect_host *own;
    struct effect_count count;
    uint32_t late;
    bool out;

    if (all == NULL)
        return;
    own = effect_of(c, index);
    out = effect_is_out(c, index);
    late = all->limits[e->class].late;
    for (struct effect_host *h = all->open; h != NULL; h = h->next) {
        if (h == own || !out)
            learn_open(h->account, e, late, h == own);
    }
    if (out || (e->flags & EVIDENCE_PROBE) != 0)
        return;
    count = effect_count_of(e, &all->limits[e->class]);
    effect_past_add(&own->past, &count);
    effect_past_add(&all->fleet, &count);
    effect_times_add(&all->times, e);
}

/* --- what is undone --- */

static uint32_t cause_bit(uint32_t cause)
{
    return cause == GROUNDS_HAND ? 0 : UINT32_C(1) << (cause & 31);
}

static bool is_held(const struct effect_host *h, mono_ns now)
{
    return h->undone != 0 && mono_since(h->undone, now) < h->held_for;
}

static void hold(struct effect_host *h, mono_ns now)
{
    bool again = h->undone != 0 && mono_since(h->undone, now) < HOLD_MOST;

    h->held = (is_held(h, now) ? h->held : 0) | cause_bit(h->cause);
    h->held_for = again && 2 * h->held_for < HOLD_MOST ? 2 * h->held_for : again ? HOLD_MOST : 0;
    if (!again)
        h->held_for = HOLD_FOR;
    h->held_above = h->account->useless_above / 2;
    h->undone = now;
}

static bool holds(const struct watched *c, uint32_t index, uint32_t cause, mono_ns now)
{
    const struct effect_host *h;
    const struct effect_count *fleet, *own;
    double tries, bad;

    if (c->effects == NULL)
        return false;
    h = effect_of(c, index);
    if (!is_held(h, now) || (h->held & cause_bit(cause)) == 0)
        return false;
    fleet = &c->effects->fleet.lately;
    own = &h->past.lately;
    tries = fleet->tries - own->tries;
    bad = fleet->bad - own->bad;
    return tries <= 0 || bad >= h->held_above * tries;
}

bool effect_holds_line(const struct watched *c, uint32_t index, enum detect_line line, mono_ns now)
{
    return holds(c, index, (uint32_t)line, now);
}

bool effect_holds_trigger(const struct watched *c, uint32_t index, enum outlier_trigger t,
                          mono_ns now)
{
    return holds(c, index, GROUNDS_TRIGGERS + (uint32_t)t, now);
}

/* One that only a human lets back stays out whatever its last ejection was good for. */
static void undo(struct watched *c, uint32_t index, mono_ns now)
{
    struct effect_host *h = effect_of(c, index);

    if (!acts(c) || undone(h) || host_of(c, index)->life.needs_human)
        return;
    hold(h, now);
    effect_count(c, EFFECT_STAT_undone);
    effect_say_undone(c, index, now);
    deeds_undo(c, index, now);
}

static void judge(struct watched *c, uint32_t index, bool overloaded, mono_ns now)
{
    struct effect_host *h = effect_of(c, index);
    enum effect_verdict v;

    if (h->account == NULL || h->account->summed_up)
        return;
    v = effect_judge(h->account, overloaded, now);
    if ((v == EFFECT_USELESS || v == EFFECT_HARMFUL) && effect_is_out(c, index))
        undo(c, index, now);
}

bool effect_look(struct watched *c, mono_ns now)
{
    bool overloaded;

    if (c->effects == NULL || c->effects->open == NULL)
        return false;
    overloaded = effect_load(c) > 1;
    for (uint32_t i = 0; i < c->roster.count; i++)
        judge(c, i, overloaded, now);
    return true;
}

/* --- half seconds --- */

static void follow_limits(struct watched *c)
{
    const struct detect *judge = &c->detection->judge;
    double usual = exp(-fmax(0, judge->fleet.ratio));

    for (uint32_t k = 0; k < EVIDENCE_CLASS_MAX; k++)
        c->effects->limits[k] = (struct effect_limit){
            .slow = (uint32_t)(SLOW_TIMES * usual * judge->p99[k]), .late = judge->late_after[k]};
}

static void follow_share(struct effect_host *h, const struct effect_past *fleet)
{
    h->share = fleet->longer.tries > 0 ? h->past.longer.tries / fleet->longer.tries : 0;
}

static void age(struct watched *c, uint32_t index, mono_ns now)
{
    struct effect_host *h = effect_of(c, index);

    if (host_of(c, index)->life.state == LIFE_HEALTHY && !effect_is_out(c, index))
        follow_share(h, &c->effects->fleet);
    effect_past_fade(&h->past);
    if (h->account == NULL)
        return;
    if (!h->account->summed_up && mono_since(h->account->opened, now) >= EFFECT_FOR)
        sum_up(c, index, now);
    if (effect_is_out(c, index) ? mono_since(h->account->opened, now) >= EFFECT_FOR
                                : mono_since(h->returned, now) >= EFFECT_LATER)
        finish(c, index, now);
}

void effect_turn(struct watched *c, mono_ns now)
{
    if (c->effects == NULL)
        return;
    follow_limits(c);
    for (uint32_t i = 0; i < c->roster.count; i++)
        age(c, i, now);
    effect_past_fade(&c->effects->fleet);
    effect_times_fade(&c->effects->times);
    effect_look_at_capacity(c, now);
    effect_show(c);
}
