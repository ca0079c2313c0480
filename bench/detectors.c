/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of reference/detection.md B18 and B19 with the judge and the verdict that ship: how
 * often nobody's fault is taken for one, and how soon a fault is seen. One table a call, as
 * Markdown; scripts/proof-detectors makes docs/proof/detectors.md of all of them.
 *
 *     bench_detectors nulls|delays|minority|failures|fleet|skew [SCALE [SEED [ROWS]]]
 *
 * SCALE multiplies runs and samples; ROWS: only those with that in their names. Run n of a cell,
 * from 0, has the seed SEED + n.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "detect_world.h"

#define LEARN_S  100 /* a thousand clean samples a host at ten a second */
#define WATCH_S  120
#define RUNS_MAX 10000

struct options {
    double scale;
    uint64_t seed;
    const char *only; /* rows whose name has it; "": all */
};

static bool is_wanted(const struct options *o, const char *name)
{
    return strstr(name, o->only) != NULL;
}

static uint32_t scaled(const struct options *o, double n)
{
    return (uint32_t)fmin(fmax(1, n * o->scale), RUNS_MAX);
}

/* --- nobody's fault --- */

struct null {
    struct load load;
    const char *f[3]; /* what variant F needed samples of a host for, one false alarm */
};

static const struct null nulls[] = {
    {{.name = "lognormal s .5", .sigma = .5}, {"2e6", "4e5", ">"}},
    {{.name = "lognormal s 1", .sigma = 1}, {">", ">", ">"}},
    {{.name = "1 % x 20", .shape = SHAPE_TAIL_1_20, .sigma = .5}, {">", "4e5", ">"}},
    {{.name = "20 % x 10", .shape = SHAPE_MIX_20_10, .sigma = .5}, {">", ">", ">"}},
    {{.name = "hosts +-10 %", .sigma = .5, .spread = .1}, {">", ">", ">"}},
    {{.name = "pauses .5 s x 6", .sigma = .5, .pause_s = .5, .pause_every = 120, .pause_times = 6},
     {"4e5", "4e5", ">"}},
    {{.name = "Pareto 2", .shape = SHAPE_PARETO_2}, {"2e6", ">", ">"}},
    {{.name = "half x 5", .shape = SHAPE_MIX_50_5, .sigma = .5}, {">", ">", ">"}},
    {{.name = "hosts +-25 %", .sigma = .5, .spread = .25}, {">", ">", ">"}},
    {{.name = "pauses 1 s x 4", .sigma = .5, .pause_s = 1, .pause_every = 120, .pause_times = 4},
     {"4.9e4", "5e4", "3.3e5"}},
    {{.name = "drift .2 / 50", .sigma = .5, .drift = .2, .memory = 50},
     {"4.9e3", "6.2e3", "6.2e4"}},
    {{.name = "hosts +-50 %", .sigma = .5, .spread = .5}, {">", ">", ">"}},
    {{.name = "Weibull 1/2", .shape = SHAPE_WEIBULL_HALF}, {">", ">", ">"}},
    {{.name = "lognormal s 1.5", .sigma = 1.5}, {">", ">", ">"}},
    {{.name = "shared drift .4", .sigma = .5, .shared = .4}, {">", "4e5", ">"}},
    {{.name = "drift .1 / 50", .sigma = .5, .drift = .1, .memory = 50}, {"4.8e4", "6.7e4", ">"}},
    {{.name = "drift .3 / 300", .sigma = .5, .drift = .3, .memory = 300},
     {"2.9e3", "4.3e3", "8.1e3"}},
};

static const struct {
    uint32_t hosts;
    double rate, samples;
} fleets[] = {{10, 10, 4e5}, {4, 10, 4e5}, {10, 50, 4e5}};

struct alarms {
    uint64_t samples;
    uint32_t rank, tail, stalls, other, out;
};

