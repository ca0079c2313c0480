/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies: by length, to the close, chunked.
 *
 *   CHUNK_SIZE --;--> CHUNK_EXTENSION          (RFC 9112 7.1; every byte is looked at, in turn)
 *     |   '-----CR-----.  |
 *     |                v  v CR
 *     |             CHUNK_SIZE_LF --size 0--> TRAILER --empty line--> DONE
 *     |                | LF
 *     |                v
 *     '<--LF-- CHUNK_LF <--CR-- CHUNK_CR <-- CHUNK_DATA
 */
#include "codec/http1_head.h"

#define SIZE_DIGITS_MAX   16
#define SHORT_SIZE_DIGITS 8

/* Where in *( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] ). */
enum extension_state {
    BEFORE_SEMICOLON, /* a blank was there: only ';' may follow */
    BEFORE_NAME,
    IN_NAME,
    AFTER_NAME, /* a blank was there: '=' or ';' */
    BEFORE_VALUE,
    IN_TOKEN,
    IN_QUOTES,
    IN_QUOTED_PAIR,
    AFTER_QUOTES
};

/* --- the chunk-size line --- */

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t';
}

static bool is_text(uint8_t c)
{
    return (c >= 0x20 && c != 0x7f) || c == '\t';
}

static uint64_t hex_value(uint8_t c)
{
    return c <= '9' ? (uint64_t)(c - '0') : (uint64_t)(byte_lower(c) - 'a' + 10);
}

/* What may follow a whole extension or the size itself; false: |c| may not. */
static bool after_part(struct http1_body *b, uint8_t c)
{
    if (c == '\r')
        b->state = HTTP1_BODY_CHUNK_SIZE_LF;
    else if (c == ';')
        b->extension = BEFORE_NAME;
    else if (is_blank(c))
        b->extension = BEFORE_SEMICOLON;
    else
        return false;
    return true;
}

static bool name_byte(struct http1_body *b, uint8_t c)
{
    if (byte_is(c, BYTE_TOKEN))
        b->extension = IN_NAME;
    else if (b->extension == BEFORE_NAME)
        return is_blank(c);
    else if (c == '=')
        b->extension = BEFORE_VALUE;
    else if (is_blank(c))
        b->extension = AFTER_NAME;
    else
        return after_part(b, c);
    return true;
}

static bool after_name_byte(struct http1_body *b, uint8_t c)
{
    if (c == '=')
        b->extension = BEFORE_VALUE;
    else if (c == ';')
        b->extension = BEFORE_NAME;
    else
        return is_blank(c);
    return true;
}

static bool value_byte(struct http1_body *b, uint8_t c)
{
    if (byte_is(c, BYTE_TOKEN))
        b->extension = IN_TOKEN;
    else if (b->extension == IN_TOKEN)
        return after_part(b, c);
    else if (c == '"')
        b->extension = IN_QUOTES;
    else
        return is_blank(c);
    return true;
}

static bool quoted_byte(struct http1_body *b, uint8_t c)
{
    if (b->extension == IN_QUOTED_PAIR)
        b->extension = IN_QUOTES;
    else if (c == '\\')
        b->extension = IN_QUOTED_PAIR;
    else if (c == '"')
        b->extension = AFTER_QUOTES;
    return is_text(c);
}

/* False: |c| may not stand there. */
static bool extension_byte(struct http1_body *b, uint8_t c)
{
    switch ((enum extension_state)b->extension) {
    case BEFORE_SEMICOLON:
        if (c == ';')
            b->extension = BEFORE_NAME;
        return c == ';' || is_blank(c);
    case BEFORE_NAME:
    case IN_NAME:
        return name_byte(b, c);
    case AFTER_NAME:
        return after_name_byte(b, c);
    case BEFORE_VALUE:
    case IN_TOKEN:
        return value_byte(b, c);
    case IN_QUOTES:
    case IN_QUOTED_PAIR:
        return quoted_byte(b, c);
    case AFTER_QUOTES:
        return after_part(b, c);
    }
    return false;
}

/* NULL, or what is wrong. */
static const char *size_byte(struct http1_body *b, uint8_t c)
{
    if (byte_is(c, BYTE_HEX)) {
        if (b->digits == SIZE_DIGITS_MAX)
            return "chunk size of more than 16 digits";
        b->digits++;
        b->left = b->left << 4 | hex_value(c);
        return NULL;
    }
    if (b->digits == 0)
        return "no chunk size where one must be";
    if (b->left > INT64_MAX)
        return "chunk size too large";
    if (c != '\r')
        b->state = HTTP1_BODY_CHUNK_EXTENSION;
    return after_part(b, c) ? NULL : "bad character after a chunk size";
}

