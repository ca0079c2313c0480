/* SPDX-License-Identifier: Apache-2.0 */
/* Names to hosts: what is known of a name is what was last known well. */
#include "control/discovery.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/list.h"
#include "base/rng.h"
#include "base/text.h"
#include "io/error.h"
#include "policy/name_set.h"

#define S         NS_PER_S
#define ASKED_MAX 16

/* A resolver that the test answers. */
struct asked {
    char host[64];
    resolver_done done;
    void *owner;
};

struct world {
    struct resolver resolver;
    struct asked asked[ASKED_MAX];
    uint32_t asked_count;
    uint32_t asked_total;
    struct log log;
    unsigned lines;
    char event[40];
    struct clock clock;
    struct wheel wheel;
    mono_ns now;
    struct discovery *discovery;
    struct snapshot *root;
    struct snapshot *in_force;
};

static struct world w;
static span_ns web_hold; /* of the cluster "web" that is made next */

static void lookup(struct resolver *r, struct bytes host, resolver_done done, void *owner)
{
    struct asked *a = &w.asked[w.asked_count++];
    (void)r;

    assert_true(w.asked_count <= ASKED_MAX && host.len < sizeof(a->host));
    memcpy(a->host, host.data, host.len);
    a->host[host.len] = '\0';
    a->done = done;
    a->owner = owner;
    w.asked_total++;
}

static mono_ns read_clock(struct clock *c)
{
    (void)c;
    return w.now;
}

__attribute__((format(printf, 4, 0))) static void
remember(struct log *l, enum log_level level, const char *event, const char *format, va_list args)
{
    (void)l;
    (void)level;
    (void)format;
    (void)args;
    w.lines++;
    snprintf(w.event, sizeof(w.event), "%s", event);
}

static struct address ip(uint8_t last)
{
    return (struct address){.kind = ADDRESS_IPV4, .ip = {10, 0, 0, last}};
}

static struct endpoint named(struct snapshot *s, const char *name, uint8_t last, uint16_t port)
{
    struct endpoint e = {.hostname = bytes_of(name), .zone = BYTES("a"), .weight = 1};
    char room[ADDRESS_TEXT_MAX];
    struct text t;

    e.address = ip(last);
    e.address.port = port;
    text_init(&t, room, sizeof(room));
    address_write(&t, &e.address);
    e.text = arena_copy(&s->arena, text_bytes(&t));
    if (name[0] == '\0')
        e.hostname = e.text;
    return e;
}

/* Cluster "web": 10.0.0.1:80 and the name web.test:8080; "db": db.test:5432; "fixed": none. */
static struct snapshot *make(void)
{
    struct snapshot *s = snapshot_create();
    struct cluster *c = arena_take(&s->arena, 3 * sizeof(*c));
    struct endpoint *web = arena_take(&s->arena, 2 * sizeof(*web));
    struct endpoint *db = arena_take(&s->arena, sizeof(*db));
    struct endpoint *fixed = arena_take(&s->arena, sizeof(*fixed));

    web[0] = named(s, "", 1, 80);
    web[1] = named(s, "web.test", 2, 8080);
    db[0] = named(s, "DB.test", 3, 5432);
    fixed[0] = named(s, "", 9, 80);
    c[0] = (struct cluster){
        .name = BYTES("web"), .endpoint_count = 2, .endpoints = web, .dns_hold = web_hold};
    c[1] = (struct cluster){.name = BYTES("db"), .endpoint_count = 1, .endpoints = db};
    c[2] = (struct cluster){.name = BYTES("fixed"), .endpoint_count = 1, .endpoints = fixed};
    s->cluster_count = 3;
    s->clusters = c;
    s->drain_timeout = 7 * S;
    return s;
}

