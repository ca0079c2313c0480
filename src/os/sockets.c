/* SPDX-License-Identifier: Apache-2.0 */
#include "os/sockets.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include <linux/filter.h>
#include <netinet/tcp.h>
#include <sys/stat.h>

#include "io/error.h"
#include "os/error.h"
#include "os/poller.h"

static int local_name(const char *path, union socket_name *out, socklen_t *len)
{
    size_t n = path == NULL ? 0 : strlen(path);

    if (n == 0 || n >= sizeof(out->local.sun_path))
        return IO_INVALID;
    out->local.sun_family = AF_UNIX;
    memcpy(out->local.sun_path, path, n + 1);
    *len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + 1);
    return IO_OK;
}

int socket_name_from(const struct address *a, union socket_name *out, socklen_t *len)
{
    memset(out, 0, sizeof(*out));
    switch (a->kind) {
    case ADDRESS_NONE:
        break;
    case ADDRESS_IPV4:
        out->ipv4.sin_family = AF_INET;
        out->ipv4.sin_port = htons(a->port);
        memcpy(&out->ipv4.sin_addr, a->ip, 4);
        *len = sizeof(out->ipv4);
        return IO_OK;
    case ADDRESS_IPV6:
        out->ipv6.sin6_family = AF_INET6;
        out->ipv6.sin6_port = htons(a->port);
        memcpy(&out->ipv6.sin6_addr, a->ip, 16);
        *len = sizeof(out->ipv6);
        return IO_OK;
    case ADDRESS_UNIX:
        return local_name(a->path, out, len);
    }
    return IO_INVALID;
}

void socket_name_to(const union socket_name *n, struct address *out)
{
    *out = (struct address){.kind = ADDRESS_NONE};
    if (n->any.sa_family == AF_INET) {
        out->kind = ADDRESS_IPV4;
        out->port = ntohs(n->ipv4.sin_port);
        memcpy(out->ip, &n->ipv4.sin_addr, 4);
    } else if (n->any.sa_family == AF_INET6) {
        out->kind = ADDRESS_IPV6;
        out->port = ntohs(n->ipv6.sin6_port);
        memcpy(out->ip, &n->ipv6.sin6_addr, 16);
    } else if (n->any.sa_family == AF_UNIX) {
        out->kind = ADDRESS_UNIX;
        out->path = "";
    }
}

static int family_of(const struct address *a)
{
    if (a->kind == ADDRESS_UNIX)
        return AF_UNIX;
    return a->kind == ADDRESS_IPV6 ? AF_INET6 : AF_INET;
}

/* Options are wishes: a kernel that refuses one gives a socket that works all the same. */
static void wish(int fd, int level, int option, int value)
{
    (void)setsockopt(fd, level, option, &value, sizeof(value));
}

static void wish_keepalive(int fd, const struct connect_options *o)
{
    wish(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    if (o->keepalive_idle_s > 0)
        wish(fd, IPPROTO_TCP, TCP_KEEPIDLE, (int)o->keepalive_idle_s);
    if (o->keepalive_interval_s > 0)
        wish(fd, IPPROTO_TCP, TCP_KEEPINTVL, (int)o->keepalive_interval_s);
    if (o->keepalive_probes > 0)
        wish(fd, IPPROTO_TCP, TCP_KEEPCNT, (int)o->keepalive_probes);
}

static int socket_open(const struct address *a)
{
    int fd = socket(family_of(a), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return os_error(errno);
    if (a->kind != ADDRESS_UNIX)
        wish(fd, IPPROTO_TCP, TCP_NODELAY, 1); /* accepted sockets inherit it from the listener */
    return fd;
}

int socket_to_connect(const struct address *to, const struct connect_options *o)
{
    int fd = socket_open(to);

    if (fd >= 0 && o != NULL && o->keepalive && to->kind != ADDRESS_UNIX)
        wish_keepalive(fd, o);
    return fd;
}

/* Whether somebody listens at the path; only a clear no is a no. */
static bool nobody_listens(const union socket_name *name, socklen_t len)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    bool refused;

    if (fd < 0)
        return false;
    refused = connect(fd, &name->any, len) != 0 && errno == ECONNREFUSED;
    close(fd);
    return refused;
}

/* True where the path was a socket left behind, and is gone now. */
static bool remove_stale(const union socket_name *name, socklen_t len)
{
    struct stat about;

    if (lstat(name->local.sun_path, &about) != 0 || !S_ISSOCK(about.st_mode))
        return false;
    return nobody_listens(name, len) && unlink(name->local.sun_path) == 0;
}

static bool listens_at(int fd, const union socket_name *wanted)
{
    union socket_name name;
    socklen_t len = sizeof(name);
    int listening = 0;
    socklen_t size = sizeof(listening);

    memset(&name, 0, sizeof(name));
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0 || !listening)
        return false;
    return getsockname(fd, &name.any, &len) == 0 && name.any.sa_family == AF_UNIX &&
           strcmp(name.local.sun_path, wanted->local.sun_path) == 0;
}

