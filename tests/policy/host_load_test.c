/* SPDX-License-Identifier: Apache-2.0 */
/* What a host costs in the balancer's eyes, and the least load that is picked by it. */
#include "policy/host_load.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "policy/lb.h"

#define MS NS_PER_MS
#define S  NS_PER_S

#define HOSTS_MAX 200

/* --- what it costs --- */

static struct host_load_typical typical;

static void learn(struct host_load *l, enum evidence_outcome outcome, uint32_t us, mono_ns at)
{
    const struct evidence e = {
        .at = at, .class = CLASS_READ, .outcome = (uint8_t)outcome, .first_us = us};

    host_load_learn(l, &typical, &e);
}

/* What is typical is 10 ms from here on. */
static void make_typical(mono_ns at)
{
    struct host_load any = {.latency = 0};

    memset(&typical, 0, sizeof(typical));
    for (uint32_t i = 0; i < 100; i++)
        learn(&any, EVIDENCE_OK, 10000, at);
    assert_int_equal(typical.us[CLASS_READ], 10000);
}

/* Its answers take |us| for a while, as many as the typical host's. */
static void answer(struct host_load *l, uint32_t us, mono_ns at)
{
    for (uint32_t i = 0; i < 60; i++) {
        learn(l, EVIDENCE_OK, us, at);
        make_typical(at);
    }
}

static void who_is_not_known_or_typical_or_faster_costs_as_any(void **state)
{
    struct host_load l = {.latency = 0};
    (void)state;

    assert_int_equal(host_load_cost(&l, &typical, 100 * S), HOST_LOAD_TYPICAL);
    make_typical(S);
    answer(&l, 10000, S);
    assert_int_equal(host_load_cost(&l, &typical, S), HOST_LOAD_TYPICAL);
    answer(&l, 100, S);
    assert_int_equal(host_load_cost(&l, &typical, S), HOST_LOAD_TYPICAL);
}

static void who_is_so_much_slower_costs_so_much_more(void **state)
{
    (void)state;

    for (uint32_t times = 2; times <= 40; times++) {
        struct host_load l = {.latency = 0};

        make_typical(S);
        answer(&l, 10000 * times, S);
        assert_in_range(host_load_cost(&l, &typical, S), (times < 21 ? times : 21) * 950,
                        (times < 21 ? times : 21) * 1050);
    }
}

/* A class is compared with itself: who was given the heavy requests is not dear for it. */
static void each_class_has_its_own_typical(void **state)
{
    struct host_load l = {.latency = 0};
    const struct evidence heavy = {
        .at = S, .class = CLASS_LARGE, .outcome = EVIDENCE_OK, .first_us = 900000};
    (void)state;

    make_typical(S);
    for (uint32_t i = 0; i < 20; i++)
        host_load_learn(&l, &typical, &heavy);
    assert_int_equal(host_load_cost(&l, &typical, S), HOST_LOAD_TYPICAL);
    assert_int_equal(typical.us[CLASS_LARGE], 900000);
    assert_int_equal(typical.us[CLASS_READ], 10000);
}

static void one_very_late_answer_does_not_change_what_is_typical(void **state)
{
    struct host_load l = {.latency = 0};
    (void)state;

    make_typical(S);
    learn(&l, EVIDENCE_OK, 60 * 1000 * 1000, S);
    assert_in_range(typical.us[CLASS_READ], 10000, 10500);
    learn(&l, EVIDENCE_OK, 0, S);
    assert_true(typical.us[CLASS_READ] > 0);
}

static void failing_fast_does_not_attract(void **state)
{
    struct host_load l = {.latency = 0};
    (void)state;

    make_typical(S);
    for (uint32_t i = 0; i < 10; i++)
        learn(&l, EVIDENCE_GATEWAY, 50, S);
    assert_true(host_load_cost(&l, &typical, S) > 4 * HOST_LOAD_TYPICAL);
}

