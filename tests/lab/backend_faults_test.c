/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/backend_faults.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MS NS_PER_MS

/* A set with its dice. */
struct fixture {
    struct fault_set set;
    struct rng rng;
};

static struct fixture f;

static int set_up(void **state)
{
    (void)state;
    fault_set_init(&f.set);
    rng_init(&f.rng, 1);
    return 0;
}

static struct fault a_fault(enum fault_kind kind)
{
    return (struct fault){
        .kind = kind, .server = FAULT_ALL, .probability = 1, .factor = 1, .bytes = 1};
}

static uint64_t add(struct fault fault, mono_ns now)
{
    const struct fault *kept = fault_set_add(&f.set, &fault, now);

    assert_non_null(kept);
    return kept->id;
}

static struct request_plan plan_at(uint32_t server, const char *path, mono_ns now)
{
    struct request_plan p;

    fault_set_plan(&f.set, server, bytes_of(path), &f.rng, now, &p);
    return p;
}

static void without_faults_a_request_is_answered(void **state)
{
    struct request_plan p = plan_at(0, "/", 5);
    (void)state;

    assert_int_equal(p.ending, PLAN_ANSWER);
    assert_int_equal(request_plan_end(&p, 100, 7), 107);
}

static void delays_add_up_and_factors_multiply(void **state)
{
    struct fault delay = a_fault(FAULT_DELAY);
    struct fault slow = a_fault(FAULT_SLOW);
    struct request_plan p;
    (void)state;

    delay.span = 10 * MS;
    slow.factor = 3;
    add(delay, 0);
    add(delay, 0);
    add(slow, 0);
    add(slow, 0);
    p = plan_at(0, "/", 0);
    assert_int_equal(request_plan_end(&p, 1000, 2 * MS), 1000 + 38 * MS);
}

static void a_factor_of_zero_takes_no_time(void **state)
{
    struct fault slow = a_fault(FAULT_SLOW);
    struct request_plan p;
    (void)state;

    slow.factor = 0;
    add(slow, 0);
    p = plan_at(0, "/", 0);
    assert_int_equal(request_plan_end(&p, 5, 9 * MS), 5);
}

static void jitter_covers_its_range(void **state)
{
    struct fault jitter = a_fault(FAULT_JITTER);
    span_ns least = MONO_NEVER;
    span_ns most = 0;
    (void)state;

    jitter.span = 100 * MS;
    add(jitter, 0);
    for (unsigned i = 0; i < 2000; i++) {
        struct request_plan p = plan_at(0, "/", 0);

        least = p.extra < least ? p.extra : least;
        most = p.extra > most ? p.extra : most;
    }
    assert_true(least < MS && most > 99 * MS && most < 100 * MS);
}

static void the_ending_that_was_set_first_has_its_way(void **state)
{
    struct fault status = a_fault(FAULT_STATUS);
    uint64_t id;
    (void)state;

    status.status = 503;
    id = add(status, 0);
    add(a_fault(FAULT_HANG), 0);
    assert_int_equal(plan_at(0, "/", 0).ending, PLAN_STATUS);
    assert_int_equal(plan_at(0, "/", 0).status, 503);
    assert_int_equal(plan_at(0, "/", 0).fault, id);
    assert_int_equal(fault_set_clear(&f.set, id), 1);
    assert_int_equal(plan_at(0, "/", 0).ending, PLAN_HANG);
}

static void each_kind_ends_a_request_in_its_way(void **state)
{
    const struct {
        enum fault_kind kind;
        enum plan_ending ending;
    } rows[] = {{FAULT_HANG, PLAN_HANG},
                {FAULT_RESET_MID_BODY, PLAN_RESET_MID_BODY},
                {FAULT_STOP_READING, PLAN_STOP_READING},
                {FAULT_STATUS, PLAN_STATUS},
                {FAULT_REFUSE, PLAN_ANSWER},
                {FAULT_ACCEPT_RESET, PLAN_ANSWER}};
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fault_set_init(&f.set);
        add(a_fault(rows[i].kind), 0);
        assert_int_equal(plan_at(0, "/", 0).ending, rows[i].ending);
    }
}

