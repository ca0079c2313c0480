/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP/1.1 cases of tests/cases: what each file must come to, whole and however it is cut.
 * How a transcript reads: see http1_feed.h; '!' marks a field that is not forwarded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "codec/http1_feed.h"

#define APP          "host=app.example.test 1.1 keep "
#define APP_FIELD    " [Host: app.example.test]"
#define CHUNKED_HEAD "POST path=/c " APP "chunked" APP_FIELD " [!Transfer-Encoding: chunked]\n"
#define TWO_FRAMINGS                                                                               \
    "BAD 400 http1.content_length_and_chunked_not_allowed: both Transfer-Encoding and "            \
    "Content-Length\n"
#define BAD_LENGTH "BAD 400 http1.codec_error: Content-Length that is not one number\n"
#define FOLDED     "http1.codec_error: folded field line\n"
#define PREFACE    "BAD 400 http1.invalid_url: target * with a method other than OPTIONS\n"
#define OK_BODY    "200 OK 1.1 keep length=2 [Content-Length: 2]\nok\nend\n"

static const struct {
    const char *file;
    const char *transcript; /* ends so, where the file is large */
} rows[] = {
    {"C001-client1", TWO_FRAMINGS},
    {"C001-client2", TWO_FRAMINGS},
    {"C001-upstream1", "BAD 502 http1.content_length_and_chunked_not_allowed: both "
                       "Transfer-Encoding and Content-Length\n"},
    {"C003-client1",
     CHUNKED_HEAD "\nBAD 400 http1.codec_error: bad character after a chunk size\n"},
    {"C003-client2", CHUNKED_HEAD "\nBAD 400 http1.codec_error: bad chunk extension\n"},
    {"C003-client3", CHUNKED_HEAD "hello\nBAD 400 http1.codec_error: chunk longer than its size\n"},
    {"C003-client4", CHUNKED_HEAD "\nBAD 400 http1.codec_error: carriage return without line feed "
                                  "in a chunk-size line\n"},
    {"C003-client5",
     CHUNKED_HEAD "hello\nBAD 400 http1.codec_error: bad character after a chunk size\n"},
    {"C003-client6", CHUNKED_HEAD "hello\nend\n"},
    {"C003-client7", CHUNKED_HEAD "\nBAD 400 http1.codec_error: chunk-size line too long\n"},
    {"C005-client1", BAD_LENGTH},
    {"C005-client2", BAD_LENGTH},
    {"C005-client3", BAD_LENGTH},
    {"C005-client4", BAD_LENGTH},
    {"C005-client5", "BAD 400 http1.codec_error: more than one Content-Length\n"},
    {"C005-client6", BAD_LENGTH},
    {"C005-client7", BAD_LENGTH},
    {"C005-client8", BAD_LENGTH},
    {"C005-client9", BAD_LENGTH},
    {"C005-client10", "BAD 400 http1.codec_error: more than one Content-Length\n"},
    {"C005-client11", TWO_FRAMINGS},
    {"C005-upstream1", "BAD 502 http1.codec_error: more than one Content-Length\n"},
    {"C007-client1", "BAD 400 " FOLDED},
    {"C007-client2", "BAD 400 " FOLDED},
    {"C007-client3", "BAD 400 " FOLDED},
    {"C007-client4", "BAD 400 http1.invalid_characters: control character\n"},
    {"C007-upstream1", "BAD 502 " FOLDED},
    {"C009-client1", "GET path=/i " APP "none" APP_FIELD "\n\nend\n"},
    {"C009-client2", "GET path=/i host=app.example.test 1.0 close none" APP_FIELD "\n\nend\n"},
    {"C009-upstream1", "100 Continue 1.1 close none=40 [Content-Length: 40]\n\nend\n" OK_BODY},
    {"C009-upstream2",
     "103 Early Hints 1.1 keep none [Link: </s.css>; rel=preload]\n\nend\n"
     "103 Early Hints 1.1 keep none [Link: </t.css>; rel=preload]\n\nend\n" OK_BODY},
    {"C009-upstream3", "102 Processing 1.1 keep none\n\nend\n100 Continue 1.1 keep none\n\nend\n"
                       "199 Odd 1.1 keep none [X-I: 1]\n\nend\n" OK_BODY},
    {"C009-upstream4", "101 Switching Protocols 1.1 keep none upgrade [!Connection: Upgrade] "
                       "[!Upgrade: demo]\ntunnel\n"},
    {"C011-upstream1", "204 No Content 1.1 close none=5 [Content-Length: 5]\n\nend\n"
                       "BAD 502 http1.codec_error: no HTTP version where one must be\n"},
    {"C011-upstream2",
     "304 Not Modified 1.1 keep none=120 [ETag: \"a1\"] [Content-Length: 120]\n\nend\n"},
    {"C011-upstream3", "205 Reset Content 1.1 close to-close [X-A: 1]\n\nend by close\n"},
    {"C011-upstream4", "204 No Content 1.1 close none [!Transfer-Encoding: chunked]\n\nend\n"
                       "BAD 502 http1.codec_error: no HTTP version where one must be\n"},
    {"C013-upstream1", "413 Content Too Large 1.1 close length=9 [Content-Length: 9] "
                       "[!Connection: close]\ntoo large\nend\n"},
    {"C015-client1", "POST path=/tr " APP "chunked" APP_FIELD
                     " [!Transfer-Encoding: chunked] [Trailer: X-Checksum]\nhello\n"
                     "trailer X-Checksum: abc\nend\n"},
    {"C015-client2",
     "POST path=/tr " APP "chunked" APP_FIELD " [!Transfer-Encoding: chunked]\nhello\n"
     "BAD 431 http1.trailers_too_large: trailer section too long\n"},
    {"C015-client3",
     "POST path=/tr " APP "chunked" APP_FIELD " [!Transfer-Encoding: chunked]\nhello\n"
     "BAD 400 http1.codec_error: field line without a colon\n"},
    {"C015-upstream1", "200 OK 1.1 keep chunked [!Transfer-Encoding: chunked] [Trailer: "
                       "Server-Timing]\nok\ntrailer Server-Timing: db;dur=5\nend\n"},
    {"C017-client1", "GET path=/public " APP "none upgrade" APP_FIELD
                     " [!Connection: Upgrade, HTTP2-Settings] [!Upgrade: h2c] "
                     "[!HTTP2-Settings: AAMAAAAy]\n\nend\n"},
    {"C017-client2", PREFACE},
    {"C017-client3", "GET path=/public " APP "none upgrade" APP_FIELD
                     " [!Connection: Upgrade, HTTP2-Settings] [!Upgrade: h2c, websocket] "
                     "[!HTTP2-Settings: AAMAAAAy]\n\nend\n"},
    {"C017-upstream1", "101 Switching Protocols 1.1 keep none upgrade [!Connection: Upgrade] "
                       "[!Upgrade: h2c]\ntunnel\n"},
    {"C019-client1", "BAD 431 http1.too_many_headers: too many fields\n"},
    {"C019-client2", "BAD 431 http1.headers_too_large: head longer than it may be\n"},
    {"C019-client3", "BAD 414 http1.headers_too_large: first line longer than a head may be\n"},
    {"C019-client4", PREFACE},
    {"C019-client5", PREFACE},
    {"C057-upstream1", "200 OK 1.1 keep length=10 [Content-Length: 10]\nhalf\ncut in body\n"},
};

