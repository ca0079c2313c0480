/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes HTTP/1.1 messages off a link for an actor, and checks each body byte against what it must
 * be. The heads are read by codec/http1, the framing and the bytes are judged here.
 */
#ifndef SIM_RECEIVER_H
#define SIM_RECEIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "codec/http1.h"
#include "sim/payload.h"

#define RECEIVER_ROOM 8192

enum receiver_state { RECEIVER_HEAD, RECEIVER_BODY, RECEIVER_DONE, RECEIVER_BAD };

struct receiver;

/* The head is here and valid during the call. Sets |key| where the body is to be checked. */
typedef void (*receiver_head)(struct receiver *r, const struct message_head *head);

struct receiver {
    enum receiver_state state;
    bool requests;     /* reads requests; else answers */
    enum method asked; /* answers: to what method */
    receiver_head on_head;
    void *owner;
    uint64_t key; /* 0: the body is not checked */
    uint64_t got; /* body bytes */
    bool wrong;   /* a body byte was not what it must be */
    uint64_t wrong_at;
    bool to_close;   /* the body ends with the connection */
    const char *why; /* RECEIVER_BAD */
    struct http1_scan scan;
    struct http1_body body;
    uint32_t len; /* bytes kept: of an unfinished head or trailer, or after the message */
    uint8_t kept[RECEIVER_ROOM];
};

void receiver_init(struct receiver *r, receiver_head on_head, void *owner);

/* Takes all of |data|; what stands behind the end of the message is kept. */
void receiver_take(struct receiver *r, struct bytes data);

/* The peer has closed. True: the message is whole by that, or was before. */
bool receiver_end(struct receiver *r);

/* For the next message on the same connection; what was kept is read at once. */
void receiver_next(struct receiver *r);

#endif
