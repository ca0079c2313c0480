/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of paths in the form they are matched in, and of the small pieces that are written. */
#include "codec/http1.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rng.h"

enum slashes { KEEP, MERGE };

/* In memory of exactly the room that is promised to be enough. */
static char *normalize(struct bytes path, enum slashes slashes)
{
    uint8_t *out = malloc(path.len + (path.len == 0));
    size_t len = SIZE_MAX;
    char *text = NULL;

    assert_non_null(out);
    if (http1_normalize_path(path, slashes == MERGE, out, &len)) {
        assert_true(len <= path.len);
        text = calloc(1, len + 1);
        assert_non_null(text);
        memcpy(text, out, len);
    } else {
        assert_int_equal(len, SIZE_MAX);
    }
    free(out);
    return text;
}

static void expect_path(const char *path, enum slashes slashes, const char *expected)
{
    char *got = normalize(bytes_of(path), slashes);

    if (expected == NULL) {
        if (got != NULL)
            fail_msg("%s gave %s", path, got);
        return;
    }
    if (got == NULL || strcmp(got, expected) != 0)
        fail_msg("%s gave %s, not %s", path, got == NULL ? "nothing" : got, expected);
    free(got);
}

static void unreserved_characters_are_decoded_and_others_written_in_upper_case(void **state)
{
    (void)state;
    expect_path("/", KEEP, "/");
    expect_path("/a/b.c", KEEP, "/a/b.c");
    expect_path("/%41%7a%30%2d%2E%5f%7E", KEEP, "/Az0-._~");
    expect_path("/%2f%5c%3f%23%20%e9%ff", KEEP, "/%2F%5C%3F%23%20%E9%FF");
    expect_path("/%252e", KEEP, "/%252e");
    expect_path("/%40%5B%60%7B%3a", KEEP, "/%40%5B%60%7B%3A");
}

static void broken_encodings_and_nul_are_refused(void **state)
{
    (void)state;
    expect_path("/%", KEEP, NULL);
    expect_path("/%4", KEEP, NULL);
    expect_path("/%4/1", KEEP, NULL);
    expect_path("/%g1", KEEP, NULL);
    expect_path("/%1g", KEEP, NULL);
    expect_path("/a%00b", KEEP, NULL);
    expect_path("%zz", KEEP, NULL);
}

static void dot_segments_are_removed_encoded_or_not(void **state)
{
    (void)state;
    expect_path("/.", KEEP, "/");
    expect_path("/./", KEEP, "/");
    expect_path("/a/.", KEEP, "/a/");
    expect_path("/a/./b", KEEP, "/a/b");
    expect_path("/a/..", KEEP, "/");
    expect_path("/a/../b", KEEP, "/b");
    expect_path("/a/b/../../c", KEEP, "/c");
    expect_path("/a/b/..", KEEP, "/a/");
    expect_path("/a/%2e%2E/b", KEEP, "/b");
    expect_path("/a/.%2e/%2e/b", KEEP, "/b");
    expect_path("/...", KEEP, "/...");
    expect_path("/.a/..b/c.", KEEP, "/.a/..b/c.");
    expect_path("/a/..;/b", KEEP, "/a/..;/b");
    expect_path("/a/..%2fb", KEEP, "/a/..%2Fb");
}

static void nobody_climbs_above_the_root(void **state)
{
    (void)state;
    expect_path("/..", KEEP, NULL);
    expect_path("/../a", KEEP, NULL);
    expect_path("/a/../..", KEEP, NULL);
    expect_path("/%2e%2e/a", KEEP, NULL);
    expect_path("/a/../../b/c", MERGE, NULL);
    expect_path("/./..", KEEP, NULL);
}

static void slashes_are_merged_only_where_asked_and_after_the_dots(void **state)
{
    (void)state;
    expect_path("//a///b//", KEEP, "//a///b//");
    expect_path("//a///b//", MERGE, "/a/b/");
    expect_path("//", MERGE, "/");
    expect_path("/a//../b", KEEP, "/a/b");
    expect_path("/a//../b", MERGE, "/a/b");
    expect_path("//..", KEEP, "/");
}

