/* SPDX-License-Identifier: Apache-2.0 */
/* The balancers: only healthy hosts, fairly, at the same cost whatever their number. */
#include "policy/lb.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define HOSTS_MAX 1000

static const struct panic_config never = {.threshold = 0};

/* A cluster with one worker's balancer. */
struct world {
    struct host_set set;
    struct host *hosts;
    struct host *slots[HOSTS_MAX];
    _Atomic uint32_t epoch;
    struct lb lb;
    struct rng rng;
    uint32_t room[HOSTS_MAX];
    uint32_t picked[HOSTS_MAX];
};

static struct world *start(uint32_t hosts, enum lb_kind kind)
{
    struct world *w = calloc(1, sizeof(*w));

    assert_non_null(w);
    w->hosts = hosts == 0 ? NULL : aligned_alloc(64, hosts * sizeof(struct host));
    w->set = (struct host_set){.at = w->slots, .count = hosts, .epoch = &w->epoch};
    for (uint32_t i = 0; i < hosts; i++) {
        w->hosts[i] = (struct host){.health = HOST_HEALTHY};
        w->slots[i] = &w->hosts[i];
    }
    rng_init(&w->rng, 7);
    lb_init(&w->lb, kind, &never, w->room);
    return w;
}

static void stop(struct world *w)
{
    free(w->hosts);
    free(w);
}

static uint32_t pick(struct world *w)
{
    return lb_pick(&w->lb, &w->set, NULL, &w->rng, 0);
}

static void count_picks(struct world *w, uint32_t n)
{
    for (uint32_t i = 0; i < HOSTS_MAX; i++)
        w->picked[i] = 0;
    for (uint32_t i = 0; i < n; i++)
        w->picked[pick(w)]++;
}

/* Most and fewest picks of a healthy host. */
static void spread(const struct world *w, uint32_t *least, uint32_t *most)
{
    *least = UINT32_MAX;
    *most = 0;
    for (uint32_t i = 0; i < w->set.count; i++) {
        if (host_health(w->set.at[i]) != HOST_HEALTHY)
            continue;
        *least = w->picked[i] < *least ? w->picked[i] : *least;
        *most = w->picked[i] > *most ? w->picked[i] : *most;
    }
}

static void names_are_read_and_written(void **state)
{
    enum lb_kind kind = LB_KIND_COUNT;
    (void)state;

    for (uint32_t i = 0; i < LB_KIND_COUNT; i++) {
        assert_true(lb_kind_parse(bytes_of(lb_kind_text((enum lb_kind)i)), &kind));
        assert_int_equal(kind, i);
    }
    assert_string_equal(lb_kind_text(LB_ROUND_ROBIN), "round_robin");
    assert_true(lb_kind_parse(BYTES("two_choices"), &kind));
    assert_int_equal(kind, LB_P2C);
    assert_true(lb_kind_parse(BYTES("random"), &kind));
    assert_int_equal(kind, LB_RANDOM);
    assert_false(lb_kind_parse(BYTES(""), &kind)); /* not the alias of those that have none */
    assert_false(lb_kind_parse(BYTES("Random"), &kind));
    assert_false(lb_kind_parse(BYTES("ring_hash"), &kind));
    assert_int_equal(kind, LB_RANDOM);
}

static void nobody_healthy_gives_no_host(void **state)
{
    (void)state;

    for (uint32_t kind = 0; kind < LB_KIND_COUNT; kind++) {
        struct world *w = start(2, (enum lb_kind)kind);
        struct world *empty = start(0, (enum lb_kind)kind);

        host_set_health(&w->set, 0, HOST_EJECTED);
        host_set_health(&w->set, 1, HOST_EJECTED);
        assert_int_equal(pick(w), LB_NO_HOST);
        assert_int_equal(pick(w), LB_NO_HOST);
        assert_int_equal(pick(empty), LB_NO_HOST);
        host_set_health(&w->set, 1, HOST_HEALTHY);
        assert_int_equal(pick(w), 1);
        host_set_health(&w->set, 1, HOST_EJECTED);
        assert_int_equal(pick(w), LB_NO_HOST);
        host_set_health(&w->set, 0, HOST_HEALTHY);
        assert_int_equal(pick(w), 0);
        stop(w);
        stop(empty);
    }
}

static void the_only_host_is_picked_every_time(void **state)
{
    (void)state;

    for (uint32_t kind = 0; kind < LB_KIND_COUNT; kind++) {
        struct world *w = start(1, (enum lb_kind)kind);

        count_picks(w, 10);
        assert_int_equal(w->picked[0], 10);
        stop(w);
    }
}