static void count_alarms(struct run *r, struct alarms *a, bool *out)
{
    for (uint32_t i = 0; i < r->hosts; i++) {
        enum detect_line line = DETECT_RANK;
        enum verdict_deed deed = run_deed(r, i, &line);

        if (deed == VERDICT_EJECT && !out[i])
            a->out++;
        if (deed == VERDICT_NOTHING || out[i])
            continue;
        a->rank += line == DETECT_RANK;
        a->tail += line == DETECT_TAIL;
        a->stalls += line == DETECT_STALLS;
        a->other += !detect_by_half_seconds(line);
        detect_acquit(&r->judge, i);
    }
}

static struct alarms null_alarms(const struct load *load, size_t fleet, const struct options *o)
{
    struct run *r = run_new(fleets[fleet].hosts, fleets[fleet].rate);
    struct alarms a = {.samples = 0};
    bool out[HOSTS_MAX] = {false};

    r->load = load;
    run_begin(r, o->seed);
    while ((double)r->samples < fleets[fleet].samples * o->scale) {
        run_step(r);
        if (r->now >= LEARN_S * NS_PER_S)
            count_alarms(r, &a, out);
    }
    a.samples = r->samples;
    run_end(r);
    run_free(r);
    return a;
}

static void print_null(const struct alarms *a, const char *f)
{
    uint32_t all = a->rank + a->tail + a->stalls + a->other;

    if (all == 0)
        printf(" > | %s |", f);
    else
        printf(" %.1e (%u: %u rank, %u tail, %u stalls, %u other) | %s |", (double)a->samples / all,
               all, a->rank, a->tail, a->stalls, a->other, f);
}

static void table_nulls(const struct options *o)
{
    printf("| no fault | 10 hosts, 10 rps | F | 4 hosts, 10 rps | F | 10 hosts, 50 rps | F |\n"
           "|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof(nulls) / sizeof(nulls[0]); i++) {
        if (!is_wanted(o, nulls[i].load.name))
            continue;
        printf("| %s |", nulls[i].load.name);
        for (size_t f = 0; f < 3; f++) {
            struct alarms a = null_alarms(&nulls[i].load, f, o);

            print_null(&a, nulls[i].f[f]);
        }
        printf("\n");
        fflush(stdout);
    }
}

/* --- faults --- */

struct times {
    uint32_t count, runs;
    double at[RUNS_MAX];
};

struct cell {
    struct times suspect, out;
    struct times told;       /* what was known of it by the time it was suspected, at its rate */
    uint32_t wrong;          /* hosts without a fault that were suspected */
    uint32_t wrong_out;      /* and ejected */
    uint32_t runs_wrong_out; /* runs with any */
};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void print_times(struct times *t)
{
    qsort(t->at, t->count, sizeof(t->at[0]), by_value);
    if (t->count * 2 < t->runs)
        printf(" - (%.0f %% never) |", 100.0 * (t->runs - t->count) / t->runs);
    else
        printf(" %.1f / %.1f (%.0f %% never) |", t->at[(t->runs - 1) / 2],
               t->at[(t->count * 19 - 1) / 20], 100.0 * (t->runs - t->count) / t->runs);
}

static void print_median(struct times *t)
{
    qsort(t->at, t->count, sizeof(t->at[0]), by_value);
    if (t->count * 2 < t->runs)
        printf(" - |");
    else
        printf(" %.1f |", t->at[(t->runs - 1) / 2]);
}

/* The bad hosts' first times are seconds since the fault; below 0: not yet. */
struct seen {
    bool suspect[HOSTS_MAX], out[HOSTS_MAX];
    double suspect_at, out_at, told;
};

static double since_fault(const struct run *r)
{
    return (double)(r->now - r->fault_from) / (double)NS_PER_S;
}

