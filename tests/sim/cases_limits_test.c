/* SPDX-License-Identifier: Apache-2.0 */
/* Cases C055 and C059 of tests/cases/README.md through the whole data plane, in virtual time. */
#include "sim/plane.h"

#include "model/flags.h"

static struct plane p;
static span_ns held;  /* each answer */
static uint32_t says; /* its status */

static void hold(struct server *server, const struct wish *wish, const struct message_head *head,
                 struct answer_plan *plan)
{
    (void)server;
    (void)wish;
    (void)head;
    plan->delay = held;
    plan->status = says;
}

static void go(span_ns each, uint32_t status)
{
    held = each;
    says = status;
    plane_go(&p);
    for (uint32_t i = 0; i < p.settings.hosts; i++) {
        p.rig.servers[i].decide = hold;
        if (status >= 500)
            server_blame(&p.rig.servers[i]);
    }
}

/* --- C055: which limit waits and which fails at once --- */

static bool said(const char *text)
{
    for (uint64_t i = 0; i < SIM_LOG_LINES; i++)
        if (strstr(sim_log_line(&p.rig.log, i), text) != NULL)
            return true;
    return false;
}

/* Our own refusals that are retried would come back to the very limit that refused them. */
static void c055_settings(uint32_t workers, uint32_t connections, uint32_t pending,
                          uint32_t requests)
{
    plane_settings(&p, 1, workers);
    p.settings.cluster.limits.max_connections = connections;
    p.settings.cluster.limits.max_pending = pending;
    p.settings.cluster.limits.max_requests = requests;
    p.settings.cluster.outlier.split = false;
    p.settings.cluster.outlier.consecutive_gateway = 1;
    p.settings.cluster.outlier.consecutive_5xx = 1;
    p.settings.retry.policy.on = RETRY_ON_5XX | RETRY_ON_GATEWAY_ERROR | RETRY_ON_RESET;
    p.settings.retry.policy.attempts = 3;
    go(100 * NS_PER_MS, 200);
}

struct waves {
    uint32_t at_once;   /* answered by the host within its 100 ms */
    uint32_t later;     /* answered by the host after waiting */
    uint32_t refused;   /* 503 UO within 5 ms */
    span_ns last_after; /* the burst: the last answer of the host */
};

static void sort(struct waves *w, const struct fact *f, mono_ns begun)
{
    span_ns took = f->ended - begun;

    assert_int_equal(f->outcome, OUTCOME_ANSWERED);
    if (f->server == NO_SERVER) {
        assert_int_equal(f->status, 503);
        assert_int_equal(f->record_flags, FLAG_UO);
        assert_true(took < 5 * NS_PER_MS);
        w->refused++;
        return;
    }
    assert_int_equal(f->status, 200);
    if (took < 150 * NS_PER_MS)
        w->at_once++;
    else
        w->later++;
    if (took > w->last_after)
        w->last_after = took;
}

static struct waves burst_of_twelve(void)
{
    mono_ns begun = p.rig.world.now;
    struct waves w = {0};
    uint64_t ids[12];

    for (unsigned i = 0; i < 12; i++)
        ids[i] = plane_get(&p);
    plane_run(&p, 2 * NS_PER_S);
    for (unsigned i = 0; i < 12; i++)
        sort(&w, plane_fact(&p, ids[i]), begun);
    return w;
}

static void nobody_is_blamed_and_nothing_is_retried(void)
{
    const struct host *host = rig_state(&p.rig)->hosts.at[0];

    assert_int_equal(p.laws.ejections, 0);
    assert_int_equal(host->runs.run_5xx, 0);
    assert_int_equal(host->runs.run_gateway, 0);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_rq_retry), 0);
}

static void c055_run_1(uint32_t workers, unsigned bursts)
{
    c055_settings(workers, 4, 6, 1000);
    for (unsigned i = 0; i < bursts; i++) { /* the first finds a cold pool */
        struct waves w = burst_of_twelve();

        assert_int_equal(w.at_once, 4);
        assert_int_equal(w.later, 6);
        assert_int_equal(w.refused, 2);
        assert_in_range(w.last_after, 290 * NS_PER_MS, 340 * NS_PER_MS);
    }
    assert_int_equal(plane_count(&p, CLUSTER_upstream_rq_pending_overflow), 2 * bursts);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_rq_active_overflow), 0);
    assert_true(said("http1MaxPendingRequests 6 is reached"));
    assert_false(said("MaxRequests"));
    nobody_is_blamed_and_nothing_is_retried();
    plane_end(&p);
}

