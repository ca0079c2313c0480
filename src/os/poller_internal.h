/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the files that make up the poller: what it watches, and how that comes and goes.
 *
 * Events carry a pointer to a |source|. A source that is closed has no |happened| any more and
 * rests in the graveyard until the end of the next dispatch, so an event collected before it was
 * closed finds a dead source, never a freed or a reused one. Its descriptor is taken out of the
 * epoll set before it is closed: a child between fork and exec may hold the same open socket, and
 * the set would go on reporting it.
 */
#ifndef OS_POLLER_INTERNAL_H
#define OS_POLLER_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <sys/epoll.h>

#include "base/list.h"
#include "base/slab.h"
#include "io/poller.h"

#define OS_EVENTS_MAX 512 /* collected in one wait */

struct os_poller;
struct source;

struct source_ops {
    /* |events| as epoll gave them; 0: its turn has come after source_soon. */
    void (*happened)(struct source *s, uint32_t events);
    void (*end)(struct source *s);    /* closes it, with what it owns, when the poller is freed */
    void (*forget)(struct source *s); /* frees it, once it is dead */
};

struct source {
    const struct source_ops *ops;
    struct os_poller *poller;
    struct list queue; /* ready, or dead, or on neither */
    struct list all;
    int fd; /* -1: none */
    bool dead;
};

/* Whether the loop must be woken by a write, or will look by itself. */
enum os_sleep { OS_AWAKE, OS_ASLEEP, OS_NOTIFIED };

struct os_poller {
    struct poller base;
    int epoll_fd;
    int wake_fd;
    struct list all;       /* every living source */
    struct list ready;     /* have something to do without a new event */
    struct list graveyard; /* dead; freed at the end of dispatch */
    struct slab links;
    uint64_t allocations; /* for links */
    uint8_t *loan;        /* LINK_LOAN_MAX bytes that |received| lends */
    int collected;
    bool dispatching;
    bool coarse;                   /* no epoll_pwait2 here: milliseconds, rounded up */
    _Alignas(64) atomic_int sleep; /* enum os_sleep; the only thing other threads touch */
    _Alignas(64) struct epoll_event events[OS_EVENTS_MAX];
};

static inline struct os_poller *os_poller_of(struct poller *p)
{
    return CONTAINER_OF(p, struct os_poller, base);
}

/* Into the epoll set with |events|. IO_OK or an io_error; then the descriptor is still the
 * caller's. */
int source_open(struct source *s, struct os_poller *p, int fd, uint32_t events);

/* A source without a descriptor. */
void source_open_bare(struct source *s, struct os_poller *p);

/* Changes what it is watched for. */
void source_watch(struct source *s, uint32_t events);

/* |happened| with no events in the next dispatch, which will not wait long for it. */
void source_soon(struct source *s);

/* Ends all events. Its descriptor is taken out of the set; the caller closes it, after. */
void source_bury(struct source *s);

/* os/epoll_link.c: for a socket that was accepted. NULL: no memory; the socket is still the
 * caller's. */
struct link *os_link_adopt(struct os_poller *p, int fd);
int os_connect(struct poller *p, const struct address *to, const struct connect_options *o,
               struct link **out);
size_t os_link_size(void);

/* os/epoll_listener.c */
int os_listen(struct poller *p, const struct address *at, const struct listen_options *o,
              struct listener **out);

#endif
