/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/ring.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static bool put(struct ring *r, const void *data, size_t size)
{
    void *at = ring_reserve(r, size);

    if (at == NULL)
        return false;
    memcpy(at, data, size);
    ring_commit(r);
    return true;
}

static void what_goes_in_comes_out_in_order(void **state)
{
    struct ring r;
    (void)state;

    assert_true(ring_init(&r, 256));
    assert_null(ring_peek(&r));
    assert_true(put(&r, "one", 4));
    assert_true(put(&r, "two", 4));
    assert_string_equal(ring_peek(&r), "one");
    assert_string_equal(ring_peek(&r), "one");
    ring_consume(&r);
    assert_string_equal(ring_peek(&r), "two");
    ring_consume(&r);
    assert_null(ring_peek(&r));
    ring_release(&r);
}

static void a_run_is_not_seen_before_it_is_committed(void **state)
{
    struct ring r;
    (void)state;

    assert_true(ring_init(&r, 256));
    assert_non_null(ring_reserve(&r, 8));
    assert_null(ring_peek(&r));
    assert_non_null(ring_reserve(&r, 16)); /* given up and begun anew */
    ring_commit(&r);
    assert_non_null(ring_peek(&r));
    ring_consume(&r);
    assert_null(ring_peek(&r));
    ring_release(&r);
}

static void a_full_ring_refuses_and_takes_again_when_read(void **state)
{
    struct ring r;
    uint8_t data[24] = {0};
    unsigned n = 0;
    (void)state;

    assert_true(ring_init(&r, 256));
    while (put(&r, data, sizeof(data)))
        n++;
    assert_int_equal(n, 8); /* 24 and its head of 8: exactly full */
    assert_non_null(ring_peek(&r));
    assert_false(put(&r, data, sizeof(data)));
    ring_consume(&r);
    assert_true(put(&r, data, sizeof(data)));
    assert_false(put(&r, data, sizeof(data)));
    ring_release(&r);
}

static void a_run_larger_than_half_is_refused_even_by_an_empty_ring(void **state)
{
    struct ring r;
    (void)state;

    assert_true(ring_init(&r, 256));
    for (int i = 0; i < 100; i++) { /* wherever the ring stands, half of it always fits */
        assert_null(ring_reserve(&r, 121));
        assert_non_null(ring_reserve(&r, 120));
        ring_commit(&r);
        assert_non_null(ring_peek(&r));
        ring_consume(&r);
        assert_non_null(ring_reserve(&r, 1 + (size_t)i));
        ring_commit(&r);
        assert_non_null(ring_peek(&r));
        ring_consume(&r);
    }
    ring_release(&r);
}

static void runs_are_aligned(void **state)
{
    struct ring r;
    (void)state;

    assert_true(ring_init(&r, 512));
    for (size_t size = 1; size < 20; size++) {
        void *at = ring_reserve(&r, size);

        assert_non_null(at);
        assert_int_equal((uintptr_t)at % RING_ALIGN, 0);
        ring_commit(&r);
        ring_peek(&r);
        ring_consume(&r);
    }
    ring_release(&r);
}

static uint32_t next(uint64_t *random)
{
    *random = *random * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(*random >> 33);
}

/* Size and content of the |n|-th run follow from |n|, so that the reader can check each byte. */
static size_t size_of(uint64_t n)
{
    uint64_t random = n;

    return 8 + next(&random) % 100;
}

static void fill(uint8_t *at, uint64_t n)
{
    memset(at, (int)(n & 0xff), size_of(n));
    memcpy(at, &n, sizeof(n));
}

static bool is_run(const uint8_t *at, uint64_t n)
{
    uint64_t number;

    memcpy(&number, at, sizeof(number));
    for (size_t i = sizeof(n); i < size_of(n); i++)
        if (at[i] != (uint8_t)(n & 0xff))
            return false;
    return number == n;
}

/* The law, on random interleavings. */
static void nothing_is_lost_doubled_or_damaged(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        uint64_t random = seed, written = 0, read = 0;
        struct ring r;

        assert_true(ring_init(&r, 512));
        for (int step = 0; step < 2000; step++) {
            if (next(&random) % 2 == 0) {
                uint8_t *at = ring_reserve(&r, size_of(written));

                if (at == NULL) {
                    assert_true(written > read); /* an empty ring takes it */
                    continue;
                }
                fill(at, written++);
                ring_commit(&r);
            } else {
                const uint8_t *at = ring_peek(&r);

                assert_int_equal(at != NULL, written > read);
                if (at == NULL)
                    continue;
                assert_true(is_run(at, read));
                read++;
                ring_consume(&r);
            }
        }
        assert_true(read > 500);
        ring_release(&r);
    }
}

#define RUNS 200000

static void *write_all(void *arg)
{
    struct ring *r = arg;

    for (uint64_t n = 0; n < RUNS;) {
        uint8_t *at = ring_reserve(r, size_of(n));

        if (at == NULL) {
            sched_yield();
            continue;
        }
        fill(at, n++);
        ring_commit(r);
    }
    return NULL;
}

static void two_threads_agree(void **state)
{
    struct ring r;
    pthread_t writer;
    (void)state;

    assert_true(ring_init(&r, 4096));
    assert_int_equal(pthread_create(&writer, NULL, write_all, &r), 0);
    for (uint64_t n = 0; n < RUNS;) {
        const uint8_t *at = ring_peek(&r);

        if (at == NULL) {
            sched_yield();
            continue;
        }
        if (!is_run(at, n))
            fail_msg("run %llu is damaged", (unsigned long long)n);
        n++;
        ring_consume(&r);
    }
    pthread_join(writer, NULL);
    assert_null(ring_peek(&r));
    ring_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_goes_in_comes_out_in_order),
        cmocka_unit_test(a_run_is_not_seen_before_it_is_committed),
        cmocka_unit_test(a_full_ring_refuses_and_takes_again_when_read),
        cmocka_unit_test(a_run_larger_than_half_is_refused_even_by_an_empty_ring),
        cmocka_unit_test(runs_are_aligned),
        cmocka_unit_test(nothing_is_lost_doubled_or_damaged),
        cmocka_unit_test(two_threads_agree),
    };

    return cmocka_run_group_tests_name("ring", tests, NULL, NULL);
}
