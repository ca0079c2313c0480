/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenarios of reference/scenarios.md at full size, in virtual time, with Istio's rule of the note
 * as it is (examples/llm-server.destinationrule.yaml): T-004-1, the HTTP/1.1 half of T-004-2,
 * T-004-7 but for active checks, T-004-8.
 */
#include "sim/plane.h"

#include <stdio.h>
#include <stdlib.h>

#include "control/config.h"
#include "model/flags.h"
#include "model/limit_rows.h"

#define EXAMPLES TESTS_DIR "/../examples/"

static struct plane p;

/* --- the rule --- */

static char file_room[2][8192];

static struct config_source read_example(unsigned i, const char *path)
{
    FILE *f = fopen(path, "rb");
    size_t len;

    assert_non_null(f);
    len = fread(file_room[i], 1, sizeof(file_room[i]), f);
    fclose(f);
    assert_true(len > 0 && len < sizeof(file_room[i]));
    return (struct config_source){bytes_of(path), bytes_from(file_room[i], len)};
}

static struct snapshot *load_rule(enum config_follow whom)
{
    const struct config_source sources[] = {
        read_example(0, EXAMPLES "llm-server.yaml"),
        read_example(1, EXAMPLES "llm-server.destinationrule.yaml"),
    };
    struct config_errors errors;
    struct config_loaded loaded;
    struct snapshot *s = NULL;

    config_errors_init(&errors);
    assert_int_equal(config_open_texts(&loaded, sources, 2, &errors), CONFIG_OK);
    config_follow(&loaded, whom);
    assert_int_equal(config_compile(&loaded, NULL, &s), CONFIG_OK);
    config_close(&loaded);
    config_errors_release(&errors);
    return s;
}

/* All that the rule says, for |hosts| hosts of the simulator; room for many requests. */
static void rule_settings(enum config_follow whom, uint32_t hosts, uint32_t workers)
{
    struct snapshot *s = load_rule(whom);
    const struct cluster *c = &s->clusters[0];

    plane_settings(&p, hosts, workers);
    p.settings.cluster = (struct cluster){
        .differences = c->differences,
        .lb = c->lb,
        .panic = c->panic,
        .limits = c->limits,
        .outlier = c->outlier,
        .retry_budget = c->retry_budget,
        .retry_share = c->retry_share,
        .connect_timeout = c->connect_timeout,
        .idle_timeout = c->idle_timeout,
        .max_connection_age = c->max_connection_age,
        .max_connection_duration = c->max_connection_duration,
        .connect_failover = c->connect_failover,
    };
    p.settings.route.timeout = s->listeners[0].routes[0].timeout;
    p.settings.descriptors = 50000;
    p.settings.memory_limit = UINT64_C(8) << 30;
    snapshot_drop(s);
    assert_int_equal(p.settings.cluster.limits.max_connections, 100);
    assert_int_equal(p.settings.cluster.limits.max_pending, 1000);
    assert_int_equal(p.settings.cluster.limits.max_requests, 10000);
    assert_int_equal(p.settings.cluster.limits.max_retries, 2);
    assert_int_equal(p.settings.cluster.connect_timeout, 300 * NS_PER_MS);
}

/* --- hosts --- */

static mono_ns release_at; /* answers are held until then */

static void hold(struct server *s, const struct wish *wish, const struct message_head *head,
                 struct answer_plan *plan)
{
    (void)wish;
    (void)head;
    plan->delay = NS_PER_MS + mono_since(s->net->world->now, release_at);
}

static void go_holding(span_ns span)
{
    plane_go(&p);
    release_at = p.rig.world.now + span;
    for (uint32_t i = 0; i < p.settings.hosts; i++)
        p.rig.servers[i].decide = hold;
}

static void burst(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        plane_get(&p);
}

static uint64_t next_id(void)
{
    return p.rig.ledger.count + 1;
}

/* How many from |first| on were refused by the proxy itself with UO, each in under 5 ms. */
static uint32_t refused_at_once(uint64_t first)
{
    uint32_t n = 0;

    for (uint64_t id = first; id < next_id(); id++) {
        const struct fact *f = plane_fact(&p, id);

        if (f->outcome == OUTCOME_PENDING)
            continue;
        plane_expect(&p, id, 503);
        assert_int_equal(f->server, NO_SERVER);
        assert_int_equal(f->record_flags, FLAG_UO);
        assert_true(f->ended - f->begun < 5 * NS_PER_MS);
        n++;
    }
    return n;
}

