/* SPDX-License-Identifier: Apache-2.0 */
#include "io/link.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

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

static void a_write_that_fails_is_followed_by_failed_even_unread(void **state)
{
    struct loop l;
    struct end client, server;
    char path[64];
    struct address at = {.kind = ADDRESS_UNIX, .path = path};
    (void)state;

    /* On a unix socket a close is no error and no event tells it apart from an end. */
    snprintf(path, sizeof(path), "/tmp/fb-os-write-%d", (int)getpid());
    loop_init(&l);
    loop_listen(&l, &at);
    pair(&l, &client, &server);
    link_read_stop(client.link);
    end_close(&server);
    settle_down(&l);
    assert_int_equal(client.failed, 0);
    assert_int_equal(say(&client, "x"), IO_CLOSED);
    assert_int_equal(client.failed, 0); /* never out of the call */
    UNTIL(&l, client.failed);
    assert_int_equal(client.error, IO_RESET);
    end_close(&client);
    loop_stop(&l);
}

/* A unix peer may only refuse to read, and go on speaking. */
static void a_peer_that_does_not_read_is_still_heard(void **state)
{
    struct loop l;
    struct end client = {.link = NULL};
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    struct address at = {.kind = ADDRESS_UNIX, .path = name.sun_path};
    int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int fd;
    (void)state;

    snprintf(name.sun_path, sizeof(name.sun_path), "/tmp/fb-os-deaf-%d", (int)getpid());
    assert_int_equal(bind(listening, (struct sockaddr *)&name, sizeof(name)), 0);
    assert_int_equal(listen(listening, 1), 0);
    loop_init(&l);
    end_connect(&client, &l, &at);
    fd = accept(listening, NULL, NULL);
    UNTIL(&l, client.opened);
    for (int reading = 0; reading < 2; reading++) {
        if (reading)
            link_read_start(client.link);
        else
            link_read_stop(client.link);
        assert_int_equal(shutdown(fd, SHUT_RD), 0);
        assert_int_equal(say(&client, "x"), IO_CLOSED);
        settle_down(&l);
        assert_int_equal(client.failed, 0);
    }
    assert_int_equal(send(fd, "still", 5, 0), 5);
    UNTIL(&l, client.received == 5);
    close(fd);
    UNTIL(&l, client.failed); /* after the end */
    assert_int_equal(client.ended, 1);
    end_close(&client);
    close(listening);
    unlink(name.sun_path);
    loop_stop(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_before_a_reset_is_received_first),
        cmocka_unit_test(a_write_error_hides_neither_the_data_nor_the_reset),
        cmocka_unit_test(an_answer_an_end_and_then_a_reset_come_in_that_order),
        cmocka_unit_test(a_write_error_after_an_end_still_ends_in_a_reset),
        cmocka_unit_test(a_reset_is_told_while_reading_is_stopped_once_no_bytes_wait),
        cmocka_unit_test(a_reset_is_held_back_while_bytes_wait),
        cmocka_unit_test(a_refused_connect_fails),
        cmocka_unit_test(a_connect_that_fails_at_once_is_told_in_dispatch),
        cmocka_unit_test(connect_and_close_in_one_turn_tells_nothing),
        cmocka_unit_test(an_abort_is_a_reset_for_the_peer),
        cmocka_unit_test(a_write_that_fails_is_followed_by_failed_even_unread),
        cmocka_unit_test(a_peer_that_does_not_read_is_still_heard),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
