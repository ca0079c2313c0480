/* SPDX-License-Identifier: Apache-2.0 */
/* Views of bytes: comparing, finding, splitting, reading numbers. */
#include "base/bytes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rng.h"

static void case_of_ascii_letters_alone_is_ignored(void **state)
{
    (void)state;

    assert_true(bytes_equal_nocase(BYTES("Content-Length"), BYTES("cONTENT-lENGTH")));
    assert_true(bytes_equal_nocase(BYTES("TE"), BYTES("te")));
    assert_true(bytes_equal_nocase(BYTES("Host"), BYTES("hosT")));
    assert_true(bytes_equal_nocase(BYTES_NONE, BYTES("")));
    assert_false(bytes_equal_nocase(BYTES("host"), BYTES("hosts")));
    assert_false(bytes_equal_nocase(BYTES("[@`{"), BYTES("{`@[")));
    assert_false(bytes_equal_nocase(BYTES("\xc4pfelbaum"), BYTES("\xe4pfelbaum")));
}

/* Every pair of bytes, at every place of words of every length, against the plain definition. */
static void nocase_agrees_with_the_definition_everywhere(void **state)
{
    (void)state;

    for (size_t len = 1; len <= 19; len++)
        for (size_t at = 0; at < len; at++)
            for (unsigned pair = 0; pair < 65536; pair += len == 9 ? 1 : 37) {
                uint8_t a[19], b[19];

                memset(a, 'Q', sizeof(a));
                memset(b, 'q', sizeof(b));
                a[at] = (uint8_t)pair;
                b[at] = (uint8_t)(pair >> 8);
                assert_int_equal(bytes_equal_nocase(bytes_from(a, len), bytes_from(b, len)),
                                 byte_lower(a[at]) == byte_lower(b[at]));
            }
}

/* Exactly as long as the heap block, so that the sanitizer sees a step too far. */
static void nocase_reads_nothing_beyond_its_end(void **state)
{
    (void)state;

    for (size_t len = 1; len <= 40; len++) {
        uint8_t *a = malloc(len);
        uint8_t *b = malloc(len);

        assert_true(a != NULL && b != NULL);
        memset(a, 'X', len);
        memset(b, 'x', len);
        assert_true(bytes_equal_nocase(bytes_from(a, len), bytes_from(b, len)));
        b[len - 1] = 'y';
        assert_false(bytes_equal_nocase(bytes_from(a, len), bytes_from(b, len)));
        free(a);
        free(b);
    }
}

static void slices_are_cut_to_what_is_there(void **state)
{
    struct bytes b = BYTES("firebreak");
    (void)state;

    assert_true(bytes_equal(bytes_slice(b, 4, 5), BYTES("break")));
    assert_true(bytes_equal(bytes_slice(b, 4, SIZE_MAX), BYTES("break")));
    assert_true(bytes_equal(bytes_slice(b, 100, 5), BYTES("")));
    assert_true(bytes_equal(bytes_skip(b, SIZE_MAX), BYTES("")));
    assert_true(bytes_equal(bytes_slice(BYTES_NONE, 3, 4), BYTES_NONE));
    assert_true(bytes_start_with(b, BYTES("fire")));
    assert_true(bytes_start_with(b, BYTES("")));
    assert_false(bytes_start_with(BYTES("fir"), BYTES("fire")));
    assert_false(bytes_equal(BYTES("fire"), BYTES("fira")));
    assert_int_equal(bytes_of(NULL).len, 0);
    assert_int_equal(bytes_of("abc").len, 3);
}

static void find_gives_the_first_or_the_length(void **state)
{
    (void)state;

    assert_int_equal(bytes_find(BYTES("a,b,c"), ','), 1);
    assert_int_equal(bytes_find(BYTES("abc"), ','), 3);
    assert_int_equal(bytes_find(BYTES("a\0b"), 0), 1);
    assert_int_equal(bytes_find(BYTES_NONE, 'x'), 0);
    assert_int_equal(bytes_find(bytes_from("ab,", 2), ','), 2);
}

static void trim_takes_blanks_and_tabs_only(void **state)
{
    (void)state;

    assert_true(bytes_equal(bytes_trim(BYTES(" \t a b\t ")), BYTES("a b")));
    assert_true(bytes_equal(bytes_trim(BYTES("\r\na\n")), BYTES("\r\na\n")));
    assert_int_equal(bytes_trim(BYTES(" \t ")).len, 0);
    assert_int_equal(bytes_trim(BYTES_NONE).len, 0);
}

