/* SPDX-License-Identifier: Apache-2.0 */
/* Zones of few hosts, some further away than others: that is a fault of nobody's. */
#include "policy/scope_world.h"

#define ZONES 3
#define FAR   1 /* zone */
#define BOTH  2 /* classes that the world has */

static double bins_of(double us)
{
    return PEER_OCTAVE * log2(us);
}

/* What the answers of a zone so far away take longer, in bins: the world's median is 20 ms. */
static double ought(double further)
{
    return bins_of(20000 + further) - bins_of(20000);
}

static void put_away(uint32_t zone, uint32_t zones, double further)
{
    for (uint32_t i = zone; i < world.hosts; i += zones)
        world.planted.on[i].further = further;
}

static void start_with_far_zone(uint32_t hosts, double further, uint64_t seed)
{
    start(hosts, ZONES, 20, seed);
    put_away(FAR, ZONES, further);
}

/* Its hosts take so many times as long, and are as far away as they were. */
static void slow_down(uint32_t index, double times)
{
    world.planted.on[index].times = times;
}

static int away(uint32_t index)
{
    return world.memory[index].away[0];
}

static void assert_near(double is, double should_be, double by)
{
    if (fabs(is - should_be) > by)
        fail_msg("%f, not %f", is, should_be);
}

static void assert_nobody_is_away(void)
{
    for (uint32_t i = 0; i < world.hosts; i++)
        for (uint32_t class = 0; class < EVIDENCE_CLASS_MAX; class ++)
            assert_int_equal(world.memory[i].away[class], 0);
}

static void assert_nothing_is_found(void)
{
    assert_int_equal(world.kinds[SCOPE_ZONE], 0);
    assert_int_equal(world.ejected, 0);
}

/* --- how far --- */

static void a_zone_that_is_further_away_is_nobodys_fault(void **state)
{
    static const double each[] = {2000, 10000, 20000};
    (void)state;

    for (size_t n = 0; n < sizeof(each) / sizeof(each[0]); n++) {
        for (uint64_t seed = 1; seed <= 6; seed++) {
            start_with_far_zone(9, each[n], seed);
            run(60 * NS_PER_S);
            assert_nothing_is_found();
            for (uint32_t i = 0; i < world.hosts; i++)
                assert_near(away(i), i % ZONES == FAR ? ought(each[n]) : 0, n == 0 ? 2.5 : 2);
            stop();
        }
    }
}

static void what_is_less_than_half_a_millisecond_of_twenty_is_none(void **state)
{
    (void)state;

    for (uint64_t seed = 1; seed <= 6; seed++) {
        start_with_far_zone(9, 400, seed);
        run(60 * NS_PER_S);
        assert_nobody_is_away();
        stop();
    }
}

static void a_zone_that_is_nearer_is_so_by_less_than_none(void **state)
{
    (void)state;

    start(9, ZONES, 20, 7);
    put_away(0, ZONES, 20000);
    put_away(2, ZONES, 20000);
    run(60 * NS_PER_S);
    assert_nothing_is_found();
    for (uint32_t i = 0; i < world.hosts; i++)
        assert_near(away(i), i % ZONES == FAR ? -ought(20000) : 0, 2);
    stop();
}

static void zones_that_are_alike_are_not_away(void **state)
{
    (void)state;

    for (uint64_t seed = 1; seed <= 12; seed++) {
        start(seed % 2 == 0 ? 6 : 9, ZONES, 20, seed);
        for (int n = 0; n < 120; n++) {
            run(DETECT_BUCKET);
            assert_nobody_is_away();
        }
        assert_nothing_is_found();
        stop();
    }
}

/* A zone of four is ranked among itself: it says nothing, and nothing is said of it. */
static void a_zone_of_four_has_peers_enough(void **state)
{
    (void)state;

    start_with_far_zone(12, 20000, 8);
    run(60 * NS_PER_S);
    assert_nothing_is_found();
    assert_nobody_is_away();
    stop();
}

static void put_in_stratum(uint32_t zone, uint32_t stratum)
{
    for (uint32_t i = zone; i < world.hosts; i += ZONES)
        world.memory[i].stratum = stratum;
    detect_adopt(&world.judge, &world.judge.config, world.members, world.hosts);
}

