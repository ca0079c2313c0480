/* SPDX-License-Identifier: Apache-2.0 */
#include "detect_world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "policy/normal.h"

struct run *run_new(uint32_t hosts, double rate)
{
    struct run *r = memory_take(sizeof(*r));

    if (r == NULL || (r->open = memory_take_array(OPEN_MAX, sizeof(*r->open))) == NULL)
        exit(1);
    r->hosts = hosts;
    r->rate = rate;
    return r;
}

void run_free(struct run *r)
{
    memory_give(r->open);
    memory_give(r);
}

static double normal(struct rng *rng)
{
    double u = rng_unit(rng);

    return normal_quantile(u <= 0 ? 1e-12 : u);
}

static double exponential(struct rng *rng, double rate)
{
    return -log(1 - rng_unit(rng)) / rate;
}

static double seconds(mono_ns t)
{
    return (double)t / (double)NS_PER_S;
}

static mono_ns from_seconds(double s)
{
    return (mono_ns)(s * (double)NS_PER_S);
}

/* --- latencies --- */

static double shape_ms(const struct load *l, struct rng *rng)
{
    double ms = 20 * exp(l->sigma * normal(rng));

    switch (l->shape) {
    case SHAPE_LOGNORMAL:
        return ms;
    case SHAPE_TAIL_1_20:
        return rng_unit(rng) < 0.01 ? ms * 20 : ms;
    case SHAPE_MIX_20_10:
        return rng_unit(rng) < 0.2 ? ms * 10 : ms;
    case SHAPE_MIX_50_5:
        return rng_unit(rng) < 0.5 ? ms * 5 : ms;
    case SHAPE_PARETO_2:
        return 10 / sqrt(1 - rng_unit(rng));
    case SHAPE_WEIBULL_HALF:
        return 10 * pow(-log(1 - rng_unit(rng)), 2);
    }
    return ms;
}

static bool within(mono_ns t, double length, double every, double phase)
{
    return every > 0 && fmod(seconds(t) + phase, every) < length;
}

static void wander(double *at, double deviation, double memory, struct rng *rng)
{
    double keep = exp(-1 / memory);

    *at = keep * *at + deviation * sqrt(1 - keep * keep) * normal(rng);
}

static double healthy_ms(struct run *r, uint32_t host)
{
    const struct load *l = r->load;
    double ms = shape_ms(l, &r->rng);

    if (l->drift > 0)
        wander(&r->wander[host], l->drift, l->memory, &r->rng);
    if (l->shared > 0)
        wander(&r->wander_all, l->shared, 300.0 * r->hosts, &r->rng);
    if (within(r->next[host], l->pause_s, l->pause_every, host * l->pause_every / r->hosts))
        ms *= l->pause_times;
    return ms * exp(r->level[host] + r->wander[host] + r->wander_all);
}

static bool is_bad(const struct run *r, uint32_t host)
{
    return r->fault != NULL && host < r->fault->bad && r->next[host] >= r->fault_from;
}

static double slowed(struct run *r, uint32_t host, double ms)
{
    const struct fault *f = r->fault;
    double since = seconds(r->next[host] - r->fault_from);
    double part = f->ramp_s > 0 && since < f->ramp_s ? since / f->ramp_s : 1;

    if (f->share < 1 && rng_unit(&r->rng) >= f->share)
        return ms;
    return f->times > 0 ? ms * pow(f->times, part * r->exponent[host]) : ms;
}

/* A frozen host answers when it is over. */
static mono_ns thawed(const struct run *r, mono_ns done)
{
    const struct fault *f = r->fault;

    if (f->freeze_every <= 0 || !within(done, f->freeze_s, f->freeze_every, 0))
        return done;
    return done + from_seconds(f->freeze_s - fmod(seconds(done), f->freeze_every));
}

/* --- requests --- */

static bool draw_heavy(struct run *r, bool bad)
{
    if (r->fault == NULL || r->fault->heavy <= 0)
        return false;
    return rng_unit(&r->rng) < (bad ? r->fault->heavy : 0.2);
}

static void send(struct run *r, uint32_t host)
{
    bool bad = is_bad(r, host);
    bool heavy = draw_heavy(r, bad);
    double ms = healthy_ms(r, host) * (heavy ? 10 : 1);
    struct open_request *q = &r->open[r->open_count];

    if (r->open_count == OPEN_MAX)
        return;
    r->open_count++;
    *q = (struct open_request){.sent = r->next[host], .host = host, .outcome = EVIDENCE_OK};
    q->fresh = r->fault != NULL && r->fault->refusing > 0;
    q->class = heavy && r->fault->strata ? CLASS_NAMED_FIRST : CLASS_READ;
    if (bad)
        ms = slowed(r, host, ms);
    if (bad && rng_unit(&r->rng) < r->fault->failing) {
        q->outcome = EVIDENCE_GATEWAY;
        ms = 1;
    }
    if (bad && rng_unit(&r->rng) < r->fault->refusing) {
        q->outcome = EVIDENCE_REFUSED;
        ms = 1;
    }
    q->done = q->sent + from_seconds(ms / 1000);
    if (bad)
        q->done = thawed(r, q->done);
    if (bad && r->fault->silent) {
        q->outcome = EVIDENCE_TIMEOUT;
        q->done = q->sent + 4 * NS_PER_S;
    }
}

