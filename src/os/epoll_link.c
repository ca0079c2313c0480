/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A link on an epoll-watched socket.
 *
 *                 OUT                      error, and nothing left to receive
 *   CONNECTING ---------> OPEN -------------------------------------.
 *       |                                                            v
 *       '---------------- error ----------------------------------> FAILED
 *
 * Edge-triggered: each event is told once, so it is kept in |flags| until it is used up.
 *
 * The kernel keeps what arrived before a RST, and hands it out before the error: so errors are
 * read, like data. But the error is handed out only once. A write that met it, or SO_ERROR, has
 * used it up, and the read that should have failed sees an end of stream instead; hence |broken|.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "io/error.h"
#include "os/error.h"
#include "os/poller_internal.h"
#include "os/sockets.h"

#define LINK_WATCH (EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET)

/* One fast peer may have two reads a turn; then the others are served. */
#define READS_A_TURN 2

enum link_state { LINK_CONNECTING, LINK_OPEN, LINK_FAILED };

enum link_flag {
    LINK_READING = 1,  /* the owner wants to receive */
    LINK_READABLE = 2, /* there may be something in the kernel */
    LINK_FINAL = 4,    /* and after it an end or error, for which no event will come again */
    LINK_DOUBTFUL = 8, /* an error may wait that must be told even while reading is stopped */
    LINK_BLOCKED = 16, /* a write was not taken whole */
    LINK_ENDED = 32,   /* |ended| was told */
    LINK_SHUT = 64     /* our FIN is sent */
};

struct os_link {
    struct link base;
    struct source source;
    uint16_t port; /* connected to; 0: accepted, or a unix socket */
    uint8_t state; /* enum link_state */
    uint8_t flags; /* enum link_flag */
    int8_t broken; /* the io_error that a write or SO_ERROR used up; IO_OK: none */
};

static_assert(sizeof(struct os_link) <= 128, "an idle link is small");

static struct os_link *link_of(struct link *l)
{
    return CONTAINER_OF(l, struct os_link, base);
}

static bool has(const struct os_link *l, enum link_flag flag)
{
    return (l->flags & flag) != 0;
}

static void set(struct os_link *l, unsigned flags)
{
    l->flags = (uint8_t)(l->flags | flags);
}

static void clear(struct os_link *l, unsigned flags)
{
    l->flags = (uint8_t)(l->flags & ~flags);
}

/* May be told things: checked after each callback, for the owner may have closed it. */
static bool alive(const struct os_link *l)
{
    return !l->source.dead && l->state != LINK_FAILED;
}

static bool wants_data(const struct os_link *l)
{
    return alive(l) && has(l, LINK_READING) && !has(l, LINK_ENDED);
}

static void fail(struct os_link *l, int error)
{
    l->state = LINK_FAILED;
    l->flags = 0;
    list_remove(&l->source.queue);
    /* EPIPE is a RST after the FIN; "closed" is what a writer is told. */
    l->base.events->failed(l->base.owner, error == IO_CLOSED ? IO_RESET : error);
}

/* Remembers an error that will not be handed out again; a read will see how much came before. */
static void note_broken(struct os_link *l, int error)
{
    if (l->broken == IO_OK)
        l->broken = (int8_t)error;
    set(l, LINK_READABLE | LINK_FINAL | LINK_DOUBTFUL);
}

/*
 * Reading is stopped or has ended, and there may be an error. It is told now unless bytes wait
 * before it; then it stays doubtful, until they were received. A dead socket never says EAGAIN: who
 * got EPIPE and then that has a peer that only refuses to read (unix sockets), and may still speak.
 */
static void judge(struct os_link *l)
{
    int error = l->broken;
    char byte;
    ssize_t n = has(l, LINK_ENDED) ? 0 : recv(l->source.fd, &byte, 1, MSG_PEEK);

    if (n > 0)
        return;
    if (n < 0 && errno == EINTR) {
        source_soon(&l->source);
        return;
    }
    clear(l, LINK_DOUBTFUL);
    if (n < 0 && errno == EAGAIN)
        return;
    if (error == IO_OK)
        error = n < 0 ? os_error(errno) : socket_error(l->source.fd);
    if (error != IO_OK)
        fail(l, error);
}

