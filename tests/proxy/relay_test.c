/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/relay.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/rng.h"

#define ROOM (1u << 20)

struct output {
    size_t len;
    uint8_t bytes[ROOM];
};

static struct output out;

static void collect(void *to, const struct bytes *parts, size_t n)
{
    struct output *o = to;

    assert_true(n > 0 && n <= LINK_PARTS_MAX);
    for (size_t i = 0; i < n; i++) {
        assert_true(parts[i].len > 0 && o->len + parts[i].len <= ROOM);
        memcpy(o->bytes + o->len, parts[i].data, parts[i].len);
        o->len += parts[i].len;
    }
}

static struct relay relay_of(enum body_kind kind, uint64_t length, enum relay_framing framing)
{
    struct message_head head = {.status = 200, .body = kind, .length = length};
    struct relay r = {.framing = framing};

    http1_body_init(&r.body, &head, 4096);
    return r;
}

/* Feeds |in| in pieces of at most |piece| bytes; what is left comes again, as the glue does it. */
static enum relay_result feed(struct relay *r, struct bytes in, size_t piece, size_t *left)
{
    struct http1_fault fault;
    size_t from = 0, to = 0;
    enum relay_result result = RELAY_MORE;

    while (result == RELAY_MORE && to < in.len) {
        struct bytes part;
        struct gather g;

        to = in.len - to < piece ? in.len : to + piece;
        part = bytes_slice(in, from, to - from);
        gather_init(&g, collect, &out);
        result = relay_feed(r, &part, &g, &fault);
        gather_flush(&g);
        from = to - part.len;
    }
    *left = in.len - from;
    return result;
}

static void expect(struct relay r, struct bytes in, enum relay_result result, struct bytes goes)
{
    for (size_t piece = 1; piece <= in.len; piece++) {
        struct relay mine = r;
        size_t left;

        out.len = 0;
        assert_int_equal(feed(&mine, in, piece, &left), result);
        if (piece == in.len) {
            assert_int_equal(out.len, goes.len);
            assert_memory_equal(out.bytes, goes.data, goes.len);
        }
    }
}

static void each_framing_becomes_each(void **state)
{
    const struct bytes chunks = BYTES("5;a=b\r\nhello\r\n1\r\n!\r\n0\r\n\r\n");
    (void)state;

    expect(relay_of(BODY_LENGTH, 5, RELAY_PLAIN), BYTES("hello"), RELAY_DONE, BYTES("hello"));
    expect(relay_of(BODY_CHUNKED, 0, RELAY_PLAIN), chunks, RELAY_DONE, BYTES("hello!"));
    expect(relay_of(BODY_CHUNKED, 0, RELAY_CHUNKED), chunks, RELAY_DONE,
           BYTES("5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n"));
    expect(relay_of(BODY_TO_CLOSE, 0, RELAY_CHUNKED), BYTES("hello"), RELAY_MORE,
           BYTES("5\r\nhello\r\n"));
}

static void trailers_pass_but_for_what_frames(void **state)
{
    (void)state;
    expect(relay_of(BODY_CHUNKED, 0, RELAY_CHUNKED),
           BYTES("1\r\na\r\n0\r\nX-Sum:  1 \r\nContent-Length: 3\r\nhost: a\r\n\r\n"), RELAY_DONE,
           BYTES("1\r\na\r\n0\r\nX-Sum: 1\r\n\r\n"));
}

static void what_follows_the_body_is_left(void **state)
{
    struct relay r = relay_of(BODY_CHUNKED, 0, RELAY_CHUNKED);
    size_t left;
    (void)state;

    out.len = 0;
    assert_int_equal(feed(&r, BYTES("1\r\na\r\n0\r\n\r\nGET /"), 100, &left), RELAY_DONE);
    assert_int_equal(left, 5);
    assert_int_equal(r.moved, 1);
}

static void nonsense_is_bad_and_never_framed_as_an_end(void **state)
{
    (void)state;
    expect(relay_of(BODY_CHUNKED, 0, RELAY_CHUNKED), BYTES("1\r\nab\r\n0\r\n\r\n"), RELAY_BAD,
           BYTES("1\r\na\r\n"));
}

