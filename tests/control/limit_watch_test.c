/* SPDX-License-Identifier: Apache-2.0 */
/* A limit at work is told once an episode. */
#include "control/limit_watch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct heard {
    struct log log;
    unsigned lines;
    char last[512];
};

__attribute__((format(printf, 4, 0))) static void
hear(struct log *l, enum log_level level, const char *event, const char *format, va_list args)
{
    struct heard *h = (struct heard *)(void *)l;
    int n = snprintf(h->last, sizeof(h->last), "%s ", event);
    (void)level;

    h->lines++;
    vsnprintf(h->last + n, sizeof(h->last) - (size_t)n, format, args);
}

static struct heard heard;
static struct cluster cluster;
static struct snapshot snapshot;

static int make(void **state)
{
    (void)state;
    heard = (struct heard){.log = {.write = hear}};
    cluster = (struct cluster){
        .name = BYTES("c"), .limits = default_limits, .state = cluster_state_create(1, 2)};
    cluster.limits.max_connections = 2;
    cluster.limits.max_pending = 3;
    snapshot = (struct snapshot){.cluster_count = 1, .clusters = &cluster};
    return cluster.state == NULL;
}

static int end(void **state)
{
    (void)state;
    cluster_state_drop(cluster.state);
    return 0;
}

static void cut(enum cluster_metric m, unsigned worker)
{
    cell_add(&cluster.state->cells[worker]->at[m], 1);
}

static void look(mono_ns seconds)
{
    limit_watch_look(&snapshot, &heard.log, seconds * NS_PER_S);
}

static void nothing_is_said_while_nothing_is_cut(void **state)
{
    (void)state;

    look(1);
    look(100);
    assert_int_equal(heard.lines, 0);
}

static void an_episode_is_told_at_its_begin_and_at_its_end(void **state)
{
    (void)state;

    cut(CLUSTER_upstream_rq_pending_overflow, 0);
    cut(CLUSTER_upstream_rq_pending_overflow, 1);
    for (unsigned i = 0; i < 3; i++)
        assert_true(limit_take(&cluster.state->pending, 3));
    look(1);
    assert_int_equal(heard.lines, 1);
    assert_string_equal(heard.last,
                        "limit.reached cluster c: http1MaxPendingRequests 3 is reached, 503 UO; "
                        "now 0 connections, 3 requests waiting, 0 under way; 2 times so far");
    for (mono_ns t = 2; t < 60; t++) {
        cut(CLUSTER_upstream_rq_pending_overflow, 0);
        look(t);
    }
    look(68);
    assert_int_equal(heard.lines, 1);
    look(69);
    assert_int_equal(heard.lines, 2);
    assert_string_equal(heard.last, "limit.relieved cluster c: http1MaxPendingRequests 3 no longer "
                                    "cuts; it did 60 times");
    look(200);
    assert_int_equal(heard.lines, 2);
}

static void each_limit_has_episodes_of_its_own(void **state)
{
    (void)state;

    cut(CLUSTER_upstream_cx_overflow, 0);
    look(1);
    assert_non_null(strstr(heard.last, "maxConnections 2 is reached, requests wait"));
    cut(CLUSTER_upstream_rq_active_overflow, 0);
    look(2);
    assert_non_null(strstr(heard.last, "http2MaxRequests"));
    assert_int_equal(heard.lines, 2);
    look(11);
    assert_int_equal(heard.lines, 3);
    assert_non_null(strstr(heard.last, "maxConnections 2 no longer cuts; it did 1 times"));
}

static void after_a_reset_of_the_counters_it_goes_on_from_zero(void **state)
{
    (void)state;

    cut(CLUSTER_upstream_cx_overflow, 0);
    cut(CLUSTER_upstream_cx_overflow, 0);
    look(1);
    atomic_store(&cluster.state->cells[0]->at[CLUSTER_upstream_cx_overflow], 0);
    look(2);
    assert_int_equal(heard.lines, 1);
    cut(CLUSTER_upstream_cx_overflow, 0);
    look(3);
    assert_int_equal(heard.lines, 1);
    look(13);
    assert_non_null(strstr(heard.last, "it did 1 times"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_is_said_while_nothing_is_cut, make, end),
        cmocka_unit_test_setup_teardown(an_episode_is_told_at_its_begin_and_at_its_end, make, end),
        cmocka_unit_test_setup_teardown(after_a_reset_of_the_counters_it_goes_on_from_zero, make,
                                        end),
        cmocka_unit_test_setup_teardown(each_limit_has_episodes_of_its_own, make, end),
    };

    return cmocka_run_group_tests_name("limit_watch", tests, NULL, NULL);
}