/* An end of stream; or an error that a write used up (but EPIPE, which comes after a real end). */
static void end(struct os_link *l)
{
    if (l->broken != IO_OK && l->broken != IO_CLOSED) {
        fail(l, l->broken);
        return;
    }
    clear(l, LINK_READABLE | LINK_FINAL);
    set(l, LINK_ENDED);
    l->base.events->ended(l->base.owner);
}

static void no_data(struct os_link *l, int number)
{
    if (number == EAGAIN) {
        clear(l, LINK_READABLE | LINK_FINAL | (l->broken == IO_OK ? LINK_DOUBTFUL : 0u));
        return;
    }
    fail(l, l->broken != IO_OK ? l->broken : os_error(number));
}

/* One read. True: worth another. */
static bool receive_once(struct os_link *l)
{
    uint8_t *loan = l->source.poller->loan;
    ssize_t n;

    do {
        n = recv(l->source.fd, loan, LINK_LOAN_MAX, 0);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        no_data(l, errno);
        return false;
    }
    if (n == 0) {
        end(l);
        return false;
    }
    /*
     * Short: the socket was empty, and what comes later makes an event. Before a byte marked urgent
     * a read is short too; who sends one waits for its own next segment.
     */
    if (n < LINK_LOAN_MAX && !has(l, LINK_FINAL))
        clear(l, LINK_READABLE);
    l->base.events->received(l->base.owner, bytes_from(loan, (size_t)n));
    return wants_data(l) && has(l, LINK_READABLE);
}

static void receive(struct os_link *l)
{
    unsigned reads = 0;

    if (!wants_data(l) || !has(l, LINK_READABLE))
        return;
    while (receive_once(l)) {
        if (++reads == READS_A_TURN) {
            source_soon(&l->source);
            return;
        }
    }
}

static void opened(struct os_link *l)
{
    if (l->port != 0 && socket_met_itself(l->source.fd, l->port)) {
        fail(l, IO_REFUSED);
        return;
    }
    l->state = LINK_OPEN;
    l->base.events->opened(l->base.owner);
}

/* A connect came to something. */
static void settle(struct os_link *l, uint32_t events)
{
    int error = IO_OK;

    if (events & (EPOLLERR | EPOLLHUP))
        error = socket_error(l->source.fd);
    /* Reset after it was open, before we looked: it did open, and bytes may have come. */
    if (error == IO_RESET || error == IO_CLOSED) {
        note_broken(l, error);
        error = IO_OK;
    }
    if (error != IO_OK)
        fail(l, error);
    else if (events & EPOLLOUT)
        opened(l);
}

static void note_events(struct os_link *l, uint32_t events)
{
    if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        set(l, LINK_READABLE);
    if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        set(l, LINK_FINAL);
    if (events & EPOLLERR)
        set(l, LINK_DOUBTFUL);
}

static void tell_writable(struct os_link *l, uint32_t events)
{
    if (!has(l, LINK_BLOCKED) || !(events & EPOLLOUT) || (events & EPOLLERR))
        return;
    clear(l, LINK_BLOCKED);
    l->base.events->writable(l->base.owner);
}

static void link_happened(struct source *s, uint32_t events)
{
    struct os_link *l = CONTAINER_OF(s, struct os_link, source);

    if (l->state == LINK_FAILED)
        return;
    if (s->fd < 0) {
        fail(l, l->broken); /* the connect was refused at once, and is told now */
        return;
    }
    if (l->state == LINK_CONNECTING) {
        settle(l, events);
        if (!alive(l) || l->state == LINK_CONNECTING)
            return;
        events &= ~(uint32_t)EPOLLOUT; /* used up */
    }
    note_events(l, events);
    tell_writable(l, events);
    receive(l);
    if (alive(l) && has(l, LINK_DOUBTFUL) && !wants_data(l))
        judge(l);
}

