/* SPDX-License-Identifier: Apache-2.0 */
/* Arenas: alignment, limits, reuse, and that pieces never overlap. */
#include "base/arena.h"

#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/poison.h"
#include "base/rng.h"

static void pieces_are_aligned_and_zeroed(void **state)
{
    struct arena a;
    (void)state;

    arena_init(&a, 64, SIZE_MAX);
    for (size_t size = 1; size < 200; size += 7) {
        uint8_t *bytes = arena_take_bytes(&a, 3);
        uint8_t *p = arena_take(&a, size);

        assert_non_null(bytes);
        memset(bytes, 0xee, 3);
        assert_int_equal((uintptr_t)p % alignof(max_align_t), 0);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(p[i], 0);
        memset(p, 0xff, size);
    }
    arena_release(&a);
}

static void zeroed_again_after_a_reset(void **state)
{
    struct arena a;
    uint8_t *p;
    (void)state;

    arena_init(&a, 256, SIZE_MAX);
    p = arena_take(&a, 256);
    memset(p, 0xff, 256);
    arena_reset(&a);
    assert_ptr_equal(arena_take(&a, 256), p);
    for (int i = 0; i < 256; i++)
        assert_int_equal(p[i], 0);
    arena_release(&a);
}

static void bytes_are_packed(void **state)
{
    struct arena a;
    uint8_t *first, *second;
    (void)state;

    arena_init(&a, 64, SIZE_MAX);
    first = arena_take_bytes(&a, 3);
    second = arena_take_bytes(&a, 5);
    assert_ptr_equal(second, first + 3);
    arena_release(&a);
}

static void nothing_is_held_before_the_first_piece(void **state)
{
    struct arena a;
    (void)state;

    arena_init(&a, 4096, 0);
    assert_int_equal(a.held, 0);
    assert_null(arena_take_bytes(&a, 1));
    assert_null(arena_take(&a, 1));
    arena_reset(&a);
    arena_release(&a);
}

static void the_limit_holds_to_the_byte(void **state)
{
    struct arena a;
    (void)state;

    arena_init(&a, 64, 200);
    assert_non_null(arena_take_bytes(&a, 64));
    assert_non_null(arena_take_bytes(&a, 136)); /* less than double, since no more may be held */
    assert_int_equal(a.held, 200);
    assert_null(arena_take_bytes(&a, 1));
    arena_reset(&a);
    assert_int_equal(a.held, 64);
    assert_null(arena_take_bytes(&a, 137));
    assert_non_null(arena_take_bytes(&a, 64));
    assert_null(arena_take_bytes(&a, 137));
    assert_non_null(arena_take_bytes(&a, 136));
    arena_release(&a);
    assert_int_equal(a.held, 0);
}

static void a_refusal_leaves_what_was_there(void **state)
{
    struct arena a;
    struct bytes copy;
    (void)state;

    arena_init(&a, 16, 64);
    copy = arena_copy(&a, BYTES("kept"));
    assert_null(arena_take_bytes(&a, SIZE_MAX));
    assert_null(arena_take(&a, SIZE_MAX - 8));
    assert_null(arena_take(&a, 65));
    assert_true(bytes_equal(copy, BYTES("kept")));
    assert_non_null(arena_take_bytes(&a, 12));
    arena_release(&a);
}

static void sizes_near_the_end_of_the_address_space_do_not_wrap(void **state)
{
    struct arena a;
    (void)state;

    arena_init(&a, 16, SIZE_MAX);
    assert_null(arena_take_bytes(&a, SIZE_MAX));
    assert_null(arena_take_bytes(&a, SIZE_MAX - 40));
    assert_null(arena_take_bytes(&a, SIZE_MAX / 2 + 1));
    assert_null(arena_text(&a, bytes_from("x", SIZE_MAX)));
    arena_release(&a);
}

static void blocks_double(void **state)
{
    struct arena a;
    (void)state;

    arena_init(&a, 64, SIZE_MAX);
    for (int i = 0; i < 6; i++)
        assert_non_null(arena_take_bytes(&a, 64));
    assert_int_equal(a.held, 64 + 128 + 256);
    arena_reset(&a);
    assert_int_equal(a.held, 64);
    arena_release(&a);
}

static void a_large_first_piece_is_not_kept_for_the_next_user(void **state)
{
    struct arena a;
    (void)state;

    arena_init(&a, 64, SIZE_MAX);
    assert_non_null(arena_take(&a, 65));
    arena_reset(&a);
    assert_int_equal(a.held, 0);
    assert_non_null(arena_take(&a, 10));
    assert_int_equal(a.held, 64);
    arena_release(&a);
}