static void round_robin_is_fair_within_one(void **state)
{
    struct world *w = start(7, LB_ROUND_ROBIN);
    uint32_t least, most;
    (void)state;

    for (uint32_t n = 1; n < 40; n++) {
        count_picks(w, n);
        spread(w, &least, &most);
        assert_true(most - least <= 1);
    }
    stop(w);
}

/* Counted across ejections and returns: a host that stays in never loses or doubles its turn. */
static void round_robin_stays_fair_to_those_that_stay(void **state)
{
    (void)state;

    for (uint32_t before = 0; before < 12; before++) {
        for (uint32_t gone = 0; gone < 5; gone++) {
            struct world *w = start(5, LB_ROUND_ROBIN);
            uint32_t least, most;

            for (uint32_t i = 0; i < before; i++)
                w->picked[pick(w)]++;
            host_set_health(&w->set, gone, HOST_EJECTED);
            for (uint32_t i = 0; i < 13; i++)
                w->picked[pick(w)]++;
            spread(w, &least, &most);
            assert_true(most - least <= 1);
            host_set_health(&w->set, gone, HOST_HEALTHY);
            w->picked[gone] = least;
            for (uint32_t i = 0; i < 4; i++)
                w->picked[pick(w)]++;
            for (uint32_t i = 0; i < 5; i++)
                assert_true(i == gone || w->picked[i] - least <= 2);
            stop(w);
        }
    }
}

static void round_robin_of_different_workers_begins_with_different_hosts(void **state)
{
    uint32_t first[4] = {0};
    (void)state;

    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct world *w = start(4, LB_ROUND_ROBIN);

        rng_init(&w->rng, seed);
        first[pick(w)]++;
        stop(w);
    }
    for (uint32_t i = 0; i < 4; i++)
        assert_in_range(first[i], 10, 40);
}

/* Chi-square, 9 degrees of freedom: 27.88 is passed by chance once in a thousand seeds; fixed. */
static void random_is_uniform(void **state)
{
    struct world *w = start(12, LB_RANDOM);
    double chi = 0;
    (void)state;

    host_set_health(&w->set, 0, HOST_EJECTED);
    host_set_health(&w->set, 5, HOST_EJECTED);
    count_picks(w, 100000);
    for (uint32_t i = 0; i < 12; i++) {
        double off = (double)w->picked[i] - 10000;

        if (i != 0 && i != 5)
            chi += off * off / 10000;
    }
    assert_true(chi < 27.88);
    assert_true(chi > 1.15); /* nor suspiciously even, as round robin would be */
    assert_int_equal(w->picked[0] + w->picked[5], 0);
    stop(w);
}

static void random_is_uniform_over_those_not_tried(void **state)
{
    const struct lb_tried tried = {.count = 4, .at = {6, 1, 6, 3}};
    struct world *w = start(8, LB_RANDOM);
    double chi = 0;
    (void)state;

    for (uint32_t i = 0; i < 50000; i++)
        w->picked[lb_pick(&w->lb, &w->set, &tried, &w->rng, 0)]++;
    for (uint32_t i = 0; i < 8; i++) {
        double off = (double)w->picked[i] - 10000;

        if (i == 1 || i == 3 || i == 6)
            assert_int_equal(w->picked[i], 0);
        else
            chi += off * off / 10000;
    }
    assert_true(chi < 18.47); /* 4 degrees of freedom, one in a thousand */
    stop(w);
}

static void p2c_of_two_takes_the_less_loaded(void **state)
{
    struct world *w = start(2, LB_P2C);
    (void)state;

    w->set.at[0]->in_flight = 3;
    w->set.at[1]->in_flight = 2;
    count_picks(w, 100);
    assert_int_equal(w->picked[1], 100);
    w->set.at[1]->in_flight = 4;
    count_picks(w, 100);
    assert_int_equal(w->picked[0], 100);
    stop(w);
}

static void p2c_takes_equals_in_turn(void **state)
{
    struct world *w = start(4, LB_P2C);
    (void)state;

    for (uint32_t round = 0; round < 100; round++) {
        count_picks(w, 4);
        for (uint32_t i = 0; i < 4; i++)
            assert_int_equal(w->picked[i], 1);
    }
    stop(w);
}

