/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/fault_kinds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "lab/fault_json.h"

static struct fault read_good(const char *json)
{
    struct fault f;
    char room[256];
    struct text why;

    text_init(&why, room, sizeof(room));
    if (!fault_from_json(bytes_of(json), 3, &f, &why))
        fail_msg("%s: %s", json, text_end(&why));
    return f;
}

static void every_key_is_read(void **state)
{
    struct fault f = read_good("{\"server\": 2, \"fault\": \"stall-every\", \"value\": \"5s\", "
                               "\"stall\": \"500ms\", \"probability\": 0.25, \"path\": \"/a\", "
                               "\"for\": \"1m30s\", \"after\": 100}");
    (void)state;

    assert_int_equal(f.kind, FAULT_STALL_EVERY);
    assert_int_equal(f.server, 2);
    assert_int_equal(f.span, 5 * NS_PER_S);
    assert_int_equal(f.stall, 500 * NS_PER_MS);
    assert_true(f.probability > 0.2499 && f.probability < 0.2501);
    assert_string_equal(f.path, "/a");
    assert_int_equal(f.lasts, 90 * NS_PER_S);
    assert_int_equal(f.after, 100);
}

static void what_is_left_out_hits_everything_for_ever(void **state)
{
    struct fault f = read_good("{\"fault\": \"drip\", \"value\": \"1ms\"}");
    (void)state;

    assert_true(f.server == FAULT_ALL);
    assert_true(f.probability == 1.0);
    assert_string_equal(f.path, "");
    assert_int_equal(f.lasts, 0);
    assert_int_equal(f.after, 0);
    assert_int_equal(f.bytes, 1);
}

static void every_kind_is_read_with_the_value_of_its_example(void **state)
{
    (void)state;

    for (int k = 0; k < FAULT_KIND_COUNT; k++) {
        char json[200];
        struct text t;

        text_init(&t, json, sizeof(json));
        text_str(&t, "{\"fault\": \"");
        text_str(&t, fault_kinds[k].name);
        text_char(&t, '"');
        if (fault_kinds[k].value != VALUE_NONE) {
            text_str(&t, ", \"value\": ");
            text_str(&t, fault_kinds[k].example);
        }
        if (k == FAULT_STALL_EVERY)
            text_str(&t, ", \"stall\": \"1ms\"");
        text_char(&t, '}');
        assert_int_equal(read_good(text_end(&t)).kind, k);
    }
}

static void the_value_goes_where_its_kind_wants_it(void **state)
{
    (void)state;

    assert_int_equal(read_good("{\"fault\": \"status\", \"value\": 404}").status, 404);
    assert_true(read_good("{\"fault\": \"slow\", \"value\": 2.5}").factor == 2.5);
    assert_int_equal(read_good("{\"fault\": \"delay\", \"value\": \"1.5ms\"}").span, 1500000);
    assert_true(read_good("{\"fault\": \"heavy\", \"value\": 10, \"bytes\": 9}").factor == 10);
    assert_int_equal(read_good("{\"fault\": \"heavy\", \"value\": 10, \"bytes\": 9}").bytes, 9);
}

static void what_is_shown_is_read_again_as_it_was(void **state)
{
    struct fault f = read_good("{\"fault\": \"drip\", \"value\": \"20ms\", \"bytes\": 7, "
                               "\"server\": 1, \"path\": \"/\\\"\\\\\\u00e4\", \"for\": \"10s\", "
                               "\"after\": 3, \"probability\": 0.5}");
    char json[1024];
    char *cut;
    struct text t;
    struct json j;
    struct fault again;
    (void)state;

    text_init(&t, json, sizeof(json));
    json_init(&j, &t);
    f.until = MONO_NEVER;
    fault_to_json(&j, &f, 0);
    text_end(&t);
    cut = strstr(json, "\"fault\""); /* without the id, and what was counted */
    assert_non_null(cut);
    *(cut - 1) = '{';
    *strstr(cut, ",\"matched\"") = '}';
    *(strchr(cut, '}') + 1) = '\0';
    again = read_good(cut - 1);
    assert_int_equal(again.kind, f.kind);
    assert_int_equal(again.span, f.span);
    assert_int_equal(again.bytes, f.bytes);
    assert_int_equal(again.server, f.server);
    assert_string_equal(again.path, f.path);
    assert_int_equal(again.lasts, f.lasts);
    assert_int_equal(again.after, f.after);
    assert_true(again.probability == f.probability);
}

