/* SPDX-License-Identifier: Apache-2.0 */
/*
 * docs/configuration.md says of every key what the tables say. To write it anew after a change:
 *
 *     FIREBREAK_WRITE_DOCS=1 build/control_config_docs_test
 */
#include "control/config_schema.h"
#include "control/config_value.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define DOCS TESTS_DIR "/../docs/configuration.md"

#define BEGIN "<!-- from the tables, by tests/control/config_docs_test.c: begin -->\n"
#define END   "<!-- end -->\n"

static char written[256 * 1024];
static char stored[256 * 1024];

static const char *kind_text(enum field_kind kind)
{
    static const char *const texts[] = {
        [FIELD_SHARE] = "share",      [FIELD_PERCENT] = "percent",
        [FIELD_RATE] = "rate",        [FIELD_EVENTS] = "per day or week",
        [FIELD_SWITCH] = "on, off",   [FIELD_COUNT] = "number",
        [FIELD_SECONDS] = "duration", [FIELD_SIZE32] = "size",
        [FIELD_SIZE] = "size",        [FIELD_SPAN] = "duration",
        [FIELD_TEXT] = "text",        [FIELD_NAME] = "name",
        [FIELD_ADDRESS] = "address",  [FIELD_CHOICE] = "",
        [FIELD_TEXTS] = "list",       [FIELD_LABELS] = "labels",
        [FIELD_OBJECT] = "map",       [FIELD_OBJECTS] = "list of maps",
        [FIELD_LINE] = "text",        [FIELD_PAIRS] = "map",
        [FIELD_LATER] = "",           [FIELD_REFUSED] = "",
    };

    return texts[kind];
}

static void write_kind(struct text *t, const struct field *row)
{
    text_str(t, kind_text(row->kind));
    if (row->listed_in != NULL) {
        text_str(t, "a name of ");
        text_str(t, row->listed_in);
        return;
    }
    for (uint32_t i = 0; row->kind == FIELD_CHOICE && field_choice(row, i) != NULL; i++) {
        text_str(t, i > 0 ? ", " : "");
        text_str(t, field_choice(row, i));
    }
    if (row->word != NULL) {
        text_str(t, ", ");
        text_str(t, row->word);
    }
}

static bool is_number(enum field_kind kind)
{
    return kind == FIELD_COUNT || kind == FIELD_SECONDS || kind == FIELD_SIZE32 ||
           kind == FIELD_SIZE || kind == FIELD_SPAN || kind == FIELD_SHARE ||
           kind == FIELD_PERCENT || kind == FIELD_RATE || kind == FIELD_EVENTS;
}

static void write_bounds(struct text *t, const struct field *row)
{
    if (!is_number(row->kind) || (row->min == 0 && row->max == 0))
        return;
    config_value_write(t, row, row->min);
    if (row->max == 0) {
        text_str(t, " or more");
        return;
    }
    text_str(t, " to ");
    config_value_write(t, row, row->max);
}

static void write_default(struct text *t, const struct field *row)
{
    if (row->required)
        text_str(t, "must be given");
    else if (row->preset_text != NULL)
        text_str(t, row->preset_text);
    else if (is_number(row->kind) || row->kind == FIELD_SWITCH || row->kind == FIELD_CHOICE)
        config_value_write(t, row, config_value_preset_number(row));
}

static void write_row(struct text *t, const struct field *row)
{
    text_str(t, "| `");
    text_str(t, row->name);
    text_str(t, "` | ");
    write_kind(t, row);
    text_str(t, " | ");
    write_bounds(t, row);
    text_str(t, " | ");
    write_default(t, row);
    text_str(t, " | ");
    for (const char *c = row->help; *c != '\0'; c++) {
        text_str(t, *c == '|' ? "\\" : "");
        text_char(t, *c);
    }
    text_str(t, " |\n");
}

static bool is_read(const struct field *row)
{
    return row->kind != FIELD_LATER && row->kind != FIELD_REFUSED;
}

