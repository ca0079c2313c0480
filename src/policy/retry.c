/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/retry.h"

#include <assert.h>

/* Of retry_traffic_normal: a share of the requests, and what is always normal. */
#define NORMAL_PERMILLE 100
#define NORMAL_FEW      5

#define X(constant, name) name,
static const char *const names[] = {RETRY_CONDITIONS(X)};
#undef X

uint32_t retry_on_parse(struct bytes name)
{
    for (uint32_t i = 0; i < RETRY_CONDITION_COUNT; i++)
        if (bytes_equal(name, bytes_of(names[i])))
            return 1u << i;
    return RETRY_ON_NOTHING;
}

const char *retry_on_text(uint32_t i)
{
    return i < RETRY_CONDITION_COUNT ? names[i] : NULL;
}

static bool is_status(uint64_t status)
{
    return status >= RETRY_STATUS_MIN && status <= RETRY_STATUS_MAX;
}

bool retry_statuses_add(struct retry_statuses *s, uint64_t status)
{
    uint64_t at = status - RETRY_STATUS_MIN;

    if (!is_status(status))
        return false;
    s->bits[at / 64] |= UINT64_C(1) << at % 64;
    return true;
}

static bool has_status(const struct retry_statuses *s, uint32_t status)
{
    uint32_t at = status - RETRY_STATUS_MIN;

    return is_status(status) && (s->bits[at / 64] >> at % 64 & 1) != 0;
}

/* The conditions that an answer fulfils. */
static uint32_t on_answer(const struct retry_policy *p, const struct retry_failure *f)
{
    uint32_t on = RETRY_ON_NOTHING;

    if (f->rate_limited)
        return RETRY_ON_ENVOY_RATELIMITED;
    if (f->status >= 500 && f->status <= 599)
        on |= RETRY_ON_5XX;
    if (f->status >= 502 && f->status <= 504)
        on |= RETRY_ON_GATEWAY_ERROR;
    if (f->status == 409)
        on |= RETRY_ON_RETRIABLE_4XX;
    if (has_status(&p->statuses, f->status))
        on |= RETRY_ON_RETRIABLE_STATUS_CODES;
    if (f->marked)
        on |= RETRY_ON_RETRIABLE_HEADERS;
    return on;
}

/* The conditions that any attempt without an answer fulfils. */
static uint32_t on_silence(const struct retry_failure *f)
{
    uint32_t on = RETRY_ON_5XX | RETRY_ON_GATEWAY_ERROR | RETRY_ON_RESET;

    return f->sent ? on : on | RETRY_ON_RESET_BEFORE_REQUEST;
}

static uint32_t fulfilled(const struct retry_policy *p, const struct retry_failure *f)
{
    switch (f->kind) {
    case RETRY_FAILED_ANSWER:
        return on_answer(p, f);
    case RETRY_FAILED_CONNECT:
        return on_silence(f) | RETRY_ON_CONNECT_FAILURE;
    case RETRY_FAILED_RESET:
    case RETRY_FAILED_TIME:
        return on_silence(f);
    case RETRY_FAILED_REFUSED:
        return on_silence(f) | RETRY_ON_REFUSED_STREAM;
    }
    return RETRY_ON_NOTHING;
}

bool retry_matches(const struct retry_policy *p, const struct retry_failure *f)
{
    return (p->on & fulfilled(p, f)) != 0;
}

/* base 2^(n-1), or |max| where that is less. */
static span_ns backoff_limit(const struct retry_policy *p, uint32_t n)
{
    span_ns limit = p->base;

    for (uint32_t i = 1; i < n && limit < p->max; i++)
        limit *= 2; /* below 2 max: it fits */
    return limit < p->max ? limit : p->max;
}

span_ns retry_backoff(const struct retry_policy *p, uint32_t n, struct rng *rng)
{
    uint64_t ms = backoff_limit(p, n) / NS_PER_MS;

    assert(n >= 1 && ms >= 1 && ms <= UINT32_MAX);
    return rng_below(rng, (uint32_t)ms) * NS_PER_MS;
}

bool retry_traffic_normal(uint64_t requests, uint64_t extra)
{
    return extra < NORMAL_FEW ||
           extra <= requests / 1000 * NORMAL_PERMILLE + requests % 1000 * NORMAL_PERMILLE / 1000;
}
