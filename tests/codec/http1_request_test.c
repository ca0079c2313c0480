/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of request heads: what passes as what, what is refused with which status. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "codec/http1_feed.h"

#define H "Host: h\r\n"

static const uint8_t nul_in_value[] = "GET / HTTP/1.1\r\n" H "X: a\0b\r\n\r\n";
static const uint8_t nul_in_name[] = "GET / HTTP/1.1\r\n" H "X\0: a\r\n\r\n";
static const uint8_t nul_in_target[] = "GET /\0 HTTP/1.1\r\n" H "\r\n";

static void expect_bytes(struct bytes in, const char *expected)
{
    char *whole = feed_whole(FEED_REQUESTS, in);
    char *bytewise = feed_bytewise(FEED_REQUESTS, in);

    if (strncmp(whole, expected, strlen(expected)) != 0)
        fail_msg("%.*s\ngot\n%s\nexpected\n%s", (int)in.len, (const char *)in.data, whole,
                 expected);
    assert_string_equal(whole, bytewise);
    free(whole);
    free(bytewise);
}

struct row {
    const char *in;
    const char *expected; /* the transcript begins so */
};

static void expect_rows(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        expect_bytes(bytes_of(rows[i].in), rows[i].expected);
}

#define EXPECT(rows) expect_rows(rows, sizeof(rows) / sizeof(rows[0]))

#define BAD(text)     "BAD 400 http1.codec_error: " text "\n"
#define BAD_CHAR      "BAD 400 http1.invalid_characters: control character\n"
#define BAD_NAME_CHAR "BAD 400 http1.invalid_characters: bad character in a field name\n"
#define BAD_URL(text) "BAD 400 http1.invalid_url: " text "\n"
#define BAD_METHOD    BAD("bad character in the method")
#define BAD_TARGET    BAD("bad character in the request target")
#define BAD_VERSION   BAD("no HTTP version where one must be")
#define BAD_LF        BAD("line feed without carriage return")
#define BAD_CR        BAD("carriage return without line feed")
#define BAD_HOST      BAD("Host that is no host")
#define BAD_LENGTH    BAD("Content-Length that is not one number")

static void a_method_is_a_token_of_at_most_32_bytes(void **state)
{
    static const struct row rows[] = {
        {"BREW-!#$%&'*+.^_`|~09 / HTTP/1.1\r\n" H "\r\n", "BREW-!#$%&'*+.^_`|~09 path=/ host=h"},
        {"get / HTTP/1.1\r\n" H "\r\n", "get path=/ host=h 1.1 keep none"},
        {"ABCDEFGHIJKLMNOPQRSTUVWXYZ012345 / HTTP/1.1\r\n" H "\r\n",
         "ABCDEFGHIJKLMNOPQRSTUVWXYZ01"},
        {"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456 / HTTP/1.1\r\n" H "\r\n",
         BAD("method longer than 32 bytes")},
        {" GET / HTTP/1.1\r\n" H "\r\n", BAD_METHOD},
        {"G:T / HTTP/1.1\r\n" H "\r\n", BAD_METHOD},
        {"GET\t/ HTTP/1.1\r\n" H "\r\n", BAD_METHOD},
        {"GET\r\n\r\n", BAD_METHOD},
        {"\x16\x03\x01\x02", BAD_METHOD}, /* a TLS client, told at once */
        {"G\xC3\x89T / HTTP/1.1\r\n" H "\r\n", BAD_METHOD},
    };
    (void)state;
    EXPECT(rows);
}

static void at_most_two_empty_lines_stand_before_a_request(void **state)
{
    static const struct row rows[] = {
        {"\r\nGET / HTTP/1.1\r\n" H "\r\n", "GET path=/ host=h"},
        {"\r\n\r\nGET / HTTP/1.1\r\n" H "\r\n", "GET path=/ host=h"},
        {"\r\n\r\n\r\nGET / HTTP/1.1\r\n" H "\r\n", BAD("too many empty lines before a request")},
        {"\nGET / HTTP/1.1\r\n" H "\r\n", BAD_LF},
        {"\rGET / HTTP/1.1\r\n" H "\r\n", BAD_CR},
        {"\r\n", "cut in head\n"},
        {"\r", "cut in head\n"},
    };
    (void)state;
    EXPECT(rows);
}

