/* SPDX-License-Identifier: Apache-2.0 */
/* The list of differences: its sets, and that docs/differences.md has each. */
#include "policy/differences.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void envoy_is_all_of_them_and_firebreak_none(void **state)
{
    (void)state;

    for (unsigned i = 0; i < DIFFERENCE_COUNT; i++) {
        assert_true(as_envoy(DIFFERENCES_ENVOY, (enum difference)i));
        assert_false(as_envoy(DIFFERENCES_FIREBREAK, (enum difference)i));
    }
    assert_true(DIFFERENCE_COUNT == 64 || DIFFERENCES_ENVOY >> DIFFERENCE_COUNT == 0);
}

static void one_is_switched_without_the_others(void **state)
{
    (void)state;

    for (unsigned i = 0; i < DIFFERENCE_COUNT; i++) {
        difference_set one = difference_put(DIFFERENCES_FIREBREAK, (enum difference)i, true);
        difference_set but_one = difference_put(DIFFERENCES_ENVOY, (enum difference)i, false);

        for (unsigned k = 0; k < DIFFERENCE_COUNT; k++) {
            assert_int_equal(as_envoy(one, (enum difference)k), k == i);
            assert_int_equal(as_envoy(but_one, (enum difference)k), k != i);
        }
        assert_true(difference_put(one, (enum difference)i, true) == one);
        assert_true(difference_put(one, (enum difference)i, false) == DIFFERENCES_FIREBREAK);
    }
}

static void each_has_a_row_in_the_documentation(void **state)
{
    static char page[256 * 1024];
    FILE *f = fopen(TESTS_DIR "/../docs/differences.md", "r");
    (void)state;

    assert_non_null(f);
    page[fread(page, 1, sizeof(page) - 1, f)] = '\0';
    fclose(f);
    for (unsigned i = 0; i < DIFFERENCE_COUNT; i++) {
        char row[80];

        snprintf(row, sizeof(row), "\n| `%s` | ", difference_info[i].key);
        if (strstr(page, row) == NULL)
            fail_msg("docs/differences.md has no row %s", row + 1);
        assert_true(strlen(difference_info[i].text) > 20);
    }
}

static void keys_are_told_apart(void **state)
{
    (void)state;

    for (unsigned i = 0; i < DIFFERENCE_COUNT; i++)
        for (unsigned k = 0; k < i; k++)
            assert_string_not_equal(difference_info[i].key, difference_info[k].key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(envoy_is_all_of_them_and_firebreak_none),
        cmocka_unit_test(one_is_switched_without_the_others),
        cmocka_unit_test(each_has_a_row_in_the_documentation),
        cmocka_unit_test(keys_are_told_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