static void c055_connections_make_wait_and_what_may_not_wait_fails_at_once(void **state)
{
    (void)state;

    c055_run_1(1, 3);
    c055_run_1(4, 3); /* limits are those of the cluster, whatever the workers */
}

static void c055_run_2(uint32_t workers)
{
    c055_settings(workers, 100, 1000, 8);
    for (unsigned i = 0; i < 3; i++) {
        struct waves w = burst_of_twelve();

        assert_int_equal(w.at_once, 8);
        assert_int_equal(w.later, 0);
        assert_int_equal(w.refused, 4);
    }
    assert_int_equal(plane_count(&p, CLUSTER_upstream_rq_active_overflow), 12);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_rq_pending_overflow), 0);
    assert_true(said("http2MaxRequests 8 is reached"));
    assert_false(said("MaxPendingRequests"));
    nobody_is_blamed_and_nothing_is_retried();
    plane_end(&p);
}

static void c055_requests_beyond_the_limit_fail_at_once(void **state)
{
    (void)state;

    c055_run_2(1);
    c055_run_2(4);
}

/* --- C059: retry budget --- */

static uint32_t most_at_once; /* retries, at any time */
static uint64_t answered;

static void c059_settings(void)
{
    plane_settings(&p, 1, 2);
    p.settings.cluster.outlier.enabled = false;
    p.settings.cluster.retry_share =
        (struct retry_share){.given = true, .permille = 200, .least = 3};
    p.settings.cluster.retry_budget =
        (struct retry_budget_config){.earn_permille = 1000, .floor_per_s = 1000, .capacity = 1000};
    p.settings.route.timeout = 60 * NS_PER_S;
    p.settings.retry.policy.on = RETRY_ON_5XX;
    p.settings.retry.policy.attempts = 2;
    most_at_once = 0;
    answered = 0;
}

static uint32_t retries_now(void)
{
    return limit_used(&rig_state(&p.rig)->retries);
}

static void look_for(span_ns span)
{
    for (span_ns at = 0; at < span; at += 5 * NS_PER_MS) {
        plane_run(&p, 5 * NS_PER_MS);
        if (retries_now() > most_at_once)
            most_at_once = retries_now();
    }
}

static void ask_many(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        plane_get(&p);
}

/* Refused or used up: the host's own answer, and why it is the last one. */
static void all_are_the_hosts_own(uint64_t first, uint64_t count)
{
    for (uint64_t id = first; id < first + count; id++) {
        const struct fact *f = plane_fact(&p, id);

        assert_int_equal(f->status, 503);
        assert_int_not_equal(f->server, NO_SERVER);
        assert_true(f->record_flags == FLAG_URX || f->record_flags == FLAG_UO);
    }
}

static void c059_a_a_single_request_has_its_retries(void **state)
{
    uint64_t id;
    (void)state;

    c059_settings();
    go(NS_PER_S, 503);
    id = plane_get(&p);
    look_for(8 * NS_PER_S);
    assert_int_equal(most_at_once, 1); /* one after another */
    assert_int_equal(plane_fact(&p, id)->record_attempts, 3);
    assert_int_equal(plane_fact(&p, id)->record_flags, FLAG_URX);
    all_are_the_hosts_own(id, 1);
    plane_end(&p);
}

static void c059_b_of_ten_at_once_three_are_retried(void **state)
{
    uint64_t first;
    (void)state;

    c059_settings();
    go(NS_PER_S, 503);
    first = p.rig.ledger.count + 1;
    ask_many(10);
    look_for(8 * NS_PER_S);
    assert_int_equal(most_at_once, 3); /* the floor: a fifth of ten is less */
    assert_int_equal(plane_count(&p, CLUSTER_upstream_rq_retry), 6); /* twice each */
    assert_int_equal(plane_count(&p, CLUSTER_upstream_rq_retry_overflow), 7);
    assert_int_equal(plane_count(&p, CLUSTER_retry_places_refused), 7);
    assert_true(said("trafficPolicy.retryBudget 3 is reached, the failure is passed on, UO"));
    all_are_the_hosts_own(first, 10);
    plane_end(&p);
}

