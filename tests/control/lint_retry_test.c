/* SPDX-License-Identifier: Apache-2.0 */
/* Traps of retries and of their budget: each just sprung and just not, and nothing else beside it.
 */
#include "lint_world.h"

#define BUDGET "retryBudget: {ratio: 20%, floor: 3/s, capacity: 10}"

static void retries(void **state)
{
    static const struct border rows[] = {
        {"", {.route = "timeout: 2s, retry: {attempts: 0}"}},
        {"retries-without-budget", {.route = "timeout: 2s, retry: {attempts: 1}"}},
        {"", {.route = "timeout: 2s, retry: {attempts: 1}", .resilience = BUDGET}},
        {"retries-more-than-one",
         {.route = "timeout: 2s, retry: {attempts: 2}", .resilience = BUDGET}},
        {"retries-more-than-one",
         {.route = "timeout: 2s, match: {methods: [GET, HEAD]}, retry: {attempts: 2}",
          .resilience = BUDGET}},
        {"",
         {.route = "timeout: 2s, match: {methods: [GET, PUT]}, retry: {attempts: 2}",
          .resilience = BUDGET}},
        /* Two attempts of 1001 ms do not fit in 2 s, those of 1 s do; 2 s is one begun at the end.
         */
        {"retries-do-not-fit",
         {.route = "timeout: 2s, perTryTimeout: 1s, match: {methods: [PUT]}, retry: {attempts: 2}",
          .resilience = BUDGET}},
        {"",
         {.route = "timeout: 2s, perTryTimeout: 999ms, match: {methods: [PUT]}, "
                   "retry: {attempts: 2}",
          .resilience = BUDGET}},
        {"",
         {.route = "timeout: 2s, perTryTimeout: 1s, retry: {attempts: 1}", .resilience = BUDGET}},
        {"retries-without-per-try",
         {.route = "timeout: 2s, retry: {attempts: 1, on: [5xx]}", .resilience = BUDGET}},
        {"",
         {.route = "timeout: 2s, perTryTimeout: 1s, retry: {attempts: 1, on: [5xx]}",
          .resilience = BUDGET}},
        {"",
         {.route = "timeout: 2s, retry: {attempts: 1, on: [connect-failure]}",
          .resilience = BUDGET}},
    };
    (void)state;
    CHECK_ALL(rows);
}

static void budgets(void **state)
{
    static const struct border rows[] = {
        {"retry-budget-too-wide", {.resilience = "retryBudget: {ratio: 50.1%}"}},
        {"", {.resilience = "retryBudget: {ratio: 50%}"}},
        {"probes-without-budget retry-budget-never-pays",
         {.route = "timeout: 2s, retry: {attempts: 1}",
          .resilience = "retryBudget: {capacity: 0}"}},
        {"",
         {.route = "timeout: 2s, retry: {attempts: 1}",
          .resilience = "retryBudget: {capacity: 1}"}},
        {"probes-without-budget retry-budget-never-pays",
         {.route = "timeout: 2s, retry: {attempts: 1}",
          .resilience = "retryBudget: {ratio: 0%, floor: 0/s}"}},
        {"limits-without-max-retries",
         {.route = "timeout: 2s, retry: {attempts: 1}",
          .pool = "http: {http2MaxRequests: 9}",
          .resilience = BUDGET}},
        {"",
         {.route = "timeout: 2s, retry: {attempts: 1}",
          .pool = "http: {http2MaxRequests: 9, maxRetries: 1}",
          .resilience = BUDGET}},
        {"", {.pool = "http: {http2MaxRequests: 9}", .resilience = BUDGET}},
    };
    (void)state;
    CHECK_ALL(rows);
}

static void ejection_and_the_retry_budget_are_a_pair(void **state)
{
    static const struct border rows[] = {
        {"ejection-without-retry-budget",
         {.route = "timeout: 2s, retry: {attempts: 1}", .outlier = "maxEjectionPercent: 25"}},
        {"",
         {.route = "timeout: 2s, retry: {attempts: 1}",
          .outlier = "maxEjectionPercent: 25",
          .resilience = BUDGET}},
        {"", {.outlier = "maxEjectionPercent: 25"}},
        {"no-rule retry-budget-without-ejection",
         {.route = "timeout: 2s, retry: {attempts: 1}",
          .outlier = "consecutive5xxErrors: 0, maxEjectionPercent: 25",
          .resilience = BUDGET}},
        {"cap-rounds-to-nobody retry-budget-without-ejection",
         {.route = "timeout: 2s, retry: {attempts: 1}",
          .outlier = "maxEjectionPercent: 24",
          .resilience = "semantics: envoy, " BUDGET}},
    };
    (void)state;
    CHECK_ALL(rows);
}

static bool half(const struct parts *before, const struct parts *now)
{
    struct looked_at old, new;
    bool found;

    look_at(&old, write_yaml(before), NULL);
    look_at(&new, write_yaml(now), old.snapshot);
    found = find(&new, "pair-changed-by-half") != NULL;
    look_away(&new);
    look_away(&old);
    return found;
}

static void a_change_of_one_of_the_pair_is_told(void **state)
{
    const struct parts both = {.outlier = "maxEjectionPercent: 25", .resilience = BUDGET};
    const struct parts ejection = {.outlier = "maxEjectionPercent: 50", .resilience = BUDGET};
    const struct parts budget = {.outlier = "maxEjectionPercent: 25",
                                 .resilience = "retryBudget: {ratio: 10%}"};
    const struct parts other = {.outlier = "maxEjectionPercent: 50",
                                .resilience = "retryBudget: {ratio: 10%}"};
    (void)state;

    assert_false(half(&both, &both));
    assert_true(half(&both, &ejection));
    assert_true(half(&both, &budget));
    assert_false(half(&both, &other));
    assert_true(half(&other, &ejection));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(retries),
        cmocka_unit_test(budgets),
        cmocka_unit_test(ejection_and_the_retry_budget_are_a_pair),
        cmocka_unit_test(a_change_of_one_of_the_pair_is_told),
    };

    return cmocka_run_group_tests_name("lint_retry", tests, NULL, NULL);
}
