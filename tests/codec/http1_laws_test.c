/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Laws of the HTTP/1 codec on random mutations of messages that are nearly right: how the bytes
 * are cut does not matter, and a head that was taken is taken again, alike, as it would be written.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "codec/http1_feed.h"

#define SEEDS     12000
#define INPUT_MAX 1024

static const char *const requests[] = {
    "GET /a/b?c=d HTTP/1.1\r\nHost: h.example:80\r\nUser-Agent: x\r\nAccept: */*\r\n\r\n",
    "\r\n\r\nOPTIONS * HTTP/1.1\r\nHost: [::1]:8\r\nConnection: close, x-a\r\nX-A: 1\r\n\r\n",
    "POST /u HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello"
    "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
    "POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n"
    "5;a=\"b;c\" ; d\r\nhello\r\n1A\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\nX-T: 1\r\nHost: e\r\n\r\n"
    "GET /2 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    "GET http://o:81/p?q HTTP/1.1\r\nHost: h\r\nContent-Length: 1, 1\r\nContent-Length: 1\r\n\r\nx",
    "GET /w HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
};

static const char *const responses[] = {
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\nDate: x\r\n\r\nhello"
    "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n3\r\nabc\r\n"
    "0\r\nServer-Timing: a\r\n\r\nHTTP/1.0 404\r\nConnection: keep-alive\r\n\r\nrest",
    "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nraw",
};

static const char spices[] = "\r\n\r\n :;,\t\"\\0a9=%#?*/[]@\x01\x7f\x80\xff\0";

static const char *const phrases[] = {"\r\n",
                                      "\n",
                                      "\r\n\r\n",
                                      "Host: a\r\n",
                                      "Content-Length: 5\r\n",
                                      "HTTP/1.0",
                                      "HTTP/2.0",
                                      "Connection: host, x-a\r\n",
                                      "Transfer-Encoding: chunked\r\n",
                                      " folded\r\n",
                                      "0\r\n\r\n",
                                      "close",
                                      "chunked",
                                      "GET / HTTP/1.1\r\n"};

static size_t insert(char *text, size_t len, size_t at, const char *what, size_t count)
{
    if (len + count > INPUT_MAX)
        return len;
    memmove(text + at + count, text + at, len - at);
    memcpy(text + at, what, count);
    return len + count;
}

static size_t mutate(char *text, size_t len, struct rng *rng)
{
    size_t at = rng_below(rng, (uint32_t)len);
    size_t some = 1 + rng_below(rng, 8);
    const char *phrase = phrases[rng_below(rng, sizeof(phrases) / sizeof(phrases[0]))];

    if (some > len - at)
        some = len - at;
    switch (rng_below(rng, 6)) {
    case 0:
        text[at] = (char)rng_below(rng, 256);
        return len;
    case 1:
        text[at] = spices[rng_below(rng, sizeof(spices) - 1)];
        return len;
    case 2:
        return insert(text, len, at, &spices[rng_below(rng, sizeof(spices) - 1)], 1);
    case 3:
        return insert(text, len, at, phrase, strlen(phrase));
    case 4: {
        char copy[8];

        memcpy(copy, text + at, some);
        return insert(text, len, rng_below(rng, (uint32_t)len), copy, some);
    }
    default:
        if (some == len)
            return len;
        memmove(text + at, text + at + some, len - at - some);
        return len - some;
    }
}

static size_t make_input(char *text, enum feed_side side, struct rng *rng)
{
    const char *from = side == FEED_REQUESTS
                           ? requests[rng_below(rng, sizeof(requests) / sizeof(requests[0]))]
                           : responses[rng_below(rng, sizeof(responses) / sizeof(responses[0]))];
    size_t len = strlen(from);

    memcpy(text, from, len);
    for (uint32_t n = rng_below(rng, 5); n > 0; n--)
        len = mutate(text, len, rng);
    return len;
}

static enum feed_side side_of(uint64_t seed)
{
    return seed % 3 != 0 ? FEED_REQUESTS : seed % 2 == 0 ? FEED_RESPONSES : FEED_RESPONSES_TO_HEAD;
}

static void how_the_bytes_are_cut_does_not_matter(void **state)
{
    unsigned refused = 0;
    (void)state;

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        char text[INPUT_MAX];
        struct rng rng;
        size_t len, cuts[3];
        char *whole, *cut, *bytewise;

        rng_init(&rng, seed);
        len = make_input(text, side_of(seed), &rng);
        cuts[0] = rng_below(&rng, (uint32_t)len + 1);
        cuts[1] = cuts[0] + rng_below(&rng, (uint32_t)(len - cuts[0]) + 1);
        cuts[2] = cuts[1] + rng_below(&rng, (uint32_t)(len - cuts[1]) + 1);
        whole = feed_whole(side_of(seed), bytes_from(text, len));
        cut = feed_cut(side_of(seed), bytes_from(text, len), cuts, 3);
        bytewise = feed_bytewise(side_of(seed), bytes_from(text, len));
        if (strcmp(whole, cut) != 0 || strcmp(whole, bytewise) != 0)
            fail_msg("seed %llu: %.*s\nwhole\n%s\ncut\n%s\nbytewise\n%s", (unsigned long long)seed,
                     (int)len, text, whole, cut, bytewise);
        refused += strstr(whole, "BAD ") != NULL;
        free(whole);
        free(cut);
        free(bytewise);
    }
    /* The mutations are neither all harmless nor all deadly. */
    assert_in_range(refused, SEEDS / 5, SEEDS * 4 / 5);
}

static void a_head_written_as_it_was_read_reads_the_same(void **state)
{
    unsigned accepted = 0;
    (void)state;

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        char text[INPUT_MAX];
        struct rng rng;
        size_t len;

        rng_init(&rng, seed);
        len = make_input(text, side_of(seed), &rng);
        accepted += feed_check_written(side_of(seed), bytes_from(text, len));
    }
    assert_true(accepted > SEEDS / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(how_the_bytes_are_cut_does_not_matter),
        cmocka_unit_test(a_head_written_as_it_was_read_reads_the_same),
    };

    return cmocka_run_group_tests_name("http1_laws", tests, NULL, NULL);
}
