/* SPDX-License-Identifier: Apache-2.0 */
/* Zones of few hosts: said to be bad only if they are, and then for as long as they are. */
#include "policy/scope_world.h"

#define ZONES 3
#define LEAST 0.05 /* share of a host that is cut for its zone's sake */

static const struct fault fifth_fails = {.times = 1, .failing = 0.2, .only = {1, 1}};
static const struct fault twice = {.times = 2, .only = {1, 1}};
static const struct fault lossy = {.times = 1, .resent = 0.3, .only = {1, 1}};
static const struct fault well = {.times = 1, .only = {1, 1}};

static void give_zone(uint32_t zone, double share)
{
    for (uint32_t i = zone; i < world.hosts; i += ZONES)
        world.share[i] = share;
}

/* Zone 1 is bad, found to be, and gets next to nothing from then on. */
static void find_bad_zone(uint32_t hosts, const struct fault *f, uint64_t seed)
{
    start(hosts, ZONES, 20, seed);
    run(20 * NS_PER_S);
    plant_zone(1, ZONES, f);
    for (int n = 0; n < 40 && verdict() != SCOPE_ZONE; n++)
        run(DETECT_BUCKET);
    give_zone(1, LEAST);
}

/* --- quiet --- */

static void quiet_zones_of_two_to_four_hosts_are_never_bad(void **state)
{
    (void)state;

    for (uint32_t hosts = 6; hosts <= 12; hosts += 3) {
        for (uint64_t seed = 1; seed <= 8; seed++) {
            start(hosts, ZONES, 11, seed);
            run(300 * NS_PER_S);
            assert_int_equal(world.kinds[SCOPE_ZONE], 0);
            stop();
        }
    }
}

static void one_bad_host_in_some_zones_makes_none_of_them_bad(void **state)
{
    (void)state;

    for (uint64_t seed = 1; seed <= 20; seed++) {
        start(9, ZONES, 11, seed);
        run(20 * NS_PER_S);
        world.planted.on[seed % 9] = *faults[seed % EACH_FAULT];
        world.planted.on[(seed + 1) % 9] = *faults[seed % EACH_FAULT];
        run(20 * NS_PER_S);
        assert_int_equal(world.kinds[SCOPE_ZONE], 0);
        assert_int_equal(verdict(), SCOPE_NODES);
        stop();
    }
}

/* --- held --- */

static void a_bad_zone_is_bad_for_as_long_as_it_is(void **state)
{
    static const struct fault *const each[] = {&slow,   &twice,    &failing, &fifth_fails,
                                               &silent, &refusing, &lossy};
    (void)state;

    for (size_t f = 0; f < sizeof(each) / sizeof(each[0]); f++) {
        uint32_t held = 0;

        for (uint64_t seed = 1; seed <= 4; seed++) {
            uint32_t before, ejected;

            find_bad_zone(seed % 2 == 0 ? 9 : 12, each[f], 10 * f + seed);
            before = world.kinds[SCOPE_ZONE];
            ejected = world.ejected;
            run(60 * NS_PER_S);
            held += world.kinds[SCOPE_ZONE] - before;
            assert_int_equal(world.ejected, ejected);
            stop();
        }
        assert_in_range(held, 432, 480); /* half seconds of 480: 90 % */
    }
}

static void it_is_well_once_what_it_gets_says_so(void **state)
{
    static const struct fault *const each[] = {&slow, &failing, &fifth_fails, &lossy};
    (void)state;

    for (size_t f = 0; f < sizeof(each) / sizeof(each[0]); f++) {
        for (uint64_t seed = 1; seed <= 4; seed++) {
            find_bad_zone(9, each[f], 50 + 10 * f + seed);
            run(20 * NS_PER_S);
            plant_zone(1, ZONES, &well);
            run(60 * NS_PER_S);
            assert_int_not_equal(verdict(), SCOPE_ZONE);
            stop();
        }
    }
}

/* No request at all is no sign of anything. */
static void a_zone_that_gets_nothing_is_still_bad(void **state)
{
    (void)state;

    find_bad_zone(9, &failing, 80);
    give_zone(1, 0);
    plant_zone(1, ZONES, &well);
    run(60 * NS_PER_S);
    assert_int_equal(verdict(), SCOPE_ZONE);
    give_zone(1, 1);
    run(10 * NS_PER_S);
    assert_int_equal(verdict(), SCOPE_NONE);
    stop();
}

/* One of three is well, whatever the others are: they are nodes. */
static void a_zone_with_a_host_that_is_well_is_not_held_for_long(void **state)
{
    (void)state;

    find_bad_zone(9, &failing, 81);
    world.planted.on[4] = well;
    give_zone(1, 0.5);
    run(30 * NS_PER_S);
    assert_int_equal(verdict(), SCOPE_NODES);
    assert_int_equal(world.ejected, 1 << 1 | 1 << 7);
    stop();
}

