/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feeds bytes to the HTTP/1 codec piece by piece, as a connection does, and writes down what came
 * of it: one line a head, the body, trailers, and how it ended. For tests and fuzz targets; two
 * transcripts are equal exactly when the codec told its caller the same.
 */
#ifndef TESTS_CODEC_HTTP1_FEED_H
#define TESTS_CODEC_HTTP1_FEED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "codec/http1.h"

#define FEED_EXACT_MAX 4096 /* up to here each call sees a copy of exactly its bytes: for ASan */

enum feed_side { FEED_REQUESTS, FEED_RESPONSES, FEED_RESPONSES_TO_HEAD };

struct feed {
    enum feed_side side;
    struct http1_limits limits;
    uint32_t trailer_limit;
    struct message_head head;
    struct http1_scan scan;
    struct http1_body body;
    bool in_body;
    bool over; /* refused, or a tunnel now */
    uint8_t *held;
    size_t from; /* held bytes not yet taken: from .. len */
    size_t len;
    struct text text;
    size_t calls;     /* of the codec */
    size_t unscanned; /* most bytes that a call left to be looked at again */
};

static inline void *feed_memory(size_t size)
{
    void *p = malloc(size == 0 ? 1 : size);

    if (p == NULL)
        abort();
    return p;
}

static inline struct feed *feed_open(enum feed_side side, size_t most)
{
    struct feed *f = feed_memory(sizeof(*f));
    size_t room = 1024 + most * 8;

    memset(f, 0, offsetof(struct feed, head));
    memset(&f->scan, 0, sizeof(*f) - offsetof(struct feed, scan));
    memset(&f->head, 0xA5, sizeof(f->head)); /* what the codec does not set is seen */
    f->side = side;
    f->limits = (struct http1_limits){.head_bytes = 64 * 1024, .fields = 100};
    f->trailer_limit = 64 * 1024;
    f->held = feed_memory(most);
    text_init(&f->text, feed_memory(room), room);
    return f;
}

static inline void feed_close(struct feed *f)
{
    free(f->held);
    free(f->text.data);
    free(f);
}

static inline void feed_note_fields(struct feed *f)
{
    for (uint32_t i = 0; i < f->head.field_count; i++) {
        const struct field *field = &f->head.fields[i];

        text_str(&f->text, field->hop_by_hop ? " [!" : " [");
        text_put(&f->text, field->name);
        text_str(&f->text, ": ");
        text_put(&f->text, field->value);
        text_char(&f->text, ']');
    }
}

static inline void feed_note_known(struct feed *f)
{
    for (unsigned id = 1; id < FIELD_ID_COUNT; id++) {
        uint16_t at = f->head.known[id];

        if (at == 0)
            continue;
        if (at > f->head.field_count || f->head.fields[at - 1].id != id)
            abort(); /* known[] points at the wrong field */
        for (unsigned i = 0; i + 1u < at; i++)
            if (f->head.fields[i].id == id)
                abort(); /* not the first */
    }
}

static inline void feed_note_head(struct feed *f)
{
    static const char *const bodies[] = {"none", "length", "chunked", "to-close"};
    const struct message_head *h = &f->head;

    if (f->side == FEED_REQUESTS) {
        text_put(&f->text, h->method);
        text_str(&f->text, " path=");
        text_put(&f->text, h->path);
        text_put(&f->text, h->query);
        text_str(&f->text, h->absolute_form ? " absolute host=" : " host=");
        text_put(&f->text, h->authority);
    } else {
        text_u64(&f->text, h->status);
        text_char(&f->text, ' ');
        text_put(&f->text, h->reason);
    }
    text_str(&f->text, h->minor == 0 ? " 1.0" : " 1.1");
    text_str(&f->text, h->keep_alive ? " keep " : " close ");
    text_str(&f->text, bodies[h->body]);
    if (h->stated_length) {
        text_char(&f->text, '=');
        text_u64(&f->text, h->length);
    }
    text_str(&f->text, h->expect_continue ? " expect" : "");
    text_str(&f->text, h->upgrade ? " upgrade" : "");
    text_str(&f->text, h->websocket ? " websocket" : "");
    feed_note_fields(f);
    feed_note_known(f);
    text_char(&f->text, '\n');
}

static inline void feed_note_bad(struct feed *f, const struct http1_fault *fault)
{
    f->over = true;
    text_str(&f->text, "BAD ");
    text_u64(&f->text, fault->status);
    text_char(&f->text, ' ');
    text_str(&f->text, fault->details);
    text_str(&f->text, ": ");
    text_str(&f->text, fault->why);
    text_char(&f->text, '\n');
}

static inline bool feed_inside(struct bytes part, struct bytes whole)
{
    return part.len == 0 || (part.data >= whole.data && part.data + part.len >= part.data &&
                             part.data + part.len <= whole.data + whole.len);
}

