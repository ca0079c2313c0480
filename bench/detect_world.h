/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Synthetic traffic for the judge that ships: hosts with latencies of a shape, one of which, or
 * some, or all, go bad. Nothing acts on a verdict (open loop). For bench/detectors.c and the test
 * that holds its numbers to wide bounds.
 */
#ifndef BENCH_DETECT_WORLD_H
#define BENCH_DETECT_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"
#include "base/units.h"
#include "policy/detect.h"
#include "policy/detect_verdict.h"

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
    double refusing; /* share of connects that are refused; each request has its own */
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
    bool fresh;
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
    uint64_t samples;
    uint32_t told[HOSTS_MAX]; /* requests sent since the fault that the judge knows of */
    uint32_t open_count;
    struct open_request *open;
};

/* Exits where there is no memory. */
struct run *run_new(uint32_t hosts, double rate);
void run_free(struct run *r);

/* After |load| and |fault| (NULL: none) are set; the fault is not on yet. */
void run_begin(struct run *r, uint64_t seed);
void run_end(struct run *r);

/* A twentieth of a second goes by. */
void run_step(struct run *r);

/* What is to be done about the host now; |line|: on which evidence. */
enum verdict_deed run_deed(const struct run *r, uint32_t host, enum detect_line *line);

#endif
