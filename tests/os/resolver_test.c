/* SPDX-License-Identifier: Apache-2.0 */
#include "os/resolver.h"

#include <stdio.h>
#include <unistd.h>

#include <netinet/in.h>
#include <sys/socket.h>

#include "os/loop.h"
#include "os/watch.h"

struct answer {
    unsigned calls;
    int error;
    size_t count;
    span_ns ttl;
    struct address addresses[8];
};

static void answered(void *owner, int error, const struct address *addresses, size_t n, span_ns ttl)
{
    struct answer *a = owner;

    a->calls++;
    a->error = error;
    a->count = n;
    a->ttl = ttl;
    for (size_t i = 0; i < n && i < 8; i++) {
        assert_int_equal(addresses[i].port, 0);
        a->addresses[i] = addresses[i];
    }
}

/* A name server that knows what its tests ask for. */
struct server {
    int fd;
    uint16_t port;
    struct os_watch *watch;
    unsigned asked;
    bool silent;
};

static size_t put_record(uint8_t *at, uint16_t type, uint32_t ttl, const void *data, uint16_t len)
{
    const uint8_t head[] = {
        0xc0, 12, 0, (uint8_t)type, 0, 1, 0, 0, (uint8_t)(ttl >> 8), (uint8_t)ttl, 0, (uint8_t)len};

    memcpy(at, head, sizeof(head));
    memcpy(at + sizeof(head), data, len);
    return sizeof(head) + len;
}

/* |query| has a name of one label at 12: its first letter says what to answer. */
static size_t reply_to(uint8_t *query, size_t n)
{
    uint8_t kind = query[13];
    uint16_t type = query[n - 3];
    size_t question = n;

    /* An additional OPT record, if any, is cut off. */
    question = 12 + (size_t)query[12] + 1 + 1 + 4;
    for (size_t at = 12; query[at] != 0; at += query[at] + 1u)
        question = at + query[at] + 1u + 1 + 4;
    type = query[question - 3];
    query[2] = 0x81;
    query[3] = kind == 'n' ? 0x83 : kind == 's' ? 0x82 : 0x80; /* NXDOMAIN, SERVFAIL, fine */
    memset(query + 6, 0, 6);
    n = question;
    if (kind == 'd' && type == 1) {
        query[7] = 2;
        n += put_record(query + n, 1, 300, "\x0a\x00\x00\x01", 4);
        n += put_record(query + n, 1, 60, "\x0a\x00\x00\x02", 4);
    } else if (kind == 'd' && type == 28) {
        query[7] = 1;
        n += put_record(query + n, 28, 120, "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1", 16);
    } else if (kind == 'f' && type == 1) {
        query[7] = 1;
        n += put_record(query + n, 1, 60, "\x0a\x00\x00\x03", 4);
    }
    return n;
}

static void serve(void *owner, int fd, unsigned ready)
{
    struct server *s = owner;
    struct sockaddr_in from;
    socklen_t len = sizeof(from);
    uint8_t message[1024];
    ssize_t n = recvfrom(fd, message, 512, MSG_DONTWAIT, (struct sockaddr *)&from, &len);

    assert_true(ready & OS_READABLE);
    if (n < 18)
        return;
    s->asked++;
    if (s->silent)
        return;
    n = (ssize_t)reply_to(message, (size_t)n);
    sendto(fd, message, (size_t)n, 0, (struct sockaddr *)&from, len);
}

static void server_open(struct server *s, struct loop *l)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(in);

    *s = (struct server){.fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    assert_int_equal(bind(s->fd, (struct sockaddr *)&in, sizeof(in)), 0);
    assert_int_equal(getsockname(s->fd, (struct sockaddr *)&in, &len), 0);
    s->port = ntohs(in.sin_port);
    assert_int_equal(os_watch_add(l->poller, s->fd, OS_READABLE, &s->watch), IO_OK);
    os_watch_own(s->watch, serve, s);
}

static void server_close(struct server *s)
{
    os_watch_remove(s->watch);
    close(s->fd);
}