static void a_list_is_taken_apart_element_by_element(void **state)
{
    struct bytes rest = BYTES(",, close ,\tUpgrade,, keep-alive x , ,");
    struct bytes element = BYTES("untouched");
    (void)state;

    assert_true(bytes_next_element(&rest, &element));
    assert_true(bytes_equal(element, BYTES("close")));
    assert_true(bytes_next_element(&rest, &element));
    assert_true(bytes_equal(element, BYTES("Upgrade")));
    assert_true(bytes_next_element(&rest, &element));
    assert_true(bytes_equal(element, BYTES("keep-alive x")));
    assert_false(bytes_next_element(&rest, &element));
    assert_true(bytes_equal(element, BYTES("keep-alive x")));
    rest = BYTES_NONE;
    assert_false(bytes_next_element(&rest, &element));
}

static void numbers_are_digits_and_nothing_else(void **state)
{
    const char *const wrong[] = {"",
                                 " 1",
                                 "1 ",
                                 "+1",
                                 "-1",
                                 "0x1",
                                 "1.0",
                                 "1e3",
                                 "/",
                                 ":",
                                 "18446744073709551616",
                                 "18446744073709551620",
                                 "99999999999999999999999"};
    uint64_t v = 7;
    (void)state;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_false(bytes_parse_u64(bytes_of(wrong[i]), &v));
    assert_int_equal(v, 7);
    assert_true(bytes_parse_u64(BYTES("18446744073709551615"), &v));
    assert_true(v == UINT64_MAX);
    assert_true(bytes_parse_u64(BYTES("000000000000000000000000042"), &v));
    assert_int_equal(v, 42);
    assert_true(bytes_parse_u64(BYTES("0"), &v));
    assert_int_equal(v, 0);
}

/* From the table of the FNV authors. */
static void the_hash_is_fnv_1a(void **state)
{
    (void)state;

    assert_true(bytes_hash(BYTES("")) == UINT64_C(0xcbf29ce484222325));
    assert_true(bytes_hash(BYTES("a")) == UINT64_C(0xaf63dc4c8601ec8c));
    assert_true(bytes_hash(BYTES("foobar")) == UINT64_C(0x85944171f73967e8));
}

/* What was joined with commas and blanks comes apart as it was. */
static void random_lists_come_apart_as_they_were_joined(void **state)
{
    struct rng rng;
    (void)state;

    rng_init(&rng, 11);
    for (int round = 0; round < 2000; round++) {
        uint8_t joined[400];
        uint8_t first[20];
        size_t len = 0, count = rng_below(&rng, 20), seen = 0;
        struct bytes rest, element;

        for (size_t i = 0; i < count; i++) {
            for (uint32_t n = rng_below(&rng, 3); n > 0; n--)
                joined[len++] = (uint8_t) ",\t "[rng_below(&rng, i == 0 ? 3 : 1)];
            first[i] = (uint8_t)('a' + rng_below(&rng, 26));
            joined[len++] = first[i];
            for (uint32_t n = rng_below(&rng, 5); n > 0; n--)
                joined[len++] = 'x';
            for (uint32_t n = rng_below(&rng, 3); n > 0; n--)
                joined[len++] = ' ';
            joined[len++] = ',';
        }
        rest = bytes_from(joined, len);
        for (; bytes_next_element(&rest, &element); seen++)
            assert_int_equal(element.data[0], first[seen]);
        assert_int_equal(seen, count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_of_ascii_letters_alone_is_ignored),
        cmocka_unit_test(nocase_agrees_with_the_definition_everywhere),
        cmocka_unit_test(nocase_reads_nothing_beyond_its_end),
        cmocka_unit_test(slices_are_cut_to_what_is_there),
        cmocka_unit_test(find_gives_the_first_or_the_length),
        cmocka_unit_test(trim_takes_blanks_and_tabs_only),
        cmocka_unit_test(a_list_is_taken_apart_element_by_element),
        cmocka_unit_test(numbers_are_digits_and_nothing_else),
        cmocka_unit_test(the_hash_is_fnv_1a),
        cmocka_unit_test(random_lists_come_apart_as_they_were_joined),
    };

    return cmocka_run_group_tests_name("bytes", tests, NULL, NULL);
}