static void a_zone_that_has_become_four_is_away_no_more(void **state)
{
    (void)state;

    start_with_far_zone(9, 20000, 9);
    run(20 * NS_PER_S);
    assert_near(away(1), ought(20000), 3);
    put_in_stratum(FAR, 5);
    run(DETECT_BUCKET);
    assert_nobody_is_away();
    assert_near(detect_median(&world.memory[1], 0), bins_of(40000), 8);
    stop();
}

/* And its place is not among those of the small ones either. */
static void a_zone_that_was_four_for_a_while_is_learnt_anew(void **state)
{
    (void)state;

    start_with_far_zone(9, 20000, 9);
    run(20 * NS_PER_S);
    put_in_stratum(FAR, 5);
    put_away(FAR, ZONES, 0);
    run(20 * NS_PER_S);
    assert_nobody_is_away();
    put_in_stratum(FAR, 0);
    for (int n = 0; n < 20; n++) {
        run(DETECT_BUCKET);
        assert_nobody_is_away();
    }
    assert_nothing_is_found();
    stop();
}

static void hosts_of_no_known_zone_are_not_away(void **state)
{
    (void)state;

    start(9, 0, 20, 10);
    put_away(FAR, ZONES, 10000);
    run(60 * NS_PER_S);
    assert_nobody_is_away();
    stop();
}

static void each_class_has_its_own(void **state)
{
    (void)state;

    start_with_far_zone(9, 40000, 11);
    for (uint32_t i = 0; i < world.hosts; i++)
        world.planted.heavy[i] = 0.5;
    run(60 * NS_PER_S);
    assert_nothing_is_found();
    for (uint32_t i = FAR; i < world.hosts; i += ZONES) {
        assert_near(away(i), ought(40000), 2);
        assert_near(world.memory[i].away[1], bins_of(240000) - bins_of(200000), 2.5);
    }
    stop();
}

static void a_class_that_one_zone_alone_gets_is_not_away(void **state)
{
    (void)state;

    start(9, ZONES, 20, 12);
    for (uint32_t i = FAR; i < world.hosts; i += ZONES)
        world.planted.heavy[i] = 0.5;
    run(60 * NS_PER_S);
    assert_nobody_is_away();
    stop();
}

/* --- what is wrong is found as before --- */

static void find_slow_host(double further, uint32_t index, double times)
{
    for (uint64_t seed = 1; seed <= 6; seed++) {
        start_with_far_zone(9, further, seed);
        run(30 * NS_PER_S);
        slow_down(index, times);
        run(20 * NS_PER_S);
        assert_int_equal(world.ejected, 1 << index);
        assert_int_equal(world.kinds[SCOPE_ZONE], 0);
        stop();
    }
}

static void a_slow_host_of_a_far_zone_is_a_node(void **state)
{
    (void)state;

    find_slow_host(10000, 4, 4);
}

/* It is no nearer to being bad than another, nor further from it. */
static void a_slow_host_of_a_near_zone_is_a_node(void **state)
{
    (void)state;

    find_slow_host(20000, 3, 3);
}

static void a_far_zone_that_turns_slow_is_bad_and_no_further_away(void **state)
{
    (void)state;

    for (uint64_t seed = 1; seed <= 6; seed++) {
        double middle;
        int before;

        start_with_far_zone(9, 10000, seed);
        run(30 * NS_PER_S);
        before = away(1);
        for (uint32_t i = FAR; i < world.hosts; i += ZONES)
            slow_down(i, 4);
        for (int n = 0; n < 20 && verdict() != SCOPE_ZONE; n++)
            run(DETECT_BUCKET);
        assert_int_equal(verdict(), SCOPE_ZONE);
        assert_near(away(1), before, 2);
        middle = world.scope.zones[FAR].middle[0];
        run(60 * NS_PER_S);
        assert_int_equal(verdict(), SCOPE_ZONE);
        assert_int_equal(world.ejected, 0);
        assert_true(world.scope.zones[FAR].middle[0] == middle);
        assert_near(away(1), before, 2);
        stop();
    }
}

