/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cases C065, C067 and C069 b of tests/cases/README.md, those parts that need no tunnel, through
 * the whole data plane in virtual time. With real peers: tests/e2e/test_leaving_cases.py.
 */
#include "sim/plane.h"

#include "base/rng.h"
#include "control/control.h"
#include "model/flags.h"

#define S NS_PER_S

static struct plane p;

static uint64_t arrived(uint32_t host)
{
    return p.rig.servers[host].arrivals;
}

static uint64_t of_host(uint32_t host, enum endpoint_metric m)
{
    return host_state_sum(host_state_of(rig_state(&p.rig)->hosts.at[host]), m);
}

static void reload(uint64_t hosts)
{
    p.rig.settings = p.settings;
    assert_true(rig_reload(&p.rig, hosts));
    plane_run(&p, 10 * NS_PER_MS);
}

/* --- C065: SIGTERM comes before the endpoint is gone --- */

static void told_to_end(void)
{
    control_drain(p.rig.control);
    world_loop_wake(&p.rig.control_loop);
}

static void go_c065(void)
{
    plane_settings(&p, 4, 2);
    p.settings.drain_wait = 5 * S;
    p.settings.drain_timeout = 30 * S;
    p.settings.route.timeout = 100 * S;
    plane_go(&p);
    for (uint32_t i = 0; i < 4; i++)
        p.rig.servers[i].mood.service = 100 * NS_PER_MS; /* 200 ms in the mean */
}

static uint64_t refused_to_connect(void)
{
    return p.rig.client.refused;
}

/* 300 a second, for as long as whoever is in front has not noticed, and a second more. */
static void c065_until_the_wait_is_over_all_are_served_and_told_to_go(void **state)
{
    uint64_t last, closed;
    (void)state;

    go_c065();
    for (unsigned i = 0; i < 600; i++) {
        plane_get(&p);
        plane_run(&p, S / 300);
    }
    told_to_end();
    plane_run(&p, 250 * NS_PER_MS);
    assert_true(p.rig.state->draining); /* so /ready says 503 */
    closed = rig_http_sum(&p.rig, HTTP_downstream_cx_drain_close);
    for (unsigned i = 0; i < 300 * 2; i++) {
        plane_get(&p);
        plane_run(&p, S / 300);
        if (i == 300) {
            told_to_end(); /* again: it does not shorten anything */
            reload(RIG_ALL_HOSTS);
        }
    }
    assert_int_equal(refused_to_connect(), 0);
    plane_run(&p, S); /* who was in front has noticed after three seconds: quiet, for another two */
    assert_int_equal(plane_answered(&p, 2), 1200);
    assert_true(rig_http_sum(&p.rig, HTTP_downstream_cx_drain_close) - closed > 590);
    last = plane_get(&p);
    plane_run(&p, S);
    plane_expect(&p, last, 200); /* and still, whoever comes is served */
    p.rig.client.lenient_since = p.rig.world.now;
    plane_run(&p, 2 * S);
    assert_true(control_done(p.rig.control)); /* nothing was under way: no need to wait for more */
    plane_end(&p);
}

static void c065_the_hard_end_is_counted_from_the_signal(void **state)
{
    mono_ns told;
    uint64_t stuck;
    (void)state;

    go_c065();
    plane_plan(&p, 0)->delay = MONO_NEVER;
    stuck = plane_get(&p);
    plane_run(&p, S);
    told = p.rig.world.now;
    told_to_end();
    p.rig.client.lenient_since = told;
    while (!control_done(p.rig.control))
        plane_run(&p, 10 * NS_PER_MS);
    assert_in_range(p.rig.world.now - told, 30 * S, 30 * S + 50 * NS_PER_MS);
    plane_run(&p, S);
    assert_int_equal(plane_fact(&p, stuck)->record_flags, FLAG_LR);
    plane_end(&p);
}

/* --- C067: a host is removed while it has streams --- */

/* Each answer drips for twenty seconds. */
static void drip(struct server *server, const struct wish *wish, const struct message_head *head,
                 struct answer_plan *plan)
{
    (void)server;
    (void)head;
    if (wish->answer < 2000)
        return;
    plan->drip_piece = 100;
    plan->drip_gap = S;
}

static void go_c067(span_ns most)
{
    plane_settings(&p, 3, 2);
    p.settings.cluster.host_drain_timeout = most;
    p.settings.route.timeout = 60 * S;
    plane_go(&p);
    for (uint32_t i = 0; i < 3; i++) {
        p.rig.servers[i].decide = drip;
        p.rig.servers[i].mood.service = NS_PER_MS;
    }
}

