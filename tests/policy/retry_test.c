/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/retry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static bool matches(uint32_t on, struct retry_failure f)
{
    const struct retry_policy p = {.on = on, .attempts = 1};

    return retry_matches(&p, &f);
}

#define ANSWER(code)                                                                               \
    (struct retry_failure)                                                                         \
    {                                                                                              \
        .kind = RETRY_FAILED_ANSWER, .status = (code), .sent = true                                \
    }
#define SILENT(what, was_sent)                                                                     \
    (struct retry_failure)                                                                         \
    {                                                                                              \
        .kind = RETRY_FAILED_##what, .sent = (was_sent)                                            \
    }

static void names_are_envoys_and_each_has_its_own_bit(void **state)
{
    uint32_t seen = 0;
    (void)state;

    for (uint32_t i = 0; i < RETRY_CONDITION_COUNT; i++) {
        uint32_t bit = retry_on_parse(bytes_of(retry_on_text(i)));

        assert_int_equal(bit, 1u << i);
        seen |= bit;
    }
    assert_int_equal(seen, (1u << RETRY_CONDITION_COUNT) - 1);
    assert_null(retry_on_text(RETRY_CONDITION_COUNT));
    assert_int_equal(retry_on_parse(BYTES("5XX")), RETRY_ON_NOTHING);
    assert_int_equal(retry_on_parse(BYTES("")), RETRY_ON_NOTHING);
    assert_int_equal(retry_on_parse(BYTES("connect-failure")), RETRY_ON_CONNECT_FAILURE);
}

static void answers_by_their_status(void **state)
{
    (void)state;

    assert_true(matches(RETRY_ON_5XX, ANSWER(500)));
    assert_true(matches(RETRY_ON_5XX, ANSWER(599)));
    assert_false(matches(RETRY_ON_5XX, ANSWER(499)));
    assert_false(matches(RETRY_ON_5XX, ANSWER(600)));
    assert_false(matches(RETRY_ON_GATEWAY_ERROR, ANSWER(500)));
    assert_false(matches(RETRY_ON_GATEWAY_ERROR, ANSWER(501)));
    assert_true(matches(RETRY_ON_GATEWAY_ERROR, ANSWER(502)));
    assert_true(matches(RETRY_ON_GATEWAY_ERROR, ANSWER(504)));
    assert_false(matches(RETRY_ON_GATEWAY_ERROR, ANSWER(505)));
    assert_true(matches(RETRY_ON_RETRIABLE_4XX, ANSWER(409)));
    assert_false(matches(RETRY_ON_RETRIABLE_4XX, ANSWER(429)));
    assert_false(matches(RETRY_ON_RESET | RETRY_ON_CONNECT_FAILURE | RETRY_ON_REFUSED_STREAM |
                             RETRY_ON_RESET_BEFORE_REQUEST,
                         ANSWER(503)));
}

static void a_list_of_codes_needs_its_condition(void **state)
{
    struct retry_policy p = {.on = RETRY_ON_RETRIABLE_STATUS_CODES, .attempts = 1};
    const struct retry_failure too_many = ANSWER(429), down = ANSWER(503), odd = ANSWER(999);
    (void)state;

    assert_true(retry_statuses_add(&p.statuses, 429));
    assert_true(retry_statuses_add(&p.statuses, 100));
    assert_true(retry_statuses_add(&p.statuses, 599));
    assert_false(retry_statuses_add(&p.statuses, 99));
    assert_false(retry_statuses_add(&p.statuses, 600));
    assert_false(retry_statuses_add(&p.statuses, UINT64_MAX));
    assert_true(retry_matches(&p, &too_many));
    assert_false(retry_matches(&p, &down));
    assert_false(retry_matches(&p, &odd));
    p.on = RETRY_ON_RETRIABLE_HEADERS;
    assert_false(retry_matches(&p, &too_many));
}