static void a_drip_says_how_much_and_how_often(void **state)
{
    struct fault drip = a_fault(FAULT_DRIP);
    (void)state;

    drip.span = 7;
    drip.bytes = 3;
    add(drip, 0);
    assert_int_equal(plan_at(0, "/", 0).drip, 7);
    assert_int_equal(plan_at(0, "/", 0).drip_bytes, 3);
}

static void a_heavy_request_is_longer_in_both(void **state)
{
    struct fault heavy = a_fault(FAULT_HEAVY);
    struct request_plan p;
    (void)state;

    heavy.factor = 10;
    heavy.bytes = 4096;
    heavy.after = 1;
    add(heavy, 0);
    assert_int_equal(plan_at(0, "/", 0).heavy_bytes, 0);
    p = plan_at(0, "/", 0);
    assert_int_equal(p.ending, PLAN_ANSWER);
    assert_int_equal(p.heavy_bytes, 4096);
    assert_int_equal(request_plan_end(&p, 0, 100), 1000);
}

static void server_and_path_say_whom_it_hits(void **state)
{
    struct fault hang = a_fault(FAULT_HANG);
    (void)state;

    hang.server = 2;
    strcpy(hang.path, "/delay");
    add(hang, 0);
    assert_int_equal(plan_at(2, "/delay/5", 0).ending, PLAN_HANG);
    assert_int_equal(plan_at(2, "/dela", 0).ending, PLAN_ANSWER);
    assert_int_equal(plan_at(2, "/x/delay", 0).ending, PLAN_ANSWER);
    assert_int_equal(plan_at(1, "/delay/5", 0).ending, PLAN_ANSWER);
}

static void probability_is_a_share(void **state)
{
    struct fault hang = a_fault(FAULT_HANG);
    unsigned hit = 0;
    (void)state;

    hang.probability = 0.3;
    add(hang, 0);
    for (unsigned i = 0; i < 20000; i++)
        hit += plan_at(0, "/", 0).ending == PLAN_HANG;
    assert_in_range(hit, 5700, 6300);
    assert_int_equal(f.set.faults[0].matched, 20000);
    assert_int_equal(f.set.faults[0].struck, hit);
}

static void probability_zero_never_hits(void **state)
{
    struct fault hang = a_fault(FAULT_HANG);
    (void)state;

    hang.probability = 0;
    add(hang, 0);
    for (unsigned i = 0; i < 1000; i++)
        assert_int_equal(plan_at(0, "/", 0).ending, PLAN_ANSWER);
}

static void after_counts_only_what_matches(void **state)
{
    struct fault hang = a_fault(FAULT_HANG);
    (void)state;

    hang.after = 2;
    hang.server = 1;
    add(hang, 0);
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(plan_at(0, "/", 0).ending, PLAN_ANSWER);
    assert_int_equal(plan_at(1, "/", 0).ending, PLAN_ANSWER);
    assert_int_equal(plan_at(1, "/", 0).ending, PLAN_ANSWER);
    assert_int_equal(plan_at(1, "/", 0).ending, PLAN_HANG);
}

static void for_ends_it_to_the_nanosecond(void **state)
{
    struct fault hang = a_fault(FAULT_HANG);
    (void)state;

    hang.lasts = 10;
    add(hang, 100);
    assert_int_equal(fault_set_next(&f.set), 110);
    assert_int_equal(plan_at(0, "/", 109).ending, PLAN_HANG);
    assert_int_equal(plan_at(0, "/", 109).until, 110);
    assert_int_equal(plan_at(0, "/", 110).ending, PLAN_ANSWER);
    assert_false(fault_set_expire(&f.set, 109));
    assert_true(fault_set_expire(&f.set, 110));
    assert_int_equal(f.set.count, 0);
    assert_true(fault_set_next(&f.set) == MONO_NEVER);
}

