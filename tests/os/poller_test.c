/* SPDX-License-Identifier: Apache-2.0 */
#include "os/poller.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/rng.h"
#include "os/loop.h"

/* A plain blocking socket, for what links do not do. */
static int raw_connect(const struct address *to)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(to->port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    memcpy(&in.sin_addr, to->ip, 4);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof(in)), 0);
    return fd;
}

static int raw_listen(uint16_t *port)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(in);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
    *port = ntohs(in.sin_port);
    return fd;
}

static void raw_reset(int fd)
{
    struct linger now = {1, 0};

    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
    close(fd);
}

static unsigned open_descriptors(void)
{
    unsigned n = 0;

    for (int fd = 0; fd < 4096; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void echo_back(struct end *e, struct bytes data)
{
    assert_int_equal(link_write(e->link, &data, 1), data.len);
}

static void bytes_go_both_ways(void **state)
{
    struct loop l;
    struct end client, server;
    (void)state;

    loop_start(&l);
    pair(&l, &client, &server);
    server.on_received = echo_back;
    assert_int_equal(say(&client, "hello"), 5);
    UNTIL(&l, client.received == 5);
    assert_memory_equal(client.last, "hello", 5);
    assert_int_equal(client.opened, 1);
    assert_int_equal(server.opened, 0);
    assert_int_equal(l.peer.kind, ADDRESS_IPV4);
    assert_true(address_is_loopback(&l.peer));
    assert_int_not_equal(l.peer.port, 0);
    end_close(&client);
    UNTIL(&l, server.ended);
    end_close(&server);
    settle_down(&l);
    assert_int_equal(client.late + server.late + client.failed + server.failed, 0);
    loop_stop(&l);
}

static void nothing_is_told_outside_dispatch(void **state)
{
    struct loop l;
    struct end client, server;
    (void)state;

    loop_start(&l);
    pair(&l, &client, &server);
    say(&client, "x");
    poller_wait(l.poller, mono_after(clock_read(&l.clock), PATIENCE));
    assert_int_equal(server.received, 0);
    poller_wait(l.poller, MONO_NEVER); /* a second wait forgets nothing and does not sleep */
    poller_dispatch(l.poller);
    UNTIL(&l, server.received == 1);
    end_close(&client);
    end_close(&server);
    loop_stop(&l);
}

static void parts_are_written_in_order(void **state)
{
    struct loop l;
    struct end client, server;
    struct bytes parts[LINK_PARTS_MAX];
    const char *letters = "abcdefghijklmnop";
    (void)state;

    loop_start(&l);
    pair(&l, &client, &server);
    for (unsigned i = 0; i < LINK_PARTS_MAX; i++)
        parts[i] = bytes_from(letters + i, 1);
    parts[3] = BYTES_NONE;
    assert_int_equal(link_write(client.link, parts, LINK_PARTS_MAX), LINK_PARTS_MAX - 1);
    assert_int_equal(link_write(client.link, parts, 0), 0);
    assert_int_equal(link_write(client.link, &parts[3], 1), 0);
    UNTIL(&l, server.received == LINK_PARTS_MAX - 1);
    assert_memory_equal(server.last, "abcefghijklmnop", 15);
    settle_down(&l);
    assert_int_equal(client.writable, 0);
    end_close(&client);
    end_close(&server);
    loop_stop(&l);
}

static void each_side_may_end_first_and_the_other_goes_on(void **state)
{
    struct loop l;
    struct end client, server;
    (void)state;

    loop_start(&l);
    for (int who = 0; who < 2; who++) {
        pair(&l, &client, &server);
        struct end *first = who == 0 ? &client : &server;
        struct end *second = who == 0 ? &server : &client;

        say(first, "bye");
        link_shut(first->link);
        UNTIL(&l, second->ended);
        assert_int_equal(second->received, 3);
        say(second, "still here");
        UNTIL(&l, first->received == 10);
        assert_int_equal(first->ended, 0);
        link_shut(second->link);
        UNTIL(&l, first->ended);
        settle_down(&l);
        assert_int_equal(first->failed + second->failed + first->late + second->late, 0);
        assert_int_equal(say(first, "no"), IO_CLOSED);
        end_close(&client);
        end_close(&server);
    }
    loop_stop(&l);
}

static void an_end_waits_until_reading_starts(void **state)
{
    struct loop l;
    struct end client, server;
    (void)state;

    loop_start(&l);
    pair(&l, &client, &server);
    link_read_stop(server.link);
    say(&client, "data");
    link_shut(client.link);
    settle_down(&l);
    assert_int_equal(server.received + server.ended, 0);
    link_read_start(server.link);
    assert_int_equal(server.received, 0); /* never out of the call */
    UNTIL(&l, server.ended);
    assert_int_equal(server.received, 4);
    end_close(&client);
    end_close(&server);
    loop_stop(&l);
}

static void data_before_a_reset_is_received_first(void **state)
{
    struct loop l;
    struct end server = {.link = NULL};
    int fd;
    (void)state;

    loop_start(&l);
    l.accept_into = &server;
    fd = raw_connect(&l.at);
    UNTIL(&l, server.link != NULL);
    assert_int_equal(send(fd, "last words", 10, 0), 10);
    raw_reset(fd);
    UNTIL(&l, server.failed);
    assert_int_equal(server.received, 10);
    assert_int_equal(server.error, IO_RESET);
    assert_int_equal(server.ended, 0);
    end_close(&server);
    settle_down(&l);
    assert_int_equal(server.late, 0);
    loop_stop(&l);
}

static void a_write_error_hides_neither_the_data_nor_the_reset(void **state)
{
    struct loop l;
    struct end server = {.link = NULL};
    int fd;
    (void)state;

    loop_start(&l);
    l.accept_into = &server;
    fd = raw_connect(&l.at);
    UNTIL(&l, server.link != NULL);
    assert_int_equal(send(fd, "413", 3, 0), 3);
    raw_reset(fd);
    while (say(&server, "more body") > 0) /* the RST arrives at once on loopback; or at the next */
        ;
    assert_true(say(&server, "more body") < 0);
    assert_int_equal(server.received + server.failed, 0);
    UNTIL(&l, server.failed);
    assert_int_equal(server.received, 3);
    assert_int_equal(server.ended, 0);
    assert_int_equal(server.error, IO_RESET);
    end_close(&server);
    loop_stop(&l);
}

/* C013: a whole answer, FIN and, because of unread data, a RST; and we meet it while writing. */
static void an_answer_an_end_and_then_a_reset_come_in_that_order(void **state)
{
    struct loop l;
    struct end client = {.link = NULL};
    uint16_t port;
    int listening = raw_listen(&port);
    struct address at = loopback(port);
    int fd;
    (void)state;

    loop_init(&l);
    end_connect(&client, &l, &at);
    fd = accept(listening, NULL, NULL);
    UNTIL(&l, client.opened);
    assert_int_equal(send(fd, "413 answer", 10, 0), 10);
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    UNTIL(&l, client.ended);
    assert_int_equal(client.received, 10);
    assert_int_equal(client.failed, 0);
    assert_true(say(&client, "body") > 0);
    close(fd); /* with unread data: RST */
    UNTIL(&l, client.failed);
    assert_int_equal(client.error, IO_RESET);
    assert_int_equal(client.late, 0);
    end_close(&client);
    close(listening);
    loop_stop(&l);
}

static void a_write_error_after_an_end_still_ends_in_a_reset(void **state)
{
    struct loop l;
    struct end client = {.link = NULL};
    uint16_t port;
    int listening = raw_listen(&port);
    struct address at = loopback(port);
    int fd;
    (void)state;

    loop_init(&l);
    end_connect(&client, &l, &at);
    fd = accept(listening, NULL, NULL);
    UNTIL(&l, client.opened);
    assert_true(say(&client, "body") > 0);
    assert_int_equal(send(fd, "413", 3, 0), 3);
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    close(fd);
    while (say(&client, "body") > 0)
        ;
    UNTIL(&l, client.failed);
    assert_int_equal(client.received, 3);
    assert_int_equal(client.ended, 1);
    assert_int_equal(client.error, IO_RESET);
    assert_int_equal(client.late, 0);
    end_close(&client);
    close(listening);
    loop_stop(&l);
}

static void a_reset_is_told_while_reading_is_stopped_once_no_bytes_wait(void **state)
{
    struct loop l;
    struct end server = {.link = NULL};
    int fd;
    (void)state;

    loop_start(&l);
    l.accept_into = &server;
    fd = raw_connect(&l.at);
    UNTIL(&l, server.link != NULL);
    link_read_stop(server.link);
    raw_reset(fd);
    UNTIL(&l, server.failed);
    assert_int_equal(server.error, IO_RESET);
    end_close(&server);
    loop_stop(&l);
}

static void stop_at_first(struct end *e, struct bytes data)
{
    (void)data;
    link_read_stop(e->link);
}

static void a_reset_is_held_back_while_bytes_wait(void **state)
{
    struct loop l;
    struct end server = {.link = NULL, .on_received = stop_at_first};
    int fd;
    (void)state;

    loop_start(&l);
    l.accept_into = &server;
    fd = raw_connect(&l.at);
    UNTIL(&l, server.link != NULL);
    link_read_stop(server.link);
    assert_int_equal(send(fd, "waits", 5, 0), 5);
    raw_reset(fd);
    settle_down(&l);
    assert_int_equal(server.received + server.failed, 0);
    link_read_start(server.link);
    UNTIL(&l, server.received == 5);
    /* Stopped again, but now nothing waits. */
    UNTIL(&l, server.failed);
    assert_int_equal(server.late, 0);
    end_close(&server);
    loop_stop(&l);
}

static void a_refused_connect_fails(void **state)
{
    struct loop l;
    struct end client = {.link = NULL};
    struct address at;
    (void)state;

    loop_start(&l);
    at = l.at;
    listener_close(l.listener);
    l.listener = NULL;
    settle_down(&l);
    end_connect(&client, &l, &at);
    assert_int_equal(client.failed, 0);
    UNTIL(&l, client.failed);
    assert_int_equal(client.error, IO_REFUSED);
    assert_int_equal(client.opened, 0);
    assert_true(say(&client, "x") < 0);
    link_read_start(client.link);
    link_shut(client.link);
    settle_down(&l);
    end_close(&client);
    settle_down(&l);
    assert_int_equal(client.failed, 1);
    assert_int_equal(client.late, 0);
    loop_stop(&l);
}

static void a_connect_that_fails_at_once_is_told_in_dispatch(void **state)
{
    /* Nothing listens at the path: the kernel says so synchronously. */
    struct address nowhere = {.kind = ADDRESS_UNIX, .path = "/nonexistent/socket"};
    /* A broadcast address is no place to connect to. */
    struct address broadcast = {.kind = ADDRESS_IPV4, .port = 9, .ip = {255, 255, 255, 255}};
    struct loop l;
    struct end client = {.link = NULL};
    struct end other = {.link = NULL};
    (void)state;

    loop_init(&l);
    end_connect(&client, &l, &nowhere);
    end_connect(&other, &l, &broadcast);
    assert_int_equal(client.failed + other.failed, 0);
    poller_wait(l.poller, MONO_NEVER); /* must not sleep */
    poller_dispatch(l.poller);
    assert_int_equal(client.failed, 1);
    assert_int_equal(client.error, IO_NOT_FOUND);
    assert_int_equal(other.failed, 1);
    end_close(&client);
    end_close(&other);
    /* And one that is closed before it was told. */
    client = (struct end){.link = NULL};
    end_connect(&client, &l, &nowhere);
    end_close(&client);
    settle_down(&l);
    assert_int_equal(client.late + client.failed, 0);
    loop_stop(&l);
}

static void connect_and_close_in_one_turn_tells_nothing(void **state)
{
    struct loop l;
    struct end client = {.link = NULL};
    struct end server = {.link = NULL};
    unsigned before = open_descriptors();
    (void)state;

    loop_start(&l);
    l.accept_into = &server;
    end_connect(&client, &l, &l.at);
    end_close(&client);
    UNTIL(&l, server.ended);
    assert_int_equal(client.late + client.opened, 0);
    end_close(&server);
    /* Closed between wait and dispatch, when the event is already collected. */
    l.accept_into = &server;
    server = client = (struct end){.link = NULL};
    end_connect(&client, &l, &l.at);
    poller_wait(l.poller, MONO_NEVER);
    end_close(&client);
    poller_dispatch(l.poller);
    UNTIL(&l, server.ended);
    assert_int_equal(client.opened + client.late, 0);
    end_close(&server);
    loop_stop(&l);
    assert_int_equal(open_descriptors(), before);
}

static struct end *victim;

static void close_the_other(struct end *e, struct bytes data)
{
    (void)e;
    (void)data;
    end_close(victim);
}

static void close_self(struct end *e, struct bytes data)
{
    (void)data;
    end_close(e);
}

static void what_is_closed_inside_a_callback_hears_no_more(void **state)
{
    struct loop l;
    struct end a, b, c, d;
    (void)state;

    loop_start(&l);
    pair(&l, &a, &b);
    pair(&l, &c, &d);
    /* Whichever of b and d is told first closes the other, whose event is collected as well. */
    b.on_received = d.on_received = close_the_other;
    say(&a, "1");
    say(&c, "2");
    victim = &d;
    b.on_received = close_the_other;
    d.on_received = close_self;
    poller_wait(l.poller, MONO_NEVER);
    UNTIL(&l, b.received > 0);
    settle_down(&l);
    assert_int_equal(b.late + d.late, 0);
    assert_true(d.gone);
    end_close(&a);
    end_close(&b);
    end_close(&c);
    loop_stop(&l);
}

static void closing_oneself_inside_received_is_safe(void **state)
{
    struct loop l;
    struct end a, b;
    (void)state;

    loop_start(&l);
    pair(&l, &a, &b);
    b.on_received = close_self;
    say(&a, "x");
    link_shut(a.link); /* data and end in one event: the end must not be told */
    UNTIL(&l, b.gone);
    settle_down(&l);
    assert_int_equal(b.ended + b.late, 0);
    end_close(&a);
    loop_stop(&l);
}

static void an_abort_is_a_reset_for_the_peer(void **state)
{
    struct loop l;
    struct end a, b;
    (void)state;

    loop_start(&l);
    pair(&l, &a, &b);
    end_abort(&a);
    UNTIL(&l, b.failed);
    assert_int_equal(b.error, IO_RESET);
    assert_int_equal(b.ended, 0);
    end_close(&b);
    loop_stop(&l);
}

static void bytes_one_at_a_time_arrive_whole(void **state)
{
    struct loop l;
    struct end a, b;
    uint64_t sum = 0;
    (void)state;

    loop_start(&l);
    pair(&l, &a, &b);
    for (unsigned i = 0; i < 1000; i++) {
        uint8_t byte = (uint8_t)i;
        struct bytes one = bytes_from(&byte, 1);

        assert_int_equal(link_write(a.link, &one, 1), 1);
        sum = sum_on(sum, one);
        if (i % 7 == 0)
            turn(&l, 0);
    }
    UNTIL(&l, b.received == 1000);
    assert_true(b.sum == sum);
    end_close(&a);
    end_close(&b);
    loop_stop(&l);
}

#define LARGE ((size_t)8 << 20)

struct sender {
    uint8_t *data;
    size_t sent;
    unsigned refused;
};

static struct sender sender;

static void send_on(struct end *e)
{
    while (sender.sent < LARGE) {
        struct bytes rest = bytes_from(sender.data + sender.sent, LARGE - sender.sent);
        ptrdiff_t n = link_write(e->link, &rest, 1);

        assert_true(n >= 0);
        sender.sent += (size_t)n;
        if ((size_t)n < rest.len) {
            sender.refused++;
            return;
        }
    }
}

static void sender_start(struct end *e)
{
    sender = (struct sender){.data = malloc(LARGE)};
    for (size_t i = 0; i < LARGE; i++)
        sender.data[i] = (uint8_t)(i * 2654435761U >> 13);
    e->on_writable = send_on;
    send_on(e);
}

static void a_large_write_is_taken_in_parts_and_told_when_there_is_room(void **state)
{
    struct loop l;
    struct end a, b;
    (void)state;

    loop_start(&l);
    pair(&l, &a, &b);
    sender_start(&a);
    assert_true(sender.sent < LARGE);
    UNTIL(&l, b.received == LARGE);
    settle_down(&l);
    assert_int_equal(a.writable, sender.refused);
    assert_true(b.sum == sum_on(0, bytes_from(sender.data, LARGE)));
    free(sender.data);
    end_close(&a);
    end_close(&b);
    loop_stop(&l);
}

static void a_reader_that_stops_stops_the_writer(void **state)
{
    struct loop l;
    struct end a, b;
    size_t sent;
    (void)state;

    loop_start(&l);
    pair(&l, &a, &b);
    link_read_stop(b.link);
    sender_start(&a);
    settle_down(&l);
    settle_down(&l);
    sent = sender.sent;
    assert_true(sent < LARGE);
    assert_int_equal(b.received, 0);
    settle_down(&l);
    assert_int_equal(sender.sent, sent);
    b.on_received = stop_at_first; /* and now one loan at a time */
    while (b.received < LARGE) {
        size_t before = b.received;

        link_read_start(b.link);
        UNTIL(&l, b.received > before);
    }
    assert_true(b.sum == sum_on(0, bytes_from(sender.data, LARGE)));
    assert_int_equal(a.writable, sender.refused);
    free(sender.data);
    end_close(&a);
    end_close(&b);
    loop_stop(&l);
}

static void a_fast_peer_does_not_starve_the_others(void **state)
{
    struct loop l;
    struct end a, b, c, d;
    size_t before;
    (void)state;

    loop_start(&l);
    pair(&l, &a, &b);
    pair(&l, &c, &d);
    link_read_stop(b.link);
    sender_start(&a);
    settle_down(&l);
    say(&c, "me too");
    link_read_start(b.link);
    before = b.received;
    turn(&l, PATIENCE);
    assert_true(b.received - before <= 2 * LINK_LOAN_MAX);
    UNTIL(&l, d.received == 6);
    assert_true(b.received < LARGE);
    UNTIL(&l, b.received == LARGE); /* and it goes on without a new event */
    free(sender.data);
    end_close(&a);
    end_close(&b);
    end_close(&c);
    end_close(&d);
    loop_stop(&l);
}

static void a_close_with_much_taken_still_delivers_it(void **state)
{
    struct loop l;
    struct end a, b;
    size_t sent;
    (void)state;

    loop_start(&l);
    pair(&l, &a, &b);
    link_read_stop(b.link);
    sender_start(&a);
    sent = sender.sent;
    a.on_writable = NULL;
    end_close(&a);
    link_read_start(b.link);
    UNTIL(&l, b.ended);
    assert_int_equal(b.received, sent);
    free(sender.data);
    end_close(&b);
    loop_stop(&l);
}

static struct end *crowd;
static unsigned crowd_count;

static void crowd_accepted(struct loop *l, struct link *link)
{
    struct end *e = &crowd[crowd_count++];

    *e = (struct end){.link = link, .loop = l, .on_received = echo_back};
    link_own(link, &end_events, e);
    link_read_start(link);
}

#define CROWD 1000U

static void a_thousand_links_at_once(void **state)
{
    struct loop l;
    struct end *clients = calloc(CROWD, sizeof(*clients));
    struct os_poller_sizes sizes;
    struct rlimit limit;
    unsigned n = 0;
    (void)state;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    crowd = calloc(CROWD, sizeof(*crowd));
    crowd_count = 0;
    loop_start(&l);
    l.on_accepted = crowd_accepted;
    for (unsigned i = 0; i < CROWD; i++)
        end_connect(&clients[i], &l, &l.at);
    UNTIL(&l, crowd_count == CROWD);
    os_poller_sizes(l.poller, &sizes);
    assert_int_equal(sizes.links, 2 * CROWD);
    assert_true(sizes.link <= 160);
    for (unsigned round = 1; round <= 3; round++) {
        for (unsigned i = 0; i < CROWD; i++)
            assert_int_equal(say(&clients[i], "ping"), 4);
        for (n = 0; n < CROWD; n++)
            UNTIL(&l, clients[n].received == 4 * round);
    }
    for (unsigned i = 0; i < CROWD; i++) {
        end_close(&clients[i]);
        assert_int_equal(clients[i].opened, 1);
    }
    for (n = 0; n < CROWD; n++) {
        UNTIL(&l, crowd[n].ended);
        end_close(&crowd[n]);
    }
    settle_down(&l);
    os_poller_sizes(l.poller, &sizes);
    assert_int_equal(sizes.links, 0);
    loop_stop(&l);
    free(crowd);
    free(clients);
}

static void closed_links_are_used_again(void **state)
{
    struct loop l;
    struct os_poller_sizes first, later;
    struct end a, b;
    (void)state;

    loop_start(&l);
    for (int i = 0; i < 50; i++) {
        pair(&l, &a, &b);
        end_close(&a);
        end_close(&b);
        settle_down(&l);
        if (i == 0)
            os_poller_sizes(l.poller, &first);
    }
    os_poller_sizes(l.poller, &later);
    assert_int_equal(later.allocations, first.allocations);
    loop_stop(&l);
}

/* In a child: the limit must not disturb the other tests. */
static void no_descriptors_in_child(void)
{
    struct loop l;
    struct end server = {.link = NULL};
    struct end refused = {.link = NULL};
    struct rlimit limit;
    int fds[64];
    unsigned n = 0;
    int client;

    loop_start(&l);
    client = raw_connect(&l.at);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = (rlim_t)client + 8;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    while (n < 64 && (fds[n] = dup(client)) >= 0)
        n++;
    l.accept_into = &server;
    UNTIL(&l, l.troubled);
    assert_int_equal(l.trouble, IO_NO_DESCRIPTORS);
    for (int i = 0; i < 50; i++)
        turn(&l, 0);
    assert_int_equal(l.troubled, 1); /* paused: told once, not again and again */
    assert_int_equal(poller_connect(l.poller, &l.at, NULL, &refused.link), IO_NO_DESCRIPTORS);
    listener_resume(l.listener);
    UNTIL(&l, l.troubled == 2);
    while (n > 0)
        close(fds[--n]);
    settle_down(&l);
    assert_null(server.link);
    listener_resume(l.listener);
    UNTIL(&l, server.link != NULL); /* who waited in the queue is served after all */
    assert_int_equal(send(client, "hi", 2, 0), 2);
    UNTIL(&l, server.received == 2);
    end_close(&server);
    close(client);
    loop_stop(&l);
}

static void without_descriptors_accepting_pauses_and_resumes(void **state)
{
    pid_t child = fork();
    int status = 0;
    (void)state;

    if (child == 0) {
        no_descriptors_in_child();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_paused_listener_leaves_them_in_the_queue(void **state)
{
    struct loop l;
    struct end client = {.link = NULL}, server = {.link = NULL};
    (void)state;

    loop_start(&l);
    listener_pause(l.listener);
    listener_pause(l.listener);
    l.accept_into = &server;
    end_connect(&client, &l, &l.at);
    UNTIL(&l, client.opened); /* by the kernel */
    settle_down(&l);
    assert_int_equal(l.accepted, 0);
    listener_resume(l.listener);
    listener_resume(l.listener);
    UNTIL(&l, l.accepted == 1);
    end_close(&client);
    end_close(&server);
    loop_stop(&l);
}

static void pause_now(struct loop *l, struct link *link)
{
    listener_pause(l->listener);
    link_close(link);
}

static void close_now(struct loop *l, struct link *link)
{
    listener_close(l->listener);
    l->listener = NULL;
    link_close(link);
}

static void a_listener_may_be_paused_and_closed_while_it_accepts(void **state)
{
    struct loop l;
    struct end clients[3];
    (void)state;

    loop_start(&l);
    l.on_accepted = pause_now;
    memset(clients, 0, sizeof(clients));
    for (int i = 0; i < 3; i++)
        end_connect(&clients[i], &l, &l.at);
    UNTIL(&l, clients[0].opened && clients[1].opened && clients[2].opened && l.accepted);
    settle_down(&l);
    assert_int_equal(l.accepted, 1);
    l.on_accepted = close_now;
    listener_resume(l.listener);
    UNTIL(&l, l.listener == NULL);
    settle_down(&l);
    assert_int_equal(l.accepted, 2);
    UNTIL(&l, clients[0].ended + clients[0].failed && clients[1].ended + clients[1].failed);
    UNTIL(&l, clients[2].ended + clients[2].failed); /* the kernel resets who was never accepted */
    for (int i = 0; i < 3; i++)
        end_close(&clients[i]);
    loop_stop(&l);
}

static void several_pollers_share_a_port_and_others_may_not(void **state)
{
    struct loop l, m;
    struct listener *other;
    struct listen_options shared = {.reuse_port = true};
    struct address any = loopback(0);
    (void)state;

    loop_init(&l);
    loop_init(&m);
    assert_int_equal(poller_listen(l.poller, &any, &shared, &l.listener), IO_OK);
    listener_address(l.listener, &l.at);
    assert_int_not_equal(l.at.port, 0);
    assert_int_equal(poller_listen(m.poller, &l.at, &shared, &m.listener), IO_OK);
    assert_int_equal(poller_listen(m.poller, &l.at, NULL, &other), IO_ADDRESS_IN_USE);
    any.ip[0] = 203; /* not ours: TEST-NET-3 */
    any.ip[1] = 0;
    any.ip[2] = 113;
    assert_int_equal(poller_listen(m.poller, &any, NULL, &other), IO_INVALID);
    loop_stop(&l);
    loop_stop(&m);
}

static void it_speaks_ipv6(void **state)
{
    struct loop l;
    struct end client, server;
    struct address at = {.kind = ADDRESS_IPV6, .ip = {[15] = 1}};
    int probe = socket(AF_INET6, SOCK_STREAM, 0);
    struct sockaddr_in6 in = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    (void)state;

    if (probe < 0 || bind(probe, (struct sockaddr *)&in, sizeof(in)) != 0) {
        close(probe);
        skip();
    }
    close(probe);
    loop_init(&l);
    loop_listen(&l, &at);
    pair(&l, &client, &server);
    assert_int_equal(l.peer.kind, ADDRESS_IPV6);
    say(&client, "six");
    UNTIL(&l, server.received == 3);
    end_close(&client);
    end_close(&server);
    loop_stop(&l);
}

static void nagle_is_off_on_both_sides(void **state)
{
    struct loop l;
    struct end client, server;
    unsigned found = 0;
    (void)state;

    loop_start(&l);
    pair(&l, &client, &server);
    for (int fd = 3; fd < 256; fd++) {
        int on = 0;
        socklen_t len = sizeof(on);

        if (getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, &len) != 0)
            continue;
        assert_true(on);
        assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
        found++;
    }
    assert_int_equal(found, 3); /* the listener too */
    end_close(&client);
    end_close(&server);
    loop_stop(&l);
}

static void keepalive_is_set_as_asked(void **state)
{
    struct loop l;
    struct end client = {.link = NULL}, server = {.link = NULL};
    struct connect_options o = {.keepalive = true,
                                .keepalive_idle_s = 33,
                                .keepalive_interval_s = 7,
                                .keepalive_probes = 4};
    unsigned found = 0;
    (void)state;

    loop_start(&l);
    l.accept_into = &server;
    assert_int_equal(poller_connect(l.poller, &l.at, &o, &client.link), IO_OK);
    link_own(client.link, &end_events, &client);
    UNTIL(&l, client.opened && server.link != NULL);
    for (int fd = 3; fd < 256; fd++) {
        int on = 0, idle = 0, every = 0, probes = 0;
        socklen_t len = sizeof(on);

        if (getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, &len) != 0 || !on)
            continue;
        getsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, &len);
        getsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, &len);
        getsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, &len);
        found += idle == 33 && every == 7 && probes == 4;
    }
    assert_int_equal(found, 1);
    end_close(&client);
    end_close(&server);
    loop_stop(&l);
}

