/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1.1 (RFC 9112) and HTTP/1.0 heads and bodies, strict, zero copy: bytes in, views out. Where
 * the RFC lets a recipient be lenient we are not: bare LF, obs-fold, blank before the colon, two
 * framings, and any Content-Length that is not one plain number are refused; two equal
 * Content-Length lines collapse to one.
 */
#ifndef CODEC_HTTP1_H
#define CODEC_HTTP1_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "codec/message.h"

enum http1_result {
    HTTP1_OK,
    HTTP1_MORE, /* not all here yet */
    HTTP1_BAD   /* see struct http1_fault */
};

struct http1_limits {
    uint32_t head_bytes; /* whole head with its empty line */
    uint32_t fields;     /* at most MESSAGE_FIELDS_MAX */
};

/* Why a message is refused. */
struct http1_fault {
    uint32_t status;     /* what a client is told: 400 413 414 431 501 505; for a response: 502 */
    const char *details; /* "http1.codec_error", "http1.headers_too_large", ... for the log */
    const char *why;     /* words for a person: "more than one Content-Length" */
};

/* How far a head that is not whole yet has been looked at; zeroed at the head's first byte. */
struct http1_scan {
    uint32_t seen;     /* bytes already scanned for the end */
    bool line_checked; /* the first line was found good */
};

/*
 * Tries to parse the head at the start of |in|, which holds all bytes of it so far. On HTTP1_OK
 * |*used| is the head's length and |head| points into |in|. Work is linear in the head's length
 * however it was cut up (|scan| remembers). The outcome does not depend on the cuts. Empty lines
 * before a request are skipped (at most 2; they count in |*used|). On HTTP1_BAD |fault| is filled;
 * |head| then holds nothing of use, nor does it on HTTP1_MORE.
 */
enum http1_result http1_parse_request(struct bytes in, struct http1_scan *scan,
                                      const struct http1_limits *limits, struct message_head *head,
                                      size_t *used, struct http1_fault *fault);

/*
 * The same for a response to a request with |method|: HEAD, 1xx, 204 and 304 have no body whatever
 * their fields say (a 204 or 1xx with a length or coding parses; the caller drops those fields,
 * and |keep_alive| is false where a body may follow all the same). 101 has body BODY_NONE. A status
 * line may end right after its code.
 */
enum http1_result http1_parse_response(struct bytes in, struct http1_scan *scan,
                                       const struct http1_limits *limits, enum method method,
                                       struct message_head *head, size_t *used,
                                       struct http1_fault *fault);

/* --- bodies --- */

enum http1_body_state {
    HTTP1_BODY_LENGTH,
    HTTP1_BODY_TO_CLOSE,
    HTTP1_BODY_CHUNK_SIZE,
    HTTP1_BODY_CHUNK_EXTENSION,
    HTTP1_BODY_CHUNK_SIZE_LF,
    HTTP1_BODY_CHUNK_DATA,
    HTTP1_BODY_CHUNK_CR,
    HTTP1_BODY_CHUNK_LF,
    HTTP1_BODY_TRAILER,
    HTTP1_BODY_DONE
};

/* The decoder of one body. */
struct http1_body {
    enum http1_body_state state;
    uint8_t digits;      /* of the chunk size read so far */
    uint32_t line_bytes; /* of the present chunk-size line; of the trailer section: looked at */
    uint32_t trailer_limit;
    uint32_t fault_status; /* 400; 502 for a response */
    uint32_t extension;    /* where in a chunk extension: private */
    uint64_t left;         /* of the body (LENGTH) or of the present chunk */
};

#define HTTP1_CHUNK_LINE_MAX 4096 /* bytes of a chunk-size line with its extensions */

/* |trailer_limit|: bytes of the trailer section with its empty line; one larger gives 431. */
void http1_body_init(struct http1_body *b, const struct message_head *head, uint32_t trailer_limit);

static inline bool http1_body_done(const struct http1_body *b)
{
    return b->state == HTTP1_BODY_DONE;
}

/*
 * Takes from the front of |*in| up to the end of one stretch of data. |*data| is that stretch (may
 * be empty), |*in| moves past what was used. HTTP1_OK: |*data| has bytes, or the body is done
 * (http1_body_done). HTTP1_MORE:
 * |*in| is used up. What follows the body stays in |*in|. The trailer section is left in |*in|
 * until it is whole (state HTTP1_BODY_TRAILER and HTTP1_MORE: keep |*in| and call again with more;
 * it never exceeds trailer_limit); then |*trailers| is a view of its field lines, without the last
 * empty line.
 */
enum http1_result http1_body_read(struct http1_body *b, struct bytes *in, struct bytes *data,
                                  struct bytes *trailers, struct http1_fault *fault);

/* The peer has closed: true where the body is whole by that (or was already). */
bool http1_body_ended(struct http1_body *b);

/*
 * One field line off a trailer section; fields that may not stand in a trailer (framing, routing,
 * trust, hop by hop: RFC 9110 6.5.1) are skipped. False at the end. The section was checked by
 * http1_body_read.
 */
bool http1_next_trailer(struct bytes *section, struct field *out);

/* --- paths --- */

/*
 * Normalises a path for matching (RFC 3986 6.2.2, 5.2.4): percent-encoded unreserved characters
 * decoded, hex digits upper case, dot segments removed; with |merge_slashes| runs of '/' become
 * one. Writes to |out| (room for |path.len|). False: "%" not followed by two hex digits, an encoded
 * NUL, or dot segments that climb above the root: refuse with 400.
 */
bool http1_normalize_path(struct bytes path, bool merge_slashes, uint8_t *out, size_t *len);

/* --- writing --- */

/* Most bytes a chunk header takes: 16 hex digits, CR LF, with the CR LF that ends the chunk before.
 */
#define HTTP1_CHUNK_HEAD_MAX 20

/* "1a\r\n" into |out|, at most 18 bytes; its length. "0\r\n" for 0. */
size_t http1_write_chunk_head(uint8_t *out, uint64_t len);

/* "OK", "Not Found", ...; "" for codes without one. */
const char *http1_reason(uint32_t status);

#endif