static void start(void)
{
    const struct discovery_setup setup = {
        .wheel = &w.wheel, .clock = &w.clock, .log = &w.log, .resolver = &w.resolver};

    memset(&w, 0, sizeof(w));
    w.resolver.lookup = lookup;
    w.log.write = remember;
    w.clock.read = read_clock;
    w.now = 100 * S;
    wheel_init(&w.wheel, w.now);
    w.discovery = discovery_create(&setup);
    w.root = make();
    assert_true(snapshot_attach_state(w.root, 1));
    w.in_force = snapshot_take(w.root);
    assert_true(discovery_begin(w.discovery, w.root));
}

static void stop(void)
{
    discovery_free(w.discovery);
    assert_true(wheel_next(&w.wheel) == MONO_NEVER);
    snapshot_drop(w.in_force);
    snapshot_drop(w.root);
}

static void answer(const char *host, int error, const char *lasts, span_ns ttl)
{
    struct address at[NAME_SET_MAX + 8];
    size_t n = strlen(lasts);

    for (size_t i = 0; i < n; i++)
        at[i] = ip((uint8_t)lasts[i]);
    for (uint32_t i = 0; i < w.asked_count; i++) {
        struct asked a = w.asked[i];

        if (strcmp(a.host, host) != 0)
            continue;
        w.asked[i] = w.asked[--w.asked_count];
        a.done(a.owner, error, at, n, ttl);
        return;
    }
    fail_msg("%s was not asked for", host);
}

static void pass(span_ns span)
{
    mono_ns end = w.now + span;

    while (wheel_next(&w.wheel) <= end) {
        w.now = wheel_next(&w.wheel) > w.now ? wheel_next(&w.wheel) : w.now;
        wheel_run(&w.wheel, w.now);
    }
    w.now = end;
}

/* As the control loop does, but for the workers: what was learnt goes over by name. */
static void follow(void)
{
    struct snapshot *root = discovery_changed(w.discovery);
    struct snapshot *next;

    assert_non_null(root);
    next = discovery_fill(w.discovery, root);
    assert_non_null(next);
    for (uint32_t i = 0; i < next->cluster_count; i++)
        ((struct cluster *)(uintptr_t)next->clusters)[i].state =
            cluster_state_take(w.root->clusters[i].state);
    discovery_adopt(w.discovery, root, next);
    assert_null(discovery_changed(w.discovery));
    snapshot_drop(w.in_force);
    w.in_force = next;
}

static void expect_hosts(uint32_t cluster, const char *const *texts)
{
    const struct cluster *c = &w.in_force->clusters[cluster];
    uint32_t n = 0;

    for (; texts[n] != NULL; n++) {
        assert_true(n < c->endpoint_count);
        assert_true(bytes_equal(c->endpoints[n].text, bytes_of(texts[n])));
    }
    assert_int_equal(c->endpoint_count, n);
}

#define HOSTS(...)                                                                                 \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

static uint64_t stat(uint32_t cluster, enum discovery_metric m)
{
    return cell_read(&w.root->clusters[cluster].state->discovery[m]);
}

static void each_name_is_asked_for_at_once(void **state)
{
    (void)state;

    start();
    assert_int_equal(w.asked_count, 2);
    assert_int_equal(stat(0, DISCOVERY_update_attempt), 1);
    assert_int_equal(stat(1, DISCOVERY_update_attempt), 1);
    assert_int_equal(stat(2, DISCOVERY_update_attempt), 0);
    assert_null(discovery_changed(w.discovery));
    answer("web.test", IO_OK, "\2", 30 * S); /* as it began: nothing to do */
    assert_null(discovery_changed(w.discovery));
    assert_int_equal(stat(0, DISCOVERY_update_success), 1);
    stop();
}

static void several_addresses_are_several_hosts(void **state)
{
    const struct endpoint *e;
    (void)state;

    start();
    answer("web.test", IO_OK, "\5\2\7", 30 * S);
    follow();
    expect_hosts(0, HOSTS("10.0.0.1:80", "10.0.0.2:8080", "10.0.0.5:8080", "10.0.0.7:8080"));
    expect_hosts(1, HOSTS("10.0.0.3:5432"));
    expect_hosts(2, HOSTS("10.0.0.9:80"));
    e = &w.in_force->clusters[0].endpoints[3];
    assert_true(bytes_equal(e->hostname, BYTES("web.test")));
    assert_true(bytes_equal(e->zone, BYTES("a")));
    assert_int_equal(e->address.port, 8080);
    assert_int_equal(w.in_force->drain_timeout, 7 * S);
    assert_ptr_equal(w.in_force->base, w.root);
    stop();
}

