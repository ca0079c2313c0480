/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of bodies: chunks, extensions, trailers, and their limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "codec/http1_feed.h"

#define HEAD "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"

static const uint8_t nul_in_quotes[] = HEAD "5;a=\"\0\"\r\nhello\r\n0\r\n\r\n";

/* The transcript of a request with the chunked body |chunks|, without the line of its head. */
static char *feed_chunks(struct bytes chunks)
{
    size_t room = sizeof(HEAD) + chunks.len;
    char *in = feed_memory(room);
    char *whole, *bytewise, *tail;

    memcpy(in, HEAD, sizeof(HEAD) - 1);
    memcpy(in + sizeof(HEAD) - 1, chunks.data, chunks.len);
    whole = feed_whole(FEED_REQUESTS, bytes_from(in, room - 1));
    bytewise = feed_bytewise(FEED_REQUESTS, bytes_from(in, room - 1));
    assert_string_equal(whole, bytewise);
    tail = strchr(whole, '\n');
    assert_non_null(tail);
    tail = strdup(tail + 1);
    free(in);
    free(whole);
    free(bytewise);
    return tail;
}

struct row {
    const char *in;
    const char *expected;
};

static void expect_rows(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char *got = feed_chunks(bytes_of(rows[i].in));

        if (strcmp(got, rows[i].expected) != 0)
            fail_msg("%s\ngot\n%s\nexpected\n%s", rows[i].in, got, rows[i].expected);
        free(got);
    }
}

#define EXPECT(rows)  expect_rows(rows, sizeof(rows) / sizeof(rows[0]))
#define BAD(text)     "BAD 400 http1.codec_error: " text "\n"
#define END           "0\r\n\r\n"
#define HELLO         "\r\nhello\r\n" END
#define GOT_HELLO     "hello\nend\n"
#define BAD_EXTENSION "\n" BAD("bad chunk extension")
#define BAD_AFTER     "\n" BAD("bad character after a chunk size")

static void chunks_are_joined(void **state)
{
    static const struct row rows[] = {
        {END, "\nend\n"},
        {"5" HELLO, GOT_HELLO},
        {"2\r\nhe\r\n3\r\nllo\r\n" END, GOT_HELLO},
        {"A\r\n0123456789\r\na\r\n0123456789\r\n" END, "01234567890123456789\nend\n"},
        {"1f\r\n0123456789012345678901234567890\r\n" END, "0123456789012345678901234567890\nend\n"},
        {"0000000000000005" HELLO, GOT_HELLO},
        {"00\r\n\r\n", "\nend\n"},
        {END "GET", "\nend\ncut in head\n"},
        {"5\r\nhel", "hel\ncut in body\n"},
        {"5\r\nhello\r\n0\r\n", "hello\ncut in body\n"},
        {"5\r\nhello\r\n0\r\n\r", "hello\ncut in body\n"},
    };
    (void)state;
    EXPECT(rows);
}

static void a_chunk_size_is_hex_digits_and_nothing_else(void **state)
{
    static const struct row rows[] = {
        {"\r\nhello", "\n" BAD("no chunk size where one must be")},
        {"x\r\n", "\n" BAD("no chunk size where one must be")},
        {"-5" HELLO, "\n" BAD("no chunk size where one must be")},
        {"+5" HELLO, "\n" BAD("no chunk size where one must be")},
        {" 5" HELLO, "\n" BAD("no chunk size where one must be")},
        {";a" HELLO, "\n" BAD("no chunk size where one must be")},
        {"0x5" HELLO, BAD_AFTER},
        {"5g" HELLO, BAD_AFTER},
        {"5\nhello\r\n" END, BAD_AFTER},
        {"5_0" HELLO, BAD_AFTER},
        {"00000000000000005" HELLO, "\n" BAD("chunk size of more than 16 digits")},
        {"8000000000000000\r\n", "\n" BAD("chunk size too large")},
        {"ffffffffffffffff\r\n", "\n" BAD("chunk size too large")},
        {"7fffffffffffffff\r\nx", "x\ncut in body\n"},
        {"5\r"
         "5",
         "\n" BAD("carriage return without line feed in a chunk-size line")},
        {"5\r\r\n", "\n" BAD("carriage return without line feed in a chunk-size line")},
    };
    (void)state;
    EXPECT(rows);
}

static void a_chunk_ends_where_it_says_and_with_a_line_end(void **state)
{
    static const struct row rows[] = {
        {"5\r\nhello0\r\n\r\n", "hello\n" BAD("chunk longer than its size")},
        {"5\r\nhello\n" END, "hello\n" BAD("chunk longer than its size")},
        {"5\r\nhello\r"
         "0",
         "hello\n" BAD("carriage return without line feed after a chunk")},
        {"5\r\nhello\r\n\r\n", "hello\n" BAD("no chunk size where one must be")},
    };
    (void)state;
    EXPECT(rows);
}