static void the_path_is_known_of_tcp_links_only(void **state)
{
    struct loop l;
    struct end client, server;
    struct link_info info;
    char path[64];
    struct address at = {.kind = ADDRESS_UNIX, .path = path};
    (void)state;

    loop_start(&l);
    pair(&l, &client, &server);
    server.on_received = echo_back;
    say(&client, "ping");
    UNTIL(&l, client.received == 4);
    link_info(client.link, &info);
    assert_true(info.known);
    assert_true(info.rtt > 0 && info.rtt < NS_PER_S);
    assert_int_equal(info.retransmits, 0);
    end_close(&client);
    end_close(&server);
    loop_stop(&l);
    snprintf(path, sizeof(path), "/tmp/fb-os-info-%d", (int)getpid());
    loop_init(&l);
    loop_listen(&l, &at);
    pair(&l, &client, &server);
    link_info(client.link, &info);
    assert_false(info.known);
    link_info(server.link, &info);
    assert_false(info.known);
    end_close(&client);
    end_close(&server);
    loop_stop(&l);
}

static void hang_up(struct loop *l, struct link *link)
{
    (void)l;
    link_close(link);
}

static void unix_sockets_come_and_go_with_their_path(void **state)
{
    struct loop l;
    struct end client, server;
    struct stat about;
    struct listener *second;
    char path[64];
    struct address at = {.kind = ADDRESS_UNIX, .path = path};
    (void)state;

    snprintf(path, sizeof(path), "/tmp/fb-os-test-%d", (int)getpid());
    for (int round = 0; round < 2; round++) {
        loop_init(&l);
        loop_listen(&l, &at);
        assert_string_equal(l.at.path, path);
        pair(&l, &client, &server);
        server.on_received = echo_back;
        say(&client, "local");
        UNTIL(&l, client.received == 5);
        /* Somebody listens: it is not stale. */
        l.on_accepted = hang_up; /* finding that out is a connection, closed at once */
        assert_int_equal(poller_listen(l.poller, &at, NULL, &second), IO_ADDRESS_IN_USE);
        end_close(&client);
        UNTIL(&l, server.ended);
        end_close(&server);
        loop_stop(&l);
        assert_int_equal(lstat(path, &about), -1);
        if (round == 0) { /* left behind by a kill */
            struct sockaddr_un name = {.sun_family = AF_UNIX};
            int fd = socket(AF_UNIX, SOCK_STREAM, 0);

            strcpy(name.sun_path, path);
            assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
            close(fd);
            assert_int_equal(lstat(path, &about), 0);
        }
    }
}

