/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One loop's source of events, and the maker of its links and listeners. One thread uses it;
 * only poller_wake may be called from any thread.
 *
 * A turn:  poller_wait(p, most);  now = clock_read(c);  poller_dispatch(p);  timers at |now|.
 */
#ifndef IO_POLLER_H
#define IO_POLLER_H

#include <stdbool.h>

#include "base/address.h"
#include "base/units.h"
#include "io/link.h"

struct poller;
struct listener;

struct connect_options {
    bool keepalive; /* TCP keep-alive probes with the three values below; 0: the system's */
    uint32_t keepalive_idle_s;
    uint32_t keepalive_interval_s;
    uint32_t keepalive_probes;
};

/* A const table a kind of owner. */
struct listener_events {
    /* The link is the owner's: link_own it and read, or close it. |peer| is valid during the call.
     */
    void (*accepted)(void *owner, struct link *l, const struct address *peer);
    /*
     * Accepting failed with an io_error. For IO_NO_DESCRIPTORS and IO_NO_MEMORY the back end has
     * paused the listener; the owner resumes it (listener_resume) when it thinks there is room.
     */
    void (*troubled)(void *owner, int error);
};

struct listen_options {
    int backlog;       /* 0: the system's most */
    bool reuse_port;   /* SO_REUSEPORT: several pollers listen at one address */
    bool private_path; /* a unix socket is for this user only: mode 0600 */
};

struct listener_ops {
    void (*pause)(struct listener *l);
    void (*resume)(struct listener *l);
    void (*turn_away)(struct listener *l);
    /* As bound: the real port for port 0. A unix path is the listener's and goes with it. */
    void (*address)(struct listener *l, struct address *out);
    void (*close)(struct listener *l);
};

struct listener {
    const struct listener_ops *ops;
    const struct listener_events *events;
    void *owner;
};

struct poller_ops {
    /* Sleeps until something happened or poller_wake was called, |most| at most (MONO_NEVER). */
    void (*wait)(struct poller *p, span_ns most);
    /* Tells the owners what happened. */
    void (*dispatch)(struct poller *p);
    /*
     * Begins to connect. IO_OK and *out; what comes of it is told by |opened| or |failed|. A
     * negative io_error only where the trouble is ours: no descriptors, memory or local ports.
     */
    int (*connect)(struct poller *p, const struct address *to, const struct connect_options *o,
                   struct link **out);
    int (*listen)(struct poller *p, const struct address *at, const struct listen_options *o,
                  struct listener **out);
    void (*wake)(struct poller *p);
};

struct poller {
    const struct poller_ops *ops;
};

static inline void poller_wait(struct poller *p, span_ns most)
{
    p->ops->wait(p, most);
}

static inline void poller_dispatch(struct poller *p)
{
    p->ops->dispatch(p);
}

static inline int poller_connect(struct poller *p, const struct address *to,
                                 const struct connect_options *o, struct link **out)
{
    return p->ops->connect(p, to, o, out);
}

/* The listener starts accepting at once; set its events with listener_own before the next dispatch.
 */
static inline int poller_listen(struct poller *p, const struct address *at,
                                const struct listen_options *o, struct listener **out)
{
    return p->ops->listen(p, at, o, out);
}

static inline void poller_wake(struct poller *p)
{
    p->ops->wake(p);
}

static inline void listener_own(struct listener *l, const struct listener_events *events,
                                void *owner)
{
    l->events = events;
    l->owner = owner;
}

/* Stops accepting; connections wait in the kernel's queue. */
static inline void listener_pause(struct listener *l)
{
    l->ops->pause(l);
}

static inline void listener_resume(struct listener *l)
{
    l->ops->resume(l);
}

/*
 * From now on new connections go to whoever else listens at the address, where there is one, and
 * are else kept waiting; those in the queue and those whose handshake is under way still come. For
 * some time before listener_close, which resets what is in the queue.
 */
static inline void listener_turn_away(struct listener *l)
{
    l->ops->turn_away(l);
}

static inline void listener_address(struct listener *l, struct address *out)
{
    l->ops->address(l, out);
}

static inline void listener_close(struct listener *l)
{
    l->ops->close(l);
}

#endif
