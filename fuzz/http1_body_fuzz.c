/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the chunked decoder. Oracles: how the bytes are cut does not matter; what was decoded,
 * encoded again as a proxy does, decodes to the same; the decoder never gives more than it got.
 */
#include "../tests/codec/http1_feed.h"

#define HEAD "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"

struct decoded {
    uint8_t *data;
    size_t len;
    struct bytes trailers;
    bool done;
};

static struct decoded decode(struct bytes in)
{
    static struct message_head head;
    struct decoded out = {.data = feed_memory(in.len)};
    struct http1_body body;
    struct http1_fault fault;
    enum http1_result result;

    head.body = BODY_CHUNKED;
    http1_body_init(&body, &head, 64 * 1024);
    do {
        struct bytes data;

        result = http1_body_read(&body, &in, &data, &out.trailers, &fault);
        if (data.len > 0)
            memcpy(out.data + out.len, data.data, data.len);
        out.len += data.len;
    } while (result == HTTP1_OK && !http1_body_done(&body));
    out.done = result == HTTP1_OK;
    return out;
}

static void write_chunks(struct text *t, const struct decoded *d, uint64_t seed)
{
    struct bytes rest = bytes_from(d->data, d->len);
    struct bytes trailers = d->trailers;
    struct field field;

    while (rest.len > 0) {
        struct bytes data = bytes_slice(rest, 0, 1 + seed % 40);
        uint8_t size[HTTP1_CHUNK_HEAD_MAX];

        text_put(t, bytes_from(size, http1_write_chunk_head(size, data.len)));
        text_put(t, data);
        text_str(t, "\r\n");
        rest = bytes_skip(rest, data.len);
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    }
    text_str(t, "0\r\n");
    while (http1_next_trailer(&trailers, &field)) {
        text_put(t, field.name);
        text_str(t, ": ");
        text_put(t, field.value);
        text_str(t, "\r\n");
    }
    text_str(t, "\r\n");
}

static bool same_trailers(struct bytes a, struct bytes b)
{
    struct field x, y;

    while (http1_next_trailer(&a, &x))
        if (!http1_next_trailer(&b, &y) || !bytes_equal(x.name, y.name) ||
            !bytes_equal(x.value, y.value) || x.id != y.id)
            return false;
    return !http1_next_trailer(&b, &y);
}

static void check_encoded_again(struct bytes in, uint64_t seed)
{
    struct decoded first = decode(in);

    if (first.done) {
        size_t room = in.len * 16 + 1024;
        char *again = feed_memory(room);
        struct text out;
        struct decoded second;

        text_init(&out, again, room);
        write_chunks(&out, &first, seed);
        second = decode(text_bytes(&out));
        if (out.failed || !second.done || second.len != first.len ||
            memcmp(first.data, second.data, first.len) != 0 ||
            !same_trailers(first.trailers, second.trailers))
            abort();
        free(second.data);
        free(again);
    }
    free(first.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t seed = bytes_hash(bytes_from(data, size));
    size_t len = sizeof(HEAD) - 1 + size;
    uint8_t *message = feed_memory(len);

    memcpy(message, HEAD, sizeof(HEAD) - 1);
    if (size > 0)
        memcpy(message + sizeof(HEAD) - 1, data, size);
    feed_check_cuts(FEED_REQUESTS, bytes_from(message, len), seed);
    check_encoded_again(bytes_from(data, size), seed);
    free(message);
    return 0;
}
