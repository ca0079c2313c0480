/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of the half seconds is all that a sum is made of. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "policy/detect.h"

#define HOSTS 5u

static struct detect_host memory[HOSTS];
static struct detect_host *hosts[HOSTS];
static struct detect judge;
static const struct detect_config config = {
    .threshold = DETECT_THRESHOLD, .latency = true, .errors = true, .connections = true};

static int start(void **state)
{
    (void)state;
    memset(memory, 0, sizeof(memory));
    for (uint32_t i = 0; i < HOSTS; i++)
        hosts[i] = &memory[i];
    detect_init(&judge);
    detect_adopt(&judge, &config, hosts, HOSTS);
    for (uint32_t i = 0; i < HOSTS; i++)
        detect_set_serving(&judge, i, true);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    detect_release(&judge);
    for (uint32_t i = 0; i < HOSTS; i++)
        detect_host_release(&memory[i]);
    return 0;
}

static double made(const struct detect_step *s, enum detect_line line)
{
    double gain = s->gain;

    if (detect_by_half_seconds(line))
        gain = fmin(gain, detect_step_share(line) * config.threshold);
    return fmin(fmax(s->from + gain, s->least), s->most);
}

/* The steps lead from one to the next, and the last one to the sum. A crowd clears a sum. */
static void follow(uint32_t index, enum detect_line line)
{
    struct detect_step later, step;

    assert_true(detect_past(&judge, index, line, 0, &later));
    assert_float_equal(made(&later, line), detect_sum(&judge, index, line), 1e-3);
    for (uint32_t n = 1; detect_past(&judge, index, line, n, &step); n++) {
        assert_int_equal(step.number + 1, later.number);
        if (later.from != 0)
            assert_float_equal(made(&step, line), later.from, 1e-3);
        else
            assert_true(made(&step, line) < 1e-3 || detect_by_half_seconds(line));
        later = step;
    }
}

static void follow_all(void)
{
    for (uint32_t i = 0; i < HOSTS; i++)
        for (int line = 0; line < DETECT_LINE_COUNT; line++)
            follow(i, (enum detect_line)line);
}

static struct evidence draw(struct rng *rng, uint32_t bad_percent)
{
    bool bad = rng_below(rng, 100) < bad_percent;
    struct evidence e = {.outcome = EVIDENCE_OK,
                         .first_us = (uint32_t)(1000 + rng_below(rng, bad ? 200000 : 10000)),
                         .flags = rng_below(rng, 4) == 0 ? EVIDENCE_FRESH : 0,
                         .thinned = (uint8_t)rng_below(rng, 3)};

    if (bad)
        e.outcome = (uint8_t)rng_below(rng, EVIDENCE_OUTCOME_COUNT);
    return e;
}

static void sums_can_be_done_again_from_what_is_kept(void **state)
{
    struct rng rng;
    (void)state;

    rng_init(&rng, 17);
    for (uint32_t step = 0; step < 4000; step++) {
        uint32_t index = (uint32_t)rng_below(&rng, HOSTS);
        struct evidence e = draw(&rng, index == 0 ? 40 : step / 400 * 4);

        detect_learn(&judge, index, &e);
        if (rng_below(&rng, 40) == 0)
            detect_turn(&judge);
        if (rng_below(&rng, 500) == 0)
            detect_acquit(&judge, index);
        if (step % 7 == 0)
            follow_all();
    }
}

static void an_acquittal_leaves_nothing_to_be_shown(void **state)
{
    const struct evidence failed = {.outcome = EVIDENCE_ERROR};
    struct detect_step step;
    (void)state;

    for (uint32_t n = 0; n < 3; n++) {
        detect_learn(&judge, 0, &failed);
        detect_turn(&judge);
    }
    assert_true(detect_past(&judge, 0, DETECT_ERRORS_MANY, 3, &step));
    detect_acquit(&judge, 0);
    assert_false(detect_past(&judge, 0, DETECT_ERRORS_MANY, 1, &step));
    assert_true(detect_past(&judge, 0, DETECT_ERRORS_MANY, 0, &step));
    assert_true(step.from == 0 && step.gain == 0 && step.least == 0);
}

static void what_was_a_connections_fault_is_shown_to_be_taken_off(void **state)
{
    const struct evidence late = {.outcome = EVIDENCE_LATE, .first_us = 500000};
    const struct evidence fine = {.outcome = EVIDENCE_OK, .first_us = 20000};
    struct detect_step step;
    (void)state;

    for (uint32_t n = 0; n < 20 * HOSTS; n++) {
        detect_learn(&judge, n % HOSTS, &fine);
        if (n % 25 == 24)
            detect_turn(&judge);
    }
    for (uint32_t n = 0; n < 4; n++) {
        detect_learn(&judge, 0, &late);
        if (n == 1)
            detect_turn(&judge);
    }
    assert_true(detect_sum(&judge, 0, DETECT_AGE) > 1);
    detect_clear_age(&judge, 0);
    assert_true(detect_sum(&judge, 0, DETECT_AGE) == 0);
    follow_all();
    assert_true(detect_past(&judge, 0, DETECT_AGE, 0, &step));
    assert_true(step.from > 0 && step.from + step.gain < 1e-9);
    detect_learn(&judge, 0, &late);
    detect_turn(&judge);
    follow_all();
}

static void no_more_is_kept_than_there_is_room_for(void **state)
{
    struct detect_step step;
    (void)state;

    for (uint32_t n = 0; n < 3 * DETECT_HISTORY; n++)
        detect_turn(&judge);
    assert_true(detect_past(&judge, 0, DETECT_RANK, DETECT_HISTORY, &step));
    assert_int_equal(step.number, 2 * DETECT_HISTORY);
    assert_false(detect_past(&judge, 0, DETECT_RANK, DETECT_HISTORY + 1, &step));
}

static void attempts_are_counted_by_class_with_those_they_stand_for(void **state)
{
    const struct evidence one = {.outcome = EVIDENCE_ERROR, .class = CLASS_WRITE};
    const struct evidence four = {.outcome = EVIDENCE_OK, .class = CLASS_READ, .thinned = 2};
    (void)state;

    detect_count(&judge, 1, &one);
    detect_count(&judge, 1, &four);
    detect_count(&judge, 1, &four);
    assert_int_equal(memory[1].counts[CLASS_WRITE][EVIDENCE_ERROR], 1);
    assert_int_equal(memory[1].counts[CLASS_READ][EVIDENCE_OK], 8);
    assert_int_equal(memory[0].counts[CLASS_READ][EVIDENCE_OK], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sums_can_be_done_again_from_what_is_kept, start, stop),
        cmocka_unit_test_setup_teardown(an_acquittal_leaves_nothing_to_be_shown, start, stop),
        cmocka_unit_test_setup_teardown(what_was_a_connections_fault_is_shown_to_be_taken_off,
                                        start, stop),
        cmocka_unit_test_setup_teardown(no_more_is_kept_than_there_is_room_for, start, stop),
        cmocka_unit_test_setup_teardown(attempts_are_counted_by_class_with_those_they_stand_for,
                                        start, stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
