/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The struct first, then the views of headers, then the texts one after the other; the views in the
 * struct point at them.
 */
#include "telemetry/record_copy.h"

#include <string.h>

static const struct {
    size_t at; /* of a struct bytes in the record */
    size_t limit;
} texts[RECORD_TEXT_COUNT] = {
#define X(name, limit) [RECORD_TEXT_##name] = {offsetof(struct request_record, name), limit},
    RECORD_TEXTS(X)
#undef X
};

static const struct bytes *text_in(const struct request_record *r, unsigned i)
{
    return (const struct bytes *)(const void *)((const char *)r + texts[i].at);
}

/* As much of |b| as may stay, cut before a UTF-8 sequence rather than within. */
static size_t kept(struct bytes b, size_t limit)
{
    if (b.len <= limit)
        return b.len;

    size_t len = limit;

    for (unsigned back = 0; back < 3 && len > 0 && (b.data[len] & 0xc0) == 0x80; back++)
        len--;
    return len;
}

/* Of a constant text with its NUL; 0 for NULL. */
static size_t word_size(const char *word)
{
    const char *end;

    if (word == NULL)
        return 0;
    end = memchr(word, '\0', RECORD_WORD_MAX);
    return (end == NULL ? RECORD_WORD_MAX : (size_t)(end - word)) + 1;
}

static size_t path_size(const struct address *a)
{
    return a->kind == ADDRESS_UNIX ? word_size(a->path) : 0;
}

static uint32_t attempts_of(const struct request_record *r)
{
    return r->attempt_count < RECORD_ATTEMPTS_MAX ? r->attempt_count : RECORD_ATTEMPTS_MAX;
}

/* The struct, as far as there are attempts. */
static size_t fixed_size(uint32_t attempts)
{
    return offsetof(struct record_copy, record) + offsetof(struct request_record, attempts) +
           attempts * sizeof(struct record_attempt);
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t headers_of(uint32_t count)
{
    return smaller(count, ACCESS_HEADERS_MAX);
}

/* As much of each header as there is room for, in order: half of it a side. */
static size_t header_room(const struct bytes *headers, uint32_t count)
{
    size_t sum = 0;

    for (uint32_t i = 0; i < headers_of(count); i++)
        sum += headers[i].len;
    return sum < RECORD_HEADER_BYTES / 2 ? sum : RECORD_HEADER_BYTES / 2;
}

static size_t headers_size(const struct request_record *r)
{
    size_t views = headers_of(r->request_header_count) + headers_of(r->response_header_count);

    return views * sizeof(struct bytes) + header_room(r->request_headers, r->request_header_count) +
           header_room(r->response_headers, r->response_header_count);
}

size_t record_copy_size(const struct request_record *r)
{
    uint32_t attempts = attempts_of(r);
    size_t size = fixed_size(attempts) + headers_size(r);

    for (unsigned i = 0; i < RECORD_TEXT_COUNT; i++)
        size += kept(*text_in(r, i), texts[i].limit);
    size += word_size(r->protocol) + word_size(r->details) + word_size(r->termination) +
            word_size(r->transport_failure);
    size += path_size(&r->downstream_remote) + path_size(&r->downstream_local);
    for (uint32_t i = 0; i < attempts; i++)
        size +=
            kept(r->attempts[i].endpoint, RECORD_ENDPOINT_MAX) + word_size(r->attempts[i].outcome);
    return size;
}

static struct bytes put_text(uint8_t **at, struct bytes b, size_t limit)
{
    struct bytes copy = bytes_from(*at, kept(b, limit));

    if (copy.len == 0)
        return BYTES_NONE;
    memcpy(*at, b.data, copy.len);
    *at += copy.len;
    return copy;
}

static const char *put_word(uint8_t **at, const char *word)
{
    size_t size = word_size(word);
    char *copy = (char *)*at;

    if (size == 0)
        return NULL;
    memcpy(copy, word, size - 1);
    copy[size - 1] = '\0';
    *at += size;
    return copy;
}

static void put_path(uint8_t **at, struct address *to, const struct address *from)
{
    to->path = from->kind == ADDRESS_UNIX ? put_word(at, from->path) : NULL;
}

static const struct bytes *put_headers(uint8_t **at, struct bytes *views,
                                       const struct bytes *headers, uint32_t count)
{
    size_t room = RECORD_HEADER_BYTES / 2;

    for (uint32_t i = 0; i < count; i++) {
        views[i] = put_text(at, headers[i], room);
        room -= views[i].len;
    }
    return count == 0 ? NULL : views;
}

/* |*at| is where the views go. */
static void copy_headers(uint8_t **at, struct request_record *to, const struct request_record *from)
{
    uint32_t requests = headers_of(from->request_header_count);
    uint32_t responses = headers_of(from->response_header_count);
    struct bytes *views = (struct bytes *)(void *)*at;

    *at += (requests + responses) * sizeof(struct bytes);
    to->request_headers = put_headers(at, views, from->request_headers, requests);
    to->response_headers = put_headers(at, views + requests, from->response_headers, responses);
    to->request_header_count = requests;
    to->response_header_count = responses;
}

void record_copy_fill(struct record_copy *to, const struct request_record *r)
{
    uint32_t attempts = attempts_of(r);
    struct request_record *copy = &to->record;
    uint8_t *at = (uint8_t *)to + fixed_size(attempts);

    memcpy(copy, r, fixed_size(attempts) - offsetof(struct record_copy, record));
    to->cut = 0;
    copy->attempt_count = attempts;
    copy_headers(&at, copy, r);
    for (unsigned i = 0; i < RECORD_TEXT_COUNT; i++) {
        struct bytes whole = *text_in(r, i);
        struct bytes *text = (struct bytes *)(void *)((char *)copy + texts[i].at);

        *text = put_text(&at, whole, texts[i].limit);
        if (text->len < whole.len)
            to->cut |= 1u << i;
    }
    copy->protocol = put_word(&at, r->protocol);
    copy->details = put_word(&at, r->details);
    copy->termination = put_word(&at, r->termination);
    copy->transport_failure = put_word(&at, r->transport_failure);
    put_path(&at, &copy->downstream_remote, &r->downstream_remote);
    put_path(&at, &copy->downstream_local, &r->downstream_local);
    for (uint32_t i = 0; i < attempts; i++) {
        struct record_attempt *a = &copy->attempts[i];

        a->endpoint = put_text(&at, r->attempts[i].endpoint, RECORD_ENDPOINT_MAX);
        a->outcome = put_word(&at, r->attempts[i].outcome);
    }
}
