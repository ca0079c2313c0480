/* SPDX-License-Identifier: Apache-2.0 */
/* Panic: when it begins, to the host, and who serves then; with every balancer. */
#include "policy/panic.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rng.h"
#include "policy/lb.h"

#define HOSTS_MAX 40

struct world {
    struct host_set set;
    _Atomic uint32_t epoch;
    struct host hosts[HOSTS_MAX];
    struct host *at[HOSTS_MAX];
    struct lb lb;
    struct rng rng;
    uint32_t room[HOSTS_MAX];
};

static const struct panic_config half = {.policy = PANIC_SERVE_ALL, .threshold = 50};

static void start(struct world *w, enum lb_kind kind, uint32_t hosts, const struct panic_config *c)
{
    w->set = (struct host_set){.at = w->at, .count = hosts, .epoch = &w->epoch};
    for (uint32_t i = 0; i < hosts; i++) {
        w->hosts[i] = (struct host){.health = HOST_HEALTHY};
        w->at[i] = &w->hosts[i];
    }
    rng_init(&w->rng, 11);
    lb_init(&w->lb, kind, c, w->room);
}

static void eject(struct world *w, uint32_t host, mono_ns at)
{
    atomic_store(&w->hosts[host].ejected_at, at);
    host_set_health(&w->set, host, HOST_EJECTED);
}

/* Which hosts are picked in many picks, as bits. */
static uint64_t seen(struct world *w)
{
    uint64_t bits = 0;

    for (uint32_t i = 0; i < 40 * w->set.count; i++) {
        uint32_t host = lb_pick(&w->lb, &w->set, NULL, &w->rng, 0);

        if (host == LB_NO_HOST)
            assert_true(bits == 0);
        else
            bits |= (uint64_t)1 << host;
    }
    return bits;
}

static bool on(uint32_t healthy, uint32_t hosts, uint32_t threshold)
{
    const struct panic_config c = {.threshold = threshold};

    return panic_is_on(&c, healthy, hosts);
}

/* reference/envoy-semantics.md section 12 */
static void p1_to_p5_of_the_reference(void **state)
{
    (void)state;

    assert_true(on(4, 10, 50));  /* P1 */
    assert_false(on(5, 10, 50)); /* P2: not strictly below */
    assert_false(on(8, 10, 90)); /* P3: 8 carry all */
    assert_true(on(7, 10, 90));  /* P4: 7 carry 98 % */
    assert_false(on(0, 3, 0));   /* P5 */
    assert_false(on(5, 7, 100)); /* 71.43 % carry all */
    assert_true(on(714, 1000, 100));
    assert_false(on(715, 1000, 100));
    assert_true(on(0, 1, 1));
    assert_true(on(0, 1, 1000)); /* capped at 100 */
    assert_false(on(0, 0, 100)); /* nobody there: nobody to panic over */
    assert_true(on(333333333, 1000000000, 34));
    assert_false(on(340000000, 1000000000, 34));
}

/* "fractions are cut off" says the reference of what the healthy can carry: 140 x 5 / 7 is 100. */
static void the_rule_is_envoys_in_real_numbers(void **state)
{
    (void)state;

    for (uint32_t hosts = 1; hosts <= 60; hosts++)
        for (uint32_t healthy = 0; healthy <= hosts; healthy++)
            for (uint32_t threshold = 0; threshold <= 101; threshold++) {
                double percent = 100.0 * healthy / hosts;
                double most = threshold > 100 ? 100 : threshold;
                bool all_carried = (uint32_t)(140.0 * healthy / hosts + 1e-9) >= 100;

                assert_int_equal(on(healthy, hosts, threshold), !all_carried && percent < most);
            }
}

