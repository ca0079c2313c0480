/* SPDX-License-Identifier: Apache-2.0 */
/* resilience.rules: defaults, what signals take, and where rules act. */
#include "control/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "control/loaded.h"

#include "policy/detect_rules.h"

#define CLUSTER                                                                                    \
    "listeners:\n- {name: web, listen: 127.0.0.1:80, routes: [{cluster: a}]}\n"                    \
    "clusters:\n- name: a\n  endpoints: [{address: 127.0.0.1:1}]\n"
#define OWN(keys)  CLUSTER "  resilience: {" keys "}\n"
#define RULE(keys) OWN("profile: rules, rules: [{" keys "}]")

static struct rule one(const char *text)
{
    struct snapshot *s = load(text);
    struct rule r;

    assert_int_equal(s->clusters[0].detection.rule_count, 1);
    r = s->clusters[0].detection.rules[0];
    snapshot_drop(s);
    return r;
}

static void assert_same(const struct rule *a, const struct rule *b)
{
    assert_int_equal(a->signal, b->signal);
    assert_int_equal(a->at_least, b->at_least);
    assert_int_equal(a->above, b->above);
    assert_true(a->delay == b->delay && a->within == b->within);
    assert_int_equal(a->windows, b->windows);
    assert_int_equal(a->min_requests, b->min_requests);
    assert_int_equal(a->with, b->with);
}

static void left_out_they_are_those_of_the_reference(void **state)
{
    static const char *const written[RULES_DEFAULT_COUNT] = {
        RULE("signal: consecutive5xx, atLeast: 5, within: 30s"),
        RULE("signal: timeoutOrReset, above: 20%, within: 30s, minRequests: 20"),
        RULE("signal: p99Multiple, above: 2.5, windows: 3, within: 10s, minRequests: 100, with: "
             "timeoutOrReset"),
        RULE("signal: localOrigin, atLeast: 3"),
        RULE("signal: connectFailure, atLeast: 3, within: 10s"),
    };
    struct snapshot *s = load(CLUSTER);
    (void)state;

    assert_int_equal(s->clusters[0].detection.rule_count, RULES_DEFAULT_COUNT);
    for (size_t i = 0; i < RULES_DEFAULT_COUNT; i++) {
        struct rule r = one(written[i]);

        assert_same(&r, &s->clusters[0].detection.rules[i]);
    }
    snapshot_drop(s);
}

static void an_empty_list_is_none(void **state)
{
    struct snapshot *s = load(OWN("profile: rules, rules: []"));
    (void)state;

    assert_int_equal(s->clusters[0].detection.rule_count, 0);
    snapshot_drop(s);
}

static void what_is_left_out_of_a_rule_depends_on_its_signal(void **state)
{
    struct rule r = one(RULE("signal: error, above: 12.5%"));
    (void)state;

    assert_same(&r, &(struct rule){.signal = RULE_ERROR,
                                   .above = 125,
                                   .within = 30 * NS_PER_S,
                                   .min_requests = 20,
                                   .with = RULE_WITH_NONE});
    r = one(RULE("signal: p95Multiple, above: 1.75, with: refused"));
    assert_same(&r, &(struct rule){.signal = RULE_P95,
                                   .above = 1750,
                                   .within = 10 * NS_PER_S,
                                   .windows = 3,
                                   .min_requests = 20,
                                   .with = RULE_REFUSED});
    r = one(RULE("signal: p99Multiple, above: 3"));
    assert_int_equal(r.min_requests, 100);
    r = one(RULE("signal: queueDelay, above: 1.5s, within: 1m, minRequests: 7"));
    assert_same(&r, &(struct rule){.signal = RULE_QUEUE_DELAY,
                                   .delay = 1500 * NS_PER_MS,
                                   .within = 60 * NS_PER_S,
                                   .min_requests = 7,
                                   .with = RULE_WITH_NONE});
}

static bool act(const char *text)
{
    struct snapshot *s = load(text);
    bool acts = s->clusters[0].detection.rules_act;

    snapshot_drop(s);
    return acts;
}

static void they_act_with_profile_rules_and_beside_adaptive_where_written(void **state)
{
#define ERROR_RULE "rules: [{signal: error, above: 5%}]"
    (void)state;
    assert_true(act(OWN("profile: rules")));
    assert_true(act(OWN("profile: rules, " ERROR_RULE)));
    assert_true(act(OWN("profile: adaptive, " ERROR_RULE)));
    assert_false(act(OWN("profile: adaptive")));
    assert_false(act(OWN(ERROR_RULE)));
    assert_false(act(CLUSTER));
}

