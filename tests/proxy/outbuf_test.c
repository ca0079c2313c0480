/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/outbuf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/list.h"
#include "base/rng.h"

#define TOOK_MAX (1u << 21)

/* A link that takes |room| bytes, then no more until it is given room again. */
struct fake_link {
    struct link base;
    size_t room;
    int error;
    size_t took;
    uint8_t bytes[TOOK_MAX];
};

static struct fake_link peer;
static struct slab slab;

static ptrdiff_t fake_write(struct link *l, const struct bytes *parts, size_t n)
{
    struct fake_link *f = CONTAINER_OF(l, struct fake_link, base);
    size_t before = f->took;

    if (f->error != 0)
        return f->error;
    for (size_t i = 0; i < n; i++) {
        size_t take = parts[i].len < f->room ? parts[i].len : f->room;

        assert_true(f->took + take <= TOOK_MAX);
        if (take > 0)
            memcpy(f->bytes + f->took, parts[i].data, take);
        f->took += take;
        f->room -= take;
    }
    return (ptrdiff_t)(f->took - before);
}

static const struct link_ops fake_ops = {.write = fake_write};

static struct outbuf fresh(size_t room)
{
    peer.base.ops = &fake_ops;
    peer.room = room;
    peer.error = 0;
    peer.took = 0;
    slab_init(&slab, OUTBUF_SIZE, 4);
    return (struct outbuf){.data = NULL};
}

static void done(struct outbuf *b)
{
    outbuf_release(b, &slab);
    assert_int_equal(slab.in_use, 0);
    slab_release(&slab);
}

static void what_the_link_takes_is_not_held(void **state)
{
    struct outbuf b = fresh(100);
    const struct bytes parts[] = {BYTES("hello "), BYTES("world")};
    (void)state;

    assert_int_equal(outbuf_write(&b, &slab, &peer.base, parts, 2), 0);
    assert_true(outbuf_empty(&b));
    assert_null(b.data);
    assert_memory_equal(peer.bytes, "hello world", 11);
    done(&b);
}

static void the_rest_is_held_in_order_and_its_memory_given_back(void **state)
{
    struct outbuf b = fresh(8);
    const struct bytes parts[] = {BYTES("hello "), BYTES("world")};
    const struct bytes more = BYTES("!");
    (void)state;

    assert_int_equal(outbuf_write(&b, &slab, &peer.base, parts, 2), 0);
    assert_int_equal(b.end - b.begin, 3);
    peer.room = 100;
    assert_int_equal(outbuf_write(&b, &slab, &peer.base, &more, 1), 0);
    assert_int_equal(peer.took, 8); /* not past what is held */
    assert_int_equal(outbuf_flush(&b, &slab, &peer.base), 0);
    assert_int_equal(peer.took, 12);
    assert_memory_equal(peer.bytes, "hello world!", 12);
    assert_null(b.data);
    done(&b);
}

static void what_is_kept_can_be_written_again(void **state)
{
    struct outbuf b = fresh(3);
    const struct bytes part = BYTES("abcdef");
    (void)state;

    b.keep = true;
    assert_int_equal(outbuf_write(&b, &slab, &peer.base, &part, 1), 0);
    assert_int_equal(peer.took, 3);
    peer.room = 100;
    assert_int_equal(outbuf_flush(&b, &slab, &peer.base), 0);
    assert_true(outbuf_empty(&b));
    outbuf_rewind(&b);
    assert_int_equal(outbuf_flush(&b, &slab, &peer.base), 0);
    assert_memory_equal(peer.bytes, "abcdefabcdef", 12);
    done(&b);
}

static void a_write_error_is_told_and_nothing_held(void **state)
{
    struct outbuf b = fresh(3);
    const struct bytes part = BYTES("abcdef");
    (void)state;

    peer.error = IO_RESET;
    assert_int_equal(outbuf_write(&b, &slab, &peer.base, &part, 1), IO_RESET);
    assert_null(b.data);
    peer.error = 0;
    assert_int_equal(outbuf_write(&b, &slab, &peer.base, &part, 1), 0);
    peer.error = IO_CLOSED;
    assert_int_equal(outbuf_flush(&b, &slab, &peer.base), IO_CLOSED);
    done(&b);
}

static void more_than_it_can_hold_is_said(void **state)
{
    static uint8_t big[OUTBUF_SIZE];
    struct outbuf b = fresh(0);
    const struct bytes whole = bytes_from(big, sizeof(big));
    const struct bytes one = BYTES("x");
    (void)state;

    assert_int_equal(outbuf_write(&b, &slab, &peer.base, &whole, 1), 0);
    assert_int_equal(outbuf_write(&b, &slab, &peer.base, &one, 1), IO_NO_MEMORY);
    peer.room = 1;
    assert_int_equal(outbuf_flush(&b, &slab, &peer.base), 0);
    assert_int_equal(outbuf_write(&b, &slab, &peer.base, &one, 1), 0); /* made room by moving up */
    done(&b);
}

/* Law: whatever the link takes when, it gets all that was written, once, in order. */
static void the_link_gets_what_was_written(void **state)
{
    static uint8_t stream[TOOK_MAX];
    struct rng rng;
    (void)state;

    rng_init(&rng, 1);
    for (size_t i = 0; i < sizeof(stream); i++)
        stream[i] = (uint8_t)rng_next(&rng);
    for (unsigned round = 0; round < 200; round++) {
        struct outbuf b = fresh(0);
        size_t written = 0;

        for (unsigned step = 0; step < 100; step++) {
            struct bytes parts[3];
            size_t room = OUTBUF_SIZE - (b.end - b.begin);
            size_t total = 0;

            peer.room = rng_below(&rng, 3) == 0 ? 0 : rng_below(&rng, 20000);
            for (unsigned i = 0; i < 3; i++) {
                parts[i] = bytes_from(stream + written + total, rng_below(&rng, 5000));
                total += parts[i].len;
            }
            if (total <= room && written + total <= TOOK_MAX) {
                assert_int_equal(outbuf_write(&b, &slab, &peer.base, parts, 3), 0);
                written += total;
            }
            assert_int_equal(outbuf_flush(&b, &slab, &peer.base), 0);
            assert_int_equal(peer.took + (b.end - b.begin), written);
            assert_true((b.data == NULL) == outbuf_empty(&b));
        }
        peer.room = TOOK_MAX;
        assert_int_equal(outbuf_flush(&b, &slab, &peer.base), 0);
        assert_int_equal(peer.took, written);
        assert_memory_equal(peer.bytes, stream, written);
        done(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_link_takes_is_not_held),
        cmocka_unit_test(the_rest_is_held_in_order_and_its_memory_given_back),
        cmocka_unit_test(what_is_kept_can_be_written_again),
        cmocka_unit_test(a_write_error_is_told_and_nothing_held),
        cmocka_unit_test(more_than_it_can_hold_is_said),
        cmocka_unit_test(the_link_gets_what_was_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
