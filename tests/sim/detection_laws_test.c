/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detection under the laws, where seeds alone would come across it too seldom: a fleet that is slow
 * (law 3), and that it does not matter who saw what (law 9).
 */
#include "sim/detection_plane.h"

#include "policy/evidence_ring.h"
#include "sim/detection_replay.h"

/* --- law 3 --- */

static void slow_down(double factor, span_ns ramp)
{
    for (uint32_t i = 0; i < p.settings.hosts; i++) {
        server(i)->mood.pace.slow = factor;
        server(i)->mood.pace.slow_from = p.rig.world.now;
        server(i)->mood.pace.slow_ramp = ramp;
    }
}

static void law_3_nobody_goes_while_the_fleet_is_slow(void **state)
{
    static const double factors[] = {3, 10, 60, 150}; /* the last: nearly all time out */
    (void)state;

    for (uint64_t seed = 1; seed <= 12; seed++) {
        prepare(seed, PROFILE_ADAPTIVE);
        begin(&plain_habits);
        run(20 * S);
        mark();
        slow_down(factors[seed % 4], seed % 3 * 5 * S);
        run(40 * S);
        assert_int_equal(onlooker_outs(&seen, UINT64_MAX), 0);
        assert_true(said("cluster.verdict") > 0);
        finish();
    }
}

static void law_3_catches_a_proxy_that_does_not_know_of_fleets(void **state)
{
    struct rig_settings given;
    (void)state;

    prepare(1, PROFILE_ADAPTIVE);
    given = p.settings;
    given.cluster.detection.on = false; /* and who times out three times running goes */
    given.cluster.outlier.return_on_proof = false;
    assert_true(rig_start(&p.rig, &given));
    laws_init(&p.laws, &p.rig, &p.settings);
    for (uint32_t i = 0; i < p.settings.hosts; i++)
        server(i)->mood.service = 20 * MS;
    crowd_start(&crowd, &p.rig.client, &plain_habits, MONO_NEVER);
    world_run_for(&p.rig.world, 10 * S);
    slow_down(150, 5 * S);
    world_run_for(&p.rig.world, 60 * S);
    assert_true(p.rig.world.failed);
    assert_memory_equal(p.rig.world.failure, "law 3", 5);
    rig_stop(&p.rig);
}

/* --- law 9: who saw it does not matter --- */

#define RECORD_MAX 40000

/* What the workers of a run told, in the order of their telling. */
static struct {
    struct evidence at[RECORD_MAX];
    uint32_t count;
    uint32_t seen[RIG_WORKERS_MAX]; /* of each ring */
    struct world_watch watch;
} record;

static void copy_evidence(struct world_watch *w, mono_ns now)
{
    (void)w;
    (void)now;
    for (uint32_t i = 0; i < p.settings.workers; i++) {
        struct evidence_ring *r = &p.rig.state->rings[i];

        for (; record.seen[i] != atomic_load(&r->written); record.seen[i]++) {
            assert_true(record.count < RECORD_MAX);
            record.at[record.count++] = r->at[record.seen[i] % EVIDENCE_RING_ROOM];
        }
    }
}

/* A run with a slow host, one that fails, and then a slow fleet. */
static void make_record(void)
{
    record.count = 0;
    memset(record.seen, 0, sizeof(record.seen));
    prepare(1, PROFILE_ADAPTIVE);
    p.settings.cluster.lb = LB_ROUND_ROBIN;
    begin(&plain_habits);
    record.watch.after_turn = copy_evidence;
    world_look_on(&p.rig.world, &record.watch);
    run(20 * S);
    server(3)->mood.pace.slow = 4;
    run(15 * S);
    server(3)->mood.pace.slow = 0;
    server(7)->mood.error_permille = 400;
    run(30 * S);
    slow_down(3, 0);
    run(15 * S);
    finish();
}

static void decisions_do_not_depend_on_who_saw_what(void **state)
{
    static char one[REPLAY_TEXT_MAX], other[REPLAY_TEXT_MAX];
    (void)state;

    make_record();
    assert_true(record.count > 5000);
    replay(&p.settings, record.at, record.count, 1, one);
    assert_non_null(strstr(one, "endpoint.ejected"));
    assert_non_null(strstr(one, "cluster.fleet_slowdown"));
    replay(&p.settings, record.at, record.count, 2, other);
    assert_string_equal(one, other);
    replay(&p.settings, record.at, record.count, 4, other);
    assert_string_equal(one, other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(law_3_nobody_goes_while_the_fleet_is_slow),
        cmocka_unit_test(law_3_catches_a_proxy_that_does_not_know_of_fleets),
        cmocka_unit_test(decisions_do_not_depend_on_who_saw_what),
    };

    return cmocka_run_group_tests_name("sim/detection_laws", tests, NULL, NULL);
}