static void p1_in_panic_every_host_serves(void **state)
{
    static struct world w;
    (void)state;

    for (uint32_t kind = 0; kind < LB_KIND_COUNT; kind++) {
        start(&w, (enum lb_kind)kind, 10, &half);
        for (uint32_t i = 0; i < 5; i++)
            eject(&w, i, 100 + i);
        assert_true(seen(&w) == 0x3e0); /* P2 */
        assert_false(lb_in_panic(&w.lb));
        eject(&w, 9, 200);
        assert_true(seen(&w) == 0x3ff); /* P1 */
        assert_true(lb_in_panic(&w.lb));
        for (uint32_t i = 0; i < 10; i++)
            assert_true(lb_serves(&w.lb, &w.set, i, &w.rng));
        host_set_health(&w.set, 9, HOST_HEALTHY);
        assert_false(lb_serves(&w.lb, &w.set, 0, &w.rng)); /* seen without a pick between */
        assert_true(lb_serves(&w.lb, &w.set, 9, &w.rng));
        assert_true(seen(&w) == 0x3e0);
        assert_false(lb_in_panic(&w.lb));
    }
}

static void p5_without_panic_nobody_is_left(void **state)
{
    const struct panic_config off = {.threshold = 0};
    static struct world w;
    (void)state;

    for (uint32_t kind = 0; kind < LB_KIND_COUNT; kind++) {
        start(&w, (enum lb_kind)kind, 3, &off);
        for (uint32_t i = 0; i < 3; i++)
            eject(&w, i, 5);
        assert_true(seen(&w) == 0);
        assert_false(lb_in_panic(&w.lb));
        assert_false(lb_serves(&w.lb, &w.set, 0, &w.rng));
    }
}

/* O4: one host, ejected. With panic threshold 0 it is out, with 50 it is used. */
static void o4_the_only_host_is_used_in_panic(void **state)
{
    const struct panic_config off = {.threshold = 0};
    static struct world w;
    (void)state;

    start(&w, LB_P2C, 1, &off);
    eject(&w, 0, 5);
    assert_int_equal(lb_pick(&w.lb, &w.set, NULL, &w.rng, 0), LB_NO_HOST);
    start(&w, LB_P2C, 1, &half);
    eject(&w, 0, 5);
    assert_int_equal(lb_pick(&w.lb, &w.set, NULL, &w.rng, 0), 0);
}

/* With a cap of 50 % at most half are out: 50 % healthy is not below 50. */
static void a_cap_of_50_with_min_health_50_never_reaches_panic(void **state)
{
    (void)state;

    for (uint32_t hosts = 1; hosts <= 1000; hosts++)
        assert_false(on(hosts - hosts / 2, hosts, 50));
}

static void fail_fast_refuses_though_some_are_healthy(void **state)
{
    const struct panic_config c = {.policy = PANIC_FAIL_FAST, .threshold = 50};
    static struct world w;
    (void)state;

    for (uint32_t kind = 0; kind < LB_KIND_COUNT; kind++) {
        start(&w, (enum lb_kind)kind, 10, &c);
        for (uint32_t i = 0; i < 6; i++)
            eject(&w, i, 9);
        assert_true(seen(&w) == 0);
        assert_true(lb_in_panic(&w.lb));
        host_set_health(&w.set, 0, HOST_HEALTHY);
        assert_true(seen(&w) == 0x3c1);
    }
}

static void least_bad_takes_those_that_are_out_for_longest(void **state)
{
    const struct panic_config c = {.policy = PANIC_LEAST_BAD, .threshold = 50};
    static struct world w;
    (void)state;

    for (uint32_t kind = 0; kind < LB_KIND_COUNT; kind++) {
        start(&w, (enum lb_kind)kind, 10, &c);
        for (uint32_t i = 0; i < 8; i++)
            eject(&w, i, 1000 - 100 * i); /* 7 went first */
        assert_true(seen(&w) == 0x3e0);   /* 8 and 9 are healthy; 7, 6, 5 make it half */
        assert_true(lb_in_panic(&w.lb));
        atomic_store(&w.hosts[0].ejected_at, 1);
        host_set_health(&w.set, 0, HOST_EJECTED);
        assert_true(seen(&w) == 0x3c1);
    }
}