static void a_target_is_visible_ascii_without_fragment(void **state)
{
    static const struct row rows[] = {
        {"GET /a?b=c?d HTTP/1.1\r\n" H "\r\n", "GET path=/a?b=c?d host=h"},
        {"GET /!\"$%&'()*+,-.;<=>@[\\]^_`{|}~ HTTP/1.1\r\n" H "\r\n",
         "GET path=/!\"$%&'()*+,-.;<="},
        {"GET /a#b HTTP/1.1\r\n" H "\r\n", BAD("fragment in the request target")},
        {"GET /a?b#c HTTP/1.1\r\n" H "\r\n", BAD("fragment in the request target")},
        {"GET  / HTTP/1.1\r\n" H "\r\n", BAD_TARGET},
        {"GET / a HTTP/1.1\r\n" H "\r\n", BAD_VERSION},
        {"GET /a\tb HTTP/1.1\r\n" H "\r\n", BAD_TARGET},
        {"GET /a\x7f HTTP/1.1\r\n" H "\r\n", BAD_TARGET},
        {"GET /\xC3\xA9 HTTP/1.1\r\n" H "\r\n", BAD_TARGET},
        {"GET /?\xC3\xA9 HTTP/1.1\r\n" H "\r\n", BAD_TARGET},
        {"GET /\r\n" H "\r\n", BAD_TARGET}, /* HTTP/0.9 */
        {"GET /\n" H "\n", BAD_TARGET},
    };
    (void)state;
    EXPECT(rows);
    expect_bytes(bytes_from(nul_in_target, sizeof(nul_in_target) - 1), BAD_TARGET);
}

static void each_form_of_target_goes_with_its_methods(void **state)
{
    static const struct row rows[] = {
        {"OPTIONS * HTTP/1.1\r\n" H "\r\n", "OPTIONS path=* host=h"},
        {"OPTIONS /x HTTP/1.1\r\n" H "\r\n", "OPTIONS path=/x host=h"},
        {"GET * HTTP/1.1\r\n" H "\r\n", BAD_URL("target * with a method other than OPTIONS")},
        {"OPTIONS *a HTTP/1.1\r\n" H "\r\n", BAD_URL("request target of no known form")},
        {"OPTIONS *?a HTTP/1.1\r\n" H "\r\n", BAD_URL("request target of no known form")},
        {"GET ?a HTTP/1.1\r\n" H "\r\n", BAD_URL("request target of no known form")},
        {"GET a/b HTTP/1.1\r\n" H "\r\n", BAD_URL("request target of no known form")},
        {"GET http://o/p?q HTTP/1.1\r\n" H "\r\n", "GET path=/p?q absolute host=o 1.1"},
        {"GET HTTPS://O:8443/p HTTP/1.1\r\n" H "\r\n", "GET path=/p absolute host=O:8443 1.1"},
        {"GET http://o HTTP/1.1\r\n" H "\r\n", "GET path=/ absolute host=o 1.1"},
        {"GET http://o?q HTTP/1.1\r\n" H "\r\n", "GET path=/?q absolute host=o 1.1"},
        {"GET http://o?q/r HTTP/1.1\r\n" H "\r\n", "GET path=/?q/r absolute host=o 1.1"},
        {"OPTIONS http://o HTTP/1.1\r\n" H "\r\n", "OPTIONS path=* absolute host=o 1.1"},
        {"OPTIONS http://o/ HTTP/1.1\r\n" H "\r\n", "OPTIONS path=/ absolute host=o 1.1"},
        {"OPTIONS http://o?q HTTP/1.1\r\n" H "\r\n", "OPTIONS path=/?q absolute host=o 1.1"},
        {"GET http:///p HTTP/1.1\r\n" H "\r\n", BAD_URL("bad host in the request target")},
        {"GET http://u@o/p HTTP/1.1\r\n" H "\r\n", BAD_URL("bad host in the request target")},
        {"GET http://o:x/ HTTP/1.1\r\n" H "\r\n", BAD_URL("bad host in the request target")},
        {"GET ftp://o/p HTTP/1.1\r\n" H "\r\n", BAD_URL("request target of no known form")},
        {"GET http:/o/p HTTP/1.1\r\n" H "\r\n", BAD_URL("request target of no known form")},
        {"CONNECT o:443 HTTP/1.1\r\n" H "\r\n", "CONNECT path= host=o:443 1.1"},
        {"CONNECT [::1]:443 HTTP/1.1\r\n" H "\r\n", "CONNECT path= host=[::1]:443 1.1"},
        {"CONNECT o HTTP/1.1\r\n" H "\r\n", BAD_URL("CONNECT without host and port")},
        {"CONNECT o: HTTP/1.1\r\n" H "\r\n", BAD_URL("CONNECT without host and port")},
        {"CONNECT /p HTTP/1.1\r\n" H "\r\n", BAD_URL("CONNECT without host and port")},
        {"CONNECT o:1?q HTTP/1.1\r\n" H "\r\n", BAD_URL("CONNECT without host and port")},
    };
    (void)state;
    EXPECT(rows);
}