static void one_bad_host_from_the_start_does_not_make_its_zone_far(void **state)
{
    (void)state;

    for (uint64_t seed = 1; seed <= 12; seed++) {
        start(seed % 2 == 0 ? 6 : 9, ZONES, 20, seed);
        slow_down(4, 4);
        run(60 * NS_PER_S);
        assert_int_equal(world.ejected, 1 << 4);
        assert_nobody_is_away();
        stop();
    }
}

/* Nor does it make it slow: once it is out, no other zone is slower than usual beside it. */
static void one_bad_host_from_the_start_makes_no_other_zone_bad_once_it_is_out(void **state)
{
    (void)state;

    for (uint64_t seed = 1; seed <= 12; seed++) {
        start(seed % 2 == 0 ? 12 : 9, ZONES, 20, seed);
        slow_down(4, 10);
        run(120 * NS_PER_S);
        assert_int_equal(world.ejected, 1 << 4);
        assert_int_equal(world.kinds[SCOPE_ZONE], 0);
        stop();
    }
}

/* Who begins to look in the middle of an incident learns a slow zone as usual; then it is over. */
static void a_zone_that_was_slow_from_the_start_and_heals_makes_no_other_one_slow(void **state)
{
    (void)state;

    for (uint64_t seed = 1; seed <= 12; seed++) {
        bool small = seed % 2 != 0;

        start(small ? 9 : 12, ZONES, 20, seed);
        for (uint32_t i = FAR; i < world.hosts; i += ZONES)
            slow_down(i, 4);
        run(60 * NS_PER_S);
        assert_int_equal(world.kinds[SCOPE_ZONE], 0);
        for (uint32_t i = FAR; i < world.hosts; i += ZONES)
            slow_down(i, 1);
        run(120 * NS_PER_S);
        assert_in_range(world.kinds[SCOPE_ZONE], 0, small ? 20 : 0); /* half seconds of 240 */
        stop();
    }
}

/* What is learnt of the hosts that are there is of no zone that comes later in its place. */
static void a_zone_that_is_gone_takes_along_how_far_it_was(void **state)
{
    (void)state;

    start_with_far_zone(9, 20000, 13);
    run(20 * NS_PER_S);
    for (uint32_t i = FAR; i < world.hosts; i += ZONES)
        world.scoped[i].name[SCOPE_ZONES] = 900;
    put_away(FAR, ZONES, 0);
    scope_adopt(&world.scope, &world.judge, world.scoped, world.hosts);
    assert_int_equal(world.scope.zones[FAR].middles[0], 0);
    run(DETECT_BUCKET);
    assert_nobody_is_away();
    stop();
}

/* --- on random fleets --- */

static double place_of_zone(uint32_t zone)
{
    return bins_of(20000 + world.planted.on[zone].further);
}

/* A zone is no further than the zones are from each other, and its hosts are where it is. */
static void assert_within(uint32_t zones, double slack)
{
    double least = place_of_zone(0), most = least;

    for (uint32_t zone = 1; zone < zones; zone++) {
        least = fmin(least, place_of_zone(zone));
        most = fmax(most, place_of_zone(zone));
    }
    for (uint32_t i = 0; i < world.hosts; i++) {
        assert_near(away(i), 0, most - least + slack);
        assert_int_equal(away(i), away(i % zones));
        if (most == least)
            assert_int_equal(away(i), 0);
    }
}

static void start_random_fleet(uint64_t seed, uint32_t *zones)
{
    struct rng rng;
    bool alike = seed % 3 == 0;

    rng_init(&rng, 1000 + seed);
    *zones = 2 + (uint32_t)rng_below(&rng, 4);
    start(*zones * (2 + (uint32_t)rng_below(&rng, 2)), *zones, 20, seed);
    for (uint32_t zone = 0; zone < *zones; zone++)
        put_away(zone, *zones, alike ? 5000 : 60000 * rng_unit(&rng));
}

/* The nearest zone's latencies spread widest: its hosts have many high ranks, and no higher median.
 */
