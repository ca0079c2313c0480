/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/retry_budget.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"

/* Five first attempts pay for a retry; three more a second. */
static const struct retry_budget_config usual = {
    .earn_permille = 200, .floor_per_s = 3, .capacity = 10};
static const struct retry_budget_config by_traffic = {.earn_permille = 200, .capacity = 10};
static const struct retry_budget_config by_time = {.floor_per_s = 2, .capacity = 10};

static unsigned drain(struct retry_budget *b, const struct retry_budget_config *c, mono_ns now)
{
    unsigned n = 0;

    while (retry_budget_spend(b, c, now))
        n++;
    return n;
}

static void emptied(struct retry_budget *b, const struct retry_budget_config *c, mono_ns now)
{
    retry_budget_init(b);
    assert_int_equal(drain(b, c, now), c->capacity);
}

static void it_begins_full_and_runs_dry(void **state)
{
    struct retry_budget b;
    (void)state;

    retry_budget_init(&b);
    assert_int_equal(retry_budget_tokens(&b, &usual, 0), 10);
    for (uint32_t left = 10; left > 0; left--) {
        assert_int_equal(retry_budget_tokens(&b, &usual, 0), left);
        assert_true(retry_budget_spend(&b, &usual, 0));
    }
    assert_false(retry_budget_spend(&b, &usual, 0));
    assert_int_equal(retry_budget_tokens(&b, &usual, 0), 0);
}

static void zeroed_memory_is_a_full_one(void **state)
{
    static struct retry_budget b;
    (void)state;

    assert_int_equal(drain(&b, &usual, NS_PER_S), 10);
}

static void five_first_attempts_pay_for_a_retry(void **state)
{
    struct retry_budget b;
    (void)state;

    emptied(&b, &by_traffic, 0);
    for (int i = 0; i < 4; i++)
        retry_budget_earn(&b, &by_traffic);
    assert_false(retry_budget_spend(&b, &by_traffic, NS_PER_S));
    retry_budget_earn(&b, &by_traffic);
    assert_true(retry_budget_spend(&b, &by_traffic, NS_PER_S));
    assert_false(retry_budget_spend(&b, &by_traffic, NS_PER_S));
}

static void the_floor_comes_with_time_to_the_millisecond(void **state)
{
    struct retry_budget b;
    (void)state;

    emptied(&b, &by_time, 0);
    assert_false(retry_budget_spend(&b, &by_time, 500 * NS_PER_MS - 1));
    assert_true(retry_budget_spend(&b, &by_time, 500 * NS_PER_MS));
    assert_false(retry_budget_spend(&b, &by_time, 999 * NS_PER_MS));
    assert_true(retry_budget_spend(&b, &by_time, 1000 * NS_PER_MS));
}

/* A refusal must not lose the part of a token that has come in so far. */
static void asking_often_and_asking_once_give_the_same(void **state)
{
    struct retry_budget often, once;
    unsigned granted = 0;
    (void)state;

    emptied(&often, &usual, 0);
    emptied(&once, &usual, 0);
    for (mono_ns now = 0; now < 3 * NS_PER_S; now += 333333)
        granted += drain(&often, &usual, now);
    granted += drain(&often, &usual, 3 * NS_PER_S);
    assert_int_equal(granted, 9);
    assert_int_equal(drain(&once, &usual, 3 * NS_PER_S), 9);
}

static void a_refund_gives_the_token_back(void **state)
{
    struct retry_budget b;
    (void)state;

    emptied(&b, &usual, 0);
    retry_budget_refund(&b);
    assert_int_equal(drain(&b, &usual, 0), 1);
}

static void neither_time_nor_traffic_nor_refunds_overfill_it(void **state)
{
    struct retry_budget b;
    (void)state;

    emptied(&b, &usual, 0);
    assert_int_equal(retry_budget_tokens(&b, &usual, 3600 * NS_PER_S), 10);
    for (int i = 0; i < 1000; i++)
        retry_budget_earn(&b, &usual);
    retry_budget_refund(&b);
    assert_int_equal(drain(&b, &usual, 3600 * NS_PER_S), 10);
}