static void extensions_are_dropped_but_must_be_well_formed(void **state)
{
    static const struct row rows[] = {
        {"5;a" HELLO, GOT_HELLO},
        {"5;a=b" HELLO, GOT_HELLO},
        {"5;a=b;c;d=\"e\"" HELLO, GOT_HELLO},
        {"5 ; a = b ; c" HELLO, GOT_HELLO},
        {"5 \t;\ta\t=\t\"b\" \t; c" HELLO, GOT_HELLO},
        {"5;a=\"q;\\\" \\\\ \t \xC3\xA9\"" HELLO, GOT_HELLO},
        {"5;a=\"\"" HELLO, GOT_HELLO},
        {"5;a ;b" HELLO, GOT_HELLO},
        {"5 " HELLO, BAD_EXTENSION},
        {"5 a" HELLO, BAD_EXTENSION},
        {"5;" HELLO, BAD_EXTENSION},
        {"5; " HELLO, BAD_EXTENSION},
        {"5;;a" HELLO, BAD_EXTENSION},
        {"5;=b" HELLO, BAD_EXTENSION},
        {"5;a " HELLO, BAD_EXTENSION},
        {"5;a b" HELLO, BAD_EXTENSION},
        {"5;a=" HELLO, BAD_EXTENSION},
        {"5;a=;b" HELLO, BAD_EXTENSION},
        {"5;a=b=c" HELLO, BAD_EXTENSION},
        {"5;a=b c" HELLO, BAD_EXTENSION},
        {"5;a=b " HELLO, BAD_EXTENSION},
        {"5;a=b\"c\"" HELLO, BAD_EXTENSION},
        {"5;a=\"b\"c" HELLO, BAD_EXTENSION},
        {"5;a=\"b" HELLO, BAD_EXTENSION},
        {"5;a=\"b\n\"" HELLO, BAD_EXTENSION},
        {"5;a=\"b\\\r\n\"" HELLO, BAD_EXTENSION},
        {"5;a=\"\x7f\"" HELLO, BAD_EXTENSION},
        {"5;a\n" HELLO, BAD_EXTENSION},
        {"5;a=b\n" HELLO, BAD_EXTENSION},
        {"5;a@" HELLO, BAD_EXTENSION},
        {"0;a=b\r\n\r\n", "\nend\n"},
    };
    char *got;
    (void)state;

    EXPECT(rows);
    got = feed_whole(FEED_REQUESTS, bytes_from(nul_in_quotes, sizeof(nul_in_quotes) - 1));
    assert_non_null(strstr(got, BAD_EXTENSION));
    free(got);
}

static void a_chunk_size_line_has_at_most_4096_bytes(void **state)
{
    static char in[HTTP1_CHUNK_LINE_MAX + 64];
    char *got;
    (void)state;

    memset(in, 'a', sizeof(in));
    memcpy(in, "5;", 2);
    memcpy(in + HTTP1_CHUNK_LINE_MAX - 2, HELLO, sizeof(HELLO));
    got = feed_chunks(bytes_of(in));
    assert_string_equal(got, GOT_HELLO);
    free(got);
    in[HTTP1_CHUNK_LINE_MAX - 2] = 'a';
    memcpy(in + HTTP1_CHUNK_LINE_MAX - 1, HELLO, sizeof(HELLO));
    got = feed_chunks(bytes_of(in));
    assert_string_equal(got, "\n" BAD("chunk-size line too long"));
    free(got);
}

/* The limit is of one line, not of all lines together. */
static void long_lines_one_after_the_other_are_each_counted_anew(void **state)
{
    static char in[3 * HTTP1_CHUNK_LINE_MAX];
    char *got;
    (void)state;

    memset(in, 'a', sizeof(in));
    memcpy(in, "1;", 2);
    memcpy(in + 3000, "\r\nx\r\n1;", 7);
    memcpy(in + 6000, "\r\ny\r\n" END, sizeof("\r\ny\r\n" END));
    got = feed_chunks(bytes_of(in));
    assert_string_equal(got, "xy\nend\n");
    free(got);
}

