/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/inbuf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"

static void it_holds_what_was_appended(void **state)
{
    struct inbuf b = {.data = NULL};
    uint64_t allocations = 0;
    (void)state;

    assert_true(inbuf_append(&b, BYTES_NONE, &allocations));
    assert_null(b.data);
    assert_int_equal(allocations, 0);
    assert_true(inbuf_append(&b, BYTES("ab"), &allocations));
    assert_true(inbuf_append(&b, BYTES("cd"), &allocations));
    assert_true(bytes_equal(inbuf_bytes(&b), BYTES("abcd")));
    assert_int_equal(allocations, 1);
    inbuf_keep(&b, bytes_skip(inbuf_bytes(&b), 3));
    assert_true(bytes_equal(inbuf_bytes(&b), BYTES("d")));
    inbuf_keep(&b, bytes_skip(inbuf_bytes(&b), 1));
    assert_null(b.data); /* empty: without memory */
    inbuf_release(&b);
}

static void it_is_bounded(void **state)
{
    static uint8_t half[INBUF_MAX / 2];
    struct inbuf b = {.data = NULL};
    uint64_t allocations = 0;
    (void)state;

    assert_true(inbuf_append(&b, bytes_from(half, sizeof(half)), &allocations));
    assert_true(inbuf_append(&b, bytes_from(half, sizeof(half)), &allocations));
    assert_false(inbuf_append(&b, BYTES("x"), &allocations));
    assert_int_equal(b.len, INBUF_MAX);
    inbuf_release(&b);
    assert_false(inbuf_append(&b, bytes_from(half, SIZE_MAX), &allocations));
    assert_null(b.data);
}

/* Law: like a plain array from which a front is taken. */
static void it_is_a_queue_of_bytes(void **state)
{
    static uint8_t stream[1 << 20];
    struct inbuf b = {.data = NULL};
    uint64_t allocations = 0;
    size_t from = 0, to = 0;
    struct rng rng;
    (void)state;

    rng_init(&rng, 2);
    for (size_t i = 0; i < sizeof(stream); i++)
        stream[i] = (uint8_t)rng_next(&rng);
    while (to < sizeof(stream)) {
        size_t more = rng_below(&rng, 9000);

        if (more > sizeof(stream) - to)
            more = sizeof(stream) - to;
        assert_true(inbuf_append(&b, bytes_from(stream + to, more), &allocations));
        to += more;
        if (rng_below(&rng, 2) == 0) {
            size_t skip = rng_below(&rng, (uint32_t)(to - from) + 1);

            inbuf_keep(&b, bytes_skip(inbuf_bytes(&b), skip));
            from += skip;
        }
        assert_true(bytes_equal(inbuf_bytes(&b), bytes_from(stream + from, to - from)));
    }
    inbuf_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_holds_what_was_appended),
        cmocka_unit_test(it_is_bounded),
        cmocka_unit_test(it_is_a_queue_of_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
