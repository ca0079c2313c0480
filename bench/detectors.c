/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of reference/detection.md B18 and B19 with the judge that ships: how often it accuses
 * nobody's fault, and how soon a fault. Synthetic latencies, seeds printed; nothing acts on a
 * verdict (open loop), so that each row says what the judge alone reaches.
 *
 *     bench_detectors [--runs N] [--hours H] [--seed S] [nulls|faults|fleet|skew ...]
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/rng.h"
#include "policy/detect.h"
#include "policy/detect_verdict.h"
#include "policy/normal.h"

#define HOSTS_MAX 16
#define OPEN_MAX  65536
#define STEP      (NS_PER_S / 20)

enum shape {
    SHAPE_LOGNORMAL,
    SHAPE_TAIL_1_20, /* 1 % x 20 */
    SHAPE_MIX_20_10, /* 20 % x 10 */
    SHAPE_PARETO_2,  /* a = 2 */
    SHAPE_MIX_50_5,  /* half x 5 */
    SHAPE_WEIBULL_HALF
};

struct load {
    const char *name;
    enum shape shape;
    double sigma;
    double spread;      /* hosts differ by up to that, for ever: 0.1 is 10 % */
    double drift;       /* AR(1) of the log latency of each host: its deviation, ... */
    double memory;      /* ... and its memory in samples */
    double shared;      /* the same, of all hosts together */
    double pause_s;     /* every so often ... */
    double pause_every; /* ... each host in turn is slower */
    double pause_times;
};

struct fault {
    const char *name;
    uint32_t bad;    /* hosts that have it */
    double times;    /* slower, of ... */
    double share;    /* ... that share of requests */
    double failing;  /* share of requests that fail */
    double freeze_s; /* no answer at all for so long ... */
    double freeze_every;
    double uneven; /* fleet: exponent drawn in 1 +- uneven */
    double ramp_s;
    double heavy; /* share of heavy requests (x 10) the bad hosts get; others 20 % */
    bool strata;  /* heavy ones are a class of their own */
    bool silent;  /* never an answer */
};

struct open_request {
    mono_ns sent;
    mono_ns done;
    uint32_t host;
    uint8_t class;
    uint8_t outcome;
    bool told_late;
};

struct run {
    const struct load *load;
    const struct fault *fault;
    double rate; /* requests a second and host */
    uint32_t hosts;
    struct rng rng;
    struct detect judge;
    struct detect_host memory[HOSTS_MAX];
    struct detect_host *members[HOSTS_MAX];
    double level[HOSTS_MAX]; /* log, for ever */
    double wander[HOSTS_MAX];
    double wander_all;
    double exponent[HOSTS_MAX];
    mono_ns next[HOSTS_MAX];
    mono_ns now;
    mono_ns fault_from; /* MONO_NEVER: none */
    mono_ns held[HOSTS_MAX];
    uint64_t samples;
    uint32_t open_count;
    struct open_request *open;
};

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

static bool draw_heavy(struct run *r, uint32_t host, bool bad)
{
    (void)host;
    if (r->fault == NULL || r->fault->heavy <= 0)
        return false;
    return rng_unit(&r->rng) < (bad ? r->fault->heavy : 0.2);
}

static void send(struct run *r, uint32_t host)
{
    bool bad = is_bad(r, host);
    bool heavy = draw_heavy(r, host, bad);
    double ms = healthy_ms(r, host) * (heavy ? 10 : 1);
    struct open_request *q = &r->open[r->open_count];

    if (r->open_count == OPEN_MAX)
        return;
    r->open_count++;
    *q = (struct open_request){.sent = r->next[host], .host = host, .outcome = EVIDENCE_OK};
    q->class = heavy && r->fault->strata ? CLASS_NAMED_FIRST : CLASS_READ;
    if (bad)
        ms = slowed(r, host, ms);
    if (bad && rng_unit(&r->rng) < r->fault->failing) {
        q->outcome = EVIDENCE_GATEWAY;
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
                             .first_us = us > 4e9 ? UINT32_MAX - 1 : (uint32_t)us};
}

static void finish_all(struct run *r)
{
    uint32_t kept = 0, done = 0;

    qsort(r->open, r->open_count, sizeof(*r->open), by_end);
    for (; done < r->open_count && r->open[done].done <= r->now; done++) {
        struct evidence s = sample_of(&r->open[done], r->open[done].done);

        detect_learn(&r->judge, s.host, &s);
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
        s.outcome = EVIDENCE_LATE;
        detect_learn(&r->judge, q->host, &s);
    }
}

static void step(struct run *r)
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