static void an_answer_in_another_order_changes_nothing(void **state)
{
    (void)state;

    start();
    answer("web.test", IO_OK, "\2\5\7", 5 * S);
    follow();
    pass(5 * S);
    answer("web.test", IO_OK, "\7\2\5\7", 5 * S);
    assert_null(discovery_changed(w.discovery));
    pass(5 * S);
    answer("web.test", IO_OK, "\6\7\2", 5 * S);
    follow();
    expect_hosts(0, HOSTS("10.0.0.1:80", "10.0.0.2:8080", "10.0.0.7:8080", "10.0.0.6:8080"));
    stop();
}

static void what_fails_or_is_empty_keeps_the_last_good_set(void **state)
{
    (void)state;

    start();
    answer("web.test", IO_OK, "\2\5", 5 * S);
    follow();
    w.lines = 0;
    pass(5 * S);
    answer("web.test", IO_NOT_FOUND, "", 0);
    assert_int_equal(stat(0, DISCOVERY_update_failure), 1);
    assert_string_equal(w.event, "dns.failed");
    pass(5 * S);
    answer("web.test", IO_OK, "", 300 * S);
    assert_int_equal(stat(0, DISCOVERY_update_empty), 1);
    assert_null(discovery_changed(w.discovery));
    assert_int_equal(w.lines, 1); /* once an episode */
    expect_hosts(0, HOSTS("10.0.0.1:80", "10.0.0.2:8080", "10.0.0.5:8080"));
    pass(10 * S);
    answer("web.test", IO_OK, "\2\5", 5 * S);
    assert_int_equal(w.lines, 2);
    assert_string_equal(w.event, "dns.recovered");
    assert_null(discovery_changed(w.discovery));
    stop();
}

static uint32_t asked_within(span_ns span)
{
    uint32_t before = w.asked_total;

    pass(span);
    return w.asked_total - before;
}

static void an_answer_holds_for_its_time_to_live(void **state)
{
    static const struct {
        span_ns ttl;
        span_ns held;
    } rows[] = {{30 * S, 30 * S},
                {0, DISCOVERY_LEAST},
                {NS_PER_MS, DISCOVERY_LEAST},
                {UINT64_MAX, DISCOVERY_MOST}};
    (void)state;

    start();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        answer("web.test", IO_OK, "\2", rows[i].ttl);
        assert_int_equal(asked_within(rows[i].held - 1), 0);
        assert_int_equal(asked_within(NS_PER_MS), 1);
    }
    stop();
}

static void failures_are_retried_more_and_more_slowly(void **state)
{
    static const span_ns waits[] = {5 * S, 10 * S, 20 * S, 40 * S, 60 * S, 60 * S, 60 * S};
    (void)state;

    start();
    for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
        answer("web.test", IO_TIMED_OUT, "", 0);
        assert_int_equal(asked_within(waits[i] - 1), 0);
        assert_int_equal(asked_within(NS_PER_MS), 1);
    }
    for (int i = 0; i < 40; i++) { /* no shift too far */
        answer("web.test", IO_TIMED_OUT, "", 0);
        pass(60 * S + NS_PER_MS);
    }
    answer("web.test", IO_OK, "\2", 5 * S);
    assert_int_equal(asked_within(5 * S - 1), 0);
    stop();
}

static void an_address_that_two_have_is_one_host(void **state)
{
    (void)state;

    start();
    answer("web.test", IO_OK, "\2\2\5\2", 5 * S);
    follow();
    expect_hosts(0, HOSTS("10.0.0.1:80", "10.0.0.2:8080", "10.0.0.5:8080"));
    pass(5 * S);
    ((struct endpoint *)(uintptr_t)w.root->clusters[0].endpoints)[1].address.port = 80;
    answer("web.test", IO_OK, "\1\5", 5 * S); /* 10.0.0.1:80 stands there already */
    follow();
    expect_hosts(0, HOSTS("10.0.0.1:80", "10.0.0.5:80"));
    stop();
}

