/* SPDX-License-Identifier: Apache-2.0 */
/* Detection as configured: its keys, their defaults, and whose word holds beside outlierDetection.
 */
#include "control/config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "control/loaded.h"

#define CLUSTER                                                                                    \
    "listeners:\n- {name: web, listen: 127.0.0.1:80, routes: [{cluster: a}]}\n"                    \
    "clusters:\n- name: a\n  endpoints: [{address: 127.0.0.1:1}]\n"
#define OWN(keys)        CLUSTER "  resilience: {" keys "}\n"
#define BLOCK(keys)      CLUSTER "  trafficPolicy: {outlierDetection: {" keys "}}\n"
#define BOTH(block, own) BLOCK(block) "  resilience: {" own "}\n"
#define ROUTE(keys)                                                                                \
    "listeners:\n- {name: web, listen: 127.0.0.1:80, routes: [{cluster: a, " keys "}]}\n"          \
    "clusters:\n- name: a\n  endpoints: [{address: 127.0.0.1:1}]\n"

/* A copy: there is nothing in it that the snapshot owns. */
static struct cluster cluster_of(const char *text)
{
    struct snapshot *s = load(text);
    struct cluster c = s->clusters[0];

    snapshot_drop(s);
    return c;
}

static void assert_near(double a, double b)
{
    if (fabs(a - b) > 1e-9 * fmax(1, fabs(b)))
        fail_msg("%.12g is not %.12g", a, b);
}

static void assert_same_life(const struct life_config *a, const struct life_config *b)
{
    assert_int_equal(a->quick, b->quick);
    assert_true(a->after == b->after && a->base == b->base && a->max == b->max);
    assert_int_equal(a->probes, b->probes);
    assert_int_equal(a->successes, b->successes);
    assert_true(a->ramp == b->ramp && a->repeated_for == b->repeated_for);
    assert_int_equal(a->least_share, b->least_share);
    assert_int_equal(a->times_per_hour, b->times_per_hour);
}

static void without_a_word_the_starter_protects(void **state)
{
    struct cluster c = cluster_of(CLUSTER);
    (void)state;

    assert_true(c.detection.on);
    assert_int_equal(c.detection.mode, DETECTION_ENFORCE);
    assert_int_equal(c.detection.profile, PROFILE_STARTER);
    assert_true(c.detection.detect.latency && c.detection.detect.errors &&
                c.detection.detect.connections);
    assert_near(c.detection.detect.threshold, 11);
    assert_near(c.detection.max_load, 0.75);
    assert_same_life(&c.detection.life, &default_detection.life);
    assert_int_equal(c.outlier.max_ejection_percent, 20);
    assert_true(c.outlier.return_on_proof);
    assert_true(c.outlier.base_ejection == 30 * NS_PER_S);
    assert_true(c.outlier.max_ejection == 300 * NS_PER_S);
    assert_int_equal(c.outlier.enforcing[OUTLIER_CONSECUTIVE_5XX], 100);
}

static void every_key_goes_where_it_belongs(void **state)
{
    struct cluster c = cluster_of(
        OWN("profile: adaptive, detect: {latency: off, errors: off, connections: off, falseAlarms: "
            "2 per day}, ejection: {cap: 30%, base: 10s, max: 2m}, readmit: {after: 1s, probes: 2, "
            "successes: 5, ramp: 4s}, capacity: {maxLoad: 62.5%}, escalate: {repeatedFor: 7m, "
            "timesPerHour: 4}"));
    const struct life_config life = {.quick = true,
                                     .after = NS_PER_S,
                                     .base = 10 * NS_PER_S,
                                     .max = 120 * NS_PER_S,
                                     .probes = 2,
                                     .successes = 5,
                                     .ramp = 4 * NS_PER_S,
                                     .least_share = 50,
                                     .repeated_for = 420 * NS_PER_S,
                                     .times_per_hour = 4};
    (void)state;

    assert_false(c.detection.detect.latency || c.detection.detect.errors ||
                 c.detection.detect.connections);
    assert_near(c.detection.detect.threshold, detection_threshold(14, 200));
    assert_near(c.detection.max_load, 0.625);
    assert_same_life(&c.detection.life, &life);
    assert_int_equal(c.outlier.max_ejection_percent, 30);
    assert_true(c.outlier.base_ejection == 10 * NS_PER_S);
    assert_true(c.outlier.max_ejection == 120 * NS_PER_S);
}