static struct resolver *resolver_at(struct loop *l, struct server *s)
{
    char servers[32];
    struct os_resolver_options o = {.servers = servers, .timeout_ms = 100, .tries = 2};
    struct resolver *r;

    snprintf(servers, sizeof(servers), "127.0.0.1:%u", s->port);
    assert_int_equal(os_resolver_create(l->poller, &o, &r), IO_OK);
    return r;
}

static bool has_ip(const struct answer *a, const char *text)
{
    struct address wanted;

    assert_true(address_parse_ip(bytes_of(text), &wanted));
    for (size_t i = 0; i < a->count; i++) {
        if (address_equal(&a->addresses[i], &wanted))
            return true;
    }
    return false;
}

static void localhost_is_known_without_a_server(void **state)
{
    struct loop l;
    struct resolver *r;
    struct answer a = {.calls = 0};
    (void)state;

    loop_init(&l);
    assert_int_equal(os_resolver_create(l.poller, NULL, &r), IO_OK);
    resolver_lookup(r, BYTES("localhost"), answered, &a);
    assert_int_equal(a.calls, 0);
    UNTIL(&l, a.calls);
    assert_int_equal(a.error, IO_OK);
    assert_true(has_ip(&a, "127.0.0.1"));
    for (size_t i = 0; i < a.count; i++)
        assert_true(address_is_loopback(&a.addresses[i]));
    assert_true(a.ttl >= NS_PER_S);
    os_resolver_free(r);
    os_resolver_free(NULL);
    loop_stop(&l);
}

static void numbers_are_answered_as_they_are(void **state)
{
    struct loop l;
    struct resolver *r;
    struct answer four = {.calls = 0}, six = {.calls = 0};
    (void)state;

    loop_init(&l);
    assert_int_equal(os_resolver_create(l.poller, NULL, &r), IO_OK);
    resolver_lookup(r, BYTES("192.0.2.7"), answered, &four);
    resolver_lookup(r, BYTES("2001:db8::7"), answered, &six);
    assert_int_equal(four.calls + six.calls, 0);
    poller_wait(l.poller, MONO_NEVER); /* must not sleep */
    poller_dispatch(l.poller);
    assert_int_equal(four.calls, 1);
    assert_int_equal(six.calls, 1);
    assert_true(has_ip(&four, "192.0.2.7"));
    assert_true(has_ip(&six, "2001:db8::7"));
    assert_true(four.ttl == UINT64_MAX);
    os_resolver_free(r);
    loop_stop(&l);
}

static void both_families_are_asked_and_the_shortest_ttl_counts(void **state)
{
    struct loop l;
    struct server s;
    struct answer a = {.calls = 0}, b = {.calls = 0};
    (void)state;

    loop_init(&l);
    server_open(&s, &l);
    struct resolver *r = resolver_at(&l, &s);

    resolver_lookup(r, BYTES("dual.example.test"), answered, &a);
    resolver_lookup(r, BYTES("four.example.test"), answered, &b);
    UNTIL(&l, a.calls && b.calls);
    assert_int_equal(a.error, IO_OK);
    assert_int_equal(a.count, 3);
    assert_true(has_ip(&a, "10.0.0.1") && has_ip(&a, "10.0.0.2") && has_ip(&a, "2001:db8::1"));
    assert_true(a.ttl == 60 * NS_PER_S);
    assert_int_equal(b.count, 1);
    assert_true(has_ip(&b, "10.0.0.3"));
    settle_down(&l);
    assert_int_equal(a.calls, 1);
    assert_int_equal(b.calls, 1);
    os_resolver_free(r);
    server_close(&s);
    loop_stop(&l);
}

