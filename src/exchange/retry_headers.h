/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a request may say about its own timeouts and retries, where its listener trusts those who
 * say it (Envoy's headers, reference/envoy-semantics.md 4.3). The limits and the budget of the
 * cluster hold all the same.
 */
#ifndef EXCHANGE_RETRY_HEADERS_H
#define EXCHANGE_RETRY_HEADERS_H

#include <stdbool.h>

#include "base/bytes.h"
#include "exchange/exchange.h"

/* Their values; those absent are empty. */
struct retry_headers {
    struct bytes retry_on;
    struct bytes max_retries;
    struct bytes statuses;
    struct bytes names; /* of headers of an answer */
    struct bytes timeout_ms;
    struct bytes per_try_ms;
};

/* Is anything about retries among them, so that a policy of the request's own is needed? */
bool retry_headers_given(const struct retry_headers *h);

/*
 * After exchange_init. |own| is filled where retry_headers_given, lives as long as |x|, and is not
 * looked at otherwise. What makes no sense is as if it were absent.
 */
void retry_headers_apply(struct exchange *x, const struct retry_headers *h,
                         struct retry_policy *own);

/* The next word of a list "a, b"; false at its end. */
bool retry_headers_next(struct bytes *list, struct bytes *word);

#endif