static void versions_of_http_1_pass_and_others_get_505(void **state)
{
    static const struct row rows[] = {
        {"GET / HTTP/1.0\r\n\r\n", "GET path=/ host= 1.0 close none"},
        {"GET / HTTP/1.2\r\n" H "\r\n", "GET path=/ host=h 1.1 keep"},
        {"GET / HTTP/1.9\r\n" H "\r\n", "GET path=/ host=h 1.1 keep"},
        {"GET / HTTP/2.0\r\n" H "\r\n", "BAD 505 http1.codec_error: not a version of HTTP/1\n"},
        {"GET / HTTP/0.9\r\n" H "\r\n", "BAD 505 http1.codec_error: not a version of HTTP/1\n"},
        {"GET / HTTP/1.10\r\n" H "\r\n", BAD_CHAR},
        {"GET / HTTP/1\r\n" H "\r\n", BAD_VERSION},
        {"GET / HTTP/1.\r\n" H "\r\n", BAD_VERSION},
        {"GET / HTTP/11\r\n" H "\r\n", BAD_VERSION},
        {"GET / http/1.1\r\n" H "\r\n", BAD_VERSION},
        {"GET / HTTP 1.1\r\n" H "\r\n", BAD_VERSION},
        {"GET / HTTP/1.1 \r\n" H "\r\n", BAD_CHAR},
        {"GET / HTTP/1.1\n" H "\r\n", BAD_LF},
        {"GET / HTTP/1.1\rX\n" H "\r\n", BAD_CR},
    };
    (void)state;
    EXPECT(rows);
}

static void field_lines_are_strict(void **state)
{
    static const struct row rows[] = {
        {"GET / HTTP/1.1\r\n" H "A:b\r\nC: \t d\t \r\nE:\r\nF:  \r\n\r\n",
         "GET path=/ host=h 1.1 keep none [Host: h] [A: b] [C: d] [E: ] [F: ]\n"},
        {"GET / HTTP/1.1\r\n" H "A: b\tc : d\r\n\r\n",
         "GET path=/ host=h 1.1 keep none [Host: h] [A: b\tc : d]\n"},
        {"GET / HTTP/1.1\r\n" H "A: 01234567\t0123456789\xFF\x80 tail of the value\r\n\r\n",
         "GET path=/ host=h 1.1 keep none [Host: h] [A: 01234567\t0123456789\xFF\x80 tail"},
        {"GET / HTTP/1.1\r\n" H "A : b\r\n\r\n", BAD("blank between field name and colon")},
        {"GET / HTTP/1.1\r\n" H "A\t: b\r\n\r\n", BAD("blank between field name and colon")},
        {"GET / HTTP/1.1\r\n A: b\r\n" H "\r\n", BAD("folded field line")},
        {"GET / HTTP/1.1\r\n" H "\tA: b\r\n\r\n", BAD("folded field line")},
        {"GET / HTTP/1.1\r\n" H ": b\r\n\r\n", BAD("field line without a name")},
        {"GET / HTTP/1.1\r\n" H "A\r\n\r\n", BAD("field line without a colon")},
        {"GET / HTTP/1.1\r\n" H "A(: b\r\n\r\n", BAD_NAME_CHAR},
        {"GET / HTTP/1.1\r\n" H "\xC3\xA9: b\r\n\r\n", BAD("field line without a name")},
        {"GET / HTTP/1.1\r\n" H "A: b\nC: d\r\n\r\n", BAD_LF},
        {"GET / HTTP/1.1\r\n" H "A: b\rC: d\r\n\r\n", BAD_CR},
        {"GET / HTTP/1.1\r\n" H "A: b\r\r\n\r\n", BAD_CR},
        {"GET / HTTP/1.1\r\n" H "A: b\x01\r\n\r\n", BAD_CHAR},
        {"GET / HTTP/1.1\r\n" H "A: 0123456789ab\x1f\r\n\r\n", BAD_CHAR},
        {"GET / HTTP/1.1\r\n" H "A: 0123456789ab\x7fzz\r\n\r\n", BAD_CHAR},
        {"GET / HTTP/1.1\r\n" H "\n", BAD_LF},
        {"GET / HTTP/1.1\r\n" H "\rX\r\n\r\n", BAD_CR},
        {"GET / HTTP/1.1\r\n" H, "cut in head\n"},
    };
    (void)state;
    EXPECT(rows);
    expect_bytes(bytes_from(nul_in_value, sizeof(nul_in_value) - 1), BAD_CHAR);
    expect_bytes(bytes_from(nul_in_name, sizeof(nul_in_name) - 1), BAD_NAME_CHAR);
}

/* The scanner looks at eight bytes at once: a control is seen at each place of any value. */
static void a_control_character_is_found_wherever_it_stands(void **state)
{
    static const uint8_t controls[] = {0x00, 0x01, 0x08, 0x0a, 0x0b, 0x0c, 0x0d, 0x1f, 0x7f};
    (void)state;

    for (size_t len = 1; len <= 40; len++) {
        for (size_t at = 0; at < len; at++) {
            for (size_t c = 0; c < sizeof(controls); c++) {
                char text[128] = "GET / HTTP/1.1\r\nHost: h\r\nA: ";
                size_t from = strlen(text);
                char *got;

                memset(text + from, at % 2 == 0 ? 'v' : '\x80', len);
                text[from + at] = (char)controls[c];
                memcpy(text + from + len, "\r\n\r\n", 4);
                got = feed_whole(FEED_REQUESTS, bytes_from(text, from + len + 4));
                assert_memory_equal(got, "BAD 400 ", 8);
                free(got);
            }
        }
    }
}