static bool is_open(enum limit_row_kind kind)
{
    const struct limit_row row = limit_row_of(rig_cluster(&p.rig), kind);

    return limit_row_reached(&row);
}

static struct host *host(uint32_t i)
{
    return rig_state(&p.rig)->hosts.at[i];
}

static uint64_t of_host(uint32_t i, enum endpoint_metric m)
{
    return host_state_sum(host_state_of(host(i)), m);
}

static uint64_t outlier_stat(enum outlier_metric m)
{
    return cell_read(&rig_state(&p.rig)->outlier[m]);
}

static void expect_no_evidence(void)
{
    assert_int_equal(p.laws.ejections, 0);
    assert_int_equal(outlier_stat(OUTLIER_STAT_ejections_detected_consecutive_5xx), 0);
    assert_int_equal(outlier_stat(OUTLIER_STAT_ejections_detected_consecutive_gateway_failure), 0);
    assert_int_equal(outlier_stat(OUTLIER_STAT_ejections_detected_consecutive_local_origin_failure),
                     0);
}

/* --- T-004-1 --- */

static void hundred_at_work_a_thousand_wait(uint32_t workers)
{
    uint64_t first;

    rule_settings(FOLLOW_FILES, 1, workers);
    go_holding(3 * NS_PER_S);
    burst(100);
    plane_run(&p, 100 * NS_PER_MS);
    assert_int_equal(limit_used(&rig_state(&p.rig)->connections), 100);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_rq_pending_active), 0);
    first = next_id();
    burst(1100);
    plane_run(&p, 100 * NS_PER_MS);
    assert_int_equal(refused_at_once(first), 100);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_rq_pending_active), 1000);
    assert_int_equal(limit_used(&rig_state(&p.rig)->pending), 1000);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_rq_pending_overflow), 100);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_rq_active), 100);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_cx_total), 100);
    assert_true(is_open(LIMIT_ROW_CONNECTIONS) && is_open(LIMIT_ROW_PENDING));
    assert_false(is_open(LIMIT_ROW_REQUESTS) || is_open(LIMIT_ROW_RETRIES));
    expect_no_evidence();
    plane_run(&p, 10 * NS_PER_S);
    assert_int_equal(plane_answered(&p, 2), 1100);
    assert_false(is_open(LIMIT_ROW_PENDING));
    expect_no_evidence();
    plane_end(&p);
}

static void T_004_1_hundred_at_work_a_thousand_wait_a_hundred_are_refused(void **state)
{
    (void)state;

    hundred_at_work_a_thousand_wait(1);
    hundred_at_work_a_thousand_wait(4);
}

/* |refused| of 1,200 that come at once to a proxy that has no connection yet. */
static void cold_pool(enum config_follow whom, uint32_t refused)
{
    rule_settings(whom, 1, 1);
    go_holding(3 * NS_PER_S);
    burst(1200);
    plane_run(&p, 100 * NS_PER_MS);
    assert_int_equal(refused_at_once(1), refused);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_rq_pending_overflow), refused);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_cx_total), 100);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_rq_active), 100);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_rq_pending_active), 1100 - refused);
    assert_true(is_open(LIMIT_ROW_CONNECTIONS));
    expect_no_evidence();
    plane_run(&p, 10 * NS_PER_S);
    assert_int_equal(plane_answered(&p, 2), 1200 - refused);
    plane_end(&p);
}

/* There a request that waits for its own connect is pending, too: 1,000 and no more. */
static void T_004_1_as_envoy_a_cold_pool_refuses_two_hundred(void **state)
{
    (void)state;

    cold_pool(FOLLOW_ENVOY, 200);
}

static void T_004_1_ours_refuses_a_hundred_of_a_cold_pool_as_of_a_warm_one(void **state)
{
    (void)state;

    cold_pool(FOLLOW_FIREBREAK, 100);
}

/* --- T-004-2, the half of HTTP/1.1 --- */

static void ten_thousand_and_one(uint32_t workers)
{
    uint64_t last;

    rule_settings(FOLLOW_FILES, 1, workers);
    p.settings.cluster.limits.max_connections = LIMIT_NONE;
    p.settings.cluster.limits.max_pending = LIMIT_NONE;
    go_holding(3 * NS_PER_S);
    for (unsigned i = 0; i < 10; i++) { /* no more than fit the backlogs at once */
        burst(1000);
        plane_run(&p, 20 * NS_PER_MS);
    }
    assert_int_equal(plane_count(&p, CLUSTER_upstream_rq_active), 10000);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_rq_active_overflow), 0);
    last = plane_get(&p);
    plane_run(&p, 100 * NS_PER_MS);
    assert_int_equal(refused_at_once(1), 1);
    plane_expect(&p, last, 503);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_rq_active_overflow), 1);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_rq_pending_overflow), 0);
    assert_true(is_open(LIMIT_ROW_REQUESTS));
    expect_no_evidence();
    plane_run(&p, 5 * NS_PER_S);
    assert_int_equal(plane_answered(&p, 2), 10000);
    plane_end(&p);
}