static void a_clock_that_stands_still_or_goes_back_gives_nothing(void **state)
{
    struct retry_budget b;
    (void)state;

    emptied(&b, &by_time, NS_PER_S);
    assert_int_equal(drain(&b, &by_time, NS_PER_S), 0);
    assert_int_equal(drain(&b, &by_time, 0), 0);
    assert_int_equal(drain(&b, &by_time, 1500 * NS_PER_MS), 1);
    assert_true(retry_budget_tokens(&b, &by_time, 0) == 0);
    assert_int_equal(drain(&b, &by_time, 1999 * NS_PER_MS), 0);
    retry_budget_refund(&b);
    assert_true(retry_budget_spend(&b, &by_time, 0)); /* the instant it knows stays the later one */
    assert_false(retry_budget_spend(&b, &by_time, 1999 * NS_PER_MS));
}

static void with_a_capacity_of_nothing_there_are_none(void **state)
{
    const struct retry_budget_config none = {.earn_permille = 1000, .floor_per_s = 100};
    struct retry_budget b;
    (void)state;

    retry_budget_init(&b);
    retry_budget_earn(&b, &none);
    assert_false(retry_budget_spend(&b, &none, 1000 * NS_PER_S));
}

static void extreme_values_do_not_overflow(void **state)
{
    const struct retry_budget_config extreme = {.earn_permille = UINT32_MAX,
                                                .floor_per_s = UINT32_MAX,
                                                .capacity = RETRY_BUDGET_CAPACITY_MAX};
    struct retry_budget b;
    (void)state;

    emptied(&b, &extreme, 0);
    assert_int_equal(retry_budget_tokens(&b, &extreme, MONO_NEVER), RETRY_BUDGET_CAPACITY_MAX);
    assert_int_equal(drain(&b, &extreme, MONO_NEVER), RETRY_BUDGET_CAPACITY_MAX);
    retry_budget_earn(&b, &extreme);
    assert_int_equal(retry_budget_tokens(&b, &extreme, MONO_NEVER), RETRY_BUDGET_CAPACITY_MAX);
}

/* A smaller capacity in between gives nothing away. */
static void changing_the_capacity_gives_no_tokens(void **state)
{
    const struct retry_budget_config small = {.capacity = 2}, large = {.capacity = 10};
    struct retry_budget b;
    (void)state;

    retry_budget_init(&b);
    for (int i = 0; i < 8; i++)
        assert_true(retry_budget_spend(&b, &large, 0));
    assert_int_equal(retry_budget_tokens(&b, &small, 0), 0);
    assert_false(retry_budget_spend(&b, &small, 0));
    assert_int_equal(retry_budget_tokens(&b, &large, 0), 2);
    assert_int_equal(drain(&b, &large, 0), 2);
}

static void a_share_is_cut_to_whole_requests_and_never_below_its_least(void **state)
{
    const struct retry_share share = {.given = true, .permille = 200, .least = 3};
    const struct retry_share fine = {.given = true, .permille = 125};
    const struct retry_share all = {.given = true, .permille = 1000};
    (void)state;

    assert_int_equal(retry_share_max(&share, 30), 6); /* C4 */
    assert_int_equal(retry_share_max(&share, 2), 3);  /* C5 */
    assert_int_equal(retry_share_max(&share, 10), 3);
    assert_int_equal(retry_share_max(&share, 24), 4);
    assert_int_equal(retry_share_max(&share, 25), 5);
    assert_int_equal(retry_share_max(&fine, 7), 0);
    assert_int_equal(retry_share_max(&fine, 8), 1);
    assert_int_equal(retry_share_max(&all, UINT64_MAX), UINT32_MAX);
    assert_int_equal(retry_share_max(&all, 5000000000), UINT32_MAX);
}

