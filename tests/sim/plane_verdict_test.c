/* SPDX-License-Identifier: Apache-2.0 */
/* A verdict is seen by all workers within one turn: who begins a turn after it, begins no attempt
 * on the host. */
#include "sim/detection_plane.h"

#define WORKERS 4u
#define SICK    3u

/* Attempts that each worker has begun on the sick host. */
static struct {
    struct world_watch watch;
    mono_ns out_at;              /* MONO_NEVER: it is in */
    uint64_t begun[WORKERS];     /* until then ... */
    uint64_t elsewhere[WORKERS]; /* ... and on all hosts */
    uint64_t turns[WORKERS];
    mono_ns last[WORKERS]; /* the latest of its attempts */
} sight;

static uint64_t begun(uint32_t worker, uint32_t host)
{
    const struct host *h = rig_state(&p.rig)->hosts.at[host];

    return cell_read(
        &host_state_of((struct host *)(uintptr_t)h)->cells[worker].at[ENDPOINT_rq_total]);
}

static uint64_t begun_in_all(uint32_t worker)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < p.settings.hosts; i++)
        sum += begun(worker, i);
    return sum;
}

static void look(struct world_watch *w, mono_ns now)
{
    (void)w;
    if (sight.out_at == MONO_NEVER && plane_out(&p, SICK)) {
        sight.out_at = now; /* the turn in which it went has just ended: the control loop's */
        for (uint32_t i = 0; i < WORKERS; i++) {
            sight.elsewhere[i] = begun_in_all(i);
            sight.turns[i] = p.rig.workers[i].loop.turns;
        }
    }
    for (uint32_t i = 0; i < WORKERS; i++) {
        uint64_t n = begun(i, SICK);

        if (n != sight.begun[i])
            sight.last[i] = now;
        sight.begun[i] = n;
    }
}

static void begin_with(uint64_t seed)
{
    struct crowd_habits busy = plain_habits;

    busy.rate = 1000;
    prepare(seed, PROFILE_ADAPTIVE);
    p.settings.workers = WORKERS;
    begin(&busy);
    sight.out_at = MONO_NEVER;
    memset(sight.begun, 0, sizeof(sight.begun));
    memset(sight.last, 0, sizeof(sight.last));
    sight.watch.after_turn = look;
    world_look_on(&p.rig.world, &sight.watch);
}

static void no_worker_begins_an_attempt_after_the_verdict(void **state)
{
    (void)state;

    for (uint64_t seed = 1; seed <= 10; seed++) {
        begin_with(seed);
        run(3 * S);
        server(SICK)->mood.error_permille = 600;
        while (sight.out_at == MONO_NEVER)
            run(10 * MS);
        run(S); /* it is not probed yet */
        for (uint32_t i = 0; i < WORKERS; i++) {
            assert_true(sight.last[i] <= sight.out_at);
            assert_in_range(sight.last[i], sight.out_at - 500 * MS, sight.out_at); /* but before */
            assert_true(begun_in_all(i) > sight.elsewhere[i] + 50);
            assert_true(p.rig.workers[i].loop.turns > sight.turns[i] + 50);
        }
        finish();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_worker_begins_an_attempt_after_the_verdict),
    };

    return cmocka_run_group_tests_name("sim/plane_verdict", tests, NULL, NULL);
}