static void what_is_no_path_stays_as_it_is(void **state)
{
    (void)state;
    expect_path("*", MERGE, "*");
    expect_path("", MERGE, "");
    expect_path("a/b", KEEP, NULL);
}

static bool has_dot_segment(const char *path)
{
    size_t len = strlen(path);

    return strstr(path, "/./") != NULL || strstr(path, "/../") != NULL ||
           (len >= 2 && strcmp(path + len - 2, "/.") == 0) ||
           (len >= 3 && strcmp(path + len - 3, "/..") == 0);
}

/* A path in its form stays so, has no dots to climb by, and begins at the root. */
static void the_form_is_reached_in_one_step(void **state)
{
    static const char *const parts[] = {"/", ".", "..",  "//",   "a",   "%2e", "%2F", "%41",
                                        "b", "%", "%c3", "/../", "/./", "%7e", ";"};
    (void)state;

    for (uint64_t seed = 1; seed <= 20000; seed++) {
        char path[128] = "/";
        struct rng rng;
        enum slashes slashes;
        char *once, *twice;

        rng_init(&rng, seed);
        slashes = rng_below(&rng, 2) == 0 ? KEEP : MERGE;
        for (uint32_t n = rng_below(&rng, 10); n > 0; n--)
            strcat(path, parts[rng_below(&rng, sizeof(parts) / sizeof(parts[0]))]);
        once = normalize(bytes_of(path), slashes);
        if (once == NULL)
            continue;
        assert_int_equal(once[0], '/');
        assert_false(has_dot_segment(once));
        if (slashes == MERGE)
            assert_null(strstr(once, "//"));
        twice = normalize(bytes_of(once), slashes);
        assert_non_null(twice);
        assert_string_equal(once, twice);
        free(once);
        free(twice);
    }
}

static void a_chunk_head_is_the_size_in_hex_and_a_line_end(void **state)
{
    static const uint64_t sizes[] = {
        0,         1,         9,    10,    15,       16,         26,
        255,       256,       4096, 65535, 0xABCDEF, UINT32_MAX, UINT64_C(1) << 60,
        INT64_MAX, UINT64_MAX};
    (void)state;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        uint8_t out[HTTP1_CHUNK_HEAD_MAX];
        char expected[32];
        int len = snprintf(expected, sizeof(expected), "%llx\r\n", (unsigned long long)sizes[i]);

        assert_int_equal(http1_write_chunk_head(out, sizes[i]), len);
        assert_memory_equal(out, expected, (size_t)len);
    }
}

static void reasons_are_those_of_the_registry(void **state)
{
    (void)state;
    assert_string_equal(http1_reason(200), "OK");
    assert_string_equal(http1_reason(100), "Continue");
    assert_string_equal(http1_reason(404), "Not Found");
    assert_string_equal(http1_reason(431), "Request Header Fields Too Large");
    assert_string_equal(http1_reason(503), "Service Unavailable");
    assert_string_equal(http1_reason(511), "Network Authentication Required");
    assert_string_equal(http1_reason(299), "");
    assert_string_equal(http1_reason(0), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unreserved_characters_are_decoded_and_others_written_in_upper_case),
        cmocka_unit_test(broken_encodings_and_nul_are_refused),
        cmocka_unit_test(dot_segments_are_removed_encoded_or_not),
        cmocka_unit_test(nobody_climbs_above_the_root),
        cmocka_unit_test(slashes_are_merged_only_where_asked_and_after_the_dots),
        cmocka_unit_test(what_is_no_path_stays_as_it_is),
        cmocka_unit_test(the_form_is_reached_in_one_step),
        cmocka_unit_test(a_chunk_head_is_the_size_in_hex_and_a_line_end),
        cmocka_unit_test(reasons_are_those_of_the_registry),
    };

    return cmocka_run_group_tests_name("http1_path", tests, NULL, NULL);
}