static void what_does_not_resolve_says_why(void **state)
{
    struct loop l;
    struct server s;
    struct answer none = {.calls = 0}, late = {.calls = 0}, bad = {.calls = 0},
                  empty = {.calls = 0};
    struct answer huge = {.calls = 0}, zero = {.calls = 0}, sick = {.calls = 0};
    char name[400];
    (void)state;

    loop_init(&l);
    server_open(&s, &l);
    struct resolver *r = resolver_at(&l, &s);

    memset(name, 'a', sizeof(name));
    resolver_lookup(r, BYTES("none.example.test"), answered, &none);
    resolver_lookup(r, BYTES("sick.example.test"), answered, &sick);
    resolver_lookup(r, BYTES("a..b"), answered, &bad);
    resolver_lookup(r, BYTES_NONE, answered, &empty);
    resolver_lookup(r, bytes_from(name, sizeof(name)), answered, &huge);
    resolver_lookup(r, BYTES("nul\0in.it"), answered, &zero);
    UNTIL(&l, none.calls && sick.calls && bad.calls && empty.calls && huge.calls && zero.calls);
    assert_int_equal(none.error, IO_NOT_FOUND);
    assert_int_equal(none.count, 0);
    assert_true(sick.error < 0 && sick.error != IO_NOT_FOUND);
    assert_true(bad.error < 0);
    assert_int_equal(empty.error, IO_INVALID);
    assert_int_equal(huge.error, IO_INVALID);
    assert_int_equal(zero.error, IO_INVALID);
    s.silent = true;
    s.asked = 0;
    resolver_lookup(r, BYTES("dead.example.test"), answered, &late);
    UNTIL(&l, late.calls); /* by the timer alone: nothing ever comes back */
    assert_int_equal(late.error, IO_TIMED_OUT);
    assert_true(s.asked >= 4); /* two tries for each family */
    os_resolver_free(r);
    server_close(&s);
    loop_stop(&l);
}

static void lookups_under_way_may_be_dropped(void **state)
{
    struct loop l;
    struct server s;
    struct answer a = {.calls = 0}, b = {.calls = 0};
    (void)state;

    loop_init(&l);
    server_open(&s, &l);
    s.silent = true;
    struct resolver *r = resolver_at(&l, &s);

    resolver_lookup(r, BYTES("dead.example.test"), answered, &a);
    UNTIL(&l, s.asked > 0);
    resolver_lookup(r, BYTES("192.0.2.1"), answered, &b);
    os_resolver_free(r);
    settle_down(&l);
    assert_int_equal(a.calls + b.calls, 0);
    server_close(&s);
    loop_stop(&l);
}

static void many_lookups_at_once_all_end(void **state)
{
    struct loop l;
    struct server s;
    static struct answer answers[300];
    unsigned done = 0;
    (void)state;

    loop_init(&l);
    server_open(&s, &l);
    struct resolver *r = resolver_at(&l, &s);

    memset(answers, 0, sizeof(answers));
    for (unsigned i = 0; i < 300; i++) {
        char name[64];

        snprintf(name, sizeof(name), "%c%u.example.test", "dfn"[i % 3], i);
        resolver_lookup(r, bytes_of(name), answered, &answers[i]);
    }
    for (done = 0; done < 300; done++)
        UNTIL(&l, answers[done].calls);
    for (unsigned i = 0; i < 300; i++) {
        assert_int_equal(answers[i].calls, 1);
        assert_int_equal(answers[i].count, i % 3 == 0 ? 3 : i % 3 == 1 ? 1 : 0);
    }
    os_resolver_free(r);
    server_close(&s);
    loop_stop(&l);
}

static void servers_that_cannot_be_are_refused(void **state)
{
    struct os_resolver_options o = {.servers = "not an address"};
    struct loop l;
    struct resolver *r;
    (void)state;

    loop_init(&l);
    assert_int_equal(os_resolver_create(l.poller, &o, &r), IO_INVALID);
    settle_down(&l);
    loop_stop(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(localhost_is_known_without_a_server),
        cmocka_unit_test(numbers_are_answered_as_they_are),
        cmocka_unit_test(both_families_are_asked_and_the_shortest_ttl_counts),
        cmocka_unit_test(what_does_not_resolve_says_why),
        cmocka_unit_test(lookups_under_way_may_be_dropped),
        cmocka_unit_test(many_lookups_at_once_all_end),
        cmocka_unit_test(servers_that_cannot_be_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
