/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the heads of requests and responses have in common: the classes of bytes, field lines, how
 * a head that comes in pieces is found, what Connection, Content-Length and Transfer-Encoding say.
 * For http1_*.c only.
 */
#ifndef CODEC_HTTP1_HEAD_H
#define CODEC_HTTP1_HEAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "codec/http1.h"
#include "codec/message.h"

/* Classes of a byte: http1_bytes[c] has these bits. */
enum {
    BYTE_TOKEN = 1,   /* of a field name or method */
    BYTE_PATH = 2,    /* of a target: visible ASCII but '?' and '#' */
    BYTE_QUERY = 4,   /* of a target after its '?': visible ASCII but '#' */
    BYTE_REGNAME = 8, /* of a host name, but '%' */
    BYTE_HEX = 16
};

extern const uint8_t http1_bytes[256];

static inline bool byte_is(uint8_t c, unsigned class)
{
    return (http1_bytes[c] & class) != 0;
}

/* Reads a head from |at| on. */
struct head_reader {
    const uint8_t *at;
    const uint8_t *end;
    struct message_head *head;
    struct http1_fault *fault; /* filled where HTTP1_BAD is returned */
    uint32_t fields_max;
    uint32_t repeated; /* a bit for each known field that stands there more than once */
    uint8_t major;     /* of the version */
    /* Connection has this option */
    bool option_close;
    bool option_keep_alive;
    bool option_upgrade;
};

/* What differs between a request and a response while the end of the head is looked for. */
struct head_kind {
    /*
     * What can be told from the first few bytes; leaves |at| at the first line. Bounded work; OK
     * once nothing more can be told before the line is whole.
     */
    enum http1_result (*read_start)(struct head_reader *r);
    enum http1_result (*read_first_line)(struct head_reader *r);
    enum http1_result (*read_head)(struct head_reader *r);
};

/* Runs |kind| over |in| as http1.h says. */
enum http1_result head_parse(const struct head_kind *kind, struct bytes in, struct http1_scan *scan,
                             const struct http1_limits *limits, struct head_reader *r,
                             size_t *used);

/* Fills the fault; always HTTP1_BAD. */
enum http1_result head_bad(struct head_reader *r, uint32_t status, const char *details,
                           const char *why);

/* 400 http1.codec_error */
enum http1_result head_malformed(struct head_reader *r, const char *why);

/* CR LF at |at|, and past it. */
enum http1_result head_read_crlf(struct head_reader *r);

/* "HTTP/" digit "." digit: sets |r->major| and |head->minor| (1 for every later one). */
enum http1_result head_read_version(struct head_reader *r);

/* The field lines and the empty line after them; what is known among them. */
enum http1_result head_read_fields(struct head_reader *r);

/* One field line, without looking at what it means. */
enum http1_result head_read_field(struct head_reader *r, struct field *f);

/* First byte from |p| on that may not stand in a field value (a control, but HTAB). */
const uint8_t *head_skip_value(const uint8_t *p, const uint8_t *end);

/* Sets options, |head->keep_alive|, and |hop_by_hop| of what is nominated. */
enum http1_result head_note_connection(struct head_reader *r);

/* Sets |head->length| and |head->stated_length|; one line of several equal ones is left. */
enum http1_result head_note_length(struct head_reader *r);

/* Sets |head->body| to BODY_CHUNKED where there is a transfer coding; BAD where it is another. */
enum http1_result head_note_coding(struct head_reader *r);

/* |value|, a comma-separated list, has this element, in any case. */
bool head_list_has(struct bytes value, struct bytes element);

/* host [":" port] of RFC 3986 with a host that is not empty. Authorities without user. */
bool http1_host_is_valid(struct bytes host, enum method method);

#endif
