/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of response heads, and of where a response ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "codec/http1_feed.h"

struct row {
    const char *in;
    const char *expected; /* the transcript begins so */
};

static void expect_rows(enum feed_side side, const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char *whole = feed_whole(side, bytes_of(rows[i].in));
        char *bytewise = feed_bytewise(side, bytes_of(rows[i].in));

        if (strncmp(whole, rows[i].expected, strlen(rows[i].expected)) != 0)
            fail_msg("%s\ngot\n%s\nexpected\n%s", rows[i].in, whole, rows[i].expected);
        assert_string_equal(whole, bytewise);
        free(whole);
        free(bytewise);
    }
}

#define EXPECT(rows)      expect_rows(FEED_RESPONSES, rows, sizeof(rows) / sizeof(rows[0]))
#define EXPECT_HEAD(rows) expect_rows(FEED_RESPONSES_TO_HEAD, rows, sizeof(rows) / sizeof(rows[0]))
#define BAD(text)         "BAD 502 http1.codec_error: " text "\n"
#define NO_VERSION        BAD("no HTTP version where one must be")
#define NO_STATUS         BAD("no status code of three digits")

static void a_status_line_has_a_version_and_three_digits(void **state)
{
    static const struct row rows[] = {
        {"HTTP/1.1 200 OK\r\n\r\n", "200 OK 1.1 close to-close\n"},
        {"HTTP/1.1 200 \r\n\r\n", "200  1.1 close to-close\n"},
        {"HTTP/1.1 200\r\n\r\n", "200  1.1 close to-close\n"},
        {"HTTP/1.1 200  a  b \t\r\n\r\n", "200 a  b 1.1 close to-close\n"},
        {"HTTP/1.1 299 \xC3\xA9t\xC3\xA9\ty\r\n\r\n", "299 \xC3\xA9t\xC3\xA9\ty 1.1"},
        {"HTTP/1.1 999 ?\r\n\r\n", "999 ? 1.1 close to-close\n"},
        {"HTTP/1.7 200 OK\r\n\r\n", "200 OK 1.1 close to-close\n"},
        {"HTTP/1.0 200 OK\r\n\r\n", "200 OK 1.0 close to-close\n"},
        {"HTTP/1.1 099 ?\r\n\r\n", BAD("status code below 100")},
        {"HTTP/1.1 20 OK\r\n\r\n", NO_STATUS},
        {"HTTP/1.1 2000 OK\r\n\r\n", NO_STATUS},
        {"HTTP/1.1 2x0 OK\r\n\r\n", NO_STATUS},
        {"HTTP/1.1 20: OK\r\n\r\n", NO_STATUS},
        {"HTTP/1.1 20/ OK\r\n\r\n", NO_STATUS},
        {"HTTP/1.1  200 OK\r\n\r\n", NO_STATUS},
        {"HTTP/1.1\t200 OK\r\n\r\n", NO_STATUS},
        {"HTTP/1.1 200\tOK\r\n\r\n", NO_STATUS},
        {"HTTP/1.1\r\n\r\n", NO_STATUS},
        {"HTTP/2.0 200 OK\r\n\r\n", BAD("not a version of HTTP/1")},
        {"HTTP/0.9 200 OK\r\n\r\n", BAD("not a version of HTTP/1")},
        {"ICY 200 OK\r\n\r\n", NO_VERSION},
        {"http/1.1 200 OK\r\n\r\n", NO_VERSION},
        {"\r\nHTTP/1.1 200 OK\r\n\r\n", NO_VERSION},
        {"HTTP/1.1 200 OK\n\n", BAD("line feed without carriage return")},
        {"HTTP/1.1 200\n\n", BAD("line feed without carriage return")},
        {"HTTP/1.1 200 OK\r\r\n\r\n", BAD("carriage return without line feed")},
        {"HTTP/1.1 200 O\x01K\r\n\r\n", "BAD 502 http1.invalid_characters: control character\n"},
    };
    (void)state;
    EXPECT(rows);
}

static void any_fault_of_an_upstream_is_502(void **state)
{
    static const struct row rows[] = {
        {"HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", BAD("folded field line")},
        {"HTTP/1.1 200 OK\r\nA : b\r\n\r\n", BAD("blank between field name and colon")},
        {"HTTP/1.1 200 OK\r\nA: b\nC: d\r\n\r\n", BAD("line feed without carriage return")},
        {"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
         BAD("Content-Length that is not one number")},
        {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nX: y\r\nContent-Length: 1\r\n\r\nx",
         BAD("more than one Content-Length")},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
         "BAD 502 http1.content_length_and_chunked_not_allowed: both"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
         "BAD 502 http1.content_length_and_chunked_not_allowed: both"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
         "BAD 502 http1.invalid_transfer_encoding: transfer coding other than chunked\n"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n",
         "BAD 502 http1.invalid_transfer_encoding: Transfer-Encoding not just chunked\n"},
        {"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
         "BAD 502 http1.transfer_encoding_not_allowed: "},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello",
         "200 OK 1.1 keep chunked [!Transfer-Encoding: chunked]\n\n"
         "BAD 502 http1.codec_error: bad character after a chunk size\n"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA b\r\n\r\n",
         "200 OK 1.1 keep chunked [!Transfer-Encoding: chunked]\n\n"
         "BAD 502 http1.codec_error: blank between field name and colon\n"},
    };
    (void)state;
    EXPECT(rows);
}

