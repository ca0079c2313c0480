/* SPDX-License-Identifier: Apache-2.0 */
/*
 * c-ares tells which sockets it wants watched and when it wants to be called again; a timerfd is
 * the latter. It may answer inside the call that asks, so every answer rests on a list until the
 * loop comes round.
 */
#include "os/resolver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ares.h>
#include <sys/timerfd.h>

#include "base/list.h"
#include "io/error.h"
#include "os/error.h"
#include "os/sockets.h"
#include "os/watch.h"

#define NAME_MAX_LEN 254 /* a domain name with a final dot */
#define AT_ONCE      64 /* lookups under way: a thousand at once would drown each other's answers */

struct lookup {
    struct list link; /* waiting, or answered */
    struct os_resolver *resolver;
    resolver_done done;
    void *owner;
    int error;
    uint32_t count;
    span_ns ttl;
    struct address *addresses;
    char name[NAME_MAX_LEN + 1];
};

/* A socket of c-ares that is watched. */
struct dns_socket {
    struct list link;
    struct os_watch *watch;
    int fd;
};

struct os_resolver {
    struct resolver base;
    struct poller *poller;
    ares_channel channel;
    bool has_channel;
    int timer_fd;
    struct os_watch *timer;
    struct list sockets;
    uint32_t under_way;
    struct list waiting;
    struct list answered;
};

/* ------------------------------------------------------------------------- time and sockets */

static void arm(struct os_resolver *r)
{
    struct timeval room;
    struct timeval *left = ares_timeout(r->channel, NULL, &room);
    struct itimerspec when = {.it_value = {0, 0}}; /* zero: not armed */

    if (left != NULL) {
        when.it_value.tv_sec = left->tv_sec;
        when.it_value.tv_nsec = left->tv_usec * 1000 + 1; /* now is one nanosecond away */
    }
    (void)timerfd_settime(r->timer_fd, 0, &when, NULL);
}

static void socket_ready(void *owner, int fd, unsigned ready)
{
    struct os_resolver *r = owner;

    ares_process_fd(r->channel, (ready & OS_READABLE) ? fd : ARES_SOCKET_BAD,
                    (ready & OS_WRITABLE) ? fd : ARES_SOCKET_BAD);
    arm(r);
}

static struct dns_socket *socket_find(struct os_resolver *r, int fd)
{
    for (struct list *l = r->sockets.next; l != &r->sockets; l = l->next) {
        struct dns_socket *s = CONTAINER_OF(l, struct dns_socket, link);

        if (s->fd == fd)
            return s;
    }
    return NULL;
}

static void socket_forget(struct dns_socket *s)
{
    os_watch_remove(s->watch);
    list_remove(&s->link);
    free(s);
}

/* Without memory it is not watched, and the lookup ends by its timeout. */
static void socket_watch(struct os_resolver *r, int fd, unsigned wanted)
{
    struct dns_socket *s = calloc(1, sizeof(*s));

    if (s == NULL)
        return;
    if (os_watch_add(r->poller, fd, wanted, &s->watch) != IO_OK) {
        free(s);
        return;
    }
    os_watch_own(s->watch, socket_ready, r);
    s->fd = fd;
    list_push_back(&r->sockets, &s->link);
}

/* Called by c-ares; neither readable nor writable: it is about to close the socket. */
static void socket_changed(void *owner, ares_socket_t fd, int readable, int writable)
{
    struct os_resolver *r = owner;
    struct dns_socket *s = socket_find(r, fd);
    unsigned wanted =
        (readable ? (unsigned)OS_READABLE : 0) | (writable ? (unsigned)OS_WRITABLE : 0);

    if (s == NULL && wanted != 0)
        socket_watch(r, fd, wanted);
    else if (s != NULL && wanted == 0)
        socket_forget(s);
    else if (s != NULL)
        os_watch_change(s->watch, wanted);
}

/* ---------------------------------------------------------------------------------- answers */

static void lookup_free(struct lookup *l)
{
    list_remove(&l->link);
    free(l->addresses);
    free(l);
}

static void answer(struct lookup *l)
{
    l->done(l->owner, l->error, l->addresses, l->count, l->ttl);
    lookup_free(l);
}

static void start_waiting(struct os_resolver *r);