static void a_held_zone_makes_room_for_what_all_have(void **state)
{
    (void)state;

    find_bad_zone(9, &slow, 82);
    run(10 * NS_PER_S);
    plant_zone(0, 1, &failing);
    run(10 * NS_PER_S);
    assert_in_range(verdict(), SCOPE_FLEET, SCOPE_DEPENDENCY);
    assert_int_equal(world.ejected, 0);
    stop();
}

static void what_is_held_of_a_zone_goes_with_it(void **state)
{
    (void)state;

    find_bad_zone(9, &failing, 83);
    for (uint32_t i = 1; i < 9; i += ZONES) {
        world.scoped[i].name[SCOPE_ZONES] = 900;
        detect_acquit(&world.judge, i);
    }
    scope_adopt(&world.scope, &world.judge, world.scoped, world.hosts);
    plant_zone(1, ZONES, &well);
    give_zone(1, 0);
    run(10 * NS_PER_S);
    assert_int_equal(verdict(), SCOPE_NONE);
    stop();
}

/* --- suspects --- */

static void the_last_host_of_a_zone_whose_others_are_out_has_to_be_accused_itself(void **state)
{
    double *sum = &world.memory[7].sum[DETECT_ERRORS_MANY];
    (void)state;

    start(9, ZONES, 20, 84);
    run(WARM);
    for (uint32_t i = 1; i <= 4; i += ZONES) {
        world.scoped[i].out = true; /* and was not marked lately */
        detect_set_serving(&world.judge, i, false);
    }
    *sum = 0.6 * DETECT_THRESHOLD;
    world.memory[7].gain[DETECT_ERRORS_MANY] = 1;
    scope_mark(&world.scope);
    assert_int_equal(scope_look(&world.scope)->kind, SCOPE_NODES);
    world.scoped[1].marked = world.scoped[4].marked = world.judge.bucket + 1;
    assert_int_equal(scope_look(&world.scope)->kind, SCOPE_ZONE);
    stop();

    start(9, ZONES, 20, 84);
    run(WARM);
    for (uint32_t i = 1; i <= 4; i += ZONES) {
        world.scoped[i].out = true;
        detect_set_serving(&world.judge, i, false);
    }
    world.memory[7].gain[DETECT_ERRORS_MANY] = 1;
    *sum = 1.1 * DETECT_THRESHOLD;
    scope_mark(&world.scope);
    assert_int_equal(scope_look(&world.scope)->kind, SCOPE_ZONE);
    assert_int_equal(scope_of(&world.scope, 7, DETECT_ERRORS_MANY), SCOPE_ZONE);
    stop();
}

/* --- the law --- */

/* Of what a zone has: bad for as long as it has it, well soon after, whatever its size and share.
 */
static void a_zone_is_said_to_be_bad_from_when_it_is_found_until_it_is_well(void **state)
{
    uint32_t held = 0, of = 0, still = 0, runs = 0;
    (void)state;

    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct rng rng;
        struct fault f = well;
        uint32_t before;

        rng_init(&rng, seed);
        if (rng_below(&rng, 2) == 0)
            f.times = 2 + 4 * rng_unit(&rng);
        else
            f.failing = 0.2 + 0.6 * rng_unit(&rng);
        find_bad_zone(6 + 3 * rng_below(&rng, 4), &f, 100 + seed);
        give_zone(1, LEAST + 0.4 * rng_unit(&rng));
        before = world.kinds[SCOPE_ZONE];
        run(60 * NS_PER_S);
        held += world.kinds[SCOPE_ZONE] - before;
        of += 120;
        assert_int_equal(world.ejected, 0);
        plant_zone(1, ZONES, &well);
        run(60 * NS_PER_S);
        still += verdict() == SCOPE_ZONE;
        runs++;
        stop();
    }
    print_message("held in %u of %u half seconds; %u of %u said to be bad a minute after\n", held,
                  of, still, runs);
    assert_true(held * 50 >= of * 49);
    assert_int_equal(still, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quiet_zones_of_two_to_four_hosts_are_never_bad),
        cmocka_unit_test(one_bad_host_in_some_zones_makes_none_of_them_bad),
        cmocka_unit_test(a_bad_zone_is_bad_for_as_long_as_it_is),
        cmocka_unit_test(it_is_well_once_what_it_gets_says_so),
        cmocka_unit_test(a_zone_that_gets_nothing_is_still_bad),
        cmocka_unit_test(a_zone_with_a_host_that_is_well_is_not_held_for_long),
        cmocka_unit_test(a_held_zone_makes_room_for_what_all_have),
        cmocka_unit_test(what_is_held_of_a_zone_goes_with_it),
        cmocka_unit_test(the_last_host_of_a_zone_whose_others_are_out_has_to_be_accused_itself),
        cmocka_unit_test(a_zone_is_said_to_be_bad_from_when_it_is_found_until_it_is_well),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
