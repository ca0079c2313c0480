/* SPDX-License-Identifier: Apache-2.0 */
/* libyaml's events, bounded, as a tree. */
#include "control/config_tree.h"

#include <yaml.h>

struct builder {
    struct arena *arena;
    struct config_errors *errors;
    struct bytes source;
    yaml_parser_t parser;
    uint32_t events;
    uint32_t depth;
    struct config_node *open[CONFIG_DEPTH_MAX]; /* maps and lists not yet ended */
    struct config_node *last[CONFIG_DEPTH_MAX]; /* child of each */
    struct config_node *key[CONFIG_DEPTH_MAX];  /* whose value comes next */
    struct config_node *documents;
    struct config_node *last_document;
};

/* Bytes of the valid UTF-8 character at |b|, 0 where it is none or one that YAML does not allow. */
static size_t character_at(struct bytes b)
{
    size_t len = bytes_utf8(b);
    uint8_t c = b.data[0];

    if (len == 1 && (c == 0x7f || (c < 0x20 && c != '\t' && c != '\n' && c != '\r')))
        return 0;
    if (len == 2 && c == 0xc2 && b.data[1] < 0xa0 && b.data[1] != 0x85) /* C1 but for NEL */
        return 0;
    if (len == 3 && c == 0xef && b.data[1] == 0xbf && b.data[2] >= 0xbe) /* U+FFFE, U+FFFF */
        return 0;
    return len;
}

static bool no_text(struct config_errors *errors, uint8_t c, uint32_t line, uint32_t column)
{
    struct text *t = config_error_begin(errors, line, column);

    text_str(t, c < 0x80 ? "a control character (0x" : "not valid UTF-8 (0x");
    text_hex(t, c, 2);
    text_str(t, "): a configuration is plain text");
    config_error_end(errors);
    return false;
}

/*
 * What libyaml would not do well: of bad characters it tells an offset only; and it compares each
 * %TAG with all before it, which takes minutes where there are many.
 */
static bool is_text(struct bytes source, struct config_errors *errors)
{
    uint32_t line = 1, column = 1;
    size_t i = 0;

    while (i < source.len) {
        struct bytes rest = bytes_skip(source, i);
        size_t end = config_line_break(rest);
        size_t len = end > 0 ? end : character_at(rest);

        if (len == 0)
            return no_text(errors, rest.data[0], line, column);
        if (column == 1 && bytes_start_with(rest, BYTES("%TAG"))) {
            config_error_add(errors, line, column, "%TAG is not supported: leave it out", NULL);
            return false;
        }
        column = end > 0 ? 1 : column + 1;
        line += end > 0;
        i += len;
    }
    return true;
}

static uint32_t place(size_t mark)
{
    return mark < UINT32_MAX ? (uint32_t)mark + 1 : UINT32_MAX;
}

static bool refuse(struct builder *b, const yaml_event_t *event, const char *why)
{
    config_error_add(b->errors, place(event->start_mark.line), place(event->start_mark.column), why,
                     NULL);
    return false;
}

static bool out_of_memory(struct builder *b)
{
    config_error_add(b->errors, 0, 0, "out of memory", NULL);
    return false;
}

static struct config_node *node_create(struct builder *b, const yaml_event_t *event,
                                       enum config_kind kind)
{
    struct config_node *n = arena_take(b->arena, sizeof(*n));

    if (n == NULL)
        return NULL;
    n->kind = kind;
    n->source = b->errors->source;
    n->line = place(event->start_mark.line);
    n->column = place(event->start_mark.column);
    return n;
}

static void append_document(struct builder *b, struct config_node *n)
{
    if (b->last_document == NULL)
        b->documents = n;
    else
        b->last_document->next = n;
    b->last_document = n;
}

/* Puts |n| where it belongs: as a document, an element, a key, or the value of a key. */
static bool attach(struct builder *b, const yaml_event_t *event, struct config_node *n)
{
    uint32_t top = b->depth - 1;

    if (n == NULL)
        return out_of_memory(b);
    if (b->depth == 0) {
        append_document(b, n);
        return true;
    }
    if (b->open[top]->kind == CONFIG_MAP && b->key[top] == NULL) {
        if (n->kind != CONFIG_TEXT)
            return refuse(b, event, "a key must be a word");
        b->key[top] = n;
        return true;
    }
    n->key = b->key[top];
    b->key[top] = NULL;
    if (b->last[top] == NULL)
        b->open[top]->first = n;
    else
        b->last[top]->next = n;
    b->last[top] = n;
    b->open[top]->count++;
    return true;
}

static bool on_text(struct builder *b, const yaml_event_t *event)
{
    struct config_node *n = node_create(b, event, CONFIG_TEXT);
    size_t len = event->data.scalar.length;

    if (event->data.scalar.tag != NULL)
        return refuse(b, event, "tags (!name) are not supported: leave it out");
    if (n != NULL) {
        n->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
        n->text = arena_copy(b->arena, bytes_from(event->data.scalar.value, len));
        if (len > 0 && n->text.data == NULL)
            n = NULL;
    }
    return attach(b, event, n);
}