/* What all of them do steers nobody. */
static void what_fails_everywhere_costs_nothing(void **state)
{
    struct host_load l[2] = {{.latency = 0}};
    (void)state;

    memset(&typical, 0, sizeof(typical));
    for (uint32_t i = 0; i < 5000; i++)
        learn(&l[i % 2], EVIDENCE_ERROR, 50, S);
    assert_int_equal(host_load_cost(&l[0], &typical, S), HOST_LOAD_TYPICAL);
    assert_int_equal(host_load_cost(&l[1], &typical, S), HOST_LOAD_TYPICAL);
}

/* However often: it is dear for two seconds after each failure. */
static void what_one_host_fails_is_not_common(void **state)
{
    struct host_load l = {.latency = 0}, well = {.latency = 0};
    (void)state;

    memset(&typical, 0, sizeof(typical));
    for (mono_ns now = S; now < 100 * S; now += 5 * S) {
        for (uint32_t n = 0; n < 200; n++)
            learn(&well, EVIDENCE_OK, 10000, now);
        learn(&l, EVIDENCE_ERROR, 50, now);
        assert_true(host_load_cost(&l, &typical, now + 2 * S) > 5 * HOST_LOAD_TYPICAL / 2);
    }
}

static void who_always_fails_costs_more_however_many_do(void **state)
{
    struct host_load bad[2] = {{.latency = 0}}, well = {.latency = 0};
    (void)state;

    memset(&typical, 0, sizeof(typical));
    for (uint32_t i = 0; i < 300; i++) {
        learn(&bad[0], EVIDENCE_ERROR, 50, S);
        learn(&bad[1], EVIDENCE_ERROR, 50, S);
        learn(&well, EVIDENCE_OK, 10000, S);
    }
    assert_in_range(typical.failing, 600000, 700000);
    assert_int_equal(host_load_cost(&well, &typical, S), HOST_LOAD_TYPICAL);
    assert_true(host_load_cost(&bad[0], &typical, S) > 5 * HOST_LOAD_TYPICAL);
    assert_true(host_load_cost(&bad[1], &typical, S) > 5 * HOST_LOAD_TYPICAL);
}

/* Three in ten everywhere: chance steers nobody much. */
static void what_fails_now_and_then_everywhere_costs_little(void **state)
{
    struct host_load l[10] = {{.latency = 0}};
    struct rng random;
    uint64_t sum = 0;
    (void)state;

    rng_init(&random, 1);
    memset(&typical, 0, sizeof(typical));
    for (uint32_t i = 0; i < 20000; i++) {
        struct host_load *one = &l[i % 10];

        learn(one, rng_below(&random, 10) < 3 ? EVIDENCE_ERROR : EVIDENCE_OK, 10000, S);
        sum += host_load_cost(one, &typical, S) - HOST_LOAD_TYPICAL;
    }
    assert_true(sum / 20000 < HOST_LOAD_TYPICAL / 2);
}

/*
 * Hosts that all fail so many of a hundred requests, each left alone while it costs more than the
 * balancer takes for chance: for how many seconds one is, in stretches of more than two.
 */
static mono_ns left_alone(unsigned percent)
{
    struct host_load l[10] = {{.latency = 0}};
    mono_ns since[10] = {0}, sum = 0;
    struct rng random;

    rng_init(&random, percent);
    memset(&typical, 0, sizeof(typical));
    for (uint32_t n = 0; n < 60000; n++) {
        mono_ns now = S + n * 20 * S / 3000;
        uint32_t i = n % 10;

        if (host_load_cost(&l[i], &typical, now) > 5 * HOST_LOAD_TYPICAL / 2) {
            since[i] = since[i] == 0 ? now : since[i];
            continue;
        }
        sum += since[i] != 0 && now - since[i] > 2 * S ? now - since[i] : 0;
        since[i] = 0;
        learn(&l[i], rng_below(&random, 100) < percent ? EVIDENCE_ERROR : EVIDENCE_OK, 10000, now);
    }
    return sum;
}

static void what_fails_now_and_then_everywhere_leaves_nobody_alone(void **state)
{
    (void)state;

    for (unsigned percent = 5; percent <= 60; percent += 5)
        assert_in_range(left_alone(percent), 0, 20 * S); /* of 4,000 */
}

