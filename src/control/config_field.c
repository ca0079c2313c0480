/* SPDX-License-Identifier: Apache-2.0 */
/* Reads trees by tables: maps into structs, lists into arrays. Values: config_value.c. */
#include "control/config_field.h"

#include <assert.h>
#include <string.h>

#include "control/config_value.h"

/* Most rows of a table. */
#define ROWS_MAX 64

static void *at(const struct field *row, void *object)
{
    return (uint8_t *)object + row->at;
}

void fields_preset(const struct fields *f, void *out)
{
    for (const struct field *row = f->rows; row->name != NULL; row++) {
        if (row->kind == FIELD_OBJECT)
            fields_preset(row->of, at(row, out));
        else
            config_value_preset(row, at(row, out));
    }
}

static const struct field *find_row(const struct fields *f, struct bytes name)
{
    for (const struct field *row = f->rows; row->name != NULL; row++)
        if (bytes_equal(bytes_of(row->name), name))
            return row;
    return NULL;
}

static bool is_read(const struct field *row)
{
    return row->kind != FIELD_LATER && row->kind != FIELD_REFUSED;
}

/* Puts where below |f| the key |name| belongs after |*t|; false: nowhere. */
static bool write_home(struct text *t, const struct fields *f, struct bytes name)
{
    const struct field *found = find_row(f, name);
    size_t before = t->len;

    if (found != NULL && is_read(found))
        return true;
    for (const struct field *row = f->rows; row->name != NULL; row++) {
        if (row->of == NULL)
            continue;
        text_str(t, before > 0 ? "." : "");
        text_str(t, row->name);
        text_str(t, row->kind == FIELD_OBJECTS ? "[]" : "");
        if (write_home(t, row->of, name))
            return true;
        t->len = before;
    }
    return false;
}

static void list_rows(struct text *t, const struct fields *f)
{
    const char *before = "; it has ";

    for (const struct field *row = f->rows; row->name != NULL; row++) {
        if (!is_read(row))
            continue;
        text_str(t, before);
        text_str(t, row->name);
        before = ", ";
    }
}

static void unknown_key(struct field_reader *r, const struct fields *f,
                        const struct config_node *key)
{
    struct text *t = config_error_begin(r->errors, key->line, key->column);
    struct config_guess guess;
    char room[200];
    struct text home;

    text_init(&home, room, sizeof(room));

    text_str(t, "unknown key ");
    config_quote(t, key->text);
    text_str(t, " in ");
    text_str(t, f->name);
    config_guess_init(&guess, key->text);
    for (const struct field *row = f->rows; row->name != NULL; row++)
        if (is_read(row))
            config_guess_word(&guess, bytes_of(row->name));
    if (guess.best.data != NULL) {
        config_guess_write(&guess, t);
    } else if (write_home(&home, r->root, key->text)) {
        text_str(t, "; it belongs ");
        text_str(t, home.len > 0 ? "in " : "at the top of the file");
        text_put(t, text_bytes(&home));
    } else {
        list_rows(t, f);
    }
    config_error_end(r->errors);
}

static void comes_later(struct field_reader *r, const struct field *row,
                        const struct config_node *key)
{
    struct text *t = config_error_begin(r->errors, key->line, key->column);

    config_quote(t, key->text);
    text_str(t, " is not supported yet: it comes with ");
    text_str(t, row->help);
    config_error_end(r->errors);
}

static void refused(struct field_reader *r, const struct field *row, const struct config_node *key)
{
    struct text *t = config_error_begin(r->errors, key->line, key->column);

    config_quote(t, key->text);
    text_str(t, " is not supported: ");
    text_str(t, row->help);
    config_error_end(r->errors);
}

static void warn(struct field_reader *r, const struct field *row, const struct config_node *key)
{
    struct text *t = config_warning_begin(r->errors, key->line, key->column);

    config_quote(t, key->text);
    text_str(t, ": ");
    text_str(t, row->warning);
    config_error_end(r->errors);
}

