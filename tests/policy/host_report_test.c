/* SPDX-License-Identifier: Apache-2.0 */
/* What hosts say of themselves: smoothed, aged, read whole; and what capacity comes of it. */
#include "policy/host_report.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "policy/detect.h"

static struct load_report of_shares(double cpu, double application)
{
    return (struct load_report){.cpu = cpu, .memory = LOAD_NOT_SAID, .application = application};
}

static void assert_near(double a, double b)
{
    if (fabs(a - b) > 2e-6)
        fail_msg("%.9g is not %.9g", a, b);
}

static void a_host_that_said_nothing_is_known_as_such(void **state)
{
    static struct host_report h;
    struct load_report r;
    (void)state;

    assert_false(host_report_read(&h, &r, NS_PER_S));
    assert_true(host_report_utilization(&h, NS_PER_S) < 0);
}

static void the_application_knows_better_than_its_processor(void **state)
{
    static struct host_report h;
    struct load_report r = of_shares(0.25, LOAD_NOT_SAID);
    (void)state;

    host_report_learn(&h, &r, NS_PER_S);
    assert_near(host_report_utilization(&h, NS_PER_S), 0.25);
    r = of_shares(0.25, 1.5);
    host_report_learn(&h, &r, NS_PER_S);
    assert_near(host_report_utilization(&h, NS_PER_S), 1.5);
    assert_true(host_report_read(&h, &r, NS_PER_S));
    assert_true(r.memory == LOAD_NOT_SAID);
    assert_near(r.cpu, 0.25);
}

static void an_old_word_is_none_and_no_part_of_the_mean(void **state)
{
    static struct host_report h;
    struct load_report r = of_shares(0, LOAD_NOT_SAID);
    mono_ns later = NS_PER_S + HOST_REPORT_FRESH + 1;
    (void)state;

    host_report_learn(&h, &r, NS_PER_S);
    assert_near(host_report_utilization(&h, later - 1), 0);
    assert_true(host_report_utilization(&h, later) < 0);
    r.cpu = 0.8;
    host_report_learn(&h, &r, later);
    assert_near(host_report_utilization(&h, later), 0.8);
}

static void words_are_smoothed_and_settle_on_what_is_said(void **state)
{
    static struct host_report h;
    struct load_report r = of_shares(0, LOAD_NOT_SAID);
    (void)state;

    host_report_learn(&h, &r, NS_PER_S);
    r.cpu = 0.8;
    host_report_learn(&h, &r, NS_PER_S);
    assert_near(host_report_utilization(&h, NS_PER_S), 0.1);
    for (int i = 0; i < 200; i++)
        host_report_learn(&h, &r, NS_PER_S);
    assert_true(fabs(host_report_utilization(&h, NS_PER_S) - 0.8) < 1e-5);
    r.cpu = 1e300; /* no word breaks it */
    host_report_learn(&h, &r, NS_PER_S);
    assert_true(host_report_utilization(&h, NS_PER_S) < 4001);
}

/* --- many at once --- */

#define ROUNDS 20000

static struct host_report shared;
static _Atomic int speaking;

/* All values of one report are the same number, and so many names begin with it. */
static void *speak(void *number)
{
    uint32_t n = *(const uint32_t *)number;
    struct load_report r = of_shares(0.5, LOAD_NOT_SAID);

    r.named_count = n;
    for (uint32_t i = 0; i < n; i++) {
        snprintf(r.named[i].name, sizeof(r.named[i].name), "%u-of-a-name-of-length", n);
        r.named[i].len = (uint32_t)strlen(r.named[i].name);
        r.named[i].value = n;
    }
    for (int i = 0; i < ROUNDS; i++)
        host_report_learn(&shared, &r, NS_PER_S);
    speaking--;
    return NULL;
}

/* How many named values there were. */
static uint32_t read_whole(void)
{
    struct load_report r;

    if (!host_report_read(&shared, &r, NS_PER_S))
        return 0;
    for (uint32_t n = 0; n < r.named_count; n++) {
        assert_true(r.named[n].value == r.named_count);
        assert_int_equal(r.named[n].name[0], '0' + (int)r.named_count);
    }
    return r.named_count;
}

static void named_values_are_all_of_one_report(void **state)
{
    static uint32_t numbers[] = {3, 8};
    pthread_t threads[2];
    (void)state;

    speaking = 2;
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, speak, &numbers[i]), 0);
    while (speaking > 0)
        read_whole();
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_true(read_whole() > 0);
}