static void each_failure_counts_and_a_client_that_leaves_is_none(void **state)
{
    (void)state;

    for (int o = 0; o < EVIDENCE_OUTCOME_COUNT; o++) {
        bool fails = o != EVIDENCE_OK && o != EVIDENCE_ABANDONED && o != EVIDENCE_LATE;
        struct host_load l = {.latency = 0};

        make_typical(S);
        learn(&l, (enum evidence_outcome)o, 10000, S);
        assert_int_equal(l.failing > 0, fails);
        assert_int_equal(l.latency, 0);
    }
}

static void what_was_seen_counts_for_half_after_half_the_time_and_then_for_nothing(void **state)
{
    struct host_load l = {.latency = 0};
    uint32_t beyond;
    (void)state;

    make_typical(S);
    answer(&l, 110000, S);
    beyond = host_load_cost(&l, &typical, S) - HOST_LOAD_TYPICAL;
    assert_in_range(host_load_cost(&l, &typical, S + HOST_LOAD_SPAN / 2) - HOST_LOAD_TYPICAL,
                    beyond / 2 - 1, beyond / 2 + 1);
    assert_int_equal(host_load_cost(&l, &typical, S + HOST_LOAD_SPAN), HOST_LOAD_TYPICAL);
    assert_int_equal(host_load_cost(&l, &typical, 1000 * S), HOST_LOAD_TYPICAL);
}

/* A failure, or a client that leaves, says nothing of latency: what is old stays old. */
static void old_latency_does_not_become_new_by_what_is_no_latency(void **state)
{
    static const enum evidence_outcome none[] = {EVIDENCE_ABANDONED, EVIDENCE_LATE, EVIDENCE_RESET};
    (void)state;

    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        struct host_load l = {.latency = 0};
        uint32_t before;

        make_typical(S);
        answer(&l, 110000, S);
        before = host_load_left(&l, l.latency, S + 4 * S);
        learn(&l, none[i], 0, S + 4 * S);
        assert_int_equal(host_load_left(&l, l.latency, S + 4 * S), before);
    }
}

/* Workers' clocks are of their turns: what another has just written may be of later than now. */
static void what_another_worker_wrote_a_moment_later_counts_whole(void **state)
{
    struct host_load l = {.latency = 0};
    (void)state;

    make_typical(10 * S);
    answer(&l, 110000, 10 * S + 3 * MS);
    assert_int_equal(host_load_cost(&l, &typical, 10 * S),
                     host_load_cost(&l, &typical, 10 * S + 3 * MS));
    assert_true(host_load_cost(&l, &typical, 10 * S) > 5 * HOST_LOAD_TYPICAL);
}

/* The milliseconds go round after 49 days. */
static void time_goes_round_without_harm(void **state)
{
    mono_ns round = ((UINT64_C(1) << 32) - 500) * MS;
    struct host_load l = {.latency = 0};
    (void)state;

    make_typical(round);
    answer(&l, 110000, round);
    assert_true(host_load_cost(&l, &typical, round + S) > 5 * HOST_LOAD_TYPICAL);
    assert_int_equal(host_load_cost(&l, &typical, round + HOST_LOAD_SPAN), HOST_LOAD_TYPICAL);
}

static void the_law_of_costs_on_random_histories(void **state)
{
    (void)state;

    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct host_load l = {.latency = 0};
        struct rng random;
        mono_ns now = S;

        rng_init(&random, seed);
        memset(&typical, 0, sizeof(typical));
        for (uint32_t n = 0; n < 500; n++) {
            now += (mono_ns)rng_below(&random, 200) * MS;
            learn(&l, (enum evidence_outcome)rng_below(&random, EVIDENCE_OUTCOME_COUNT),
                  rng_below(&random, 10) == 0 ? (uint32_t)rng_next(&random)
                                              : rng_below(&random, 50000),
                  now);
            assert_in_range(host_load_cost(&l, &typical, now), HOST_LOAD_TYPICAL,
                            45 * HOST_LOAD_TYPICAL);
            for (mono_ns gone = 0; gone <= HOST_LOAD_SPAN; gone += S)
                assert_true(host_load_cost(&l, &typical, now + gone + S) <=
                            host_load_cost(&l, &typical, now + gone));
            assert_int_equal(host_load_cost(&l, &typical, now + HOST_LOAD_SPAN), HOST_LOAD_TYPICAL);
        }
    }
}