/* A second descriptor of |fd|, if that is what is wanted; else -1. Looks again at what it got: |fd|
 * is some other thread's, which may close it meanwhile. */
static int copy_if_listening(int fd, const union socket_name *wanted)
{
    int copy;

    if (!listens_at(fd, wanted))
        return -1;
    copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (copy >= 0 && listens_at(copy, wanted))
        return copy;
    if (copy >= 0)
        close(copy);
    return -1;
}

/*
 * Unix sockets know no SO_REUSEPORT: the pollers of one process share one socket instead. It is
 * looked for among our own descriptors, once for each listener at start-up. One whose path was
 * removed does not count: nobody can get to it. -1: there is none.
 */
static int share(const struct address *at)
{
    union socket_name name;
    socklen_t len;
    struct dirent *entry;
    struct stat about;
    DIR *all;
    int copy = -1;

    if (socket_name_from(at, &name, &len) != IO_OK || lstat(at->path, &about) != 0)
        return -1;
    all = opendir("/proc/self/fd");
    if (all == NULL)
        return -1;
    while (copy < 0 && (entry = readdir(all)) != NULL) {
        uint64_t fd;

        if (bytes_parse_u64(bytes_of(entry->d_name), &fd) && fd <= INT_MAX)
            copy = copy_if_listening((int)fd, &name);
    }
    closedir(all);
    return copy;
}

static int bind_to(int fd, const struct address *at)
{
    union socket_name name;
    socklen_t len;
    int err = socket_name_from(at, &name, &len);

    if (err != IO_OK)
        return err;
    if (bind(fd, &name.any, len) == 0)
        return IO_OK;
    if (errno == EADDRINUSE && at->kind == ADDRESS_UNIX && remove_stale(&name, len) &&
        bind(fd, &name.any, len) == 0)
        return IO_OK;
    if (errno == EADDRNOTAVAIL)
        return IO_INVALID; /* not an address of this machine; for connect it would mean ports */
    return errno == ECONNREFUSED ? IO_ADDRESS_IN_USE : os_error(errno);
}

static void prepare_to_listen(int fd, const struct address *at, const struct listen_options *o)
{
    if (at->kind == ADDRESS_UNIX) {
        if (o != NULL && o->private_path)
            (void)fchmod(fd, 0600); /* before bind: the path is born with it */
        return;
    }
    wish(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    if (o != NULL && o->reuse_port)
        wish(fd, SOL_SOCKET, SO_REUSEPORT, 1);
    if (at->kind == ADDRESS_IPV6)
        wish(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1); /* so that 0.0.0.0 and :: can both be listed */
}

int socket_to_listen(const struct address *at, const struct listen_options *o)
{
    int backlog = o == NULL || o->backlog <= 0 ? INT_MAX : o->backlog; /* the kernel cuts it */
    int fd = at->kind == ADDRESS_UNIX && o != NULL && o->reuse_port ? share(at) : -1;
    int err;

    if (fd >= 0)
        return fd;
    fd = socket_open(at);
    if (fd < 0)
        return fd;
    prepare_to_listen(fd, at, o);
    err = bind_to(fd, at);
    if (err == IO_OK && listen(fd, backlog) != 0)
        err = os_error(errno);
    if (err != IO_OK) {
        close(fd);
        return err;
    }
    return fd;
}

int os_may_listen(const struct address *at)
{
    const struct listen_options options = {.reuse_port = true};
    int fd = at->kind == ADDRESS_UNIX ? IO_OK : socket_open(at);
    int error;

    if (fd <= 0)
        return fd;
    prepare_to_listen(fd, at, &options);
    error = bind_to(fd, at);
    close(fd);
    return error;
}

int socket_error(int fd)
{
    int number = 0;
    socklen_t len = sizeof(number);

    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &number, &len) != 0)
        number = errno;
    return os_error(number);
}

int socket_local(int fd, struct address *out)
{
    union socket_name name;
    socklen_t len = sizeof(name);

    if (getsockname(fd, &name.any, &len) != 0)
        return os_error(errno);
    socket_name_to(&name, out);
    return IO_OK;
}

bool socket_met_itself(int fd, uint16_t port)
{
    struct address local, peer;
    union socket_name name;
    socklen_t len = sizeof(name);

    if (socket_local(fd, &local) != IO_OK || local.port != port)
        return false;
    if (getpeername(fd, &name.any, &len) != 0)
        return false;
    socket_name_to(&name, &peer);
    return address_equal(&local, &peer);
}

void socket_turn_away(int fd)
{
    /* What a filter of a TCP socket sees begins with the TCP header: flags at 13. */
    static const struct sock_filter drop_syn[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 13),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, TH_SYN | TH_ACK),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TH_SYN, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
    };
    const struct sock_fprog program = {
        .len = sizeof(drop_syn) / sizeof(drop_syn[0]),
        .filter = (struct sock_filter *)(uintptr_t)drop_syn,
    };

    (void)setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

void socket_close_hard(int fd)
{
    const struct linger now = {.l_onoff = 1, .l_linger = 0};

    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close(fd);
}
