/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One seeded run of the whole: a cluster, a crowd, bad days drawn from the seed, the laws watching.
 */
#ifndef SIM_SCENARIO_H
#define SIM_SCENARIO_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/crowd.h"
#include "sim/laws.h"
#include "sim/rig.h"

#define SCENARIO_LOG_LINES 8

/* A fault a test plants in the simulator's own parts, to see that a law catches it. */
struct scenario_plant {
    void (*tamper)(struct rig_settings *given); /* what the proxy is given, unknown to the laws */
    enum net_plant net;
    enum ledger_plant ledger;
    uint64_t after;           /* deliveries, or records */
    enum server_plant server; /* of the last host */
};

struct scenario_options {
    struct rig_settings settings; /* settings.seed is the run's */
    struct crowd_habits habits;
    uint32_t faulty_hosts; /* at most so many have bad days; the others are never to be blamed */
    span_ns calm;          /* mean time between two bad days */
    bool calm_only;        /* no bad days at all */
    bool drains_busy;      /* the proxy drains while the crowd still asks */
    struct scenario_plant plant;
};

struct scenario_result {
    bool good;
    char failure[WORLD_FAILURE_MAX];
    uint64_t digest;
    uint64_t requests;
    uint64_t outcomes[OUTCOME_COUNT];
    uint64_t statuses[6];
    uint64_t from_servers;
    uint64_t dropped;
    uint64_t ejections;
    uint64_t failovers;
    uint64_t resends;
    uint64_t events; /* of the world */
    uint64_t checks; /* of the laws */
    uint64_t bad_days;
    char log[SCENARIO_LOG_LINES][SIM_LOG_LINE]; /* the proxy's last, the newest first */
};

/* Ten hosts, one to four workers, and paths and habits that the seed chooses. */
void scenario_options_init(struct scenario_options *o, uint64_t seed);

/* |duration| of traffic, then quiet, drain, and the last checks. False: no memory. */
bool scenario_run(const struct scenario_options *o, span_ns duration, struct scenario_result *out);

#endif
