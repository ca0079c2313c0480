/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts with a share below the whole: it is exactly that, whatever the balancer; a busy one's
 * waits. */
#include "policy/lb.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define HOSTS   10
#define WORKERS 4

static const struct panic_config never = {.threshold = 0};

/* A cluster, and a balancer of each worker. */
struct world {
    struct host_set set;
    struct host hosts[HOSTS];
    struct host *slots[HOSTS];
    _Atomic uint32_t epoch;
    struct lb lb[WORKERS];
    struct rng rng[WORKERS];
    uint32_t room[WORKERS][HOSTS];
    _Atomic uint32_t picked[HOSTS];
};

static struct world *start(uint32_t hosts, enum lb_kind kind, const struct panic_config *panic)
{
    struct world *w = aligned_alloc(64, sizeof(*w));

    assert_non_null(w);
    *w = (struct world){.epoch = 1};
    w->set = (struct host_set){.at = w->slots, .count = hosts, .epoch = &w->epoch};
    for (uint32_t i = 0; i < hosts; i++)
        w->slots[i] = &w->hosts[i];
    for (uint32_t k = 0; k < WORKERS; k++) {
        rng_init(&w->rng[k], 7 + k);
        lb_init(&w->lb[k], kind, panic, w->room[k]);
    }
    return w;
}

static void give(struct world *w, uint32_t host, uint32_t share)
{
    atomic_store(&w->hosts[host].cut, HOST_WHOLE - share);
    atomic_fetch_add(&w->epoch, 1);
}

static uint32_t pick_by(struct world *w, uint32_t worker)
{
    uint32_t host = lb_pick(&w->lb[worker], &w->set, NULL, &w->rng[worker], NS_PER_S);

    if (host != LB_NO_HOST)
        atomic_fetch_add_explicit(&w->picked[host], 1, memory_order_relaxed);
    return host;
}

static uint32_t retry(struct world *w, const struct lb_tried *tried)
{
    return lb_pick_other(&w->lb[0], &w->set, tried, &w->rng[0], NS_PER_S);
}

/* |n| requests, which come to the workers at random. */
static void serve(struct world *w, uint32_t n)
{
    for (uint32_t i = 0; i < HOSTS; i++)
        w->picked[i] = 0;
    for (uint32_t i = 0; i < n; i++)
        assert_int_not_equal(pick_by(w, rng_below(&w->rng[0], WORKERS)), LB_NO_HOST);
}

static void a_suspect_gets_exactly_its_share_over_all_workers(void **state)
{
    static const uint32_t shares[] = {50, 100, 200, 333, 500, 999};
    (void)state;

    for (uint32_t kind = 0; kind < LB_KIND_COUNT; kind++) {
        for (size_t k = 0; k < sizeof(shares) / sizeof(shares[0]); k++) {
            struct world *w = start(HOSTS, (enum lb_kind)kind, &never);

            give(w, 3, shares[k]);
            serve(w, 20000);
            assert_in_range(w->picked[3], 2 * shares[k] - 1, 2 * shares[k] + 1);
            free(w);
        }
    }
}

/* What it cannot serve in time would wait at it; one turn waits for it, no more. */
static void a_suspect_that_is_busier_than_others_has_to_wait_for_its_turn(void **state)
{
    (void)state;

    for (uint32_t kind = 0; kind < LB_KIND_COUNT; kind++) {
        struct world *w = start(HOSTS, (enum lb_kind)kind, &never);

        for (uint32_t i = 0; i < HOSTS; i++)
            w->hosts[i].in_flight = 3;
        give(w, 3, 500);
        w->hosts[3].in_flight = 4;
        serve(w, 1000);
        assert_in_range(w->picked[3], 49, 51);
        w->hosts[3].in_flight = 5;
        serve(w, 1000);
        assert_in_range(w->picked[3], 0, 1);
        w->hosts[3].in_flight = 4;
        serve(w, 1000);
        assert_in_range(w->picked[3], 50, 52);
        w->hosts[6].in_flight = 2; /* one of them would have served it at once */
        serve(w, 1000);
        assert_in_range(w->picked[3], 0, 1);
        free(w);
    }
}