/* |guilty|: hosts below it are bad. First times, and who is blamed in error. */
static void look(const struct run *r, uint32_t guilty, struct seen *s)
{
    for (uint32_t i = 0; i < r->hosts; i++) {
        enum detect_line line;
        enum verdict_deed deed = run_deed(r, i, &line);

        s->suspect[i] |= deed != VERDICT_NOTHING;
        s->out[i] |= deed == VERDICT_EJECT;
        if (i < guilty && s->suspect[i] && s->suspect_at < 0) {
            s->suspect_at = since_fault(r);
            s->told = r->told[i] / r->rate;
        }
        if (i < guilty && s->out[i] && s->out_at < 0)
            s->out_at = since_fault(r);
    }
}

static void tally(struct cell *c, const struct run *r, uint32_t guilty, const struct seen *s)
{
    uint32_t out = 0;

    for (uint32_t i = guilty; i < r->hosts; i++) {
        c->wrong += s->suspect[i];
        out += s->out[i];
    }
    c->wrong_out += out;
    c->runs_wrong_out += out > 0;
}

static void note(struct times *t, double at)
{
    t->runs++;
    if (at >= 0)
        t->at[t->count++] = at;
}

static void one_run(struct run *r, uint64_t seed, uint32_t guilty, double watch_s, struct cell *c)
{
    struct seen s = {.suspect_at = -1, .out_at = -1, .told = -1};

    run_begin(r, seed);
    while (r->now < LEARN_S * NS_PER_S + rng_below(&r->rng, 10) * STEP)
        run_step(r);
    r->fault_from = r->now;
    while (since_fault(r) < watch_s && s.out_at < 0) {
        run_step(r);
        look(r, guilty, &s);
    }
    note(&c->suspect, s.suspect_at);
    note(&c->told, s.told);
    note(&c->out, s.out_at);
    tally(c, r, guilty, &s);
    run_end(r);
}

struct row {
    struct load load;
    struct fault fault;
    uint32_t hosts;
    double rate;
    const char *was; /* what the reference says */
};

/* NULL where there is no memory. */
static struct cell *run_row(const struct row *row, const struct options *o, double runs,
                            double watch_s)
{
    uint32_t guilty = row->fault.bad == row->hosts ? 0 : row->fault.bad;
    struct cell *c = memory_take(sizeof(*c));
    struct run *r = run_new(row->hosts, row->rate);

    if (c == NULL)
        exit(1);
    r->load = &row->load;
    r->fault = &row->fault;
    for (uint32_t n = 0; n < scaled(o, runs); n++)
        one_run(r, o->seed + n, guilty, watch_s, c);
    run_free(r);
    return c;
}

static void print_rows(const struct row *rows, size_t count, double runs, const struct options *o)
{
    printf(
        "| fault | latencies | hosts, rps | suspected, s: median / 95 %% | by its samples / rate, "
        "s | ejected, s: median / 95 %% | the reference | others suspected a run "
        "|\n|---|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < count; i++) {
        struct cell *c;

        if (!is_wanted(o, rows[i].fault.name))
            continue;
        c = run_row(&rows[i], o, runs, WATCH_S);
        printf("| %s | %s | %u, %.0f |", rows[i].fault.name, rows[i].load.name, rows[i].hosts,
               rows[i].rate);
        print_times(&c->suspect);
        print_median(&c->told);
        print_times(&c->out);
        printf(" %s | %.3f |\n", rows[i].was, (double)c->wrong / c->suspect.runs);
        fflush(stdout);
        memory_give(c);
    }
}

#define S05                                                                                        \
    {                                                                                              \
        .name = "s .5", .sigma = .5                                                                \
    }
#define S1                                                                                         \
    {                                                                                              \
        .name = "s 1", .sigma = 1                                                                  \
    }
#define PARETO                                                                                     \
    {                                                                                              \
        .name = "Pareto 2", .shape = SHAPE_PARETO_2                                                \
    }