static void a_request_of_http_1_1_has_exactly_one_host(void **state)
{
    static const struct row rows[] = {
        {"GET / HTTP/1.1\r\n\r\n", "BAD 400 missing_host_header: request without Host\n"},
        {"GET http://o/ HTTP/1.1\r\n\r\n", "BAD 400 missing_host_header: request without Host\n"},
        {"GET / HTTP/1.1\r\n" H H "\r\n", BAD("more than one Host")},
        {"GET / HTTP/1.0\r\nHost: a\r\nhost: b\r\n\r\n", BAD("more than one Host")},
        {"GET / HTTP/1.0\r\nHost: a\r\n\r\n", "GET path=/ host=a 1.0"},
        {"GET / HTTP/1.1\r\nHost:\r\n\r\n", BAD_HOST},
        {"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", BAD_HOST},
        {"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", BAD_HOST},
        {"GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", BAD_HOST},
        {"GET / HTTP/1.1\r\nHost: a\\b\r\n\r\n", BAD_HOST},
        {"GET / HTTP/1.1\r\nHost: a?b\r\n\r\n", BAD_HOST},
        {"GET / HTTP/1.1\r\nHost: a\tb\r\n\r\n", BAD_HOST},
        {"GET / HTTP/1.1\r\nHost: \xC3\xA9\r\n\r\n", BAD_HOST},
        {"GET / HTTP/1.1\r\nHost: a:b\r\n\r\n", BAD_HOST},
        {"GET / HTTP/1.1\r\nHost: :80\r\n\r\n", BAD_HOST},
        {"GET / HTTP/1.1\r\nHost: a:65536\r\n\r\n", BAD_HOST},
        {"GET / HTTP/1.1\r\nHost: a:000080\r\n\r\n", BAD_HOST},
        {"GET / HTTP/1.1\r\nHost: a:1:2\r\n\r\n", BAD_HOST},
        {"GET / HTTP/1.1\r\nHost: a%4\r\n\r\n", BAD_HOST},
        {"GET / HTTP/1.1\r\nHost: a%zz\r\n\r\n", BAD_HOST},
        {"GET / HTTP/1.1\r\nHost: a%4z\r\n\r\n", BAD_HOST},
        {"GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", BAD_HOST},
        {"GET / HTTP/1.1\r\nHost: [::1]a\r\n\r\n", BAD_HOST},
        {"GET / HTTP/1.1\r\nHost: [1.2.3.4]\r\n\r\n", BAD_HOST},
        {"GET / HTTP/1.1\r\nHost: [::g]\r\n\r\n", BAD_HOST},
        {"GET / HTTP/1.1\r\nHost: [fe80::1%25eth0]\r\n\r\n", BAD_HOST},
        {"GET / HTTP/1.1\r\nHost: []\r\n\r\n", BAD_HOST},
        {"GET / HTTP/1.1\r\nHost: [:]\r\n\r\n", BAD_HOST},
        {"GET / HTTP/1.1\r\nHost: [1:2]\r\n\r\n", BAD_HOST},
        {"GET / HTTP/1.1\r\nHost: [1::2::3]\r\n\r\n", BAD_HOST},
        {"GET / HTTP/1.1\r\nHost: [fe80::1%eth0]\r\n\r\n", BAD_HOST},
        {"GET / HTTP/1.1\r\nHost: ::1\r\n\r\n", BAD_HOST},
        {"GET / HTTP/1.1\r\nHost: a]\r\n\r\n", BAD_HOST},
        {"GET / HTTP/1.1\r\nHost: [\r\n\r\n", BAD_HOST},
        {"GET / HTTP/1.1\r\nHost: a:65535\r\n\r\n", "GET path=/ host=a:65535 "},
        {"GET / HTTP/1.1\r\nHost: a:\r\n\r\n", "GET path=/ host=a: "},
        {"GET / HTTP/1.1\r\nHost: a_b.c-d~!$&'()*+,;=%4F\r\n\r\n", "GET path=/ host=a_b.c-d~!$&'"},
        {"GET / HTTP/1.1\r\nHost: [2001:db8::192.0.2.1]:8080\r\n\r\n",
         "GET path=/ host=[2001:db8::192.0.2.1]:8080 "},
    };
    (void)state;
    EXPECT(rows);
}

#define POST "POST / HTTP/1.1\r\n" H

