/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/router.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"

static bool matches(const struct route *r, const char *authority, const char *method,
                    const char *path)
{
    struct listener_config listener = {.route_count = 1, .routes = r};
    struct message_head head = {.authority = bytes_of(authority), .method = bytes_of(method)};

    return router_match(&listener, &head, bytes_of(path)) == r;
}

static bool host_matches(const char *pattern, const char *authority)
{
    const struct bytes hosts[] = {bytes_of(pattern)};
    const struct route r = {
        .host_count = 1, .hosts = hosts, .match = PATH_PREFIX, .path = BYTES("/")};

    return matches(&r, authority, "GET", "/");
}

static void hosts_match_without_their_port_and_in_any_case(void **state)
{
    (void)state;
    assert_true(host_matches("a.test", "a.test"));
    assert_true(host_matches("a.test", "A.Test:8080"));
    assert_true(host_matches("a.test:81", "a.test:81"));
    assert_false(host_matches("a.test:81", "a.test:82"));
    assert_false(host_matches("a.test", "b.a.test"));
    assert_false(host_matches("a.test", "a.tes"));
    assert_true(host_matches("[::1]", "[::1]"));
    assert_true(host_matches("[::1]", "[::1]:80"));
    assert_false(host_matches("[::1]", "[::2]:80"));
    assert_true(host_matches("*1]", "[::1]")); /* its last colon is not a port's */
    assert_false(host_matches("a.test", ""));
}

static void a_star_stands_for_any_beginning(void **state)
{
    (void)state;
    assert_true(host_matches("*", "whatever:1"));
    assert_true(host_matches("*", ""));
    assert_true(host_matches("*.a.test", "x.y.A.test:80"));
    assert_false(host_matches("*.a.test", "a.test"));
    assert_false(host_matches("*.a.test", "xa.test"));
    assert_false(host_matches("*.a.test", "x.a.test.evil"));
}

static void methods_are_case_sensitive(void **state)
{
    const struct bytes methods[] = {BYTES("GET"), BYTES("HEAD")};
    const struct route r = {
        .method_count = 2, .methods = methods, .match = PATH_PREFIX, .path = BYTES("/")};
    (void)state;

    assert_true(matches(&r, "a", "GET", "/"));
    assert_true(matches(&r, "a", "HEAD", "/"));
    assert_false(matches(&r, "a", "get", "/"));
    assert_false(matches(&r, "a", "GETS", "/"));
    assert_false(matches(&r, "a", "POST", "/"));
}

static void paths_match_whole_or_by_their_beginning(void **state)
{
    const struct route exact = {.match = PATH_EXACT, .path = BYTES("/a")};
    const struct route prefix = {.match = PATH_PREFIX, .path = BYTES("/a")};
    (void)state;

    assert_true(matches(&exact, "h", "GET", "/a"));
    assert_false(matches(&exact, "h", "GET", "/ab"));
    assert_false(matches(&exact, "h", "GET", "/"));
    assert_true(matches(&prefix, "h", "GET", "/ab"));
    assert_false(matches(&prefix, "h", "GET", "/"));
    assert_false(matches(&prefix, "h", "GET", "/A"));
}

/* Law: of random routes the first that matches alone is the one; where none does, none. */
static void the_first_route_that_matches_wins(void **state)
{
    const struct bytes hosts[] = {BYTES("a.test"), BYTES("*.a.test"), BYTES("*")};
    const struct bytes methods[] = {BYTES("GET"), BYTES("PUT")};
    const struct bytes paths[] = {BYTES("/"), BYTES("/a"), BYTES("/a/b"), BYTES("*")};
    static const char *const authorities[] = {"a.test", "x.a.test:9", "other", "A.TEST:1"};
    static const char *const asked[] = {"/", "/a", "/a/b/c", "/abc", "*"};
    struct rng rng;
    unsigned found = 0;
    (void)state;

    rng_init(&rng, 5);
    for (unsigned round = 0; round < 5000; round++) {
        struct route routes[6];
        struct listener_config listener = {.route_count = rng_below(&rng, 7), .routes = routes};
        const char *authority = authorities[rng_below(&rng, 4)];
        const char *path = asked[rng_below(&rng, 5)];
        const char *method = rng_below(&rng, 2) == 0 ? "GET" : "PUT";
        struct message_head head = {.authority = bytes_of(authority), .method = bytes_of(method)};
        const struct route *first = NULL;

        for (uint32_t i = 0; i < 6; i++)
            routes[i] = (struct route){
                .host_count = rng_below(&rng, 2),
                .hosts = &hosts[rng_below(&rng, 3)],
                .method_count = rng_below(&rng, 2),
                .methods = &methods[rng_below(&rng, 2)],
                .match = rng_below(&rng, 2) == 0 ? PATH_EXACT : PATH_PREFIX,
                .path = paths[rng_below(&rng, 4)],
            };
        for (uint32_t i = 0; i < listener.route_count && first == NULL; i++)
            if (matches(&routes[i], authority, method, path))
                first = &routes[i];
        found += first != NULL;
        assert_ptr_equal(router_match(&listener, &head, bytes_of(path)), first);
    }
    assert_true(found > 1000 && found < 4500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_match_without_their_port_and_in_any_case),
        cmocka_unit_test(a_star_stands_for_any_beginning),
        cmocka_unit_test(methods_are_case_sensitive),
        cmocka_unit_test(paths_match_whole_or_by_their_beginning),
        cmocka_unit_test(the_first_route_that_matches_wins),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