/* --- who is picked --- */

static const struct panic_config never = {.threshold = 0};

struct world {
    struct host_set set;
    struct host *hosts;
    struct host *slots[HOSTS_MAX];
    _Atomic uint32_t epoch;
    struct host_load_typical typical;
    struct lb lb;
    struct rng rng;
    uint32_t room[HOSTS_MAX];
    uint32_t picked[HOSTS_MAX];
    mono_ns now;
};

static struct world *start(uint32_t hosts)
{
    struct world *w = calloc(1, sizeof(*w));

    assert_non_null(w);
    w->hosts = aligned_alloc(64, hosts * sizeof(struct host));
    assert_non_null(w->hosts);
    w->set = (struct host_set){
        .at = w->slots, .count = hosts, .epoch = &w->epoch, .typical = &w->typical};
    for (uint32_t i = 0; i < hosts; i++) {
        w->hosts[i] = (struct host){.health = HOST_HEALTHY};
        w->slots[i] = &w->hosts[i];
    }
    rng_init(&w->rng, 7);
    w->now = 100 * S;
    lb_init(&w->lb, LB_LEAST, &never, w->room);
    return w;
}

static void stop(struct world *w)
{
    free(w->hosts);
    free(w);
}

static uint32_t pick(struct world *w)
{
    uint32_t host = lb_pick(&w->lb, &w->set, NULL, &w->rng, w->now);

    assert_true(host < w->set.count);
    w->picked[host]++;
    return host;
}

/* So many times slower than is typical. */
static void make_slow(struct world *w, uint32_t host, uint32_t times)
{
    make_typical(w->now);
    answer(&w->hosts[host].load, 10000 * times, w->now);
}

/* A hundred requests a second of 20 ms each; two hosts of three fail all of them. */
static void a_well_host_among_more_that_fail_gets_nearly_all(void **state)
{
    enum { LONG = 2, TENTHS = 3000 };
    struct world *w = start(3);
    uint32_t under_way[LONG] = {UINT32_MAX, UINT32_MAX};
    (void)state;

    memset(&typical, 0, sizeof(typical));
    for (uint32_t n = 0; n < 300; n++) /* as if all had got the same for a while */
        learn(&w->hosts[n % 3].load, n % 3 == 2 ? EVIDENCE_OK : EVIDENCE_ERROR, 20000, w->now);
    for (uint32_t n = 0; n < TENTHS; n++) {
        uint32_t *over = &under_way[n % LONG];

        w->now += 10 * MS;
        if (*over != UINT32_MAX) {
            w->hosts[*over].in_flight--;
            learn(&w->hosts[*over].load, *over == 2 ? EVIDENCE_OK : EVIDENCE_ERROR, 20000, w->now);
        }
        *over = pick(w);
        w->hosts[*over].in_flight++;
        if (n == TENTHS / 3)
            memset(w->picked, 0, sizeof(w->picked));
    }
    assert_true(w->picked[2] > TENTHS * 2 / 3 * 85 / 100);
    assert_true(w->picked[0] > 0 && w->picked[1] > 0);
    stop(w);
}

static void idle_equals_are_taken_in_turn(void **state)
{
    (void)state;

    for (uint32_t hosts = 1; hosts < 70; hosts += 3) {
        struct world *w = start(hosts);

        for (uint32_t i = 0; i < 10 * hosts; i++)
            pick(w);
        for (uint32_t i = 0; i < hosts; i++)
            assert_int_equal(w->picked[i], 10);
        stop(w);
    }
}

static void up_to_sixty_four_hosts_the_least_loaded_of_all_is_found(void **state)
{
    struct world *w = start(64);
    (void)state;

    for (uint32_t i = 0; i < 64; i++)
        w->hosts[i].in_flight = 3;
    for (uint32_t least = 0; least < 64; least++) {
        w->hosts[least].in_flight = 2;
        assert_int_equal(pick(w), least);
        w->hosts[least].in_flight = 3;
    }
    stop(w);
}