#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

#define FILE_MAX (128 * 1024)

static uint8_t file_bytes[FILE_MAX];

static struct bytes read_case(const char *name)
{
    char path[512];
    FILE *file;
    size_t len;

    snprintf(path, sizeof(path), "%s/cases/%s.bin", TESTS_DIR, name);
    file = fopen(path, "rb");
    if (file == NULL)
        fail_msg("%s is not there", path);
    len = fread(file_bytes, 1, sizeof(file_bytes), file);
    fclose(file);
    assert_true(len > 0 && len < FILE_MAX);
    return bytes_from(file_bytes, len);
}

static enum feed_side side_of(const char *name)
{
    return strstr(name, "upstream") != NULL ? FEED_RESPONSES : FEED_REQUESTS;
}

static void expect_transcript(char *got, size_t row)
{
    if (strcmp(got, rows[row].transcript) != 0)
        fail_msg("%s: got\n%s\nexpected\n%s", rows[row].file, got, rows[row].transcript);
    free(got);
}

static void each_case_comes_to_what_it_must(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROW_COUNT; i++)
        expect_transcript(feed_whole(side_of(rows[i].file), read_case(rows[i].file)), i);
}

static void each_case_comes_to_the_same_byte_by_byte(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROW_COUNT; i++)
        expect_transcript(feed_bytewise(side_of(rows[i].file), read_case(rows[i].file)), i);
}

/* Every place in the first and last 512 bytes, and about 1000 between. */
static size_t next_cut(size_t cut, size_t len)
{
    size_t stride = len / 1000;

    if (stride <= 1 || cut < 512 || cut + 512 >= len)
        return cut + 1;
    return cut + stride < len - 512 ? cut + stride : len - 512;
}

static void each_case_comes_to_the_same_in_two_parts_cut_anywhere(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROW_COUNT; i++) {
        struct bytes in = read_case(rows[i].file);

        for (size_t cut = 1; cut < in.len; cut = next_cut(cut, in.len))
            expect_transcript(feed_cut(side_of(rows[i].file), in, &cut, 1), i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_case_comes_to_what_it_must),
        cmocka_unit_test(each_case_comes_to_the_same_byte_by_byte),
        cmocka_unit_test(each_case_comes_to_the_same_in_two_parts_cut_anywhere),
    };

    return cmocka_run_group_tests_name("http1_cases", tests, NULL, NULL);
}
