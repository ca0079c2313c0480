/* SPDX-License-Identifier: Apache-2.0 */
/* Which of two formats the client of a request would rather have (RFC 9110 12.5.1). */
#ifndef ADMIN_ACCEPT_H
#define ADMIN_ACCEPT_H

#include <stdbool.h>

#include "codec/message.h"

/* Whether Accept names OpenMetrics, and plain text not with more weight. */
bool accept_openmetrics(const struct message_head *head);

#endif