/* |count| downloads, and as many connections to each host that fall idle. */
static uint64_t begin_downloads(unsigned count)
{
    struct ask download = ASK_PLAIN;
    uint64_t first = p.rig.ledger.count + 1;

    download.answer = 2000;
    for (unsigned i = 0; i < count; i++)
        plane_ask(&p, &download);
    for (unsigned i = 0; i < count; i++)
        plane_get(&p);
    plane_run(&p, 2 * S);
    return first;
}

static uint32_t with_outcome(uint64_t first, unsigned count, enum outcome outcome)
{
    uint32_t n = 0;

    for (unsigned i = 0; i < count; i++)
        n += plane_fact(&p, first + i)->outcome == outcome;
    return n;
}

static void c067_a_removed_host_finishes_and_what_is_idle_goes_at_once(void **state)
{
    uint64_t first, before, downloads;
    (void)state;

    go_c067(0);
    first = begin_downloads(150);
    downloads = of_host(0, ENDPOINT_rq_active);
    assert_in_range(downloads, 45, 55);
    assert_true(of_host(0, ENDPOINT_cx_active) > downloads + 20);
    before = arrived(0);
    reload(0x6);                                                 /* t = 2: A is gone */
    assert_int_equal(of_host(0, ENDPOINT_cx_active), downloads); /* without any new request */
    plane_traffic(&p, 100, 20 * NS_PER_MS);
    assert_int_equal(arrived(0), before);
    reload(0x7); /* t = 4: it is back, with its downloads and without history */
    assert_int_equal(of_host(0, ENDPOINT_rq_active), downloads);
    plane_traffic(&p, 99, 20 * NS_PER_MS);
    assert_in_range(arrived(0), before + 32, before + 34);
    assert_int_equal(of_host(0, ENDPOINT_rq_active), downloads);
    plane_run(&p, 20 * S);
    assert_int_equal(with_outcome(first, 150, OUTCOME_ANSWERED), 150);
    assert_int_equal(plane_answered(&p, 2), 2 * 150 + 199);
    plane_end(&p);
}

static void c067_what_a_removed_host_was_is_forgotten(void **state)
{
    (void)state;

    go_c067(0);
    p.rig.servers[0].mood.error_permille = 1000;
    p.rig.servers[0].mood.error_status = 500;
    p.settings.cluster.outlier.consecutive_5xx = 5;
    p.settings.cluster.outlier.consecutive_gateway = 0;
    cluster_follow(&p.settings.cluster, DIFFERENCES_ENVOY);
    p.settings.cluster.outlier.max_ejection_percent = 50;
    reload(0x7);
    plane_traffic(&p, 30, 20 * NS_PER_MS);
    assert_true(plane_out(&p, 0));
    reload(0x6);
    p.rig.servers[0].mood.error_permille = 0;
    reload(0x7);
    assert_false(plane_out(&p, 0));
    assert_int_equal(cell_read(&rig_state(&p.rig)->outlier[OUTLIER_STAT_ejections_active]), 0);
    plane_run(&p, S);
    plane_end(&p);
}

/* Of a host nothing but its label changes (weights are not configured yet). */
static void c067_another_label_touches_no_connection(void **state)
{
    uint64_t opened, open;
    (void)state;

    go_c067(S);
    (void)begin_downloads(30);
    opened = plane_count(&p, CLUSTER_upstream_cx_total);
    open = plane_count(&p, CLUSTER_upstream_cx_active);
    for (unsigned i = 0; i < 20; i++) {
        reload(RIG_ALL_HOSTS);
        plane_run(&p, 100 * NS_PER_MS);
    }
    assert_int_equal(plane_count(&p, CLUSTER_upstream_cx_total), opened);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_cx_active), open);
    plane_run(&p, 25 * S);
    plane_end(&p);
}