static void a_length_is_one_plain_number(void **state)
{
    static const struct row rows[] = {
        {POST "Content-Length: 0\r\n\r\n",
         "POST path=/ host=h 1.1 keep length=0 [Host: h] [Content-Length: 0]\n\nend\n"},
        {POST "content-length:   3\t\r\n\r\nabcGET",
         "POST path=/ host=h 1.1 keep length=3 [Host: h] [content-length: 3]\nabc\nend\ncut in "
         "head"},
        {POST "Content-Length: 9223372036854775807\r\n\r\n",
         "POST path=/ host=h 1.1 keep length=9223"},
        {POST "Content-Length: 9223372036854775808\r\n\r\n", BAD_LENGTH},
        {POST "Content-Length: 99999999999999999999999\r\n\r\n", BAD_LENGTH},
        {POST "Content-Length: 1a\r\n\r\n", BAD_LENGTH},
        {POST "Content-Length: 1.0\r\n\r\n", BAD_LENGTH},
        {POST "Content-Length: 5,\r\n\r\n", BAD_LENGTH},
        {POST "Content-Length: ,5\r\n\r\n", BAD_LENGTH},
        {POST "Content-Length: 5,,5\r\n\r\n", BAD_LENGTH},
        {POST "Content-Length: 1, 1\r\n\r\nx", BAD_LENGTH},
        {POST "Content-Length: 1\r\nX: y\r\nContent-Length: 1\r\n\r\nx",
         BAD("more than one Content-Length")},
        {POST "Content-Length: 0\r\nContent-Length: 1\r\n\r\nx",
         BAD("more than one Content-Length")},
        {"GET / HTTP/1.1\r\n" H "Content-Length: 1\r\n\r\nx",
         "GET path=/ host=h 1.1 keep length=1"},
    };
    (void)state;
    EXPECT(rows);
}

#define CODING(text) "BAD 501 http1.invalid_transfer_encoding: " text "\n"
#define OTHER_CODING CODING("transfer coding other than chunked")
#define NOT_JUST     "BAD 400 http1.invalid_transfer_encoding: Transfer-Encoding not just chunked\n"

static void chunked_is_the_only_transfer_coding(void **state)
{
    static const struct row rows[] = {
        {POST "Transfer-Encoding: CHUNKED\r\n\r\n0\r\n\r\n",
         "POST path=/ host=h 1.1 keep chunked [Host: h] [!Transfer-Encoding: CHUNKED]\n\nend\n"},
        {POST "Transfer-Encoding: gzip, chunked\r\n\r\n", OTHER_CODING},
        {POST "Transfer-Encoding: chunked, gzip\r\n\r\n", OTHER_CODING},
        {POST "Transfer-Encoding: identity\r\n\r\n", OTHER_CODING},
        {POST "Transfer-Encoding: xchunked\r\n\r\n", OTHER_CODING},
        {POST "Transfer-Encoding: \"chunked\"\r\n\r\n", OTHER_CODING},
        {POST "Transfer-Encoding: chunked;q=1\r\n\r\n", OTHER_CODING},
        {POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n\r\n", OTHER_CODING},
        {POST "Transfer-Encoding: chunked\r\nX: y\r\nTransfer-Encoding: chunked\r\n\r\n", NOT_JUST},
        {POST "Transfer-Encoding: chunked, chunked\r\n\r\n", NOT_JUST},
        {POST "Transfer-Encoding: chunked,\r\n\r\n", NOT_JUST},
        {POST "Transfer-Encoding:\r\n\r\n", NOT_JUST},
        {POST "Transfer-Encoding: \x0b"
              "chunked\r\n\r\n",
         BAD_CHAR},
        {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
         "BAD 400 http1.transfer_encoding_not_allowed: Transfer-Encoding in an HTTP/1.0 message\n"},
        {POST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
         "BAD 400 http1.content_length_and_chunked_not_allowed: both"},
        {"POST / HTTP/1.0\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
         "BAD 400 http1.content_length_and_chunked_not_allowed: both"},
    };
    (void)state;
    EXPECT(rows);
}

static void connections_go_on_as_version_and_options_say(void **state)
{
    static const struct row rows[] = {
        {"GET / HTTP/1.1\r\n" H "Connection: close\r\n\r\n",
         "GET path=/ host=h 1.1 close none [Host: h] [!Connection: close]\n"},
        {"GET / HTTP/1.1\r\n" H "Connection: keep-alive, CLOSE\r\n\r\n",
         "GET path=/ host=h 1.1 close"},
        {"GET / HTTP/1.1\r\n" H "Connection: keep-alive\r\nConnection: close\r\n\r\n",
         "GET path=/ host=h 1.1 close"},
        {"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\nKeep-Alive: timeout=5\r\n\r\n",
         "GET path=/ host= 1.0 keep none [!Connection: Keep-Alive] [!Keep-Alive: timeout=5]\n"},
        {"GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n", "GET path=/ host= 1.0 close"},
        {"GET / HTTP/1.0\r\nProxy-Connection: keep-alive\r\n\r\n",
         "GET path=/ host= 1.0 close none [!Proxy-Connection: keep-alive]\n"},
        {"GET / HTTP/1.1\r\n" H "Connection: closed, keep-alive-not\r\n\r\n",
         "GET path=/ host=h 1.1 keep"},
    };
    (void)state;
    EXPECT(rows);
}

static void nominated_fields_are_marked_but_not_those_that_must_arrive(void **state)
{
    static const struct row rows[] = {
        {"GET / HTTP/1.1\r\n" H
         "X-A: 1\r\nConnection: x-a, , X-B\r\nX-B: 2\r\nX-a: 3\r\nX-C: 4\r\n\r\n",
         "GET path=/ host=h 1.1 keep none [Host: h] [!X-A: 1] [!Connection: x-a, , X-B] [!X-B: 2] "
         "[!X-a: 3] [X-C: 4]\n"},
        {"GET / HTTP/1.1\r\n" H "Connection: x-a\r\nConnection: x-b\r\nX-B: 2\r\nX-A: 1\r\n\r\n",
         "GET path=/ host=h 1.1 keep none [Host: h] [!Connection: x-a] [!Connection: x-b] "
         "[!X-B: 2] [!X-A: 1]\n"},
        {POST
         "Content-Length: 1\r\nX-Forwarded-For: f\r\nX-Forwarded-Proto: p\r\nX-Request-Id: i\r\n"
         "Forwarded: f\r\nVia: v\r\nMax-Forwards: 1\r\nDate: d\r\nTE: trailers\r\n"
         "Connection: host, content-length, x-forwarded-for, x-forwarded-proto, "
         "x-request-id, forwarded, via, max-forwards, date, te\r\n\r\nx",
         "POST path=/ host=h 1.1 keep length=1 [Host: h] [Content-Length: 1] [X-Forwarded-For: f] "
         "[X-Forwarded-Proto: p] [X-Request-Id: i] [Forwarded: f] [Via: v] [Max-Forwards: 1] "
         "[Date: d] [!TE: trailers] [!Connection: "},
        {"GET / HTTP/1.1\r\n" H "HTTP2-Settings: x\r\nUpgrade: h2c\r\nProxy-Authorization: b\r\n"
         "Trailer: t\r\n\r\n",
         "GET path=/ host=h 1.1 keep none [Host: h] [!HTTP2-Settings: x] [!Upgrade: h2c] "
         "[Proxy-Authorization: b] [Trailer: t]\n"},
    };
    (void)state;
    EXPECT(rows);
}

static void nominations_are_bounded(void **state)
{
    char text[2048] = "GET / HTTP/1.1\r\nHost: h\r\nN31: a\r\nConnection: close, upgrade, te, host";
    char *got;
    (void)state;

    for (int i = 0; i < 32; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), ",n%d", i);
    strcat(text, "\r\n\r\n");
    got = feed_whole(FEED_REQUESTS, bytes_of(text));
    assert_non_null(strstr(got, "[!N31: a]"));
    free(got);
    strcpy(strstr(text, "\r\n\r\n"), ",one-more\r\n\r\n");
    expect_bytes(bytes_of(text), BAD("too many connection options"));
}