/* Only one is idle: it gets its own turns, and of the others' what it is drawn for. */
static void p2c_draws_each_of_the_others_alike(void **state)
{
    (void)state;

    for (uint32_t idle = 0; idle < 5; idle++) {
        struct world *w = start(5, LB_P2C);

        for (uint32_t i = 0; i < 5; i++)
            w->set.at[i]->in_flight = i != idle;
        count_picks(w, 50000);
        assert_in_range(w->picked[idle], 20000 - 400, 20000 + 400); /* 1/5 + 4/5 x 1/4 */
        for (uint32_t i = 0; i < 5; i++)
            if (i != idle)
                assert_in_range(w->picked[i], 7500 - 300, 7500 + 300);
        stop(w);
    }
}

/* Two different hosts are compared: so the most loaded never wins, the least one wins 2 in n. */
static void p2c_never_takes_the_most_loaded_of_many(void **state)
{
    struct world *w = start(10, LB_P2C);
    (void)state;

    for (uint32_t i = 0; i < 10; i++)
        w->set.at[i]->in_flight = i;
    count_picks(w, 45000);
    for (uint32_t i = 0; i < 10; i++) /* host i beats the 9 - i above it in 45 pairs */
        assert_in_range(w->picked[i], (9 - i) * 1000 - (i < 9 ? 200 : 0), (9 - i) * 1000 + 300);
    assert_int_equal(w->picked[9], 0);
    stop(w);
}

static void p2c_keeps_the_load_even(void **state)
{
    struct world *w = start(20, LB_P2C);
    uint32_t most = 0;
    (void)state;

    for (uint32_t i = 0; i < 2000; i++)
        w->set.at[pick(w)]->in_flight++;
    for (uint32_t i = 0; i < 20; i++)
        most = w->set.at[i]->in_flight > most ? w->set.at[i]->in_flight : most;
    assert_true(most <= 104); /* random choice gives about 120 */
    stop(w);
}

static void an_ejection_shows_at_the_very_next_pick(void **state)
{
    (void)state;

    for (uint32_t kind = 0; kind < LB_KIND_COUNT; kind++) {
        struct world *w = start(3, (enum lb_kind)kind);

        for (uint32_t i = 0; i < 60; i++) {
            uint32_t host = pick(w);

            assert_true(host < 3);
            host_set_health(&w->set, host, HOST_EJECTED);
            assert_int_not_equal(pick(w), host);
            assert_int_not_equal(pick(w), host);
            host_set_health(&w->set, host, HOST_HEALTHY);
        }
        stop(w);
    }
}

static void a_host_already_tried_is_avoided_while_there_is_another(void **state)
{
    const struct lb_tried one = {.count = 1, .at = {1}};
    const struct lb_tried two = {.count = 2, .at = {2, 1}};
    const struct lb_tried all = {.count = 3, .at = {2, 0, 1}};
    const struct lb_tried strangers = {.count = 2, .at = {77, 2}}; /* 77: of an older set */
    (void)state;

    for (uint32_t kind = 0; kind < LB_KIND_COUNT; kind++) {
        struct world *w = start(3, (enum lb_kind)kind);

        for (uint32_t i = 0; i < 20; i++) {
            assert_int_not_equal(lb_pick(&w->lb, &w->set, &one, &w->rng, 0), 1);
            assert_int_equal(lb_pick(&w->lb, &w->set, &two, &w->rng, 0), 0);
            assert_true(lb_pick(&w->lb, &w->set, &all, &w->rng, 0) < 3);
            assert_int_equal(lb_pick_other(&w->lb, &w->set, &two, &w->rng, 0), 0);
            assert_int_equal(lb_pick_other(&w->lb, &w->set, &all, &w->rng, 0), LB_NO_HOST);
            assert_true(lb_pick_other(&w->lb, &w->set, &strangers, &w->rng, 0) < 2);
            assert_true(lb_pick_other(&w->lb, &w->set, NULL, &w->rng, 0) < 3);
        }
        host_set_health(&w->set, 0, HOST_EJECTED);
        assert_int_equal(lb_pick_other(&w->lb, &w->set, &two, &w->rng, 0), LB_NO_HOST);
        assert_int_not_equal(lb_pick(&w->lb, &w->set, &two, &w->rng, 0), 0);
        assert_int_equal(lb_pick(&w->lb, &w->set, &one, &w->rng, 0), 2);
        stop(w);
    }
}

static void a_tried_host_that_is_out_keeps_no_other_away(void **state)
{
    const struct lb_tried tried = {.count = 1, .at = {1}};
    (void)state;

    for (uint32_t kind = 0; kind < LB_KIND_COUNT; kind++) {
        struct world *w = start(3, (enum lb_kind)kind);

        host_set_health(&w->set, 1, HOST_EJECTED);
        for (uint32_t i = 0; i < 40; i++)
            w->picked[lb_pick_other(&w->lb, &w->set, &tried, &w->rng, 0)]++;
        assert_true(w->picked[0] > 0);
        assert_true(w->picked[2] > 0);
        stop(w);
    }
}

