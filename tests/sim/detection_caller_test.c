/* SPDX-License-Identifier: Apache-2.0 */
/*
 * T-000-14 of reference/scenarios.md, through the whole data plane in virtual time: what this proxy
 * itself has is the caller's, and no host is ejected for it.
 */
#include "sim/detection_plane.h"

static void all_links_lose(uint32_t permille)
{
    for (struct list *l = p.rig.net.sites.next; l != &p.rig.net.sites; l = l->next)
        CONTAINER_OF(l, struct net_site, link)->path.loss_permille = permille;
}

static void expect_caller_and_nobody_out(void)
{
    assert_int_equal(onlooker_verdict(&seen), SCOPE_CALLER);
    assert_int_equal(onlooker_outs(&seen, UINT64_MAX), 0);
}

static void t_000_14_its_own_link_loses_a_fifth(void **state)
{
    (void)state;

    for (uint64_t seed = 1; seed <= 3; seed++) {
        prepare(seed, PROFILE_ADAPTIVE);
        begin(&plain_habits);
        run(20 * S);
        mark();
        all_links_lose(200);
        run(30 * S);
        expect_caller_and_nobody_out();
        all_links_lose(0);
        run(20 * S);
        mark();
        run(10 * S);
        assert_int_equal(onlooker_verdict(&seen), SCOPE_NONE);
        assert_int_equal(onlooker_outs(&seen, UINT64_MAX), 0);
        finish();
    }
}

/* One of two, then the process as a whole. */
static void t_000_14_a_worker_is_stopped_for_two_seconds(void **state)
{
    (void)state;

    for (uint64_t seed = 1; seed <= 3; seed++) {
        prepare(seed, PROFILE_ADAPTIVE);
        begin(&plain_habits);
        run(20 * S);
        mark();
        world_loop_hold(&p.rig.workers[0].loop, p.rig.world.now + 2 * S);
        run(10 * S);
        expect_caller_and_nobody_out();
        mark();
        for (uint32_t i = 0; i < p.settings.workers; i++)
            world_loop_hold(&p.rig.workers[i].loop, p.rig.world.now + 2 * S);
        world_loop_hold(&p.rig.control_loop, p.rig.world.now + 2 * S);
        run(10 * S);
        expect_caller_and_nobody_out();
        finish();
    }
}

/* 60 of every 100 ms the kernel gives the machine to others. */
static void loops_that_are_throttled_are_our_own(void **state)
{
    (void)state;

    prepare(7, PROFILE_ADAPTIVE);
    begin(&plain_habits);
    run(20 * S);
    mark();
    for (unsigned i = 0; i < 200; i++) {
        for (uint32_t w = 0; w < p.settings.workers; w++)
            world_loop_hold(&p.rig.workers[w].loop, p.rig.world.now + 60 * MS);
        run(100 * MS);
    }
    expect_caller_and_nobody_out();
    finish();
}

static void begin_among_strangers(struct crowd *others)
{
    prepare(8, PROFILE_ADAPTIVE);
    p.settings.strangers = 3;
    begin(&plain_habits);
    crowd_start(others, &p.rig.stranger, &plain_habits, MONO_NEVER);
    run(20 * S);
    mark();
}

static void part(struct crowd *others)
{
    run(10 * S);
    crowd_stop(others);
    finish();
}

/* Unrelated hosts behind another listener; nobody of either can be reached any more. */
static void without_a_way_to_unrelated_hosts_we_are_cut_off(void **state)
{
    static struct crowd others;
    (void)state;

    begin_among_strangers(&others);
    for (uint32_t i = 0; i < p.settings.hosts + p.settings.strangers; i++)
        server(i)->site->path.black_hole = true;
    run(20 * S);
    expect_caller_and_nobody_out();
    for (uint32_t i = 0; i < p.settings.hosts + p.settings.strangers; i++)
        server(i)->site->path.black_hole = false;
    part(&others);
}

/* The same with the strangers well: then it is no trouble of ours. */
static void while_unrelated_hosts_answer_we_are_not(void **state)
{
    static struct crowd others;
    (void)state;

    begin_among_strangers(&others);
    for (uint32_t i = 0; i < p.settings.hosts; i++)
        server_set_road(server(i), ROAD_BLACK_HOLE);
    run(20 * S);
    assert_int_equal(onlooker_verdict(&seen), SCOPE_FLEET);
    for (uint32_t i = 0; i < p.settings.hosts; i++)
        server_set_road(server(i), ROAD_OPEN);
    part(&others);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_000_14_its_own_link_loses_a_fifth),
        cmocka_unit_test(t_000_14_a_worker_is_stopped_for_two_seconds),
        cmocka_unit_test(loops_that_are_throttled_are_our_own),
        cmocka_unit_test(without_a_way_to_unrelated_hosts_we_are_cut_off),
        cmocka_unit_test(while_unrelated_hosts_answer_we_are_not),
    };

    return cmocka_run_group_tests_name("sim/detection_caller", tests, NULL, NULL);
}
