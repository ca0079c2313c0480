/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/envoy_fields.h"

#define PREFIX "x-envoy-"

/* Behind the prefix: what Envoy takes off external requests (reference/envoy-semantics.md 6.6), and
 * what is ours to say to a host. */
static const char *const stopping[] = {
    "attempt-count",
    "expected-rq-timeout-ms",
    "force-trace",
    "hedge-on-per-try-timeout",
    "ip-tags",
    "is-timeout-retry",
    "max-retries",
    "original-url",
    "retriable-header-names",
    "retriable-status-codes",
    "retry-grpc-on",
    "retry-on",
    "upstream-alt-stat-name",
    "upstream-rq-per-try-timeout-ms",
    "upstream-rq-timeout-alt-response",
    "upstream-rq-timeout-ms",
    "upstream-stream-duration-ms",
};

bool envoy_field_listed(struct bytes name)
{
    struct bytes rest;

    if (name.len <= sizeof(PREFIX) - 1 ||
        !bytes_equal_nocase(bytes_slice(name, 0, sizeof(PREFIX) - 1), BYTES(PREFIX)))
        return false;
    rest = bytes_skip(name, sizeof(PREFIX) - 1);
    for (size_t i = 0; i < sizeof(stopping) / sizeof(stopping[0]); i++)
        if (bytes_equal_nocase(rest, bytes_of(stopping[i])))
            return true;
    return false;
}

struct bytes envoy_field_value(const struct message_head *head, struct bytes name)
{
    for (uint32_t i = 0; i < head->field_count; i++)
        if (bytes_equal_nocase(head->fields[i].name, name))
            return head->fields[i].value;
    return BYTES_NONE;
}

void envoy_fields_read(const struct message_head *head, struct retry_headers *out)
{
    *out = (struct retry_headers){
        .retry_on = envoy_field_value(head, BYTES("x-envoy-retry-on")),
        .max_retries = envoy_field_value(head, BYTES("x-envoy-max-retries")),
        .statuses = envoy_field_value(head, BYTES("x-envoy-retriable-status-codes")),
        .names = envoy_field_value(head, BYTES("x-envoy-retriable-header-names")),
        .timeout_ms = envoy_field_value(head, BYTES("x-envoy-upstream-rq-timeout-ms")),
        .per_try_ms = envoy_field_value(head, BYTES("x-envoy-upstream-rq-per-try-timeout-ms")),
    };
}
