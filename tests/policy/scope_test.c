/* SPDX-License-Identifier: Apache-2.0 */
/* Whose trouble it is: planted faults, judged as the watch does. */
#include "policy/scope_world.h"

static void nothing_wrong_is_no_verdict(void **state)
{
    (void)state;

    for (uint64_t seed = 1; seed <= 5; seed++) {
        start(9, 3, 20, seed);
        run(60 * NS_PER_S);
        assert_int_equal(world.ejected, 0);
        assert_true(world.kinds[SCOPE_NONE] >= 118);
        stop();
    }
}

static void one_bad_host_is_a_node_and_goes(void **state)
{
    (void)state;

    for (size_t f = 0; f < EACH_FAULT; f++) {
        start(9, 3, 20, 3 + f);
        run(WARM);
        world.planted.on[4] = *faults[f];
        run(LONG);
        assert_int_equal(world.ejected, 1 << 4);
        assert_int_equal(verdict(), SCOPE_NODE);
        stop();
    }
}

static void one_bad_host_in_each_of_two_zones_is_two_nodes(void **state)
{
    (void)state;

    for (size_t f = 0; f < EACH_FAULT; f++) {
        start(9, 3, 20, 30 + f);
        run(WARM);
        world.planted.on[3] = *faults[f];
        world.planted.on[7] = *faults[f];
        run(LONG);
        assert_int_equal(world.ejected, 1 << 3 | 1 << 7);
        assert_int_equal(verdict(), SCOPE_NODES);
        stop();
    }
}

/* Of three hosts a zone, which share a stratum, and of five, which have one of their own. */
static void a_bad_zone_is_a_zone_and_nobody_goes(void **state)
{
    (void)state;

    for (uint32_t hosts = 9; hosts <= 15; hosts += 6) {
        for (size_t f = 0; f < EACH_FAULT; f++) {
            start(hosts, 3, 20, 50 + f);
            run(WARM);
            plant_zone(1, 3, faults[f]);
            run(LONG);
            assert_int_equal(world.ejected, 0);
            assert_int_equal(verdict(), SCOPE_ZONE);
            assert_int_equal(world.scope.now.group, world.scoped[1].group[SCOPE_ZONES]);
            assert_int_equal(world.scope.now.groups, 1);
            assert_true(scope_concerns(&world.scope, 1) && !scope_concerns(&world.scope, 2));
            stop();
        }
    }
}

static void a_lossy_path_to_a_zone_is_a_zone(void **state)
{
    (void)state;

    start(9, 3, 20, 71);
    run(WARM);
    for (uint32_t i = 2; i < 9; i += 3)
        world.planted.on[i].resent = 0.2;
    run(LONG);
    assert_int_equal(verdict(), SCOPE_ZONE);
    assert_int_equal(world.scope.now.sign, SCOPE_BY_PATH);
    assert_int_equal(world.ejected, 0);
    stop();
}

static void two_bad_zones_eject_nobody_and_concern_no_share(void **state)
{
    (void)state;

    for (size_t f = 0; f < EACH_FAULT; f++) {
        start(15, 3, 20, 80 + f);
        run(WARM);
        plant_zone(0, 3, faults[f]);
        plant_zone(2, 3, faults[f]);
        run(LONG);
        assert_int_equal(world.ejected, 0);
        assert_true(verdict() == SCOPE_ZONE);
        assert_int_equal(world.scope.now.groups, 2);
        for (uint32_t i = 0; i < 15; i++) {
            assert_false(scope_concerns(&world.scope, i));
            assert_int_equal(scope_says(&world.scope, i, DETECT_ERRORS_MANY), SCOPE_ZONE);
        }
        stop();
    }
}

static void a_node_of_another_zone_goes_while_a_zone_is_bad(void **state)
{
    (void)state;

    start(9, 3, 20, 90);
    run(WARM);
    plant_zone(1, 3, &failing);
    run(LONG);
    world.planted.on[3] = refusing;
    run(LONG);
    assert_int_equal(world.ejected, 1 << 3);
    stop();
}

static void a_zone_that_is_far_is_none_that_is_bad(void **state)
{
    (void)state;

    start(9, 3, 20, 95);
    for (uint32_t i = 0; i < 9; i += 3)
        world.planted.on[i].times = 1.3;
    run(60 * NS_PER_S);
    assert_int_equal(world.ejected, 0);
    assert_int_equal(world.kinds[SCOPE_ZONE], 0);
    stop();
}