static void a_file_at_the_path_is_never_removed(void **state)
{
    struct loop l;
    struct listener *listener;
    struct stat about;
    char path[64];
    char long_path[200];
    struct address at = {.kind = ADDRESS_UNIX, .path = path};
    int fd;
    (void)state;

    loop_init(&l);
    snprintf(path, sizeof(path), "/tmp/fb-os-file-%d", (int)getpid());
    fd = open(path, O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0);
    assert_int_equal(poller_listen(l.poller, &at, NULL, &listener), IO_ADDRESS_IN_USE);
    assert_int_equal(lstat(path, &about), 0);
    assert_true(S_ISREG(about.st_mode));
    close(fd);
    unlink(path);
    /* A path that became somebody else's meanwhile is left alone, too. */
    assert_int_equal(poller_listen(l.poller, &at, NULL, &l.listener), IO_OK);
    unlink(path);
    fd = open(path, O_CREAT | O_WRONLY, 0600);
    listener_close(l.listener);
    l.listener = NULL;
    assert_int_equal(lstat(path, &about), 0);
    close(fd);
    unlink(path);
    memset(long_path, 'a', sizeof(long_path) - 1);
    long_path[sizeof(long_path) - 1] = '\0';
    at.path = long_path;
    assert_int_equal(poller_listen(l.poller, &at, NULL, &listener), IO_INVALID);
    loop_stop(&l);
}