static void ask_again(struct client *c, uint64_t id)
{
    (void)id;

    answered++;
    if (c->owner != NULL)
        (void)plane_get(&p);
}

/* A request is one request, at its first attempt and at its retries: the share never grows by them.
 */
static void c059_c_of_a_hundred_at_once_never_more_than_twenty_are_retries(void **state)
{
    (void)state;

    c059_settings();
    go(NS_PER_S, 503);
    p.rig.client.conns_max = 200;
    p.rig.client.owner = &p;
    p.rig.client.done = ask_again;
    for (unsigned i = 0; i < 100; i++) {
        plane_get(&p);
        plane_run(&p, 10 * NS_PER_MS);
    }
    look_for(20 * NS_PER_S);
    assert_in_range(most_at_once, 15, 20);
    assert_true(answered > 1000);
    p.rig.client.owner = NULL;
    plane_run(&p, 10 * NS_PER_S);
    assert_int_equal(retries_now(), 0);
    plane_end(&p);
}

/* A place among the retries is held while the retry waits, too. */
static void c059_a_retry_in_back_off_is_one_in_flight(void **state)
{
    (void)state;

    c059_settings();
    p.settings.retry.policy.base = 4 * NS_PER_S;
    p.settings.retry.policy.max = 4 * NS_PER_S;
    go(10 * NS_PER_MS, 503);
    ask_many(10);
    plane_run(&p, 50 * NS_PER_MS);
    assert_in_range(retries_now(), 2, 3); /* nothing is sent any more, and still they count */
    assert_true(plane_count(&p, CLUSTER_upstream_rq_retry_overflow) >= 7);
    assert_int_equal(limit_used(&rig_state(&p.rig)->requests), 0);
    plane_run(&p, 20 * NS_PER_S);
    plane_end(&p);
}

/* Floor and share add up, whatever the traffic: 1000 + 100 + 10 a second, and once the capacity. */
static void c059_d_by_tokens_attempts_are_bounded_each_second(void **state)
{
    (void)state;

    c059_settings();
    p.settings.cluster.retry_share.given = false;
    p.settings.cluster.limits.max_retries = 1000;
    p.settings.cluster.retry_budget =
        (struct retry_budget_config){.earn_permille = 100, .floor_per_s = 10, .capacity = 10};
    go(NS_PER_MS, 503);
    for (unsigned second = 1; second <= 10; second++) {
        plane_traffic(&p, 1000, NS_PER_MS);
        assert_in_range(plane_count(&p, CLUSTER_upstream_rq_total), 1085 * second,
                        1110 * second + 10);
    }
    plane_run(&p, 2 * NS_PER_S);
    assert_int_equal(plane_answered(&p, 5), 10000);
    assert_true(plane_count(&p, CLUSTER_upstream_rq_retry) >= 1000);
    assert_true(plane_count(&p, CLUSTER_upstream_rq_retry_overflow) > 8000);
    assert_true(said("resilience.retryBudget is reached"));
    assert_false(said("maxRetries"));
    plane_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c055_connections_make_wait_and_what_may_not_wait_fails_at_once),
        cmocka_unit_test(c055_requests_beyond_the_limit_fail_at_once),
        cmocka_unit_test(c059_a_a_single_request_has_its_retries),
        cmocka_unit_test(c059_b_of_ten_at_once_three_are_retried),
        cmocka_unit_test(c059_c_of_a_hundred_at_once_never_more_than_twenty_are_retries),
        cmocka_unit_test(c059_a_retry_in_back_off_is_one_in_flight),
        cmocka_unit_test(c059_d_by_tokens_attempts_are_bounded_each_second),
    };

    return cmocka_run_group_tests_name("cases_limits", tests, NULL, NULL);
}
