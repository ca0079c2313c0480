/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange/retry_headers.h"

#include "exchange/retrying.h"
#include "policy/retry.h"

/* A year: what is larger overflows nothing, but means nothing either. */
#define TIMEOUT_MAX_MS (UINT64_C(365) * 24 * 3600 * 1000)

bool retry_headers_given(const struct retry_headers *h)
{
    return h->retry_on.len + h->max_retries.len + h->statuses.len + h->names.len > 0;
}

bool retry_headers_next(struct bytes *list, struct bytes *word)
{
    while (list->len > 0) {
        size_t end = bytes_find(*list, ',');

        *word = bytes_trim(bytes_slice(*list, 0, end));
        *list = bytes_skip(*list, end < list->len ? end + 1 : end);
        if (word->len > 0)
            return true;
    }
    return false;
}

/* A route without retries: Envoy's defaults stand behind what the request says. */
static void begin(const struct exchange *x, struct retry_policy *own)
{
    if (x->retry != NULL)
        *own = *x->retry;
    else
        *own = (struct retry_policy){
            .attempts = 1,
            .base = RETRY_BACKOFF_BASE,
            .max = RETRY_BACKOFF_FACTOR * RETRY_BACKOFF_BASE,
        };
}

static void add_conditions(struct retry_policy *own, struct bytes list)
{
    struct bytes word;

    while (retry_headers_next(&list, &word))
        own->on |= retry_on_parse(word);
}

static void add_statuses(struct retry_policy *own, struct bytes list)
{
    struct bytes word;
    uint64_t status;

    while (retry_headers_next(&list, &word))
        if (bytes_parse_u64(word, &status))
            (void)retry_statuses_add(&own->statuses, status);
}

static void apply_policy(struct exchange *x, const struct retry_headers *h,
                         struct retry_policy *own)
{
    uint64_t attempts;

    begin(x, own);
    add_conditions(own, h->retry_on);
    add_statuses(own, h->statuses);
    if (bytes_parse_u64(h->max_retries, &attempts))
        own->attempts =
            attempts < RETRY_ATTEMPTS_MAX ? (uint32_t)attempts : (uint32_t)RETRY_ATTEMPTS_MAX;
    if (own->on != RETRY_ON_NOTHING)
        x->retry = own;
    x->repeatable = x->repeatable || retrying_any_method(x);
}

static void apply_timeout(struct bytes ms, span_ns *timeout)
{
    uint64_t n;

    if (bytes_parse_u64(ms, &n) && n <= TIMEOUT_MAX_MS)
        *timeout = n == 0 ? MONO_NEVER : n * NS_PER_MS;
}

void retry_headers_apply(struct exchange *x, const struct retry_headers *h,
                         struct retry_policy *own)
{
    if (x->route == NULL)
        return;
    if (retry_headers_given(h))
        apply_policy(x, h, own);
    apply_timeout(h->timeout_ms, &x->timeout);
    apply_timeout(h->per_try_ms, &x->per_try_timeout);
}
