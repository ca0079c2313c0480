/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/host_life.h"

#include <assert.h>

const char *life_state_text(enum life_state s)
{
#define X(constant, name) [LIFE_##constant] = #name,
    static const char *const text[LIFE_STATE_COUNT] = {LIFE_STATES(X)};
#undef X

    assert(s < LIFE_STATE_COUNT);
    return text[s];
}

/* --- states --- */

static struct life_step enter(struct life *l, enum life_state next, uint32_t share, mono_ns now)
{
    static const bool allowed[LIFE_STATE_COUNT][LIFE_STATE_COUNT] = {
        [LIFE_HEALTHY] = {[LIFE_SUSPECT] = true, [LIFE_EJECTED] = true, [LIFE_HEALTHY] = true},
        [LIFE_SUSPECT] = {[LIFE_HEALTHY] = true, [LIFE_EJECTED] = true},
        [LIFE_EJECTED] = {[LIFE_PROBING] = true, [LIFE_HEALTHY] = true},
        [LIFE_PROBING] = {[LIFE_EJECTED] = true, [LIFE_RAMPING] = true, [LIFE_HEALTHY] = true},
        [LIFE_RAMPING] = {[LIFE_EJECTED] = true, [LIFE_HEALTHY] = true},
    };

    assert(allowed[l->state][next]);
    l->state = next;
    l->since = now;
    l->share = share;
    l->granted = 0;
    l->round = 0;
    l->in_row = 0;
    l->wake = MONO_NEVER;
    return (struct life_step){.changed = true};
}

void life_init(struct life *l)
{
    *l = (struct life){.state = LIFE_HEALTHY, .share = LIFE_WHOLE, .wake = MONO_NEVER};
}

static struct life_step nothing(void)
{
    return (struct life_step){.changed = false};
}

/* --- suspicion --- */

struct life_step life_suspect(struct life *l, const struct life_config *c, uint32_t share,
                              mono_ns now)
{
    if (l->state != LIFE_HEALTHY && l->state != LIFE_SUSPECT)
        return nothing();
    if (share < c->least_share)
        share = c->least_share;
    if (share > LIFE_WHOLE)
        share = LIFE_WHOLE;
    if (l->state == LIFE_HEALTHY)
        return enter(l, LIFE_SUSPECT, share, now);
    if (l->share == share)
        return nothing();
    l->share = share;
    return (struct life_step){.changed = true};
}

/* Where it was out lately and has been well for long, it is remembered as out once less. */
static void forget_one(struct life *l, mono_ns now)
{
    if (l->times == 0)
        return;
    l->times--;
    l->wake = l->times == 0 ? MONO_NEVER : mono_after(now, LIFE_FORGETS);
}

static struct life_step be_healthy(struct life *l, mono_ns now)
{
    struct life_step step = enter(l, LIFE_HEALTHY, LIFE_WHOLE, now);

    l->pause = 0;
    if (l->times > 0)
        l->wake = mono_after(now, LIFE_FORGETS);
    return step;
}

struct life_step life_clear(struct life *l, mono_ns now)
{
    return l->state == LIFE_SUSPECT ? be_healthy(l, now) : nothing();
}

/* --- out --- */

static bool was_short(const struct life *l, mono_ns now)
{
    return mono_since(l->out_since, now) < LIFE_QUICK_FOR;
}

/* |base| x |times|, at most |max|. */
static span_ns bases(span_ns base, uint32_t times, span_ns max)
{
    if (times < 1)
        times = 1;
    return base > 0 && times > max / base ? max : base * times < max ? base * times : max;
}

span_ns life_quarantine(const struct life *l, const struct life_config *c)
{
    return bases(c->base, l->times + 1, c->max);
}

/* From the last failed probe, or from going out, to the next probe. */
static span_ns rest(const struct life *l, const struct life_config *c, mono_ns now)
{
    span_ns quarantine = bases(c->base, l->times, c->max);
    span_ns out = mono_since(l->out_since, now);
    span_ns gap = l->failed_rounds == 0 ? c->after : c->gap;

    if (!c->quick)
        return quarantine;
    if (!was_short(l, now))
        gap = c->gap * (out / NS_PER_S) / (LIFE_QUICK_FOR / NS_PER_S);
    if (gap < l->least_gap)
        gap = l->least_gap;
    return gap < quarantine ? gap : quarantine;
}

static bool too_often(const struct life *l, const struct life_config *c, mono_ns now)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < LIFE_TIMES_KEPT; i++)
        n += l->outs[i] != 0 && mono_since(l->outs[i], now) <= 3600 * NS_PER_S;
    return c->times_per_hour != 0 && n >= c->times_per_hour;
}

static bool is_out_too_long(const struct life *l, const struct life_config *c, mono_ns now)
{
    return c->repeated_for != 0 && mono_since(l->out_since, now) >= c->repeated_for;
}

static struct life_step escalate(struct life *l, struct life_step step, bool reason)
{
    step.escalated = reason && !l->needs_human;
    l->needs_human |= reason;
    return step;
}

struct life_step life_eject(struct life *l, const struct life_config *c, mono_ns now)
{
    bool was_out = l->state == LIFE_PROBING;
    struct life_step step;

    if (l->state == LIFE_EJECTED)
        return nothing();
    step = enter(l, LIFE_EJECTED, 0, now);
    if (was_out) {
        l->failed_rounds++;
        l->wake = mono_after(now, rest(l, c, now));
        return escalate(l, step, is_out_too_long(l, c, now));
    }
    l->out_since = now;
    l->failed_rounds = 0;
    l->times += l->times < UINT32_MAX;
    l->outs[l->outs_next++ % LIFE_TIMES_KEPT] = now;
    l->wake = mono_after(now, rest(l, c, now));
    return escalate(l, step, too_often(l, c, now));
}