static void run_begin(struct run *r, uint64_t seed)
{
    static const struct detect_config config = {DETECT_THRESHOLD, true, true, true};

    rng_init(&r->rng, seed);
    detect_init(&r->judge);
    memset(r->memory, 0, sizeof(r->memory));
    r->now = r->samples = r->open_count = 0;
    r->wander_all = 0;
    for (uint32_t i = 0; i < r->hosts; i++) {
        r->members[i] = &r->memory[i];
        r->level[i] = r->load->spread > 0 ? r->load->spread * (2 * rng_unit(&r->rng) - 1) : 0;
        r->wander[i] = 0;
        r->held[i] = MONO_NEVER;
        r->exponent[i] = r->fault == NULL ? 1 : 1 + r->fault->uneven * (2 * rng_unit(&r->rng) - 1);
        r->next[i] = from_seconds(exponential(&r->rng, r->rate));
    }
    detect_adopt(&r->judge, &config, r->members, r->hosts);
    for (uint32_t i = 0; i < r->hosts; i++)
        detect_set_serving(&r->judge, i, true);
}

static void run_end(struct run *r)
{
    detect_release(&r->judge);
    for (uint32_t i = 0; i < r->hosts; i++)
        detect_host_release(&r->memory[i]);
}

#define LEARN_S 150
#define NO_LINE DETECT_LINE_COUNT

static enum detect_line accused(const struct run *r, uint32_t host)
{
    for (int l = 0; l < DETECT_LINE_COUNT; l++) {
        if (detect_accuses(&r->judge, host, (enum detect_line)l) &&
            detect_guard_of(&r->judge, host, (enum detect_line)l) == DETECT_HOLDS)
            return (enum detect_line)l;
    }
    return NO_LINE;
}

static enum verdict_deed deed_of(const struct run *r, uint32_t host)
{
    static const struct detection_config config = {.profile = PROFILE_ADAPTIVE, .max_load = 0.75};
    enum verdict_deed most = VERDICT_NOTHING;

    for (int l = 0; l < DETECT_LINE_COUNT; l++) {
        struct verdict v;

        if (!detect_accuses(&r->judge, host, (enum detect_line)l))
            continue;
        v = verdict_of(&r->judge, &config, host, (enum detect_line)l);
        most = v.deed > most ? v.deed : most;
    }
    return most;
}

/* --- tables --- */

struct options {
    uint32_t runs;
    double samples;
    uint64_t seed;
};

static const struct load loads[] = {
    {.name = "lognormal s .5", .sigma = .5},
    {.name = "lognormal s 1", .sigma = 1},
    {.name = "1 % x 20", .shape = SHAPE_TAIL_1_20, .sigma = .5},
    {.name = "20 % x 10", .shape = SHAPE_MIX_20_10, .sigma = .5},
    {.name = "hosts +-10 %", .sigma = .5, .spread = .1},
    {.name = "pauses .5 s x 6", .sigma = .5, .pause_s = .5, .pause_every = 120, .pause_times = 6},
    {.name = "Pareto 2", .shape = SHAPE_PARETO_2},
    {.name = "half x 5", .shape = SHAPE_MIX_50_5, .sigma = .5},
    {.name = "hosts +-25 %", .sigma = .5, .spread = .25},
    {.name = "pauses 1 s x 4", .sigma = .5, .pause_s = 1, .pause_every = 120, .pause_times = 4},
    {.name = "drift .2 / 50", .sigma = .5, .drift = .2, .memory = 50},
    {.name = "hosts +-50 %", .sigma = .5, .spread = .5},
    {.name = "Weibull 1/2", .shape = SHAPE_WEIBULL_HALF},
    {.name = "lognormal s 1.5", .sigma = 1.5},
    {.name = "shared drift .4", .sigma = .5, .shared = .4},
    {.name = "drift .1 / 50", .sigma = .5, .drift = .1, .memory = 50},
    {.name = "drift .3 / 300", .sigma = .5, .drift = .3, .memory = 300},
};

static struct run *run_new(uint32_t hosts, double rate)
{
    struct run *r = memory_take(sizeof(*r));

    if (r == NULL || (r->open = memory_take_array(OPEN_MAX, sizeof(*r->open))) == NULL)
        exit(1);
    r->hosts = hosts;
    r->rate = rate;
    return r;
}

