/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses, with the C library's inet_pton and inet_ntop as a second opinion. */
#include "base/address.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"

static const char *written(const struct address *a)
{
    static char data[ADDRESS_TEXT_MAX];
    struct text t;

    text_init(&t, data, sizeof(data));
    address_write(&t, a);
    assert_false(t.failed);
    return text_end(&t);
}

static const char *written_ip(const struct address *a)
{
    static char data[ADDRESS_TEXT_MAX];
    struct text t;

    text_init(&t, data, sizeof(data));
    address_write_ip(&t, a);
    assert_false(t.failed);
    return text_end(&t);
}

static struct address parsed(const char *text)
{
    struct address a = {.kind = ADDRESS_NONE};

    assert_true(address_parse(bytes_of(text), &a));
    return a;
}

static void addresses_with_port_read_and_write(void **state)
{
    struct address a = parsed("127.0.0.1:80");
    (void)state;

    assert_int_equal(a.kind, ADDRESS_IPV4);
    assert_int_equal(a.port, 80);
    assert_memory_equal(a.ip, "\x7f\0\0\x01", 4);
    assert_string_equal(written(&a), "127.0.0.1:80");
    a = parsed("[::1]:65535");
    assert_int_equal(a.kind, ADDRESS_IPV6);
    assert_string_equal(written(&a), "[::1]:65535");
    assert_string_equal(written_ip(&a), "::1");
    a = parsed("255.255.255.255:0");
    assert_string_equal(written(&a), "255.255.255.255:0");
}

static void what_is_no_address_is_refused(void **state)
{
    const char *const wrong[] = {"",
                                 ":80",
                                 "127.0.0.1",
                                 "127.0.0.1:",
                                 "127.0.0.1:65536",
                                 "127.0.0.1:-1",
                                 "127.0.0.1:000080",
                                 "127.0.0.1: 80",
                                 "localhost:80",
                                 "127.0.0:80",
                                 "127.0.0.1.1:80",
                                 "127.0.0.256:80",
                                 "127.0.0.01:80",
                                 "127.0.0.1 :80",
                                 "::1:80",
                                 "[::1]",
                                 "[::1]80",
                                 "[::1]:",
                                 "[::1:80",
                                 "[127.0.0.1]:80",
                                 "[]:80",
                                 "[::1%lo]:80",
                                 "[:::1]:80",
                                 "0x7f.0.0.1:80",
                                 "1..2.3:80",
                                 "[::1]:80x",
                                 "127.0.0.1:80:80"};
    struct address a = {.kind = ADDRESS_UNIX};
    (void)state;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_false(address_parse(bytes_of(wrong[i]), &a));
    assert_int_equal(a.kind, ADDRESS_UNIX);
}

static void names_are_split_but_not_looked_up(void **state)
{
    struct bytes host = BYTES_NONE;
    uint16_t port = 0;
    (void)state;

    assert_true(address_split(BYTES("checkout.shop.svc:9001"), &host, &port));
    assert_true(bytes_equal(host, BYTES("checkout.shop.svc")));
    assert_int_equal(port, 9001);
    assert_true(address_split(BYTES("[fe80::1]:443"), &host, &port));
    assert_true(bytes_equal(host, BYTES("fe80::1")));
    assert_int_equal(port, 443);
    assert_false(address_split(BYTES("a b:80"), &host, &port));
    assert_false(address_split(BYTES("a/b:80"), &host, &port));
    assert_false(address_split(BYTES("a\n:80"), &host, &port));
    assert_false(address_split(BYTES("name"), &host, &port));
    assert_false(address_split(BYTES("name:http"), &host, &port));
    assert_false(address_split(BYTES("[name]:80"), &host, &port));
    assert_int_equal(port, 443);
}

static void expect_ip(const char *text, const char *canonical)
{
    struct address a;

    assert_true(address_parse_ip(bytes_of(text), &a));
    assert_int_equal(a.port, 0);
    assert_string_equal(written_ip(&a), canonical);
}

/* The examples of RFC 5952, sections 2 and 4. */
static void ipv6_is_written_in_the_one_recommended_form(void **state)
{
    (void)state;

    expect_ip("2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1");
    expect_ip("2001:0db8:0:0:1:0:0:1", "2001:db8::1:0:0:1");
    expect_ip("2001:db8::0:1", "2001:db8::1");
    expect_ip("2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1");
    expect_ip("2001:0:0:1:0:0:0:1", "2001:0:0:1::1");
    expect_ip("2001:DB8::ABCD", "2001:db8::abcd");
    expect_ip("::", "::");
    expect_ip("0:0:0:0:0:0:0:0", "::");
    expect_ip("1::", "1::");
    expect_ip("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0");
    expect_ip("::ffff:192.0.2.1", "::ffff:192.0.2.1");
    expect_ip("::FFFF:c000:201", "::ffff:192.0.2.1");
    expect_ip("64:ff9b::192.0.2.33", "64:ff9b::c000:221");
    expect_ip("1:2:3:4:5:6:7.8.9.10", "1:2:3:4:5:6:708:90a");
}

static void broken_ipv6_is_refused(void **state)
{
    const char *const wrong[] = {":",
                                 ":::",
                                 "1",
                                 "1:2:3:4:5:6:7",
                                 "1:2:3:4:5:6:7:8:9",
                                 "1::2::3",
                                 "::1:",
                                 ":1::",
                                 "12345::",
                                 "g::",
                                 "1:2:3:4:5:6:7:8::",
                                 "::1:2:3:4:5:6:7:8",
                                 "1.2.3.4::",
                                 "::1.2.3.4:5",
                                 "1:2:3:4:5:6:7:1.2.3.4",
                                 "::1.2.3",
                                 "::1.2.3.256",
                                 "::1.2.3.04",
                                 "1:2:3:4:5:6:7:",
                                 "::%1",
                                 "1:2:3:4:5:6:7:8:"};
    struct address a;
    (void)state;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_false(address_parse_ip(bytes_of(wrong[i]), &a));
}