/* --- what is wrong --- */

struct wrong {
    const char *text;
    uint32_t column;
    const char *message;
};

static void check(const struct wrong *row)
{
    const struct config_source source = {BYTES("f.yaml"), bytes_of(row->text)};
    struct config_errors e;
    struct snapshot *s = NULL;
    char said[1024];
    struct text t;

    config_errors_init(&e);
    assert_int_not_equal(config_parse(&source, 1, NULL, &e, &s), CONFIG_OK);
    text_init(&t, said, sizeof(said));
    text_put(&t, e.at[0].message);
    if (e.count != 1 || e.at[0].line != 6 || e.at[0].column != row->column ||
        strstr(text_end(&t), row->message) == NULL)
        fail_msg("%s: %u errors, %u:%u %s", row->text, e.count, e.at[0].line, e.at[0].column, said);
    config_errors_release(&e);
}

static void what_is_wrong_is_said_with_what_to_write_instead(void **state)
{
    static const struct wrong rows[] = {
        {RULE("signal: errors, above: 5%"), 49, "did you mean 'error'?"},
        {RULE("above: 5%"), 40, "'signal'"},
        {RULE("signal: error"), 40, "'signal: error' needs 'above', such as 'above: 20%'"},
        {RULE("signal: queueDelay"), 40, "needs 'above', such as 'above: 50ms'"},
        {RULE("signal: p99Multiple"), 40, "needs 'above', such as 'above: 2.5'"},
        {RULE("signal: localOrigin"), 40, "'signal: localOrigin' needs 'atLeast'"},
        {RULE("signal: localOrigin, atLeast: 33"), 71, "must be between 1 and 32"},
        {RULE("signal: localOrigin, atLeast: 3, above: 5%"), 81,
         "'above' says nothing beside 'signal: localOrigin': write 'atLeast: 5'"},
        {RULE("signal: error, above: 5%, atLeast: 3"), 76,
         "'atLeast' says nothing beside 'signal: error': write 'above' and 'minRequests'"},
        {RULE("signal: error, above: 5%, windows: 3"), 76, "write 'within'"},
        {RULE("signal: consecutive5xx, atLeast: 3, with: error"), 83, "it counts alone"},
        {RULE("signal: error, above: 5"), 63,
         "'above' of error is a share below 100% with its sign, such as 20% or 12.5%; not '5'"},
        {RULE("signal: error, above: 100%"), 63, "a share below 100%"},
        {RULE("signal: error, above: 1.25%"), 63, "a share below 100%"},
        {RULE("signal: p99Multiple, above: 1"), 69, "a number from 1.1 to 100, such as 2.5"},
        {RULE("signal: p99Multiple, above: 101"), 69, "a number from 1.1 to 100"},
        {RULE("signal: p99Multiple, above: 2x"), 69, "not '2x'"},
        {RULE("signal: queueDelay, above: 50"), 68, "a duration, such as 50ms"},
        {RULE("signal: p99Multiple, above: 2, minRequests: 99"), 85,
         "'minRequests' of p99Multiple is at least 100: of fewer it is only their slowest"},
        {RULE("signal: p95Multiple, above: 2, minRequests: 19"), 85, "is at least 20"},
        {RULE("signal: error, above: 5%, with: p99Multiple"), 73, "'with' must be"},
        {RULE("signal: error, above: 5%, within: 999ms"), 75, "must be between 1s and 1h"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check(&rows[i]);
}

static void sixteen_are_the_most(void **state)
{
    static char text[4096];
    struct text t;
    (void)state;

    for (uint32_t n = RULES_MAX; n <= RULES_MAX + 1; n++) {
        text_init(&t, text, sizeof(text));
        text_str(&t, CLUSTER "  resilience: {profile: rules, rules: [");
        for (uint32_t i = 0; i < n; i++)
            text_str(&t, "{signal: error, above: 5%}, ");
        text_str(&t, "]}\n");
        text_end(&t);
        if (n > RULES_MAX)
            check(&(struct wrong){text, 39, "at most 16 rules"});
        else
            snapshot_drop(load(text));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(left_out_they_are_those_of_the_reference),
        cmocka_unit_test(an_empty_list_is_none),
        cmocka_unit_test(what_is_left_out_of_a_rule_depends_on_its_signal),
        cmocka_unit_test(they_act_with_profile_rules_and_beside_adaptive_where_written),
        cmocka_unit_test(what_is_wrong_is_said_with_what_to_write_instead),
        cmocka_unit_test(sixteen_are_the_most),
    };

    return cmocka_run_group_tests_name("config_rules", tests, NULL, NULL);
}
