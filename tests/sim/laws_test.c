/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole data plane in virtual time: seeded runs of a ten-host cluster with random faults, the
 * laws watching. FIREBREAK_SEEDS=1000 for the full run, FIREBREAK_SEED=17 for one seed alone.
 */
#include "sim/laws.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/scenario.h"

#define SEEDS_DEFAULT 200
#define DURATION      (60 * NS_PER_S)

static uint64_t number_of(const char *variable, uint64_t otherwise)
{
    const char *text = getenv(variable);

    return text == NULL ? otherwise : strtoull(text, NULL, 10);
}

/* --- the full run --- */

struct totals {
    uint64_t requests, answered, cut, cancelled, from_servers, ejections, failovers, resends;
    uint64_t events, bad_days;
};

static void add(struct totals *t, const struct scenario_result *r)
{
    t->requests += r->requests;
    t->answered += r->outcomes[OUTCOME_ANSWERED];
    t->cut += r->outcomes[OUTCOME_CUT];
    t->cancelled += r->outcomes[OUTCOME_CANCELLED];
    t->from_servers += r->from_servers;
    t->ejections += r->ejections;
    t->failovers += r->failovers;
    t->resends += r->resends;
    t->events += r->events;
    t->bad_days += r->bad_days;
}

static void tell(uint64_t seeds, const struct totals *t)
{
    print_message("%" PRIu64 " seeds, %" PRIu64 " events: %" PRIu64 " requests, %" PRIu64
                  " answered (%" PRIu64 " by hosts), %" PRIu64 " cut, %" PRIu64
                  " cancelled; %" PRIu64 " bad days, %" PRIu64 " ejections, %" PRIu64
                  " failovers, %" PRIu64 " resends\n",
                  seeds, t->events, t->requests, t->answered, t->from_servers, t->cut, t->cancelled,
                  t->bad_days, t->ejections, t->failovers, t->resends);
}

static void complain(const struct scenario_result *r)
{
    print_error("%s\n", r->failure);
    for (unsigned i = 0; i < SCENARIO_LOG_LINES; i++)
        print_error("    %s\n", r->log[i]);
}

static bool run_seed(uint64_t seed, struct scenario_result *r)
{
    struct scenario_options o;

    scenario_options_init(&o, seed);
    assert_true(scenario_run(&o, DURATION, r));
    if (!r->good)
        complain(r);
    return r->good;
}

static void the_laws_hold_on_every_seed(void **state)
{
    uint64_t only = number_of("FIREBREAK_SEED", 0);
    uint64_t first = only == 0 ? 1 : only;
    uint64_t last = only == 0 ? number_of("FIREBREAK_SEEDS", SEEDS_DEFAULT) : only;
    struct totals totals = {.requests = 0};
    struct scenario_result r;
    unsigned bad = 0;
    (void)state;

    for (uint64_t seed = first; seed <= last; seed++) {
        bad += !run_seed(seed, &r);
        add(&totals, &r);
    }
    tell(last - first + 1, &totals);
    assert_int_equal(bad, 0);
    if (last - first < 50)
        return;
    /* A run in which nothing went wrong would have shown nothing. */
    assert_true(totals.ejections > last / 2);
    assert_true(totals.failovers > last);
    assert_true(totals.resends > last / 10);
    assert_true(totals.cut > last / 10);
    assert_true(totals.cancelled > last);
    assert_true(totals.from_servers > totals.requests / 2);
}

/* --- law 9 --- */

static void the_same_seed_gives_the_same_run(void **state)
{
    struct scenario_result once, again, other;
    (void)state;

    for (uint64_t seed = 1; seed <= 20; seed++) {
        run_seed(seed, &once);
        run_seed(seed, &again);
        assert_int_equal(once.digest, again.digest);
        assert_int_equal(once.events, again.events);
    }
    run_seed(21, &other);
    assert_int_not_equal(once.digest, other.digest);
}

/* --- planted bugs: each is caught by its law --- */

struct planted {
    const char *law;
    struct scenario_plant plant;
};

static void lift_cap(struct rig_settings *given)
{
    given->cluster.outlier.max_ejection_percent = 100;
}

static void forget_deadline(struct rig_settings *given)
{
    given->route.timeout *= 10;
    given->route.per_try_timeout = MONO_NEVER;
}

static void forget_limit(struct rig_settings *given)
{
    given->cluster.limits.max_connections = LIMIT_NONE;
}

/* A cluster in which each of the planted bugs has its occasion. */
static void make_occasion(struct scenario_options *o, uint64_t seed)
{
    scenario_options_init(o, seed);
    o->settings.cluster.outlier = default_outlier;
    o->settings.cluster.limits = default_limits;
    o->settings.cluster.limits.max_connections = 12;
    o->settings.cluster.limits.max_requests_per_connection = 0;
    o->settings.route.timeout = 2 * NS_PER_S;
    o->settings.route.per_try_timeout = MONO_NEVER;
    o->faulty_hosts = 8;
    o->calm = NS_PER_S;
    o->habits.cancel_permille = 0;
}

