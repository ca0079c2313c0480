/* SPDX-License-Identifier: Apache-2.0 */
/* Evidence on its way from a worker to the watch: in order, counted, thinned without bias. */
#include "policy/evidence_ring.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"

#define S    NS_PER_S
#define HALF (S / 2)

static struct evidence_ring *start(void)
{
    struct evidence_ring *r = aligned_alloc(64, sizeof(*r));

    assert_non_null(r);
    memset(r, 0, sizeof(*r));
    return r;
}

/* Sample |n|: its number is its latency. */
static struct evidence sample(uint32_t n, enum evidence_outcome outcome, mono_ns at)
{
    return (struct evidence){.at = at, .outcome = (uint8_t)outcome, .first_us = n};
}

static enum evidence_put put(struct evidence_ring *r, uint32_t n, mono_ns at)
{
    const struct evidence e = sample(n, EVIDENCE_OK, at);

    return evidence_ring_put(r, &e);
}

static uint32_t drain(struct evidence_ring *r)
{
    struct evidence e;
    uint32_t n = 0;

    while (evidence_ring_take(r, &e))
        n++;
    return n;
}

static void what_is_put_comes_out_whole_and_in_order(void **state)
{
    struct evidence_ring *r = start();
    struct evidence e;
    (void)state;

    assert_false(evidence_ring_take(r, &e));
    for (uint32_t n = 0; n < 3 * EVIDENCE_RING_ROOM; n++) {
        const struct evidence in = {.at = S + n * NS_PER_MS,
                                    .cluster = r,
                                    .host = n % 7,
                                    .class = 2,
                                    .outcome = EVIDENCE_TIMEOUT,
                                    .flags = EVIDENCE_RETRY,
                                    .first_us = n,
                                    .queue_us = 77,
                                    .ahead = 9};

        assert_int_equal(evidence_ring_put(r, &in), EVIDENCE_PUT);
        if (n % 2 == 1)
            continue;
        assert_true(evidence_ring_take(r, &e));
        assert_int_equal(e.first_us, n / 2);
        assert_int_equal(e.at, S + n / 2 * NS_PER_MS);
        assert_ptr_equal(e.cluster, r);
        assert_int_equal(e.host, n / 2 % 7);
        assert_int_equal(e.ahead, 9);
        assert_int_equal(e.queue_us, 77);
        assert_int_equal(e.thinned, 0);
        if (n / 2 + 1 == EVIDENCE_RING_ROOM)
            break; /* as many as there is room for are in it now */
    }
    free(r);
}

static void what_finds_no_room_is_lost(void **state)
{
    struct evidence_ring *r = start();
    uint32_t kept = 0;
    (void)state;

    for (uint32_t n = 0; n < EVIDENCE_RING_ROOM + 100; n++) {
        const struct evidence e = sample(n, EVIDENCE_RESET, S);
        enum evidence_put did = evidence_ring_put(r, &e);

        assert_int_equal(did, n < EVIDENCE_RING_ROOM ? EVIDENCE_PUT : EVIDENCE_LOST);
        kept += did == EVIDENCE_PUT;
    }
    assert_int_equal(kept, EVIDENCE_RING_ROOM);
    assert_int_equal(drain(r), EVIDENCE_RING_ROOM);
    assert_int_equal(put(r, 1, 2 * S), EVIDENCE_PUT);
    free(r);
}

/* --- thinning --- */

static void below_the_rate_nothing_is_thinned_and_each_half_second_begins_anew(void **state)
{
    struct evidence_ring *r = start();
    (void)state;

    for (uint32_t slice = 2; slice < 12; slice++) {
        for (uint32_t n = 0; n < EVIDENCE_RATE - 1; n++)
            assert_int_equal(put(r, n, slice * HALF), EVIDENCE_PUT);
        assert_int_equal(drain(r), EVIDENCE_RATE - 1);
    }
    free(r);
}