static void copies_live_on_and_text_ends_in_nul(void **state)
{
    char source[] = "abc";
    struct arena a;
    struct bytes copy;
    char *text;
    (void)state;

    arena_init(&a, 8, SIZE_MAX);
    copy = arena_copy(&a, bytes_of(source));
    text = arena_text(&a, bytes_of(source));
    source[0] = 'X';
    assert_true(bytes_equal(copy, BYTES("abc")));
    assert_string_equal(text, "abc");
    assert_string_equal(arena_text(&a, BYTES_NONE), "");
    assert_null(arena_copy(&a, BYTES_NONE).data);
    arena_release(&a);
}

static void a_copy_without_memory_says_so(void **state)
{
    struct arena a;
    (void)state;

    arena_init(&a, 4, 4);
    assert_null(arena_copy(&a, BYTES("12345")).data);
    assert_int_equal(arena_copy(&a, BYTES("12345")).len, 0);
    assert_null(arena_text(&a, BYTES("1234")));
    assert_string_equal(arena_text(&a, BYTES("123")), "123");
    arena_release(&a);
}

static void memory_answers_with_null_not_with_an_exit(void **state)
{
    uint8_t *p;
    (void)state;

    assert_null(memory_take_array(SIZE_MAX / 2, 3));
    p = memory_take_array(5, 3);
    for (int i = 0; i < 15; i++)
        assert_int_equal(p[i], 0);
    p = memory_resize(p, 100);
    assert_non_null(p);
    memory_give(p);
    memory_give(NULL);
    p = memory_take(1);
    assert_int_equal(*p, 0);
    memory_give(p);
}

#if defined(__SANITIZE_ADDRESS__)
static void what_is_not_handed_out_is_poisoned(void **state)
{
    struct arena a;
    uint8_t *p;
    (void)state;

    arena_init(&a, 64, SIZE_MAX);
    p = arena_take_bytes(&a, 10);
    assert_false(__asan_address_is_poisoned(p + 9));
    assert_true(__asan_address_is_poisoned(p + 10));
    assert_true(__asan_address_is_poisoned(p + 63));
    arena_reset(&a);
    assert_true(__asan_address_is_poisoned(p));
    arena_release(&a);
}
#endif

/* The law: no two live pieces overlap, and never more is held than the limit. */
static void pieces_keep_what_was_written_on_random_histories(void **state)
{
    (void)state;

    for (uint64_t seed = 1; seed <= 200; seed++) {
        uint8_t *pieces[100];
        size_t sizes[100], count = 0, limit;
        struct rng rng;
        struct arena a;

        rng_init(&rng, seed);
        limit = 100 + rng_below(&rng, 5000);
        arena_init(&a, 1 + rng_below(&rng, 100), limit);
        for (int step = 0; step < 300 && count < 100; step++) {
            size_t size = 1 + (rng_next(&rng) >> (54 + rng_below(&rng, 9)));

            if (rng_below(&rng, 50) == 0) {
                arena_reset(&a);
                count = 0;
            }
            pieces[count] = step % 2 ? arena_take(&a, size) : arena_take_bytes(&a, size);
            assert_true(a.held <= limit);
            if (pieces[count] == NULL)
                continue;
            memset(pieces[count], (int)count, size);
            sizes[count++] = size;
        }
        for (size_t i = 0; i < count; i++)
            for (size_t k = 0; k < sizes[i]; k++)
                assert_int_equal(pieces[i][k], i);
        arena_release(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_aligned_and_zeroed),
        cmocka_unit_test(zeroed_again_after_a_reset),
        cmocka_unit_test(bytes_are_packed),
        cmocka_unit_test(nothing_is_held_before_the_first_piece),
        cmocka_unit_test(the_limit_holds_to_the_byte),
        cmocka_unit_test(a_refusal_leaves_what_was_there),
        cmocka_unit_test(sizes_near_the_end_of_the_address_space_do_not_wrap),
        cmocka_unit_test(blocks_double),
        cmocka_unit_test(a_large_first_piece_is_not_kept_for_the_next_user),
        cmocka_unit_test(copies_live_on_and_text_ends_in_nul),
        cmocka_unit_test(a_copy_without_memory_says_so),
        cmocka_unit_test(memory_answers_with_null_not_with_an_exit),
#if defined(__SANITIZE_ADDRESS__)
        cmocka_unit_test(what_is_not_handed_out_is_poisoned),
#endif
        cmocka_unit_test(pieces_keep_what_was_written_on_random_histories),
    };

    return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}