static void each_line_is_switched_alone(void **state)
{
    struct cluster latency = cluster_of(OWN("detect: {latency: off}"));
    struct cluster errors = cluster_of(OWN("detect: {errors: off}"));
    struct cluster connections = cluster_of(OWN("detect: {connections: off}"));
    (void)state;

    assert_true(!latency.detection.detect.latency && latency.detection.detect.errors &&
                latency.detection.detect.connections);
    assert_true(errors.detection.detect.latency && !errors.detection.detect.errors &&
                errors.detection.detect.connections);
    assert_true(connections.detection.detect.latency && connections.detection.detect.errors &&
                !connections.detection.detect.connections);
}

static void the_threshold_is_siegmunds(void **state)
{
    struct cluster weekly = cluster_of(OWN("detect: {falseAlarms: 1 per week}"));
    struct cluster daily = cluster_of(OWN("detect: {falseAlarms: 1 per day}"));
    (void)state;

    /* detection.md B17: 20 hosts of 10 a second, one a week: 1.2e8 samples, h = 16.7 */
    assert_true(fabs(weekly.detection.detect.threshold - 16.75) < 0.01);
    assert_near(weekly.detection.detect.threshold - daily.detection.detect.threshold, log(7));
    assert_near(detection_false_alarms(weekly.detection.detect.threshold, 200), 1);
    assert_true(fabs(detection_false_alarms(DETECT_THRESHOLD, 200) / 7 - 45) < 0.1);
    for (double n = 1; n <= 700; n++)
        assert_near(detection_false_alarms(detection_threshold(n, 200), 200), n);
    assert_near(detection_threshold(1, 2000) - detection_threshold(1, 200), log(10));
}

static void a_word_of_none_means_never(void **state)
{
    struct cluster c = cluster_of(OWN("escalate: {repeatedFor: none, timesPerHour: none}"));
    (void)state;

    assert_true(c.detection.life.repeated_for == MONO_NEVER);
    assert_int_equal(c.detection.life.times_per_hour, 0);
}

static void a_long_base_is_its_own_maximum(void **state)
{
    struct cluster c = cluster_of(OWN("ejection: {base: 10m}"));
    (void)state;

    assert_true(c.detection.life.base == 600 * NS_PER_S);
    assert_true(c.detection.life.max == 600 * NS_PER_S);
}

/* --- beside outlierDetection --- */

static void a_rule_alone_is_left_as_istio_means_it(void **state)
{
    struct cluster c = cluster_of(BLOCK("maxEjectionPercent: 50, baseEjectionTime: 7s"));
    (void)state;

    assert_int_equal(c.detection.mode, DETECTION_OBSERVE);
    assert_false(c.outlier.return_on_proof);
    assert_int_equal(c.outlier.max_ejection_percent, 50);
    assert_true(c.outlier.base_ejection == 7 * NS_PER_S);
    assert_int_equal(c.outlier.enforcing[OUTLIER_CONSECUTIVE_5XX], 100);
}

static void a_rule_alone_takes_a_stricter_cap_and_nothing_else(void **state)
{
    struct cluster c = cluster_of(
        BOTH("maxEjectionPercent: 50, baseEjectionTime: 7s", "ejection: {cap: 30%, base: 9s}"));
    (void)state;

    assert_int_equal(c.detection.mode, DETECTION_OBSERVE);
    assert_int_equal(c.outlier.max_ejection_percent, 30);
    assert_true(c.outlier.base_ejection == 7 * NS_PER_S);
}

static void the_stricter_cap_holds(void **state)
{
    struct cluster of_rule =
        cluster_of(BOTH("maxEjectionPercent: 10", "profile: adaptive, ejection: {cap: 30%}"));
    struct cluster of_own =
        cluster_of(BOTH("maxEjectionPercent: 50", "profile: adaptive, ejection: {cap: 30%}"));
    struct cluster unsaid = cluster_of(BOTH("maxEjectionPercent: 50", "profile: adaptive"));
    (void)state;

    assert_int_equal(of_rule.outlier.max_ejection_percent, 10);
    assert_int_equal(of_own.outlier.max_ejection_percent, 30);
    assert_int_equal(unsaid.outlier.max_ejection_percent, 20);
}

