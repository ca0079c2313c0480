/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the JSON writer. */
#include "codec/json.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct page {
    char data[4096];
    struct text text;
    struct json json;
};

static struct json *open_page(struct page *p)
{
    text_init(&p->text, p->data, sizeof(p->data));
    json_init(&p->json, &p->text);
    return &p->json;
}

static void expect_page(struct page *p, const char *expected)
{
    assert_false(p->text.failed);
    assert_string_equal(text_end(&p->text), expected);
}

static void expect_written(struct bytes value, const char *expected)
{
    struct page p;

    json_string(open_page(&p), NULL, value);
    expect_page(&p, expected);
}

static void an_object_holds_values_of_every_kind(void **state)
{
    struct page p;
    struct json *j = open_page(&p);
    (void)state;

    json_object(j, NULL);
    json_text(j, "a", "b");
    json_text(j, "none", NULL);
    json_u64(j, "u", UINT64_MAX);
    json_i64(j, "i", INT64_MIN);
    json_double(j, "d", 1.25, 2);
    json_bool(j, "yes", true);
    json_bool(j, "no", false);
    json_null(j, "null");
    json_string(j, "s", BYTES("x"));
    json_object_end(j);
    expect_page(&p, "{\"a\":\"b\",\"none\":null,\"u\":18446744073709551615,"
                    "\"i\":-9223372036854775808,\"d\":1.25,\"yes\":true,\"no\":false,"
                    "\"null\":null,\"s\":\"x\"}");
}

static void commas_stand_between_values_and_nowhere_else(void **state)
{
    struct page p;
    struct json *j = open_page(&p);
    (void)state;

    json_array(j, NULL);
    json_array(j, NULL);
    json_array_end(j);
    json_object(j, NULL);
    json_array(j, "list");
    json_u64(j, NULL, 1);
    json_u64(j, NULL, 2);
    json_array_end(j);
    json_object(j, "empty");
    json_object_end(j);
    json_u64(j, "after", 3);
    json_object_end(j);
    json_text(j, NULL, "end");
    json_array_end(j);
    expect_page(&p, "[[],{\"list\":[1,2],\"empty\":{},\"after\":3},\"end\"]");
}

static void what_is_not_finite_is_null(void **state)
{
    struct page p;
    struct json *j = open_page(&p);
    (void)state;

    json_array(j, NULL);
    json_double(j, NULL, (double)NAN, 1);
    json_double(j, NULL, (double)INFINITY, 1);
    json_double(j, NULL, -(double)INFINITY, 1);
    json_array_end(j);
    expect_page(&p, "[null,null,null]");
}

static void quotes_backslashes_and_controls_are_escaped_in_values_and_keys(void **state)
{
    struct page p;
    struct json *j = open_page(&p);
    (void)state;

    expect_written(BYTES("a\"b\\c/d"), "\"a\\\"b\\\\c/d\"");
    expect_written(BYTES("\n\r\t"), "\"\\n\\r\\t\"");
    expect_written(BYTES("\x00\x1f\x7f \x08"), "\"\\u0000\\u001f\\u007f \\u0008\"");
    json_object(j, NULL);
    json_u64(j, "a\"b", 1);
    json_object_end(j);
    expect_page(&p, "{\"a\\\"b\":1}");
}

static void characters_of_every_length_pass(void **state)
{
    (void)state;
    expect_written(BYTES_NONE, "\"\"");
    expect_written(BYTES("\xC2\x80\xDF\xBF"), "\"\xC2\x80\xDF\xBF\"");
    expect_written(BYTES("\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80\xEF\xBF\xBF"),
                   "\"\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80\xEF\xBF\xBF\"");
    expect_written(BYTES("\xF0\x90\x80\x80\xF4\x8F\xBF\xBF"),
                   "\"\xF0\x90\x80\x80\xF4\x8F\xBF\xBF\"");
}

#define R "\xEF\xBF\xBD"

