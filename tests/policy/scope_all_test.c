/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all hosts have is whose: too little capacity, what is behind them, our own link, our own
 * loops; and which hosts are nodes while that is asked.
 */
#include "policy/scope_world.h"

/* --- capacity, or what is behind --- */

/* From now on each host gets |times| as many requests. */
static void ask_more(double times)
{
    world.rate *= times;
}

static void more_requests_and_then_late_ones_are_capacity(void **state)
{
    (void)state;

    for (uint64_t seed = 200; seed < 205; seed++) {
        start(9, 3, 20, seed);
        run(2 * WARM);
        ask_more(1.6);
        run(2 * NS_PER_S);
        assert_int_equal(verdict(), SCOPE_NONE);
        plant_zone(0, 1, &slow);
        run(LONG);
        assert_int_equal(verdict(), SCOPE_CAPACITY);
        assert_true(world.scope.now.demand > 1.4 && world.scope.now.demand < 1.8);
        assert_int_equal(world.ejected, 0);
        stop();
    }
}

/* What is seen first may be what comes of it: the demand needs a while to be more than chance. */
static void late_ones_a_moment_before_more_requests_are_capacity(void **state)
{
    (void)state;

    start(9, 3, 20, 206);
    run(2 * WARM);
    plant_zone(0, 1, &slow);
    ask_more(1.6);
    run(LONG);
    assert_int_equal(verdict(), SCOPE_CAPACITY);
    stop();
}

/* Callers ask again where it takes them too long. */
static void more_requests_that_came_after_late_ones_are_a_dependency(void **state)
{
    (void)state;

    for (uint64_t seed = 207; seed < 212; seed++) {
        start(9, 3, 20, seed);
        run(2 * WARM);
        plant_zone(0, 1, &slow);
        run(4 * NS_PER_S);
        ask_more(1.6);
        run(LONG);
        assert_int_equal(verdict(), SCOPE_DEPENDENCY);
        assert_int_equal(world.kinds[SCOPE_CAPACITY], 0);
        stop();
    }
}

static void failures_where_more_is_asked_are_capacity_too(void **state)
{
    (void)state;

    start(9, 3, 20, 213);
    run(2 * WARM);
    ask_more(1.6);
    run(NS_PER_S);
    plant_zone(0, 1, &failing);
    run(LONG);
    assert_int_equal(verdict(), SCOPE_CAPACITY);
    assert_int_equal(world.scope.now.sign, SCOPE_BY_ERRORS);
    stop();
}

/* Some are above that at any time, and some are below. */
static void one_in_ten_that_fails_everywhere_is_a_dependency_all_the_while(void **state)
{
    static const struct fault some = {.times = 1, .failing = 0.1, .only = {1, 1}};
    uint32_t turns = 0;
    (void)state;

    for (uint64_t seed = 400; seed < 420; seed++) {
        uint32_t first;

        start(10, 0, 15, seed);
        run(2 * WARM);
        plant_zone(0, 1, &some);
        run(2 * NS_PER_S);
        first = world.ejected;
        memset(world.kinds, 0, sizeof(world.kinds));
        run(60 * NS_PER_S);
        turns += world.kinds[SCOPE_DEPENDENCY];
        assert_int_equal(world.ejected, first);
        stop();
    }
    assert_in_range(turns, 2340, 2400);
}

/* Half of the hosts gone, twice as much for each of the others. */
static void what_is_left_of_the_hosts_may_be_too_few(void **state)
{
    (void)state;

    start(10, 0, 15, 214);
    run(2 * WARM);
    for (uint32_t i = 5; i < 10; i++)
        detect_set_serving(&world.judge, i, false);
    ask_more(2);
    run(2 * NS_PER_S);
    plant_zone(0, 1, &slow);
    run(LONG);
    assert_int_equal(verdict(), SCOPE_CAPACITY);
    stop();
}

static void more_requests_alone_are_no_verdict_and_become_usual(void **state)
{
    (void)state;

    start(9, 3, 20, 215);
    run(2 * WARM);
    ask_more(1.6);
    run(120 * NS_PER_S);
    assert_int_equal(world.kinds[SCOPE_CAPACITY], 0);
    plant_zone(0, 1, &slow);
    run(LONG);
    assert_int_equal(verdict(), SCOPE_DEPENDENCY);
    stop();
}

static void report(double utilization)
{
    for (uint32_t i = 0; i < world.hosts; i++) {
        world.memory[i].reports = true;
        world.memory[i].utilization = utilization;
    }
}

static void hosts_that_say_they_are_full_are_believed(void **state)
{
    (void)state;

    start(9, 3, 20, 216);
    run(2 * WARM);
    report(0.97);
    assert_int_equal(scope_look(&world.scope)->kind, SCOPE_NONE);
    plant_zone(0, 1, &slow);
    run(LONG);
    assert_int_equal(verdict(), SCOPE_CAPACITY);
    stop();
}

static void hosts_that_say_they_have_room_have_it(void **state)
{
    (void)state;

    start(9, 3, 20, 217);
    run(2 * WARM);
    ask_more(1.6);
    run(2 * NS_PER_S);
    report(0.4);
    plant_zone(0, 1, &slow);
    run(LONG);
    assert_int_equal(verdict(), SCOPE_DEPENDENCY);
    stop();
}