static void waiting_ends_at_the_time_asked_for(void **state)
{
    struct loop l;
    mono_ns before, after;
    (void)state;

    loop_init(&l);
    for (span_ns length = 300 * NS_PER_US; length <= 3 * NS_PER_MS; length += NS_PER_MS) {
        before = clock_read(&l.clock);
        poller_wait(l.poller, before + length);
        after = clock_read(&l.clock);
        assert_true(after >= before + length);
        assert_true(after < before + length + NS_PER_S);
        poller_dispatch(l.poller);
    }
    poller_wait(l.poller, 0); /* the past */
    poller_dispatch(l.poller);
    loop_stop(&l);
}

struct waker {
    struct poller *poller;
    unsigned wakes;
    _Atomic unsigned done;
};

static void *wake_often(void *arg)
{
    struct waker *w = arg;

    for (unsigned i = 0; i < w->wakes; i++) {
        w->done = i + 1;
        poller_wake(w->poller);
    }
    return NULL;
}

static void a_wake_from_another_thread_is_never_lost(void **state)
{
    struct loop l;
    struct waker w = {.wakes = 20000};
    pthread_t thread;
    (void)state;

    loop_init(&l);
    w.poller = l.poller;
    assert_int_equal(pthread_create(&thread, NULL, wake_often, &w), 0);
    /* Were one lost, this would sleep for ever: nothing else happens on this poller. */
    while (w.done < w.wakes) {
        poller_wait(l.poller, MONO_NEVER);
        poller_dispatch(l.poller);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    poller_wake(l.poller); /* before the wait counts, too */
    poller_wait(l.poller, MONO_NEVER);
    poller_dispatch(l.poller);
    loop_stop(&l);
}

static void freeing_the_poller_closes_what_is_open(void **state)
{
    struct loop l;
    struct end a, b, c = {.link = NULL};
    unsigned before = open_descriptors();
    char path[64];
    struct address at = {.kind = ADDRESS_UNIX, .path = path};
    struct listener *local;
    struct stat about;
    (void)state;

    snprintf(path, sizeof(path), "/tmp/fb-os-free-%d", (int)getpid());
    loop_start(&l);
    assert_int_equal(poller_listen(l.poller, &at, NULL, &local), IO_OK);
    pair(&l, &a, &b);
    at.path = "/nonexistent/x";
    end_connect(&c, &l, &at);
    l.listener = NULL;
    loop_stop(&l);
    assert_int_equal(open_descriptors(), before);
    assert_int_equal(lstat(path, &about), -1);
    os_poller_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_go_both_ways),
        cmocka_unit_test(nothing_is_told_outside_dispatch),
        cmocka_unit_test(parts_are_written_in_order),
        cmocka_unit_test(each_side_may_end_first_and_the_other_goes_on),
        cmocka_unit_test(an_end_waits_until_reading_starts),
        cmocka_unit_test(data_before_a_reset_is_received_first),
        cmocka_unit_test(a_write_error_hides_neither_the_data_nor_the_reset),
        cmocka_unit_test(an_answer_an_end_and_then_a_reset_come_in_that_order),
        cmocka_unit_test(a_write_error_after_an_end_still_ends_in_a_reset),
        cmocka_unit_test(a_reset_is_told_while_reading_is_stopped_once_no_bytes_wait),
        cmocka_unit_test(a_reset_is_held_back_while_bytes_wait),
        cmocka_unit_test(a_refused_connect_fails),
        cmocka_unit_test(a_connect_that_fails_at_once_is_told_in_dispatch),
        cmocka_unit_test(connect_and_close_in_one_turn_tells_nothing),
        cmocka_unit_test(what_is_closed_inside_a_callback_hears_no_more),
        cmocka_unit_test(closing_oneself_inside_received_is_safe),
        cmocka_unit_test(an_abort_is_a_reset_for_the_peer),
        cmocka_unit_test(bytes_one_at_a_time_arrive_whole),
        cmocka_unit_test(a_large_write_is_taken_in_parts_and_told_when_there_is_room),
        cmocka_unit_test(a_reader_that_stops_stops_the_writer),
        cmocka_unit_test(a_fast_peer_does_not_starve_the_others),
        cmocka_unit_test(a_close_with_much_taken_still_delivers_it),
        cmocka_unit_test(a_thousand_links_at_once),
        cmocka_unit_test(closed_links_are_used_again),
        cmocka_unit_test(without_descriptors_accepting_pauses_and_resumes),
        cmocka_unit_test(a_paused_listener_leaves_them_in_the_queue),
        cmocka_unit_test(a_listener_may_be_paused_and_closed_while_it_accepts),
        cmocka_unit_test(several_pollers_share_a_port_and_others_may_not),
        cmocka_unit_test(it_speaks_ipv6),
        cmocka_unit_test(nagle_is_off_on_both_sides),
        cmocka_unit_test(keepalive_is_set_as_asked),
        cmocka_unit_test(the_path_is_known_of_tcp_links_only),
        cmocka_unit_test(unix_sockets_come_and_go_with_their_path),
        cmocka_unit_test(a_file_at_the_path_is_never_removed),
        cmocka_unit_test(waiting_ends_at_the_time_asked_for),
        cmocka_unit_test(a_wake_from_another_thread_is_never_lost),
        cmocka_unit_test(freeing_the_poller_closes_what_is_open),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
