/* SPDX-License-Identifier: Apache-2.0 */
#include "os/poller.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <sys/eventfd.h>

#include "io/error.h"
#include "os/error.h"
#include "os/poller_internal.h"

#define LINKS_KEPT 16384 /* closed links kept for reuse: 2 MiB at most */

static void source_set(struct source *s, struct os_poller *p, int fd)
{
    s->poller = p;
    s->fd = fd;
    s->dead = false;
    list_init(&s->queue);
    list_push_back(&p->all, &s->all);
}

int source_open(struct source *s, struct os_poller *p, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = s};

    if (epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
        return errno == ENOSPC ? IO_NO_MEMORY : os_error(errno); /* ENOSPC: too many watches */
    source_set(s, p, fd);
    return IO_OK;
}

void source_open_bare(struct source *s, struct os_poller *p)
{
    source_set(s, p, -1);
}

void source_watch(struct source *s, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = s};
    int result = epoll_ctl(s->poller->epoll_fd, EPOLL_CTL_MOD, s->fd, &event);

    assert(result == 0); /* it is in the set, and changing takes no memory */
    (void)result;
}

void source_soon(struct source *s)
{
    if (s->dead)
        return;
    list_remove(&s->queue);
    list_push_back(&s->poller->ready, &s->queue);
}

void source_bury(struct source *s)
{
    assert(!s->dead);
    if (s->fd >= 0)
        (void)epoll_ctl(s->poller->epoll_fd, EPOLL_CTL_DEL, s->fd, NULL);
    s->dead = true;
    list_remove(&s->all);
    list_remove(&s->queue);
    list_push_back(&s->poller->graveyard, &s->queue);
}

static void bury_all(struct os_poller *p)
{
    struct list *l;

    while ((l = list_pop_front(&p->graveyard)) != NULL) {
        struct source *s = CONTAINER_OF(l, struct source, queue);

        s->ops->forget(s);
    }
}

static int wait_coarse(struct os_poller *p, const struct timespec *length)
{
    int64_t ms = -1;

    if (length != NULL) /* up: waking early would spin until the timer is due */
        ms = (int64_t)length->tv_sec * 1000 + (length->tv_nsec + 999999) / 1000000;
    if (ms > INT32_MAX)
        ms = INT32_MAX;
    return epoll_wait(p->epoll_fd, p->events, OS_EVENTS_MAX, (int)ms);
}

static int wait_fine(struct os_poller *p, const struct timespec *length)
{
    if (!p->coarse) {
        int n = epoll_pwait2(p->epoll_fd, p->events, OS_EVENTS_MAX, length, NULL);

        /* Sandboxes that do not know the call answer either. */
        if (n >= 0 || (errno != ENOSYS && errno != EPERM))
            return n;
        p->coarse = true;
    }
    return wait_coarse(p, length);
}

static const struct timespec *as_timespec(span_ns length, struct timespec *out)
{
    if (length == MONO_NEVER)
        return NULL;
    *out = (struct timespec){.tv_sec = (time_t)(length / NS_PER_S),
                             .tv_nsec = (long)(length % NS_PER_S)};
    return out;
}

/*
 * Sleeping is announced before it begins: who wakes a loop that is awake writes nothing, because
 * the loop looks at |sleep| before it sleeps; who finds it asleep writes to the eventfd. The
 * exchange makes what the waker wrote before visible here.
 */
static void os_wait(struct poller *base, span_ns most)
{
    struct os_poller *p = os_poller_of(base);
    struct timespec length = {0, 0};
    const struct timespec *sleep = &length;
    int awake = OS_AWAKE;

    if (p->collected > 0)
        return; /* edges not told yet: collecting again would lose them */
    if (list_empty(&p->ready) && atomic_compare_exchange_strong(&p->sleep, &awake, OS_ASLEEP))
        sleep = as_timespec(most, &length);
    p->collected = wait_fine(p, sleep);
    if (p->collected < 0)
        p->collected = 0; /* EINTR: a turn in which nothing happened */
    atomic_exchange(&p->sleep, OS_AWAKE);
}