#define KEY "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define V13 "Sec-WebSocket-Version: 13\r\n"
#define UP  "Connection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n"

static bool is_websocket(const char *text)
{
    char *got = feed_whole(FEED_REQUESTS, bytes_of(text));
    bool is = strstr(got, " websocket [") != NULL;

    if (strncmp(got, "BAD", 3) == 0)
        fail_msg("%s", got);
    free(got);
    return is;
}

static void a_websocket_is_asked_for_by_the_whole_handshake(void **state)
{
    (void)state;
    assert_true(is_websocket("GET / HTTP/1.1\r\n" H UP KEY V13 "\r\n"));
    assert_true(is_websocket("GET / HTTP/1.1\r\n" H UP KEY V13 "Content-Length: 0\r\n\r\n"));
    assert_true(is_websocket("GET / HTTP/1.1\r\n" H "Connection: upgrade\r\n"
                             "Upgrade: h2c, websocket\r\n" KEY V13 "\r\n"));
    assert_false(is_websocket("POST / HTTP/1.1\r\n" H UP KEY V13 "\r\n"));
    assert_false(is_websocket("GET / HTTP/1.0\r\n" H UP KEY V13 "\r\n"));
    assert_false(is_websocket("GET / HTTP/1.1\r\n" H "Upgrade: websocket\r\n" KEY V13 "\r\n"));
    assert_false(is_websocket("GET / HTTP/1.1\r\n" H "Connection: upgrade\r\n" KEY V13 "\r\n"));
    assert_false(is_websocket("GET / HTTP/1.1\r\n" H "Connection: upgrade\r\nUpgrade: "
                              "websocket2\r\n" KEY V13 "\r\n"));
    assert_false(is_websocket("GET / HTTP/1.1\r\n" H UP V13 "\r\n"));
    assert_false(is_websocket("GET / HTTP/1.1\r\n" H UP KEY "\r\n"));
    assert_false(is_websocket("GET / HTTP/1.1\r\n" H UP KEY "Sec-WebSocket-Version:\r\n\r\n"));
    assert_false(is_websocket("GET / HTTP/1.1\r\n" H UP KEY KEY V13 "\r\n"));
    assert_false(is_websocket("GET / HTTP/1.1\r\n" H UP KEY V13 V13 "\r\n"));
    assert_false(is_websocket("GET / HTTP/1.1\r\n" H UP KEY V13 "Content-Length: 1\r\n\r\nx"));
    assert_false(is_websocket("GET / HTTP/1.1\r\n" H UP KEY V13
                              "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"));
    assert_false(is_websocket("GET / HTTP/1.1\r\n" H UP V13
                              "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=\r\n\r\n"));
    assert_false(is_websocket("GET / HTTP/1.1\r\n" H UP V13
                              "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQAA\r\n\r\n"));
    assert_false(is_websocket("GET / HTTP/1.1\r\n" H UP V13
                              "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25j-Q==\r\n\r\n"));
    assert_false(is_websocket("GET / HTTP/1.1\r\n" H UP V13
                              "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=A\r\n\r\n"));
    assert_true(is_websocket("GET / HTTP/1.1\r\n" H UP V13
                             "Sec-WebSocket-Key: +/hlIHNhbXBsZSBub25jZ9==\r\n\r\n"));
}

