/* SPDX-License-Identifier: Apache-2.0 */
#include "model/access_format.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct arena arena;
static struct access_format format;
static struct access_program program;
static struct access_fault fault;

static int begin(void **state)
{
    (void)state;
    arena_init(&arena, 4096, SIZE_MAX);
    memset(&format, 0, sizeof(format));
    return 0;
}

static int finish(void **state)
{
    (void)state;
    arena_release(&arena);
    return 0;
}

static bool compile(const char *text)
{
    return access_compile(&arena, bytes_of(text), &format, &program, &fault);
}

static void what_is_wrong_is_told_with_its_place(void **state)
{
    static const struct {
        const char *text;
        size_t at;
        const char *word;
        const char *why;
    } rows[] = {
        {"%RESPONSE_COD%", 1, "RESPONSE_COD", "unknown operator"},
        {"a %DURATION", 2, "DURATION", "ends in '%'"},
        {"a % b", 2, "", "ends in '%'"},
        {"%DURATION(x)%", 1, "DURATION", "takes nothing"},
        {"%REQ%", 1, "REQ", "needs a header"},
        {"%REQ()%", 1, "REQ", "needs a header"},
        {"%REQ(a b)%", 1, "a b", "no header can be called so"},
        {"%REQ(a?)%", 1, "", "no header can be called so"},
        {"%REQ(?a)%", 1, "", "no header can be called so"},
        {"x%REQ(user-agent%", 5, "", "not closed"},
        {"%REQ(a):%", 7, "", "1 to 4096"},
        {"%REQ(a):0%", 7, "", "1 to 4096"},
        {"%REQ(a):4097%", 7, "", "1 to 4096"},
        {"%REQ(a):99999999999999999999%", 7, "", "1 to 4096"},
        {"%REQ(a):5x%", 0, "REQ", "ends in '%'"},
        {"%TRAILER(a)%", 1, "TRAILER", "trailers are not kept"},
        {"%GRPC_STATUS%", 1, "GRPC_STATUS", "HTTP/2"},
        {"%START_TIME(%Q)%", 1, "%Q", "a time is written with"},
        {"%START_TIME(%3)%", 1, "%3", "a time is written with"},
        {"%ENVIRONMENT%", 1, "ENVIRONMENT", "needs a name"},
        {"%%%", 2, "", "ends in '%'"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        memset(&format, 0, sizeof(format));
        if (compile(rows[i].text))
            fail_msg("%s was taken", rows[i].text);
        if (strstr(fault.why, rows[i].why) == NULL || fault.at != rows[i].at ||
            !bytes_equal(fault.word, bytes_of(rows[i].word)))
            fail_msg("%s: at %zu '%.*s' %s", rows[i].text, fault.at, (int)fault.word.len,
                     (const char *)fault.word.data, fault.why);
    }
}

static void the_default_lines_compile_and_keep_no_header(void **state)
{
    (void)state;
    assert_true(compile(access_format_envoy));
    assert_true(compile(access_format_istio));
    assert_int_equal(format.request.count, 0);
    assert_int_equal(format.response.count, 0);
}

static void a_header_named_twice_is_kept_once_as_long_as_the_longer(void **state)
{
    (void)state;
    assert_true(compile("%REQ(X-A):10% %REQ(x-a):2000% %REQ(x-b?X-A)% %RESP(x-a):7%"));
    assert_int_equal(format.request.count, 2);
    assert_int_equal(format.request.at[0].limit, 2000);
    assert_int_equal(format.response.count, 1);
    assert_int_equal(format.response.at[0].limit, 7);
}

static void the_headers_kept_and_the_parts_are_bounded(void **state)
{
    char text[ACCESS_FORMAT_MAX + 2] = "";
    (void)state;

    for (int i = 0; i <= ACCESS_HEADERS_MAX; i++) {
        char one[32];

        assert_true(i == 0 || compile(text));
        memset(&format, 0, sizeof(format));
        snprintf(one, sizeof(one), "%%REQ(x-%d)%%", i);
        strcat(text, one);
    }
    assert_false(compile(text));
    assert_non_null(strstr(fault.why, "16 headers"));
    text[0] = '\0';
    for (int i = 0; i < ACCESS_ITEMS_MAX; i++)
        strcat(text, "%DURATION%");
    assert_true(compile(text));
    strcat(text, "x");
    assert_false(compile(text));
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    assert_false(compile(text));
    text[sizeof(text) - 2] = '\0';
    assert_true(compile(text));
}

static void operators_are_in_order(void **state)
{
    (void)state;
    for (uint32_t i = 1; access_operator(i) != NULL; i++)
        assert_true(strcmp(access_operator(i - 1), access_operator(i)) < 0);
}

static void too_little_memory_is_no_fault_of_the_text(void **state)
{
    (void)state;
    arena.limit = 1;
    assert_false(compile("%DURATION%"));
    assert_null(fault.why);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, begin, finish)
    const struct CMUnitTest tests[] = {
        T(what_is_wrong_is_told_with_its_place),
        T(the_default_lines_compile_and_keep_no_header),
        T(a_header_named_twice_is_kept_once_as_long_as_the_longer),
        T(the_headers_kept_and_the_parts_are_bounded),
        T(operators_are_in_order),
        T(too_little_memory_is_no_fault_of_the_text),
    };
#undef T

    return cmocka_run_group_tests_name("access_format", tests, NULL, NULL);
}