static void a_bad_version_ejects_nobody(void **state)
{
    (void)state;

    for (size_t f = 0; f < EACH_FAULT; f++) {
        start(10, 0, 20, 100 + f);
        for (uint32_t i = 7; i < 10; i++)
            set_version(i, 8);
        run(WARM);
        for (uint32_t i = 7; i < 10; i++)
            world.planted.on[i] = *faults[f];
        run(LONG);
        assert_int_equal(world.ejected, 0);
        assert_int_equal(verdict(), SCOPE_VERSION);
        assert_true(scope_concerns(&world.scope, 8) && !scope_concerns(&world.scope, 2));
        stop();
    }
}

static void a_version_of_one_host_is_a_node(void **state)
{
    (void)state;

    start(10, 0, 20, 110);
    set_version(9, 8);
    run(WARM);
    world.planted.on[9] = failing;
    run(LONG);
    assert_int_equal(world.ejected, 1 << 9);
    assert_int_equal(verdict(), SCOPE_NODE);
    stop();
}

/* One of two is well: it is no version's fault. */
static void a_version_with_a_host_that_is_well_is_not_to_blame(void **state)
{
    (void)state;

    start(10, 0, 20, 111);
    set_version(8, 8);
    set_version(9, 8);
    run(WARM);
    world.planted.on[9] = failing;
    run(LONG);
    assert_int_equal(world.ejected, 1 << 9);
    stop();
}

static void all_alike_is_a_dependency(void **state)
{
    static const struct fault *const each[] = {&slow, &failing};
    (void)state;

    for (size_t f = 0; f < 2; f++) {
        start(9, 3, 20, 120 + f);
        run(WARM);
        plant_zone(0, 1, each[f]);
        run(LONG);
        assert_int_equal(world.ejected, 0);
        assert_int_equal(verdict(), SCOPE_DEPENDENCY);
        stop();
    }
}

static void all_refusing_is_the_fleet(void **state)
{
    (void)state;

    start(9, 3, 20, 125);
    run(WARM);
    plant_zone(0, 1, &refusing);
    run(LONG);
    assert_int_equal(world.ejected, 0);
    assert_int_equal(verdict(), SCOPE_FLEET);
    stop();
}

static void all_slow_by_more_and_less_is_the_fleet(void **state)
{
    (void)state;

    start(9, 3, 20, 127);
    run(WARM);
    for (uint32_t i = 0; i < 9; i++)
        world.planted.on[i].times = exp(log(4) * (0.4 + 0.15 * i));
    run(3 * NS_PER_S);
    assert_int_equal(verdict(), SCOPE_FLEET);
    stop();
}

static void one_class_slow_everywhere_is_a_dependency(void **state)
{
    (void)state;

    start(10, 0, 40, 130);
    for (uint32_t i = 0; i < 10; i++)
        world.planted.heavy[i] = 0.2;
    run(WARM);
    for (uint32_t i = 0; i < 10; i++)
        world.planted.on[i].only[1] = 4;
    run(LONG);
    assert_int_equal(world.ejected, 0);
    assert_int_equal(verdict(), SCOPE_DEPENDENCY);
    stop();
}

static void a_host_with_the_heavy_requests_is_a_skew(void **state)
{
    (void)state;

    start(10, 0, 20, 140);
    for (uint32_t i = 0; i < 10; i++)
        world.planted.heavy[i] = 0.2;
    run(WARM);
    world.planted.heavy[5] = 0.6;
    run(LONG);
    assert_int_equal(world.ejected, 0);
    assert_int_equal(verdict(), SCOPE_CLASS_SKEW);
    assert_int_equal(world.scope.now.hosts, 1);
    stop();
}

/* Slower in each class, it is not only the mix. */
static void a_slow_host_with_the_heavy_requests_is_no_skew(void **state)
{
    (void)state;

    start(10, 0, 20, 141);
    for (uint32_t i = 0; i < 10; i++)
        world.planted.heavy[i] = 0.2;
    run(WARM);
    world.judge.config.latency = false; /* so that nobody is accused */
    world.planted.on[5] = slow;
    world.planted.heavy[5] = 0.6;
    run(LONG);
    assert_int_equal(verdict(), SCOPE_NONE);
    stop();
}

