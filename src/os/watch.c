/* SPDX-License-Identifier: Apache-2.0 */
#include "os/watch.h"

#include <stdlib.h>

#include "io/error.h"
#include "os/poller_internal.h"

struct os_watch {
    struct source source;
    os_watch_event event;
    void *owner;
};

static uint32_t as_epoll(unsigned wanted)
{
    return ((wanted & OS_READABLE) ? (uint32_t)EPOLLIN : 0) |
           ((wanted & OS_WRITABLE) ? (uint32_t)EPOLLOUT : 0);
}

static void watch_happened(struct source *s, uint32_t events)
{
    struct os_watch *w = CONTAINER_OF(s, struct os_watch, source);
    unsigned ready = 0;

    if (events & (EPOLLIN | EPOLLERR | EPOLLHUP))
        ready |= OS_READABLE;
    if (events & (EPOLLOUT | EPOLLERR | EPOLLHUP))
        ready |= OS_WRITABLE;
    if (w->event != NULL)
        w->event(w->owner, s->fd, ready);
}

static void watch_free(struct source *s)
{
    free(CONTAINER_OF(s, struct os_watch, source));
}

static const struct source_ops ops = {
    .happened = watch_happened,
    .end = source_bury,
    .forget = watch_free,
};

int os_watch_add(struct poller *p, int fd, unsigned wanted, struct os_watch **out)
{
    struct os_watch *w = calloc(1, sizeof(*w));
    int error;

    if (w == NULL)
        return IO_NO_MEMORY;
    w->source.ops = &ops;
    error = source_open(&w->source, os_poller_of(p), fd, as_epoll(wanted));
    if (error != IO_OK) {
        free(w);
        return error;
    }
    *out = w;
    return IO_OK;
}

void os_watch_own(struct os_watch *w, os_watch_event event, void *owner)
{
    w->event = event;
    w->owner = owner;
}

void os_watch_change(struct os_watch *w, unsigned wanted)
{
    source_watch(&w->source, as_epoll(wanted));
}

void os_watch_soon(struct os_watch *w)
{
    source_soon(&w->source);
}

void os_watch_remove(struct os_watch *w)
{
    if (w != NULL)
        source_bury(&w->source);
}