static void link_free(struct source *s)
{
    slab_give(&s->poller->links, CONTAINER_OF(s, struct os_link, source));
}

static void os_link_read_start(struct link *base)
{
    struct os_link *l = link_of(base);

    if (l->state == LINK_FAILED)
        return;
    set(l, LINK_READING);
    if (l->state == LINK_OPEN && has(l, LINK_READABLE) && !has(l, LINK_ENDED))
        source_soon(&l->source);
}

static void os_link_read_stop(struct link *base)
{
    clear(link_of(base), LINK_READING);
}

/* Up to here a copy costs less than what the kernel makes of a vector. */
#define COPY_MAX 2048u

static size_t length_of(const struct bytes *parts, size_t n)
{
    size_t total = 0;

    for (size_t i = 0; i < n; i++)
        total += parts[i].len;
    return total;
}

static ssize_t send_copy(int fd, const struct bytes *parts, size_t n)
{
    uint8_t copy[COPY_MAX];
    size_t at = 0;

    for (size_t i = 0; i < n; i++) {
        if (parts[i].len > 0)
            memcpy(copy + at, parts[i].data, parts[i].len);
        at += parts[i].len;
    }
    return send(fd, copy, at, MSG_NOSIGNAL);
}

static ssize_t send_vector(int fd, const struct bytes *parts, size_t n)
{
    struct iovec vector[LINK_PARTS_MAX];
    struct msghdr message = {.msg_iov = vector, .msg_iovlen = n};

    for (size_t i = 0; i < n; i++) {
        union {
            const void *lent;
            void *wanted;
        } data = {.lent = parts[i].data}; /* iovec serves reads too, hence not const */

        vector[i] = (struct iovec){.iov_base = data.wanted, .iov_len = parts[i].len};
    }
    return sendmsg(fd, &message, MSG_NOSIGNAL);
}

static ssize_t send_parts(int fd, const struct bytes *parts, size_t n, size_t *total)
{
    assert(n <= LINK_PARTS_MAX);
    *total = length_of(parts, n);
    if (*total == 0)
        return 0;
    if (n == 1)
        return send(fd, parts[0].data, parts[0].len, MSG_NOSIGNAL);
    return *total <= COPY_MAX ? send_copy(fd, parts, n) : send_vector(fd, parts, n);
}

static int write_failed(struct os_link *l, int number)
{
    int error = os_error(number);

    if (!has(l, LINK_SHUT)) { /* after our own FIN it says nothing about the peer */
        note_broken(l, error);
        source_soon(&l->source);
    }
    return error;
}

static bool may_pass(int number)
{
    return number == EAGAIN || number == ENOBUFS || number == ENOMEM;
}

static ptrdiff_t os_link_write(struct link *base, const struct bytes *parts, size_t n)
{
    struct os_link *l = link_of(base);
    size_t total;
    ssize_t sent;

    if (l->state == LINK_FAILED)
        return IO_CLOSED;
    do {
        sent = send_parts(l->source.fd, parts, n, &total);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0 && !may_pass(errno))
        return write_failed(l, errno);
    if (sent < 0 && errno != EAGAIN)
        source_watch(&l->source, LINK_WATCH); /* no edge would tell that memory is back: ask anew */
    if (sent < 0)
        sent = 0;
    if ((size_t)sent < total)
        set(l, LINK_BLOCKED);
    return sent;
}

static void os_link_shut(struct link *base)
{
    struct os_link *l = link_of(base);

    if (l->state == LINK_FAILED || has(l, LINK_SHUT))
        return;
    assert(l->state == LINK_OPEN);
    set(l, LINK_SHUT);
    (void)shutdown(l->source.fd, SHUT_WR); /* ENOTCONN: the RST is on its way to us */
}

static void os_link_close(struct link *base, bool reset)
{
    struct os_link *l = link_of(base);
    int fd = l->source.fd;

    source_bury(&l->source);
    if (fd < 0)
        return;
    if (reset)
        socket_close_hard(fd);
    else
        close(fd);
}

static void link_end(struct source *s)
{
    os_link_close(&CONTAINER_OF(s, struct os_link, source)->base, false);
}

