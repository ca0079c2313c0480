/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outlier detection: Istio's words with Istio's meaning (reference/envoy-semantics.md 8.3), Envoy's
 * for the rest, and the differences in which the cluster follows Envoy.
 */
#include <string.h>

#include "control/config_build.h"

/* Envoy's; a longer base is its own maximum. */
#define MAX_EJECTION (300 * NS_PER_S)

/* Of consecutive gateway failures, where nobody set them: seen, and nobody is ejected for them. */
#define GATEWAY_FAILURES 5

static bool given(const struct field_head *head, const char *name)
{
    return config_node_find(head->node, name) != NULL;
}

/* --- Istio's words --- */

static void bad_code(struct config_build *b, const struct field_text *code)
{
    struct text *t = config_build_error(b, code->head.node);

    text_str(t, "an error code is a status from 100 to 599, not ");
    config_quote(t, code->text);
    config_error_end(b->errors);
}

static void build_codes(struct config_build *b, const struct field_items *from,
                        struct outlier_codes *codes)
{
    const struct field_text *each = from->at;

    for (uint32_t i = 0; i < from->count; i++) {
        uint64_t status = 0;

        if (bytes_parse_u64(each[i].text, &status) && status >= OUTLIER_CODE_FIRST &&
            status <= OUTLIER_CODE_LAST)
            outlier_codes_add(codes, (uint32_t)status);
        else
            bad_code(b, &each[i]);
    }
}

/* As Istio tells Envoy: rates are looked at, nobody is ejected for them. */
static void build_istio(struct config_build *b, const struct config_outlier *from,
                        struct outlier_config *c)
{
    static const struct outlier_config base = {.enforcing = OUTLIER_ENFORCING_RUNS,
                                               .rates = OUTLIER_RATE_RULES};

    *c = from->is;
    c->enabled = true;
    c->always_eject_one = false;
    c->jitter = 0;
    c->max_ejection = c->base_ejection > MAX_EJECTION ? c->base_ejection : MAX_EJECTION;
    memcpy(c->enforcing, base.enforcing, sizeof(c->enforcing));
    c->rates = base.rates;
    c->codes = base.codes;
    if (!given(&from->head, "consecutiveGatewayErrors")) {
        c->consecutive_gateway = GATEWAY_FAILURES;
        c->enforcing[OUTLIER_CONSECUTIVE_GATEWAY] = 0;
    }
    build_codes(b, &from->error_codes, &c->codes);
}

/* --- Envoy's words --- */

static void build_success_rate(const struct config_success_rate *from, struct outlier_config *c)
{
    if (from->head.node == NULL)
        return;
    c->enforcing[OUTLIER_SUCCESS_RATE] = (uint8_t)from->enforcing;
    c->enforcing[OUTLIER_SUCCESS_RATE_LOCAL_ORIGIN] = (uint8_t)from->enforcing_local;
    c->rates.success_hosts = from->minimum_hosts;
    c->rates.success_volume = from->request_volume;
    c->rates.success_factor = from->stdev_factor;
}

static void build_failure_percentage(const struct config_failure_percentage *from,
                                     struct outlier_config *c)
{
    if (from->head.node == NULL)
        return;
    c->enforcing[OUTLIER_FAILURE_PERCENTAGE] = (uint8_t)from->enforcing;
    c->enforcing[OUTLIER_FAILURE_PERCENTAGE_LOCAL_ORIGIN] = (uint8_t)from->enforcing_local;
    c->rates.failure_hosts = from->minimum_hosts;
    c->rates.failure_volume = from->request_volume;
    c->rates.failure_percent = from->threshold;
}

static void build_enforcing(const struct config_outlier_more *from, struct outlier_config *c)
{
    if (given(&from->head, "enforcingConsecutive5xx"))
        c->enforcing[OUTLIER_CONSECUTIVE_5XX] = (uint8_t)from->enforcing_5xx;
    if (given(&from->head, "enforcingConsecutiveGatewayFailure"))
        c->enforcing[OUTLIER_CONSECUTIVE_GATEWAY] = (uint8_t)from->enforcing_gateway;
    if (given(&from->head, "enforcingConsecutiveLocalOriginFailure"))
        c->enforcing[OUTLIER_CONSECUTIVE_LOCAL_ORIGIN] = (uint8_t)from->enforcing_local;
}

static void build_max_ejection(struct config_build *b, const struct config_outlier_more *from,
                               struct outlier_config *c)
{
    const struct config_node *at = config_node_find(from->head.node, "maxEjectionTime");
    struct text *t;

    if (at == NULL)
        return;
    c->max_ejection = from->max_ejection;
    if (c->max_ejection >= c->base_ejection)
        return;
    t = config_build_error(b, at);
    text_str(t, "maxEjectionTime cannot be smaller than baseEjectionTime, which is ");
    text_duration(t, c->base_ejection);
    config_error_end(b->errors);
}

static void build_envoy(struct config_build *b, const struct config_outlier_more *from,
                        struct outlier_config *c)
{
    if (from->head.node == NULL)
        return;
    c->always_eject_one = from->always_eject_one;
    c->jitter = from->jitter;
    build_max_ejection(b, from, c);
    build_enforcing(from, c);
    build_success_rate(&from->success_rate, c);
    build_failure_percentage(&from->failure_percentage, c);
}

/* --- where Envoy is followed --- */

static difference_set differences_of(const struct config_resilience *from)
{
    difference_set s =
        from->semantics == SEMANTICS_ENVOY ? DIFFERENCES_ENVOY : DIFFERENCES_FIREBREAK;

    for (uint32_t i = 0; i < DIFFERENCE_COUNT; i++) {
        if (given(&from->differences.head, difference_info[i].key))
            s = difference_put(s, (enum difference)i, from->differences.is[i] == SEMANTICS_ENVOY);
    }
    return s;
}

void config_build_outlier(struct config_build *b, const struct config_cluster *from,
                          struct cluster *c)
{
    const struct config_resilience *more = &from->resilience;

    c->outlier = default_outlier;
    if (from->policy.outlier.head.node != NULL)
        build_istio(b, &from->policy.outlier, &c->outlier);
    build_envoy(b, &more->outlier, &c->outlier);
    cluster_follow(c, differences_of(more));
    c->connect_failover = given(&more->head, "connectFailover")
                              ? more->connect_failover
                              : !as_envoy(c->differences, DIFFERENCE_FAILED_CONNECT_STAYS);
}
