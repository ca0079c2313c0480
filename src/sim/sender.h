/* SPDX-License-Identifier: Apache-2.0 */
/* Puts one HTTP/1.1 message of an actor onto a link, as fast as the link takes it or held back. */
#ifndef SIM_SENDER_H
#define SIM_SENDER_H

#include <stdbool.h>
#include <stdint.h>

#include "io/link.h"
#include "sim/payload.h"

#define SENDER_ROOM 4608

enum sender_result {
    SENDER_DONE,    /* the link has taken all of it */
    SENDER_BLOCKED, /* go on at |writable| */
    SENDER_HELD,    /* all that is allowed is out: go on when |allowed| was raised */
    SENDER_BROKEN   /* nothing can be written any more */
};

struct sender {
    uint64_t key;
    uint64_t total;   /* body bytes */
    uint64_t made;    /* of these, already framed */
    uint64_t allowed; /* body bytes that may be framed; UINT64_MAX: all */
    uint32_t piece;   /* most body bytes in one chunk */
    enum framing framing;
    bool end_made;
    uint32_t len; /* of |out| */
    uint32_t at;
    uint8_t out[SENDER_ROOM];
};

/* |head| is at most SENDER_ROOM bytes, with its empty line. */
void sender_start(struct sender *s, struct bytes head, enum framing framing, uint64_t key,
                  uint64_t total);

enum sender_result sender_go(struct sender *s, struct link *l);

#endif
