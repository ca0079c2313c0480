/* SPDX-License-Identifier: Apache-2.0 */
/* Slabs: reuse, the bound on what is kept, and the counters. */
#include "base/slab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/poison.h"
#include "base/rng.h"

static void steady_use_touches_no_heap(void **state)
{
    uint64_t grown = 0;
    struct slab s;
    (void)state;

    slab_init(&s, 100, 4);
    s.grown = &grown;
    for (int i = 0; i < 1000; i++) {
        void *a = slab_take(&s);
        void *b = slab_take(&s);

        assert_ptr_not_equal(a, b);
        memset(a, 1, 100);
        memset(b, 2, 100);
        slab_give(&s, a);
        slab_give(&s, b);
    }
    assert_int_equal(grown, 2);
    assert_int_equal(s.in_use, 0);
    assert_int_equal(s.kept, 2);
    slab_release(&s);
    assert_int_equal(s.kept, 0);
}

static void no_more_is_kept_than_asked(void **state)
{
    uint64_t grown = 0;
    void *objects[10];
    struct slab s;
    (void)state;

    slab_init(&s, 32, 3);
    s.grown = &grown;
    for (int i = 0; i < 10; i++)
        objects[i] = slab_take(&s);
    assert_int_equal(s.in_use, 10);
    for (int i = 0; i < 10; i++)
        slab_give(&s, objects[i]);
    assert_int_equal(s.kept, 3);
    for (int i = 0; i < 4; i++)
        objects[i] = slab_take(&s);
    assert_int_equal(grown, 11);
    for (int i = 0; i < 4; i++)
        slab_give(&s, objects[i]);
    slab_release(&s);
}

static void keeping_none_and_giving_null_are_fine(void **state)
{
    struct slab s;
    (void)state;

    slab_init(&s, 1, 0); /* smaller than the link that a kept object holds */
    slab_give(&s, slab_take(&s));
    assert_int_equal(s.kept, 0);
    slab_give(&s, NULL);
    assert_int_equal(s.in_use, 0);
    slab_release(&s);
    slab_init(&s, 1, 8);
    slab_give(&s, slab_take(&s));
    slab_release(&s);
}

#if defined(__SANITIZE_ADDRESS__)
static void what_is_given_back_is_poisoned(void **state)
{
    struct slab s;
    uint8_t *p;
    (void)state;

    slab_init(&s, 40, 8);
    p = slab_take(&s);
    slab_give(&s, p);
    assert_true(__asan_address_is_poisoned(p));
    assert_true(__asan_address_is_poisoned(p + 39));
    assert_ptr_equal(slab_take(&s), p);
    assert_false(__asan_address_is_poisoned(p));
    assert_false(__asan_address_is_poisoned(p + 39));
    slab_give(&s, p);
    slab_release(&s);
}
#endif

/* The law: objects out at the same time are distinct and keep what was written; counters agree. */
static void objects_keep_their_bytes_on_random_histories(void **state)
{
    (void)state;

    for (uint64_t seed = 1; seed <= 100; seed++) {
        uint64_t *out[64];
        uint32_t count = 0, keep;
        struct rng rng;
        struct slab s;

        rng_init(&rng, seed);
        keep = rng_below(&rng, 40);
        slab_init(&s, sizeof(uint64_t) * (1 + rng_below(&rng, 8)), keep);
        for (int step = 0; step < 2000; step++) {
            if (count < 64 && rng_below(&rng, 2) == 0) {
                out[count] = slab_take(&s);
                assert_non_null(out[count]);
                *out[count] = (uint64_t)(uintptr_t)out[count];
                count++;
            } else if (count > 0) {
                uint32_t at = rng_below(&rng, count);

                assert_true(*out[at] == (uint64_t)(uintptr_t)out[at]);
                slab_give(&s, out[at]);
                out[at] = out[--count];
            }
            assert_int_equal(s.in_use, count);
            assert_true(s.kept <= keep);
        }
        while (count > 0)
            slab_give(&s, out[--count]);
        slab_release(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steady_use_touches_no_heap),
        cmocka_unit_test(no_more_is_kept_than_asked),
        cmocka_unit_test(keeping_none_and_giving_null_are_fine),
#if defined(__SANITIZE_ADDRESS__)
        cmocka_unit_test(what_is_given_back_is_poisoned),
#endif
        cmocka_unit_test(objects_keep_their_bytes_on_random_histories),
    };

    return cmocka_run_group_tests_name("slab", tests, NULL, NULL);
}