/* With more workers each has its share of the rate. */
static void four_workers_thin_so_that_they_tell_no_more_than_one(void **state)
{
    uint32_t told[2] = {0, 0};
    (void)state;

    for (uint32_t others = 0; others < 4; others += 3) {
        for (uint32_t i = 0; i <= others; i++) {
            struct evidence_ring *r = start();

            r->others = others;
            for (uint32_t n = 1; n < 40000 / (1 + others); n++) {
                enum evidence_put did = put(r, n, S);

                assert_true(did == EVIDENCE_PUT || n >= EVIDENCE_RATE / (1 + others));
                told[others > 0] += drain(r);
            }
            free(r);
        }
    }
    assert_in_range(told[1], told[0] * 9 / 10, told[0] * 11 / 10);
}

/* Failures and probes all go through, whatever the rate. */
static void failures_and_probes_are_never_thinned(void **state)
{
    struct evidence_ring *r = start();
    struct evidence e;
    (void)state;

    for (uint32_t n = 0; n < 10 * EVIDENCE_RATE; n++) {
        struct evidence f = sample(n, (enum evidence_outcome)(n % EVIDENCE_OUTCOME_COUNT), S);

        if (f.outcome == EVIDENCE_OK)
            f.flags = EVIDENCE_PROBE;
        assert_int_equal(evidence_ring_put(r, &f), EVIDENCE_PUT);
        assert_true(evidence_ring_take(r, &e));
        assert_int_equal(e.first_us, n);
        assert_int_equal(e.thinned, 0);
    }
    free(r);
}

/* What came out in one half second, by host: what was put, and what the samples stand for. */
struct tally {
    double put[128];
    double told[128];
    uint32_t came;
};

static void take_all(struct evidence_ring *r, struct tally *t)
{
    struct evidence e;

    while (evidence_ring_take(r, &e)) {
        t->told[e.host] += (double)(UINT32_C(1) << e.thinned);
        t->came++;
    }
}

static void put_for(struct evidence_ring *r, struct tally *t, uint32_t host, mono_ns at)
{
    struct evidence e = sample(0, EVIDENCE_OK, at);

    e.host = host;
    (void)evidence_ring_put(r, &e);
    t->put[host]++;
    take_all(r, t);
}

/*
 * Hosts that take turns, however many there are: each is told of as often as it answered, within
 * four standard deviations of a draw (weights up to 16).
 */
static void hosts_that_take_turns_are_thinned_alike(void **state)
{
    static const uint32_t counts[] = {1, 2, 3, 4, 8, 10, 16, 21, 34, 64, 89, 128};
    (void)state;

    for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
        struct evidence_ring *r = start();
        struct tally t = {.came = 0};

        for (uint32_t slice = 1; slice <= 4; slice++)
            for (uint32_t n = 0; n < 50000; n++)
                put_for(r, &t, n % counts[k], slice * HALF);
        for (uint32_t i = 0; i < counts[k]; i++) {
            double off = t.told[i] - t.put[i];

            assert_true(off * off <= 16 * 16 * t.put[i]);
        }
        assert_in_range(t.came, 4 * 2 * EVIDENCE_RATE, 4 * 3 * EVIDENCE_RATE);
        free(r);
    }
}

/* A failure between each two answers must not decide which answers are told. */
static void the_share_of_failures_is_not_bent(void **state)
{
    (void)state;

    for (uint32_t every = 2; every <= 9; every++) {
        struct evidence_ring *r = start();
        double ok = 0, failed = 0;
        struct evidence e;

        for (uint32_t n = 0; n < 100000; n++) {
            struct evidence f = sample(n, n % every == 0 ? EVIDENCE_ERROR : EVIDENCE_OK, S);

            (void)evidence_ring_put(r, &f);
            while (evidence_ring_take(r, &e)) {
                ok += e.outcome == EVIDENCE_OK ? (double)(UINT32_C(1) << e.thinned) : 0;
                failed += e.outcome == EVIDENCE_ERROR;
            }
        }
        assert_int_equal((uint32_t)failed, (100000 + every - 1) / every);
        assert_true(ok > 0.95 * (100000 - failed) && ok < 1.05 * (100000 - failed));
        free(r);
    }
}

/* --- the reader sleeps --- */

