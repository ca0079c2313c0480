/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fields by which Envoys speak of a request's retries and timeouts. From a client they are hostile:
 * never passed on, and obeyed only where a listener is told to.
 */
#ifndef PROXY_ENVOY_FIELDS_H
#define PROXY_ENVOY_FIELDS_H

#include <stdbool.h>

#include "codec/message.h"
#include "exchange/retry_headers.h"

bool envoy_field_listed(struct bytes name);

/* One of those that stop here? */
static inline bool envoy_field_stops(struct bytes name)
{
    return name.len > 8 && (name.data[0] | 0x20) == 'x' && name.data[1] == '-' &&
           envoy_field_listed(name);
}

/* What |head| says by them. */
void envoy_fields_read(const struct message_head *head, struct retry_headers *out);

/* The value of the first field called |name|; empty where there is none. */
struct bytes envoy_field_value(const struct message_head *head, struct bytes name);

#endif