/* --- on the way back --- */

/* A round of which nothing more comes back for so long is begun anew: its requests may be gone. */
#define PROBE_PATIENCE (5 * NS_PER_S)

static struct life_step grant(struct life *l, uint32_t n, mono_ns now)
{
    l->round = n;
    l->granted = n;
    l->wake = mono_after(now, PROBE_PATIENCE);
    return (struct life_step){.grant = n};
}

static struct life_step probe_again(struct life *l, const struct life_config *c, mono_ns now)
{
    uint32_t left = c->successes - l->in_row;
    uint32_t n = l->in_row < LIFE_PROBE_MAX ? l->in_row : LIFE_PROBE_MAX;

    return grant(l, n < left ? n : left, now);
}

static struct life_step ramp(struct life *l, mono_ns now)
{
    l->last_out = mono_since(l->out_since, now);
    return enter(l, LIFE_RAMPING, LIFE_RAMP_FROM, now);
}

/*
 * So many in a row may be luck of the moment. Who is out again has to go on for as long as the
 * quarantine has grown; where it is probed only after a quarantine, that has been waited for. Who
 * lapses every few seconds is well in between.
 */
static span_ns proof_length(const struct life *l, const struct life_config *c)
{
    span_ns relapsed = c->quick && l->times > 1 ? bases(c->base, l->times - 1, c->max) : 0;
    span_ns pause = l->pause + l->pause / 4;

    if (pause > c->base)
        pause = c->base;
    return relapsed > pause ? relapsed : pause;
}

#define PAUSE_PROBES 8 /* in a pause, so that a lapse in it does not go unseen */

static span_ns proving_gap(const struct life *l, const struct life_config *c)
{
    span_ns gap =
        l->pause > 0 && l->pause / PAUSE_PROBES < c->gap ? l->pause / PAUSE_PROBES : c->gap;

    return l->least_gap > gap ? l->least_gap : gap;
}

static bool is_proved(const struct life *l, const struct life_config *c, mono_ns now)
{
    return l->in_row >= c->successes && !l->needs_human &&
           mono_since(l->in_row_since, now) >= proof_length(l, c);
}

static struct life_step probe_passed(struct life *l, const struct life_config *c, mono_ns now)
{
    if (l->in_row++ == 0)
        l->in_row_since = now;
    l->granted -= l->granted > 0;
    if (is_proved(l, c, now))
        return ramp(l, now);
    if (l->granted > 0) {
        l->wake = mono_after(now, PROBE_PATIENCE);
        return nothing();
    }
    if (l->in_row < c->successes)
        return probe_again(l, c, now);
    if (l->needs_human) {
        l->in_row = 0; /* well, but only a human lets it back: probes go on */
        l->wake = mono_after(now, rest(l, c, now));
    } else {
        l->wake = mono_after(now, proving_gap(l, c));
    }
    return nothing();
}

static span_ns ramp_length(const struct life *l, const struct life_config *c)
{
    return l->last_out < LIFE_QUICK_FOR && c->ramp > LIFE_RAMP_QUICK ? LIFE_RAMP_QUICK : c->ramp;
}

/* No further than time allows, and no further than what it has shown: a twentieth a success. */
static struct life_step ramp_on(struct life *l, const struct life_config *c, mono_ns now)
{
    span_ns length = ramp_length(l, c);
    span_ns gone = mono_since(l->since, now);
    uint64_t by_time = gone >= length
                           ? LIFE_WHOLE
                           : LIFE_RAMP_FROM + (LIFE_WHOLE - LIFE_RAMP_FROM) * (gone / NS_PER_US) /
                                                  (length / NS_PER_US);
    uint64_t shown = LIFE_RAMP_FROM + (uint64_t)l->in_row * (LIFE_WHOLE / 20);
    uint32_t share = (uint32_t)(by_time < shown ? by_time : shown);

    if (share >= LIFE_WHOLE)
        return be_healthy(l, now);
    if (share <= l->share)
        return nothing();
    l->share = share;
    return (struct life_step){.changed = true};
}

struct life_step life_learn(struct life *l, const struct life_config *c, bool passed, mono_ns now)
{
    if (l->state == LIFE_PROBING)
        return passed ? probe_passed(l, c, now) : life_eject(l, c, now);
    if (l->state != LIFE_RAMPING)
        return nothing();
    if (!passed)
        return life_eject(l, c, now);
    l->in_row++;
    return ramp_on(l, c, now);
}

static struct life_step begin_probing(struct life *l, const struct life_config *c, mono_ns now)
{
    struct life_step step = {.changed = false};
    uint32_t left;

    if (l->state != LIFE_PROBING)
        step = enter(l, LIFE_PROBING, 0, now);
    left = l->in_row < c->successes ? c->successes - l->in_row : 1;
    step.grant = grant(l, c->probes < left ? c->probes : left, now).grant;
    return step;
}

struct life_step life_turn(struct life *l, const struct life_config *c, mono_ns now)
{
    if (now < l->wake)
        return nothing();
    l->wake = MONO_NEVER;
    if (!life_serves(l))
        return escalate(l, begin_probing(l, c, now), is_out_too_long(l, c, now));
    if (l->state == LIFE_HEALTHY)
        forget_one(l, now);
    return nothing();
}

struct life_step life_pardon(struct life *l, mono_ns now)
{
    (void)now;
    if (l->state == LIFE_HEALTHY && !l->needs_human && l->times == 0)
        return nothing();
    life_init(l);
    return (struct life_step){.changed = true};
}