/* Beyond that five are looked at: the most loaded is hardly ever the least of them. */
static void beyond_sixty_four_hosts_a_few_are_drawn(void **state)
{
    struct world *w = start(200);
    uint32_t low = 0;
    (void)state;

    for (uint32_t i = 0; i < 200; i++)
        w->hosts[i].in_flight = i < 100 ? 1 : 9;
    for (uint32_t i = 0; i < 4000; i++)
        low += pick(w) < 100;
    assert_in_range(low, 3800, 3950); /* 1 - 1/32 */
    stop(w);
}

/* It costs no more than noise does, by now: first attempts are not steered by that, retries are. */
static void a_retry_does_not_meet_who_has_failed_lately(void **state)
{
    const struct lb_tried first = {.count = 1, .at = {0}};
    struct world *w = start(4);
    (void)state;

    memset(&typical, 0, sizeof(typical));
    learn(&w->hosts[1].load, EVIDENCE_ERROR, 10000, w->now);
    w->now += HOST_LOAD_SPAN * 9 / 10;
    for (uint32_t i = 0; i < 40; i++) {
        pick(w);
        assert_int_not_equal(lb_pick_other(&w->lb, &w->set, &first, &w->rng, w->now), 1);
    }
    assert_int_equal(w->picked[1], 10);
    stop(w);
}

/* Twice the latency steers nobody, noise does as much; three times does. */
static void small_differences_steer_nobody(void **state)
{
    struct world *w = start(4);
    (void)state;

    make_slow(w, 2, 2);
    for (uint32_t i = 0; i < 40; i++)
        pick(w);
    assert_int_equal(w->picked[2], 10);
    make_slow(w, 2, 3);
    for (uint32_t i = 0; i < 40; i++)
        pick(w);
    assert_int_equal(w->picked[2], 10);
    stop(w);
}

static void a_slow_host_is_taken_where_the_others_have_so_many_more_requests(void **state)
{
    struct world *w = start(3);
    (void)state;

    make_slow(w, 1, 10); /* as dear as four requests on one that is alike */
    w->hosts[0].in_flight = 2;
    w->hosts[2].in_flight = 2;
    assert_int_not_equal(pick(w), 1);
    w->hosts[0].in_flight = 4;
    w->hosts[2].in_flight = 4;
    assert_int_equal(pick(w), 1);
    stop(w);
}

static void a_slow_host_nobody_asks_is_asked_again_after_a_while(void **state)
{
    struct world *w = start(3);
    (void)state;

    make_slow(w, 1, 10);
    for (uint32_t i = 0; i < 30; i++)
        assert_int_not_equal(pick(w), 1);
    w->now += HOST_LOAD_SPAN;
    for (uint32_t i = 0; i < 30; i++)
        pick(w);
    assert_int_equal(w->picked[1], 10);
    stop(w);
}

/*
 * A small queueing world: one of ten hosts takes ten times as long, and all are asked so often that
 * some requests are always under way. Its share of what is fair stays below a fifth.
 */
static void a_host_ten_times_slower_gets_less_than_a_fifth_of_its_share(void **state)
{
    enum { N = 10, PLACES = 64, REQUESTS = 20000 };
    struct {
        mono_ns at;
        uint32_t host;
        uint32_t us;
    } under_way[PLACES] = {{0}};
    struct world *w = start(N);
    (void)state;

    memset(&typical, 0, sizeof(typical));
    for (uint32_t n = 0; n < REQUESTS; n++) {
        uint32_t place = PLACES, host;

        w->now += MS; /* 1,000 a second, 20 ms each: two a host under way */
        for (uint32_t i = 0; i < PLACES; i++) {
            if (under_way[i].us == 0) {
                place = i;
            } else if (under_way[i].at <= w->now) {
                host = under_way[i].host;
                w->hosts[host].in_flight--;
                learn(&w->hosts[host].load, EVIDENCE_OK, under_way[i].us, w->now);
                under_way[i].us = 0;
                place = i;
            }
        }
        assert_int_not_equal(place, PLACES);
        host = pick(w);
        w->hosts[host].in_flight++;
        under_way[place].us = (host == 3 ? 200000 : 20000) + rng_below(&w->rng, 10000);
        under_way[place].host = host;
        under_way[place].at = w->now + under_way[place].us * UINT64_C(1000);
    }
    assert_true(w->picked[3] < REQUESTS / N / 5);
    assert_true(w->picked[3] > 10); /* it is looked at now and then */
    for (uint32_t i = 0; i < N; i++)
        assert_true(i == 3 || (w->picked[i] > REQUESTS / N && w->picked[i] < REQUESTS * 13 / 100));
    stop(w);
}

