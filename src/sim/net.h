/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small network in virtual time, behind io/poller.h and io/link.h. It behaves as Linux does where
 * it matters: a SYN that is lost is sent again after 1, 3, 7 ... s; data that came before a RST is
 * still read; closing with unread data sends a RST, not a FIN; a full backlog drops the SYN; what
 * was sent into a black hole arrives if it opens in time.
 *
 * Parts: a |net_site| is an address and the path to it; a |net_process| owns descriptors; a
 * |sim_poller| belongs to one loop of a process.
 */
#ifndef SIM_NET_H
#define SIM_NET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"
#include "base/list.h"
#include "base/slab.h"
#include "io/error.h"
#include "io/poller.h"
#include "sim/world.h"

#define NET_LIMITLESS UINT32_MAX

/* How received bytes are cut up. */
enum net_cut {
    NET_CUT_WHOLE, /* all that is there */
    NET_CUT_SOME,  /* random lengths */
    NET_CUT_BYTES  /* one by one */
};

/* The conditions on the path to one address, both ways; may be changed at any time. */
struct net_path {
    span_ns latency;    /* one way */
    span_ns jitter;     /* added, 0 .. jitter; order is kept */
    uint64_t bandwidth; /* bytes a second, each way; 0: endless */
    uint32_t window;    /* bytes under way or unread, each way; at least 1 */
    enum net_cut cut;
    uint32_t short_write_permille; /* of writes that take less than there is room for */
    uint32_t loss_permille;        /* of segments that arrive one retransmission late */
    bool black_hole;               /* nothing arrives, neither way */
    bool refuse;                   /* SYN is answered by RST, as if nobody listened */
    bool unreachable;              /* SYN is answered by ICMP */
    uint64_t reset_after; /* bytes of one direction after which a middle box resets; 0: never */
};

struct net_site {
    struct list link; /* of the net */
    struct net *net;
    struct address address;
    struct net_path path;
    struct list listeners;
    uint32_t open; /* connections made to it that are not yet gone at its end */
    uint64_t connects;
};

struct net_process {
    uint32_t descriptors; /* in use */
    uint32_t descriptors_max;
    uint32_t outgoing; /* connections it made that it has not closed; a local port each */
    uint32_t ports_max;
    int connect_fault; /* every connect fails with it at once; IO_OK: none */
    int accept_fault;  /* the same for accepting */
    uint64_t received; /* bytes told to its links' owners */
    uint64_t taken;    /* bytes taken from them */
};

/* Plants a fault of the world's own, to show that a law catches it. */
enum net_plant {
    NET_PLANT_NONE,
    NET_PLANT_FLIP_BYTE,
    NET_PLANT_LOSE_BYTES,
    NET_PLANT_REPEAT_BYTES
};

struct net {
    struct world *world;
    struct list sites;
    struct list conns;
    struct slab conn_slab;
    uint64_t conn_count; /* made so far */
    uint32_t alive;      /* not yet forgotten */
    uint16_t next_port;
    enum net_plant plant;
    uint64_t plant_in; /* deliveries until it strikes */
    uint8_t *scratch;  /* what received bytes are lent from; poisoned after each call */
};

/* False: no memory. */
bool net_init(struct net *n, struct world *w);

/* All pollers are freed before; what is still open is forgotten. */
void net_release(struct net *n);

/* The path to |at|, made on first use with these conditions: 200 us, no jitter, 64 KiB. NULL: no
 * memory. */
struct net_site *net_site(struct net *n, const struct address *at);

void net_process_init(struct net_process *p);

/* Something that is to come out of a poller's dispatch and is no link's: a resolver's answer. */
struct sim_call {
    struct list link; /* list_init it once */
    void (*call)(struct sim_call *c);
};

/* One loop's. */
struct sim_poller {
    struct poller base;
    struct net *net;
    struct net_process *process;
    struct world_loop *loop;
    struct list ready; /* ends with something to tell */
    struct list ready_listeners;
    struct list calls;
};

void sim_poller_init(struct sim_poller *p, struct net *n, struct net_process *process,
                     struct world_loop *loop);

/* |c| is called in the next dispatch. Harmless where it already waits. */
void sim_poller_call(struct sim_poller *p, struct sim_call *c);

/* The number of the link's connection, the same at both ends. */
uint64_t net_link_number(const struct link *l);

/* Gone without a word, as when the power fails: the peer learns it when it next sends. */
void net_vanish(struct link *l);

#endif
