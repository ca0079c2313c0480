/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heads as they leave: a request's for the host, an answer's for the client, and our own answers.
 * What is hop by hop is dropped, what says where the request came from is added.
 */
#ifndef PROXY_FORWARDING_H
#define PROXY_FORWARDING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "codec/message.h"
#include "exchange/reason.h"
#include "proxy/stream.h"

/*
 * The request head for the host, from |worker->head|, into |s->head| (which is made to fit), and
 * |s->facts|. |path| is the normalised one. False: no memory.
 */
bool forwarding_write_request(struct stream *s, struct bytes path);

/* The number of the attempt into |s->head|, where the route says it to hosts. */
void forwarding_count_attempt(struct stream *s);

/*
 * The answer's head for the client, in the worker's scratch. Decides how the body is framed
 * (|s->response.framing|) and whether the client's connection ends with it (|s->close_client|).
 */
struct bytes forwarding_write_answer(struct stream *s, const struct message_head *head);

/* A 1xx; empty where the client speaks HTTP/1.0 and must not see it. */
struct bytes forwarding_write_interim(struct stream *s, const struct message_head *head);

/* A whole local answer, in the worker's scratch. */
struct bytes forwarding_write_local(struct stream *s, enum reason reason);

/* Bytes of its body. */
size_t forwarding_local_size(const struct stream *s, enum reason reason);

/* The same where there is no request: the connection ends with it. */
struct bytes forwarding_write_reject(struct worker *w, uint32_t status, struct bytes body);

/* Does the answer leave the host's connection fit for another request? */
bool forwarding_answer_reusable(const struct message_head *head);

#endif