static bool on_begin(struct builder *b, const yaml_event_t *event, enum config_kind kind)
{
    const yaml_char_t *tag =
        kind == CONFIG_MAP ? event->data.mapping_start.tag : event->data.sequence_start.tag;
    struct config_node *n = node_create(b, event, kind);

    if (tag != NULL)
        return refuse(b, event, "tags (!name) are not supported: leave it out");
    if (!attach(b, event, n))
        return false;
    if (b->depth == CONFIG_DEPTH_MAX)
        return refuse(b, event, "nested too deeply");
    b->open[b->depth] = n;
    b->last[b->depth] = NULL;
    b->key[b->depth] = NULL;
    b->depth++;
    return true;
}

static bool on_event(struct builder *b, const yaml_event_t *event)
{
    if (++b->events > CONFIG_EVENTS_MAX)
        return refuse(b, event, "too many keys and values: more than 1,000,000 parts");
    switch (event->type) {
    case YAML_ALIAS_EVENT:
        return refuse(b, event, "aliases (*name) are not supported: write the value out");
    case YAML_SCALAR_EVENT:
        return on_text(b, event);
    case YAML_SEQUENCE_START_EVENT:
        return on_begin(b, event, CONFIG_LIST);
    case YAML_MAPPING_START_EVENT:
        return on_begin(b, event, CONFIG_MAP);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        b->depth--;
        return true;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_START_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        return true;
    }
    return true;
}

/* The commonest mistake of all; libyaml says only "a character that cannot start any token". */
static bool is_tab(const struct builder *b)
{
    size_t at = b->parser.problem_mark.index; /* in characters */
    struct bytes source = b->source;
    size_t i = 0;

    for (; i < source.len && at > 0; at--)
        i += character_at(bytes_skip(source, i));
    return i < source.len && source.data[i] == '\t';
}

/* The line of the problem. */
static struct bytes problem_line(const struct builder *b)
{
    struct bytes rest = b->source;
    size_t line = b->parser.problem_mark.line;

    while (line > 0 && rest.len > 0) {
        size_t end = config_line_break(rest);

        line -= end > 0;
        rest = bytes_skip(rest, end > 0 ? end : 1);
    }
    for (size_t i = 0; i < rest.len; i++)
        if (config_line_break(bytes_skip(rest, i)) > 0)
            return bytes_slice(rest, 0, i);
    return rest;
}

/* "kind: DestinationRule metadata: name: x": as copied from a page that lost its lines. */
static bool is_one_line(const struct builder *b)
{
    struct bytes line = problem_line(b);
    unsigned keys = 0;

    if (b->parser.problem == NULL ||
        !bytes_equal(bytes_of(b->parser.problem),
                     BYTES("mapping values are not allowed in this context")))
        return false;
    for (size_t i = 1; i + 1 < line.len && line.data[i] != '#'; i++)
        keys += line.data[i] == ':' && line.data[i + 1] == ' ' && line.data[i - 1] != ' ';
    return keys >= 2;
}

static void explain(struct builder *b)
{
    const yaml_parser_t *p = &b->parser;
    struct text *t =
        config_error_begin(b->errors, place(p->problem_mark.line), place(p->problem_mark.column));

    if (p->error == YAML_MEMORY_ERROR) {
        text_str(t, "out of memory");
    } else if (is_tab(b)) {
        text_str(t, "a tab: YAML is indented with blanks");
    } else if (is_one_line(b)) {
        text_str(t, "several keys in one line: line breaks and indentation are lost; write each "
                    "key in a line of its own, two blanks further right than the key it is in");
    } else {
        text_str(t, "not valid YAML: ");
        text_str(t, p->problem != NULL ? p->problem : "cannot be read");
        if (p->context != NULL) {
            text_str(t, " (");
            text_str(t, p->context);
            text_str(t, " that began at line ");
            text_u64(t, place(p->context_mark.line));
            text_char(t, ')');
        }
    }
    config_error_end(b->errors);
}

static bool run(struct builder *b)
{
    bool more = true;
    bool good = true;

    while (good && more) {
        yaml_event_t event;

        if (!yaml_parser_parse(&b->parser, &event)) {
            explain(b);
            return false;
        }
        good = on_event(b, &event);
        more = event.type != YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
    return good;
}

bool config_tree_parse(struct arena *arena, struct config_errors *errors,
                       struct config_node **documents)
{
    struct bytes source = errors->sources[errors->source].text;
    struct builder b = {.arena = arena, .errors = errors, .source = source};
    bool good;

    if (!is_text(source, errors))
        return false;
    if (!yaml_parser_initialize(&b.parser))
        return out_of_memory(&b);
    yaml_parser_set_encoding(&b.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&b.parser, source.len > 0 ? source.data : (const uint8_t *)"",
                                 source.len);
    good = run(&b);
    yaml_parser_delete(&b.parser);
    if (good)
        *documents = b.documents;
    return good;
}

const struct config_node *config_node_find(const struct config_node *map, const char *key)
{
    if (map == NULL || map->kind != CONFIG_MAP)
        return NULL;
    for (const struct config_node *n = map->first; n != NULL; n = n->next)
        if (bytes_equal(n->key->text, bytes_of(key)))
            return n;
    return NULL;
}

bool config_node_empty(const struct config_node *n)
{
    return n->kind == CONFIG_TEXT && n->plain &&
           (n->text.len == 0 || bytes_equal(n->text, BYTES("null")) ||
            bytes_equal(n->text, BYTES("~")));
}
