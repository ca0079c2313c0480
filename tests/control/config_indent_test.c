/* SPDX-License-Identifier: Apache-2.0 */
/* Which files have lost their indentation, and which have only an empty key. */
#include "control/config_indent.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static bool lost(const char *text, uint32_t line, const char *inner)
{
    struct config_node *documents = NULL;
    struct config_errors errors;
    struct arena arena;
    bool is_lost;

    arena_init(&arena, 4096, SIZE_MAX);
    config_errors_init(&errors);
    config_errors_open(&errors, BYTES("f.yaml"), bytes_of(text));
    assert_true(config_tree_parse(&arena, &errors, &documents));
    is_lost = config_indentation_lost(documents, &errors);
    assert_int_equal(errors.count, is_lost ? 1 : 0);
    if (is_lost) {
        struct text t;
        char shown[256];

        assert_int_equal(errors.at[0].line, line);
        text_init(&t, shown, sizeof(shown));
        text_str(&t, "the indentation is lost: ");
        config_quote(&t, bytes_of(inner));
        assert_true(bytes_start_with(errors.at[0].message, text_bytes(&t)));
    }
    config_errors_release(&errors);
    arena_release(&arena);
    return is_lost;
}

static void what_stands_beside_its_empty_key_is_told(void **state)
{
    (void)state;
    assert_true(lost("kind: DestinationRule\nmetadata:\nname: a\n", 3, "name"));
    assert_true(lost("metadata: {name: a}\nspec:\nhost: a\n", 3, "host"));
    assert_true(
        lost("spec:\n  host: a\n  trafficPolicy:\n  connectionPool:\n", 4, "connectionPool"));
    assert_true(lost("clusters:\n- name: a\n  trafficPolicy:\n  outlierDetection: {}\n", 4,
                     "outlierDetection"));
    assert_true(lost("connectionPool:\ntcp:\nmaxConnections: 1\n", 2, "tcp"));
    assert_true(lost("tcp: # limits\nmaxConnections: 1\n", 2, "maxConnections"));
    assert_true(lost("http: ~\nhttp2MaxRequests: 1\n", 2, "http2MaxRequests"));
}

static void an_empty_key_alone_is_not(void **state)
{
    (void)state;
    assert_false(lost("metadata:\nspec: {host: a}\n", 0, ""));
    assert_false(lost("clusters:\n- name: a\n  trafficPolicy:\n  resilience: {}\n", 0, ""));
    assert_false(lost("spec:\n  trafficPolicy:\n    outlierDetection:\n  host: a\n", 0, ""));
    assert_false(lost("trafficPolicy: {}\nconnectionPool: {}\n", 0, ""));
    assert_false(lost("a:\nb:\n", 0, ""));
    assert_false(lost("- name\n- host\n", 0, ""));
    assert_false(lost("word\n", 0, ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_stands_beside_its_empty_key_is_told),
        cmocka_unit_test(an_empty_key_alone_is_not),
    };

    return cmocka_run_group_tests_name("config_indent", tests, NULL, NULL);
}
