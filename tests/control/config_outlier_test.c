/* SPDX-License-Identifier: Apache-2.0 */
/* resilience.outlier, .semantics and .differences; outlierDetection as Istio means it. */
#include "control/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define CLUSTER                                                                                    \
    "listeners:\n- {name: web, listen: 127.0.0.1:80, routes: [{cluster: a}]}\n"                    \
    "clusters:\n- name: a\n  endpoints: [{address: 127.0.0.1:1}]\n"

static int open_text(struct config_loaded *l, const char *text, struct config_errors *e)
{
    const struct config_source source = {BYTES("f.yaml"), bytes_of(text)};

    config_errors_init(e);
    return config_open_texts(l, &source, 1, e);
}

static struct snapshot *load_following(const char *text, enum config_follow whom)
{
    struct config_errors e;
    struct config_loaded l;
    struct snapshot *s = NULL;

    assert_int_equal(open_text(&l, text, &e), CONFIG_OK);
    config_follow(&l, whom);
    assert_int_equal(config_compile(&l, NULL, &s), CONFIG_OK);
    config_close(&l);
    config_errors_release(&e);
    return s;
}

static struct snapshot *load(const char *text)
{
    return load_following(text, FOLLOW_FILES);
}

static void nobody_is_followed_unless_it_is_said(void **state)
{
    struct snapshot *s = load(CLUSTER);
    const struct cluster *c = &s->clusters[0];
    (void)state;

    assert_true(c->differences == DIFFERENCES_FIREBREAK);
    assert_true(c->outlier.differences == DIFFERENCES_FIREBREAK);
    assert_true(c->connect_failover);
    assert_int_equal(s->outlier_event_log.len, 0);
    snapshot_drop(s);
}

static void semantics_takes_all_and_single_keys_take_back(void **state)
{
    struct snapshot *s = load(CLUSTER "  resilience:\n    semantics: envoy\n"
                                      "    differences: {lastHostEjected: firebreak}\n");
    const struct cluster *c = &s->clusters[0];
    (void)state;

    for (unsigned i = 0; i < DIFFERENCE_COUNT; i++) {
        assert_int_equal(as_envoy(c->differences, (enum difference)i),
                         i != DIFFERENCE_LAST_HOST_EJECTED);
        assert_int_equal(as_envoy(c->outlier.differences, (enum difference)i),
                         i != DIFFERENCE_LAST_HOST_EJECTED);
    }
    assert_false(c->connect_failover);
    snapshot_drop(s);
    s = load(CLUSTER "  resilience: {semantics: envoy, connectFailover: on}\n");
    assert_true(s->clusters[0].connect_failover);
    snapshot_drop(s);
}

static void each_difference_has_its_key(void **state)
{
    (void)state;

    for (unsigned i = 0; i < DIFFERENCE_COUNT; i++) {
        char text[600];
        struct snapshot *s;

        snprintf(text, sizeof(text), CLUSTER "  resilience: {differences: {%s: envoy}}\n",
                 difference_info[i].key);
        s = load(text);
        assert_true(s->clusters[0].differences == (difference_set)1 << i);
        assert_int_equal(s->clusters[0].connect_failover, i != DIFFERENCE_FAILED_CONNECT_STAYS);
        snapshot_drop(s);
    }
}

static void a_run_may_follow_somebody_whatever_the_file_says(void **state)
{
    static const char text[] = CLUSTER "  resilience:\n    semantics: firebreak\n"
                                       "    differences: {reejectionSlower: firebreak}\n";
    struct snapshot *s = load_following(text, FOLLOW_ENVOY);
    (void)state;

    assert_true(s->clusters[0].differences ==
                difference_put(DIFFERENCES_ENVOY, DIFFERENCE_REEJECTION_SLOWER, false));
    snapshot_drop(s);
    s = load_following(CLUSTER "  resilience: {semantics: envoy}\n", FOLLOW_FIREBREAK);
    assert_true(s->clusters[0].differences == DIFFERENCES_FIREBREAK);
    snapshot_drop(s);
}