#define MIX                                                                                        \
    {                                                                                              \
        .name = "20 % x 10", .shape = SHAPE_MIX_20_10, .sigma = .5                                 \
    }
#define DRIFTING                                                                                   \
    {                                                                                              \
        .name = "drift .2/50", .sigma = .5, .drift = .2, .memory = 50                              \
    }

static void table_delays(const struct options *o)
{
    static const struct row rows[] = {
        {S05, {.name = "x 2", .bad = 1, .times = 2, .share = 1}, 10, 10, "2.1"},
        {S05, {.name = "x 3", .bad = 1, .times = 3, .share = 1}, 10, 10, "1.6"},
        {S05, {.name = "x 10", .bad = 1, .times = 10, .share = 1}, 10, 10, "1.5"},
        {S1, {.name = "x 2", .bad = 1, .times = 2, .share = 1}, 10, 10, "9.6"},
        {S1, {.name = "x 3", .bad = 1, .times = 3, .share = 1}, 10, 10, "3.0"},
        {S1, {.name = "x 10", .bad = 1, .times = 10, .share = 1}, 10, 10, "1.6"},
        {PARETO, {.name = "x 2", .bad = 1, .times = 2, .share = 1}, 10, 10, "2.0"},
        {PARETO, {.name = "x 3", .bad = 1, .times = 3, .share = 1}, 10, 10, "1.7"},
        {MIX, {.name = "x 2", .bad = 1, .times = 2, .share = 1}, 10, 10, "5.0"},
        {MIX, {.name = "x 3", .bad = 1, .times = 3, .share = 1}, 10, 10, "2.5"},
        {DRIFTING, {.name = "x 2", .bad = 1, .times = 2, .share = 1}, 10, 10, "5.8 - 6.9"},
        {DRIFTING, {.name = "x 3", .bad = 1, .times = 3, .share = 1}, 10, 10, "1.9"},
        {S05, {.name = "x 2", .bad = 1, .times = 2, .share = 1}, 4, 10, "2.3"},
        {S05, {.name = "x 3", .bad = 1, .times = 3, .share = 1}, 4, 10, "1.7"},
        {S05, {.name = "x 10", .bad = 1, .times = 10, .share = 1}, 4, 10, "1.6"},
        {S1, {.name = "x 2", .bad = 1, .times = 2, .share = 1}, 4, 10, "13"},
        {S1, {.name = "x 3", .bad = 1, .times = 3, .share = 1}, 4, 10, "3.4"},
        {S1, {.name = "x 10", .bad = 1, .times = 10, .share = 1}, 4, 10, "1.7"},
        {PARETO, {.name = "x 2", .bad = 1, .times = 2, .share = 1}, 4, 10, "2.0"},
        {PARETO, {.name = "x 3", .bad = 1, .times = 3, .share = 1}, 4, 10, "1.7"},
        {MIX, {.name = "x 2", .bad = 1, .times = 2, .share = 1}, 4, 10, "6.3"},
        {MIX, {.name = "x 3", .bad = 1, .times = 3, .share = 1}, 4, 10, "2.8"},
        {DRIFTING, {.name = "x 2", .bad = 1, .times = 2, .share = 1}, 4, 10, "8.0"},
        {DRIFTING, {.name = "x 3", .bad = 1, .times = 3, .share = 1}, 4, 10, "2.3"},
        {S05, {.name = "x 2", .bad = 1, .times = 2, .share = 1}, 10, 50, "1.4"},
        {S05, {.name = "x 3", .bad = 1, .times = 3, .share = 1}, 10, 50, "1.3"},
        {S05, {.name = "x 10", .bad = 1, .times = 10, .share = 1}, 10, 50, "1.3"},
        {S1, {.name = "x 2", .bad = 1, .times = 2, .share = 1}, 10, 50, "4.0"},
        {S1, {.name = "x 3", .bad = 1, .times = 3, .share = 1}, 10, 50, "1.6"},
        {S1, {.name = "x 10", .bad = 1, .times = 10, .share = 1}, 10, 50, "1.3"},
        {PARETO, {.name = "x 2", .bad = 1, .times = 2, .share = 1}, 10, 50, "1.4"},
        {PARETO, {.name = "x 3", .bad = 1, .times = 3, .share = 1}, 10, 50, "1.3"},
        {MIX, {.name = "x 2", .bad = 1, .times = 2, .share = 1}, 10, 50, "2.0"},
        {MIX, {.name = "x 3", .bad = 1, .times = 3, .share = 1}, 10, 50, "1.5"},
        {DRIFTING, {.name = "x 2", .bad = 1, .times = 2, .share = 1}, 10, 50, "2.3"},
        {DRIFTING, {.name = "x 3", .bad = 1, .times = 3, .share = 1}, 10, 50, "1.4"},
        {S05, {.name = "two x 3", .bad = 2, .times = 3, .share = 1}, 10, 10, "1.8"},
        {S05, {.name = "three x 3", .bad = 3, .times = 3, .share = 1}, 10, 10, "1.8"},
        {S05, {.name = "four x 3", .bad = 4, .times = 3, .share = 1}, 10, 10, "6.6"},
        {S05, {.name = "two x 3", .bad = 2, .times = 3, .share = 1}, 4, 10, "13"},
    };
    print_rows(rows, sizeof(rows) / sizeof(rows[0]), 40, o);
}