static void os_wake(struct poller *base)
{
    struct os_poller *p = os_poller_of(base);
    uint64_t one = 1;

    /* Edge-triggered, so nobody needs to read it back; it would take 2^64 wakes to fill it. */
    if (atomic_exchange(&p->sleep, OS_NOTIFIED) == OS_ASLEEP) {
        ssize_t n = write(p->wake_fd, &one, sizeof(one));

        (void)n;
    }
}

/* What is ready now; what becomes ready meanwhile has its turn in the next dispatch. */
static void take_ready(struct os_poller *p, struct list *batch)
{
    list_init(batch);
    if (list_empty(&p->ready))
        return;
    list_insert_before(&p->ready, batch);
    list_remove(&p->ready);
}

static void os_dispatch(struct poller *base)
{
    struct os_poller *p = os_poller_of(base);
    struct list batch;
    struct list *l;

    assert(!p->dispatching); /* an owner must not turn the loop from inside a callback */
    p->dispatching = true;
    take_ready(p, &batch);
    for (int i = 0; i < p->collected; i++) {
        struct source *s = p->events[i].data.ptr;

        if (s != NULL && !s->dead) /* NULL: the eventfd */
            s->ops->happened(s, p->events[i].events);
    }
    p->collected = 0;
    while ((l = list_pop_front(&batch)) != NULL) {
        struct source *s = CONTAINER_OF(l, struct source, queue);

        s->ops->happened(s, 0);
    }
    bury_all(p);
    p->dispatching = false;
}

static const struct poller_ops ops = {
    .wait = os_wait,
    .dispatch = os_dispatch,
    .connect = os_connect,
    .listen = os_listen,
    .wake = os_wake,
};

static int open_descriptors(struct os_poller *p)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.ptr = NULL};

    p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (p->epoll_fd < 0)
        return os_error(errno);
    p->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (p->wake_fd < 0)
        return os_error(errno);
    if (epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, p->wake_fd, &event) != 0)
        return os_error(errno);
    return IO_OK;
}

int os_poller_create(struct poller **out)
{
    struct os_poller *p = aligned_alloc(64, sizeof(*p));
    int err;

    if (p == NULL)
        return IO_NO_MEMORY;
    *p = (struct os_poller){.base.ops = &ops, .epoll_fd = -1, .wake_fd = -1};
    atomic_init(&p->sleep, OS_AWAKE);
    list_init(&p->all);
    list_init(&p->ready);
    list_init(&p->graveyard);
    slab_init(&p->links, os_link_size(), LINKS_KEPT);
    p->links.grown = &p->allocations;
    p->loan = malloc(LINK_LOAN_MAX);
    err = p->loan == NULL ? IO_NO_MEMORY : open_descriptors(p);
    if (err == IO_OK)
        *out = &p->base;
    else
        os_poller_free(&p->base);
    return err;
}

static void close_rest(struct os_poller *p)
{
    while (!list_empty(&p->all)) {
        struct source *s = CONTAINER_OF(p->all.next, struct source, all);

        s->ops->end(s);
    }
}

void os_poller_free(struct poller *base)
{
    struct os_poller *p;

    if (base == NULL)
        return;
    p = os_poller_of(base);
    close_rest(p);
    bury_all(p);
    if (p->epoll_fd >= 0)
        close(p->epoll_fd);
    if (p->wake_fd >= 0)
        close(p->wake_fd);
    slab_release(&p->links);
    free(p->loan);
    free(p);
}

void os_poller_sizes(struct poller *base, struct os_poller_sizes *out)
{
    struct os_poller *p = os_poller_of(base);

    *out = (struct os_poller_sizes){
        .link = os_link_size(),
        .poller = sizeof(*p) + LINK_LOAN_MAX,
        .links = p->links.in_use,
        .allocations = p->allocations,
    };
}