static void given_twice(struct field_reader *r, const struct config_node *key,
                        const struct config_node *first)
{
    struct text *t = config_error_begin(r->errors, key->line, key->column);

    config_quote(t, key->text);
    text_str(t, " is given twice: first in line ");
    text_u64(t, first->key->line);
    config_error_end(r->errors);
}

static void wrong_shape(struct field_reader *r, const char *name, const char *wanted,
                        const struct config_node *node)
{
    struct text *t = config_error_begin(r->errors, node->line, node->column);

    config_quote(t, bytes_of(name));
    text_str(t, config_node_empty(node) ? " has no value: " : " must be ");
    text_str(t, wanted);
    config_error_end(r->errors);
}

static bool allocate_items(struct field_reader *r, const struct config_node *node, size_t size,
                           struct field_items *items)
{
    if (node->count > 0) {
        items->at = arena_take(r->arena, node->count * size);
        if (items->at == NULL) {
            r->no_memory = true;
            return false;
        }
    }
    items->node = node;
    items->count = node->count;
    return true;
}

static void read_texts(struct field_reader *r, const struct field *row,
                       const struct config_node *node, struct field_items *items)
{
    struct field_text *text;

    if (node->kind != CONFIG_LIST) {
        wrong_shape(r, row->name, "a list, such as [a, b]", node);
        return;
    }
    if (!allocate_items(r, node, sizeof(*text), items))
        return;
    text = items->at;
    for (const struct config_node *n = node->first; n != NULL; n = n->next, text++) {
        text->head.node = n;
        text->text = n->text;
        if (n->kind != CONFIG_TEXT || n->text.len == 0 || config_has_control(n->text))
            wrong_shape(r, row->name, "a list of words", n);
    }
}

/* Without the line feed that may end it. */
static bool read_line(struct field_reader *r, const char *name, const struct config_node *node,
                      struct field_text *line)
{
    struct bytes text = node->text;

    if (text.len > 0 && text.data[text.len - 1] == '\n')
        text.len--;
    if (node->kind != CONFIG_TEXT || text.len == 0 || config_has_control(text)) {
        wrong_shape(r, name, "one line of text", node);
        return false;
    }
    line->head.node = node;
    line->text = text;
    return true;
}

static void read_pairs(struct field_reader *r, const struct field *row,
                       const struct config_node *node, struct field_items *items)
{
    struct field_text *pair;

    if (node->kind != CONFIG_MAP) {
        wrong_shape(r, row->name, "a map of names to texts", node);
        return;
    }
    if (!allocate_items(r, node, sizeof(*pair), items))
        return;
    pair = items->at;
    for (const struct config_node *n = node->first; n != NULL; n = n->next, pair++) {
        pair->key = n->key->text;
        read_line(r, row->name, n, pair);
    }
}

static void read_objects(struct field_reader *r, const struct field *row,
                         const struct config_node *node, struct field_items *items)
{
    uint8_t *object;

    if (node->kind != CONFIG_LIST) {
        wrong_shape(r, row->name, "a list, each entry begun with '- '", node);
        return;
    }
    if (!allocate_items(r, node, row->of->size, items))
        return;
    object = items->at;
    for (const struct config_node *n = node->first; n != NULL; n = n->next) {
        fields_preset(row->of, object);
        fields_read(r, row->of, n, object);
        object += row->of->size;
    }
}

static void read_label(struct field_reader *r, const struct field *row,
                       const struct config_node *map, const struct config_node *n)
{
    for (const struct config_node *before = map->first; before != n; before = before->next)
        if (bytes_equal(before->key->text, n->key->text)) {
            given_twice(r, n->key, before);
            return;
        }
    if (n->key->text.len == 0 || config_has_control(n->key->text))
        wrong_shape(r, row->name, "names with values, such as {version: v1}", n->key);
    else if (n->kind != CONFIG_TEXT || config_node_empty(n) || config_has_control(n->text))
        wrong_shape(r, row->name, "names with values, such as {version: v1}", n);
}