static void with_after_the_time_runs_from_the_first_one_hit(void **state)
{
    struct fault hang = a_fault(FAULT_HANG);
    (void)state;

    hang.lasts = 10;
    hang.after = 1;
    add(hang, 0);
    assert_true(fault_set_next(&f.set) == MONO_NEVER);
    plan_at(0, "/", 50);
    assert_true(fault_set_next(&f.set) == MONO_NEVER);
    assert_int_equal(plan_at(0, "/", 60).ending, PLAN_HANG);
    assert_int_equal(fault_set_next(&f.set), 70);
    assert_int_equal(plan_at(0, "/", 69).ending, PLAN_HANG);
    assert_int_equal(fault_set_next(&f.set), 70);
    assert_int_equal(plan_at(0, "/", 70).ending, PLAN_ANSWER);
}

static void refusing_and_resetting_are_for_connections(void **state)
{
    struct fault refuse = a_fault(FAULT_REFUSE);
    struct fault reset = a_fault(FAULT_ACCEPT_RESET);
    (void)state;

    assert_false(fault_set_refuses(&f.set, 0, 0));
    refuse.server = 1;
    refuse.lasts = 5;
    add(refuse, 0);
    assert_true(fault_set_refuses(&f.set, 1, 4));
    assert_false(fault_set_refuses(&f.set, 0, 4));
    assert_false(fault_set_refuses(&f.set, 1, 5));
    assert_false(fault_set_resets(&f.set, 1, &f.rng, 0));
    reset.after = 1;
    add(reset, 0);
    plan_at(0, "/", 0); /* a request is no connection */
    assert_false(fault_set_resets(&f.set, 0, &f.rng, 0));
    assert_true(fault_set_resets(&f.set, 0, &f.rng, 0));
    assert_int_equal(f.set.faults[1].matched, 2);
}

static void there_are_at_most_64_and_ids_are_never_used_again(void **state)
{
    struct fault hang = a_fault(FAULT_HANG);
    uint64_t last = 0;
    (void)state;

    for (unsigned i = 0; i < FAULTS_MAX; i++) {
        uint64_t id = add(hang, 0);

        assert_true(id > last);
        last = id;
    }
    assert_null(fault_set_add(&f.set, &hang, 0));
    assert_int_equal(fault_set_clear(&f.set, 0), FAULTS_MAX);
    assert_false(fault_set_has(&f.set, last));
    assert_true(add(hang, 0) > last);
}

static void clearing_one_keeps_the_order_of_the_rest(void **state)
{
    struct fault status = a_fault(FAULT_STATUS);
    uint64_t ids[3];
    (void)state;

    for (unsigned i = 0; i < 3; i++) {
        status.status = 500 + i;
        ids[i] = add(status, 0);
    }
    assert_int_equal(fault_set_clear(&f.set, 99), 0);
    assert_int_equal(fault_set_clear(&f.set, ids[0]), 1);
    assert_int_equal(plan_at(0, "/", 0).status, 501);
    assert_true(fault_set_has(&f.set, ids[1]) && fault_set_has(&f.set, ids[2]));
}

static struct request_plan stalling(span_ns period, span_ns stall)
{
    struct fault fault = a_fault(FAULT_STALL_EVERY);

    fault.span = period;
    fault.stall = stall;
    add(fault, 1000);
    return plan_at(0, "/", 1000);
}

static void a_stall_holds_up_what_comes_or_is_at_work(void **state)
{
    struct request_plan p = stalling(100, 30); /* 1000 to 1030, 1100 to 1130, ... */
    (void)state;

    assert_int_equal(request_plan_end(&p, 1000, 0), 1030);
    assert_int_equal(request_plan_end(&p, 1029, 5), 1035);
    assert_int_equal(request_plan_end(&p, 1030, 70), 1100);
    assert_int_equal(request_plan_end(&p, 1030, 71), 1131);
    assert_int_equal(request_plan_end(&p, 1090, 20), 1140);
    assert_int_equal(request_plan_end(&p, 1030, 70 + 70 + 1), 1231);
}

