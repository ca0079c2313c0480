/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/buffer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"

static void an_empty_one_holds_nothing(void **state)
{
    struct buffer b;
    (void)state;

    buffer_init(&b);
    assert_int_equal(buffer_len(&b), 0);
    assert_int_equal(buffer_bytes(&b).len, 0);
    assert_true(buffer_add(&b, BYTES_NONE));
    assert_null(b.data);
    buffer_release(&b);
}

static void a_large_one_gives_its_memory_back_once_empty(void **state)
{
    static const uint8_t much[100000];
    struct buffer b;
    (void)state;

    buffer_init(&b);
    assert_true(buffer_add(&b, bytes_from(much, sizeof(much))));
    buffer_take(&b, sizeof(much) - 1);
    assert_int_equal(buffer_len(&b), 1);
    buffer_take(&b, 1);
    assert_null(b.data);
    assert_true(buffer_add(&b, bytes_from(much, 10)));
    buffer_take(&b, 10);
    assert_non_null(b.data); /* a small one is kept */
    buffer_release(&b);
}

static void what_has_gone_out_makes_room_before_it_grows(void **state)
{
    static const uint8_t piece[400];
    struct buffer b;
    size_t room;
    (void)state;

    buffer_init(&b);
    buffer_add(&b, bytes_from(piece, 400));
    buffer_add(&b, bytes_from(piece, 400));
    room = b.room;
    for (unsigned i = 0; i < 1000; i++) {
        buffer_take(&b, 400);
        assert_true(buffer_add(&b, bytes_from(piece, 400)));
    }
    assert_int_equal(b.room, room);
    buffer_release(&b);
}

/* Law: what goes in comes out, in order. */
static void bytes_come_out_as_they_went_in(void **state)
{
    (void)state;

    for (uint64_t seed = 0; seed < 100; seed++) {
        struct buffer b;
        struct rng rng;
        uint8_t in = 0;
        uint8_t out = 0;

        rng_init(&rng, seed);
        buffer_init(&b);
        for (unsigned step = 0; step < 300; step++) {
            if (rng_below(&rng, 2) == 0) {
                uint32_t n = 1 + rng_below(&rng, 3000);
                uint8_t *at = buffer_grow(&b, n);

                assert_non_null(at);
                for (uint32_t i = 0; i < n; i++)
                    at[i] = in++;
            } else {
                uint32_t n = rng_below(&rng, (uint32_t)buffer_len(&b) + 1);

                for (uint32_t i = 0; i < n; i++)
                    assert_int_equal(buffer_bytes(&b).data[i], out++);
                buffer_take(&b, n);
            }
            assert_int_equal((uint8_t)buffer_len(&b), (uint8_t)(in - out));
        }
        buffer_release(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_one_holds_nothing),
        cmocka_unit_test(a_large_one_gives_its_memory_back_once_empty),
        cmocka_unit_test(what_has_gone_out_makes_room_before_it_grows),
        cmocka_unit_test(bytes_come_out_as_they_went_in),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