static void start_chunk(struct http1_body *b)
{
    b->state = HTTP1_BODY_CHUNK_SIZE;
    b->left = 0;
    b->digits = 0;
}

static const char *size_line_byte(struct http1_body *b, uint8_t c)
{
    if (++b->line_bytes > HTTP1_CHUNK_LINE_MAX)
        return "chunk-size line too long";
    if (b->state == HTTP1_BODY_CHUNK_SIZE)
        return size_byte(b, c);
    if (b->state == HTTP1_BODY_CHUNK_EXTENSION)
        return extension_byte(b, c) ? NULL : "bad chunk extension";
    if (c != '\n')
        return "carriage return without line feed in a chunk-size line";
    b->state = b->left == 0 ? HTTP1_BODY_TRAILER : HTTP1_BODY_CHUNK_DATA;
    b->line_bytes = 0;
    return NULL;
}

static const char *frame_byte(struct http1_body *b, uint8_t c)
{
    if (b->state == HTTP1_BODY_CHUNK_CR) {
        b->state = HTTP1_BODY_CHUNK_LF;
        return c == '\r' ? NULL : "chunk longer than its size";
    }
    if (b->state == HTTP1_BODY_CHUNK_LF) {
        start_chunk(b);
        return c == '\n' ? NULL : "carriage return without line feed after a chunk";
    }
    return size_line_byte(b, c);
}

/* --- the trailer section --- */

static enum http1_result bad_body(const struct http1_body *b, struct http1_fault *fault,
                                  const char *why)
{
    *fault = (struct http1_fault){b->fault_status, "http1.codec_error", why};
    return HTTP1_BAD;
}

static enum http1_result section_too_long(const struct http1_body *b, struct http1_fault *fault)
{
    *fault = (struct http1_fault){b->fault_status == 400 ? 431 : b->fault_status,
                                  "http1.trailers_too_large", "trailer section too long"};
    return HTTP1_BAD;
}

/* OK: |b->line_bytes| is the length of the section, empty line included. */
static enum http1_result find_section_end(struct http1_body *b, struct bytes in,
                                          struct http1_fault *fault)
{
    struct bytes window = bytes_slice(in, 0, b->trailer_limit);

    for (;;) {
        size_t at = b->line_bytes + bytes_find(bytes_skip(window, b->line_bytes), '\n');

        if (at == window.len) {
            b->line_bytes = (uint32_t)window.len;
            return window.len == b->trailer_limit ? section_too_long(b, fault) : HTTP1_MORE;
        }
        if (at == 0 || window.data[at - 1] != '\r')
            return bad_body(b, fault, "line feed without carriage return in a trailer section");
        b->line_bytes = (uint32_t)at + 1;
        if (at == 1 || window.data[at - 2] == '\n')
            return HTTP1_OK;
    }
}

static enum http1_result check_fields(const struct http1_body *b, struct bytes section,
                                      struct http1_fault *fault)
{
    struct head_reader r = {.at = section.data, .end = section.data + section.len, .fault = fault};
    struct field field;

    while (r.at < r.end) {
        if (head_read_field(&r, &field) != HTTP1_OK) {
            fault->status = b->fault_status;
            return HTTP1_BAD;
        }
    }
    return HTTP1_OK;
}

static enum http1_result read_section(struct http1_body *b, struct bytes *in,
                                      struct bytes *trailers, struct http1_fault *fault)
{
    enum http1_result result = find_section_end(b, *in, fault);
    struct bytes section;

    if (result != HTTP1_OK)
        return result;
    section = bytes_slice(*in, 0, b->line_bytes - 2);
    if (check_fields(b, section, fault) != HTTP1_OK)
        return HTTP1_BAD;
    *trailers = section;
    *in = bytes_skip(*in, b->line_bytes);
    b->state = HTTP1_BODY_DONE;
    return HTTP1_OK;
}

/* --- all of it --- */

