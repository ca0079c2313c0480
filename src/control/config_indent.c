/* SPDX-License-Identifier: Apache-2.0 */
/* What belongs in what is known from the tables. */
#include "control/config_indent.h"

#include "control/config_schema.h"

static bool has_row(const struct fields *f, struct bytes name)
{
    for (const struct field *row = f->rows; row->name != NULL; row++)
        if (bytes_equal(bytes_of(row->name), name))
            return true;
    return false;
}

/* Whether some table below |f| has a map |outer| in which there may be |inner|. */
static bool in_tables(const struct fields *f, struct bytes outer, struct bytes inner)
{
    for (const struct field *row = f->rows; row->name != NULL; row++) {
        if (row->of == NULL)
            continue;
        if (row->kind == FIELD_OBJECT && bytes_equal(bytes_of(row->name), outer) &&
            has_row(row->of, inner))
            return true;
        if (in_tables(row->of, outer, inner))
            return true;
    }
    return false;
}

static void say(const struct config_node *outer, const struct config_node *inner,
                struct config_errors *errors)
{
    struct text *t = config_error_begin(errors, inner->key->line, inner->key->column);

    text_str(t, "the indentation is lost: ");
    config_quote(t, inner->key->text);
    text_str(t, " belongs in ");
    config_quote(t, outer->key->text);
    text_str(t, ", which has nothing in it in line ");
    text_u64(t, outer->key->line);
    text_str(t, "; write what belongs in a key two blanks further to the right than the key, all "
                "the way down");
    config_error_end(errors);
}

/* Where |map| has an empty key with its content beside it, that content. */
static bool lost_in(const struct config_node *map, struct config_errors *errors)
{
    for (const struct config_node *n = map->first; n != NULL; n = n->next) {
        const struct config_node *inner = n->next;

        if (inner == NULL || !config_node_empty(n) || n->key->column != inner->key->column)
            continue;
        if (!in_tables(&config_rule_fields, n->key->text, inner->key->text) &&
            !in_tables(&config_file_fields, n->key->text, inner->key->text))
            continue;
        say(n, inner, errors);
        return true;
    }
    return false;
}

bool config_indentation_lost(const struct config_node *document, struct config_errors *errors)
{
    if (document->kind == CONFIG_MAP && lost_in(document, errors))
        return true;
    if (document->kind == CONFIG_TEXT)
        return false;
    for (const struct config_node *n = document->first; n != NULL; n = n->next)
        if (config_indentation_lost(n, errors))
            return true;
    return false;
}