static void table_minority(const struct options *o)
{
    static const struct row rows[] = {
        {S05, {.name = "5 % x 20", .bad = 1, .times = 20, .share = 0.05}, 10, 10, "18, mean"},
        {S05, {.name = "10 % x 20", .bad = 1, .times = 20, .share = 0.1}, 10, 10, "7, mean"},
        {S05, {.name = "18 % x 20", .bad = 1, .times = 20, .share = 0.18}, 10, 10, "4, mean"},
        {S1, {.name = "5 % x 20", .bad = 1, .times = 20, .share = 0.05}, 10, 10, "22 % caught"},
        {S1, {.name = "10 % x 20", .bad = 1, .times = 20, .share = 0.1}, 10, 10, "25, mean"},
        {S05,
         {.name = "freeze 1 s / 5 s", .bad = 1, .share = 1, .freeze_s = 1, .freeze_every = 5},
         10,
         10,
         "9, mean"},
        {S05,
         {.name = "freeze 0.5 s / 5 s", .bad = 1, .share = 1, .freeze_s = 0.5, .freeze_every = 5},
         10,
         10,
         "31, mean"},
    };
    print_rows(rows, sizeof(rows) / sizeof(rows[0]), 40, o);
}

static void table_failures(const struct options *o)
{
    static const struct row rows[] = {
        {S05, {.name = "errors 5 %", .bad = 1, .failing = 0.05}, 10, 10, "7.4, mean"},
        {S05, {.name = "errors 10 %", .bad = 1, .failing = 0.1}, 10, 10, "3.1, mean"},
        {S05, {.name = "errors 20 %", .bad = 1, .failing = 0.2}, 10, 10, "1.3, mean"},
        {S05, {.name = "errors 50 %", .bad = 1, .failing = 0.5}, 10, 10, "0.42, mean"},
        {S05, {.name = "errors 100 %", .bad = 1, .failing = 1}, 10, 10, "0.2, mean"},
        {S05, {.name = "connects fail", .bad = 1, .refusing = 1}, 10, 10, "-"},
        {S05, {.name = "half of the connects fail", .bad = 1, .refusing = .5}, 10, 10, "-"},
        {S05, {.name = "black hole", .bad = 1, .share = 1, .silent = true}, 10, 10, "-"},
    };
    print_rows(rows, sizeof(rows) / sizeof(rows[0]), 40, o);
}

/* --- all at once --- */

