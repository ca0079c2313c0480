/* SPDX-License-Identifier: Apache-2.0 */
/* Writing text and numbers, with the C library's printf as the judge of doubles. */
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"

static struct text room_for(char *data, size_t room)
{
    struct text t;

    text_init(&t, data, room);
    return t;
}

static void a_full_buffer_keeps_its_beginning_and_remembers(void **state)
{
    char data[8];
    struct text t = room_for(data, sizeof(data));
    (void)state;

    text_str(&t, "12345");
    assert_false(t.failed);
    text_str(&t, "67890");
    assert_true(t.failed);
    assert_int_equal(t.len, 8);
    assert_memory_equal(data, "12345678", 8);
    text_char(&t, 'x');
    text_u64(&t, 1);
    assert_int_equal(t.len, 8);
    assert_string_equal(text_end(&t), "1234567");
}

static void one_character_too_many_is_noticed(void **state)
{
    char data[1];
    struct text t = room_for(data, sizeof(data));
    struct text none = room_for(NULL, 0);
    (void)state;

    text_char(&t, 'a');
    assert_false(t.failed);
    text_char(&t, 'b');
    assert_true(t.failed);
    text_put(&none, BYTES_NONE);
    assert_false(none.failed);
    text_put(&none, BYTES("x"));
    assert_true(none.failed);
    assert_int_equal(text_bytes(&none).len, 0);
}

static void the_end_is_a_nul_that_does_not_count(void **state)
{
    char data[4];
    struct text t = room_for(data, sizeof(data));
    (void)state;

    text_str(&t, "abc");
    assert_string_equal(text_end(&t), "abc");
    assert_int_equal(t.len, 3);
    assert_false(t.failed);
    text_char(&t, 'd');
    assert_false(t.failed);
    assert_string_equal(text_end(&t), "abc");
    assert_true(t.failed);
}

static void whole_numbers_at_every_length(void **state)
{
    (void)state;

    for (uint64_t power = 1;; power *= 10) {
        for (int around = -1; around <= 1; around++) {
            uint64_t v = power + (uint64_t)(int64_t)around;
            char mine[64], theirs[64];
            struct text t = room_for(mine, sizeof(mine));

            text_u64(&t, v);
            text_char(&t, ' ');
            text_i64(&t, -(int64_t)(v / 2));
            snprintf(theirs, sizeof(theirs), "%" PRIu64 " %" PRId64, v, -(int64_t)(v / 2));
            assert_string_equal(text_end(&t), theirs);
        }
        if (power > UINT64_MAX / 10)
            break;
    }
}

/* Written whole or cut, whatever way the digits are found. */
static void small_numbers_in_every_room(void **state)
{
    (void)state;

    for (unsigned v = 0; v <= 10100; v++)
        for (size_t room = 1; room <= 8; room++) {
            char mine[8], theirs[16];
            struct text t = room_for(mine, room);
            size_t len;

            snprintf(theirs, sizeof(theirs), "x%u", v);
            len = strlen(theirs) < room ? strlen(theirs) : room;
            text_char(&t, 'x');
            text_u64(&t, v);
            assert_int_equal(t.len, len);
            assert_memory_equal(mine, theirs, len);
            assert_int_equal(t.failed, strlen(theirs) > room);
        }
}

static void the_ends_of_the_integers(void **state)
{
    char data[64];
    struct text t = room_for(data, sizeof(data));
    (void)state;

    text_u64(&t, UINT64_MAX);
    text_char(&t, ' ');
    text_i64(&t, INT64_MIN);
    text_char(&t, ' ');
    text_i64(&t, INT64_MAX);
    assert_string_equal(text_end(&t),
                        "18446744073709551615 -9223372036854775808 9223372036854775807");
}

static void hex_gives_the_lowest_digits(void **state)
{
    char data[64];
    struct text t = room_for(data, sizeof(data));
    (void)state;

    text_hex(&t, 0xDEADBEEF, 8);
    text_char(&t, ' ');
    text_hex(&t, 0xDEADBEEF, 3);
    text_char(&t, ' ');
    text_hex(&t, 0xf, 18);
    assert_string_equal(text_end(&t), "deadbeef eef 00000000000000000f");
}