/* Neighbours often share what made the first one fail. */
static void the_retries_of_one_host_go_to_all_others_alike(void **state)
{
    static const enum lb_kind kinds[] = {LB_LEAST, LB_P2C, LB_RANDOM};
    (void)state;

    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        struct world *w = start(8, kinds[k]);

        for (uint32_t i = 0; i < 4000; i++) {
            struct lb_tried tried = {.count = 1, .at = {pick(w)}};
            uint32_t other = lb_pick_other(&w->lb, &w->set, &tried, &w->rng, 0);

            w->picked[(other + 8 - tried.at[0]) % 8]++;
        }
        assert_int_equal(w->picked[0], 0);
        for (uint32_t away = 1; away < 8; away++)
            assert_in_range(w->picked[away], 571 - 110, 571 + 110);
        stop(w);
    }
}

static void a_failover_chain_goes_over_every_host_once(void **state)
{
    (void)state;

    for (uint32_t kind = 0; kind < LB_KIND_COUNT; kind++) {
        struct world *w = start(LB_TRIED_MAX, (enum lb_kind)kind);
        struct lb_tried tried = {.count = 0};
        uint32_t seen = 0;

        for (uint32_t i = 0; i < LB_TRIED_MAX; i++) {
            uint32_t host = lb_pick_other(&w->lb, &w->set, &tried, &w->rng, 0);

            assert_true(host < LB_TRIED_MAX);
            assert_int_equal(seen & (1u << host), 0);
            seen |= 1u << host;
            tried.at[tried.count++] = host;
        }
        assert_int_equal(lb_pick_other(&w->lb, &w->set, &tried, &w->rng, 0), LB_NO_HOST);
        stop(w);
    }
}

/*
 * With a thousand hosts a steady pick does not look at their health: changed behind the balancer's
 * back, without the epoch, it must not be seen; with the epoch it must.
 */
static void a_steady_pick_does_not_scan_the_hosts(void **state)
{
    (void)state;

    for (uint32_t kind = 0; kind < LB_KIND_COUNT; kind++) {
        struct world *w = start(1000, (enum lb_kind)kind);

        assert_true(pick(w) < 1000);
        for (uint32_t i = 1; i < 1000; i++)
            atomic_store(&w->set.at[i]->health, (uint32_t)HOST_EJECTED);
        count_picks(w, 1000);
        assert_true(w->picked[0] < 20);
        host_set_health(&w->set, 1, HOST_HEALTHY);
        count_picks(w, 1000);
        assert_int_equal(w->picked[0] + w->picked[1], 1000);
        for (uint32_t i = 0; i < 2; i++)
            atomic_store(&w->set.at[i]->health, (uint32_t)HOST_EJECTED);
        assert_int_not_equal(pick(w), LB_NO_HOST);
        host_set_health(&w->set, 2, HOST_EJECTED); /* nobody is left: that too is made only once */
        assert_int_equal(pick(w), LB_NO_HOST);
        atomic_store(&w->set.at[2]->health, (uint32_t)HOST_HEALTHY);
        assert_int_equal(pick(w), LB_NO_HOST);
        stop(w);
    }
}

/* The law, on random histories. */
static void only_healthy_hosts_are_picked_and_one_is_while_there_is_one(void **state)
{
    (void)state;

    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct rng random;
        struct world *w;
        uint32_t hosts, healthy;

        rng_init(&random, seed);
        hosts = 1 + rng_below(&random, 12);
        w = start(hosts, (enum lb_kind)(seed % LB_KIND_COUNT));
        healthy = hosts;
        for (uint32_t step = 0; step < 300; step++) {
            uint32_t i = rng_below(&random, hosts);
            struct lb_tried tried = {.count = rng_below(&random, LB_TRIED_MAX + 1)};
            uint32_t host;

            for (uint32_t k = 0; k < tried.count; k++)
                tried.at[k] = rng_below(&random, hosts + 2);
            if (rng_below(&random, 4) == 0) {
                healthy += host_health(w->set.at[i]) == HOST_HEALTHY ? UINT32_MAX : 1;
                host_set_health(&w->set, i,
                                host_health(w->set.at[i]) == HOST_HEALTHY ? HOST_EJECTED
                                                                          : HOST_HEALTHY);
            }
            host = lb_pick(&w->lb, &w->set, step % 2 == 0 ? &tried : NULL, &w->rng, 0);
            assert_int_equal(host == LB_NO_HOST, healthy == 0);
            if (host != LB_NO_HOST)
                assert_int_equal(host_health(w->set.at[host]), HOST_HEALTHY);
            host = lb_pick_other(&w->lb, &w->set, &tried, &w->rng, 0);
            for (uint32_t k = 0; k < tried.count; k++)
                assert_true(host == LB_NO_HOST || tried.at[k] != host);
            if (host != LB_NO_HOST)
                assert_int_equal(host_health(w->set.at[host]), HOST_HEALTHY);
        }
        stop(w);
    }
}