/* glibc writes ::/96 with an IPv4 tail; RFC 5952 leaves that to known prefixes. */
static bool is_old_compatible(const uint8_t *ip)
{
    static const uint8_t zeros[12];

    return memcmp(ip, zeros, sizeof(zeros)) == 0;
}

static void random_addresses_are_written_as_the_c_library_does(void **state)
{
    struct rng rng;
    (void)state;

    rng_init(&rng, 21);
    for (int round = 0; round < 30000; round++) {
        struct address a = {.kind = ADDRESS_IPV6}, back;
        char theirs[INET6_ADDRSTRLEN];
        uint64_t zero = rng_next(&rng);

        for (unsigned i = 0; i < 16; i++)
            if ((zero >> (i / 2) & 1) != 0)
                a.ip[i] = (uint8_t)rng_below(&rng, i % 2 == 0 ? 17 : 256);
        if (is_old_compatible(a.ip))
            continue;
        inet_ntop(AF_INET6, a.ip, theirs, sizeof(theirs));
        assert_string_equal(written_ip(&a), theirs);
        assert_true(address_parse_ip(bytes_of(theirs), &back));
        assert_true(address_equal(&a, &back));
    }
}

/* Mutated texts: we take exactly what inet_pton takes. */
static void random_texts_are_judged_as_the_c_library_does(void **state)
{
    static const char letters[] = "0123456789aF::::..";
    struct rng rng;
    unsigned taken = 0;
    (void)state;

    rng_init(&rng, 22);
    for (int round = 0; round < 300000; round++) {
        uint8_t ip4[4], ip6[16];
        char text[24];
        size_t len = 1 + rng_below(&rng, 20);
        struct address a;
        bool is4, is6;

        for (size_t i = 0; i < len; i++)
            text[i] = letters[rng_below(&rng, sizeof(letters) - 1)];
        text[len] = '\0';
        is4 = inet_pton(AF_INET, text, ip4) == 1;
        is6 = inet_pton(AF_INET6, text, ip6) == 1;
        assert_int_equal(address_parse_ip(bytes_from(text, len), &a), is4 || is6);
        if (is6)
            assert_memory_equal(a.ip, ip6, 16);
        if (is4)
            assert_memory_equal(a.ip, ip4, 4);
        taken += is4 || is6;
    }
    assert_true(taken > 1000);
}

static void equality_looks_at_what_counts(void **state)
{
    struct address a = parsed("10.0.0.1:80"), b = parsed("10.0.0.1:80");
    char path[] = "/run/x";
    struct address u = {.kind = ADDRESS_UNIX, .path = path};
    struct address v = {.kind = ADDRESS_UNIX, .path = "/run/x", .port = 9};
    struct address none = {.kind = ADDRESS_NONE};
    (void)state;

    b.ip[7] = 9; /* not part of an IPv4 address */
    assert_true(address_equal(&a, &b));
    b.port = 81;
    assert_false(address_equal(&a, &b));
    b = parsed("10.0.0.2:80");
    assert_false(address_equal(&a, &b));
    b = parsed("[::1]:80");
    assert_false(address_equal(&a, &b));
    a = parsed("[::1]:81");
    assert_false(address_equal(&a, &b));
    a = parsed("[::2]:80");
    assert_false(address_equal(&a, &b));
    assert_true(address_equal(&u, &v));
    v.path = "/run/y";
    assert_false(address_equal(&u, &v));
    assert_true(address_equal(&none, &none));
    assert_string_equal(written(&u), "unix:/run/x");
    assert_string_equal(written(&none), "-");
}

static bool loopback(const char *text)
{
    struct address a = parsed(text);

    return address_is_loopback(&a);
}

static void loopback_is_known_in_every_dress(void **state)
{
    struct address unix_path = {.kind = ADDRESS_UNIX, .path = "/x"};
    struct address none = {.kind = ADDRESS_NONE};
    (void)state;

    assert_true(loopback("127.0.0.1:1"));
    assert_true(loopback("127.255.0.9:1"));
    assert_false(loopback("128.0.0.1:1"));
    assert_false(loopback("0.0.0.0:1"));
    assert_true(loopback("[::1]:1"));
    assert_false(loopback("[::2]:1"));
    assert_false(loopback("[::]:1"));
    assert_true(loopback("[::ffff:127.1.2.3]:1"));
    assert_false(loopback("[::ffff:10.1.2.3]:1"));
    assert_true(address_is_loopback(&unix_path));
    assert_false(address_is_loopback(&none));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_with_port_read_and_write),
        cmocka_unit_test(what_is_no_address_is_refused),
        cmocka_unit_test(names_are_split_but_not_looked_up),
        cmocka_unit_test(ipv6_is_written_in_the_one_recommended_form),
        cmocka_unit_test(broken_ipv6_is_refused),
        cmocka_unit_test(random_addresses_are_written_as_the_c_library_does),
        cmocka_unit_test(random_texts_are_judged_as_the_c_library_does),
        cmocka_unit_test(equality_looks_at_what_counts),
        cmocka_unit_test(loopback_is_known_in_every_dress),
    };

    return cmocka_run_group_tests_name("address", tests, NULL, NULL);
}