static void T_004_2_the_ten_thousand_and_first_at_once_is_refused(void **state)
{
    (void)state;

    ten_thousand_and_one(1);
    ten_thousand_and_one(4);
}

static void T_004_2_one_request_a_connection_makes_as_many_connections_as_requests(void **state)
{
    (void)state;

    rule_settings(FOLLOW_FILES, 1, 2);
    p.settings.cluster.limits.max_requests_per_connection = 1;
    plane_go(&p);
    for (unsigned i = 0; i < 10; i++) {
        burst(30);
        plane_run(&p, NS_PER_S);
    }
    assert_int_equal(plane_answered(&p, 2), 300);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_rq_total), 300);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_cx_total), 300);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_cx_max_requests), 300);
    plane_end(&p);
}

/* Each request fails at once, its retry is held. */
static void fail_then_hold(struct server *s, const struct wish *wish,
                           const struct message_head *head, struct answer_plan *plan)
{
    hold(s, wish, head, plan);
    if (plane_fact(&p, wish->id)->arrivals > 1)
        return;
    plan->delay = NS_PER_MS;
    plan->status = 503;
}

static void three_retries_at_once(uint32_t workers)
{
    uint32_t failed = 0;

    rule_settings(FOLLOW_FILES, 1, workers);
    p.settings.retry.policy.on = RETRY_ON_5XX;
    p.settings.retry.policy.attempts = 1;
    go_holding(3 * NS_PER_S);
    p.rig.servers[0].decide = fail_then_hold;
    burst(3);
    plane_run(&p, 500 * NS_PER_MS);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_rq_retry), 2);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_rq_retry_overflow), 1);
    assert_int_equal(plane_count(&p, CLUSTER_retry_budget_refused), 0);
    assert_true(is_open(LIMIT_ROW_RETRIES));
    for (uint64_t id = 1; id <= 3; id++) {
        if (plane_fact(&p, id)->outcome == OUTCOME_PENDING)
            continue;
        plane_expect(&p, id, 503);
        assert_int_equal(plane_fact(&p, id)->server, 0); /* its own failure goes on */
        assert_int_equal(plane_fact(&p, id)->record_flags, FLAG_UO);
        failed++;
    }
    assert_int_equal(failed, 1);
    plane_run(&p, 5 * NS_PER_S);
    assert_int_equal(plane_answered(&p, 2), 2);
    plane_end(&p);
}

static void T_004_2_the_third_retry_at_once_is_refused(void **state)
{
    (void)state;

    three_retries_at_once(1);
    three_retries_at_once(4);
}

/* --- T-004-7, without active checks --- */

enum death { DEAD_REFUSES, DEAD_SILENT };

/* Ten minutes without traffic: nobody notices. */
static void dead_and_idle(enum config_follow whom, enum death how)
{
    rule_settings(whom, 2, 1);
    plane_go(&p);
    if (how == DEAD_REFUSES)
        server_kill(&p.rig.servers[0], DEATH_OF_PROCESS);
    else
        server_set_road(&p.rig.servers[0], ROAD_BLACK_HOLE);
    plane_run(&p, 600 * NS_PER_S);
    assert_false(plane_out(&p, 0));
    assert_int_equal(of_host(0, ENDPOINT_rq_total) + of_host(0, ENDPOINT_cx_connect_fail), 0);
}

static void first_requests_fail_over(enum death how)
{
    dead_and_idle(FOLLOW_FILES, how);
    plane_traffic(&p, 2, NS_PER_S);
    assert_int_equal(plane_answered(&p, 2), 2);
    assert_in_range(of_host(0, ENDPOINT_cx_connect_fail), 1, 2);
    assert_int_equal(plane_count(&p, CLUSTER_connect_failover),
                     of_host(0, ENDPOINT_cx_connect_fail));
    assert_false(plane_out(&p, 0));
    plane_end(&p);
}

static void T_004_7_a_dead_idle_host_stays_in_and_its_first_request_goes_to_another(void **state)
{
    (void)state;

    first_requests_fail_over(DEAD_REFUSES);
    first_requests_fail_over(DEAD_SILENT);
}

