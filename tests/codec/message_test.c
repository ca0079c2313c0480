/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the words of HTTP: field names and methods. */
#include "codec/message.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct {
    enum field_id id;
    const char *name;
} known[] = {
#define X(id, text) {FIELD_##id, text},
    KNOWN_FIELDS(X)
#undef X
};

#define KNOWN_COUNT (sizeof(known) / sizeof(known[0]))

static enum field_id look_up(const char *name, size_t len)
{
    return field_lookup(bytes_from(name, len));
}

static void every_known_field_is_found_in_any_case(void **state)
{
    (void)state;
    assert_int_equal(KNOWN_COUNT + 1, FIELD_ID_COUNT);
    for (size_t i = 0; i < KNOWN_COUNT; i++) {
        char name[64];
        size_t len = strlen(known[i].name);

        assert_int_equal(look_up(known[i].name, len), known[i].id);
        for (size_t k = 0; k < len; k++)
            name[k] = (char)(known[i].name[k] >= 'a' ? known[i].name[k] - 32 : known[i].name[k]);
        assert_int_equal(look_up(name, len), known[i].id);
    }
}

static void a_name_that_differs_in_one_byte_is_another_field(void **state)
{
    static const char others[] = "_!~x0-";
    (void)state;

    for (size_t i = 0; i < KNOWN_COUNT; i++) {
        char name[64];
        size_t len = strlen(known[i].name);

        for (size_t at = 0; at < len; at++) {
            for (size_t o = 0; o < sizeof(others) - 1; o++) {
                memcpy(name, known[i].name, len);
                if (name[at] == others[o])
                    continue;
                name[at] = others[o];
                assert_int_equal(look_up(name, len), FIELD_OTHER);
            }
        }
        assert_int_not_equal(look_up(known[i].name, len - 1), known[i].id);
        memcpy(name, known[i].name, len);
        name[len] = 's';
        assert_int_not_equal(look_up(name, len + 1), known[i].id);
    }
    assert_int_equal(look_up("", 0), FIELD_OTHER);
    assert_int_equal(look_up("x-a-very-long-name-that-nobody-knows", 36), FIELD_OTHER);
}

static void fields_of_one_hop_are_these_and_no_others(void **state)
{
    uint32_t hop = 0;
    (void)state;

    for (unsigned id = 0; id < FIELD_ID_COUNT; id++)
        hop += field_is_hop_by_hop((enum field_id)id);
    assert_int_equal(hop, 7);
    assert_true(field_is_hop_by_hop(FIELD_CONNECTION));
    assert_true(field_is_hop_by_hop(FIELD_KEEP_ALIVE));
    assert_true(field_is_hop_by_hop(FIELD_PROXY_CONNECTION));
    assert_true(field_is_hop_by_hop(FIELD_TE));
    assert_true(field_is_hop_by_hop(FIELD_TRANSFER_ENCODING));
    assert_true(field_is_hop_by_hop(FIELD_UPGRADE));
    assert_true(field_is_hop_by_hop(FIELD_HTTP2_SETTINGS));
}

static void methods_are_known_in_upper_case_only(void **state)
{
    static const struct {
        const char *token;
        enum method method;
        bool idempotent;
    } rows[] = {
        {"GET", METHOD_GET, true},       {"HEAD", METHOD_HEAD, true},
        {"POST", METHOD_POST, false},    {"PUT", METHOD_PUT, true},
        {"DELETE", METHOD_DELETE, true}, {"OPTIONS", METHOD_OPTIONS, true},
        {"TRACE", METHOD_TRACE, true},   {"CONNECT", METHOD_CONNECT, false},
        {"PATCH", METHOD_PATCH, false},  {"get", METHOD_OTHER, false},
        {"GETS", METHOD_OTHER, false},   {"GE", METHOD_OTHER, false},
        {"QUERY", METHOD_OTHER, false},  {"", METHOD_OTHER, false},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        enum method m = method_lookup(bytes_of(rows[i].token));

        assert_int_equal(m, rows[i].method);
        assert_int_equal(method_idempotent(m), rows[i].idempotent);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_known_field_is_found_in_any_case),
        cmocka_unit_test(a_name_that_differs_in_one_byte_is_another_field),
        cmocka_unit_test(fields_of_one_hop_are_these_and_no_others),
        cmocka_unit_test(methods_are_known_in_upper_case_only),
    };

    return cmocka_run_group_tests_name("message", tests, NULL, NULL);
}