static void hex_is_what_the_c_library_writes(void **state)
{
    struct rng rng;
    (void)state;

    rng_init(&rng, 3);
    for (unsigned i = 0; i < 20000; i++) {
        uint64_t v = rng_next(&rng) >> rng_below(&rng, 64);
        unsigned digits = 1 + rng_below(&rng, 20);
        char data[64], expected[64];
        struct text t = room_for(data, sizeof(data));

        text_hex(&t, v, digits);
        snprintf(expected, sizeof(expected), "%020llx", (unsigned long long)v);
        assert_string_equal(text_end(&t), expected + 20 - digits);
    }
}

static void what_finds_no_room_is_cut_to_the_byte(void **state)
{
    static const char expected[] = "deadbeef1234567word";
    (void)state;

    for (size_t room = 0; room < sizeof(expected); room++) {
        char data[sizeof(expected) + 1];
        struct text t = room_for(data, room);

        memset(data, '!', sizeof(data));
        text_hex(&t, 0xdeadbeef, 8);
        text_u64(&t, 1234567);
        text_str(&t, "word");
        assert_int_equal(t.failed, room < sizeof(expected) - 1);
        assert_int_equal(t.len, room);
        assert_memory_equal(data, expected, room);
        assert_int_equal(data[room], '!');
    }
}

static void expect_double(double v, unsigned decimals, const char *expected)
{
    char data[400];
    struct text t = room_for(data, sizeof(data));

    text_double(&t, v, decimals);
    assert_string_equal(text_end(&t), expected);
}

static void doubles_round_half_away_from_zero_and_exactly(void **state)
{
    (void)state;

    expect_double(0.5, 0, "1");
    expect_double(-0.5, 0, "-1");
    expect_double(2.5, 0, "3");
    expect_double(0.125, 2, "0.13");
    expect_double(-0.125, 2, "-0.13");
    expect_double(2.675, 2,
                  "2.67"); /* in truth 2.67499999999999982236431605997495353221893310546875 */
    expect_double(0.1, 9, "0.100000000");
    expect_double(9.9999, 3, "10.000");
    expect_double(0.9999999999, 9, "1.000000000");
    expect_double(1.0, 0, "1");
    expect_double(1234567.891, 3, "1234567.891");
}

static void doubles_without_a_value_have_names(void **state)
{
    (void)state;

    expect_double((double)NAN, 3, "nan");
    expect_double(-(double)NAN, 3, "nan");
    expect_double((double)INFINITY, 3, "inf");
    expect_double(-(double)INFINITY, 3, "-inf");
}

static void nothing_has_no_sign(void **state)
{
    (void)state;

    expect_double(-0.0, 2, "0.00");
    expect_double(-0.004, 2, "0.00");
    expect_double(5e-324, 9, "0.000000000");
    expect_double(-1e-300, 0, "0");
}

static bool is_tie(const char *exact, unsigned decimals)
{
    const char *rest = strchr(exact, '.') + 1 + decimals;

    return rest[0] == '5' && strspn(rest + 1, "0") == strlen(rest + 1);
}

/* printf rounds ties to even, so those are left to the test above. */
static void random_doubles_as_printf_writes_them(void **state)
{
    struct rng rng;
    (void)state;

    rng_init(&rng, 3);
    for (int round = 0; round < 20000; round++) {
        static char mine[400], theirs[400], exact[1600];
        unsigned decimals = rng_below(&rng, 10);
        struct text t = room_for(mine, sizeof(mine));
        uint64_t bits = rng_next(&rng);
        double v;

        if (round % 2 == 0) /* an everyday magnitude */
            bits = (bits & ~(UINT64_C(0x7ff) << 52)) | (uint64_t)(990 + rng_below(&rng, 100)) << 52;
        memcpy(&v, &bits, sizeof(v));
        if (!isfinite(v))
            continue;
        snprintf(exact, sizeof(exact), "%.1100f", v);
        snprintf(theirs, sizeof(theirs), "%.*f", (int)decimals, v);
        if (is_tie(exact, decimals) || strspn(theirs, "-0.") == strlen(theirs))
            continue;
        text_double(&t, v, decimals);
        assert_string_equal(text_end(&t), theirs);
    }
}

