/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The faults that are switched on at a set of servers, and what they do to one request or one new
 * connection. Knows no sockets: it decides, lab/backend does.
 *
 * Faults of different kinds add up; where two of them end a request differently, the one set first
 * has its way.
 */
#ifndef LAB_BACKEND_FAULTS_H
#define LAB_BACKEND_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "base/units.h"

enum fault_kind {
    FAULT_DELAY,          /* |span| longer */
    FAULT_JITTER,         /* 0 to |span| longer, uniformly */
    FAULT_SLOW,           /* the service time |factor| times */
    FAULT_STATUS,         /* |status| is the answer */
    FAULT_REFUSE,         /* the port is closed */
    FAULT_ACCEPT_RESET,   /* connections are reset once accepted */
    FAULT_HANG,           /* never an answer */
    FAULT_RESET_MID_BODY, /* head and half of the body, then a reset */
    FAULT_STOP_READING,   /* nothing is read after the request's head, nothing is answered */
    FAULT_DRIP,           /* the answer's body |bytes| at a time, each |span| */
    FAULT_STALL_EVERY,    /* each |span| all work stands still for |stall|: a collector's pause */
    FAULT_HEAVY, /* no fault: the request is one for |bytes|, and |factor| times the work */
    FAULT_KIND_COUNT
};

#define FAULTS_MAX       64
#define FAULT_PATH_MAX   255
#define FAULT_ALL        UINT32_MAX
#define FAULT_FACTOR_MAX 1e6

struct fault {
    enum fault_kind kind;
    uint32_t server; /* FAULT_ALL, or its index */
    double probability;
    char path[FAULT_PATH_MAX + 1]; /* what the request's path begins with; "": any */
    span_ns span;
    span_ns stall;
    double factor;
    uint32_t status;
    uint32_t bytes;
    uint64_t after; /* so many matching ones are let by first */
    span_ns lasts;  /* from when it is set, or from the first one after |after|; 0: until cleared */

    /* kept by the set */
    uint64_t id;
    mono_ns since;
    mono_ns until;
    uint64_t matched;
    uint64_t struck;
};

struct fault_set {
    struct fault faults[FAULTS_MAX];
    uint32_t count;
    uint64_t last_id;
};

/* What becomes of one request. */
enum plan_ending { PLAN_ANSWER, PLAN_STATUS, PLAN_HANG, PLAN_RESET_MID_BODY, PLAN_STOP_READING };

struct request_plan {
    enum plan_ending ending;
    uint32_t status; /* PLAN_STATUS */
    uint64_t fault;  /* the id of the one behind the ending */
    mono_ns until;   /* when that one is over, as known now */
    span_ns extra;
    double factor;
    span_ns drip; /* 0: none */
    uint32_t drip_bytes;
    uint32_t heavy_bytes; /* of the answer's body; 0: it is none */
    mono_ns stall_since;
    span_ns stall_period; /* 0: none */
    span_ns stall;
};

void fault_set_init(struct fault_set *s);

/* The fault as it is kept now, with its id; NULL: FAULTS_MAX are set already. */
const struct fault *fault_set_add(struct fault_set *s, const struct fault *f, mono_ns now);

/* |id| 0: all. How many were cleared. */
uint32_t fault_set_clear(struct fault_set *s, uint64_t id);

bool fault_set_has(const struct fault_set *s, uint64_t id);

/* Forgets what is over. True where something was. */
bool fault_set_expire(struct fault_set *s, mono_ns now);

/* When something will be over; MONO_NEVER: nothing, as far as is known. */
mono_ns fault_set_next(const struct fault_set *s);

/* A request for |path| came to |server|: counts, throws the dice, and says what happens. */
void fault_set_plan(struct fault_set *s, uint32_t server, struct bytes path, struct rng *rng,
                    mono_ns now, struct request_plan *out);

/* A connection was accepted by |server|: true where it is to be reset. */
bool fault_set_resets(struct fault_set *s, uint32_t server, struct rng *rng, mono_ns now);

/* Whether |server| refuses connections at |now|. */
bool fault_set_refuses(const struct fault_set *s, uint32_t server, mono_ns now);

/* When work that takes |service| and begins at |start| is done under |p|. */
mono_ns request_plan_end(const struct request_plan *p, mono_ns start, span_ns service);

#endif