static void attempts_without_an_answer(void **state)
{
    const uint32_t broad[] = {RETRY_ON_5XX, RETRY_ON_GATEWAY_ERROR, RETRY_ON_RESET};
    (void)state;

    for (unsigned i = 0; i < 3; i++) {
        assert_true(matches(broad[i], SILENT(CONNECT, false)));
        assert_true(matches(broad[i], SILENT(RESET, true)));
        assert_true(matches(broad[i], SILENT(REFUSED, true)));
        assert_true(matches(broad[i], SILENT(TIME, true)));
    }
    assert_true(matches(RETRY_ON_CONNECT_FAILURE, SILENT(CONNECT, true)));
    assert_false(matches(RETRY_ON_CONNECT_FAILURE, SILENT(RESET, false)));
    assert_false(matches(RETRY_ON_CONNECT_FAILURE, SILENT(TIME, true)));
    assert_true(matches(RETRY_ON_REFUSED_STREAM, SILENT(REFUSED, true))); /* R8 */
    assert_false(matches(RETRY_ON_REFUSED_STREAM, SILENT(RESET, true)));
    assert_false(matches(RETRY_ON_RETRIABLE_STATUS_CODES | RETRY_ON_RETRIABLE_HEADERS |
                             RETRY_ON_RETRIABLE_4XX | RETRY_ON_ENVOY_RATELIMITED,
                         SILENT(RESET, false)));
}

static void reset_before_request_holds_only_while_nothing_was_sent(void **state)
{
    (void)state;

    assert_true(matches(RETRY_ON_RESET_BEFORE_REQUEST, SILENT(RESET, false)));
    assert_true(matches(RETRY_ON_RESET_BEFORE_REQUEST, SILENT(CONNECT, false)));
    assert_false(matches(RETRY_ON_RESET_BEFORE_REQUEST, SILENT(RESET, true)));
    assert_false(matches(RETRY_ON_RESET_BEFORE_REQUEST, SILENT(CONNECT, true)));
}

static void a_rate_limited_answer_has_a_condition_of_its_own(void **state)
{
    struct retry_failure f = ANSWER(503);
    (void)state;

    f.rate_limited = true;
    assert_false(matches(RETRY_ON_5XX, f));
    f.marked = true;
    assert_false(matches(~(uint32_t)RETRY_ON_ENVOY_RATELIMITED, f));
    assert_true(matches(RETRY_ON_ENVOY_RATELIMITED, f));
    f.rate_limited = false;
    assert_false(matches(RETRY_ON_ENVOY_RATELIMITED, f));
}

static void a_marked_answer_whatever_its_status(void **state)
{
    struct retry_failure f = ANSWER(200);
    (void)state;

    assert_false(matches(RETRY_ON_RETRIABLE_HEADERS, f));
    f.marked = true;
    assert_true(matches(RETRY_ON_RETRIABLE_HEADERS, f));
    assert_false(matches(RETRY_ON_5XX, f));
}

static void nothing_is_retried_on_nothing(void **state)
{
    (void)state;

    assert_false(matches(RETRY_ON_NOTHING, SILENT(CONNECT, false)));
    assert_false(matches(RETRY_ON_NOTHING, ANSWER(503)));
}

/* Both ends of the range are drawn, and nothing beyond them. */
static void check_range(const struct retry_policy *p, uint32_t n, uint64_t last_ms)
{
    uint64_t least = UINT64_MAX, most = 0;
    struct rng rng;

    rng_init(&rng, n);
    for (int i = 0; i < 20000; i++) {
        span_ns d = retry_backoff(p, n, &rng);

        assert_int_equal(d % NS_PER_MS, 0);
        least = d < least ? d : least;
        most = d > most ? d : most;
    }
    assert_int_equal(least, 0);
    assert_int_equal(most, last_ms * NS_PER_MS);
}

