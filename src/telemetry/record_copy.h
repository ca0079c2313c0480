/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A copy of a request record in one run of bytes, with all that its views point to, so that it may
 * wait in a ring. Texts are cut at the limits here: a client cannot make a record large.
 */
#ifndef TELEMETRY_RECORD_COPY_H
#define TELEMETRY_RECORD_COPY_H

#include <stddef.h>
#include <stdint.h>

#include "model/access_format.h"
#include "model/record.h"

/* The texts that a peer or a configuration gives, and the most bytes kept of each. */
#define RECORD_TEXTS(X)                                                                            \
    X(method, 64)                                                                                  \
    X(path, RECORD_PATH_MAX)                                                                       \
    X(authority, 1024)                                                                             \
    X(request_id, 256)                                                                             \
    X(user_agent, 1024)                                                                            \
    X(forwarded_for, 1024)                                                                         \
    X(route, 256)                                                                                  \
    X(cluster, 352)                                                                                \
    X(upstream_host, 256)

#define X(name, limit) RECORD_TEXT_##name,
enum record_text { RECORD_TEXTS(X) RECORD_TEXT_COUNT };
#undef X

#define RECORD_WORD_MAX     256 /* of a constant text: details, outcomes, ... */
#define RECORD_ENDPOINT_MAX 256

/*
 * |record| is whole but for its array of attempts: only |attempt_count| of them are there. A copy
 * never moves: its views point into itself.
 */
struct record_copy {
    uint32_t cut; /* bits 1 << enum record_text: there was more of it */
    struct request_record record;
};

/* Bytes that a copy of |r| takes. */
size_t record_copy_size(const struct request_record *r);

/* Fills the |record_copy_size(r)| bytes at |to|, aligned to 8. */
void record_copy_fill(struct record_copy *to, const struct request_record *r);

/* Nothing that record_copy_size gives is larger. */
#define X(name, limit)   +(limit)
#define RECORD_TEXTS_MAX (0 RECORD_TEXTS(X))
enum { RECORD_TEXTS_SUM = RECORD_TEXTS_MAX };
#undef X
#undef RECORD_TEXTS_MAX
#define RECORD_TEXT_MAX                                                                            \
    (sizeof(struct record_copy) + RECORD_TEXTS_SUM + 6 * (RECORD_WORD_MAX + 1) +                   \
     RECORD_ATTEMPTS_MAX * (RECORD_WORD_MAX + 1 + RECORD_ENDPOINT_MAX))

/* And the headers that the log's format names. */
#define RECORD_HEADERS_MAX  (2 * ACCESS_HEADERS_MAX)
#define RECORD_HEADER_BYTES ((size_t)2 * 8192) /* more of them all is not kept */
#define RECORD_COPY_MAX                                                                            \
    (RECORD_TEXT_MAX + RECORD_HEADERS_MAX * sizeof(struct bytes) + RECORD_HEADER_BYTES)

#endif