static void only_content_to_come_can_be_continued(void **state)
{
    static const struct row rows[] = {
        {POST "Expect: 100-Continue\r\nContent-Length: 1\r\n\r\n",
         "POST path=/ host=h 1.1 keep length=1 expect "},
        {POST "Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n",
         "POST path=/ host=h 1.1 keep chunked expect "},
        {POST "Expect: 100-continue\r\n\r\n", "POST path=/ host=h 1.1 keep none ["},
        {POST "Expect: 100-continue\r\nContent-Length: 0\r\n\r\n",
         "POST path=/ host=h 1.1 keep length=0 ["},
        {POST "Expect: something\r\nContent-Length: 1\r\n\r\n",
         "POST path=/ host=h 1.1 keep length=1 ["},
        {"POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n",
         "POST path=/ host= 1.0 close length=1 ["},
    };
    (void)state;
    EXPECT(rows);
}

static void requests_in_a_row_are_read_one_by_one(void **state)
{
    static const struct row rows[] = {
        {"GET /1 HTTP/1.1\r\n" H "\r\nPOST /2 HTTP/1.1\r\n" H "Content-Length: 2\r\n\r\nab\r\n"
         "GET http://o/3 HTTP/1.1\r\n" H "\r\nGET /4 HTTP/1.1\r\n" H "\r\n",
         "GET path=/1 host=h 1.1 keep none [Host: h]\n\nend\n"
         "POST path=/2 host=h 1.1 keep length=2 [Host: h] [Content-Length: 2]\nab\nend\n"
         "GET path=/3 absolute host=o 1.1 keep none [Host: h]\n\nend\n"
         "GET path=/4 host=h 1.1 keep none [Host: h]\n\nend\n"},
    };
    (void)state;
    EXPECT(rows);
}

/* --- limits --- */

static enum http1_result parse(struct bytes in, struct http1_limits limits,
                               struct http1_fault *fault)
{
    static struct message_head head;
    struct http1_scan scan = {0};
    size_t used;

    return http1_parse_request(in, &scan, &limits, &head, &used, fault);
}

