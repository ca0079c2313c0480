/* SPDX-License-Identifier: Apache-2.0 */
/* What a name server leaves out is not at once forgotten, and never for longer than was asked. */
#include "policy/name_set.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"

#define S NS_PER_S

static struct name_set set;

static struct address ip(uint32_t n)
{
    return (struct address){.kind = ADDRESS_IPV4, .ip = {10, 0, (uint8_t)(n >> 8), (uint8_t)n}};
}

static void start(uint32_t first, mono_ns now)
{
    struct address a = ip(first);

    name_set_init(&set, &a, now);
}

/* Each byte of |lasts| is an address. */
static bool answer(const char *lasts, span_ns hold, mono_ns now)
{
    struct address at[NAME_SET_MAX];
    size_t n = strlen(lasts);

    for (size_t i = 0; i < n; i++)
        at[i] = ip((uint8_t)lasts[i]);
    return name_set_answer(&set, at, n, hold, now);
}

static void expect(const char *lasts)
{
    assert_int_equal(set.count, strlen(lasts));
    for (uint32_t i = 0; i < set.count; i++) {
        struct address a = ip((uint8_t)lasts[i]);

        assert_true(address_equal(&set.at[i], &a));
    }
}

static void without_a_hold_the_answer_is_the_set(void **state)
{
    (void)state;

    start(1, 0);
    assert_true(answer("\2\3\1", 0, S));
    expect("\1\2\3");
    assert_true(answer("\4\3", 0, 2 * S));
    expect("\3\4");
    assert_true(answer("\5", 0, 2 * S)); /* in the same instant, too */
    expect("\5");
}

static void another_order_or_one_twice_is_no_change(void **state)
{
    (void)state;

    start(1, 0);
    assert_true(answer("\1\2\3", 0, S));
    assert_false(answer("\3\1\2", 0, 2 * S));
    assert_false(answer("\2\3\2\1\1", 0, 3 * S));
    expect("\1\2\3");
}

static void what_is_left_out_stays_for_the_hold_and_no_longer(void **state)
{
    (void)state;

    start(1, 0);
    assert_true(answer("\1\2", 10 * S, 0));
    assert_true(answer("\3", 10 * S, 4 * S));
    expect("\1\2\3");
    assert_false(answer("\3", 10 * S, 10 * S - 1));
    assert_true(answer("\3", 10 * S, 10 * S));
    expect("\3");
}

static void what_comes_back_within_the_hold_never_left(void **state)
{
    (void)state;

    start(1, 0);
    assert_true(answer("\1\2", 10 * S, 0));
    assert_false(answer("\2", 10 * S, 9 * S));
    assert_false(answer("\1", 10 * S, 9 * S));
    assert_false(answer("\2", 10 * S, 18 * S)); /* one is held anew, from when it was seen */
    expect("\1\2");
    assert_true(answer("\2", 10 * S, 19 * S));
    expect("\2");
}

static void a_clock_that_goes_back_drops_nobody_who_is_held(void **state)
{
    (void)state;

    start(1, 100 * S);
    assert_true(answer("\2", 10 * S, 50 * S));
    expect("\1\2");
}

static void a_full_set_gives_up_who_was_held_longest_and_nobody_who_was_named(void **state)
{
    struct address many[NAME_SET_MAX + 2];
    (void)state;

    for (uint32_t i = 0; i < NAME_SET_MAX + 2; i++)
        many[i] = ip(i + 1);
    start(1, 0);
    assert_true(name_set_answer(&set, many, NAME_SET_MAX, 60 * S, 0));
    assert_false(name_set_answer(&set, many + 1, NAME_SET_MAX - 1, 60 * S, S));
    assert_false(name_set_answer(&set, many, 1, 60 * S, 2 * S)); /* all others since 1 s */
    assert_false(name_set_answer(&set, many + 2, NAME_SET_MAX - 2, 60 * S, 3 * S));
    assert_true(name_set_answer(&set, many + NAME_SET_MAX, 1, 60 * S, 4 * S));
    assert_int_equal(set.count, NAME_SET_MAX);
    assert_true(address_equal(&set.at[1], &many[NAME_SET_MAX])); /* in the place of the second */
    assert_true(address_equal(&set.at[0], &many[0]));
    assert_true(name_set_answer(&set, many, NAME_SET_MAX, 60 * S, 5 * S));
    assert_false(name_set_answer(&set, many, NAME_SET_MAX + 2, 60 * S, 5 * S)); /* no room */
    assert_int_equal(set.count, NAME_SET_MAX);
}

/* --- the law: who is in is who was named within the hold --- */

#define KINDS 40

static uint32_t draw_answer(struct rng *random, struct address *at)
{
    uint32_t n = 1 + rng_below(random, 8);

    for (uint32_t i = 0; i < n; i++)
        at[i] = ip(rng_below(random, KINDS));
    return n;
}

static bool is_in(uint32_t kind)
{
    struct address a = ip(kind);
    uint32_t times = 0;

    for (uint32_t i = 0; i < set.count; i++)
        times += address_equal(&set.at[i], &a);
    assert_true(times <= 1);
    return times == 1;
}

static uint64_t members(void)
{
    uint64_t bits = 0;

    for (uint32_t k = 0; k < KINDS; k++)
        bits |= (uint64_t)is_in(k) << k;
    return bits;
}

static void who_is_in_is_who_was_named_within_the_hold(void **state)
{
    (void)state;

    for (uint64_t seed = 1; seed <= 100; seed++) {
        span_ns hold = (seed % 4) * 3 * S;
        mono_ns named[KINDS], now = 1000 * S;
        unsigned answered[KINDS]; /* the last turn that had it, from 1 on */
        struct rng random;

        rng_init(&random, seed);
        memset(named, 0, sizeof(named));
        memset(answered, 0, sizeof(answered));
        start(7, now);
        named[7] = now;
        for (unsigned turn = 0; turn < 200; turn++) {
            struct address at[8];
            uint64_t before = members();
            uint32_t n = draw_answer(&random, at);
            bool changed;

            now += rng_below(&random, 4) * S;
            for (uint32_t i = 0; i < n; i++) {
                named[at[i].ip[3]] = now;
                answered[at[i].ip[3]] = turn + 1;
            }
            changed = name_set_answer(&set, at, n, hold, now);
            for (uint32_t k = 0; k < KINDS; k++)
                assert_int_equal(is_in(k), answered[k] == turn + 1 ||
                                               (named[k] != 0 && now - named[k] < hold));
            assert_int_equal(changed, before != members());
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_hold_the_answer_is_the_set),
        cmocka_unit_test(another_order_or_one_twice_is_no_change),
        cmocka_unit_test(what_is_left_out_stays_for_the_hold_and_no_longer),
        cmocka_unit_test(what_comes_back_within_the_hold_never_left),
        cmocka_unit_test(a_clock_that_goes_back_drops_nobody_who_is_held),
        cmocka_unit_test(a_full_set_gives_up_who_was_held_longest_and_nobody_who_was_named),
        cmocka_unit_test(who_is_in_is_who_was_named_within_the_hold),
    };

    return cmocka_run_group_tests_name("name_set", tests, NULL, NULL);
}