static void null_row(const struct load *load, uint32_t hosts, double rate, const struct options *o)
{
    struct run *r = run_new(hosts, rate);
    uint32_t alarms[DETECT_LINE_COUNT + 1] = {0};

    r->load = load;
    r->fault_from = MONO_NEVER;
    run_begin(r, o->seed);
    while ((double)r->samples < o->samples) {
        step(r);
        if (r->now < LEARN_S * NS_PER_S)
            continue;
        for (uint32_t i = 0; i < hosts; i++) {
            enum detect_line line = accused(r, i);

            if (line == NO_LINE)
                continue;
            alarms[line]++;
            detect_acquit(&r->judge, i);
        }
    }
    printf("| %-16s | %2u | %3.0f | %9" PRIu64 " |", load->name, hosts, rate, r->samples);
    for (int l = 0; l < DETECT_LINE_COUNT; l++)
        printf(" %5u |", alarms[l]);
    printf(" sd %.3f\n", r->judge.deviation);
    run_end(r);
    memory_give(r->open);
    memory_give(r);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

#define WATCH_S 120

struct outcome {
    double suspect; /* seconds; negative: never */
    double sure;    /* an accusation that ejects: not by latency, or x 3 for 2 s */
    uint32_t wrong; /* others that were accused */
};

static void watch(struct run *r, struct outcome *out)
{
    bool counted[HOSTS_MAX] = {false};

    for (mono_ns end = r->fault_from + WATCH_S * NS_PER_S; r->now < end && out->sure < 0;) {
        step(r);
        for (uint32_t i = 0; i < r->hosts; i++) {
            enum verdict_deed deed = deed_of(r, i);

            if (deed == VERDICT_NOTHING)
                continue;
            if (i >= r->fault->bad) {
                out->wrong += !counted[i];
                counted[i] = true;
                continue;
            }
            if (out->suspect < 0)
                out->suspect = seconds(r->now - r->fault_from);
            if (deed == VERDICT_EJECT)
                out->sure = seconds(r->now - r->fault_from);
        }
    }
}

static void print_times(double *at, uint32_t n, uint32_t runs)
{
    qsort(at, n, sizeof(*at), by_value);
    if (n == 0)
        printf(" %5s %5s %5.0f%% |", "-", "-", 100.0);
    else
        printf(" %5.1f %5.1f %5.1f%% |", at[n / 2], at[n * 95 / 100], 100.0 * (runs - n) / runs);
}

static void fault_row(const struct load *load, const struct fault *fault, uint32_t hosts,
                      double rate, const struct options *o)
{
    double *suspect = memory_take_array(o->runs, sizeof(double));
    double *sure = memory_take_array(o->runs, sizeof(double));
    uint32_t suspects = 0, sures = 0, wrong = 0;

    if (suspect == NULL || sure == NULL)
        exit(1);
    for (uint32_t n = 0; n < o->runs; n++) {
        struct run *r = run_new(hosts, rate);
        struct outcome out = {.suspect = -1, .sure = -1};

        r->load = load;
        r->fault = fault;
        r->fault_from = MONO_NEVER;
        run_begin(r, o->seed + n);
        while (r->now < LEARN_S * NS_PER_S + rng_below(&r->rng, 10) * STEP)
            step(r);
        r->fault_from = r->now;
        watch(r, &out);
        if (out.suspect >= 0)
            suspect[suspects++] = out.suspect;
        if (out.sure >= 0)
            sure[sures++] = out.sure;
        wrong += out.wrong;
        run_end(r);
        memory_give(r->open);
        memory_give(r);
    }
    printf("| %-24s | %-14s | %2u | %3.0f |", fault->name, load->name, hosts, rate);
    print_times(suspect, suspects, o->runs);
    print_times(sure, sures, o->runs);
    printf(" %5.3f\n", (double)wrong / o->runs);
    memory_give(suspect);
    memory_give(sure);
}

int main(int argc, char **argv)
{
    struct options o = {.runs = 60, .samples = 4e5, .seed = 1};
    static const struct fault faults[] = {
        {.name = "x 2", .bad = 1, .times = 2, .share = 1},
        {.name = "x 3", .bad = 1, .times = 3, .share = 1},
        {.name = "x 10", .bad = 1, .times = 10, .share = 1},
        {.name = "two x 3", .bad = 2, .times = 3, .share = 1},
        {.name = "three x 3", .bad = 3, .times = 3, .share = 1},
        {.name = "5 % x 20", .bad = 1, .times = 20, .share = .05},
        {.name = "10 % x 20", .bad = 1, .times = 20, .share = .1},
        {.name = "18 % x 20", .bad = 1, .times = 20, .share = .18},
        {.name = "freeze 1 s / 5 s", .bad = 1, .share = 1, .freeze_s = 1, .freeze_every = 5},
        {.name = "freeze .5 s / 5 s", .bad = 1, .share = 1, .freeze_s = .5, .freeze_every = 5},
        {.name = "errors 5 %", .bad = 1, .failing = .05},
        {.name = "errors 10 %", .bad = 1, .failing = .1},
        {.name = "errors 50 %", .bad = 1, .failing = .5},
        {.name = "errors 100 %", .bad = 1, .failing = 1},
        {.name = "black hole", .bad = 1, .silent = true, .share = 1},
        {.name = "fleet x 3", .bad = 0, .times = 3, .share = 1},
    };
    bool nulls = argc < 2 || strcmp(argv[1], "nulls") == 0;
    bool bads = argc < 2 || strcmp(argv[1], "faults") == 0;

    if (argc > 2)
        o.runs = (uint32_t)atoi(argv[2]);
    if (argc > 3)
        o.samples = atof(argv[3]);
    for (size_t i = 0; nulls && i < sizeof(loads) / sizeof(loads[0]); i++)
        null_row(&loads[i], 10, 10, &o);
    for (size_t i = 0; bads && i < sizeof(faults) / sizeof(faults[0]); i++)
        fault_row(&loads[0], &faults[i], 10, 10, &o);
    for (size_t i = 0; bads && i < 3; i++)
        fault_row(&loads[1], &faults[i], 10, 10, &o);
    return 0;
}