/* --- what we have ourselves --- */

static void a_lossy_path_to_all_is_our_own(void **state)
{
    (void)state;

    for (uint32_t zones = 0; zones <= 3; zones += 3) {
        start(9, zones, 20, 220 + zones);
        run(WARM);
        for (uint32_t i = 0; i < 9; i++)
            world.planted.on[i].resent = 0.2;
        run(LONG);
        assert_int_equal(verdict(), SCOPE_CALLER);
        assert_int_equal(world.scope.now.sign, SCOPE_BY_PATH);
        assert_true(scope_doubts(&world.scope));
        assert_int_equal(scope_says(&world.scope, 0, DETECT_CONNECTS), SCOPE_CALLER);
        assert_int_equal(scope_says(&world.scope, 0, DETECT_ERRORS_MANY), SCOPE_NODE);
        for (uint32_t i = 0; i < 9; i++)
            world.planted.on[i].resent = 0;
        run(LONG);
        assert_int_equal(verdict(), SCOPE_NONE);
        assert_false(scope_doubts(&world.scope));
        stop();
    }
}

static void some_late_loops_are_said_where_nothing_else_is_wrong(void **state)
{
    (void)state;

    start(9, 3, 20, 230);
    run(WARM);
    world.caller = SCOPE_CALLER_PARTLY;
    run(3 * NS_PER_S);
    assert_int_equal(verdict(), SCOPE_CALLER);
    assert_int_equal(scope_says(&world.scope, 4, DETECT_RANK), SCOPE_NODE);
    world.planted.on[4] = slow;
    run(LONG);
    assert_int_equal(verdict(), SCOPE_NODE);
    assert_int_equal(world.ejected, 1 << 4);
    stop();
}

/* --- nodes --- */

/* The others answer on connections that stand: nobody sees that they could be connected to. */
static void two_that_refuse_are_nodes_though_no_other_is_connected_to(void **state)
{
    (void)state;

    start(10, 0, 20, 240);
    world.pooled = true;
    run(WARM);
    world.planted.on[2] = world.planted.on[5] = refusing;
    run(LONG);
    assert_int_equal(verdict(), SCOPE_NODES);
    assert_int_equal(world.ejected, 1 << 2 | 1 << 5);
    assert_int_equal(world.kinds[SCOPE_FLEET], 0);
    stop();
}

static void suspects_are_counted_while_they_have_a_smaller_share(void **state)
{
    (void)state;

    start(10, 0, 20, 241);
    run(WARM);
    world.scoped[1].suspect = true;
    assert_int_equal(scope_look(&world.scope)->kind, SCOPE_NODE);
    world.scoped[8].suspect = true;
    assert_int_equal(scope_look(&world.scope)->kind, SCOPE_NODES);
    assert_int_equal(world.scope.now.hosts, 2);
    stop();
}

/* With a twentieth of the requests one may seem bad while the others were not tried. */
static void what_is_cut_with_its_zone_does_not_go_alone(void **state)
{
    (void)state;

    start(9, 3, 20, 242);
    run(WARM);
    for (uint32_t i = 1; i < 9; i += 3)
        world.scoped[i].cut_for = SCOPE_ZONE;
    assert_int_equal(scope_says(&world.scope, 4, DETECT_ERRORS_SOME), SCOPE_ZONE);
    assert_int_equal(scope_says(&world.scope, 3, DETECT_ERRORS_SOME), SCOPE_NODE);
    world.scoped[1].cut_for = SCOPE_NONE;
    assert_int_equal(scope_says(&world.scope, 4, DETECT_ERRORS_SOME), SCOPE_ZONE);
    world.scoped[7].cut_for = SCOPE_NONE;
    assert_int_equal(scope_says(&world.scope, 4, DETECT_ERRORS_SOME), SCOPE_NODE);
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_requests_and_then_late_ones_are_capacity),
        cmocka_unit_test(late_ones_a_moment_before_more_requests_are_capacity),
        cmocka_unit_test(more_requests_that_came_after_late_ones_are_a_dependency),
        cmocka_unit_test(failures_where_more_is_asked_are_capacity_too),
        cmocka_unit_test(one_in_ten_that_fails_everywhere_is_a_dependency_all_the_while),
        cmocka_unit_test(what_is_left_of_the_hosts_may_be_too_few),
        cmocka_unit_test(more_requests_alone_are_no_verdict_and_become_usual),
        cmocka_unit_test(hosts_that_say_they_are_full_are_believed),
        cmocka_unit_test(hosts_that_say_they_have_room_have_it),
        cmocka_unit_test(a_lossy_path_to_all_is_our_own),
        cmocka_unit_test(some_late_loops_are_said_where_nothing_else_is_wrong),
        cmocka_unit_test(two_that_refuse_are_nodes_though_no_other_is_connected_to),
        cmocka_unit_test(suspects_are_counted_while_they_have_a_smaller_share),
        cmocka_unit_test(what_is_cut_with_its_zone_does_not_go_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
