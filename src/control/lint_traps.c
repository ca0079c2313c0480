/* SPDX-License-Identifier: Apache-2.0 */
/* The table. docs/checks.md has a section for each row; a test compares. */
#include "control/lint_trap.h"

const struct lint_trap lint_traps[] = {
    {"istio-says", LINT_FILE, LINT_WARNING, NULL}, /* the loader finds it: lint_run */

    {"admin-exposed", LINT_FILE, LINT_DANGER, lint_admin_exposed},

    {"timeout-absent", LINT_ROUTE, LINT_WARNING, lint_timeout_absent},
    {"timeout-none", LINT_ROUTE, LINT_DANGER, lint_timeout_none},
    {"timeout-over-p99", LINT_ROUTE, LINT_WARNING, lint_timeout_over_p99},
    {"timeout-under-p99", LINT_ROUTE, LINT_WARNING, lint_timeout_under_p99},
    {"per-try-never-fires", LINT_ROUTE, LINT_WARNING, lint_per_try_never_fires},
    {"connect-never-fires", LINT_ROUTE, LINT_WARNING, lint_connect_never_fires},
    {"queue-timeout-never-fires", LINT_ROUTE, LINT_WARNING, lint_queue_never_over},
    {"retries-without-budget", LINT_ROUTE, LINT_WARNING, lint_retries_without_budget},
    {"retries-more-than-one", LINT_ROUTE, LINT_WARNING, lint_retries_more_than_one},
    {"retries-do-not-fit", LINT_ROUTE, LINT_WARNING, lint_retries_do_not_fit},
    {"retries-without-per-try", LINT_ROUTE, LINT_WARNING, lint_retries_without_per_try},
    {"route-never-reached", LINT_ROUTE, LINT_WARNING, lint_route_never_reached},

    {"cap-empties-cluster", LINT_CLUSTER, LINT_DANGER, lint_cap_empties_cluster},
    {"cap-rounds-to-nobody", LINT_CLUSTER, LINT_WARNING, lint_cap_rounds_to_nobody},
    {"cap-half-of-few", LINT_CLUSTER, LINT_DANGER, lint_cap_half_of_few},
    {"cap-without-limit", LINT_CLUSTER, LINT_DANGER, lint_cap_without_limit},
    {"rates-too-few-hosts", LINT_CLUSTER, LINT_WARNING, lint_rates_too_few_hosts},
    {"success-rate-blind", LINT_CLUSTER, LINT_WARNING, lint_success_rate_blind},
    {"min-health-zero", LINT_CLUSTER, LINT_ADVICE, lint_min_health_zero},
    {"min-health-cannot-act", LINT_CLUSTER, LINT_WARNING, lint_min_health_cannot_act},
    {"min-health-late", LINT_CLUSTER, LINT_ADVICE, lint_min_health_late},
    {"few-peers", LINT_CLUSTER, LINT_ADVICE, lint_few_peers},
    {"ejection-never-grows", LINT_CLUSTER, LINT_ADVICE, lint_ejection_never_grows},
    {"interval-over-ejection", LINT_CLUSTER, LINT_WARNING, lint_interval_over_ejection},
    {"gateway-blind", LINT_CLUSTER, LINT_WARNING, lint_gateway_blind},
    {"gateway-never-first", LINT_CLUSTER, LINT_WARNING, lint_gateway_never_first},
    {"only-local-ejects", LINT_CLUSTER, LINT_WARNING, lint_only_local_ejects},
    {"local-origin-escaped", LINT_CLUSTER, LINT_WARNING, lint_local_origin_escaped},
    {"no-rule", LINT_CLUSTER, LINT_WARNING, lint_no_rule},
    {"one-error-ejects", LINT_CLUSTER, LINT_DANGER, lint_one_error_ejects},
    {"zero-cap", LINT_CLUSTER, LINT_WARNING, lint_zero_cap},
    {"zero-local-origin", LINT_CLUSTER, LINT_WARNING, lint_zero_local_origin},

    {"zero-limit", LINT_CLUSTER, LINT_DANGER, lint_zero_limit},
    {"connections-not-requests", LINT_CLUSTER, LINT_WARNING, lint_connections_not_requests},
    {"waiting-unbounded", LINT_CLUSTER, LINT_DANGER, lint_waiting_unbounded},
    {"queue-below-connections", LINT_CLUSTER, LINT_WARNING, lint_queue_below_connections},
    {"no-keep-alive", LINT_CLUSTER, LINT_ADVICE, lint_no_keep_alive},
    {"retry-budget-too-wide", LINT_CLUSTER, LINT_DANGER, lint_budget_too_wide},
    {"retry-budget-never-pays", LINT_CLUSTER, LINT_WARNING, lint_budget_never_pays},
    {"limits-without-max-retries", LINT_CLUSTER, LINT_WARNING, lint_limits_without_max_retries},
    {"ejection-without-retry-budget", LINT_CLUSTER, LINT_WARNING, lint_ejection_without_budget},
    {"retry-budget-without-ejection", LINT_CLUSTER, LINT_WARNING, lint_budget_without_ejection},
    {"pair-changed-by-half", LINT_CLUSTER, LINT_WARNING, lint_pair_changed_by_half},

    {"port-drops-blocks", LINT_CLUSTER, LINT_WARNING, lint_port_drops_blocks},
    {"subset-drops-blocks", LINT_CLUSTER, LINT_WARNING, lint_subset_drops_blocks},
    {"cluster-unused", LINT_CLUSTER, LINT_WARNING, lint_cluster_unused},
    {.id = NULL},
};
