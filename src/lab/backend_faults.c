/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/backend_faults.h"

#include <assert.h>
#include <stddef.h>

#define DISTANT (UINT64_C(1) << 62) /* 146 years: nobody waits for that */

void fault_set_init(struct fault_set *s)
{
    s->count = 0;
    s->last_id = 0;
}

const struct fault *fault_set_add(struct fault_set *s, const struct fault *f, mono_ns now)
{
    struct fault *kept;

    if (s->count == FAULTS_MAX)
        return NULL;
    kept = &s->faults[s->count++];
    *kept = *f;
    kept->id = ++s->last_id;
    kept->since = now;
    kept->until = f->lasts == 0 || f->after > 0 ? MONO_NEVER : mono_after(now, f->lasts);
    kept->matched = kept->struck = 0;
    return kept;
}

/* Keeps the order of those that stay. */
static void remove_at(struct fault_set *s, uint32_t at)
{
    s->count--;
    for (uint32_t i = at; i < s->count; i++)
        s->faults[i] = s->faults[i + 1];
}

uint32_t fault_set_clear(struct fault_set *s, uint64_t id)
{
    uint32_t before = s->count;

    for (uint32_t i = s->count; i > 0; i--)
        if (id == 0 || s->faults[i - 1].id == id)
            remove_at(s, i - 1);
    return before - s->count;
}

bool fault_set_has(const struct fault_set *s, uint64_t id)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (s->faults[i].id == id)
            return true;
    return false;
}

bool fault_set_expire(struct fault_set *s, mono_ns now)
{
    uint32_t before = s->count;

    for (uint32_t i = s->count; i > 0; i--)
        if (s->faults[i - 1].until <= now)
            remove_at(s, i - 1);
    return s->count < before;
}

mono_ns fault_set_next(const struct fault_set *s)
{
    mono_ns next = MONO_NEVER;

    for (uint32_t i = 0; i < s->count; i++)
        next = mono_min(next, s->faults[i].until);
    return next;
}

static bool concerns(const struct fault *f, uint32_t server, mono_ns now)
{
    return (f->server == FAULT_ALL || f->server == server) && now < f->until;
}

/* The dice are thrown for what came after |after| only. */
static bool strikes(struct fault *f, struct rng *rng, mono_ns now)
{
    f->matched++;
    if (f->matched <= f->after)
        return false;
    if (f->matched == f->after + 1 && f->after > 0 && f->lasts > 0)
        f->until = mono_after(now, f->lasts);
    if (f->probability < 1.0 && rng_unit(rng) >= f->probability)
        return false;
    f->struck++;
    return true;
}

static void end_with(struct request_plan *p, enum plan_ending ending, const struct fault *f)
{
    if (p->ending != PLAN_ANSWER)
        return;
    p->ending = ending;
    p->status = f->status;
    p->fault = f->id;
    p->until = f->until;
}

static void apply(struct request_plan *p, const struct fault *f, struct rng *rng)
{
    switch (f->kind) {
    case FAULT_DELAY:
        p->extra = mono_after(p->extra, f->span);
        break;
    case FAULT_JITTER:
        p->extra = mono_after(p->extra, (span_ns)(rng_unit(rng) * (double)f->span));
        break;
    case FAULT_SLOW:
        p->factor *= f->factor;
        break;
    case FAULT_STATUS:
        end_with(p, PLAN_STATUS, f);
        break;
    case FAULT_HANG:
        end_with(p, PLAN_HANG, f);
        break;
    case FAULT_RESET_MID_BODY:
        end_with(p, PLAN_RESET_MID_BODY, f);
        break;
    case FAULT_STOP_READING:
        end_with(p, PLAN_STOP_READING, f);
        break;
    case FAULT_DRIP:
        p->drip = f->span;
        p->drip_bytes = f->bytes;
        break;
    case FAULT_STALL_EVERY:
        p->stall_since = f->since;
        p->stall_period = f->span;
        p->stall = f->stall;
        break;
    case FAULT_HEAVY:
        p->factor *= f->factor;
        p->heavy_bytes = f->bytes;
        break;
    case FAULT_REFUSE:
    case FAULT_ACCEPT_RESET:
    case FAULT_KIND_COUNT:
        break;
    }
}

static bool is_for_connections(enum fault_kind k)
{
    return k == FAULT_REFUSE || k == FAULT_ACCEPT_RESET;
}

void fault_set_plan(struct fault_set *s, uint32_t server, struct bytes path, struct rng *rng,
                    mono_ns now, struct request_plan *out)
{
    *out = (struct request_plan){.ending = PLAN_ANSWER, .factor = 1.0, .until = MONO_NEVER};
    for (uint32_t i = 0; i < s->count; i++) {
        struct fault *f = &s->faults[i];

        if (is_for_connections(f->kind) || !concerns(f, server, now) ||
            !bytes_start_with(path, bytes_of(f->path)))
            continue;
        if (strikes(f, rng, now))
            apply(out, f, rng);
    }
}

bool fault_set_resets(struct fault_set *s, uint32_t server, struct rng *rng, mono_ns now)
{
    bool resets = false;

    for (uint32_t i = 0; i < s->count; i++) {
        struct fault *f = &s->faults[i];

        if (f->kind == FAULT_ACCEPT_RESET && concerns(f, server, now) && strikes(f, rng, now))
            resets = true;
    }
    return resets;
}

bool fault_set_refuses(const struct fault_set *s, uint32_t server, mono_ns now)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (s->faults[i].kind == FAULT_REFUSE && concerns(&s->faults[i], server, now))
            return true;
    return false;
}

/* Work goes on only outside [since + k period, since + k period + stall). */
static mono_ns past_stalls(const struct request_plan *p, mono_ns start, span_ns work)
{
    span_ns active = p->stall_period - p->stall; /* of each period */
    span_ns phase = mono_since(p->stall_since, start) % p->stall_period;
    span_ns left; /* of this period's active part */
    uint64_t whole;

    if (phase < p->stall) {
        start = mono_after(start, p->stall - phase);
        phase = p->stall;
    }
    left = p->stall_period - phase;
    if (work <= left)
        return mono_after(start, work);
    work -= left;
    whole = (work - 1) / active;
    start = mono_after(start, left + p->stall + (work - whole * active));
    if (whole > DISTANT / p->stall_period)
        return MONO_NEVER;
    return mono_after(start, whole * p->stall_period);
}

mono_ns request_plan_end(const struct request_plan *p, mono_ns start, span_ns service)
{
    double scaled = (double)service * p->factor;
    span_ns work = scaled < (double)DISTANT ? (span_ns)scaled : DISTANT;

    if (p->factor == 1.0)
        work = service;
    work = mono_after(work, p->extra);
    if (p->stall_period == 0)
        return mono_after(start, work);
    return past_stalls(p, start, work);
}