/* Never one that costs more than another it looked at: the law, on random worlds. */
static void the_law_of_least_load_on_random_worlds(void **state)
{
    (void)state;

    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct rng random;
        struct world *w;
        uint32_t hosts;

        rng_init(&random, seed);
        hosts = 1 + rng_below(&random, 64);
        w = start(hosts);
        for (uint32_t round = 0; round < 50; round++) {
            uint64_t least = UINT64_MAX, cost;
            uint32_t host;

            for (uint32_t i = 0; i < hosts; i++) {
                w->hosts[i].in_flight = rng_below(&random, 5);
                w->hosts[i].load.latency =
                    rng_below(&random, 3) == 0 ? rng_below(&random, 9000) : 0;
                w->hosts[i].load.at = (uint32_t)(w->now / MS);
                cost = host_load_cost(&w->hosts[i].load, w->set.typical, w->now);
                cost = (cost < 2500 ? 2500 : cost) * (w->hosts[i].in_flight + 1);
                least = cost < least ? cost : least;
            }
            host = pick(w);
            cost = host_load_cost(&w->hosts[host].load, w->set.typical, w->now);
            assert_true((cost < 2500 ? 2500 : cost) * (w->hosts[host].in_flight + 1) == least);
        }
        stop(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_not_known_or_typical_or_faster_costs_as_any),
        cmocka_unit_test(who_is_so_much_slower_costs_so_much_more),
        cmocka_unit_test(each_class_has_its_own_typical),
        cmocka_unit_test(one_very_late_answer_does_not_change_what_is_typical),
        cmocka_unit_test(failing_fast_does_not_attract),
        cmocka_unit_test(what_fails_everywhere_costs_nothing),
        cmocka_unit_test(what_one_host_fails_is_not_common),
        cmocka_unit_test(who_always_fails_costs_more_however_many_do),
        cmocka_unit_test(what_fails_now_and_then_everywhere_costs_little),
        cmocka_unit_test(what_fails_now_and_then_everywhere_leaves_nobody_alone),
        cmocka_unit_test(each_failure_counts_and_a_client_that_leaves_is_none),
        cmocka_unit_test(what_was_seen_counts_for_half_after_half_the_time_and_then_for_nothing),
        cmocka_unit_test(old_latency_does_not_become_new_by_what_is_no_latency),
        cmocka_unit_test(what_another_worker_wrote_a_moment_later_counts_whole),
        cmocka_unit_test(time_goes_round_without_harm),
        cmocka_unit_test(the_law_of_costs_on_random_histories),
        cmocka_unit_test(idle_equals_are_taken_in_turn),
        cmocka_unit_test(a_well_host_among_more_that_fail_gets_nearly_all),
        cmocka_unit_test(up_to_sixty_four_hosts_the_least_loaded_of_all_is_found),
        cmocka_unit_test(beyond_sixty_four_hosts_a_few_are_drawn),
        cmocka_unit_test(a_retry_does_not_meet_who_has_failed_lately),
        cmocka_unit_test(small_differences_steer_nobody),
        cmocka_unit_test(a_slow_host_is_taken_where_the_others_have_so_many_more_requests),
        cmocka_unit_test(a_slow_host_nobody_asks_is_asked_again_after_a_while),
        cmocka_unit_test(a_host_ten_times_slower_gets_less_than_a_fifth_of_its_share),
        cmocka_unit_test(the_law_of_least_load_on_random_worlds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