static void trailer_lines_are_as_strict_as_field_lines(void **state)
{
    static const struct row rows[] = {
        {"0\r\nA: b\r\nX-C:\td \r\n\r\n", "\ntrailer A: b\ntrailer X-C: d\nend\n"},
        {"0\r\nA: b\r\n\r\nGET", "\ntrailer A: b\nend\ncut in head\n"},
        {"0\r\nA: b\r\n", "\ncut in body\n"},
        {"0\r\n\n", "\n" BAD("line feed without carriage return in a trailer section")},
        {"0\r\nA: b\n\r\n", "\n" BAD("line feed without carriage return in a trailer section")},
        {"0\r\nA: b\r\n\n", "\n" BAD("line feed without carriage return in a trailer section")},
        {"0\r\nA b\r\n\r\n", "\n" BAD("blank between field name and colon")},
        {"0\r\nA\r\n\r\n", "\n" BAD("field line without a colon")},
        {"0\r\nA: b\r\n c\r\n\r\n", "\n" BAD("folded field line")},
        {"0\r\n: c\r\n\r\n", "\n" BAD("field line without a name")},
        {"0\r\nA: b\rc\r\n\r\n", "\n" BAD("carriage return without line feed")},
        {"0\r\nA: \x01\r\n\r\n", "\nBAD 400 http1.invalid_characters: control character\n"},
    };
    (void)state;
    EXPECT(rows);
}

static void trailers_that_would_change_the_message_are_skipped(void **state)
{
    static const struct row rows[] = {
        {"0\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\nHost: x\r\nConnection: a\r\n"
         "Keep-Alive: a\r\nTE: a\r\nTrailer: a\r\nUpgrade: a\r\nExpect: a\r\nVia: a\r\n"
         "Proxy-Connection: a\r\nProxy-Authenticate: a\r\nProxy-Authorization: a\r\n"
         "HTTP2-Settings: a\r\nX-Forwarded-For: a\r\nX-Forwarded-Proto: a\r\nX-FORWARDED-Host: "
         "a\r\n"
         "X-Request-Id: a\r\nForwarded: a\r\nMax-Forwards: 1\r\nDate: a\r\n"
         "Authorization: a\r\nCookie: a\r\nSet-Cookie: a\r\nCache-Control: a\r\nRange: a\r\n"
         "If-Match: a\r\nContent-Type: a\r\ncontent-encoding: a\r\nContent-Range: a\r\n"
         "Location: a\r\nVary: a\r\nRetry-After: 1\r\nX-Real-IP: a\r\n\r\n",
         "\nend\n"},
        {"0\r\nGrpc-Status: 0\r\nHost: x\r\nServer-Timing: a\r\nX-Forwarde: b\r\nDigest: c\r\n"
         "User-Agent: u\r\nServer: s\r\n\r\n",
         "\ntrailer Grpc-Status: 0\ntrailer Server-Timing: a\ntrailer X-Forwarde: b\n"
         "trailer Digest: c\ntrailer User-Agent: u\ntrailer Server: s\nend\n"},
    };
    (void)state;
    EXPECT(rows);
}

static struct http1_body chunked_body(uint32_t trailer_limit)
{
    static struct message_head head;
    struct http1_body body;

    memset(&head, 0, sizeof(head));
    head.body = BODY_CHUNKED;
    http1_body_init(&body, &head, trailer_limit);
    return body;
}

static void a_trailer_section_may_be_as_long_as_its_limit(void **state)
{
    struct bytes section = BYTES("A: b\r\nC: d\r\n\r\n");
    (void)state;

    for (uint32_t limit = 0; limit <= section.len + 1; limit++) {
        struct http1_body body = chunked_body(limit);
        struct bytes in = BYTES("0\r\nA: b\r\nC: d\r\n\r\n");
        struct http1_fault fault = {0};
        struct bytes data, trailers;
        enum http1_result result = http1_body_read(&body, &in, &data, &trailers, &fault);

        assert_int_equal(result, limit >= section.len ? HTTP1_OK : HTTP1_BAD);
        if (result == HTTP1_BAD)
            assert_int_equal(fault.status, 431);
        else
            assert_int_equal(trailers.len, section.len - 2);
    }
}

static void a_trailer_section_of_an_upstream_too_long_is_502(void **state)
{
    struct message_head head;
    struct http1_body body;
    struct bytes in = BYTES("0\r\nA: 0123456789\r\n");
    struct bytes data, trailers;
    struct http1_fault fault = {0};
    (void)state;

    memset(&head, 0, sizeof(head));
    head.status = 200;
    head.body = BODY_CHUNKED;
    http1_body_init(&body, &head, 10);
    assert_int_equal(http1_body_read(&body, &in, &data, &trailers, &fault), HTTP1_BAD);
    assert_int_equal(fault.status, 502);
    assert_string_equal(fault.details, "http1.trailers_too_large");
}