/* Each has its own, and that of one is not at the other's cost. */
static void several_suspects_get_a_share_each(void **state)
{
    struct world *w = start(HOSTS, LB_LEAST, &never);
    (void)state;

    for (uint32_t i = 0; i < 4; i++)
        give(w, i, 300 + 100 * i);
    serve(w, 50000);
    for (uint32_t i = 0; i < 4; i++)
        assert_in_range(w->picked[i], 5 * (300 + 100 * i) - 2, 5 * (300 + 100 * i) + 2);
    for (uint32_t i = 4; i < HOSTS; i++)
        assert_in_range(w->picked[i], 6800, 6870); /* what is left, alike */
    free(w);
}

static void a_share_that_is_whole_again_is_fair_again(void **state)
{
    struct world *w = start(HOSTS, LB_ROUND_ROBIN, &never);
    (void)state;

    give(w, 3, 50);
    serve(w, 1000);
    give(w, 3, HOST_WHOLE);
    serve(w, 1000);
    assert_in_range(w->picked[3], 97, 103); /* each worker's turns are its own */
    free(w);
}

/* --- requests that failed elsewhere --- */

static void no_retry_goes_to_a_suspect_while_there_is_another(void **state)
{
    (void)state;

    for (uint32_t kind = 0; kind < LB_KIND_COUNT; kind++) {
        struct world *w = start(4, (enum lb_kind)kind, &never);
        const struct lb_tried one = {.count = 1, .at = {0}};
        const struct lb_tried all_good = {.count = 3, .at = {0, 1, 3}};
        const struct lb_tried all = {.count = 4, .at = {0, 1, 3, 2}};

        give(w, 2, 900);
        for (uint32_t i = 0; i < 1000; i++)
            assert_int_not_equal(retry(w, &one), 2);
        assert_int_equal(w->hosts[2].credit, 0);  /* nor does it earn by them */
        assert_int_equal(retry(w, &all_good), 2); /* rather a suspect than nobody new */
        assert_int_equal(retry(w, &all), LB_NO_HOST);
        free(w);
    }
}

/* --- nobody has a whole share --- */

static void where_all_are_suspects_they_share_it_all_in_proportion(void **state)
{
    (void)state;

    for (uint32_t kind = 0; kind < LB_KIND_COUNT; kind++) {
        struct world *w = start(4, (enum lb_kind)kind, &never);

        for (uint32_t i = 0; i < 4; i++)
            give(w, i, 50 * (i + 1));
        serve(w, 10000);
        for (uint32_t i = 0; i < 4; i++)
            assert_in_range(w->picked[i], 1000 * (i + 1) - 10, 1000 * (i + 1) + 10);
        free(w);
    }
}

static void the_only_host_serves_all_whatever_its_share(void **state)
{
    struct world *w = start(1, LB_LEAST, &never);
    (void)state;

    give(w, 0, 50);
    serve(w, 100);
    assert_int_equal(w->picked[0], 100);
    free(w);
}

static void where_all_are_suspects_a_retry_avoids_those_tried(void **state)
{
    struct world *w = start(3, LB_LEAST, &never);
    struct lb_tried tried = {.count = 0};
    uint32_t seen = 0;
    (void)state;

    for (uint32_t i = 0; i < 3; i++)
        give(w, i, 100);
    for (uint32_t i = 0; i < 3; i++) {
        tried.at[i] = retry(w, &tried);
        assert_true(tried.at[i] < 3);
        seen |= 1u << tried.at[i];
        tried.count++;
    }
    assert_int_equal(seen, 7);
    assert_int_equal(retry(w, &tried), LB_NO_HOST);
    free(w);
}

/* In panic all that is known of hosts is not believed any more. */
static void in_panic_shares_are_nothing(void **state)
{
    static const struct panic_config half = {.threshold = 50, .policy = PANIC_SERVE_ALL};
    struct world *w = start(4, LB_ROUND_ROBIN, &half);
    (void)state;

    give(w, 0, 50);
    host_set_health(&w->set, 1, HOST_EJECTED);
    serve(w, 3000);
    assert_false(lb_in_panic(&w->lb[0]));
    assert_in_range(w->picked[0], 49, 51); /* of three */
    host_set_health(&w->set, 2, HOST_EJECTED);
    host_set_health(&w->set, 3, HOST_EJECTED);
    serve(w, 4000);
    assert_true(lb_in_panic(&w->lb[0]));
    for (uint32_t i = 0; i < 4; i++)
        assert_in_range(w->picked[i], 990, 1010);
    free(w);
}