/* Every view points into what was read ("/" and "*" may stand for an empty path). */
static inline void feed_check_views(const struct message_head *h, struct bytes in)
{
    bool ok = feed_inside(h->method, in) && feed_inside(h->target, in) &&
              (feed_inside(h->path, in) || (h->absolute_form && h->path.len == 1)) &&
              feed_inside(h->query, in) && feed_inside(h->authority, in) &&
              feed_inside(h->reason, in);

    for (uint32_t i = 0; i < h->field_count; i++)
        ok = ok && feed_inside(h->fields[i].name, in) && feed_inside(h->fields[i].value, in);
    if (!ok)
        abort();
}

static inline enum http1_result feed_parse_head(struct feed *f, struct bytes in, size_t *used)
{
    struct http1_fault fault = {0};
    enum method method = f->side == FEED_RESPONSES_TO_HEAD ? METHOD_HEAD : METHOD_GET;
    enum http1_result result =
        f->side == FEED_REQUESTS
            ? http1_parse_request(in, &f->scan, &f->limits, &f->head, used, &fault)
            : http1_parse_response(in, &f->scan, &f->limits, method, &f->head, used, &fault);

    f->calls++;
    if (result == HTTP1_BAD)
        feed_note_bad(f, &fault);
    if (result == HTTP1_MORE && in.len - f->scan.seen > f->unscanned)
        f->unscanned = in.len - f->scan.seen;
    if (result != HTTP1_OK)
        return result;
    if (*used == 0 || *used > in.len)
        abort();
    feed_check_views(&f->head, bytes_slice(in, 0, *used));
    feed_note_head(f);
    return result;
}

/* True: a head was there, its body begins. */
static inline bool feed_head(struct feed *f, struct bytes in)
{
    size_t used = 0;

    if (feed_parse_head(f, in, &used) != HTTP1_OK)
        return false;
    f->from += used;
    f->scan = (struct http1_scan){0};
    f->in_body = true;
    http1_body_init(&f->body, &f->head, f->trailer_limit);
    if (f->head.status == 101) {
        text_str(&f->text, "tunnel\n");
        f->over = true;
    }
    return !f->over;
}

static inline void feed_note_trailers(struct feed *f, struct bytes trailers)
{
    struct field field;

    while (http1_next_trailer(&trailers, &field)) {
        text_str(&f->text, "\ntrailer ");
        text_put(&f->text, field.name);
        text_str(&f->text, ": ");
        text_put(&f->text, field.value);
    }
}

/* Transcripts are C strings: a NUL in a body is written as a word. */
static inline void feed_note_data(struct feed *f, struct bytes data)
{
    while (data.len > 0) {
        size_t plain = bytes_find(data, 0);

        text_put(&f->text, bytes_slice(data, 0, plain));
        if (plain < data.len)
            text_str(&f->text, "<NUL>");
        data = bytes_skip(data, plain + 1);
    }
}

/* True: go on. */
static inline bool feed_body(struct feed *f, struct bytes in)
{
    struct bytes rest = in;
    struct bytes data, trailers;
    struct http1_fault fault = {0};
    enum http1_result result = http1_body_read(&f->body, &rest, &data, &trailers, &fault);

    f->calls++;
    if (rest.len > in.len || rest.data + rest.len != in.data + in.len || !feed_inside(data, in) ||
        !feed_inside(trailers, in))
        abort();
    feed_note_data(f, data);
    f->from += in.len - rest.len;
    if (result == HTTP1_BAD) {
        text_str(&f->text, "\n");
        feed_note_bad(f, &fault);
        return false;
    }
    if (result == HTTP1_MORE && rest.len > 0 && rest.len != f->body.line_bytes)
        abort(); /* what is left is the trailer section, all of it looked at */
    if (result == HTTP1_OK && !http1_body_done(&f->body) && data.len == 0)
        abort();
    if (http1_body_done(&f->body)) {
        feed_note_trailers(f, trailers);
        text_str(&f->text, "\nend\n");
        f->in_body = false;
        return true;
    }
    return result == HTTP1_OK;
}

static inline bool feed_step(struct feed *f)
{
    size_t len = f->len - f->from;
    uint8_t *copy = NULL;
    struct bytes in = bytes_from(f->held + f->from, len);
    bool again;

    if (f->over || (len == 0 && !(f->in_body && http1_body_done(&f->body))))
        return false;
    if (len <= FEED_EXACT_MAX) {
        copy = feed_memory(len);
        memcpy(copy, in.data, len);
        in.data = copy;
    }
    again = f->in_body ? feed_body(f, in) : feed_head(f, in);
    free(copy);
    return again;
}

static inline void feed_push(struct feed *f, struct bytes piece)
{
    if (piece.len > 0)
        memcpy(f->held + f->len, piece.data, piece.len);
    f->len += piece.len;
    while (feed_step(f))
        continue;
}