static void more_addresses_than_a_name_may_have_are_dropped(void **state)
{
    struct address many[NAME_SET_MAX + 50];
    struct asked a;
    (void)state;

    start();
    for (size_t i = 0; i < NAME_SET_MAX + 50; i++)
        many[i] =
            (struct address){.kind = ADDRESS_IPV4, .ip = {10, 1, (uint8_t)(i >> 8), (uint8_t)i}};
    a = w.asked[0];
    w.asked_count = 0;
    a.done(a.owner, IO_OK, many, NAME_SET_MAX + 50, 5 * S);
    follow();
    assert_int_equal(w.in_force->clusters[strcmp(a.host, "web.test") == 0 ? 0 : 1].endpoint_count,
                     NAME_SET_MAX + (strcmp(a.host, "web.test") == 0 ? 1 : 0));
    stop();
}

/* A configuration without the name: the answer that is still to come is nobody's. */
static void a_name_that_is_no_longer_wanted_is_forgotten(void **state)
{
    struct snapshot *next;
    (void)state;

    start();
    next = make();
    ((struct cluster *)(uintptr_t)next->clusters)[1].endpoint_count = 0;
    assert_true(snapshot_attach_state(next, 1));
    snapshot_drop(w.in_force);
    w.in_force = discovery_fill(w.discovery, next);
    for (uint32_t i = 0; i < 3; i++)
        ((struct cluster *)(uintptr_t)w.in_force->clusters)[i].state =
            cluster_state_take(next->clusters[i].state);
    discovery_adopt(w.discovery, next, w.in_force);
    snapshot_drop(w.root);
    w.root = next;
    assert_int_equal(w.asked_total, 2); /* web.test is under way already */
    answer("DB.test", IO_OK, "\11", S);
    assert_null(discovery_changed(w.discovery));
    answer("web.test", IO_OK, "\4", 20 * S);
    follow();
    expect_hosts(0, HOSTS("10.0.0.1:80", "10.0.0.4:8080"));
    assert_int_equal(asked_within(19 * S), 0);
    stop();
}

/* A reload in the middle of an outage of the name server: known names keep what is known. */
static void a_new_configuration_begins_with_what_is_known(void **state)
{
    struct snapshot *next;
    (void)state;

    start();
    answer("web.test", IO_OK, "\5\6", 30 * S);
    follow();
    next = discovery_fill(w.discovery, w.root);
    assert_int_equal(next->clusters[0].endpoint_count, 3);
    snapshot_drop(next);
    stop();
}

static void what_an_answer_leaves_out_is_held_for_as_long_as_its_cluster_says(void **state)
{
    (void)state;

    web_hold = 60 * S;
    start();
    answer("web.test", IO_OK, "\2\5", 5 * S);
    follow();
    answer("DB.test", IO_OK, "\5", 5 * S); /* this one holds nothing */
    follow();
    expect_hosts(1, HOSTS("10.0.0.5:5432"));
    pass(5 * S);
    answer("web.test", IO_OK, "\7", 5 * S);
    follow();
    expect_hosts(0, HOSTS("10.0.0.1:80", "10.0.0.2:8080", "10.0.0.5:8080", "10.0.0.7:8080"));
    pass(5 * S);
    answer("web.test", IO_OK, "\5\7", 5 * S); /* 5 is seen again */
    assert_null(discovery_changed(w.discovery));
    pass(50 * S);
    answer("web.test", IO_OK, "\7", 5 * S);
    follow();
    expect_hosts(0, HOSTS("10.0.0.1:80", "10.0.0.5:8080", "10.0.0.7:8080"));
    pass(10 * S);
    answer("web.test", IO_TIMED_OUT, "", 0); /* no answer, no verdict */
    assert_null(discovery_changed(w.discovery));
    web_hold = 0;
    stop();
}