static void timer_ready(void *owner, int fd, unsigned ready)
{
    struct os_resolver *r = owner;
    uint64_t expirations;
    struct list batch;
    struct list *l;

    if (ready != 0 && read(fd, &expirations, sizeof(expirations)) > 0) {
        ares_process_fd(r->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
        arm(r);
    }
    list_init(&batch);
    list_insert_before(&r->answered, &batch);
    list_remove(&r->answered);
    while ((l = list_pop_front(&batch)) != NULL)
        answer(CONTAINER_OF(l, struct lookup, link));
    start_waiting(r);
}

static int error_of(int status)
{
    switch (status) {
    case ARES_SUCCESS:
        return IO_OK;
    case ARES_ENODATA:
    case ARES_ENOTFOUND:
    case ARES_ENONAME:
        return IO_NOT_FOUND;
    case ARES_ETIMEOUT:
        return IO_TIMED_OUT;
    case ARES_ECONNREFUSED:
        return IO_REFUSED;
    case ARES_ENOMEM:
        return IO_NO_MEMORY;
    case ARES_EBADNAME:
    case ARES_EBADSTR:
    case ARES_EBADFAMILY:
        return IO_INVALID;
    }
    return IO_OTHER;
}

static void take_node(struct lookup *l, const struct ares_addrinfo_node *node)
{
    span_ns ttl = node->ai_ttl <= 0 ? 0 : (span_ns)node->ai_ttl * NS_PER_S;
    union socket_name name;

    if (node->ai_addr == NULL || node->ai_addrlen > sizeof(name))
        return;
    memset(&name, 0, sizeof(name));
    memcpy(&name, node->ai_addr, node->ai_addrlen);
    socket_name_to(&name, &l->addresses[l->count]);
    l->addresses[l->count].port = 0;
    l->count++;
    if (ttl < l->ttl)
        l->ttl = ttl;
}

static int take_nodes(struct lookup *l, const struct ares_addrinfo *info)
{
    uint32_t n = 0;

    for (struct ares_addrinfo_node *at = info->nodes; at != NULL; at = at->ai_next)
        n += n < OS_RESOLVER_ADDRESSES_MAX;
    if (n == 0)
        return IO_NOT_FOUND;
    l->addresses = calloc(n, sizeof(l->addresses[0]));
    if (l->addresses == NULL)
        return IO_NO_MEMORY;
    l->ttl = UINT64_MAX;
    for (struct ares_addrinfo_node *at = info->nodes; at != NULL && l->count < n; at = at->ai_next)
        take_node(l, at);
    if (l->count == 0)
        return IO_NOT_FOUND;
    if (l->ttl == 0)
        l->ttl = OS_RESOLVER_HOSTS_TTL;
    return IO_OK;
}

static void put_answer(struct lookup *l, int error)
{
    l->error = error;
    if (error != IO_OK) {
        l->count = 0;
        l->ttl = 0;
    }
    list_push_back(&l->resolver->answered, &l->link);
    os_watch_soon(l->resolver->timer);
}

static void looked_up(void *owner, int status, int timeouts, struct ares_addrinfo *info)
{
    struct lookup *l = owner;
    (void)timeouts;

    l->resolver->under_way--;
    put_answer(l, status == ARES_SUCCESS ? take_nodes(l, info) : error_of(status));
    ares_freeaddrinfo(info);
}

/* ---------------------------------------------------------------------------------- lookups */

static void put_known(struct lookup *l, const struct address *known, uint32_t count)
{
    l->addresses = calloc(count, sizeof(*known));
    if (l->addresses == NULL) {
        put_answer(l, IO_NO_MEMORY);
        return;
    }
    memcpy(l->addresses, known, count * sizeof(*known));
    l->count = count;
    l->ttl = UINT64_MAX;
    put_answer(l, IO_OK);
}

static bool take_numeric(struct lookup *l, struct bytes host)
{
    struct address a;

    if (!address_parse_ip(host, &a))
        return false;
    put_known(l, &a, 1);
    return true;
}

/* RFC 6761, 6.3: this machine, never a question to a server; a bare system has no hosts file. */
static bool take_localhost(struct lookup *l, struct bytes host)
{
    static const struct address here[] = {{.kind = ADDRESS_IPV4, .ip = {127, 0, 0, 1}},
                                          {.kind = ADDRESS_IPV6, .ip = {[15] = 1}}};
    const struct bytes name = BYTES("localhost");

    if (host.len > 0 && host.data[host.len - 1] == '.')
        host.len--;
    if (host.len < name.len || !bytes_equal_nocase(bytes_skip(host, host.len - name.len), name))
        return false;
    if (host.len > name.len && host.data[host.len - name.len - 1] != '.')
        return false;
    put_known(l, here, 2);
    return true;
}

static bool copy_name(struct lookup *l, struct bytes host)
{
    if (host.len == 0 || host.len > NAME_MAX_LEN || bytes_find(host, 0) < host.len)
        return false;
    memcpy(l->name, host.data, host.len);
    l->name[host.len] = '\0';
    return true;
}

/* c-ares may call looked_up inside; that starts nothing, so this does not recurse. */
static void start_waiting(struct os_resolver *r)
{
    /* Sorting would open a socket to each address to see how the kernel would get there. */
    const struct ares_addrinfo_hints hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = ARES_AI_NOSORT};
    struct list *l;

    while (r->under_way < AT_ONCE && (l = list_pop_front(&r->waiting)) != NULL) {
        struct lookup *next = CONTAINER_OF(l, struct lookup, link);

        r->under_way++;
        ares_getaddrinfo(r->channel, next->name, NULL, &hints, looked_up, next);
    }
    arm(r);
}