#define THREADS 3

/* Workers pick while the control thread ejects one host after another, never to return. */
struct crowd {
    struct host_set set;
    struct host hosts[100];
    struct host *slots[100];
    _Atomic uint32_t epoch;
    pthread_barrier_t start;
    _Atomic uint32_t gone; /* hosts 0 .. gone - 1 are out */
    _Atomic uint32_t wrong;
    enum lb_kind kind;
};

static void *pick_all_the_time(void *argument)
{
    struct crowd *c = argument;
    uint32_t room[100], gone = 0;
    struct rng rng;
    struct lb lb;

    rng_init(&rng, 5);
    lb_init(&lb, c->kind, &never, room);
    pthread_barrier_wait(&c->start);
    while (gone < 99) {
        uint32_t host;

        gone = atomic_load(&c->gone);
        host = lb_pick(&lb, &c->set, NULL, &rng, 0);
        if (host < gone || host >= 100)
            atomic_fetch_add(&c->wrong, 1);
        atomic_fetch_add_explicit(&c->hosts[host % 100].in_flight, 1, memory_order_relaxed);
    }
    return NULL;
}

static void an_ejection_shows_at_the_next_pick_of_every_worker(void **state)
{
    static struct crowd c;
    pthread_t threads[THREADS];
    (void)state;

    for (uint32_t kind = 0; kind < LB_KIND_COUNT; kind++) {
        c.kind = (enum lb_kind)kind;
        c.set = (struct host_set){.at = c.slots, .count = 100, .epoch = &c.epoch};
        atomic_store(&c.gone, 0);
        for (uint32_t i = 0; i < 100; i++) {
            c.hosts[i] = (struct host){.health = HOST_HEALTHY};
            c.slots[i] = &c.hosts[i];
        }
        pthread_barrier_init(&c.start, NULL, THREADS + 1);
        for (uint32_t i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, pick_all_the_time, &c), 0);
        pthread_barrier_wait(&c.start);
        for (uint32_t i = 0; i < 99; i++) {
            host_set_health(&c.set, i, HOST_EJECTED);
            atomic_store(&c.gone, i + 1);
            for (uint32_t seen = 0; seen < 20000 && atomic_load(&c.wrong) == 0; seen++)
                ; /* some picks in between; that there are is not needed for the law */
        }
        for (uint32_t i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        pthread_barrier_destroy(&c.start);
        assert_int_equal(c.wrong, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_read_and_written),
        cmocka_unit_test(nobody_healthy_gives_no_host),
        cmocka_unit_test(the_only_host_is_picked_every_time),
        cmocka_unit_test(round_robin_is_fair_within_one),
        cmocka_unit_test(round_robin_stays_fair_to_those_that_stay),
        cmocka_unit_test(round_robin_of_different_workers_begins_with_different_hosts),
        cmocka_unit_test(random_is_uniform),
        cmocka_unit_test(random_is_uniform_over_those_not_tried),
        cmocka_unit_test(p2c_of_two_takes_the_less_loaded),
        cmocka_unit_test(p2c_takes_equals_in_turn),
        cmocka_unit_test(p2c_draws_each_of_the_others_alike),
        cmocka_unit_test(p2c_never_takes_the_most_loaded_of_many),
        cmocka_unit_test(p2c_keeps_the_load_even),
        cmocka_unit_test(an_ejection_shows_at_the_very_next_pick),
        cmocka_unit_test(an_ejection_shows_at_the_next_pick_of_every_worker),
        cmocka_unit_test(a_host_already_tried_is_avoided_while_there_is_another),
        cmocka_unit_test(a_tried_host_that_is_out_keeps_no_other_away),
        cmocka_unit_test(the_retries_of_one_host_go_to_all_others_alike),
        cmocka_unit_test(a_failover_chain_goes_over_every_host_once),
        cmocka_unit_test(a_steady_pick_does_not_scan_the_hosts),
        cmocka_unit_test(only_healthy_hosts_are_picked_and_one_is_while_there_is_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