static void of_those_out_for_as_long_the_least_accused_serve(void **state)
{
    const struct panic_config c = {.policy = PANIC_LEAST_BAD, .threshold = 60};
    static struct world w;
    (void)state;

    start(&w, LB_ROUND_ROBIN, 5, &c);
    for (uint32_t i = 0; i < 5; i++) {
        atomic_store(&w.hosts[i].runs.without_success, i == 2 ? 4 : 20 - i);
        eject(&w, i, 7);
    }
    assert_true(seen(&w) == 0x1c); /* 4, 16, 17 failures; 3 of 5 are 60 % */
}

static void least_bad_leaves_one_even_at_one_percent(void **state)
{
    const struct panic_config c = {.policy = PANIC_LEAST_BAD, .threshold = 1};
    static struct world w;
    (void)state;

    start(&w, LB_RANDOM, 3, &c);
    for (uint32_t i = 0; i < 3; i++)
        eject(&w, i, 30 - i);
    assert_true(seen(&w) == 0x4);
    assert_int_equal(panic_floor(&c, 0), 0);
    assert_int_equal(panic_floor(&half, 5), 3);
    assert_int_equal(panic_floor(&half, 4), 2);
}

/* A drained host is as if it were not there: not picked in panic either, not counted. */
static void a_drained_host_serves_in_no_panic(void **state)
{
    static struct world w;
    (void)state;

    for (uint32_t kind = 0; kind < LB_KIND_COUNT; kind++) {
        start(&w, (enum lb_kind)kind, 6, &half);
        host_set_drain(&w.set, 0);
        host_set_drain(&w.set, 1);
        assert_true(seen(&w) == 0x3c);
        assert_false(lb_in_panic(&w.lb));
        eject(&w, 2, 5);
        eject(&w, 3, 5);
        assert_false(lb_in_panic(&w.lb));
        assert_true(seen(&w) == 0x30); /* 2 of 4 */
        eject(&w, 4, 5);
        assert_true(seen(&w) == 0x3c);
        assert_true(lb_in_panic(&w.lb));
        eject(&w, 1, 5);
        assert_int_equal(host_health(&w.hosts[1]), HOST_DRAINING); /* both hold */
        assert_true(host_is_ejected(&w.hosts[1]));
        assert_true(seen(&w) == 0x3c);
        host_set_undrain(&w.set, 1);
        assert_int_equal(host_health(&w.hosts[1]), HOST_EJECTED);
        assert_true(seen(&w) == 0x3e);
        host_set_undrain(&w.set, 0);
        assert_int_equal(host_health(&w.hosts[0]), HOST_HEALTHY);
        for (uint32_t i = 0; i < 6; i++)
            host_set_drain(&w.set, i);
        assert_true(seen(&w) == 0);
    }
}

static void panic_is_seen_at_the_next_pick_and_made_only_once(void **state)
{
    static struct world w;
    (void)state;

    start(&w, LB_ROUND_ROBIN, 4, &half);
    for (uint32_t i = 0; i < 3; i++)
        eject(&w, i, 1);
    assert_true(seen(&w) == 0xf);
    for (uint32_t i = 0; i < 3; i++) /* behind its back, without the epoch */
        atomic_store(&w.hosts[i].health, (uint32_t)HOST_HEALTHY);
    assert_true(seen(&w) == 0xf);
    assert_true(lb_in_panic(&w.lb));
    host_set_health(&w.set, 0, HOST_HEALTHY);
    assert_true(seen(&w) == 0xf);
    assert_false(lb_in_panic(&w.lb));
}

/* --- a law on random histories: who serves is what a plain reading of the policy says --- */

static uint32_t number_before(const struct world *w, uint32_t host)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < w->set.count; i++) {
        mono_ns other = w->hosts[i].ejected_at, own = w->hosts[host].ejected_at;

        if (host_set_health_of(&w->set, i) == HOST_EJECTED &&
            (other < own || (other == own && i < host)))
            n++;
    }
    return n;
}