static void what_is_wrong_is_refused_with_the_key_and_what_to_write(void **state)
{
    static const char *const rows[][2] = {
        {"{\"fault\": \"hang\", \"server\": 3}",
         "\"server\": write \"all\" or a number from 0 to 2"},
        {"{\"fault\": \"hang\", \"server\": -1}", "from 0 to 2"},
        {"{\"fault\": \"hang\", \"server\": 1.0}", "from 0 to 2"},
        {"{\"fault\": \"delay\", \"value\": \"0s\"}", "\"value\": write a duration"},
        {"{\"fault\": \"delay\", \"value\": \"24h1ns\"}", "up to 24h"},
        {"{\"fault\": \"stall-every\", \"value\": \"1s\", \"stall\": \"1s\"}", "must be shorter"},
        {"{\"fault\": \"hang\", \"fault\": \"hang\"}", "write a JSON object"},
        {"{\"fault\": \"hang\", \"probability\": 1.5}", "from 0 to 1"},
        {"{\"fault\": \"hang\", \"probability\": -0.1}", "from 0 to 1"},
        {"{\"fault\": \"drip\", \"value\": \"1s\", \"bytes\": 0}", "1 to 65536"},
        {"{\"fault\": \"drip\", \"value\": \"1s\", \"bytes\": 65537}", "1 to 65536"},
        {"{\"fault\": \"slow\", \"value\": 2, \"bytes\": 9}", "only drip and heavy"},
        {"{\"fault\": \"hang\", \"path\": \"x/\"}", "such as \"/delay\""},
        {"{\"fault\": \"status\", \"value\": 199}", "from 200 to 599"},
        {"{\"fault\": \"status\", \"value\": 600}", "from 200 to 599"},
        {"{\"fault\": \"slow\", \"value\": 1000001}", "from 0 to 1000000"},
        {"{\"fault\": \"hang\", \"pathh\": 1}", "did you mean \"path\"?"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fault f = {.kind = FAULT_KIND_COUNT};
        char room[256];
        struct text why;

        text_init(&why, room, sizeof(room));
        assert_false(fault_from_json(bytes_of(rows[i][0]), 3, &f, &why));
        if (strstr(text_end(&why), rows[i][1]) == NULL)
            fail_msg("%s says: %s", rows[i][0], room);
        assert_int_equal(f.kind, FAULT_KIND_COUNT);
    }
}

/* Law: however a document is damaged, it is read or refused with a reason; nothing else happens. */
static void damaged_documents_are_refused_with_a_reason(void **state)
{
    static const char good[] = "{\"server\": 2, \"fault\": \"stall-every\", \"value\": \"5s\", "
                               "\"stall\": \"500ms\", \"probability\": 0.25, \"path\": \"/a\"}";
    struct rng rng;
    unsigned refused = 0;
    (void)state;

    rng_init(&rng, 1);
    for (unsigned i = 0; i < 20000; i++) {
        char json[sizeof(good)];
        size_t len = sizeof(good) - 1;
        char room[200];
        struct text why;
        struct fault f = {.kind = FAULT_KIND_COUNT};

        memcpy(json, good, sizeof(good));
        json[rng_below(&rng, (uint32_t)len)] = (char)rng_below(&rng, 256);
        if (rng_below(&rng, 2) == 0)
            json[rng_below(&rng, (uint32_t)len)] = good[rng_below(&rng, (uint32_t)len)];
        if (rng_below(&rng, 4) == 0)
            len = rng_below(&rng, (uint32_t)len);
        text_init(&why, room, sizeof(room));
        if (fault_from_json(bytes_from(json, len), 3, &f, &why)) {
            assert_true(f.kind < FAULT_KIND_COUNT);
            assert_true(f.server == FAULT_ALL || f.server < 3);
            assert_true(f.probability >= 0 && f.probability <= 1);
            assert_true(f.kind != FAULT_STALL_EVERY || f.stall < f.span);
            assert_int_equal(why.len, 0);
        } else {
            refused++;
            assert_int_equal(f.kind, FAULT_KIND_COUNT);
            assert_true(why.len > 10);
        }
    }
    assert_in_range(refused, 10000, 19999);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_is_read),
        cmocka_unit_test(what_is_left_out_hits_everything_for_ever),
        cmocka_unit_test(every_kind_is_read_with_the_value_of_its_example),
        cmocka_unit_test(the_value_goes_where_its_kind_wants_it),
        cmocka_unit_test(what_is_shown_is_read_again_as_it_was),
        cmocka_unit_test(what_is_wrong_is_refused_with_the_key_and_what_to_write),
        cmocka_unit_test(damaged_documents_are_refused_with_a_reason),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
