/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Headers that the access log's format names, kept until the record is made. Where it names none,
 * and without an access log, nothing is done.
 */
#ifndef PROXY_KEEPING_H
#define PROXY_KEEPING_H

#include <stdint.h>

#include "base/bytes.h"
#include "codec/message.h"
#include "model/access_format.h"

/* Of one message; embed by value, zeroed. */
struct kept_headers {
    struct bytes *at; /* [count], with the texts behind them; NULL: none */
    uint32_t count;
};

/*
 * Keeps the first field of each name, anew where some were kept already: of the answer of a retry.
 * Where there is no memory, none are kept.
 */
void kept_take(struct kept_headers *k, const struct access_headers *names,
               const struct message_head *head);

void kept_release(struct kept_headers *k);

#endif