/* --- capacity --- */

#define HOSTS 10

struct fleet {
    struct detect judge;
    struct detect_host host[HOSTS];
    struct detect_host *hosts[HOSTS];
};

/* Hosts that carry 100 requests a second each share |rate| of them, and say so. */
static void share_out(struct fleet *f, double rate)
{
    uint32_t serving = 0;

    for (uint32_t i = 0; i < HOSTS; i++)
        serving += f->host[i].serving;
    for (uint32_t i = 0; i < HOSTS; i++) {
        f->host[i].reports = f->host[i].serving;
        f->host[i].utilization = rate / serving / 100;
    }
}

static void fleet_init(struct fleet *f, double rate)
{
    *f = (struct fleet){.judge = {.count = HOSTS}};
    detect_init(&f->judge);
    f->judge.hosts = f->hosts;
    f->judge.count = HOSTS;
    for (uint32_t i = 0; i < HOSTS; i++) {
        f->hosts[i] = &f->host[i];
        f->host[i].serving = true;
    }
    share_out(f, rate);
}

/* Hosts 0 and 1 are bad: each goes where the others would not be above 75 %. */
static uint32_t ejected(double rate)
{
    static struct fleet f;
    uint32_t n = 0;

    fleet_init(&f, rate);
    for (uint32_t i = 0; i < 2; i++) {
        if (detect_load_without(&f.judge, i) > 0.75)
            continue;
        n++;
        f.host[i].serving = false;
        share_out(&f, rate);
    }
    return n;
}

static void t_000_3_at_the_border_of_capacity(void **state)
{
    static struct fleet f;
    (void)state;

    assert_int_equal(ejected(600), 2); /* 75.0 % */
    assert_int_equal(ejected(610), 1); /* 67.8 %, then 76.25 % */
    assert_int_equal(ejected(680), 0); /* 75.6 % */
    fleet_init(&f, 610);
    assert_near(detect_load_without(&f.judge, 0), 0.678);
    f.host[0].serving = false;
    share_out(&f, 610);
    assert_near(detect_load_without(&f.judge, 1), 0.763); /* 76.25, rounded */
}

/* What one had that has just gone comes upon the others, who do not say so yet. */
static void what_one_carried_that_went_a_moment_ago_is_counted(void **state)
{
    static struct fleet f;
    (void)state;

    fleet_init(&f, 610);
    f.host[0].serving = f.host[0].reports = false;
    assert_near(detect_load_without(&f.judge, 1), 0.686); /* as if they knew already */
    f.host[0].moved = 1000;
    assert_near(detect_load_without(&f.judge, 1), 0.763);
    f.host[1].cut = f.host[1].moved = 950; /* what it was cut by itself has not come yet, either */
    assert_near(detect_load_without(&f.judge, 1), 0.763);
    f.host[1].moved = 0;
    assert_near(detect_load_without(&f.judge, 1), 0.69);
}

/* It gets a twentieth: the others carry nearly all of its share already. */
static void what_was_cut_already_is_not_counted_twice(void **state)
{
    static struct fleet f;
    (void)state;

    fleet_init(&f, 600);
    f.host[0].cut = 950;
    assert_near(detect_load_without(&f.judge, 0), 0.603);
}

static void the_word_of_half_is_enough_of_fewer_not(void **state)
{
    static struct fleet f;
    (void)state;

    fleet_init(&f, 600);
    for (uint32_t i = 1; i <= 4; i++)
        f.host[i].reports = false;
    assert_near(detect_load_without(&f.judge, 0), 0.667); /* five of nine */
    f.host[5].reports = false;
    assert_near(detect_load_without(&f.judge, 0), 0); /* the knee, and none is known */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_that_said_nothing_is_known_as_such),
        cmocka_unit_test(the_application_knows_better_than_its_processor),
        cmocka_unit_test(an_old_word_is_none_and_no_part_of_the_mean),
        cmocka_unit_test(words_are_smoothed_and_settle_on_what_is_said),
        cmocka_unit_test(named_values_are_all_of_one_report),
        cmocka_unit_test(t_000_3_at_the_border_of_capacity),
        cmocka_unit_test(what_one_carried_that_went_a_moment_ago_is_counted),
        cmocka_unit_test(what_was_cut_already_is_not_counted_twice),
        cmocka_unit_test(the_word_of_half_is_enough_of_fewer_not),
    };

    return cmocka_run_group_tests_name("host_report", tests, NULL, NULL);
}