/* Where no zone is left that is well, it is none of theirs. */
static void all_zones_are_no_zone(void **state)
{
    (void)state;

    start(9, 3, 20, 97);
    run(WARM);
    for (uint32_t i = 0; i < 6; i++)
        world.scoped[i].marked = world.judge.bucket + 1;
    assert_int_equal(scope_look(&world.scope)->kind, SCOPE_NONE);
    for (uint32_t i = 0; i < 9; i++)
        world.scoped[i].marked = i % 3 == 0 ? 0 : world.judge.bucket + 1;
    assert_int_equal(scope_look(&world.scope)->kind, SCOPE_ZONE);
    assert_int_equal(world.scope.now.groups, 2);
    world.judge.bucket += 5; /* the verdict has had its time */
    for (uint32_t i = 0; i < 9; i++)
        world.scoped[i].marked = world.judge.bucket + 1;
    assert_int_equal(scope_look(&world.scope)->kind, SCOPE_NONE);
    stop();
}

static void queues_everywhere_are_capacity(void **state)
{
    struct detect *d = &world.judge;
    (void)state;

    start(6, 0, 20, 150);
    run(WARM);
    for (int round = 0; round < 200; round++)
        for (uint32_t ahead = 0; ahead < 40; ahead++)
            knee_learn(&d->knee, ahead, ahead < 4 ? 0 : log(ahead / 3.0));
    run(NS_PER_S);
    assert_true(d->saturated);
    assert_int_equal(verdict(), SCOPE_CAPACITY);
    assert_int_equal(scope_says(&world.scope, 0, DETECT_RANK), SCOPE_CAPACITY);
    assert_int_equal(scope_says(&world.scope, 0, DETECT_CONNECTS), SCOPE_NODE);
    stop();
}

static void while_we_are_sick_only_answers_accuse(void **state)
{
    (void)state;

    start(9, 3, 20, 160);
    run(WARM);
    world.caller = SCOPE_CALLER_LATE;
    run(NS_PER_S);
    assert_int_equal(verdict(), SCOPE_CALLER);
    assert_int_equal(scope_of(&world.scope, 1, DETECT_AGE), SCOPE_CALLER);
    assert_int_equal(scope_of(&world.scope, 1, DETECT_RANK), SCOPE_CALLER);
    world.planted.on[1] = failing;
    run(3 * NS_PER_S);
    assert_int_equal(verdict(), SCOPE_CALLER);
    assert_int_equal(world.ejected, 1 << 1);
    world.planted.on[1] = slow;
    world.caller = SCOPE_CALLER_WELL;
    run(NS_PER_S);
    assert_int_equal(verdict(), SCOPE_CALLER); /* it holds for a while */
    run(3 * NS_PER_S);
    assert_int_equal(verdict(), SCOPE_NODE);
    stop();
}

static void zones_keep_their_number_and_those_that_go_make_room(void **state)
{
    (void)state;

    start(HOSTS_MAX, HOSTS_MAX, 20, 1);
    assert_int_equal(world.scoped[15].group[SCOPE_ZONES], 15);
    assert_int_equal(world.scoped[16].group[SCOPE_ZONES], SCOPE_UNGROUPED);
    world.scoped[3].name[SCOPE_ZONES] = 900;
    scope_adopt(&world.scope, &world.judge, world.scoped, world.hosts);
    assert_int_equal(world.scoped[15].group[SCOPE_ZONES], 15);
    assert_int_equal(world.scoped[3].group[SCOPE_ZONES], 3);
    stop();
}

/* --- the law --- */

/* What is planted, and what may be said of it. */
static enum scope_kind plant(uint32_t what, const struct fault *f)
{
    uint32_t zones = 3, host = rng_below(&world.rng, world.hosts);

