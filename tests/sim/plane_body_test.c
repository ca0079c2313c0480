/* SPDX-License-Identifier: Apache-2.0 */
/* A host that begins its answers in time and then lets them drip is as slow as it is; one whose
 * clients take them slowly is not. */
#include "sim/detection_plane.h"

#define BODY  30000  /* lies in the network's window as a whole */
#define LARGE 150000 /* does not: it comes as its client reads */

static uint64_t held_hosts; /* that were asked by clients who read slowly; a bit each */

static void drip(struct server *s, const struct wish *wish, const struct message_head *head,
                 struct answer_plan *plan)
{
    (void)wish;
    (void)head;
    server_blame(s);
    plan->drip_piece = BODY / 10;
    plan->drip_gap = 8 * MS;
}

static void a_host_whose_bodies_drip_is_cut(void **state)
{
    struct crowd_habits habits = plain_habits;
    (void)state;

    habits.small = BODY;
    prepare(1, PROFILE_ADAPTIVE);
    p.settings.route.large_body = UINT64_MAX;
    begin(&habits);
    run(20 * S);
    mark();
    server(3)->decide = drip;
    run(15 * S);
    assert_in_range(cut_after(3), 0, 5 * S);
    assert_true(onlooker_cut(&seen, HOST_WHOLE - 1) == BIT(3));
    finish();
}

static void note_host(struct server *s, const struct wish *wish, const struct message_head *head,
                      struct answer_plan *plan)
{
    (void)head;
    (void)plan;
    if (wish->id % 10 == 3)
        held_hosts |= BIT(s->index);
}

static void ask_for(span_ns length, span_ns read_gap)
{
    const struct ask plain = ASK_PLAIN;

    for (mono_ns end = p.rig.world.now + length; p.rig.world.now < end; run(25 * MS)) {
        struct ask a = plain;

        a.answer = LARGE;
        a.read_gap = (p.rig.ledger.count + 1) % 10 == 3 ? read_gap : 0;
        (void)plane_ask(&p, &a);
    }
}

/* All that ask this host take their time; nobody else does. */
static void a_host_whose_clients_read_slowly_is_not(void **state)
{
    static const struct crowd_habits nobody = {.rate = 1};
    (void)state;

    prepare(1, PROFILE_ADAPTIVE);
    p.settings.route.large_body = UINT64_MAX;
    p.settings.workers = 1;
    p.settings.cluster.lb = LB_ROUND_ROBIN;
    begin(&nobody);
    crowd_stop(&crowd);
    for (uint32_t i = 0; i < p.settings.hosts; i++)
        server(i)->decide = note_host;
    ask_for(20 * S, 0);
    mark();
    held_hosts = 0;
    ask_for(20 * S, 60 * MS);
    assert_int_equal(held_hosts & (held_hosts - 1), 0);
    assert_true(onlooker_cut(&seen, HOST_WHOLE - 1) == 0);
    finish();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_whose_bodies_drip_is_cut),
        cmocka_unit_test(a_host_whose_clients_read_slowly_is_not),
    };

    return cmocka_run_group_tests_name("sim/plane_body", tests, NULL, NULL);
}