static void os_link_info(struct link *base, struct link_info *out)
{
    struct os_link *l = link_of(base);
    struct tcp_info info;
    socklen_t len = sizeof(info);

    memset(&info, 0, sizeof(info));
    *out = (struct link_info){.known = false};
    /* Fails on unix sockets and where there is no descriptor. */
    if (getsockopt(l->source.fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0)
        return;
    *out = (struct link_info){
        .rtt = info.tcpi_rtt * NS_PER_US,
        .rtt_variance = info.tcpi_rttvar * NS_PER_US,
        .retransmits = info.tcpi_total_retrans,
        .lost = info.tcpi_lost,
        .unacked = info.tcpi_unacked,
        .known = true,
    };
}

static const struct source_ops source_ops = {
    .happened = link_happened,
    .end = link_end,
    .forget = link_free,
};

static const struct link_ops link_ops = {
    .read_start = os_link_read_start,
    .read_stop = os_link_read_stop,
    .write = os_link_write,
    .shut = os_link_shut,
    .close = os_link_close,
    .info = os_link_info,
};

static void link_set(struct os_link *l, enum link_state state)
{
    l->base = (struct link){.ops = &link_ops};
    l->source.ops = &source_ops;
    l->port = 0;
    l->state = (uint8_t)state;
    l->flags = 0;
    l->broken = IO_OK;
}

struct link *os_link_adopt(struct os_poller *p, int fd)
{
    struct os_link *l = slab_take(&p->links);

    if (l == NULL)
        return NULL;
    link_set(l, LINK_OPEN);
    if (source_open(&l->source, p, fd, LINK_WATCH) != IO_OK) {
        slab_give(&p->links, l);
        return NULL;
    }
    return &l->base;
}

/* Whether a connect failed for want of something of ours, and not because of the peer. */
static bool is_ours(int error)
{
    return error == IO_NO_DESCRIPTORS || error == IO_NO_MEMORY || error == IO_NO_PORTS;
}

/* IO_OK also where it is under way. */
static int begin(int fd, const struct address *to)
{
    union socket_name name;
    socklen_t len;
    int error = socket_name_from(to, &name, &len);

    if (error != IO_OK)
        return error;
    if (connect(fd, &name.any, len) == 0 || errno == EINPROGRESS || errno == EINTR)
        return IO_OK;
    return errno == EAGAIN ? IO_REFUSED : os_error(errno); /* EAGAIN: a full unix backlog */
}

/* The descriptor under way in |*fd|, or -1 there and what |failed| is to say in |*why|. */
static int start(const struct address *to, const struct connect_options *o, int *fd, int *why)
{
    int error;

    *fd = socket_to_connect(to, o);
    error = *fd < 0 ? *fd : begin(*fd, to);
    *why = error;
    if (error == IO_OK)
        return IO_OK;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    return is_ours(error) ? error : IO_OK;
}

static int watch_connect(struct os_link *l, struct os_poller *p, int fd)
{
    if (fd >= 0)
        return source_open(&l->source, p, fd, LINK_WATCH);
    source_open_bare(&l->source, p);
    source_soon(&l->source);
    return IO_OK;
}

int os_connect(struct poller *base, const struct address *to, const struct connect_options *o,
               struct link **out)
{
    struct os_poller *p = os_poller_of(base);
    struct os_link *l = slab_take(&p->links);
    int fd = -1;
    int why = IO_OK;
    int error = l == NULL ? IO_NO_MEMORY : start(to, o, &fd, &why);

    if (error == IO_OK) {
        link_set(l, LINK_CONNECTING);
        l->port = to->kind == ADDRESS_UNIX ? 0 : to->port;
        l->broken = (int8_t)why;
        error = watch_connect(l, p, fd);
    }
    if (error == IO_OK) {
        *out = &l->base;
        return IO_OK;
    }
    if (fd >= 0)
        close(fd);
    slab_give(&p->links, l);
    return error;
}

size_t os_link_size(void)
{
    return sizeof(struct os_link);
}
