/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one place for the numbers that protect where nothing is configured: `run --to`, and a
 * cluster of a file without the block in question. docs/configuration.md shows them; a test
 * compares.
 */
#include "model/snapshot.h"

/*
 * No limit of their own: the bound on the process (70 % of the descriptors, memoryLimit) stops
 * them, waiting requests too. A cold start with thousands of clients must not be refused.
 */
const struct circuit_limits default_limits = {
    .max_connections = LIMIT_NONE,
    .max_pending = LIMIT_NONE,
    .max_requests = LIMIT_NONE,
    .max_retries = 3,
    .max_requests_per_connection = 0,
    .host = {.max_connections = LIMIT_NONE, .max_pending = LIMIT_NONE, .max_requests = LIMIT_NONE},
    .queue_timeout = MONO_NEVER,
};

const struct outlier_config default_outlier = {
    .consecutive_5xx = 5,
    .consecutive_gateway = 0,
    .consecutive_local_origin = 3,
    .split = true,
    .enabled = true,
    .interval = 30 * NS_PER_S,
    .base_ejection = 30 * NS_PER_S,
    .max_ejection = 300 * NS_PER_S,
    .jitter = 0,
    .max_ejection_percent = 20,
    .enforcing = OUTLIER_ENFORCING_RUNS,
    .rates = OUTLIER_RATE_RULES,
};

const struct detection_config default_detection = {
    .on = true,
    .mode = DETECTION_ENFORCE,
    .profile = PROFILE_STARTER,
    .detect = {.threshold = DETECT_THRESHOLD, .latency = true, .errors = true, .connections = true},
    .life = {.quick = false,
             .after = 2 * NS_PER_S,
             .gap = 3 * NS_PER_S,
             .base = 30 * NS_PER_S,
             .max = 300 * NS_PER_S,
             .probes = 1,
             .successes = 20,
             .ramp = 10 * NS_PER_S,
             .least_share = 200,
             .repeated_for = 300 * NS_PER_S,
             .times_per_hour = 3},
    .rules = rules_default,
    .rule_count = RULES_DEFAULT_COUNT,
    .rules_act = false,
    .max_load = 0.75,
};

const struct panic_config default_panic = {.policy = PANIC_SERVE_ALL, .threshold = 50};

const struct retry_budget_config default_retry_budget = {
    .earn_permille = 200,
    .floor_per_s = 3,
    .capacity = 10,
};

const struct http_limits default_http_limits = {
    .head_bytes = 64 * 1024,
    .fields = 100,
    .body_bytes = UINT64_MAX,
    .buffer_bytes = 16 * 1024,
};