static void envoys_words_are_taken(void **state)
{
    struct snapshot *s =
        load("outlierEventLog: /var/log/ejections\n" CLUSTER
             "  trafficPolicy: {outlierDetection: {consecutiveGatewayErrors: 3, "
             "outlierDetectionHttpErrorCodes: [503, 429]}}\n"
             "  resilience:\n    outlier:\n"
             "      successRate: {minimumHosts: 3, requestVolume: 10, stdevFactor: 1500}\n"
             "      failurePercentage: {enforcing: 40, threshold: 60, minimumHosts: 2, "
             "requestVolume: 7, enforcingLocalOrigin: 30}\n"
             "      maxEjectionTime: 10m\n      maxEjectionTimeJitter: 2s\n"
             "      enforcingConsecutive5xx: 50\n      alwaysEjectOneHost: on\n");
    const struct outlier_config *c = &s->clusters[0].outlier;
    (void)state;

    assert_int_equal(c->enforcing[OUTLIER_SUCCESS_RATE], 100);
    assert_int_equal(c->enforcing[OUTLIER_SUCCESS_RATE_LOCAL_ORIGIN], 100);
    assert_int_equal(c->enforcing[OUTLIER_FAILURE_PERCENTAGE], 40);
    assert_int_equal(c->enforcing[OUTLIER_FAILURE_PERCENTAGE_LOCAL_ORIGIN], 30);
    assert_int_equal(c->enforcing[OUTLIER_CONSECUTIVE_5XX], 50);
    assert_int_equal(c->enforcing[OUTLIER_CONSECUTIVE_GATEWAY], 100);
    assert_int_equal(c->consecutive_gateway, 3);
    assert_int_equal(c->rates.success_hosts, 3);
    assert_int_equal(c->rates.success_volume, 10);
    assert_int_equal(c->rates.success_factor, 1500);
    assert_int_equal(c->rates.failure_percent, 60);
    assert_int_equal(c->rates.failure_hosts, 2);
    assert_int_equal(c->rates.failure_volume, 7);
    assert_int_equal(c->max_ejection, 600 * NS_PER_S);
    assert_int_equal(c->jitter, 2 * NS_PER_S);
    assert_true(c->always_eject_one);
    assert_true(c->codes.given);
    assert_true(bytes_equal(s->outlier_event_log, BYTES("/var/log/ejections")));
    snapshot_drop(s);
}

static void istios_words_eject_by_runs_alone(void **state)
{
    struct snapshot *s = load(CLUSTER "  trafficPolicy: {outlierDetection: {}}\n");
    const struct outlier_config *c = &s->clusters[0].outlier;
    (void)state;

    assert_int_equal(c->enforcing[OUTLIER_CONSECUTIVE_5XX], 100);
    assert_int_equal(c->consecutive_gateway, 5);
    assert_int_equal(c->enforcing[OUTLIER_CONSECUTIVE_GATEWAY], 0);
    assert_false(outlier_rates_eject(c));
    assert_int_equal(c->rates.failure_percent, 85);
    snapshot_drop(s);
}

static void what_is_wrong_is_said_at_its_place(void **state)
{
    static const struct {
        const char *text;
        uint32_t line, column;
        const char *message;
    } rows[] = {
        {CLUSTER "  resilience: {semantics: istio}\n", 6, 27, "firebreak or envoy; not 'istio'"},
        {CLUSTER "  resilience: {differences: {lastHostEjcted: envoy}}\n", 6, 30,
         "did you mean 'lastHostEjected'?"},
        {CLUSTER "  resilience: {outlier: {maxEjectionTime: 5s}}\n", 6, 43,
         "maxEjectionTime cannot be smaller than baseEjectionTime, which is 30s"},
        {CLUSTER "  resilience: {outlier: {failurePercentage: {threshold: 50}}}\n", 6, 0,
         "enforcing"},
        {CLUSTER "  resilience: {outlier: {successRate: {enforcing: 101}}}\n", 6, 0, "100"},
        {CLUSTER "  trafficPolicy: {outlierDetection: {outlierDetectionHttpErrorCodes: [600]}}\n",
         6, 71, "an error code is a status from 100 to 599, not '600'"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct config_errors e;
        struct config_loaded l;
        struct snapshot *s = NULL;
        char message[600];

        if (open_text(&l, rows[i].text, &e) == CONFIG_OK)
            assert_int_equal(config_compile(&l, NULL, &s), CONFIG_INVALID);
        assert_null(s);
        assert_int_equal(e.count, 1);
        snprintf(message, sizeof(message), "%.*s", (int)e.at[0].message.len,
                 (const char *)e.at[0].message.data);
        if (strstr(message, rows[i].message) == NULL || e.at[0].line != rows[i].line ||
            (rows[i].column != 0 && e.at[0].column != rows[i].column))
            fail_msg("row %zu: %u:%u: %s", i, e.at[0].line, e.at[0].column, message);
        config_close(&l);
        config_errors_release(&e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_is_followed_unless_it_is_said),
        cmocka_unit_test(semantics_takes_all_and_single_keys_take_back),
        cmocka_unit_test(each_difference_has_its_key),
        cmocka_unit_test(a_run_may_follow_somebody_whatever_the_file_says),
        cmocka_unit_test(envoys_words_are_taken),
        cmocka_unit_test(istios_words_eject_by_runs_alone),
        cmocka_unit_test(what_is_wrong_is_said_at_its_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