static void who_has_a_share_serves_and_who_is_out_does_not(void **state)
{
    struct world *w = start(4, LB_LEAST, &never);
    (void)state;

    give(w, 1, 50);
    host_set_health(&w->set, 2, HOST_EJECTED);
    give(w, 2, 50);
    assert_true(lb_serves(&w->lb[0], &w->set, 0, &w->rng[0]));
    assert_true(lb_serves(&w->lb[0], &w->set, 1, &w->rng[0]));
    assert_false(lb_serves(&w->lb[0], &w->set, 2, &w->rng[0]));
    serve(w, 4000);
    assert_int_equal(w->picked[2], 0);
    free(w);
}

/* --- the law --- */

/*
 * Whatever the shares, and however they change: a host with a share gets what it earns, within one
 * request and a half, as two may have earned one at once.
 */
static void the_law_of_shares_on_random_histories(void **state)
{
    (void)state;

    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct world *w;
        struct rng random;
        double earned[HOSTS] = {0}, got[HOSTS] = {0};
        uint32_t hosts;

        rng_init(&random, seed);
        hosts = 2 + rng_below(&random, HOSTS - 1);
        w = start(hosts, (enum lb_kind)(seed % LB_KIND_COUNT), &never);
        for (uint32_t round = 0; round < 40; round++) {
            uint32_t n = 50 + rng_below(&random, 500);

            give(w, rng_below(&random, hosts - 1),
                 rng_below(&random, 3) == 0 ? HOST_WHOLE : 50 + rng_below(&random, 950));
            serve(w, n);
            for (uint32_t i = 0; i + 1 < hosts; i++) {
                uint32_t share = host_share(&w->hosts[i]);

                if (share == HOST_WHOLE)
                    continue;
                earned[i] += (double)n * share / HOST_WHOLE / hosts;
                got[i] += w->picked[i];
                assert_true(got[i] <= earned[i] + 1.01);
                assert_true(got[i] >= earned[i] - 1.5);
            }
        }
        free(w);
    }
}

#define EACH 20000

struct worker {
    struct world *w;
    uint32_t number;
};

static void *pick_often(void *argument)
{
    struct worker *own = argument;

    for (uint32_t i = 0; i < EACH; i++)
        (void)pick_by(own->w, own->number);
    return NULL;
}

/* While the control thread makes suspects and acquits them; one is it all the time. */
static void workers_share_what_is_earned_without_locks(void **state)
{
    struct world *w = start(HOSTS, LB_LEAST, &never);
    struct worker workers[WORKERS];
    pthread_t threads[WORKERS];
    uint32_t all = 0;
    (void)state;

    give(w, 7, 500);
    for (uint32_t k = 0; k < WORKERS; k++) {
        workers[k] = (struct worker){w, k};
        assert_int_equal(pthread_create(&threads[k], NULL, pick_often, &workers[k]), 0);
    }
    for (uint32_t i = 0; i < 2000; i++)
        give(w, i % 5, i % 2 == 0 ? 50 : HOST_WHOLE);
    for (uint32_t k = 0; k < WORKERS; k++)
        pthread_join(threads[k], NULL);
    for (uint32_t i = 0; i < HOSTS; i++)
        all += w->picked[i];
    assert_int_equal(all, WORKERS * EACH);
    assert_in_range(w->picked[7], WORKERS * EACH / 20 - 2, WORKERS * EACH / 20 + 2);
    free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_suspect_gets_exactly_its_share_over_all_workers),
        cmocka_unit_test(a_suspect_that_is_busier_than_others_has_to_wait_for_its_turn),
        cmocka_unit_test(several_suspects_get_a_share_each),
        cmocka_unit_test(a_share_that_is_whole_again_is_fair_again),
        cmocka_unit_test(no_retry_goes_to_a_suspect_while_there_is_another),
        cmocka_unit_test(where_all_are_suspects_they_share_it_all_in_proportion),
        cmocka_unit_test(the_only_host_serves_all_whatever_its_share),
        cmocka_unit_test(where_all_are_suspects_a_retry_avoids_those_tried),
        cmocka_unit_test(in_panic_shares_are_nothing),
        cmocka_unit_test(who_has_a_share_serves_and_who_is_out_does_not),
        cmocka_unit_test(the_law_of_shares_on_random_histories),
        cmocka_unit_test(workers_share_what_is_earned_without_locks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
