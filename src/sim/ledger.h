/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The truth about each request of a run: what the client did and saw, how often its head came to a
 * server, what the proxy wrote down. Kept outside of the proxy, so that the laws can compare.
 */
#ifndef SIM_LEDGER_H
#define SIM_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/units.h"
#include "model/record.h"
#include "sim/world.h"

enum outcome {
    OUTCOME_PENDING,
    OUTCOME_ANSWERED,  /* a whole answer */
    OUTCOME_CUT,       /* an answer that visibly breaks off */
    OUTCOME_SILENCE,   /* the connection ended before any answer byte */
    OUTCOME_CANCELLED, /* by the client itself */
    OUTCOME_COUNT
};

#define NO_SERVER UINT32_MAX

struct fact {
    mono_ns begun;    /* its first byte was handed over */
    mono_ns complete; /* its last; MONO_NEVER: not */
    mono_ns ended;
    enum outcome outcome;
    uint64_t body;     /* bytes of the request's */
    uint64_t answer;   /* bytes of the answer's, as the server chose; UINT64_MAX: as was wished */
    uint32_t status;   /* the client saw; 0: none */
    uint32_t server;   /* that answered; NO_SERVER: the proxy itself */
    uint32_t arrivals; /* at servers */
    uint32_t records;
    uint32_t record_status;
    uint32_t record_flags;
    uint32_t record_attempts;
    bool idempotent;
    bool slow_reader; /* takes its time by design */
    bool excused;     /* its client cannot know whether the proxy ever saw it */
};

/* Ids count from 1. */
struct ledger {
    struct world *world;
    struct fact *at; /* [id - 1] */
    uint64_t count;
    uint64_t room;
    uint64_t settled; /* all ids up to this have ended */
    uint64_t outcomes[OUTCOME_COUNT];
    uint64_t statuses[6]; /* answered, by class; [0] unused */
    uint64_t from_servers;
};

void ledger_init(struct ledger *l, struct world *w);
void ledger_release(struct ledger *l);

/* A new request; 0: no memory. */
uint64_t ledger_open(struct ledger *l);

/* NULL: there is no such request (and a law is broken: somebody made it up). */
struct fact *ledger_fact(struct ledger *l, uint64_t id);

/* The client's part is over. A second end is a law broken. */
void ledger_end(struct ledger *l, uint64_t id, enum outcome outcome);

/* --- what the proxy writes down --- */

/* Plants a fault between the proxy and the ledger, to show that a law catches it. */
enum ledger_plant { LEDGER_PLANT_NONE, LEDGER_PLANT_TWICE, LEDGER_PLANT_LOST, LEDGER_PLANT_STATUS };

struct ledger_sink {
    struct record_sink base; /* first */
    struct ledger *ledger;
    enum ledger_plant plant;
    uint64_t plant_in; /* records until it strikes */
};

void ledger_sink_init(struct ledger_sink *s, struct ledger *l);

#endif