static void fleet_row(const struct row *row, double runs, const struct options *o)
{
    struct cell *c = run_row(row, o, runs, 60);
    double n = c->suspect.runs;

    printf("| %s | %u, %.0f | %.0f | %.4f | %.4f | %u | %s |\n", row->fault.name, row->hosts,
           row->rate, n, c->wrong / n, c->wrong_out / n, c->runs_wrong_out, row->was);
    fflush(stdout);
    memory_give(c);
}

static void table_fleet(const struct options *o)
{
    static const double ramps[] = {0, 5, 30};
    static const struct {
        const char *name;
        double uneven, runs;
        const char *was;
    } kinds[] = {{"equal", 0, 600, "F: one ejection in 1,800 runs"},
                 {"+-.2", .2, 60, "F: .013 - .04"},
                 {"+-.35", .35, 60, "F: .34 - .46; F=5: .01 - .13"},
                 {"+-.5", .5, 60, "F: .8 - .9; F=5: .23"}};

    printf(
        "| all x 3 | hosts, rps | runs | suspected a run | ejected a run | runs with an ejection "
        "| the reference: ejected a run |\n|---|---|---|---|---|---|---|\n");
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        for (size_t i = 0; i < sizeof(ramps) / sizeof(ramps[0]); i++) {
            char name[64];
            struct row row = {S05, {.times = 3, .share = 1, .bad = 10}, 10, 10, kinds[k].was};

            snprintf(name, sizeof(name), "%s, ramp of %.0f s", kinds[k].name, ramps[i]);
            row.fault.name = name;
            row.fault.uneven = kinds[k].uneven;
            row.fault.ramp_s = ramps[i];
            fleet_row(&row, kinds[k].runs, o);
        }
    }
}

/* --- one host gets the heavy requests --- */

static void table_skew(const struct options *o)
{
    static const struct row rows[] = {
        {S05,
         {.name = "20 -> 60 %, by class", .bad = 1, .share = 1, .heavy = .6, .strata = true},
         10,
         10,
         "0 %"},
        {S05,
         {.name = "20 -> 60 %, by class", .bad = 1, .share = 1, .heavy = .6, .strata = true},
         4,
         10,
         "0 %"},
        {S05,
         {.name = "20 -> 60 %, by class", .bad = 1, .share = 1, .heavy = .6, .strata = true},
         10,
         50,
         "0 %"},
        {S05,
         {.name = "20 -> 60 %, one class for all", .bad = 1, .share = 1, .heavy = .6},
         10,
         10,
         "100 %"},
    };

    printf(
        "| share of heavy requests (x 10) at one host | hosts, rps | runs | it is suspected | it "
        "is ejected | the reference |\n|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cell *c = run_row(&rows[i], o, 40, 60);

        printf("| %s | %u, %.0f | %u | %.0f %% | %.0f %% | %s |\n", rows[i].fault.name,
               rows[i].hosts, rows[i].rate, c->out.runs, 100.0 * c->suspect.count / c->out.runs,
               100.0 * c->out.count / c->out.runs, rows[i].was);
        fflush(stdout);
        memory_give(c);
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*print)(const struct options *o);
    } tables[] = {{"nulls", table_nulls},       {"delays", table_delays},
                  {"minority", table_minority}, {"failures", table_failures},
                  {"fleet", table_fleet},       {"skew", table_skew}};
    struct options o = {.scale = argc > 2 ? atof(argv[2]) : 1,
                        .seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 1,
                        .only = argc > 4 ? argv[4] : ""};

    for (size_t i = 0; argc > 1 && i < sizeof(tables) / sizeof(tables[0]); i++) {
        if (strcmp(argv[1], tables[i].name) == 0) {
            tables[i].print(&o);
            return 0;
        }
    }
    fprintf(stderr,
            "bench_detectors nulls|delays|minority|failures|fleet|skew [SCALE [SEED [ROWS]]]\n");
    return 1;
}
