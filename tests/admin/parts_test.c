/* SPDX-License-Identifier: Apache-2.0 */
/* The small parts of the admin server: queries, filters, pages that grow. */
#include "admin/filter.h"
#include "admin/page.h"
#include "admin/query.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    const char *query;
    const char *key;
    enum query_result result;
    const char *value;
} queries[] = {
    {"?a=b\x01", "a", QUERY_FOUND, "b\x01"},
    {"", "a", QUERY_ABSENT, ""},
    {"?", "a", QUERY_ABSENT, ""},
    {"?a=1", "a", QUERY_FOUND, "1"},
    {"?b=2&a=1", "a", QUERY_FOUND, "1"},
    {"?a=1&a=2", "a", QUERY_FOUND, "1"},
    {"?aa=1&ba=2", "a", QUERY_ABSENT, ""},
    {"?a", "a", QUERY_FOUND, ""},
    {"?a&b", "b", QUERY_FOUND, ""},
    {"?a=", "a", QUERY_FOUND, ""},
    {"?&&a=x", "a", QUERY_FOUND, "x"},
    {"?a=b=c", "a", QUERY_FOUND, "b=c"},
    {"?a=%5ex%7C%2B+y", "a", QUERY_FOUND, "^x|++y"},
    {"?a=%", "a", QUERY_BAD, NULL},
    {"?a=%4", "a", QUERY_BAD, NULL},
    {"?a=%4&b=1", "a", QUERY_BAD, NULL},
    {"?a=%g1", "a", QUERY_BAD, NULL},
    {"?a=%1g", "a", QUERY_BAD, NULL},
    {"?a=x%00y", "a", QUERY_BAD, NULL},
    {"?a=1234567890123456", "a", QUERY_FOUND, "1234567890123456"},
    {"?a=12345678901234567", "a", QUERY_BAD, NULL},
};

static void queries_are_taken_apart(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++) {
        char room[16];
        struct text value;

        text_init(&value, room, sizeof(room));
        assert_int_equal(query_find(bytes_of(queries[i].query), queries[i].key, &value),
                         queries[i].result);
        if (queries[i].value == NULL)
            continue;
        assert_int_equal(value.len, strlen(queries[i].value));
        assert_memory_equal(room, queries[i].value, value.len);
    }
}

static const struct {
    const char *pattern;
    const char *name;
    bool matches;
} filters[] = {
    {"", "anything", true},
    {"b", "abc", true},
    {"^b", "abc", false},
    {"a.c$", "xabc", true},
    {"rq_[0-9]{3}$", "rq_503", true},
    {"rq_[0-9]{3}$", "rq_5xx", false},
    {"a|b", "xb", true},
    {"a{2,200}", "xaa", true},
    {"A", "a", false},
    {"^a+b+c+d+e+f+g+h+$", "aabcdefgh", true},
    {"((a+b)+c)+$", "aabaabcabc", true},
};

static void filters_match_anywhere(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++) {
        struct filter f;

        filter_init(&f);
        assert_null(filter_compile(&f, bytes_of(filters[i].pattern)));
        assert_int_equal(filter_matches(&f, filters[i].name), filters[i].matches);
        filter_release(&f);
    }
}

/* Each would take the C library minutes, gigabytes, or its stack. */
static const char *const explosive[] = {
    "(a|b)\\1",
    "((((a{1,9}){1,9}){1,9}){1,9}){1,9}",
    "1(\\++++++++++++++++++++++++++++{) ", /* found by a fuzzer: each '+' copies what is before it
                                            */
    "((((((((((((a+)+)+)+)+)+)+)+)+)+)+)+)+",
    "a{30000}",
    "a{1,30000}",
    "a{99999999999999999999}",
    "((a{9,99}b){9,99}c){2}",
    "(abcdefghijklmnopqrstuvwxyz|abcdefghijklmnopqrstuvwxyz0|abcdefghijklmnopqrstuvwxyz1){1,100}",
    "(((((((((((((x{2}){2}){2}){2}){2}){2}){2}){2}){2}){2}){2}){2}){2}",
};

static void explosive_patterns_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(explosive) / sizeof(explosive[0]); i++) {
        struct filter f;

        filter_init(&f);
        assert_non_null(filter_compile(&f, bytes_of(explosive[i])));
        assert_true(filter_matches(&f, "x"));
        filter_release(&f);
    }
}

static void long_patterns_are_refused(void **state)
{
    char pattern[FILTER_LENGTH_MAX + 1];
    struct filter f;
    (void)state;

    memset(pattern, 'p', sizeof(pattern));
    filter_init(&f);
    assert_non_null(filter_compile(&f, bytes_from(pattern, sizeof(pattern))));
    assert_null(filter_compile(&f, bytes_from(pattern, sizeof(pattern) - 1)));
    assert_false(filter_matches(&f, "p"));
    filter_release(&f);
}

static void patterns_that_are_none_are_refused(void **state)
{
    static const char *const broken[] = {"(", "[", "a{2,1}", "\\"};
    (void)state;

    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        struct filter f;

        filter_init(&f);
        assert_non_null(filter_compile(&f, bytes_of(broken[i])));
        filter_release(&f);
    }
}

static void a_page_grows_to_its_limit_and_no_further(void **state)
{
    struct page p;
    (void)state;

    page_init(&p, 64 << 10);
    for (unsigned i = 0; i < 64 << 10; i++)
        page_str(&p, "x");
    assert_false(p.text.failed);
    assert_int_equal(p.text.len, 64 << 10);
    page_u64(&p, 1);
    assert_true(p.text.failed);
    assert_true(p.text.room <= 64 << 10);
    page_str(&p, "no harm");
    page_release(&p);
    assert_false(p.text.failed);
    page_u64(&p, UINT64_MAX);
    assert_int_equal(p.text.len, 20);
    page_release(&p);
}

static void room_for_much_at_once_is_made_at_once(void **state)
{
    struct page p;
    (void)state;

    page_init(&p, 1 << 20);
    page_room(&p, 300000);
    assert_true(p.text.room >= 300000);
    page_room(&p, 2 << 20);
    assert_true(p.text.failed);
    page_release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queries_are_taken_apart),
        cmocka_unit_test(filters_match_anywhere),
        cmocka_unit_test(explosive_patterns_are_refused),
        cmocka_unit_test(long_patterns_are_refused),
        cmocka_unit_test(patterns_that_are_none_are_refused),
        cmocka_unit_test(a_page_grows_to_its_limit_and_no_further),
        cmocka_unit_test(room_for_much_at_once_is_made_at_once),
    };

    return cmocka_run_group_tests_name("admin parts", tests, NULL, NULL);
}