static void c067_what_lasts_longer_than_the_bound_is_broken_off_and_nobody_is_blamed(void **state)
{
    uint64_t first, broken;
    (void)state;

    go_c067(5 * S);
    first = begin_downloads(30);
    broken = of_host(0, ENDPOINT_rq_active);
    assert_in_range(broken, 9, 11);
    reload(0x6);
    plane_run(&p, 5 * S - 100 * NS_PER_MS);
    assert_int_equal(of_host(0, ENDPOINT_rq_active), broken);
    for (unsigned i = 0; i < 30; i++)
        ledger_fact(&p.rig.ledger, first + i)->excused = true; /* they are to be cut */
    plane_run(&p, 200 * NS_PER_MS);
    assert_int_equal(of_host(0, ENDPOINT_cx_active), 0);
    plane_run(&p, 20 * S);
    assert_int_equal(with_outcome(first, 30, OUTCOME_ANSWERED), 30 - broken);
    for (unsigned i = 0; i < 30; i++)
        if (plane_fact(&p, first + i)->outcome != OUTCOME_ANSWERED)
            assert_int_equal(plane_fact(&p, first + i)->record_flags, FLAG_LR);
    assert_int_equal(p.laws.ejections, 0);
    plane_end(&p);
}

static void c067_a_host_that_is_back_within_the_bound_is_let_alone(void **state)
{
    uint64_t first;
    (void)state;

    go_c067(5 * S);
    first = begin_downloads(30);
    reload(0x6);
    plane_run(&p, 4 * S);
    reload(0x7);
    plane_run(&p, 20 * S);
    assert_int_equal(with_outcome(first, 30, OUTCOME_ANSWERED), 30);
    plane_end(&p);
}

static void c067_a_host_that_leaves_again_has_all_of_its_time_again(void **state)
{
    uint64_t left;
    (void)state;

    go_c067(5 * S);
    (void)begin_downloads(30);
    left = of_host(0, ENDPOINT_rq_active);
    reload(0x6);
    plane_run(&p, 2 * S);
    reload(0x7);
    plane_run(&p, 2 * S);
    reload(0x6);
    plane_run(&p, 4 * S); /* eight since it left first */
    assert_int_equal(of_host(0, ENDPOINT_rq_active), left);
    reload(0x7);
    plane_run(&p, 20 * S);
    assert_int_equal(plane_answered(&p, 2), 60);
    plane_end(&p);
}

/* --- C069 b: each answer is another random 8 of 40 live addresses --- */

#define KNOWN 40

static uint64_t eight_of_forty(struct rng *random)
{
    uint64_t which = 0;

    for (unsigned n = 0; n < 8;) {
        uint64_t bit = (uint64_t)1 << rng_below(random, KNOWN);

        n += (which & bit) == 0;
        which |= bit;
    }
    return which;
}

static void go_c069(span_ns hold)
{
    plane_settings(&p, KNOWN, 2);
    p.settings.name = "backend.test";
    p.settings.cluster.dns_hold = hold;
    p.settings.cluster.outlier.interval = 10 * S;
    p.settings.cluster.outlier.base_ejection = 100 * S;
    plane_go(&p);
    for (uint32_t i = 0; i < KNOWN; i++)
        p.rig.servers[i].mood.service = NS_PER_MS;
    sim_resolver_name(&p.rig.resolver, "backend.test")->ttl = 2 * S;
    rig_name_hosts(&p.rig, 0xff);
    plane_run(&p, 100 * NS_PER_MS); /* the first answer */
}

static uint32_t serving(void)
{
    const struct host_set *hosts = &rig_state(&p.rig)->hosts;
    uint32_t n = 0;

    for (uint32_t i = 0; i < hosts->count; i++)
        n += hosts->at[i] != NULL && host_health(hosts->at[i]) == HOST_HEALTHY;
    return n;
}

struct churn {
    uint64_t closed; /* in all */
    uint64_t worst;  /* closed in one time to live, in thousandths of those open */
    uint64_t changes;
};

static uint64_t closed_so_far(void)
{
    return plane_count(&p, CLUSTER_upstream_cx_total) - plane_count(&p, CLUSTER_upstream_cx_active);
}

/* 40 requests a second, over |rounds| answers. */
static struct churn rotate(struct rng *random, unsigned rounds)
{
    struct churn c = {.changes = rig_state(&p.rig)->membership_changes};

    for (unsigned i = 0; i < rounds; i++) {
        uint64_t before = closed_so_far(), closed;

        rig_name_hosts(&p.rig, eight_of_forty(random));
        plane_traffic(&p, 80, 25 * NS_PER_MS);
        closed = closed_so_far() - before;
        c.closed += closed;
        closed = closed * 1000 / (plane_count(&p, CLUSTER_upstream_cx_active) + closed);
        if (closed > c.worst)
            c.worst = closed;
    }
    c.changes = rig_state(&p.rig)->membership_changes - c.changes;
    return c;
}

