/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP/1.1 server of the simulator: answers as the request's path wishes, after a service time,
 * in whatever mood it is set to. It remembers when it last gave cause for blame, so that the laws
 * know the truth.
 */
#ifndef SIM_SERVER_H
#define SIM_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slab.h"
#include "base/slots.h"
#include "sim/actor.h"
#include "sim/ledger.h"
#include "sim/pace.h"
#include "sim/payload.h"

struct message_head;
struct server;

enum answer_break {
    BREAK_NONE,
    BREAK_BEFORE_HEAD,
    BREAK_IN_HEAD,
    BREAK_IN_BODY /* after |break_at| bytes of it */
};

/* How one request will be answered. */
struct answer_plan {
    span_ns delay; /* from the whole request (early: its head) to the answer; MONO_NEVER: never */
    uint32_t status;
    uint32_t interims; /* 103s before it */
    enum framing framing;
    uint64_t length;
    uint64_t key; /* of the body's bytes */
    enum answer_break broken;
    uint64_t break_at;
    bool break_softly;   /* by FIN rather than RST */
    bool early;          /* does not wait for the request's body */
    bool says_close;     /* "connection: close", and closes */
    bool closes;         /* closes after it without having said so */
    bool stops_reading;  /* leaves the request's body unread */
    uint32_t drip_piece; /* body bytes at a time, each |drip_gap|; 0: all at once */
    span_ns drip_gap;
};

/* For tests: changes |plan|, which was made as the path wishes and the mood says. */
typedef void (*server_decide)(struct server *s, const struct wish *wish,
                              const struct message_head *head, struct answer_plan *plan);

/* What it does to requests; permilles are drawn for each. May be changed at any time. */
struct server_mood {
    span_ns service; /* usual time of work; how it spreads, and its faults: |pace| */
    struct pace pace;
    uint32_t error_permille;
    uint32_t error_status;
    uint32_t hang_permille;
    uint32_t reset_permille; /* at a random place, before or in the answer */
    uint32_t cut_permille;   /* in the answer's body, as far as it has one */
    uint32_t soft_permille;  /* of these: FIN rather than RST */
    uint32_t drip_permille;
    uint32_t early_permille;
    uint32_t interim_permille;
    uint32_t says_close_permille;
    uint32_t closes_permille;
    bool accept_reset;  /* resets each new connection */
    span_ns idle_close; /* closes a connection without a request after; MONO_NEVER: never */
};

/* Plants a fault of the world's own, to show that a law catches it. */
enum server_plant {
    SERVER_PLANT_NONE,
    SERVER_PLANT_SECRET, /* answers 503, and the laws are not told that it is to blame */
    SERVER_PLANT_SHORT,  /* answers a byte less than was wished, as if that were all */
    SERVER_PLANT_TWICE,  /* answers a second time when the next request is there already */
    SERVER_PLANT_ECHO    /* each request counts as if it had come twice */
};

/* What it says of its load is of so many of its latest requests, none older than that. */
#define SERVER_LOAD_OF   100
#define SERVER_LOAD_SPAN (2 * NS_PER_S)

struct server {
    struct net *net;
    struct actor_loop *loop;
    struct ledger *ledger;
    uint32_t index;
    struct address address;
    struct net_site *site;
    struct listener *listener; /* NULL: does not listen */
    struct server_mood mood;
    struct server_mood usual_mood; /* what it recovers to */
    struct net_path usual_path;
    enum server_plant plant;
    server_decide decide; /* may be NULL */
    void *owner;
    struct slots slots; /* its workers and their queue; none, as it begins: no end of workers */
    double capacity;    /* requests a second: it says what share of it is used (ORCA); 0: it says
                           nothing */
    mono_ns came[SERVER_LOAD_OF];
    struct slab conn_slab;
    struct list conns;
    struct list orphans; /* requests that are still worked on, though nobody waits for the answer */
    uint32_t conn_count;
    span_ns patience; /* an answer that takes longer is cause for blame */
    bool troubled;    /* has a bad day: it, or the way to it, may be slower than others */
    mono_ns trouble_over;
    bool blamable;      /* has ever given cause, or was set to */
    mono_ns blame_at;   /* last time it gave cause */
    mono_ns good_at;    /* last time it sent a status below 500 */
    mono_ns down_since; /* nobody can connect to it; MONO_NEVER: somebody can */
    uint64_t accepted;
    uint64_t arrivals;
    uint64_t answered;
    uint64_t turned_away;  /* 503: no worker was free and the queue was full */
    uint64_t cut_requests; /* whose body never came whole */
};

/* Does not listen yet. False: no memory. */
bool server_init(struct server *s, struct actor_loop *loop, struct ledger *ledger, uint32_t index,
                 const struct address *address);
void server_release(struct server *s);

/* It cannot be blamed while this mood holds. */
extern const struct server_mood server_fine;

/* False: the address is taken, or no memory. */
bool server_listen(struct server *s);

/* New connections are refused; those there are go on. */
void server_refuse(struct server *s);

enum server_death {
    DEATH_OF_PROCESS, /* kill -9: the kernel closes all it had */
    DEATH_BY_RESET,   /* all connections are reset */
    DEATH_OF_POWER    /* without a word */
};

/* server_listen brings it back. */
void server_kill(struct server *s, enum server_death how);

/* It or the path to it did something it may be blamed for. */
void server_blame(struct server *s);

enum server_road { ROAD_OPEN, ROAD_BLACK_HOLE, ROAD_REFUSES, ROAD_UNREACHABLE };

/* The path to it changes; what is not open is cause for blame. */
void server_set_road(struct server *s, enum server_road road);

#endif