static void a_head_may_be_as_long_as_its_limit_and_no_longer(void **state)
{
    struct bytes in = BYTES("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    struct http1_fault fault;
    (void)state;

    for (uint32_t limit = 0; limit <= in.len + 1; limit++) {
        enum http1_result result = parse(in, (struct http1_limits){limit, 100}, &fault);

        assert_int_equal(result, limit >= in.len ? HTTP1_OK : HTTP1_BAD);
        if (result == HTTP1_BAD)
            assert_int_equal(fault.status, limit < 16 ? 414 : 431);
    }
}

static void a_head_too_long_is_refused_at_its_limit_not_before(void **state)
{
    struct bytes in = BYTES("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    struct http1_fault fault;
    (void)state;

    for (uint32_t limit = 1; limit < in.len; limit++) {
        struct http1_limits limits = {limit, 100};

        for (size_t len = 0; len < limit; len++)
            assert_int_equal(parse(bytes_slice(in, 0, len), limits, &fault), HTTP1_MORE);
        assert_int_equal(parse(bytes_slice(in, 0, limit), limits, &fault), HTTP1_BAD);
    }
}

static void fields_are_counted_up_to_the_limit_and_never_past_the_room(void **state)
{
    static char text[8192] = "GET / HTTP/1.1\r\nHost: h\r\nA: b\r\nC: d\r\n\r\n";
    struct http1_fault fault = {0};
    (void)state;

    assert_int_equal(parse(bytes_of(text), (struct http1_limits){1000, 3}, &fault), HTTP1_OK);
    assert_int_equal(parse(bytes_of(text), (struct http1_limits){1000, 2}, &fault), HTTP1_BAD);
    assert_int_equal(fault.status, 431);
    strcpy(text, "GET / HTTP/1.1\r\nHost: h\r\n");
    for (int i = 1; i < MESSAGE_FIELDS_MAX; i++)
        strcat(text, "A: b\r\n");
    strcat(text, "\r\n");
    assert_int_equal(parse(bytes_of(text), (struct http1_limits){8192, 100000}, &fault), HTTP1_OK);
    strcpy(text + strlen(text) - 2, "A: b\r\n\r\n");
    assert_int_equal(parse(bytes_of(text), (struct http1_limits){8192, 100000}, &fault), HTTP1_BAD);
    assert_int_equal(
        parse(bytes_of(text), (struct http1_limits){8192, MESSAGE_FIELDS_MAX + 1}, &fault),
        HTTP1_BAD);
    assert_int_equal(fault.status, 431);
}

/*
 * Work is linear: what a call has looked at, later ones do not look at again. All but the last
 * three bytes already looked at are made line feeds, which would be refused at once if they were
 * seen.
 */
static void bytes_looked_at_are_not_looked_at_again(void **state)
{
    enum { SIZE = 64 * 1024 };
    static uint8_t in[SIZE];
    static uint8_t seen[SIZE];
    static struct message_head head;
    const struct http1_limits limits = {SIZE, 100};
    const struct bytes tiny = BYTES("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    struct http1_scan scan = {0};
    struct http1_fault fault;
    size_t used;
    (void)state;

    memset(in, 'v', SIZE);
    memcpy(in, "GET / HTTP/1.1\r\nHost: h\r\nA: ", 28);
    for (size_t at = 1000; at < SIZE - 1000; at += 1000)
        memcpy(in + at, "\r\nB: ", 5);
    memcpy(in + SIZE - 4, "\r\n\r\n", 4);
    memset(seen, '\n', SIZE);
    for (size_t len = 1; len < SIZE; len++) {
        size_t keep = len <= 40 ? len : 3;

        memcpy(seen + len - keep, in + len - keep, keep);
        assert_int_equal(
            http1_parse_request(bytes_from(seen, len), &scan, &limits, &head, &used, &fault),
            HTTP1_MORE);
        if (len > 40) {
            assert_int_equal(scan.seen, len);
            seen[len - 3] = '\n';
            memcpy(seen, tiny.data, tiny.len); /* whoever began anew would take it */
        }
    }
    assert_int_equal(
        http1_parse_request(bytes_from(in, SIZE), &scan, &limits, &head, &used, &fault), HTTP1_OK);
    assert_int_equal(used, SIZE);
    assert_int_equal(head.field_count, 66);
}

/* The same for the request line: all but its first bytes, which are bounded, are looked at once. */
static void a_long_request_line_is_not_looked_at_again(void **state)
{
    enum { SIZE = 32 * 1024, START = 40 };
    static uint8_t in[SIZE];
    static struct message_head head;
    const struct http1_limits limits = {SIZE, 100};
    struct http1_scan scan = {0};
    struct http1_fault fault;
    size_t used;
    (void)state;

    memset(in, 'p', SIZE);
    memcpy(in, "GET /", 5);
    for (size_t len = 1; len < SIZE; len++) {
        assert_int_equal(
            http1_parse_request(bytes_from(in, len), &scan, &limits, &head, &used, &fault),
            HTTP1_MORE);
        if (len > START)
            in[len - 1] = '\n';
    }
    assert_int_equal(scan.seen, SIZE - 1);
}

/* A client that sends a head of garbage is told so as early as it can be known. */
static void a_fault_is_told_without_waiting_for_the_end(void **state)
{
    static const struct row rows[] = {
        {"\x80", BAD_METHOD},
        {"GET / HTTP/3.0\r\n", "BAD 505 "},
        {"GET / HTTP/1.1\nHost", BAD_LF},
        {"GET / HTTP/1.1\r\nHost: a\nX", BAD_LF},
        {"GET / HTTP/1.1\r\n\n", BAD_LF},
    };
    (void)state;
    EXPECT(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_method_is_a_token_of_at_most_32_bytes),
        cmocka_unit_test(at_most_two_empty_lines_stand_before_a_request),
        cmocka_unit_test(a_target_is_visible_ascii_without_fragment),
        cmocka_unit_test(each_form_of_target_goes_with_its_methods),
        cmocka_unit_test(versions_of_http_1_pass_and_others_get_505),
        cmocka_unit_test(field_lines_are_strict),
        cmocka_unit_test(a_control_character_is_found_wherever_it_stands),
        cmocka_unit_test(a_request_of_http_1_1_has_exactly_one_host),
        cmocka_unit_test(a_length_is_one_plain_number),
        cmocka_unit_test(chunked_is_the_only_transfer_coding),
        cmocka_unit_test(connections_go_on_as_version_and_options_say),
        cmocka_unit_test(nominated_fields_are_marked_but_not_those_that_must_arrive),
        cmocka_unit_test(nominations_are_bounded),
        cmocka_unit_test(a_websocket_is_asked_for_by_the_whole_handshake),
        cmocka_unit_test(only_content_to_come_can_be_continued),
        cmocka_unit_test(requests_in_a_row_are_read_one_by_one),
        cmocka_unit_test(a_head_may_be_as_long_as_its_limit_and_no_longer),
        cmocka_unit_test(a_head_too_long_is_refused_at_its_limit_not_before),
        cmocka_unit_test(fields_are_counted_up_to_the_limit_and_never_past_the_room),
        cmocka_unit_test(bytes_looked_at_are_not_looked_at_again),
        cmocka_unit_test(a_long_request_line_is_not_looked_at_again),
        cmocka_unit_test(a_fault_is_told_without_waiting_for_the_end),
    };

    return cmocka_run_group_tests_name("http1_request", tests, NULL, NULL);
}