static void c069_b_with_a_hold_rotating_answers_are_merged(void **state)
{
    struct rng random;
    struct churn c;
    (void)state;

    rng_init(&random, 69);
    go_c069(60 * S);
    c = rotate(&random, 60);    /* 120 s */
    assert_true(c.worst < 100); /* a tenth */
    assert_in_range(serving(), 38, 40);
    c = rotate(&random, 30);
    assert_true(c.worst < 100);
    assert_true(c.changes <= 5); /* once all are known there is next to nothing to change */
    plane_run(&p, S);
    assert_int_equal(plane_answered(&p, 2), 90 * 80); /* no stream was reset */
    assert_int_equal(plane_count(&p, CLUSTER_upstream_rq_rx_reset), 0);
    plane_end(&p);
}

/* By default the last answer is the set: the hosts come and go, and still nobody loses a request.
 */
static void c069_b_without_a_hold_the_last_answer_is_the_set(void **state)
{
    struct rng random;
    struct churn c;
    (void)state;

    rng_init(&random, 69);
    go_c069(0);
    c = rotate(&random, 60);
    assert_true(c.worst > 500);
    assert_int_equal(serving(), 8);
    plane_run(&p, S);
    assert_int_equal(plane_answered(&p, 2), 60 * 80);
    plane_end(&p);
}

static void c069_b_an_ejected_host_that_answers_leave_out_stays_ejected(void **state)
{
    uint64_t before;
    (void)state;

    go_c069(60 * S);
    p.rig.servers[3].blamable = true;
    server_refuse(&p.rig.servers[3]);
    plane_traffic(&p, 100, 25 * NS_PER_MS);
    assert_int_equal(p.laws.ejections, 1);
    assert_true(server_listen(&p.rig.servers[3]));
    before = arrived(3);
    for (unsigned i = 0; i < 20; i++) { /* 40 s: named in every second answer only */
        rig_name_hosts(&p.rig, i % 2 == 0 ? 0xf7 : 0xff);
        plane_traffic(&p, 80, 25 * NS_PER_MS);
    }
    assert_int_equal(arrived(3), before);
    assert_int_equal(cell_read(&rig_state(&p.rig)->outlier[OUTLIER_STAT_ejections_active]), 1);
    plane_run(&p, 100 * S);
    plane_traffic(&p, 80, 25 * NS_PER_MS);
    assert_true(arrived(3) > before); /* its time was over */
    plane_end(&p);
}

static void c069_b_who_is_not_named_for_longer_than_the_hold_is_gone(void **state)
{
    uint64_t before;
    (void)state;

    go_c069(60 * S);
    rig_name_hosts(&p.rig, 0xf0);
    plane_traffic(&p, 40, S);
    assert_int_equal(serving(), 8);
    before = arrived(0);
    plane_traffic(&p, 40, S);
    assert_int_equal(serving(), 4);
    plane_traffic(&p, 40, 100 * NS_PER_MS);
    assert_true(arrived(0) > before); /* it was one of them, for the hold */
    before = arrived(0) + arrived(1) + arrived(2) + arrived(3);
    plane_traffic(&p, 40, 100 * NS_PER_MS);
    assert_int_equal(arrived(0) + arrived(1) + arrived(2) + arrived(3), before);
    plane_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c065_until_the_wait_is_over_all_are_served_and_told_to_go),
        cmocka_unit_test(c065_the_hard_end_is_counted_from_the_signal),
        cmocka_unit_test(c067_a_removed_host_finishes_and_what_is_idle_goes_at_once),
        cmocka_unit_test(c067_what_a_removed_host_was_is_forgotten),
        cmocka_unit_test(c067_another_label_touches_no_connection),
        cmocka_unit_test(c067_what_lasts_longer_than_the_bound_is_broken_off_and_nobody_is_blamed),
        cmocka_unit_test(c067_a_host_that_is_back_within_the_bound_is_let_alone),
        cmocka_unit_test(c067_a_host_that_leaves_again_has_all_of_its_time_again),
        cmocka_unit_test(c069_b_with_a_hold_rotating_answers_are_merged),
        cmocka_unit_test(c069_b_without_a_hold_the_last_answer_is_the_set),
        cmocka_unit_test(c069_b_an_ejected_host_that_answers_leave_out_stays_ejected),
        cmocka_unit_test(c069_b_who_is_not_named_for_longer_than_the_hold_is_gone),
    };

    return cmocka_run_group_tests_name("cases_leaving", tests, NULL, NULL);
}