struct history {
    struct retry_budget_config config;
    struct rng rng;
    uint64_t paid; /* first attempts */
    uint64_t refunded;
    uint64_t granted;
    mono_ns now;
};

static void draw(struct history *h, uint64_t seed)
{
    *h = (struct history){.now = 0};
    rng_init(&h->rng, seed);
    h->config = (struct retry_budget_config){
        .earn_permille = rng_below(&h->rng, 3) == 0 ? 0 : rng_below(&h->rng, 1500),
        .floor_per_s = rng_below(&h->rng, 3) == 0 ? 0 : rng_below(&h->rng, 20),
        .capacity = rng_below(&h->rng, 30),
    };
}

static void step(struct history *h, struct retry_budget *b)
{
    switch (rng_below(&h->rng, 5)) {
    case 0:
        h->now += rng_next(&h->rng) % (200 * NS_PER_MS);
        break;
    case 1:
        retry_budget_earn(b, &h->config);
        h->paid++;
        break;
    case 2:
        if (h->granted > h->refunded && rng_below(&h->rng, 8) == 0) {
            retry_budget_refund(b);
            h->refunded++;
        }
        break;
    default:
        h->granted += retry_budget_spend(b, &h->config, h->now);
        break;
    }
}

/* The law it is there for, after every step, in thousandths of a token. */
static void it_never_grants_more_than_it_was_paid(void **state)
{
    (void)state;

    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct retry_budget b;
        struct history h;

        draw(&h, seed);
        retry_budget_init(&b);
        for (int i = 0; i < 1000; i++) {
            uint64_t paid;

            step(&h, &b);
            paid = h.config.capacity * UINT64_C(1000) + h.paid * h.config.earn_permille +
                   h.now / NS_PER_MS * h.config.floor_per_s;
            assert_true((h.granted - h.refunded) * 1000 <= paid);
        }
    }
}

/* The same sums the long way: a bucket that is settled at every step, in 64 bits without packing.
 */
static void it_agrees_with_the_plain_arithmetic(void **state)
{
    (void)state;

    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct retry_budget b;
        struct history h;
        uint64_t full, held;
        mono_ns settled = 0;

        draw(&h, seed);
        retry_budget_init(&b);
        full = h.config.capacity * UINT64_C(1000);
        held = full;
        for (int i = 0; i < 1000; i++) {
            struct history before = h;

            step(&h, &b);
            held += (h.now / NS_PER_MS - settled) * h.config.floor_per_s;
            settled = h.now / NS_PER_MS;
            held += (h.paid - before.paid) * h.config.earn_permille;
            held += (h.refunded - before.refunded) * 1000;
            held = held < full ? held : full;
            held -= (h.granted - before.granted) * 1000;
            assert_int_equal(retry_budget_tokens(&b, &h.config, h.now), held / 1000);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_begins_full_and_runs_dry),
        cmocka_unit_test(zeroed_memory_is_a_full_one),
        cmocka_unit_test(five_first_attempts_pay_for_a_retry),
        cmocka_unit_test(the_floor_comes_with_time_to_the_millisecond),
        cmocka_unit_test(asking_often_and_asking_once_give_the_same),
        cmocka_unit_test(a_refund_gives_the_token_back),
        cmocka_unit_test(neither_time_nor_traffic_nor_refunds_overfill_it),
        cmocka_unit_test(a_clock_that_stands_still_or_goes_back_gives_nothing),
        cmocka_unit_test(with_a_capacity_of_nothing_there_are_none),
        cmocka_unit_test(extreme_values_do_not_overflow),
        cmocka_unit_test(changing_the_capacity_gives_no_tokens),
        cmocka_unit_test(a_share_is_cut_to_whole_requests_and_never_below_its_least),
        cmocka_unit_test(it_never_grants_more_than_it_was_paid),
        cmocka_unit_test(it_agrees_with_the_plain_arithmetic),
    };

    return cmocka_run_group_tests_name("retry_budget", tests, NULL, NULL);
}