static void nobody_is_further_than_the_zones_are_apart(void **state)
{
    (void)state;

    for (uint64_t seed = 1; seed <= 60; seed++) {
        uint32_t zones;

        start_random_fleet(seed, &zones);
        for (int n = 0; n < 60; n++) {
            run(DETECT_BUCKET);
            assert_within(zones, n < 20 ? 6 : 2.5);
        }
        assert_nothing_is_found();
        stop();
    }
}

/* --- what the judge does with it --- */

static struct detect_host *start_judge(void)
{
    start(9, ZONES, 20, 14);
    run(WARM);
    for (int line = 0; line < DETECT_LINE_COUNT; line++) {
        struct detect_host *h = &world.memory[FAR];

        h->sum[line] = h->from[line] = h->gain[line] = h->least[line] = h->lost[line] = 1 + line;
    }
    return &world.memory[FAR];
}

static void assert_sums(const struct detect_host *h, enum detect_line line, double all)
{
    assert_true(h->sum[line] == all && h->from[line] == all && h->gain[line] == all);
    assert_true(h->least[line] == all && h->lost[line] == all);
}

static void small_changes_keep_the_sums(void **state)
{
    static const int32_t steps[] = {0, 2, 1, -1, 0, -2, 0};
    struct detect_host *h = start_judge();
    (void)state;

    for (size_t n = 0; n < sizeof(steps) / sizeof(steps[0]); n++) {
        detect_set_away(&world.judge, FAR, 0, steps[n]);
        assert_int_equal(away(FAR), steps[n]);
        for (int line = 0; line < DETECT_LINE_COUNT; line++)
            assert_sums(h, (enum detect_line)line, 1 + line);
    }
    stop();
}

static void jumps_begin_rank_and_tail_anew_and_no_other_line(void **state)
{
    static const int32_t jumps[] = {3, -3, 40};
    (void)state;

    for (size_t n = 0; n < sizeof(jumps) / sizeof(jumps[0]); n++) {
        struct detect_host *h = start_judge();

        detect_set_away(&world.judge, FAR, 0, jumps[n]);
        for (int line = 0; line < DETECT_LINE_COUNT; line++) {
            bool anew = line == DETECT_RANK || line == DETECT_TAIL;

            assert_sums(h, (enum detect_line)line, anew ? 0 : 1 + line);
        }
        stop();
    }
}

static void a_median_as_it_came_is_the_same_however_far_away(void **state)
{
    static const int32_t each[] = {5, -7, 30, 1, 0};
    struct detect_host *h = start_judge();
    double median = detect_median(h, 0);
    uint16_t less = h->median[0];
    (void)state;

    for (size_t n = 0; n < sizeof(each) / sizeof(each[0]); n++) {
        detect_set_away(&world.judge, FAR, 0, each[n]);
        assert_near(detect_median(h, 0), median, 1e-9);
        assert_int_equal(h->median[0], less - 2 * each[n]);
    }
    stop();
}

/* All that is remembered, and what comes, are by the same measure. */
static void an_answer_is_ranked_less_what_is_its_places(void **state)
{
    uint32_t us[] = {(uint32_t)peer_bin_us(200), (uint32_t)peer_bin_us(230)};
    double place, recent;
    (void)state;

    (void)start_judge();
    place = detect_place(&world.judge, FAR, 0, us[0]);
    recent = peer_median(world.memory[FAR].series[0], UINT32_MAX, 1);
    assert_true(detect_place(&world.judge, FAR, 0, us[1]) > place);
    detect_set_away(&world.judge, FAR, 0, 30);
    assert_true(detect_place(&world.judge, FAR, 0, us[1]) == place);
    assert_near(peer_median(world.memory[FAR].series[0], UINT32_MAX, 1), recent - 30, 1e-9);
    stop();
}

static void past_both_ends_an_answer_is_at_the_end(void **state)
{
    double first, last;
    (void)state;

    (void)start_judge();
    first = detect_place(&world.judge, FAR, 0, 0);
    last = detect_place(&world.judge, FAR, 0, UINT32_MAX);
    detect_set_away(&world.judge, FAR, 0, 100);
    assert_true(detect_place(&world.judge, FAR, 0, 10) == first);
    detect_set_away(&world.judge, FAR, 0, -100);
    assert_true(detect_place(&world.judge, FAR, 0, UINT32_MAX / 10) == last);
    detect_set_away(&world.judge, FAR, 0, 440); /* and its median is no less than nothing */
    assert_int_equal(world.memory[FAR].median[0], 1);
    stop();
}

