/* SPDX-License-Identifier: Apache-2.0 */
/* Evidence that finds no room in its worker's ring is counted; when the path is looked at. */
#include "sim/plane.h"

#include "policy/evidence_ring.h"

static struct plane p;

static uint64_t lost(void)
{
    return cell_read(&p.rig.state->worker_cells[0].at[WORKER_evidence_lost]);
}

/* As if the watch had not looked for long. */
static void fill_ring(void)
{
    const struct evidence e = {.at = p.rig.world.now, .outcome = EVIDENCE_RESET};

    while (evidence_ring_put(&p.rig.state->rings[0], &e) <= EVIDENCE_PUT_TELL)
        ;
}

static void what_a_full_ring_loses_is_counted(void **state)
{
    uint64_t id;
    (void)state;

    plane_settings(&p, 2, 1);
    rig_settings_detect(&p.settings, PROFILE_ADAPTIVE);
    plane_go(&p);
    plane_traffic(&p, 20, 10 * NS_PER_MS);
    plane_run(&p, NS_PER_S);
    assert_int_equal(lost(), 0);
    plane_plan(&p, 0)->status = 500; /* an answer might be one that another one stands for */
    id = plane_get(&p);
    while (plane_fact(&p, id)->outcome != OUTCOME_ANSWERED) {
        fill_ring();
        plane_run(&p, NS_PER_MS / 10);
    }
    assert_int_equal(lost(), 1);
    plane_run(&p, NS_PER_S);
    plane_traffic(&p, 20, 10 * NS_PER_MS);
    plane_run(&p, NS_PER_S);
    assert_int_equal(lost(), 1); /* the watch has looked, and there is room again */
    plane_end(&p);
}

/* Of host 0: what was told of the path to it. */
static uint64_t told(void)
{
    return atomic_load(&rig_state(&p.rig)->hosts.at[0]->path.requests);
}

static void ask_taking(span_ns time)
{
    plane_plan(&p, 0)->delay = time;
    (void)plane_get(&p);
    plane_run(&p, time + 10 * NS_PER_MS);
}

/* Once a second; and at once after a request that took as long as a lost segment makes it take. */
static void the_path_is_looked_at_when_a_segment_may_have_been_lost(void **state)
{
    (void)state;

    plane_settings(&p, 1, 1);
    plane_go(&p);
    ask_taking(5 * NS_PER_MS);
    assert_int_equal(told(), 1);
    ask_taking(150 * NS_PER_MS);
    assert_int_equal(told(), 1);
    ask_taking(200 * NS_PER_MS);
    assert_int_equal(told(), 3);
    ask_taking(5 * NS_PER_MS);
    assert_int_equal(told(), 3);
    plane_run(&p, NS_PER_S);
    ask_taking(5 * NS_PER_MS);
    assert_int_equal(told(), 5);
    plane_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_path_is_looked_at_when_a_segment_may_have_been_lost),
        cmocka_unit_test(what_a_full_ring_loses_is_counted),
    };

    return cmocka_run_group_tests_name("sim/plane_evidence", tests, NULL, NULL);
}
