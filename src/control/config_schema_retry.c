/* SPDX-License-Identifier: Apache-2.0 */
/* The rows about retries: a route's own, and the bounds of a cluster. */
#include "control/config_schema.h"

#define HOUR     (3600 * NS_PER_S)
#define INT32_OF 2147483647 /* Istio's integers are int32 */

#define AT(member) offsetof(struct config_backoff, member)
static const struct field backoff_rows[] = {
    {.name = "base",
     .kind = FIELD_SPAN,
     .at = AT(base),
     .min = NS_PER_MS,
     .max = HOUR,
     .preset = RETRY_BACKOFF_BASE,
     .help = "bound of the first wait; it doubles with each retry"},
    {.name = "max",
     .kind = FIELD_SPAN,
     .at = AT(max),
     .min = NS_PER_MS,
     .max = HOUR,
     .preset = 0,
     .preset_text = "10 times `base`",
     .help = "beyond this the bound does not grow"},
    {.name = NULL},
};
#undef AT

static const struct fields backoff_fields = {
    .name = "backoff",
    .path = "listeners[].routes[].retry.backoff",
    .size = sizeof(struct config_backoff),
    .rows = backoff_rows,
    .help = "The wait before a retry is drawn evenly between nothing and a bound. There is none "
            "where another host is at hand and little is being retried (metric `amplification`).",
};

#define AT(member) offsetof(struct config_retry, member)
static const struct field retry_rows[] = {
    {.name = "attempts",
     .kind = FIELD_COUNT,
     .at = AT(attempts),
     .max = RETRY_ATTEMPTS_MAX,
     .preset = 1,
     .help = "retries of one request, beside its first attempt; 0: none"},
    {.name = "on",
     .kind = FIELD_TEXTS,
     .at = AT(on),
     .preset_text = "connect-failure, refused-stream, reset-before-request",
     .help = "failures that are retried, by Envoy's names: `5xx`, `gateway-error`, `reset`, "
             "`reset-before-request`, `connect-failure`, `refused-stream`, `retriable-4xx`, "
             "`retriable-status-codes`, `retriable-headers`, `envoy-ratelimited`"},
    {.name = "statuses",
     .kind = FIELD_TEXTS,
     .at = AT(statuses),
     .help = "status codes that are retried (`retriable-status-codes` need not be said)"},
    {.name = "headers",
     .kind = FIELD_TEXTS,
     .at = AT(headers),
     .help = "names of headers that make an answer one to be retried, whatever its status "
             "(`retriable-headers` need not be said)"},
    {.name = "methods",
     .kind = FIELD_TEXTS,
     .at = AT(methods),
     .help =
         "methods that may reach hosts twice, beside GET, HEAD, PUT, DELETE, OPTIONS and TRACE; "
         "others are retried only while nothing was sent"},
    {.name = "backoff",
     .kind = FIELD_OBJECT,
     .at = AT(backoff),
     .of = &backoff_fields,
     .help = "the wait before a retry"},
    {.name = "bufferBytes",
     .kind = FIELD_SIZE32,
     .at = AT(buffer_bytes),
     .min = 1024,
     .max = 64u << 20,
     .preset = DEFAULT_RETRY_BUFFER,
     .help = "most of a body that is kept to be sent again; a longer one is sent once "
             "(`retry_or_shadow_abandoned`)"},
    {.name = "attemptCount",
     .kind = FIELD_SWITCH,
     .at = AT(count_in_answer),
     .preset = 0,
     .help = "tell the client in `x-envoy-attempt-count` how many attempts it took; hosts are told "
             "in any case"},
    {.name = NULL},
};
#undef AT

const struct fields config_retry_fields = {
    .name = "retry",
    .path = "listeners[].routes[].retry",
    .size = sizeof(struct config_retry),
    .rows = retry_rows,
    .help = "Absent: no retries. All attempts lie within `timeout`, each within `perTryTimeout`. "
            "Nothing is retried once the answer has begun. For the whole cluster `maxRetries` and "
            "`retryBudget` bound them.",
};

#define AT(member) offsetof(struct config_retry_share, member)
static const struct field retry_share_rows[] = {
    {.name = "percent",
     .kind = FIELD_PERCENT,
     .at = AT(permille),
     .max = 1000,
     .preset = 200,
     .help = "retries at once, of the requests under way and waiting (retries among them)"},
    {.name = "minRetryConcurrency",
     .kind = FIELD_COUNT,
     .at = AT(least),
     .max = INT32_OF,
     .preset = 3,
     .help = "so many at once are allowed in any case"},
    {.name = "budgetInterval", .kind = FIELD_LATER, .help = "a later issue"},
    {.name = NULL},
};
#undef AT

const struct fields config_retry_share_fields = {
    .name = "trafficPolicy.retryBudget",
    .path = "clusters[].trafficPolicy.retryBudget",
    .size = sizeof(struct config_retry_share),
    .rows = retry_share_rows,
    .help = "Istio's: a bound on retries at once, in place of `maxRetries`. "
            "`resilience.retryBudget` holds beside it.",
};

#define AT(member) offsetof(struct config_retry_budget, is.member)
static const struct field retry_budget_rows[] = {
    {.name = "ratio",
     .kind = FIELD_SHARE,
     .at = AT(earn_permille),
     .max = 1000,
     .preset_of = &default_retry_budget.earn_permille,
     .help = "further attempts that requests pay for: 20%: one in five"},
    {.name = "floor",
     .kind = FIELD_RATE,
     .at = AT(floor_per_s),
     .max = 10000,
     .preset_of = &default_retry_budget.floor_per_s,
     .help = "further attempts a second, however little traffic there is"},
    {.name = "capacity",
     .kind = FIELD_COUNT,
     .at = AT(capacity),
     .max = RETRY_BUDGET_CAPACITY_MAX,
     .preset_of = &default_retry_budget.capacity,
     .help = "most that is saved up for a bad moment; 0: none are ever made"},
    {.name = NULL},
};
#undef AT

const struct fields config_retry_budget_fields = {
    .name = "resilience.retryBudget",
    .path = "clusters[].resilience.retryBudget",
    .size = sizeof(struct config_retry_budget),
    .rows = retry_budget_rows,
    .help =
        "How much may be sent to the cluster beyond first attempts, whatever fails: retries, "
        "those in back-off included, and resends on a fresh connection. Used up: the failure goes "
        "to the client as it is. A connect failover takes a token where there is one, and is made "
        "in any case: nothing was sent, and there is one a request.",
};