void http1_body_init(struct http1_body *b, const struct message_head *head, uint32_t trailer_limit)
{
    *b = (struct http1_body){
        .state = HTTP1_BODY_DONE,
        .trailer_limit = trailer_limit,
        .fault_status = head->status == 0 ? 400 : 502,
    };
    switch (head->body) {
    case BODY_NONE:
        break;
    case BODY_LENGTH:
        b->left = head->length;
        b->state = b->left == 0 ? HTTP1_BODY_DONE : HTTP1_BODY_LENGTH;
        break;
    case BODY_CHUNKED:
        start_chunk(b);
        break;
    case BODY_TO_CLOSE:
        b->state = HTTP1_BODY_TO_CLOSE;
        break;
    }
}

/* Up to |limit| bytes of |*in|. */
static struct bytes take(struct bytes *in, uint64_t limit)
{
    struct bytes data = bytes_slice(*in, 0, limit < in->len ? (size_t)limit : in->len);

    *in = bytes_skip(*in, data.len);
    return data;
}

static enum http1_result read_data(struct http1_body *b, struct bytes *in, struct bytes *data)
{
    if (b->state == HTTP1_BODY_TO_CLOSE) {
        *data = take(in, in->len);
        return data->len > 0 ? HTTP1_OK : HTTP1_MORE;
    }
    *data = take(in, b->left);
    b->left -= data->len;
    if (b->left == 0)
        b->state = b->state == HTTP1_BODY_LENGTH ? HTTP1_BODY_DONE : HTTP1_BODY_CHUNK_CR;
    return data->len > 0 ? HTTP1_OK : HTTP1_MORE;
}

/* The CR LF behind a chunk, where both are there. */
static void take_chunk_end(struct http1_body *b, struct bytes *in)
{
    if (b->state != HTTP1_BODY_CHUNK_CR || in->len < 2 || in->data[0] != '\r' ||
        in->data[1] != '\n')
        return;
    start_chunk(b);
    *in = bytes_skip(*in, 2);
}

/* A size line as most are: a few digits and CR LF, all there. What is not goes byte by byte. */
static void take_size_line(struct http1_body *b, struct bytes *in)
{
    uint64_t size = 0;
    size_t n = 0;

    if (b->state != HTTP1_BODY_CHUNK_SIZE || b->digits > 0)
        return;
    for (; n < in->len && n < SHORT_SIZE_DIGITS && byte_is(in->data[n], BYTE_HEX); n++)
        size = size << 4 | hex_value(in->data[n]);
    if (n == 0 || in->len - n < 2 || in->data[n] != '\r' || in->data[n + 1] != '\n')
        return;
    b->left = size;
    b->state = size == 0 ? HTTP1_BODY_TRAILER : HTTP1_BODY_CHUNK_DATA;
    b->line_bytes = 0;
    *in = bytes_skip(*in, n + 2);
}

/* The bytes between chunks, up to data, the trailer section, or the end of |*in|. */
static enum http1_result read_frame(struct http1_body *b, struct bytes *in,
                                    struct http1_fault *fault)
{
    size_t n = 0;
    const char *why = NULL;

    take_chunk_end(b, in);
    take_size_line(b, in);
    while (n < in->len && b->state != HTTP1_BODY_CHUNK_DATA && b->state != HTTP1_BODY_TRAILER &&
           why == NULL)
        why = frame_byte(b, in->data[n++]);
    *in = bytes_skip(*in, n);
    return why == NULL ? HTTP1_OK : bad_body(b, fault, why);
}

enum http1_result http1_body_read(struct http1_body *b, struct bytes *in, struct bytes *data,
                                  struct bytes *trailers, struct http1_fault *fault)
{
    *data = BYTES_NONE;
    *trailers = BYTES_NONE;
    if (b->state == HTTP1_BODY_DONE)
        return HTTP1_OK;
    if (b->state >= HTTP1_BODY_CHUNK_SIZE && b->state != HTTP1_BODY_CHUNK_DATA &&
        b->state != HTTP1_BODY_TRAILER && read_frame(b, in, fault) != HTTP1_OK)
        return HTTP1_BAD;
    if (b->state == HTTP1_BODY_TRAILER)
        return read_section(b, in, trailers, fault);
    if (b->state == HTTP1_BODY_LENGTH || b->state == HTTP1_BODY_TO_CLOSE ||
        b->state == HTTP1_BODY_CHUNK_DATA)
        return read_data(b, in, data);
    return HTTP1_MORE;
}

bool http1_body_ended(struct http1_body *b)
{
    if (b->state == HTTP1_BODY_TO_CLOSE)
        b->state = HTTP1_BODY_DONE;
    return b->state == HTTP1_BODY_DONE;
}