static void a_body_ends_by_coding_length_or_close(void **state)
{
    static const struct row rows[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1 404 Nope\r\n\r\nrest",
         "200 OK 1.1 keep length=3 [Content-Length: 3]\nabc\nend\n"
         "404 Nope 1.1 close to-close\nrest\nend by close\n"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
         "200 OK 1.1 keep length=0 [Content-Length: 0]\n\nend\n"},
        {"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx",
         "200 OK 1.0 keep length=1 [!Connection: keep-alive] [Content-Length: 1]\nx\nend\n"},
        {"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\nx",
         "200 OK 1.0 close to-close [!Connection: keep-alive]\nx\nend by close\n"},
        {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nx",
         "200 OK 1.1 close length=2 [!Connection: close] [Content-Length: 2]\nx\ncut in body\n"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n",
         "200 OK 1.1 keep chunked [!Transfer-Encoding: chunked]\nx\ncut in body\n"},
        {"HTTP/1.1 205 Reset\r\nContent-Length: 1\r\n\r\nx",
         "205 Reset 1.1 keep length=1 [Content-Length: 1]\nx\nend\n"},
    };
    (void)state;
    EXPECT(rows);
}

static void some_responses_have_no_body_whatever_they_say(void **state)
{
    static const struct row rows[] = {
        {"HTTP/1.1 204 No\r\n\r\n", "204 No 1.1 keep none\n\nend\n"},
        {"HTTP/1.1 204 No\r\nContent-Length: 0\r\n\r\n",
         "204 No 1.1 keep none=0 [Content-Length: 0]\n\nend\n"},
        {"HTTP/1.1 304 Not\r\n\r\n", "304 Not 1.1 keep none\n\nend\n"},
        {"HTTP/1.1 304 Not\r\nTransfer-Encoding: chunked\r\n\r\n",
         "304 Not 1.1 keep none [!Transfer-Encoding: chunked]\n\nend\n"},
        {"HTTP/1.1 100 C\r\nTransfer-Encoding: chunked\r\n\r\nHTTP/1.1 204 No\r\n\r\n",
         "100 C 1.1 close none [!Transfer-Encoding: chunked]\n\nend\n204 No 1.1 keep "
         "none\n\nend\n"},
    };
    static const struct row to_head[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
         "200 OK 1.1 keep none=5 [Content-Length: 5]\n\nend\n200 OK 1.1 keep none\n\nend\n"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
         "200 OK 1.1 keep none [!Transfer-Encoding: chunked]\n\nend\n"},
    };
    (void)state;
    EXPECT(rows);
    EXPECT_HEAD(to_head);
}

static void a_101_accepts_a_websocket_by_exactly_that_upgrade(void **state)
{
    static const struct row rows[] = {
        {"HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: WebSocket\r\n\r\nraw",
         "101 S 1.1 keep none upgrade websocket [!Connection: upgrade] [!Upgrade: "
         "WebSocket]\ntunnel"},
        {"HTTP/1.1 101 S\r\nUpgrade: websocket\r\n\r\n", "101 S 1.1 keep none [!Up"},
        {"HTTP/1.1 101 S\r\nConnection: upgrade\r\n\r\n", "101 S 1.1 keep none [!Conn"},
        {"HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: websocket, h2c\r\n\r\n",
         "101 S 1.1 keep none upgrade ["},
        {"HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: websocket\r\nUpgrade: h2c\r\n\r\n",
         "101 S 1.1 keep none upgrade ["},
        {"HTTP/1.0 101 S\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
         "101 S 1.0 close none ["},
        {"HTTP/1.1 200 OK\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
         "200 OK 1.1 close to-close upgrade ["},
    };
    (void)state;
    EXPECT(rows);
}

static void nominated_fields_of_a_response_are_marked(void **state)
{
    static const struct row rows[] = {
        {"HTTP/1.1 204 No\r\nX-Hop: 1\r\nConnection: x-hop\r\nProxy-Authenticate: Basic\r\n\r\n",
         "204 No 1.1 keep none [!X-Hop: 1] [!Connection: x-hop] [Proxy-Authenticate: Basic]\n"},
    };
    (void)state;
    EXPECT(rows);
}

static void heads_of_responses_are_limited(void **state)
{
    static uint8_t in[70 * 1024];
    char *got;
    (void)state;

    memset(in, 'a', sizeof(in));
    memcpy(in, "HTTP/1.1 200 ", 13);
    got = feed_whole(FEED_RESPONSES, bytes_from(in, sizeof(in)));
    assert_string_equal(got, "BAD 502 http1.headers_too_large: first line longer than a head may "
                             "be\n");
    free(got);
    memcpy(in, "HTTP/1.1 200 OK\r\nA: ", 20);
    got = feed_whole(FEED_RESPONSES, bytes_from(in, sizeof(in)));
    assert_string_equal(got, "BAD 502 http1.headers_too_large: head longer than it may be\n");
    free(got);
    for (size_t at = 17; at < 17 + 500; at += 5)
        memcpy(in + at, "A:b\r\n", 5);
    memcpy(in + 517, "\r\n", 2);
    got = feed_whole(FEED_RESPONSES, bytes_from(in, 519));
    assert_memory_equal(got, "200 OK 1.1", 10);
    free(got);
    memcpy(in + 517, "A:b\r\n\r\n", 7);
    got = feed_whole(FEED_RESPONSES, bytes_from(in, 524));
    assert_string_equal(got, "BAD 502 http1.too_many_headers: too many fields\n");
    free(got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_status_line_has_a_version_and_three_digits),
        cmocka_unit_test(any_fault_of_an_upstream_is_502),
        cmocka_unit_test(a_body_ends_by_coding_length_or_close),
        cmocka_unit_test(some_responses_have_no_body_whatever_they_say),
        cmocka_unit_test(a_101_accepts_a_websocket_by_exactly_that_upgrade),
        cmocka_unit_test(nominated_fields_of_a_response_are_marked),
        cmocka_unit_test(heads_of_responses_are_limited),
    };

    return cmocka_run_group_tests_name("http1_response", tests, NULL, NULL);
}