static void read_labels(struct field_reader *r, const struct field *row,
                        const struct config_node *node, struct field_items *items)
{
    struct field_label *label;

    if (node->kind != CONFIG_MAP) {
        wrong_shape(r, row->name, "names with values, such as {version: v1}", node);
        return;
    }
    if (node->count > FIELD_LABELS_MAX) {
        wrong_shape(r, row->name, "at most 64 labels", node);
        return;
    }
    if (!allocate_items(r, node, sizeof(*label), items))
        return;
    label = items->at;
    for (const struct config_node *n = node->first; n != NULL; n = n->next, label++) {
        *label = (struct field_label){.head = {n}, .name = n->key->text, .value = n->text};
        read_label(r, row, node, n);
    }
}

static void read_row(struct field_reader *r, const struct field *row,
                     const struct config_node *node, void *out)
{
    if (row->warning != NULL)
        warn(r, row, node->key);
    switch (row->kind) {
    case FIELD_LATER:
        comes_later(r, row, node->key);
        return;
    case FIELD_REFUSED:
        refused(r, row, node->key);
        return;
    case FIELD_LABELS:
        read_labels(r, row, node, out);
        return;
    case FIELD_OBJECT:
        fields_read(r, row->of, node, out);
        return;
    case FIELD_OBJECTS:
        read_objects(r, row, node, out);
        return;
    case FIELD_TEXTS:
        read_texts(r, row, node, out);
        return;
    case FIELD_LINE:
        read_line(r, row->name, node, out);
        return;
    case FIELD_PAIRS:
        read_pairs(r, row, node, out);
        return;
    case FIELD_SWITCH:
    case FIELD_COUNT:
    case FIELD_SECONDS:
    case FIELD_SIZE32:
    case FIELD_SIZE:
    case FIELD_SPAN:
    case FIELD_SHARE:
    case FIELD_PERCENT:
    case FIELD_RATE:
    case FIELD_EVENTS:
    case FIELD_TEXT:
    case FIELD_NAME:
    case FIELD_ADDRESS:
    case FIELD_CHOICE:
        config_value_read(r, row, node, out);
        return;
    }
}

static void missing(struct field_reader *r, const struct fields *f, const struct field *row,
                    const struct config_node *node)
{
    struct text *t = config_error_begin(r->errors, node->line, node->column);

    text_str(t, f->name);
    text_str(t, " has no ");
    config_quote(t, bytes_of(row->name));
    config_error_end(r->errors);
}

/* False: what follows is not worth reading. */
static bool read_key(struct field_reader *r, const struct fields *f, const struct config_node *n,
                     const struct config_node **seen, void *out)
{
    const struct field *row = find_row(f, n->key->text);
    size_t index = row != NULL ? (size_t)(row - f->rows) : 0;

    assert(index < ROWS_MAX);
    if (config_errors_full(r->errors) || r->no_memory)
        return false;
    if (row == NULL) {
        if (!f->open)
            unknown_key(r, f, n->key);
    } else if (seen[index] != NULL) {
        given_twice(r, n->key, seen[index]);
    } else {
        seen[index] = n;
        read_row(r, row, n, at(row, out));
    }
    return true;
}

void fields_read(struct field_reader *r, const struct fields *f, const struct config_node *node,
                 void *out)
{
    const struct config_node *seen[ROWS_MAX] = {NULL};

    if (node->kind != CONFIG_MAP) {
        wrong_shape(r, f->name, "a map of keys and values", node);
        return;
    }
    if (f->not_empty != NULL && node->count == 0) {
        config_error_add(r->errors, node->line, node->column, f->not_empty, NULL);
        return;
    }
    ((struct field_head *)out)->node = node;
    for (const struct config_node *n = node->first; n != NULL; n = n->next)
        if (!read_key(r, f, n, seen, out))
            return;
    for (const struct field *row = f->rows; row->name != NULL; row++)
        if (row->required && seen[row - f->rows] == NULL)
            missing(r, f, row, node);
}