static void send_all(struct run *r)
{
    for (uint32_t i = 0; i < r->hosts; i++) {
        while (r->next[i] < r->now) {
            send(r, i);
            r->next[i] += from_seconds(exponential(&r->rng, r->rate)) + 1;
        }
    }
}

static int by_end(const void *a, const void *b)
{
    const struct open_request *x = a, *y = b;

    return x->done != y->done ? (x->done > y->done) - (x->done < y->done)
                              : (x->host > y->host) - (x->host < y->host);
}

static struct evidence sample_of(const struct open_request *q, mono_ns at)
{
    double us = (double)(at - q->sent) / 1000;

    return (struct evidence){.at = at,
                             .host = q->host,
                             .class = q->class,
                             .outcome = q->outcome,
                             .flags = q->fresh ? EVIDENCE_FRESH : 0,
                             .first_us = us > 4e9 ? UINT32_MAX - 1 : (uint32_t)us};
}

static void finish_all(struct run *r)
{
    uint32_t kept = 0, done = 0;

    qsort(r->open, r->open_count, sizeof(*r->open), by_end);
    for (; done < r->open_count && r->open[done].done <= r->now; done++) {
        struct evidence s = sample_of(&r->open[done], r->open[done].done);

        detect_learn(&r->judge, s.host, &s);
        r->told[s.host] += r->open[done].sent >= r->fault_from && !r->open[done].told_late;
        r->samples++;
    }
    for (uint32_t i = done; i < r->open_count; i++)
        r->open[kept++] = r->open[i];
    r->open_count = kept;
}

static void tell_late(struct run *r)
{
    for (uint32_t i = 0; i < r->open_count; i++) {
        struct open_request *q = &r->open[i];
        uint32_t after = r->judge.late_after[q->class];
        struct evidence s = sample_of(q, r->now);

        if (q->told_late || after == 0 || s.first_us < after)
            continue;
        q->told_late = true;
        r->told[q->host] += q->sent >= r->fault_from;
        s.outcome = EVIDENCE_LATE;
        detect_learn(&r->judge, q->host, &s);
    }
}

void run_step(struct run *r)
{
    r->now += STEP;
    send_all(r);
    finish_all(r);
    tell_late(r);
    if (r->now % DETECT_BUCKET == 0)
        detect_turn(&r->judge);
    else if (r->now % DETECT_GLANCE == 0)
        detect_glance(&r->judge);
}

/* --- a run --- */

void run_begin(struct run *r, uint64_t seed)
{
    static const struct detect_config config = {DETECT_THRESHOLD, true, true, true};

    rng_init(&r->rng, seed);
    detect_init(&r->judge);
    memset(r->memory, 0, sizeof(r->memory));
    memset(r->told, 0, sizeof(r->told));
    r->now = r->samples = r->open_count = 0;
    r->fault_from = MONO_NEVER;
    r->wander_all = 0;
    for (uint32_t i = 0; i < r->hosts; i++) {
        r->members[i] = &r->memory[i];
        r->level[i] = r->load->spread > 0 ? r->load->spread * (2 * rng_unit(&r->rng) - 1) : 0;
        r->wander[i] = 0;
        r->exponent[i] = r->fault == NULL ? 1 : 1 + r->fault->uneven * (2 * rng_unit(&r->rng) - 1);
        r->next[i] = from_seconds(exponential(&r->rng, r->rate));
    }
    detect_adopt(&r->judge, &config, r->members, r->hosts);
    for (uint32_t i = 0; i < r->hosts; i++)
        detect_set_serving(&r->judge, i, true);
}

void run_end(struct run *r)
{
    detect_release(&r->judge);
    for (uint32_t i = 0; i < r->hosts; i++)
        detect_host_release(&r->memory[i]);
}

/* --- what is done --- */

enum verdict_deed run_deed(const struct run *r, uint32_t host, enum detect_line *line)
{
    static const struct detection_config config = {.profile = PROFILE_ADAPTIVE, .max_load = 0.75};
    enum verdict_deed most = VERDICT_NOTHING;

    for (int l = 0; l < DETECT_LINE_COUNT; l++) {
        struct verdict v;

        if (!detect_accuses(&r->judge, host, (enum detect_line)l))
            continue;
        v = verdict_of(&r->judge, &config, host, (enum detect_line)l);
        if (v.deed > most) {
            most = v.deed;
            *line = (enum detect_line)l;
        }
    }
    return most;
}