static void the_back_off_doubles_up_to_its_longest(void **state)
{
    const struct retry_policy usual = {.base = 25 * NS_PER_MS, .max = 250 * NS_PER_MS};
    const struct retry_policy flat = {.base = NS_PER_MS, .max = NS_PER_MS};
    (void)state;

    check_range(&usual, 1, 24);
    check_range(&usual, 2, 49);
    check_range(&usual, 3, 99);
    check_range(&usual, 4, 199);
    check_range(&usual, 5, 249);
    check_range(&usual, 6, 249);
    check_range(&usual, UINT32_MAX, 249);
    check_range(&flat, 3, 0);
}

static void the_longest_back_off_there_is_does_not_overflow(void **state)
{
    const struct retry_policy p = {.base = RETRY_BACKOFF_LONGEST, .max = RETRY_BACKOFF_LONGEST};
    const struct retry_policy q = {.base = RETRY_BACKOFF_LONGEST - NS_PER_MS,
                                   .max = RETRY_BACKOFF_LONGEST};
    struct rng rng;
    (void)state;

    rng_init(&rng, 1);
    assert_true(retry_backoff(&p, 40, &rng) < RETRY_BACKOFF_LONGEST);
    assert_true(retry_backoff(&q, 2, &rng) < RETRY_BACKOFF_LONGEST);
}

static void a_tenth_of_the_traffic_is_normal_and_always_a_few(void **state)
{
    (void)state;

    assert_true(retry_traffic_normal(0, 0));
    assert_true(retry_traffic_normal(1, 4));
    assert_false(retry_traffic_normal(1, 5));
    assert_true(retry_traffic_normal(50, 5));
    assert_false(retry_traffic_normal(49, 5));
    assert_true(retry_traffic_normal(1000, 100));
    assert_false(retry_traffic_normal(1009, 101));
    assert_true(retry_traffic_normal(1010, 101));
    assert_true(retry_traffic_normal(UINT64_MAX, UINT64_MAX / 11));
}

/*
 * The law: whatever the failure, a policy with more conditions retries it if one with fewer does,
 * and "5xx" covers all that a failed attempt of ours can be.
 */
static void more_conditions_never_retry_less(void **state)
{
    struct rng rng;
    (void)state;

    rng_init(&rng, 7);
    for (int i = 0; i < 20000; i++) {
        const uint32_t all = (1u << RETRY_CONDITION_COUNT) - 1;
        const struct retry_failure f = {
            .kind = (enum retry_failure_kind)rng_below(&rng, RETRY_FAILED_TIME + 1),
            .status = 100 + rng_below(&rng, 500),
            .marked = rng_below(&rng, 4) == 0,
            .rate_limited = rng_below(&rng, 4) == 0,
            .sent = rng_below(&rng, 2) == 0,
        };
        struct retry_policy few = {.on = rng_below(&rng, all + 1), .attempts = 1};
        struct retry_policy more = few;

        retry_statuses_add(&few.statuses, 100 + rng_below(&rng, 500));
        more.statuses = few.statuses;
        more.on |= rng_below(&rng, all + 1);
        if (retry_matches(&few, &f))
            assert_true(retry_matches(&more, &f));
        if (f.kind != RETRY_FAILED_ANSWER)
            assert_true(matches(RETRY_ON_5XX, f));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_envoys_and_each_has_its_own_bit),
        cmocka_unit_test(answers_by_their_status),
        cmocka_unit_test(a_list_of_codes_needs_its_condition),
        cmocka_unit_test(attempts_without_an_answer),
        cmocka_unit_test(reset_before_request_holds_only_while_nothing_was_sent),
        cmocka_unit_test(a_rate_limited_answer_has_a_condition_of_its_own),
        cmocka_unit_test(a_marked_answer_whatever_its_status),
        cmocka_unit_test(nothing_is_retried_on_nothing),
        cmocka_unit_test(the_back_off_doubles_up_to_its_longest),
        cmocka_unit_test(the_longest_back_off_there_is_does_not_overflow),
        cmocka_unit_test(a_tenth_of_the_traffic_is_normal_and_always_a_few),
        cmocka_unit_test(more_conditions_never_retry_less),
    };

    return cmocka_run_group_tests_name("retry", tests, NULL, NULL);
}