static void law_catches(const struct planted *p)
{
    struct scenario_options o;
    struct scenario_result r;

    for (uint64_t seed = 1; seed <= 10; seed++) {
        make_occasion(&o, seed);
        assert_true(scenario_run(&o, DURATION, &r));
        assert_string_equal(r.failure, ""); /* without the plant all is well */
        o.plant = p->plant;
        assert_true(scenario_run(&o, DURATION, &r));
        if (r.good)
            continue;
        if (strncmp(r.failure, p->law, strlen(p->law)) != 0)
            fail_msg("%s was expected to catch it, but: %s", p->law, r.failure);
        assert_non_null(strstr(r.failure, "[seed "));
        return;
    }
    fail_msg("%s did not catch what was planted", p->law);
}

static void law_1_catches_a_lifted_cap(void **state)
{
    (void)state;
    law_catches(&(struct planted){.law = "law 1", .plant = {.tamper = lift_cap}});
}

static void law_2_catches_an_ejection_without_cause(void **state)
{
    (void)state;
    law_catches(&(struct planted){.law = "law 2", .plant = {.server = SERVER_PLANT_SECRET}});
}

static void law_4_catches_an_attempt_too_many(void **state)
{
    (void)state;
    law_catches(&(struct planted){.law = "law 4", .plant = {.server = SERVER_PLANT_ECHO}});
}

static void forget_budget(struct rig_settings *given)
{
    given->cluster.retry_budget.capacity = 10000;
    given->cluster.limits.max_retries = LIMIT_NONE;
    given->retry.policy.attempts = 5;
    given->retry.policy.on = RETRY_ON_5XX;
}

static void law_4_catches_a_forgotten_budget(void **state)
{
    (void)state;
    law_catches(&(struct planted){.law = "law 4", .plant = {.tamper = forget_budget}});
}

static void law_5_catches_a_forgotten_deadline(void **state)
{
    (void)state;
    law_catches(&(struct planted){.law = "law 5", .plant = {.tamper = forget_deadline}});
}

static void law_6_catches_a_second_record(void **state)
{
    (void)state;
    law_catches(
        &(struct planted){.law = "law 6", .plant = {.ledger = LEDGER_PLANT_TWICE, .after = 100}});
}

static void law_6_catches_a_lost_record(void **state)
{
    (void)state;
    law_catches(
        &(struct planted){.law = "law 6", .plant = {.ledger = LEDGER_PLANT_LOST, .after = 100}});
}

static void law_6_catches_a_wrong_status(void **state)
{
    (void)state;
    law_catches(
        &(struct planted){.law = "law 6", .plant = {.ledger = LEDGER_PLANT_STATUS, .after = 100}});
}

static void law_7_catches_a_duplicated_answer(void **state)
{
    (void)state;
    law_catches(&(struct planted){.law = "law 7", .plant = {.server = SERVER_PLANT_TWICE}});
}

static void law_7_catches_an_answer_that_is_cut_and_looks_whole(void **state)
{
    (void)state;
    law_catches(&(struct planted){.law = "law 7", .plant = {.server = SERVER_PLANT_SHORT}});
}

static void law_7_catches_a_changed_byte(void **state)
{
    (void)state;
    law_catches(
        &(struct planted){.law = "law 7", .plant = {.net = NET_PLANT_FLIP_BYTE, .after = 500}});
}

static void law_8_catches_a_forgotten_limit(void **state)
{
    (void)state;
    law_catches(&(struct planted){.law = "law 8", .plant = {.tamper = forget_limit}});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_laws_hold_on_every_seed),
        cmocka_unit_test(the_same_seed_gives_the_same_run),
        cmocka_unit_test(law_1_catches_a_lifted_cap),
        cmocka_unit_test(law_2_catches_an_ejection_without_cause),
        cmocka_unit_test(law_4_catches_an_attempt_too_many),
        cmocka_unit_test(law_4_catches_a_forgotten_budget),
        cmocka_unit_test(law_5_catches_a_forgotten_deadline),
        cmocka_unit_test(law_6_catches_a_second_record),
        cmocka_unit_test(law_6_catches_a_lost_record),
        cmocka_unit_test(law_6_catches_a_wrong_status),
        cmocka_unit_test(law_7_catches_a_duplicated_answer),
        cmocka_unit_test(law_7_catches_an_answer_that_is_cut_and_looks_whole),
        cmocka_unit_test(law_7_catches_a_changed_byte),
        cmocka_unit_test(law_8_catches_a_forgotten_limit),
    };

    return cmocka_run_group_tests_name("laws", tests, NULL, NULL);
}
