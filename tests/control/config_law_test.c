/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The law of the loader, on thousands of damaged files: it ends, it leaks nothing, and either there
 * is a sound snapshot, or at least one error whose place is inside the file.
 */
#include "control/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "control/mutate.h"

#include "base/rng.h"

#define EXAMPLES TESTS_DIR "/../examples/"

static char example[64 * 1024];
static size_t example_len;

static int read_example(void **state)
{
    FILE *f = fopen(EXAMPLES "firebreak.yaml", "rb");
    (void)state;

    if (f == NULL)
        return -1;
    example_len = fread(example, 1, sizeof(example), f);
    fclose(f);
    return example_len > 0 ? 0 : -1;
}

static uint32_t lines_of(struct bytes source)
{
    uint32_t lines = 1;

    /* Breaks as YAML has them; NEL, LS and PS each count as a line here, which is never too few. */
    for (size_t i = 0; i < source.len; i++)
        lines += source.data[i] == '\n' || source.data[i] == '\r' || source.data[i] == 0x85 ||
                 source.data[i] == 0xa8 || source.data[i] == 0xa9;
    return lines;
}

static void check_errors(const struct config_errors *e, struct bytes source)
{
    static char room[64 * 1024];
    struct text t;

    assert_true(e->count >= 1);
    for (uint32_t i = 0; i < e->count; i++) {
        const struct config_error *error = &e->at[i];

        assert_true(error->message.len > 0);
        assert_in_range(error->line, 1, lines_of(source));
        assert_in_range(error->column, 1, source.len + 1);
        assert_true(error->caret <= 100);
        if (i > 0)
            assert_true(e->at[i - 1].line < error->line ||
                        (e->at[i - 1].line == error->line && e->at[i - 1].column <= error->column));
    }
    text_init(&t, room, sizeof(room));
    config_errors_write(&t, e);
    assert_false(t.failed);
    for (size_t i = 0; i < t.len; i++)
        assert_true(t.data[i] == '\n' || (uint8_t)t.data[i] >= 0x20);
}

/* What everybody who reads a snapshot relies on. */
static void check_snapshot(const struct snapshot *s)
{
    assert_true(s->listener_count > 0 && s->cluster_count > 0);
    for (uint32_t i = 0; i < s->listener_count; i++) {
        const struct listener_config *l = &s->listeners[i];

        assert_true(l->name.len > 0 && l->route_count > 0 && l->address.kind != ADDRESS_NONE);
        for (uint32_t k = 0; k < l->route_count; k++) {
            assert_true(l->routes[k].cluster < s->cluster_count);
            assert_true(l->routes[k].path.len > 0 && l->routes[k].path.data[0] == '/');
            assert_true(l->routes[k].timeout > 0);
        }
    }
    for (uint32_t i = 0; i < s->cluster_count; i++) {
        const struct cluster *c = &s->clusters[i];

        assert_true(c->name.len > 0 && c->name.len == c->stat_name.len);
        assert_true(c->endpoint_count > 0 && c->lb < LB_KIND_COUNT);
        assert_true(c->outlier.interval > 0 && c->connect_timeout > 0);
        for (uint32_t k = 0; k < c->endpoint_count; k++)
            assert_true(c->endpoints[k].text.len > 0 && c->endpoints[k].weight > 0);
    }
}

/* 1 where it was accepted. */
static unsigned check(const char *data, size_t len)
{
    /* A copy of just that size, so that a sanitizer sees any step beyond it. */
    char *copy = malloc(len > 0 ? len : 1);
    struct bytes source = bytes_from(copy, len);
    struct config_errors e;
    struct snapshot *s = NULL;
    int status;

    memcpy(copy, data, len);
    config_errors_init(&e);
    status = config_parse(&(struct config_source){BYTES("f"), source}, 1, NULL, &e, &s);
    if (status == CONFIG_OK) {
        assert_int_equal(e.count, 0);
        check_snapshot(s);
        assert_true(snapshot_attach_state(s, 1));
        snapshot_drop(s);
    } else {
        assert_int_equal(status, CONFIG_INVALID);
        assert_null(s);
        check_errors(&e, source);
    }
    config_errors_release(&e);
    free(copy);
    return status == CONFIG_OK;
}