static void who_sleeps_is_told_of_the_next_one_and_only_of_that(void **state)
{
    struct evidence_ring *r = start();
    (void)state;

    assert_int_equal(put(r, 0, S), EVIDENCE_PUT);
    assert_false(evidence_ring_sleep(r)); /* there is something */
    assert_int_equal(put(r, 1, S), EVIDENCE_PUT);
    assert_int_equal(drain(r), 2);
    assert_true(evidence_ring_sleep(r));
    assert_int_equal(put(r, 2, S), EVIDENCE_PUT_TELL);
    assert_int_equal(put(r, 3, S), EVIDENCE_PUT);
    free(r);
}

/* --- the law: two threads --- */

#define SENT 80000u

struct pair {
    struct evidence_ring ring;
    _Atomic uint32_t told; /* the writer's mailbox */
    _Atomic bool done;
    uint32_t lost;
};

/* Every so often there is nothing to tell, so that the reader comes to sleep. */
static void *write_all(void *argument)
{
    struct pair *p = argument;
    struct rng random;

    rng_init(&random, 3);
    for (uint32_t n = 0; n < SENT; n++) {
        const struct evidence e =
            sample(n, n % 5 == 0 ? EVIDENCE_ERROR : EVIDENCE_OK, S + n / 1000 * HALF);
        enum evidence_put did = evidence_ring_put(&p->ring, &e);

        assert_int_not_equal(did, EVIDENCE_THINNED); /* not at this rate */
        p->lost += did == EVIDENCE_LOST;
        if (did == EVIDENCE_PUT_TELL)
            atomic_fetch_add(&p->told, 1);
        for (uint32_t i = rng_below(&random, 64) == 0 ? 100 : 0; i > 0; i--)
            sched_yield();
    }
    atomic_store(&p->done, true);
    return NULL;
}

/*
 * Nothing comes twice, out of order, or torn; what is missing was said to be lost; and a reader
 * that sleeps until it is told never sleeps while there is something in the ring.
 */
static void two_threads_lose_nothing_and_no_wake(void **state)
{
    struct pair *p = aligned_alloc(64, sizeof(*p));
    uint32_t taken = 0, heard = 0, asked = 0, sleeps = 0;
    int64_t last = -1;
    pthread_t writer;
    (void)state;

    assert_non_null(p);
    memset(p, 0, sizeof(*p));
    assert_int_equal(pthread_create(&writer, NULL, write_all, p), 0);
    for (;;) {
        bool done = atomic_load(&p->done);
        struct evidence e;

        while (evidence_ring_take(&p->ring, &e)) {
            assert_true((int64_t)e.first_us > last);
            assert_int_equal(e.at, S + e.first_us / 1000 * HALF);
            last = e.first_us;
            taken++;
        }
        if (done)
            break;
        asked++;
        if (!evidence_ring_sleep(&p->ring))
            continue;
        sleeps++;
        while (atomic_load(&p->told) == heard && !atomic_load(&p->done))
            sched_yield();
        if (atomic_load(&p->told) == heard) /* nobody woke it: then there was nothing */
            assert_false(evidence_ring_take(&p->ring, &e));
        heard = atomic_load(&p->told);
        assert_true(heard <= asked); /* told once each time, at most */
    }
    pthread_join(writer, NULL);
    assert_int_equal(taken + p->lost, SENT);
    assert_true(sleeps > 10);
    free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_put_comes_out_whole_and_in_order),
        cmocka_unit_test(what_finds_no_room_is_lost),
        cmocka_unit_test(below_the_rate_nothing_is_thinned_and_each_half_second_begins_anew),
        cmocka_unit_test(four_workers_thin_so_that_they_tell_no_more_than_one),
        cmocka_unit_test(failures_and_probes_are_never_thinned),
        cmocka_unit_test(hosts_that_take_turns_are_thinned_alike),
        cmocka_unit_test(the_share_of_failures_is_not_bent),
        cmocka_unit_test(who_sleeps_is_told_of_the_next_one_and_only_of_that),
        cmocka_unit_test(two_threads_lose_nothing_and_no_wake),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