static void write_unread(struct text *t, const struct fields *f, enum field_kind kind)
{
    const char *before =
        kind == FIELD_LATER ? "\nNot supported yet, and refused by name: " : "\nRefused by name: ";
    bool any = false;

    for (const struct field *row = f->rows; row->name != NULL; row++) {
        if (row->kind != kind)
            continue;
        text_str(t, before);
        text_str(t, "`");
        text_str(t, row->name);
        text_str(t, "`");
        before = ", ";
        any = true;
    }
    text_str(t, any ? ".\n" : "");
}

/* A table that several others point to is written once. */
static const struct fields *shown[64];

static bool is_new(const struct fields *f)
{
    size_t i = 0;

    while (shown[i] != NULL && shown[i] != f)
        i++;
    assert_true(i + 1 < sizeof(shown) / sizeof(shown[0]));
    if (shown[i] == f)
        return false;
    shown[i] = f;
    return true;
}

static void write_fields(struct text *t, const struct fields *f)
{
    text_str(t, "\n### ");
    text_str(t, f->path[0] == '\0' ? "The file" : f->path);
    text_str(t, "\n\n");
    if (f->help[0] != '\0') {
        text_str(t, f->help);
        text_str(t, "\n\n");
    }
    text_str(t, "| key | value | bounds | default | meaning |\n|---|---|---|---|---|\n");
    for (const struct field *row = f->rows; row->name != NULL; row++)
        if (is_read(row))
            write_row(t, row);
    write_unread(t, f, FIELD_LATER);
    write_unread(t, f, FIELD_REFUSED);
    for (const struct field *row = f->rows; row->name != NULL; row++)
        if (row->of != NULL && is_new(row->of))
            write_fields(t, row->of);
}

static size_t read_docs(void)
{
    FILE *f = fopen(DOCS, "r");
    size_t len;

    assert_non_null(f);
    len = fread(stored, 1, sizeof(stored) - 1, f);
    fclose(f);
    stored[len] = '\0';
    return len;
}

static void write_docs(const char *begin, const char *end)
{
    FILE *f = fopen(DOCS, "w");

    assert_non_null(f);
    fwrite(stored, 1, (size_t)(begin - stored), f);
    fputs(written, f);
    fputs(end, f);
    assert_int_equal(fclose(f), 0);
}

static void the_reference_is_what_the_tables_say(void **state)
{
    char *begin, *end;
    struct text t;
    (void)state;

    text_init(&t, written, sizeof(written));
    write_fields(&t, &config_file_fields);
    write_fields(&t, &config_rule_fields);
    text_str(&t, "\n");
    text_end(&t);
    assert_false(t.failed);

    read_docs();
    begin = strstr(stored, BEGIN);
    end = strstr(stored, END);
    assert_non_null(begin);
    assert_non_null(end);
    begin += strlen(BEGIN);
    if (getenv("FIREBREAK_WRITE_DOCS") != NULL) {
        write_docs(begin, end);
        return;
    }
    *end = '\0';
    assert_string_equal(begin, written);
}

/* What a table says of itself must hold. */
static void check_fields(const struct fields *f)
{
    uint8_t *object = calloc(1, f->size);

    assert_non_null(object);
    fields_preset(f, object);
    for (const struct field *row = f->rows; row->name != NULL; row++) {
        uint64_t preset;

        if (!is_read(row))
            continue;
        assert_true(row->at >= sizeof(struct field_head) && row->at < f->size);
        assert_non_null(row->help);
        if (row->of != NULL)
            check_fields(row->of);
        if (!is_number(row->kind))
            continue;
        assert_true(row->max == 0 || row->min <= row->max);
        preset = config_value_preset_number(row);
        if (row->preset_text == NULL && !row->required &&
            !(row->word != NULL && preset == row->word_value))
            assert_true(preset >= row->min && (row->max == 0 || preset <= row->max));
    }
    free(object);
}

static void every_default_is_within_its_bounds(void **state)
{
    (void)state;
    check_fields(&config_file_fields);
    check_fields(&config_rule_fields);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reference_is_what_the_tables_say),
        cmocka_unit_test(every_default_is_within_its_bounds),
    };

    return cmocka_run_group_tests_name("config_docs", tests, NULL, NULL);
}