static void every_beginning_of_a_file_is_taken_or_refused_with_a_place(void **state)
{
    unsigned accepted = 0;
    (void)state;

    for (size_t len = 0; len <= example_len; len++)
        accepted += check(example, len);
    assert_true(accepted > 0);               /* the whole of it, at least */
    assert_true(accepted < example_len / 5); /* and not much less than the whole */
}

static const char *const pieces[] = {
    "\n",          "  ",
    "\t",          "- ",
    ": ",          "{",
    "}",           "[",
    "]",           "*a",
    "&a ",         "!x ",
    "\"",          "'",
    "#",           "---\n",
    "\xff",        "\xc3\xa4",
    "\x01",        "\xe2\x80\xa8",
    "\r",          "0",
    "-1",          "99999999999",
    "none",        "0s",
    "127.0.0.1:0", "null",
    "~",           "|",
    ">",           "<<: ",
    "retry: {}\n", "cluster: x\n",
    "? ",          "%",
    "unix:",       "*",
    "\\",          "apiVersion: networking.istio.io/v1\n",
    "\xc2\x85",    "\0",
};

#define PIECES (sizeof(pieces) / sizeof(pieces[0]))

static void no_damage_breaks_the_law(void **state)
{
    unsigned accepted = 0, tried = 4000;
    (void)state;

    for (uint64_t seed = 1; seed <= tried; seed++) {
        char text[sizeof(example)];
        size_t len = example_len;
        unsigned changes;
        struct rng rng;

        rng_init(&rng, seed);
        memcpy(text, example, example_len);
        for (changes = 1 + rng_below(&rng, 6); changes > 0; changes--)
            len = mutate(text, len, pieces, PIECES, &rng);
        accepted += check(text, len);
    }
    /* Comments are harmless to change; most else is not. */
    assert_in_range(accepted, tried / 100, tried / 2);
}

static void the_same_file_gives_the_same_errors(void **state)
{
    (void)state;

    for (uint64_t seed = 1; seed <= 200; seed++) {
        char text[sizeof(example)], first[32 * 1024], second[32 * 1024];
        size_t len = example_len;
        struct rng rng;

        rng_init(&rng, seed);
        memcpy(text, example, example_len);
        len = mutate(text, len, pieces, PIECES, &rng);
        for (unsigned i = 0; i < 2; i++) {
            struct config_errors e;
            struct snapshot *s = NULL;
            struct text t;

            config_errors_init(&e);
            config_parse(&(struct config_source){BYTES("f"), bytes_from(text, len)}, 1, NULL, &e,
                         &s);
            text_init(&t, i == 0 ? first : second, sizeof(first));
            config_errors_write(&t, &e);
            text_end(&t);
            config_errors_release(&e);
            snapshot_drop(s);
        }
        assert_string_equal(first, second);
    }
}

static void more_parts_than_a_configuration_has_are_refused(void **state)
{
    size_t size = 3 * 1000001;
    char *text = malloc(size + 4);
    struct config_errors e;
    struct snapshot *s = NULL;
    (void)state;

    memset(text, ' ', size);
    memcpy(text, "a: [", 4);
    for (size_t i = 4; i + 2 < size; i += 2)
        memcpy(text + i, "1,", 2);
    config_errors_init(&e);
    assert_int_equal(
        config_parse(&(struct config_source){BYTES("f"), bytes_from(text, size)}, 1, NULL, &e, &s),
        CONFIG_INVALID);
    assert_int_equal(e.count, 1);
    assert_non_null(memmem(e.at[0].message.data, e.at[0].message.len, "more than 1,000,000", 19));
    config_errors_release(&e);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_beginning_of_a_file_is_taken_or_refused_with_a_place),
        cmocka_unit_test(no_damage_breaks_the_law),
        cmocka_unit_test(the_same_file_gives_the_same_errors),
        cmocka_unit_test(more_parts_than_a_configuration_has_are_refused),
    };

    return cmocka_run_group_tests_name("config_law", tests, read_example, NULL);
}