    switch (what) {
    case 0:
        return SCOPE_NONE;
    case 1:
        world.planted.on[host] = *f;
        return SCOPE_NODE;
    case 2:
        world.planted.on[host] = *f;
        world.planted.on[(host + 1) % world.hosts] = *f;
        return SCOPE_NODES;
    case 3:
        plant_zone(rng_below(&world.rng, zones), zones, f);
        return SCOPE_ZONE;
    case 4:
        for (uint32_t i = 0; i < world.hosts; i++)
            if (world.scoped[i].name[SCOPE_VERSIONS] == 8)
                world.planted.on[i] = *f;
        return SCOPE_VERSION;
    default:
        plant_zone(0, 1, rng_below(&world.rng, 2) == 0 ? &slow : &failing);
        return SCOPE_DEPENDENCY;
    }
}

static uint32_t bad_hosts(void)
{
    uint32_t bits = 0;

    for (uint32_t i = 0; i < world.hosts; i++) {
        const struct fault *f = &world.planted.on[i];

        if (f->times > 1 || f->failing > 0 || f->refusing > 0 || f->silent)
            bits |= UINT32_C(1) << i;
    }
    return bits;
}

/*
 * Versions stand across zones. Where half of the requests to many hosts fail, one of them may go
 * before the others have failed once: in a fiftieth of the runs, at most.
 */
static void start_law(uint64_t seed)
{
    struct rng rng;

    rng_init(&rng, seed);
    start(9 + 3 * rng_below(&rng, 3), 3, 10 + 20 * rng_unit(&rng), seed);
    for (uint32_t i = 0; i < 3; i++)
        set_version(4 * i, 8);
    run(WARM);
}

static void what_is_planted_is_what_is_said_and_only_nodes_go(void **state)
{
    uint32_t right = 0, runs = 0, hasty = 0;
    (void)state;

    for (uint64_t seed = 1; seed <= 120; seed++) {
        const struct fault *f = faults[seed / 6 % EACH_FAULT];
        enum scope_kind said;

        start_law(seed);
        said = plant((uint32_t)(seed % 6), f);
        run(LONG);
        runs++;
        right += verdict() == said;
        if (verdict() != said)
            print_message("seed %u: %s planted, fault %u, %s said by %s\n", (unsigned)seed,
                          scope_kind_text(said), (unsigned)(seed / 6 % EACH_FAULT),
                          scope_kind_text(verdict()), scope_sign_text(world.scope.now.sign));
        assert_int_equal(world.ejected & ~bad_hosts(), 0);
        if (said != SCOPE_NODE && said != SCOPE_NODES && world.ejected != 0)
            hasty++;
        stop();
    }
    print_message("right in %u of %u, ejected where nobody should be: %u\n", right, runs, hasty);
    assert_true(right * 100 >= runs * 95);
    assert_true(hasty * 50 <= runs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_wrong_is_no_verdict),
        cmocka_unit_test(one_bad_host_is_a_node_and_goes),
        cmocka_unit_test(one_bad_host_in_each_of_two_zones_is_two_nodes),
        cmocka_unit_test(a_bad_zone_is_a_zone_and_nobody_goes),
        cmocka_unit_test(a_lossy_path_to_a_zone_is_a_zone),
        cmocka_unit_test(two_bad_zones_eject_nobody_and_concern_no_share),
        cmocka_unit_test(a_node_of_another_zone_goes_while_a_zone_is_bad),
        cmocka_unit_test(a_zone_that_is_far_is_none_that_is_bad),
        cmocka_unit_test(a_bad_version_ejects_nobody),
        cmocka_unit_test(a_version_of_one_host_is_a_node),
        cmocka_unit_test(a_version_with_a_host_that_is_well_is_not_to_blame),
        cmocka_unit_test(all_alike_is_a_dependency),
        cmocka_unit_test(all_refusing_is_the_fleet),
        cmocka_unit_test(all_slow_by_more_and_less_is_the_fleet),
        cmocka_unit_test(one_class_slow_everywhere_is_a_dependency),
        cmocka_unit_test(a_host_with_the_heavy_requests_is_a_skew),
        cmocka_unit_test(a_slow_host_with_the_heavy_requests_is_no_skew),
        cmocka_unit_test(all_zones_are_no_zone),
        cmocka_unit_test(queues_everywhere_are_capacity),
        cmocka_unit_test(while_we_are_sick_only_answers_accuse),
        cmocka_unit_test(zones_keep_their_number_and_those_that_go_make_room),
        cmocka_unit_test(what_is_planted_is_what_is_said_and_only_nodes_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