static void only_a_body_to_the_close_ends_by_it(void **state)
{
    struct relay r = relay_of(BODY_TO_CLOSE, 0, RELAY_CHUNKED);
    struct gather g;
    (void)state;

    out.len = 0;
    gather_init(&g, collect, &out);
    assert_int_equal(relay_end(&r, &g), RELAY_DONE);
    gather_flush(&g);
    assert_memory_equal(out.bytes, "0\r\n\r\n", 5);
    r = relay_of(BODY_CHUNKED, 0, RELAY_CHUNKED);
    assert_int_equal(relay_end(&r, &g), RELAY_BAD);
    r = relay_of(BODY_LENGTH, 1, RELAY_PLAIN);
    assert_int_equal(relay_end(&r, &g), RELAY_BAD);
}

/* --- law: random chunks, cut up at random; the bytes are the same, and no prefix looks whole ---
 */

static struct bytes random_chunks(struct rng *rng, struct bytes data, uint8_t *room)
{
    size_t at = 0, len = 0;

    while (at < data.len) {
        size_t n = 1 + rng_below(rng, rng_below(rng, 4) == 0 ? 40000 : 20);

        n = n < data.len - at ? n : data.len - at;
        len += (size_t)sprintf((char *)room + len, "%zx%s\r\n", n, rng_below(rng, 2) ? ";x" : "");
        memcpy(room + len, data.data + at, n);
        len += n;
        at += n;
        memcpy(room + len, "\r\n", 2);
        len += 2;
    }
    len += (size_t)sprintf((char *)room + len, "0\r\n%s\r\n", rng_below(rng, 2) ? "a: b\r\n" : "");
    return bytes_from(room, len);
}

/* Decodes what went out; true where it is whole. */
static bool decode(struct bytes in, struct bytes expected, size_t *len)
{
    struct relay r = relay_of(BODY_CHUNKED, 0, RELAY_CHUNKED);
    struct http1_fault fault;

    *len = 0;
    while (!http1_body_done(&r.body)) {
        struct bytes data, trailers;
        enum http1_result result = http1_body_read(&r.body, &in, &data, &trailers, &fault);

        assert_int_not_equal(result, HTTP1_BAD);
        assert_true(*len + data.len <= expected.len);
        if (data.len > 0)
            assert_memory_equal(data.data, expected.data + *len, data.len);
        *len += data.len;
        if (result == HTTP1_MORE && !http1_body_done(&r.body))
            return false;
    }
    assert_int_equal(in.len, 0);
    return true;
}

static void bytes_are_the_same_and_a_prefix_is_never_whole(void **state)
{
    static uint8_t body[60000], chunks[ROOM];
    struct rng rng;
    (void)state;

    rng_init(&rng, 4);
    for (size_t i = 0; i < sizeof(body); i++)
        body[i] = (uint8_t)rng_next(&rng);
    for (unsigned round = 0; round < 500; round++) {
        struct bytes data = bytes_from(body, rng_below(&rng, round % 10 == 0 ? sizeof(body) : 300));
        struct bytes in = random_chunks(&rng, data, chunks);
        struct relay r = relay_of(BODY_CHUNKED, 0, RELAY_CHUNKED);
        struct relay cut = r;
        size_t left, len, piece = 1 + rng_below(&rng, rng_below(&rng, 2) == 0 ? 20 : 65536);

        out.len = 0;
        assert_int_equal(feed(&r, in, piece, &left), RELAY_DONE);
        assert_int_equal(left, 0);
        assert_int_equal(r.moved, data.len);
        assert_true(decode(bytes_from(out.bytes, out.len), data, &len));
        assert_int_equal(len, data.len);

        out.len = 0;
        in.len = rng_below(&rng, (uint32_t)in.len);
        assert_int_equal(feed(&cut, in, piece, &left), RELAY_MORE);
        assert_false(decode(bytes_from(out.bytes, out.len), data, &len));
        assert_false(http1_body_ended(&cut.body));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_framing_becomes_each),
        cmocka_unit_test(trailers_pass_but_for_what_frames),
        cmocka_unit_test(what_follows_the_body_is_left),
        cmocka_unit_test(nonsense_is_bad_and_never_framed_as_an_end),
        cmocka_unit_test(only_a_body_to_the_close_ends_by_it),
        cmocka_unit_test(bytes_are_the_same_and_a_prefix_is_never_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