static bool should_serve(const struct world *w, uint32_t host)
{
    uint32_t healthy = host_set_count(&w->set, HOST_HEALTHY);
    uint32_t all = healthy + host_set_count(&w->set, HOST_EJECTED);
    enum host_health health = host_set_health_of(&w->set, host);
    uint32_t floor = panic_floor(&w->lb.panic, all);

    if (health == HOST_DRAINING || health == HOST_ABSENT)
        return false;
    if (!panic_is_on(&w->lb.panic, healthy, all))
        return health == HOST_HEALTHY;
    switch (w->lb.panic.policy) {
    case PANIC_SERVE_ALL:
        return true;
    case PANIC_LEAST_BAD:
        return health == HOST_HEALTHY || number_before(w, host) < floor - healthy;
    case PANIC_FAIL_FAST:
    case PANIC_POLICY_COUNT:
        break;
    }
    return false;
}

static void change(struct world *w, struct rng *random, mono_ns now)
{
    uint32_t host = rng_below(random, w->set.count);

    if (w->at[host] == NULL) {
        w->at[host] = &w->hosts[host];
        atomic_fetch_add(&w->epoch, 1);
        return;
    }
    switch (rng_below(random, 7)) {
    case 5:
        host_set_health(&w->set, host, HOST_ABSENT);
        return;
    case 6:
        w->at[host] = NULL; /* an empty slot */
        atomic_fetch_add(&w->epoch, 1);
        return;
    case 0:
        host_set_drain(&w->set, host);
        break;
    case 1:
        host_set_undrain(&w->set, host);
        break;
    case 2:
        host_set_health(&w->set, host, HOST_HEALTHY);
        break;
    case 3:
    case 4:
        eject(w, host, now);
        break;
    }
}

static void law_who_serves_is_who_should(void **state)
{
    static struct world w;
    struct rng random;
    (void)state;

    for (uint64_t seed = 1; seed <= 600; seed++) {
        struct panic_config c;

        rng_init(&random, seed);
        c.policy = (enum panic_policy)rng_below(&random, PANIC_POLICY_COUNT);
        c.threshold = rng_below(&random, 101);
        start(&w, (enum lb_kind)(seed % LB_KIND_COUNT), 1 + rng_below(&random, HOSTS_MAX), &c);
        for (uint32_t step = 0; step < 60; step++) {
            uint32_t serve = 0, picked;

            change(&w, &random, step / 3);
            picked = lb_pick(&w.lb, &w.set, NULL, &w.rng, 0);
            for (uint32_t i = 0; i < w.set.count; i++) {
                assert_int_equal(lb_serves(&w.lb, &w.set, i, &w.rng), should_serve(&w, i));
                serve += should_serve(&w, i);
            }
            assert_int_equal(picked == LB_NO_HOST, serve == 0);
            assert_true(picked == LB_NO_HOST || should_serve(&w, picked));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(p1_to_p5_of_the_reference),
        cmocka_unit_test(the_rule_is_envoys_in_real_numbers),
        cmocka_unit_test(p1_in_panic_every_host_serves),
        cmocka_unit_test(p5_without_panic_nobody_is_left),
        cmocka_unit_test(o4_the_only_host_is_used_in_panic),
        cmocka_unit_test(a_cap_of_50_with_min_health_50_never_reaches_panic),
        cmocka_unit_test(fail_fast_refuses_though_some_are_healthy),
        cmocka_unit_test(least_bad_takes_those_that_are_out_for_longest),
        cmocka_unit_test(of_those_out_for_as_long_the_least_accused_serve),
        cmocka_unit_test(least_bad_leaves_one_even_at_one_percent),
        cmocka_unit_test(a_drained_host_serves_in_no_panic),
        cmocka_unit_test(panic_is_seen_at_the_next_pick_and_made_only_once),
        cmocka_unit_test(law_who_serves_is_who_should),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