static void first_request_fails_as_envoy(enum death how)
{
    dead_and_idle(FOLLOW_ENVOY, how);
    plane_traffic(&p, 2, NS_PER_S);
    assert_int_equal(plane_answered(&p, 2), 1);
    assert_int_equal(plane_answered(&p, 5), 1);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_rq_pending_failure_eject), 1);
    plane_end(&p);
}

static void T_004_7_as_envoy_its_first_request_fails(void **state)
{
    (void)state;

    first_request_fails_as_envoy(DEAD_REFUSES);
    first_request_fails_as_envoy(DEAD_SILENT);
}

/* On a connection that was there already the request is lost, and nothing says so before the time
 * is up. */
static void T_004_7_on_an_idle_connection_to_a_dead_host_the_first_request_fails(void **state)
{
    (void)state;

    rule_settings(FOLLOW_FILES, 2, 1);
    plane_go(&p);
    plane_traffic(&p, 2, NS_PER_S);
    server_set_road(&p.rig.servers[0], ROAD_BLACK_HOLE);
    plane_run(&p, 600 * NS_PER_S);
    assert_false(plane_out(&p, 0));
    plane_traffic(&p, 2, 20 * NS_PER_S);
    assert_int_equal(plane_answered(&p, 2), 3);
    assert_int_equal(plane_answered(&p, 5), 1);
    assert_int_equal(plane_count(&p, CLUSTER_upstream_rq_timeout), 1);
    plane_end(&p);
}

/* --- T-004-8 --- */

#define OFFERED 1200 /* 20 a second, for a minute */

struct run {
    uint64_t good;
    uint64_t attempts;
    uint64_t refused; /* by http2MaxRequests, UO */
    span_ns p99;      /* of the good */
};