static void with_a_profile_our_return_rule_holds_with_the_lengths_of_the_rule(void **state)
{
    struct cluster of_rule = cluster_of(BOTH("baseEjectionTime: 7s", "profile: starter"));
    struct cluster of_own =
        cluster_of(BOTH("baseEjectionTime: 7s", "profile: starter, ejection: {base: 9s}"));
    (void)state;

    assert_true(of_rule.outlier.return_on_proof);
    assert_true(of_rule.detection.life.base == 7 * NS_PER_S);
    assert_true(of_rule.outlier.base_ejection == 7 * NS_PER_S);
    assert_true(of_own.detection.life.base == 9 * NS_PER_S);
    assert_true(of_own.outlier.base_ejection == 9 * NS_PER_S);
}

/* --- who acts --- */

static void who_only_observes_ejects_nobody(void **state)
{
    struct cluster own = cluster_of(OWN("mode: observe, outlier: {enforcingConsecutive5xx: 100, "
                                        "successRate: {}}"));
    struct cluster rule = cluster_of(BOTH("maxEjectionPercent: 50", "mode: observe"));
    (void)state;

    assert_int_equal(own.detection.mode, DETECTION_OBSERVE);
    assert_false(own.outlier.return_on_proof);
    assert_true(own.outlier.enabled); /* what it would have done is counted */
    for (unsigned t = 0; t < OUTLIER_TRIGGER_COUNT; t++)
        assert_int_equal(own.outlier.enforcing[t], 0);
    assert_int_equal(rule.detection.mode, DETECTION_OBSERVE);
    assert_int_equal(rule.outlier.enforcing[OUTLIER_CONSECUTIVE_5XX], 100);
}

static void with_envoys_semantics_there_is_no_detection(void **state)
{
    struct cluster c = cluster_of(OWN("semantics: envoy, profile: adaptive"));
    (void)state;

    assert_false(c.detection.on);
    assert_false(c.outlier.return_on_proof);
}

/* --- routes --- */

static uint64_t large_body_of(const char *text)
{
    struct snapshot *s = load(text);
    uint64_t bytes = s->listeners[0].routes[0].large_body;

    snapshot_drop(s);
    return bytes;
}

static uint8_t class_of(const char *text)
{
    struct snapshot *s = load(text);
    uint8_t class = s->listeners[0].routes[0].class;

    snapshot_drop(s);
    return class;
}

static void a_route_without_a_class_leaves_it_to_its_requests(void **state)
{
    (void)state;

    assert_int_equal(class_of(CLUSTER), CLASS_BY_REQUEST);
    assert_int_equal(class_of(ROUTE("class: write")), CLASS_WRITE);
    assert_int_equal(class_of(ROUTE("class: search")), CLASS_NAMED_FIRST);
}

static void a_route_says_from_where_a_body_is_large(void **state)
{
    (void)state;

    assert_true(large_body_of(CLUSTER) == 256 * 1024);
    assert_true(large_body_of(ROUTE("largeBody: 1MiB")) == 1024 * 1024);
    assert_true(large_body_of(ROUTE("largeBody: none")) == UINT64_MAX);
    assert_true(large_body_of(ROUTE("largeBody: 1KiB, class: read")) == 1024);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_word_the_starter_protects),
        cmocka_unit_test(every_key_goes_where_it_belongs),
        cmocka_unit_test(each_line_is_switched_alone),
        cmocka_unit_test(the_threshold_is_siegmunds),
        cmocka_unit_test(a_word_of_none_means_never),
        cmocka_unit_test(a_long_base_is_its_own_maximum),
        cmocka_unit_test(a_rule_alone_is_left_as_istio_means_it),
        cmocka_unit_test(a_rule_alone_takes_a_stricter_cap_and_nothing_else),
        cmocka_unit_test(the_stricter_cap_holds),
        cmocka_unit_test(with_a_profile_our_return_rule_holds_with_the_lengths_of_the_rule),
        cmocka_unit_test(who_only_observes_ejects_nobody),
        cmocka_unit_test(with_envoys_semantics_there_is_no_detection),
        cmocka_unit_test(a_route_without_a_class_leaves_it_to_its_requests),
        cmocka_unit_test(a_route_says_from_where_a_body_is_large),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