/* Law: work is done only outside the stalls, by counting every nanosecond. */
static void work_ends_where_counting_ends(void **state)
{
    (void)state;

    for (uint64_t seed = 0; seed < 3000; seed++) {
        struct rng rng;
        struct request_plan p = {.factor = 1};
        span_ns work;
        span_ns left;
        mono_ns at;

        rng_init(&rng, seed);
        p.stall_period = 2 + rng_below(&rng, 60);
        p.stall = 1 + rng_below(&rng, (uint32_t)p.stall_period - 1);
        p.stall_since = rng_below(&rng, 100);
        at = p.stall_since + rng_below(&rng, 200);
        work = left = rng_below(&rng, 300);
        for (mono_ns t = at;; t++) {
            bool stalled = (t - p.stall_since) % p.stall_period < p.stall;

            if (left == 0 && (work > 0 || !stalled)) {
                if (request_plan_end(&p, at, work) != t)
                    fail_msg("seed %u", (unsigned)seed);
                break;
            }
            left -= !stalled;
        }
    }
}

static void extreme_values_do_not_overflow(void **state)
{
    struct request_plan p = {.factor = FAULT_FACTOR_MAX, .extra = MONO_NEVER};
    (void)state;

    assert_true(request_plan_end(&p, MONO_NEVER - 1, MONO_NEVER) == MONO_NEVER);
    p.stall_period = 2;
    p.stall = 1;
    assert_true(request_plan_end(&p, MONO_NEVER - 1, MONO_NEVER) == MONO_NEVER);
    p = (struct request_plan){.factor = 1};
    p.stall_period = UINT64_C(1) << 40;
    p.stall = p.stall_period - 1;
    assert_true(request_plan_end(&p, 0, UINT64_C(3) << 23) == MONO_NEVER);
    p = (struct request_plan){.factor = 1};
    assert_true(request_plan_end(&p, 0, (UINT64_C(1) << 60) + 1) == (UINT64_C(1) << 60) + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(without_faults_a_request_is_answered, set_up),
        cmocka_unit_test_setup(delays_add_up_and_factors_multiply, set_up),
        cmocka_unit_test_setup(a_factor_of_zero_takes_no_time, set_up),
        cmocka_unit_test_setup(jitter_covers_its_range, set_up),
        cmocka_unit_test_setup(the_ending_that_was_set_first_has_its_way, set_up),
        cmocka_unit_test_setup(each_kind_ends_a_request_in_its_way, set_up),
        cmocka_unit_test_setup(a_drip_says_how_much_and_how_often, set_up),
        cmocka_unit_test_setup(a_heavy_request_is_longer_in_both, set_up),
        cmocka_unit_test_setup(server_and_path_say_whom_it_hits, set_up),
        cmocka_unit_test_setup(probability_is_a_share, set_up),
        cmocka_unit_test_setup(probability_zero_never_hits, set_up),
        cmocka_unit_test_setup(after_counts_only_what_matches, set_up),
        cmocka_unit_test_setup(for_ends_it_to_the_nanosecond, set_up),
        cmocka_unit_test_setup(with_after_the_time_runs_from_the_first_one_hit, set_up),
        cmocka_unit_test_setup(refusing_and_resetting_are_for_connections, set_up),
        cmocka_unit_test_setup(there_are_at_most_64_and_ids_are_never_used_again, set_up),
        cmocka_unit_test_setup(clearing_one_keeps_the_order_of_the_rest, set_up),
        cmocka_unit_test_setup(a_stall_holds_up_what_comes_or_is_at_work, set_up),
        cmocka_unit_test_setup(work_ends_where_counting_ends, set_up),
        cmocka_unit_test_setup(extreme_values_do_not_overflow, set_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