static void the_largest_doubles_are_written_in_full(void **state)
{
    const double large[] = {1.7976931348623157e308,
                            4503599627370496.0,
                            9007199254740993.0,
                            18446744073709551616.0,
                            1e22,
                            1e23};
    (void)state;

    for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++) {
        char theirs[400];

        snprintf(theirs, sizeof(theirs), "%.1f", -large[i]);
        expect_double(-large[i], 1, theirs);
    }
}

static unsigned distance(const char *a, const char *b)
{
    return text_distance(bytes_of(a), bytes_of(b), 10);
}

static void distance_counts_edits_and_swapped_neighbours(void **state)
{
    (void)state;

    assert_int_equal(distance("", ""), 0);
    assert_int_equal(distance("", "abc"), 3);
    assert_int_equal(distance("abc", ""), 3);
    assert_int_equal(distance("timeout", "timeout"), 0);
    assert_int_equal(distance("timeuot", "timeout"), 1);
    assert_int_equal(distance("timout", "timeout"), 1);
    assert_int_equal(distance("tiemout", "timeout"), 1);
    assert_int_equal(distance("kitten", "sitting"), 3);
    assert_int_equal(distance("ca", "abc"), 3); /* the restricted form */
    assert_int_equal(distance("ab", "ba"), 1);
}

static void distance_stops_at_its_limit(void **state)
{
    char lengthy[66];
    (void)state;

    memset(lengthy, 'a', sizeof(lengthy));
    assert_int_equal(text_distance(BYTES("kitten"), BYTES("sitting"), 2), 3);
    assert_int_equal(text_distance(BYTES("abcdef"), BYTES("uvwxyz"), 2), 3);
    assert_int_equal(text_distance(bytes_from(lengthy, 64), BYTES(""), 64), 64);
    assert_int_equal(text_distance(bytes_from(lengthy, 65), BYTES("a"), 100), 101);
    assert_int_equal(text_distance(BYTES("a"), bytes_from(lengthy, 65), 100), 101);
}

/* k random edits never lead further than k; and the way back is as long. */
static void distance_is_at_most_the_edits_made(void **state)
{
    struct rng rng;
    (void)state;

    rng_init(&rng, 5);
    for (int round = 0; round < 3000; round++) {
        uint8_t a[32], b[40];
        size_t len = 1 + rng_below(&rng, 30);
        unsigned edits = rng_below(&rng, 4);
        unsigned found;
        size_t n = len;

        for (size_t i = 0; i < len; i++)
            a[i] = b[i] = (uint8_t)('a' + rng_below(&rng, 4));
        for (unsigned e = 0; e < edits; e++) {
            size_t at = rng_below(&rng, (uint32_t)n);

            if (rng_below(&rng, 2) == 0) {
                b[at] = 'x';
            } else {
                memmove(b + at + 1, b + at, n - at);
                n++;
            }
        }
        found = text_distance(bytes_from(a, len), bytes_from(b, n), 10);
        assert_true(found <= edits);
        assert_true(found >= n - len);
        assert_int_equal(found, text_distance(bytes_from(b, n), bytes_from(a, len), 10));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_buffer_keeps_its_beginning_and_remembers),
        cmocka_unit_test(hex_is_what_the_c_library_writes),
        cmocka_unit_test(what_finds_no_room_is_cut_to_the_byte),
        cmocka_unit_test(one_character_too_many_is_noticed),
        cmocka_unit_test(the_end_is_a_nul_that_does_not_count),
        cmocka_unit_test(whole_numbers_at_every_length),
        cmocka_unit_test(small_numbers_in_every_room),
        cmocka_unit_test(the_ends_of_the_integers),
        cmocka_unit_test(hex_gives_the_lowest_digits),
        cmocka_unit_test(doubles_round_half_away_from_zero_and_exactly),
        cmocka_unit_test(doubles_without_a_value_have_names),
        cmocka_unit_test(nothing_has_no_sign),
        cmocka_unit_test(random_doubles_as_printf_writes_them),
        cmocka_unit_test(the_largest_doubles_are_written_in_full),
        cmocka_unit_test(distance_counts_edits_and_swapped_neighbours),
        cmocka_unit_test(distance_stops_at_its_limit),
        cmocka_unit_test(distance_is_at_most_the_edits_made),
    };

    return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
