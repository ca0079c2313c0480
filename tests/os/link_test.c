/* SPDX-License-Identifier: Apache-2.0 */
#include "io/link.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "os/loop.h"

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
        settle_down(&l);
        assert_int_equal(first->failed, 0); /* our own doing says nothing of the peer */
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

static void stop_at_first(struct end *e, struct bytes data)
{
    (void)data;
    link_read_stop(e->link);
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
    say(&b, "thanks"); /* a later event finds it writable, too: that is not news */
    UNTIL(&l, a.received == 6);
    assert_int_equal(a.writable, sender.refused);
    free(sender.data);
    end_close(&a);
    end_close(&b);
    loop_stop(&l);
}

static void what_opened_left_blocked_is_not_writable_at_once(void **state)
{
    struct loop l;
    struct end client = {.link = NULL, .on_opened = sender_start};
    (void)state;

    loop_start(&l);
    listener_pause(l.listener);
    end_connect(&client, &l, &l.at);
    while (!client.opened)
        turn(&l, PATIENCE);
    assert_true(sender.refused > 0);
    assert_int_equal(client.writable, 0);
    free(sender.data);
    end_close(&client);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_go_both_ways),
        cmocka_unit_test(parts_are_written_in_order),
        cmocka_unit_test(each_side_may_end_first_and_the_other_goes_on),
        cmocka_unit_test(an_end_waits_until_reading_starts),
        cmocka_unit_test(what_is_closed_inside_a_callback_hears_no_more),
        cmocka_unit_test(closing_oneself_inside_received_is_safe),
        cmocka_unit_test(bytes_one_at_a_time_arrive_whole),
        cmocka_unit_test(a_large_write_is_taken_in_parts_and_told_when_there_is_room),
        cmocka_unit_test(what_opened_left_blocked_is_not_writable_at_once),
        cmocka_unit_test(a_reader_that_stops_stops_the_writer),
        cmocka_unit_test(a_fast_peer_does_not_starve_the_others),
        cmocka_unit_test(a_close_with_much_taken_still_delivers_it),
        cmocka_unit_test(nagle_is_off_on_both_sides),
        cmocka_unit_test(keepalive_is_set_as_asked),
        cmocka_unit_test(the_path_is_known_of_tcp_links_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