/* The peer closes: how it ended. */
static inline const char *feed_end(struct feed *f)
{
    if (!f->over && f->in_body)
        text_str(&f->text, http1_body_ended(&f->body) ? "\nend by close\n" : "\ncut in body\n");
    else if (!f->over && f->len > f->from)
        text_str(&f->text, "cut in head\n");
    if (f->text.failed)
        abort();
    return text_end(&f->text);
}

/* The transcript of |in| cut at each of the |count| ascending |cuts|. To be freed. */
static inline char *feed_cut(enum feed_side side, struct bytes in, const size_t *cuts, size_t count)
{
    struct feed *f = feed_open(side, in.len);
    size_t from = 0;
    char *copy;

    for (size_t i = 0; i < count; i++) {
        feed_push(f, bytes_slice(in, from, cuts[i] - from));
        from = cuts[i];
    }
    feed_push(f, bytes_skip(in, from));
    copy = strdup(feed_end(f));
    feed_close(f);
    return copy;
}

static inline char *feed_whole(enum feed_side side, struct bytes in)
{
    return feed_cut(side, in, NULL, 0);
}

static inline char *feed_bytewise(enum feed_side side, struct bytes in)
{
    struct feed *f = feed_open(side, in.len);
    char *copy;

    for (size_t i = 0; i < in.len; i++)
        feed_push(f, bytes_slice(in, i, 1));
    copy = strdup(feed_end(f));
    feed_close(f);
    return copy;
}

/* Writes |h| as it would be forwarded, but with every field and its framing as they came. */
static inline void feed_write_head(struct text *t, const struct message_head *h)
{
    if (h->status == 0) {
        text_put(t, h->method);
        text_char(t, ' ');
        text_put(t, h->target);
        text_str(t, h->minor == 0 ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n");
    } else {
        text_str(t, h->minor == 0 ? "HTTP/1.0 " : "HTTP/1.1 ");
        text_u64(t, h->status);
        text_char(t, ' ');
        text_put(t, h->reason);
        text_str(t, "\r\n");
    }
    for (uint32_t i = 0; i < h->field_count; i++) {
        text_put(t, h->fields[i].name);
        text_str(t, ": ");
        text_put(t, h->fields[i].value);
        text_str(t, "\r\n");
    }
    text_str(t, "\r\n");
}

static inline enum http1_result feed_parse(enum feed_side side, struct bytes in,
                                           struct message_head *head, size_t *used)
{
    const struct http1_limits limits = {64 * 1024, 100};
    struct http1_scan scan = {0};
    struct http1_fault fault;

    if (side == FEED_REQUESTS)
        return http1_parse_request(in, &scan, &limits, head, used, &fault);
    return http1_parse_response(in, &scan, &limits,
                                side == FEED_RESPONSES_TO_HEAD ? METHOD_HEAD : METHOD_GET, head,
                                used, &fault);
}

/*
 * Law: the head at the start of |in|, if it is one, written as it was read, reads the same. False:
 * there is no head. Aborts where the law is broken.
 */
static inline bool feed_check_written(enum feed_side side, struct bytes in)
{
    struct feed *first = feed_open(side, in.len);
    struct feed *second = feed_open(side, in.len);
    size_t used = 0;
    bool is_head = feed_parse(side, in, &first->head, &used) == HTTP1_OK;

    if (is_head) {
        size_t room = in.len * 4 + 1024;
        char *again = feed_memory(room);
        struct text out;

        text_init(&out, again, room);
        feed_write_head(&out, &first->head);
        if (out.failed || feed_parse(side, text_bytes(&out), &second->head, &used) != HTTP1_OK ||
            used != out.len)
            abort();
        feed_note_head(first);
        feed_note_head(second);
        if (first->text.failed || second->text.failed ||
            strcmp(text_end(&first->text), text_end(&second->text)) != 0)
            abort();
        free(again);
    }
    feed_close(first);
    feed_close(second);
    return is_head;
}

/* Law: whole, cut at places drawn from |seed|, and byte by byte come to the same. Else aborts. */
static inline void feed_check_cuts(enum feed_side side, struct bytes in, uint64_t seed)
{
    char *whole = feed_whole(side, in);
    size_t cuts[3];
    size_t from = 0;
    char *other;

    for (unsigned i = 0; i < 3; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        cuts[i] = from + (size_t)(seed >> 33) % (in.len - from + 1);
        from = cuts[i];
    }
    other = feed_cut(side, in, cuts, 3);
    if (strcmp(whole, other) != 0)
        abort();
    free(other);
    if (in.len <= 512 && seed >> 62 == 0) { /* now and then, for it is slow */
        other = feed_bytewise(side, in);
        if (strcmp(whole, other) != 0)
            abort();
        free(other);
    }
    free(whole);
}

#endif
