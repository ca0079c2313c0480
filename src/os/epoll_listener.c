/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A listener, level-triggered: what is left in the kernel's queue after one batch is reported again
 * in the next turn.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/socket.h>
#include <sys/stat.h>

#include "io/error.h"
#include "os/error.h"
#include "os/poller_internal.h"
#include "os/sockets.h"

#define ACCEPTS_A_TURN 64 /* a burst of connects must not starve those that are open */

struct os_listener {
    struct listener base;
    struct source source;
    struct address at; /* |path| is |path| below */
    bool paused;
    dev_t device; /* the unix socket's, so that a successor's is not removed */
    ino_t inode;
    char path[]; /* empty for TCP */
};

static struct os_listener *listener_of(struct listener *l)
{
    return CONTAINER_OF(l, struct os_listener, base);
}

static void os_listener_pause(struct listener *base)
{
    struct os_listener *l = listener_of(base);

    if (l->paused)
        return;
    l->paused = true;
    source_watch(&l->source, 0);
}

static void os_listener_resume(struct listener *base)
{
    struct os_listener *l = listener_of(base);

    if (!l->paused)
        return;
    l->paused = false;
    source_watch(&l->source, EPOLLIN);
}

/* Only our own: after a restart the path may already be the successor's. */
static void remove_path(const struct os_listener *l)
{
    struct stat about;

    if (l->path[0] == '\0' || lstat(l->path, &about) != 0)
        return;
    if (about.st_dev == l->device && about.st_ino == l->inode)
        (void)unlink(l->path);
}

static void os_listener_turn_away(struct listener *base)
{
    const struct os_listener *l = listener_of(base);

    if (l->at.kind != ADDRESS_UNIX)
        socket_turn_away(l->source.fd);
    else
        remove_path(l);
}

static void os_listener_address(struct listener *base, struct address *out)
{
    *out = listener_of(base)->at;
}

static void trouble(struct os_listener *l, int error)
{
    os_listener_pause(&l->base); /* level-triggered: it would be told again at once, for ever */
    l->base.events->troubled(l->base.owner, error);
}

/* Errors of one connection that died in the queue, or of its network (accept(2)). */
static bool is_of_the_peer(int number)
{
    switch (number) {
    case EINTR:
    case ECONNABORTED:
    case EPROTO:
    case EPERM:
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case EOPNOTSUPP:
    case ENETUNREACH:
    case ETIMEDOUT:
        return true;
    }
    return false;
}

/* True: try for another. */
static bool accept_once(struct os_listener *l)
{
    union socket_name name;
    socklen_t len = sizeof(name);
    struct address peer;
    struct link *link;
    int fd = accept4(l->source.fd, &name.any, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd < 0 && is_of_the_peer(errno))
        return true;
    if (fd < 0) {
        if (errno != EAGAIN)
            trouble(l, os_error(errno));
        return false;
    }
    link = os_link_adopt(l->source.poller, fd);
    if (link == NULL) {
        close(fd);
        trouble(l, IO_NO_MEMORY);
        return false;
    }
    socket_name_to(&name, &peer);
    l->base.events->accepted(l->base.owner, link, &peer);
    return !l->source.dead && !l->paused;
}

static void listener_happened(struct source *s, uint32_t events)
{
    struct os_listener *l = CONTAINER_OF(s, struct os_listener, source);
    unsigned n = 0;

    (void)events;
    if (l->paused || l->base.events == NULL)
        return;
    while (n < ACCEPTS_A_TURN && accept_once(l))
        n++;
}

static void os_listener_close(struct listener *base)
{
    struct os_listener *l = listener_of(base);
    int fd = l->source.fd;

    source_bury(&l->source);
    remove_path(l);
    close(fd);
}

static void listener_end(struct source *s)
{
    os_listener_close(&CONTAINER_OF(s, struct os_listener, source)->base);
}

static void listener_free(struct source *s)
{
    free(CONTAINER_OF(s, struct os_listener, source));
}

static const struct source_ops source_ops = {
    .happened = listener_happened,
    .end = listener_end,
    .forget = listener_free,
};

static const struct listener_ops listener_ops = {
    .pause = os_listener_pause,
    .resume = os_listener_resume,
    .turn_away = os_listener_turn_away,
    .address = os_listener_address,
    .close = os_listener_close,
};

static struct os_listener *listener_alloc(const char *path)
{
    size_t n = strlen(path) + 1;
    struct os_listener *l = calloc(1, sizeof(*l) + n);

    if (l == NULL)
        return NULL;
    l->base.ops = &listener_ops;
    l->source.ops = &source_ops;
    memcpy(l->path, path, n);
    return l;
}

/* Where it really is. */
static int learn_place(struct os_listener *l, int fd, const struct address *at)
{
    struct stat about;

    if (at->kind != ADDRESS_UNIX)
        return socket_local(fd, &l->at);
    l->at = (struct address){.kind = ADDRESS_UNIX, .path = l->path};
    if (lstat(l->path, &about) != 0)
        return os_error(errno);
    l->device = about.st_dev;
    l->inode = about.st_ino;
    return IO_OK;
}

int os_listen(struct poller *base, const struct address *at, const struct listen_options *o,
              struct listener **out)
{
    const char *path = at->kind == ADDRESS_UNIX && at->path != NULL ? at->path : "";
    struct os_listener *l = listener_alloc(path);
    int fd = l == NULL ? IO_NO_MEMORY : socket_to_listen(at, o);
    int error = fd < 0 ? fd : learn_place(l, fd, at);

    if (error == IO_OK)
        error = source_open(&l->source, os_poller_of(base), fd, EPOLLIN);
    if (error == IO_OK) {
        *out = &l->base;
        return IO_OK;
    }
    if (fd >= 0) {
        remove_path(l);
        close(fd);
    }
    free(l);
    return error;
}
