/* SPDX-License-Identifier: Apache-2.0 */
/* Time arithmetic that neither wraps nor goes back, and the list's small promises. */
#include "base/units.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/list.h"

static void instants_saturate_at_never(void **state)
{
    (void)state;

    assert_true(mono_after(5, 7) == 12);
    assert_true(mono_after(MONO_NEVER, 1) == MONO_NEVER);
    assert_true(mono_after(MONO_NEVER - 1, 5) == MONO_NEVER);
    assert_true(mono_after(5, UINT64_MAX) == MONO_NEVER);
    assert_true(mono_since(5, 12) == 7);
    assert_true(mono_since(12, 5) == 0);
    assert_true(mono_min(3, MONO_NEVER) == 3);
}

static void lists_keep_order_and_forgive_a_second_removal(void **state)
{
    struct list head, a, b, c;
    (void)state;

    list_init(&head);
    list_init(&a);
    assert_true(list_empty(&head));
    assert_null(list_pop_front(&head));
    list_remove(&a);
    list_push_back(&head, &a);
    list_push_back(&head, &b);
    list_push_front(&head, &c);
    assert_ptr_equal(list_pop_front(&head), &c);
    list_remove(&b);
    list_remove(&b);
    assert_ptr_equal(list_pop_front(&head), &a);
    assert_true(list_empty(&head));
    assert_true(list_empty(&b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instants_saturate_at_never),
        cmocka_unit_test(lists_keep_order_and_forgive_a_second_removal),
    };

    return cmocka_run_group_tests_name("units", tests, NULL, NULL);
}
