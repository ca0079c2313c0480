/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of the simulated network: a world with two loops, and peers that note what they are
 * told. */
#ifndef TESTS_SIM_PEERS_H
#define TESTS_SIM_PEERS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "sim/actor.h"

#define PEER_BYTES 65536

struct peer {
    struct link *link; /* NULL: none, or closed */
    bool close_on_data;
    bool closed_under_way;
    unsigned opened, ended, writable, failed, calls_after_close;
    int error;
    struct bytes lent; /* the last loan, to see that it is over */
    size_t len;
    uint8_t got[PEER_BYTES];
};

static inline void peer_note_call(struct peer *p)
{
    if (p->link == NULL)
        p->calls_after_close++;
}

static inline void peer_opened(void *owner)
{
    struct peer *p = owner;

    peer_note_call(p);
    p->opened++;
}

static inline void peer_received(void *owner, struct bytes data)
{
    struct peer *p = owner;

    peer_note_call(p);
    if (p->len + data.len <= PEER_BYTES)
        memcpy(p->got + p->len, data.data, data.len);
    p->len += data.len;
    p->lent = data;
    if (p->close_on_data && p->link != NULL) {
        link_close(p->link);
        p->link = NULL;
    }
}

static inline void peer_ended(void *owner)
{
    struct peer *p = owner;

    peer_note_call(p);
    p->ended++;
}

static inline void peer_writable(void *owner)
{
    struct peer *p = owner;

    peer_note_call(p);
    p->writable++;
}

static inline void peer_failed(void *owner, int error)
{
    struct peer *p = owner;

    peer_note_call(p);
    p->failed++;
    p->error = error;
}

static const struct link_events peer_events = {
    .opened = peer_opened,
    .received = peer_received,
    .ended = peer_ended,
    .writable = peer_writable,
    .failed = peer_failed,
};

/* A network with one address, somebody who listens there, somebody who connects. */
struct ground {
    struct world world;
    struct net net;
    struct actor_loop near_loop; /* connects */
    struct actor_loop far_loop;  /* listens */
    struct address address;
    struct net_site *site;
    struct listener *listener;
    struct peer a; /* the one that connects */
    struct peer b; /* the one last accepted */
    unsigned accepted, troubled;
    int trouble;
};

static inline void ground_accepted(void *owner, struct link *l, const struct address *from)
{
    struct ground *g = owner;
    (void)from;

    g->accepted++;
    g->b.link = l;
    link_own(l, &peer_events, &g->b);
    link_read_start(l);
}

static inline void ground_troubled(void *owner, int error)
{
    struct ground *g = owner;

    g->troubled++;
    g->trouble = error;
}

static const struct listener_events ground_listens = {.accepted = ground_accepted,
                                                      .troubled = ground_troubled};

static inline void ground_start(struct ground *g, uint64_t seed)
{
    memset(g, 0, sizeof(*g));
    world_init(&g->world, seed);
    (void)net_init(&g->net, &g->world);
    actor_loop_init(&g->near_loop, &g->net);
    actor_loop_init(&g->far_loop, &g->net);
    (void)address_parse(BYTES("10.0.0.1:80"), &g->address);
    g->site = net_site(&g->net, &g->address);
}

static inline int ground_listen(struct ground *g, int backlog)
{
    const struct listen_options o = {.backlog = backlog};
    int result = poller_listen(actor_poller(&g->far_loop), &g->address, &o, &g->listener);

    if (result == IO_OK)
        listener_own(g->listener, &ground_listens, g);
    return result;
}

static inline int ground_dial(struct ground *g, struct peer *p)
{
    const struct connect_options o = {.keepalive = false};
    int result = poller_connect(actor_poller(&g->near_loop), &g->address, &o, &p->link);

    if (result == IO_OK) {
        link_own(p->link, &peer_events, p);
        link_read_start(p->link);
    }
    return result;
}

/* Both ends are open. */
static inline void ground_join(struct ground *g)
{
    (void)ground_listen(g, 0);
    (void)ground_dial(g, &g->a);
    world_run_for(&g->world, NS_PER_S);
}

static inline ptrdiff_t peer_write(struct peer *p, struct bytes data)
{
    return link_write(p->link, &data, 1);
}

static inline void peer_close(struct peer *p)
{
    if (p->link != NULL)
        link_close(p->link);
    p->link = NULL;
}

static inline void ground_stop(struct ground *g)
{
    peer_close(&g->a);
    peer_close(&g->b);
    if (g->listener != NULL)
        listener_close(g->listener);
    actor_loop_release(&g->near_loop);
    actor_loop_release(&g->far_loop);
    net_release(&g->net);
    world_release(&g->world);
}

#endif
