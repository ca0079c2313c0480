/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void assert_bytes(struct bytes b, const char *expected)
{
    if (!bytes_equal(b, bytes_of(expected)))
        fail_msg("\"%.*s\" is not \"%s\"", (int)b.len, (const char *)b.data, expected);
}

struct example {
    const char *text;
    const char *host;
    uint16_t port;
    const char *authority;
    const char *target;
};

static void urls_are_taken_apart(void **state)
{
    static const struct example examples[] = {
        {"http://a/", "a", 80, "a", "/"},
        {"http://a", "a", 80, "a", "/"},
        {"HTTP://shop.example:8080/a/b?c=d&e", "shop.example", 8080, "shop.example:8080",
         "/a/b?c=d&e"},
        {"http://127.0.0.1:1/%2e", "127.0.0.1", 1, "127.0.0.1:1", "/%2e"},
        {"http://127.0.0.1", "127.0.0.1", 80, "127.0.0.1", "/"},
        {"http://[::1]:65535/x", "::1", 65535, "[::1]:65535", "/x"},
        {"http://[::1]", "::1", 80, "[::1]", "/"},
        {"http://a/x#fragment?no", "a", 80, "a", "/x"},
        {"http://a#fragment", "a", 80, "a", "/"},
        {"http://a//b", "a", 80, "a", "//b"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++) {
        const struct example *e = &examples[i];
        struct url u;
        const char *why = url_parse(bytes_of(e->text), &u);

        if (why != NULL)
            fail_msg("%s: %s", e->text, why);
        assert_bytes(u.host, e->host);
        assert_int_equal(u.port, e->port);
        assert_bytes(u.authority, e->authority);
        assert_bytes(u.target, e->target);
    }
}

static void what_is_no_url_is_refused_with_a_reason(void **state)
{
    static const char *const texts[] = {
        "",
        "a",
        "//a/",
        "http:/a/",
        "http://",
        "http:///x",
        "http://:80/",
        "http://a:/",
        "http://a:0/",
        "http://a:65536/",
        "http://a:8x/",
        "http://a:80:81/",
        "http://::1/",
        "http://[::1/",
        "http://[]/",
        "http://[1.2.3]/",
        "http://u@a/",
        "http://u:p@a:80/",
        "http://a?x",
        "http://a /",
        "http://a/b c",
        "http://a/\r\nx: y",
        "http://a/\xc3\xa4",
        "ftp://a/",
        "https://a/",
    };
    (void)state;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct url u = {.port = 7};
        const char *why = url_parse(bytes_of(texts[i]), &u);

        if (why == NULL || strlen(why) < 10)
            fail_msg("\"%s\" was taken", texts[i]);
        assert_int_equal(u.port, 7);
    }
}

static void very_long_ones_are_refused(void **state)
{
    static char text[8300];
    struct url u;
    (void)state;

    memset(text, 'a', sizeof(text));
    memcpy(text, "http://a/", 9);
    assert_null(url_parse(bytes_from(text, 8192), &u));
    assert_int_equal(u.target.len, 8192 - 8);
    assert_non_null(url_parse(bytes_from(text, 8193), &u));
}

static void https_has_a_reason_of_its_own(void **state)
{
    struct url u;
    (void)state;

    assert_non_null(strstr(url_parse(BYTES("https://a/"), &u), "https is not supported"));
    assert_non_null(strstr(url_parse(BYTES("a:80"), &u), "http://HOST:PORT/PATH"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urls_are_taken_apart),
        cmocka_unit_test(what_is_no_url_is_refused_with_a_reason),
        cmocka_unit_test(very_long_ones_are_refused),
        cmocka_unit_test(https_has_a_reason_of_its_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