/* A reload with another hold: the name is asked for anew, and nobody is lost meanwhile. */
static void another_hold_begins_with_what_is_known(void **state)
{
    struct snapshot *root, *next;
    (void)state;

    start();
    answer("web.test", IO_OK, "\5\6", 30 * S);
    follow();
    web_hold = 60 * S;
    root = make();
    web_hold = 0;
    next = discovery_fill(w.discovery, root);
    assert_int_equal(next->clusters[0].endpoint_count, 3);
    assert_true(snapshot_attach_state(root, 1));
    for (uint32_t i = 0; i < next->cluster_count; i++)
        ((struct cluster *)(uintptr_t)next->clusters)[i].state =
            cluster_state_take(root->clusters[i].state);
    discovery_adopt(w.discovery, root, next);
    answer("web.test", IO_OK, "\6", 30 * S);
    assert_null(discovery_changed(w.discovery)); /* 5 is held now */
    snapshot_drop(w.in_force);
    snapshot_drop(w.root);
    w.in_force = next;
    w.root = root;
    stop();
}

static void without_a_resolver_all_stays_as_configured(void **state)
{
    const struct discovery_setup setup = {.wheel = &w.wheel, .clock = &w.clock, .log = &w.log};
    struct discovery *d;
    struct snapshot *s, *same;
    (void)state;

    start();
    d = discovery_create(&setup);
    s = make();
    assert_true(discovery_begin(d, s));
    same = discovery_fill(d, s);
    assert_ptr_equal(same, s);
    snapshot_drop(same);
    discovery_free(d);
    snapshot_drop(s);
    stop();
}

/* --- a law on random histories: the hosts are those of the last good answer --- */

static void law_hosts_are_those_of_the_last_good_answer(void **state)
{
    struct rng random;
    (void)state;

    for (uint64_t seed = 1; seed <= 100; seed++) {
        uint64_t good = 1u << 2;

        rng_init(&random, seed);
        start();
        for (int step = 0; step < 60; step++) {
            char lasts[20] = "";
            uint32_t n = rng_below(&random, 6);
            uint64_t bits = 0, seen = 0;
            int error = rng_below(&random, 3) == 0 ? IO_TIMED_OUT : IO_OK;

            for (uint32_t i = 0; i < n; i++) {
                lasts[i] = (char)(2 + rng_below(&random, 12));
                bits |= (uint64_t)1 << lasts[i];
            }
            answer("web.test", error, lasts, S);
            if (error == IO_OK && n > 0)
                good = bits;
            if (discovery_changed(w.discovery) != NULL)
                follow();
            for (uint32_t i = 1; i < w.in_force->clusters[0].endpoint_count; i++) {
                uint64_t bit = (uint64_t)1 << w.in_force->clusters[0].endpoints[i].address.ip[3];

                assert_true((seen & bit) == 0);
                seen |= bit;
            }
            assert_true(seen == good);
            pass(61 * S);
        }
        stop();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_name_is_asked_for_at_once),
        cmocka_unit_test(several_addresses_are_several_hosts),
        cmocka_unit_test(an_answer_in_another_order_changes_nothing),
        cmocka_unit_test(what_fails_or_is_empty_keeps_the_last_good_set),
        cmocka_unit_test(an_answer_holds_for_its_time_to_live),
        cmocka_unit_test(failures_are_retried_more_and_more_slowly),
        cmocka_unit_test(an_address_that_two_have_is_one_host),
        cmocka_unit_test(more_addresses_than_a_name_may_have_are_dropped),
        cmocka_unit_test(a_name_that_is_no_longer_wanted_is_forgotten),
        cmocka_unit_test(a_new_configuration_begins_with_what_is_known),
        cmocka_unit_test(what_an_answer_leaves_out_is_held_for_as_long_as_its_cluster_says),
        cmocka_unit_test(another_hold_begins_with_what_is_known),
        cmocka_unit_test(without_a_resolver_all_stays_as_configured),
        cmocka_unit_test(law_hosts_are_those_of_the_last_good_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