static void each_byte_that_is_no_utf8_becomes_the_replacement_character(void **state)
{
    (void)state;
    expect_written(BYTES("a\x80z"), "\"a" R "z\"");
    expect_written(BYTES("\xC0\x80"), "\"" R R "\"");       /* long form */
    expect_written(BYTES("\xC1\xBF"), "\"" R R "\"");       /* long form */
    expect_written(BYTES("\xE0\x9F\xBF"), "\"" R R R "\""); /* long form */
    expect_written(BYTES("\xED\xA0\x80"), "\"" R R R "\""); /* surrogate */
    expect_written(BYTES("\xF0\x8F\xBF\xBF"), "\"" R R R R "\"");
    expect_written(BYTES("\xF4\x90\x80\x80"), "\"" R R R R "\"");
    expect_written(BYTES("\xF5\x80"), "\"" R R "\"");
    expect_written(BYTES("\xFF"), "\"" R "\"");
    expect_written(BYTES("\xE2\x82"), "\"" R R "\"");   /* cut short */
    expect_written(BYTES("\xE2\x82z"), "\"" R R "z\""); /* third byte wrong */
    expect_written(BYTES("\xC3\""), "\"" R "\\\"\"");   /* must not swallow the quote */
    expect_written(BYTES("\xF0\x9F\x92\"\\"), "\"" R R R "\\\"\\\\\"");
}

static void a_text_without_room_says_so(void **state)
{
    char small[8];
    struct text text;
    struct json j;
    (void)state;

    text_init(&text, small, sizeof(small));
    json_init(&j, &text);
    json_text(&j, NULL, "longer than the room");
    assert_true(text.failed);
}

static uint32_t step(uint64_t *random)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*random >> 33);
}

/* An independent decoder: is |b| well-formed UTF-8? By code point, not by byte ranges. */
static bool well_formed(struct bytes b)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t i = 0;

    while (i < b.len) {
        uint8_t lead = b.data[i];
        size_t len = lead < 0x80       ? 1
                     : lead >> 5 == 6  ? 2
                     : lead >> 4 == 14 ? 3
                     : lead >> 3 == 30 ? 4
                                       : 0;
        uint32_t point = len == 1 ? lead : lead & (0x7Fu >> len);

        if (len == 0 || len > b.len - i)
            return false;
        for (size_t k = 1; k < len; k++) {
            if (b.data[i + k] >> 6 != 2)
                return false;
            point = point << 6 | (b.data[i + k] & 0x3F);
        }
        if (point < least[len] || point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF))
            return false;
        i += len;
    }
    return true;
}

/* Whatever goes in: valid UTF-8 comes out, no raw control, no quote that ends the string early. */
static void any_bytes_give_one_valid_string(void **state)
{
    static const uint8_t spicy[] = {'"',  '\\', 0x80, 0xC2, 0xE0, 0xED,
                                    0xF0, 0xF4, 0x9F, 0xA0, 0xBF};
    (void)state;

    for (uint64_t seed = 1; seed <= 3000; seed++) {
        uint64_t random = seed;
        uint8_t in[24];
        size_t len = step(&random) % sizeof(in);
        struct page p;

        for (size_t i = 0; i < len; i++) {
            uint32_t draw = step(&random);

            in[i] = draw % 3 == 0 ? (uint8_t)(draw >> 8) : spicy[(draw >> 8) % sizeof(spicy)];
        }
        json_string(open_page(&p), NULL, bytes_from(in, len));

        struct bytes out = text_bytes(&p.text);

        assert_true(well_formed(out));
        assert_true(out.len >= 2 && out.data[0] == '"' && out.data[out.len - 1] == '"');
        for (size_t i = 1; i + 1 < out.len; i++) {
            assert_true(out.data[i] >= 0x20);
            assert_int_not_equal(out.data[i], '"');
            if (out.data[i] == '\\')
                i += 1; /* the escaped one */
            assert_true(i + 1 < out.len);
        }
        if (well_formed(bytes_from(in, len)))
            assert_null(memmem(out.data, out.len, R, 3));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_object_holds_values_of_every_kind),
        cmocka_unit_test(commas_stand_between_values_and_nowhere_else),
        cmocka_unit_test(what_is_not_finite_is_null),
        cmocka_unit_test(quotes_backslashes_and_controls_are_escaped_in_values_and_keys),
        cmocka_unit_test(characters_of_every_length_pass),
        cmocka_unit_test(each_byte_that_is_no_utf8_becomes_the_replacement_character),
        cmocka_unit_test(a_text_without_room_says_so),
        cmocka_unit_test(any_bytes_give_one_valid_string),
    };

    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