static void os_resolver_lookup(struct resolver *base, struct bytes host, resolver_done done,
                               void *owner)
{
    struct os_resolver *r = CONTAINER_OF(base, struct os_resolver, base);
    struct lookup *l = calloc(1, sizeof(*l));

    if (l == NULL) {
        done(owner, IO_NO_MEMORY, NULL, 0, 0); /* nothing to keep it in until dispatch */
        return;
    }
    *l = (struct lookup){.resolver = r, .done = done, .owner = owner};
    list_init(&l->link);
    if (take_numeric(l, host) || take_localhost(l, host))
        return;
    if (!copy_name(l, host)) {
        put_answer(l, IO_INVALID);
        return;
    }
    list_push_back(&r->waiting, &l->link);
    start_waiting(r);
}

/* ----------------------------------------------------------------------------- coming, going */

static int open_channel(struct os_resolver *r, const struct os_resolver_options *o)
{
    struct ares_options options = {
        .timeout = o->timeout_ms == 0 ? 2000 : (int)o->timeout_ms,
        .tries = o->tries == 0 ? 3 : (int)o->tries,
        .sock_state_cb = socket_changed,
        .sock_state_cb_data = r,
    };
    int status = ares_library_init(ARES_LIB_INIT_ALL);

    if (status != ARES_SUCCESS)
        return error_of(status);
    status = ares_init_options(&r->channel, &options,
                               ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB);
    if (status != ARES_SUCCESS) {
        ares_library_cleanup();
        return error_of(status);
    }
    r->has_channel = true;
    if (o->servers != NULL && ares_set_servers_ports_csv(r->channel, o->servers) != ARES_SUCCESS)
        return IO_INVALID;
    return IO_OK;
}

static int open_timer(struct os_resolver *r)
{
    r->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (r->timer_fd < 0)
        return os_error(errno);
    return os_watch_add(r->poller, r->timer_fd, OS_READABLE, &r->timer);
}

int os_resolver_create(struct poller *p, const struct os_resolver_options *o, struct resolver **out)
{
    static const struct os_resolver_options usual = {.servers = NULL};
    struct os_resolver *r = calloc(1, sizeof(*r));
    int error;

    if (r == NULL)
        return IO_NO_MEMORY;
    r->base.lookup = os_resolver_lookup;
    r->poller = p;
    list_init(&r->sockets);
    list_init(&r->waiting);
    list_init(&r->answered);
    error = open_timer(r);
    if (error == IO_OK)
        error = open_channel(r, o == NULL ? &usual : o);
    if (error != IO_OK) {
        os_resolver_free(&r->base);
        return error;
    }
    os_watch_own(r->timer, timer_ready, r);
    *out = &r->base;
    return IO_OK;
}

static void lookups_free(struct list *lookups)
{
    while (!list_empty(lookups))
        lookup_free(CONTAINER_OF(lookups->next, struct lookup, link));
}

void os_resolver_free(struct resolver *base)
{
    struct os_resolver *r;

    if (base == NULL)
        return;
    r = CONTAINER_OF(base, struct os_resolver, base);
    if (r->has_channel) {
        ares_destroy(r->channel); /* moves what is under way to |answered| */
        ares_library_cleanup();
    }
    while (!list_empty(&r->sockets))
        socket_forget(CONTAINER_OF(r->sockets.next, struct dns_socket, link));
    lookups_free(&r->waiting);
    lookups_free(&r->answered);
    os_watch_remove(r->timer);
    if (r->timer_fd >= 0)
        close(r->timer_fd);
    free(r);
}
