/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/outlier.h"

#include <assert.h>

static const char *const trigger_texts[OUTLIER_TRIGGER_COUNT] = {
    [OUTLIER_NONE] = "none",
    [OUTLIER_CONSECUTIVE_5XX] = "consecutive_5xx",
    [OUTLIER_CONSECUTIVE_GATEWAY] = "consecutive_gateway_failure",
    [OUTLIER_CONSECUTIVE_LOCAL_ORIGIN] = "consecutive_local_origin_failure",
    [OUTLIER_DETECTED] = "detection",
    [OUTLIER_SUCCESS_RATE] = "success_rate",
    [OUTLIER_SUCCESS_RATE_LOCAL_ORIGIN] = "local_origin_success_rate",
    [OUTLIER_FAILURE_PERCENTAGE] = "failure_percentage",
    [OUTLIER_FAILURE_PERCENTAGE_LOCAL_ORIGIN] = "local_origin_failure_percentage",
};

static const char *const guard_texts[OUTLIER_GUARD_COUNT] = {
    [OUTLIER_GUARD_NONE] = "none",
    [OUTLIER_GUARD_ALREADY_OUT] = "already_out",
    [OUTLIER_GUARD_CAP] = "cap",
    [OUTLIER_GUARD_FEW_HEALTHY] = "few_healthy",
    [OUTLIER_GUARD_LAST_HOST] = "last_host",
    [OUTLIER_GUARD_NOT_ENFORCED] = "not_enforced",
};

const char *outlier_trigger_text(enum outlier_trigger t)
{
    assert(t < OUTLIER_TRIGGER_COUNT);
    return trigger_texts[t];
}

const char *outlier_guard_text(enum outlier_guard g)
{
    assert(g < OUTLIER_GUARD_COUNT);
    return guard_texts[g];
}

uint32_t outlier_ejecting_run(const struct outlier_config *c, enum outlier_trigger t)
{
    assert(t < OUTLIER_TRIGGER_COUNT);
    if (c->enforcing[t] == 0)
        return 0;
    switch (t) {
    case OUTLIER_CONSECUTIVE_5XX:
        return c->consecutive_5xx;
    case OUTLIER_CONSECUTIVE_GATEWAY:
        return c->consecutive_gateway;
    case OUTLIER_CONSECUTIVE_LOCAL_ORIGIN:
        return c->split ? c->consecutive_local_origin : 0;
    case OUTLIER_NONE:
    case OUTLIER_DETECTED:
    case OUTLIER_SUCCESS_RATE:
    case OUTLIER_SUCCESS_RATE_LOCAL_ORIGIN:
    case OUTLIER_FAILURE_PERCENTAGE:
    case OUTLIER_FAILURE_PERCENTAGE_LOCAL_ORIGIN:
    case OUTLIER_TRIGGER_COUNT:
        return 0;
    }
    return 0;
}

bool outlier_rates_eject(const struct outlier_config *c)
{
    return c->enforcing[OUTLIER_SUCCESS_RATE] > 0 || c->enforcing[OUTLIER_FAILURE_PERCENTAGE] > 0 ||
           (c->split && (c->enforcing[OUTLIER_SUCCESS_RATE_LOCAL_ORIGIN] > 0 ||
                         c->enforcing[OUTLIER_FAILURE_PERCENTAGE_LOCAL_ORIGIN] > 0));
}

void outlier_codes_add(struct outlier_codes *codes, uint32_t status)
{
    uint32_t at = status - OUTLIER_CODE_FIRST;

    assert(status >= OUTLIER_CODE_FIRST && status <= OUTLIER_CODE_LAST);
    codes->given = true;
    codes->bits[at / 64] |= UINT64_C(1) << (at % 64);
}
