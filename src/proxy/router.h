/* SPDX-License-Identifier: Apache-2.0 */
/* Which route a request takes: by host, path and method; the first that matches wins. */
#ifndef PROXY_ROUTER_H
#define PROXY_ROUTER_H

#include "base/bytes.h"
#include "codec/message.h"
#include "model/snapshot.h"

/* |path| is the normalised one. NULL: none matches. */
const struct route *router_match(const struct listener_config *listener,
                                 const struct message_head *head, struct bytes path);

#endif