/* As for heads: what was looked at is spoilt, and nobody notices. */
static void trailer_bytes_looked_at_are_not_looked_at_again(void **state)
{
    enum { SIZE = 32 * 1024 };
    static uint8_t in[SIZE];
    static uint8_t seen[SIZE];
    struct http1_body body = chunked_body(SIZE);
    struct bytes rest = BYTES("0\r\n");
    struct bytes data, trailers;
    struct http1_fault fault;
    (void)state;

    memset(in, 'v', SIZE);
    memcpy(in, "A: ", 3);
    for (size_t at = 1000; at < SIZE - 1000; at += 1000)
        memcpy(in + at, "\r\nB: ", 5);
    memcpy(in + SIZE - 4, "\r\n\r\n", 4);
    memset(seen, '\n', SIZE);
    assert_int_equal(http1_body_read(&body, &rest, &data, &trailers, &fault), HTTP1_MORE);
    for (size_t len = 1; len < SIZE; len++) {
        size_t keep = len < 3 ? len : 3;

        memcpy(seen + len - keep, in + len - keep, keep);
        rest = bytes_from(seen, len);
        assert_int_equal(http1_body_read(&body, &rest, &data, &trailers, &fault), HTTP1_MORE);
        assert_int_equal(rest.len, len);
        assert_int_equal(body.line_bytes, len);
        if (len >= 3)
            seen[len - 3] = '\n';
    }
    rest = bytes_from(in, SIZE);
    assert_int_equal(http1_body_read(&body, &rest, &data, &trailers, &fault), HTTP1_OK);
    assert_true(http1_body_done(&body));
    assert_int_equal(rest.len, 0);
}

static void data_is_handed_out_stretch_by_stretch_in_place(void **state)
{
    struct http1_body body = chunked_body(100);
    struct bytes in = BYTES("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\nNEXT");
    struct bytes all = in;
    struct bytes data, trailers;
    struct http1_fault fault;
    (void)state;

    assert_int_equal(http1_body_read(&body, &in, &data, &trailers, &fault), HTTP1_OK);
    assert_ptr_equal(data.data, all.data + 3);
    assert_int_equal(data.len, 3);
    assert_int_equal(http1_body_read(&body, &in, &data, &trailers, &fault), HTTP1_OK);
    assert_ptr_equal(data.data, all.data + 11);
    assert_int_equal(data.len, 2);
    assert_false(http1_body_ended(&body));
    assert_int_equal(http1_body_read(&body, &in, &data, &trailers, &fault), HTTP1_OK);
    assert_int_equal(data.len, 0);
    assert_true(http1_body_done(&body));
    assert_true(bytes_equal(in, BYTES("NEXT")));
    assert_int_equal(http1_body_read(&body, &in, &data, &trailers, &fault), HTTP1_OK);
    assert_int_equal(data.len, 0);
    assert_true(bytes_equal(in, BYTES("NEXT")));
    assert_true(http1_body_ended(&body));
}

static void a_length_that_is_cut_is_no_whole_body(void **state)
{
    struct message_head head;
    struct http1_body body;
    struct bytes in = BYTES("abcd");
    struct bytes data, trailers;
    struct http1_fault fault;
    (void)state;

    memset(&head, 0, sizeof(head));
    head.body = BODY_LENGTH;
    head.length = 5;
    http1_body_init(&body, &head, 100);
    assert_int_equal(http1_body_read(&body, &in, &data, &trailers, &fault), HTTP1_OK);
    assert_int_equal(data.len, 4);
    assert_false(http1_body_ended(&body));
    assert_int_equal(http1_body_read(&body, &in, &data, &trailers, &fault), HTTP1_MORE);
    in = BYTES("efgh");
    assert_int_equal(http1_body_read(&body, &in, &data, &trailers, &fault), HTTP1_OK);
    assert_true(bytes_equal(data, BYTES("e")));
    assert_true(bytes_equal(in, BYTES("fgh")));
    assert_true(http1_body_ended(&body));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_are_joined),
        cmocka_unit_test(a_chunk_size_is_hex_digits_and_nothing_else),
        cmocka_unit_test(a_chunk_ends_where_it_says_and_with_a_line_end),
        cmocka_unit_test(extensions_are_dropped_but_must_be_well_formed),
        cmocka_unit_test(a_chunk_size_line_has_at_most_4096_bytes),
        cmocka_unit_test(long_lines_one_after_the_other_are_each_counted_anew),
        cmocka_unit_test(trailer_lines_are_as_strict_as_field_lines),
        cmocka_unit_test(trailers_that_would_change_the_message_are_skipped),
        cmocka_unit_test(a_trailer_section_may_be_as_long_as_its_limit),
        cmocka_unit_test(a_trailer_section_of_an_upstream_too_long_is_502),
        cmocka_unit_test(trailer_bytes_looked_at_are_not_looked_at_again),
        cmocka_unit_test(data_is_handed_out_stretch_by_stretch_in_place),
        cmocka_unit_test(a_length_that_is_cut_is_no_whole_body),
    };

    return cmocka_run_group_tests_name("http1_body", tests, NULL, NULL);
}
