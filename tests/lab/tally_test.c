/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/tally.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lab/show.h"

#define MS NS_PER_MS

static struct shot answered(uint32_t status)
{
    return (struct shot){.due_at = 10 * MS,
                         .sent_at = 40 * MS,
                         .over_at = 60 * MS,
                         .outcome = CALL_ANSWERED,
                         .status = status};
}

static void latency_counts_from_when_it_was_due(void **state)
{
    static struct tally t;
    struct shot s = answered(200);
    (void)state;

    tally_over(&t, &s);
    assert_int_equal(t.successes.max, 50 * MS);
    assert_int_equal(t.service.max, 20 * MS);
    assert_int_equal(t.all.max, 50 * MS);
}

static void success_is_an_answer_from_200_to_399(void **state)
{
    const uint32_t statuses[] = {199, 200, 304, 399, 400, 500};
    const bool good[] = {false, true, true, true, false, false};
    (void)state;

    for (unsigned i = 0; i < 6; i++) {
        struct shot s = answered(statuses[i]);

        assert_int_equal(shot_succeeded(&s), good[i]);
        s.outcome = CALL_RESET; /* after the head */
        assert_false(shot_succeeded(&s));
    }
}

static void failures_are_in_all_and_not_among_the_successes(void **state)
{
    static struct tally t;
    struct shot s = answered(503);
    (void)state;

    tally_over(&t, &s);
    s.outcome = CALL_TIMEOUT;
    tally_over(&t, &s);
    assert_int_equal(latency_count(&t.all), 2);
    assert_int_equal(latency_count(&t.successes), 0);
    assert_int_equal(latency_count(&t.service), 0);
    assert_int_equal(t.statuses[503], 1);
    assert_int_equal(t.outcomes[CALL_ANSWERED], 1);
    assert_int_equal(t.outcomes[CALL_TIMEOUT], 1);
    assert_int_equal(t.succeeded, 0);
}

static void a_status_beyond_the_table_is_no_trouble(void **state)
{
    static struct tally t;
    struct shot s = answered(999);
    (void)state;

    tally_over(&t, &s);
    assert_int_equal(t.outcomes[CALL_ANSWERED], 1);
    assert_int_equal(histogram_at_most(&t.all.histogram, UINT64_MAX), 1);
}

static void a_part_of_a_microsecond_counts_as_a_whole_one(void **state)
{
    static struct latency l;
    (void)state;

    latency_record(&l, 1001);
    latency_record(&l, 3 * MS);
    assert_int_equal(latency_quantile(&l, 0.5), 2000);
}

static void the_lag_is_what_the_generator_was_late(void **state)
{
    static struct tally t;
    (void)state;

    tally_sent(&t, 10 * MS, 13 * MS);
    tally_sent(&t, 10 * MS, 10 * MS);
    assert_int_equal(t.sent, 2);
    assert_int_equal(t.lag.max, 3 * MS);
}

static void no_quantile_is_above_the_largest_nor_below_the_value(void **state)
{
    static struct latency l;
    (void)state;

    assert_int_equal(latency_quantile(&l, 0.5), 0);
    latency_record(&l, 50 * MS + 1);
    assert_int_equal(latency_quantile(&l, 0.5), 50 * MS + 1);
    assert_int_equal(latency_quantile(&l, 1.0), 50 * MS + 1);
    latency_record(&l, 500 * MS);
    assert_true(latency_quantile(&l, 0.5) >= 50 * MS + 1);
    assert_true(latency_quantile(&l, 0.5) <= 52 * MS);
    assert_int_equal(latency_quantile(&l, 0.99), 500 * MS);
}

static const char *shown(span_ns ns)
{
    static char room[32];
    struct text t;

    text_init(&t, room, sizeof(room));
    show_span(&t, ns);
    return text_end(&t);
}

static void times_are_shown_with_three_digits(void **state)
{
    (void)state;

    assert_string_equal(shown(0), "0us");
    assert_string_equal(shown(812345), "812us");
    assert_string_equal(shown(1000000), "1.00ms");
    assert_string_equal(shown(9994000), "9.99ms");
    assert_string_equal(shown(9996000), "10.0ms");
    assert_string_equal(shown(51234567), "51.2ms");
    assert_string_equal(shown(99960000), "100ms");
    assert_string_equal(shown(512345678), "512ms");
    assert_string_equal(shown(1534000000), "1.53s");
    assert_string_equal(shown(61 * NS_PER_S), "61.0s");
}

static const char *share(uint64_t part, uint64_t whole)
{
    static char room[32];
    struct text t;

    text_init(&t, room, sizeof(room));
    show_share(&t, part, whole);
    return text_end(&t);
}

static void only_all_of_it_is_one_hundred_per_cent(void **state)
{
    (void)state;

    assert_string_equal(share(0, 0), "-");
    assert_string_equal(share(0, 5), "0.00 %");
    assert_string_equal(share(5, 5), "100.00 %");
    assert_string_equal(share(999999, 1000000), "99.99 %");
    assert_string_equal(share(UINT64_MAX - 1, UINT64_MAX), "99.99 %");
    assert_string_equal(share(2, 3), "66.66 %");
    assert_string_equal(share(1, 1000), "0.10 %");
}

static void pads_reach_their_column_and_are_never_nothing(void **state)
{
    char room[64];
    struct text t;
    (void)state;

    text_init(&t, room, sizeof(room));
    text_str(&t, "ab");
    show_pad(&t, 0, 5);
    assert_int_equal(t.len, 5);
    show_pad(&t, 0, 3);
    assert_int_equal(t.len, 6);
    show_pad(&t, 0, 1000); /* ends where there is no room */
    assert_true(t.failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(latency_counts_from_when_it_was_due),
        cmocka_unit_test(success_is_an_answer_from_200_to_399),
        cmocka_unit_test(failures_are_in_all_and_not_among_the_successes),
        cmocka_unit_test(a_status_beyond_the_table_is_no_trouble),
        cmocka_unit_test(a_part_of_a_microsecond_counts_as_a_whole_one),
        cmocka_unit_test(the_lag_is_what_the_generator_was_late),
        cmocka_unit_test(no_quantile_is_above_the_largest_nor_below_the_value),
        cmocka_unit_test(times_are_shown_with_three_digits),
        cmocka_unit_test(only_all_of_it_is_one_hundred_per_cent),
        cmocka_unit_test(pads_reach_their_column_and_are_never_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
