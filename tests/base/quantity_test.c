/* SPDX-License-Identifier: Apache-2.0 */
/* Durations and sizes: what is taken, what is refused, and the way there and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "base/text.h"
#include "base/units.h"

static void expect_duration(const char *text, uint64_t ns)
{
    uint64_t found = ns + 1;

    assert_true(text_parse_duration(bytes_of(text), &found));
    assert_true(found == ns);
}

static void expect_size(const char *text, uint64_t size)
{
    uint64_t found = size + 1;

    assert_true(text_parse_size(bytes_of(text), &found));
    assert_true(found == size);
}

static void durations_as_go_and_istio_write_them(void **state)
{
    (void)state;

    expect_duration("15s", 15 * NS_PER_S);
    expect_duration("250ms", 250 * NS_PER_MS);
    expect_duration("1m30s", 90 * NS_PER_S);
    expect_duration("1h", 3600 * NS_PER_S);
    expect_duration("1h0m0s", 3600 * NS_PER_S);
    expect_duration("0s", 0);
    expect_duration("0", 0);
    expect_duration("1.5s", 1500 * NS_PER_MS);
    expect_duration(".5s", 500 * NS_PER_MS);
    expect_duration("5.s", 5 * NS_PER_S);
    expect_duration("0.1h", 360 * NS_PER_S);
    expect_duration("7us", 7000);
    expect_duration("7\xc2\xb5s", 7000);
    expect_duration("7\xce\xbcs", 7000);
    expect_duration("12ns", 12);
    expect_duration("1.9ns", 1);
    expect_duration("0.0000000019s", 1);
    expect_duration("0.33333333333333333333333333333333h", UINT64_C(1199999999999));
}

static void durations_that_are_none_are_refused(void **state)
{
    const char *const wrong[] = {"",
                                 "s",
                                 "15",
                                 "-1s",
                                 "+1s",
                                 "1 s",
                                 " 1s",
                                 "1s ",
                                 "1d",
                                 "1S",
                                 ".s",
                                 "1..5s",
                                 "1.5.s",
                                 "1e3s",
                                 "s1",
                                 "1h30",
                                 "00",
                                 "1m30",
                                 "1sx",
                                 "\xc2s",
                                 "18446744073709551616ns",
                                 "5124096h",
                                 "18446744074s",
                                 "18446744073s1s",
                                 "18446744073.709551616s"};
    uint64_t ns = 77;
    (void)state;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_false(text_parse_duration(bytes_of(wrong[i]), &ns));
    assert_int_equal(ns, 77);
}

static void the_longest_duration_still_fits(void **state)
{
    (void)state;

    expect_duration("18446744073709551615ns", UINT64_MAX);
    expect_duration("18446744073.709551615s", UINT64_MAX);
    expect_duration("18446744073s709551615ns", UINT64_MAX);
}

static void durations_are_written_in_the_unit_that_reads_best(void **state)
{
    static const struct {
        uint64_t ns;
        const char *text;
    } rows[] = {
        {0, "0s"},
        {1, "1ns"},
        {999, "999ns"},
        {1000, "1us"},
        {NS_PER_MS, "1ms"},
        {1500, "1.5us"},
        {250 * NS_PER_MS, "250ms"},
        {1500 * NS_PER_US, "1.5ms"},
        {NS_PER_S, "1s"},
        {1500 * NS_PER_MS, "1.5s"},
        {90 * NS_PER_S, "1m30s"},
        {60 * NS_PER_S, "1m"},
        {3600 * NS_PER_S, "1h"},
        {3601 * NS_PER_S + 1, "1h1.000000001s"},
        {UINT64_MAX, "5124095h34m33.709551615s"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char data[64];
        struct text t;

        text_init(&t, data, sizeof(data));
        text_duration(&t, rows[i].ns);
        assert_string_equal(text_end(&t), rows[i].text);
    }
}

static void what_is_written_reads_back_the_same(void **state)
{
    struct rng rng;
    (void)state;

    rng_init(&rng, 9);
    for (int round = 0; round < 20000; round++) {
        uint64_t ns = rng_next(&rng) >> rng_below(&rng, 64);
        uint64_t back = 0;
        char data[64];
        struct text t;

        text_init(&t, data, sizeof(data));
        text_duration(&t, ns);
        assert_false(t.failed);
        assert_true(text_parse_duration(text_bytes(&t), &back));
        assert_true(back == ns);
    }
}

static void sizes_in_bytes_and_binary_units(void **state)
{
    (void)state;

    expect_size("65536", 65536);
    expect_size("0", 0);
    expect_size("10B", 10);
    expect_size("64KiB", 65536);
    expect_size("64Ki", 65536);
    expect_size("1MiB", 1048576);
    expect_size("1.5MiB", 1572864);
    expect_size("2GiB", UINT64_C(2147483648));
    expect_size("512Mi", UINT64_C(536870912));
    expect_size("1TiB", UINT64_C(1099511627776));
    expect_size("1Gi", UINT64_C(1073741824));
    expect_size("1Ti", UINT64_C(1099511627776));
    expect_size("18446744073709551615", UINT64_MAX);
    expect_size("0.0009765625KiB", 1);
    expect_size("16777215.999999999TiB", UINT64_C(18446744073709550516));
}

static void sizes_that_are_none_are_refused(void **state)
{
    const char *const wrong[] = {"",
                                 "KiB",
                                 "64kB",
                                 "64kib",
                                 "64K",
                                 "1MB",
                                 "-1",
                                 "1.5",
                                 "1 KiB",
                                 "1KiBx",
                                 "1Mi1Ki",
                                 "16777216TiB",
                                 "18446744073709551616"};
    uint64_t size = 77;
    (void)state;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_false(text_parse_size(bytes_of(wrong[i]), &size));
    assert_int_equal(size, 77);
}

/* Any bytes at all: an answer, and the output untouched where it is no. */
static void random_bytes_do_no_harm(void **state)
{
    static const char letters[] = "0123456789.smhnuKMGTiB\xc2\xb5\xce\xbc -";
    struct rng rng;
    (void)state;

    rng_init(&rng, 13);
    for (int round = 0; round < 50000; round++) {
        char data[24];
        size_t len = rng_below(&rng, sizeof(data));
        uint64_t v = 77;

        for (size_t i = 0; i < len; i++)
            data[i] = letters[rng_below(&rng, sizeof(letters) - 1)];
        if (!text_parse_duration(bytes_from(data, len), &v))
            assert_int_equal(v, 77);
        v = 77;
        if (!text_parse_size(bytes_from(data, len), &v))
            assert_int_equal(v, 77);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations_as_go_and_istio_write_them),
        cmocka_unit_test(durations_that_are_none_are_refused),
        cmocka_unit_test(the_longest_duration_still_fits),
        cmocka_unit_test(durations_are_written_in_the_unit_that_reads_best),
        cmocka_unit_test(what_is_written_reads_back_the_same),
        cmocka_unit_test(sizes_in_bytes_and_binary_units),
        cmocka_unit_test(sizes_that_are_none_are_refused),
        cmocka_unit_test(random_bytes_do_no_harm),
    };

    return cmocka_run_group_tests_name("quantity", tests, NULL, NULL);
}