static int by_length(const void *a, const void *b)
{
    const span_ns *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static void slow(struct server *s, const struct wish *wish, const struct message_head *head,
                 struct answer_plan *plan)
{
    (void)s;
    (void)wish;
    (void)head;
    plan->delay = 200 * NS_PER_MS;
}

/* What the numbers rest on: a host that is asked beyond its one worker and one place. */
static void the_host_works_on_for_who_has_left_and_forgets_who_only_waited(void **state)
{
    struct ask at_work = ASK_PLAIN, waiting = ASK_PLAIN;
    uint64_t first, served;
    (void)state;

    at_work.cancel_after = 50 * NS_PER_MS;
    waiting.cancel_after = 100 * NS_PER_MS;
    rule_settings(FOLLOW_FILES, 1, 1);
    plane_go(&p);
    slots_init(&p.rig.servers[0].slots, 1, 1);
    p.rig.servers[0].decide = slow;
    first = plane_ask(&p, &at_work);
    plane_run(&p, 10 * NS_PER_MS);
    (void)plane_ask(&p, &waiting);
    plane_run(&p, 10 * NS_PER_MS);
    burst(1);
    plane_run(&p, 130 * NS_PER_MS);
    served = plane_get(&p);
    plane_run(&p, 10 * NS_PER_MS);
    burst(1);
    plane_run(&p, NS_PER_S);
    plane_expect(&p, first + 2, 503);
    plane_expect(&p, first + 4, 503);
    plane_expect(&p, served, 200);
    assert_in_range(plane_fact(&p, served)->ended - plane_fact(&p, first)->begun, 400 * NS_PER_MS,
                    410 * NS_PER_MS);
    assert_int_equal(p.rig.servers[0].turned_away, 2);
    assert_int_equal(p.rig.servers[0].slots.busy + p.rig.servers[0].slots.waiting, 0);
    plane_end(&p);
}

/*
 * One host works on one request at a time, for 200 ms; one more may wait there, others are answered
 * 503 after 10 ms of travel. Three may be under way; retries as |settings| have them.
 */
static void slow_upstream(uint32_t retries)
{
    rule_settings(FOLLOW_FILES, 1, 1);
    p.settings.cluster.limits.max_requests = 3;
    p.settings.retry.policy.on = RETRY_ON_5XX;
    p.settings.retry.policy.attempts = retries;
}

static struct run measure(void)
{
    static span_ns took[OFFERED];
    struct run r = {.attempts = p.rig.servers[0].arrivals};

    for (uint64_t id = 1; id <= OFFERED; id++) {
        const struct fact *f = plane_fact(&p, id);

        if (f->status == 200)
            took[r.good++] = f->ended - f->begun;
    }
    assert_true(r.good > 0);
    qsort(took, r.good, sizeof(took[0]), by_length);
    r.p99 = took[r.good - 1 - r.good / 100];
    r.refused = plane_count(&p, CLUSTER_upstream_rq_active_overflow);
    return r;
}

/* The same arrivals for the same seed, whatever the proxy does. */
static struct run offer(uint64_t seed)
{
    struct rng rng;
    struct run r;

    rng_init(&rng, seed);
    plane_go(&p);
    slots_init(&p.rig.servers[0].slots, 1, 1);
    p.rig.servers[0].decide = slow;
    p.rig.servers[0].site->path.latency = 5 * NS_PER_MS;
    for (unsigned i = 0; i < OFFERED; i++) {
        plane_get(&p);
        plane_run(&p, rng_below(&rng, 100 * NS_PER_MS));
    }
    plane_run(&p, 20 * NS_PER_S);
    assert_int_equal(p.laws.ejections, 0);
    r = measure();
    plane_end(&p);
    return r;
}

static struct run offer_without_retries(uint64_t seed)
{
    slow_upstream(0);
    return offer(seed);
}

/* As where retries are switched on and nobody thought of the limits: nothing bounds them. */
static struct run offer_with_blanket_retries(uint64_t seed)
{
    slow_upstream(3);
    p.settings.cluster.limits.max_retries = LIMIT_NONE;
    cluster_follow(&p.settings.cluster, difference_put(0, DIFFERENCE_RETRY_UNBUDGETED, true));
    return offer(seed);
}

/* A tenth and one a second, beside the rule's maxRetries 2. */
static struct run offer_with_budget_and_limit(uint64_t seed)
{
    slow_upstream(3);
    p.settings.cluster.retry_budget =
        (struct retry_budget_config){.earn_permille = 100, .floor_per_s = 1, .capacity = 10};
    return offer(seed);
}

static void T_004_8_blanket_retries_surge_and_a_budget_with_the_limit_does_not(void **state)
{
    (void)state;

    for (uint64_t seed = 1; seed <= 5; seed++) {
        const struct run none = offer_without_retries(seed);
        const struct run blanket = offer_with_blanket_retries(seed);
        const struct run paired = offer_with_budget_and_limit(seed);

        print_message("no retries: %u attempts, %u UO, p99 %u ms; blanket: %u, %u, %u ms; "
                      "paired: %u, %u, %u ms\n",
                      (unsigned)none.attempts, (unsigned)none.refused,
                      (unsigned)(none.p99 / NS_PER_MS), (unsigned)blanket.attempts,
                      (unsigned)blanket.refused, (unsigned)(blanket.p99 / NS_PER_MS),
                      (unsigned)paired.attempts, (unsigned)paired.refused,
                      (unsigned)(paired.p99 / NS_PER_MS));
        assert_true(blanket.attempts > 3 * none.attempts / 2);
        assert_true(blanket.refused > 3 * none.refused);
        assert_true(blanket.p99 > 12 * none.p99 / 10);
        assert_true(paired.attempts <= 12 * none.attempts / 10);
        assert_true(paired.p99 <= 11 * none.p99 / 10);
        /* A host that is full does no more for being asked more often. */
        assert_true(blanket.good <= none.good + 5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(T_004_1_hundred_at_work_a_thousand_wait_a_hundred_are_refused),
        cmocka_unit_test(T_004_1_as_envoy_a_cold_pool_refuses_two_hundred),
        cmocka_unit_test(T_004_1_ours_refuses_a_hundred_of_a_cold_pool_as_of_a_warm_one),
        cmocka_unit_test(T_004_2_the_ten_thousand_and_first_at_once_is_refused),
        cmocka_unit_test(T_004_2_one_request_a_connection_makes_as_many_connections_as_requests),
        cmocka_unit_test(T_004_2_the_third_retry_at_once_is_refused),
        cmocka_unit_test(T_004_7_a_dead_idle_host_stays_in_and_its_first_request_goes_to_another),
        cmocka_unit_test(T_004_7_as_envoy_its_first_request_fails),
        cmocka_unit_test(T_004_7_on_an_idle_connection_to_a_dead_host_the_first_request_fails),
        cmocka_unit_test(the_host_works_on_for_who_has_left_and_forgets_who_only_waited),
        cmocka_unit_test(T_004_8_blanket_retries_surge_and_a_budget_with_the_limit_does_not),
    };

    return cmocka_run_group_tests_name("plane_scenarios", tests, NULL, NULL);
}