/* Nothing has come of it in that class: nothing is known of it after, either. */
static void what_is_not_known_of_a_host_is_not_known_by_being_far(void **state)
{
    struct detect_host *h = start_judge();
    uint16_t median = h->median[0];
    (void)state;

    detect_set_away(&world.judge, FAR, 2, -50);
    assert_int_equal(h->away[2], -50);
    assert_int_equal(h->median[2], 0);
    assert_int_equal(h->away[0], 0);
    assert_int_equal(h->median[0], median);
    stop();
}

/* Its hosts were others' until then: what is known of the fleet is not known of the zone. */
static void a_far_zone_that_appears_later_is_learnt_as_one_that_was_always_there(void **state)
{
    (void)state;

    for (uint64_t seed = 1; seed <= 5; seed++) {
        start(9, ZONES, 20, seed);
        for (uint32_t i = FAR; i < world.hosts; i += ZONES)
            world.scoped[i].name[SCOPE_ZONES] = world.scoped[0].name[SCOPE_ZONES];
        scope_adopt(&world.scope, &world.judge, world.scoped, world.hosts);
        run(20 * NS_PER_S);
        put_away(FAR, ZONES, 20000);
        for (uint32_t i = FAR; i < world.hosts; i += ZONES) {
            world.scoped[i].name[SCOPE_ZONES] = 900;
            detect_acquit(&world.judge, i);
        }
        scope_adopt(&world.scope, &world.judge, world.scoped, world.hosts);
        run(60 * NS_PER_S);
        assert_nothing_is_found();
        assert_near(away(FAR), ought(20000), 2.5);
        stop();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_far_zone_that_appears_later_is_learnt_as_one_that_was_always_there),
        cmocka_unit_test(a_zone_that_is_further_away_is_nobodys_fault),
        cmocka_unit_test(what_is_less_than_half_a_millisecond_of_twenty_is_none),
        cmocka_unit_test(a_zone_that_is_nearer_is_so_by_less_than_none),
        cmocka_unit_test(zones_that_are_alike_are_not_away),
        cmocka_unit_test(a_zone_of_four_has_peers_enough),
        cmocka_unit_test(a_zone_that_has_become_four_is_away_no_more),
        cmocka_unit_test(a_zone_that_was_four_for_a_while_is_learnt_anew),
        cmocka_unit_test(hosts_of_no_known_zone_are_not_away),
        cmocka_unit_test(each_class_has_its_own),
        cmocka_unit_test(a_class_that_one_zone_alone_gets_is_not_away),
        cmocka_unit_test(a_slow_host_of_a_far_zone_is_a_node),
        cmocka_unit_test(a_slow_host_of_a_near_zone_is_a_node),
        cmocka_unit_test(a_far_zone_that_turns_slow_is_bad_and_no_further_away),
        cmocka_unit_test(one_bad_host_from_the_start_does_not_make_its_zone_far),
        cmocka_unit_test(one_bad_host_from_the_start_makes_no_other_zone_bad_once_it_is_out),
        cmocka_unit_test(a_zone_that_was_slow_from_the_start_and_heals_makes_no_other_one_slow),
        cmocka_unit_test(a_zone_that_is_gone_takes_along_how_far_it_was),
        cmocka_unit_test(nobody_is_further_than_the_zones_are_apart),
        cmocka_unit_test(small_changes_keep_the_sums),
        cmocka_unit_test(jumps_begin_rank_and_tail_anew_and_no_other_line),
        cmocka_unit_test(a_median_as_it_came_is_the_same_however_far_away),
        cmocka_unit_test(an_answer_is_ranked_less_what_is_its_places),
        cmocka_unit_test(past_both_ends_an_answer_is_at_the_end),
        cmocka_unit_test(what_is_not_known_of_a_host_is_not_known_by_being_far),
    };

    return cmocka_run_group_tests_name("scope_away", tests, NULL, NULL);
}
