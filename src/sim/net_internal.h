/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the network share; nobody else includes it. */
#ifndef SIM_NET_INTERNAL_H
#define SIM_NET_INTERNAL_H

#include "sim/net.h"

#define SEGMENTS_MAX 32

#define NET_RECEIVE_MAX LINK_LOAN_MAX

enum segment_kind { SEGMENT_DATA, SEGMENT_FIN, SEGMENT_RST };

/* Something under way: for data, all bytes up to |end| of the stream. */
struct segment {
    enum segment_kind kind;
    mono_ns at;
    uint64_t end;
};

/* One direction. |sent| - |taken| bytes are held, at |data| + |head|. */
struct wire {
    struct world_event arrival;
    struct world_event ack; /* room is seen by the sender */
    uint8_t *data;
    uint32_t room;
    uint32_t head;
    uint64_t sent;    /* taken from the sender's owner */
    uint64_t arrived; /* at the receiver's kernel */
    uint64_t taken;   /* told to the receiver's owner */
    mono_ns last_at;  /* nothing arrives before */
    span_ns rto;      /* next wait while nothing comes through */
    span_ns stuck;    /* for how long nothing has */
    uint32_t lost;
    uint32_t first; /* of the ring */
    uint32_t count;
    struct segment ring[SEGMENTS_MAX];
    bool fin_arrived;
    bool dead; /* nothing arrives any more */
};

enum end_state { END_NONE, END_CONNECTING, END_OPEN, END_FAILED, END_GONE };

/* One end: the link, and the wire that leads away from it. */
struct end {
    struct link link; /* first */
    struct conn *conn;
    struct sim_poller *poller; /* NULL: not accepted yet */
    struct list ready;         /* of its poller, or of the backlog */
    struct wire out;
    enum end_state state;
    int error; /* to be told, or told */
    bool reading;
    bool shut;
    bool opened_due;
    bool wants_room;
    bool writable_due;
    bool ended_told;
};

enum handshake { SYN_UNDER_WAY, SYN_ACKED, SYN_REFUSED, HANDSHAKE_OVER };

struct conn {
    struct list link; /* of the net */
    struct net *net;
    struct net_site *site;
    struct net_process *dialer;
    uint64_t number;
    struct world_event step;
    enum handshake handshake;
    int refusal; /* SYN_REFUSED: why */
    uint32_t syns;
    struct address from;
    struct end ends[2]; /* the one that dialled, the one that was dialled */
    uint32_t busy;      /* calls to its owners under way: not to be freed */
};

struct sim_listener {
    struct listener base; /* first */
    struct sim_poller *poller;
    struct net_site *site;
    struct list link;    /* of the site */
    struct list ready;   /* of the poller */
    struct list backlog; /* ends */
    uint32_t queued;
    uint32_t backlog_max;
    bool paused;
    bool closed;
    uint32_t busy;
};

/* --- net.c --- */
void net_ready(struct end *e);
void net_listener_ready(struct sim_listener *l);
void net_note(struct net *n, uint32_t what, uint64_t which, uint64_t value);

/* --- net_link.c --- */
extern const struct link_ops net_link_ops;
struct conn *conn_make(struct net *n, struct net_site *site);
void conn_tidy(struct conn *c); /* frees it when nothing holds it any more */
void conn_forget(struct conn *c);
void end_tell(struct end *e);
void end_fail(struct end *e, int error);
void end_leave(struct end *e, struct net_process *process);
void wire_send(struct end *from, enum segment_kind kind);

static inline struct end *end_peer(struct end *e)
{
    return e == &e->conn->ends[0] ? &e->conn->ends[1] : &e->conn->ends[0];
}

/* --- net_connect.c --- */
int net_connect(struct poller *p, const struct address *to, const struct connect_options *o,
                struct link **out);
int net_listen(struct poller *p, const struct address *at, const struct listen_options *o,
               struct listener **out);
void listener_tell(struct sim_listener *l);

#endif
