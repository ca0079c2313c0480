/* SPDX-License-Identifier: Apache-2.0 */
/* Collects and shows the errors of a configuration. */
#include "control/config_error.h"

#include <assert.h>
#include <string.h>

/* A line is shown up to this many characters; of a longer one, a window around the place. */
#define EXCERPT_MAX  100
#define EXCERPT_LEAD 60

/* What is quoted of a key or a value. */
#define QUOTE_MAX 60

void config_errors_init(struct config_errors *e)
{
    memset(e, 0, sizeof(*e));
    arena_init(&e->arena, 1024, SIZE_MAX);
}

void config_errors_release(struct config_errors *e)
{
    arena_release(&e->arena);
    config_errors_init(e);
}

void config_errors_open(struct config_errors *e, struct bytes file, struct bytes text)
{
    assert(e->source_count < CONFIG_SOURCES_MAX);
    e->source = e->source_count++;
    e->sources[e->source] =
        (struct config_source){.name = arena_copy(&e->arena, file), .text = text};
}

void config_errors_at(struct config_errors *e, uint32_t source)
{
    assert(source < CONFIG_SOURCES_MAX);
    e->source = source;
}

void config_errors_close(struct config_errors *e)
{
    for (uint32_t i = 0; i < e->source_count; i++)
        e->sources[i].text = BYTES_NONE;
}

bool config_errors_full(const struct config_errors *e)
{
    return e->count == CONFIG_ERRORS_MAX;
}

size_t config_line_break(struct bytes b)
{
    if (b.len == 0)
        return 0;
    if (b.data[0] == '\n')
        return 1;
    if (b.data[0] == '\r')
        return b.len > 1 && b.data[1] == '\n' ? 2 : 1;
    if (bytes_start_with(b, BYTES("\xc2\x85")))
        return 2;
    if (bytes_start_with(b, BYTES("\xe2\x80\xa8")) || bytes_start_with(b, BYTES("\xe2\x80\xa9")))
        return 3;
    return 0;
}

/*
 * Line |*line| of |source|; where there are fewer, the last one that is not empty, and its number.
 * Looks from |mark| on.
 */
static struct bytes find_line(struct bytes source, struct config_mark mark, uint32_t *line)
{
    struct bytes found = BYTES_NONE;
    uint32_t number = mark.line, of_found = mark.line;
    size_t start = mark.offset, i = mark.offset;

    while (i <= source.len) {
        size_t end = config_line_break(bytes_skip(source, i));

        if (end == 0 && i < source.len) {
            i++;
            continue;
        }
        if (i > start || number == mark.line) {
            found = bytes_slice(source, start, i - start);
            of_found = number;
        }
        if (number == *line && i + end < source.len)
            return bytes_slice(source, start, i - start);
        if (end == 0)
            break;
        i += end;
        start = i;
        number++;
    }
    *line = of_found;
    return found;
}

/* The same, from the line that was looked for last where it lies before: a large file with many
 * messages is not read anew for each. */
static struct bytes next_line(struct config_errors *e, uint32_t *line)
{
    struct bytes source = e->sources[e->source].text;
    const struct config_mark begin = {.source = e->source, .line = 1};
    struct config_mark mark = e->mark;
    uint32_t wanted = *line;
    struct bytes found;

    if (mark.source != e->source || mark.line == 0 || mark.line > wanted ||
        mark.offset > source.len)
        mark = begin;
    found = find_line(source, mark, line);
    if (found.len == 0 && mark.line > 1) { /* the last one that is not empty may lie before */
        *line = wanted;
        found = find_line(source, begin, line);
    }
    if (found.len > 0)
        e->mark = (struct config_mark){
            .source = e->source, .line = *line, .offset = (size_t)(found.data - source.data)};
    return found;
}

static bool continues(uint8_t c)
{
    return (c & 0xc0) == 0x80;
}

static uint32_t characters(struct bytes b)
{
    uint32_t n = 0;

    for (size_t i = 0; i < b.len; i++)
        n += !continues(b.data[i]);
    return n;
}

/* Offset of character |n| of |b|. */
static size_t offset_of(struct bytes b, uint32_t n)
{
    size_t i = 0;

    for (; i < b.len; i++)
        if (!continues(b.data[i]) && n-- == 0)
            break;
    return i;
}

/* Tabs as blanks, so that the caret stands right; what a terminal would obey, or no text, as '?'.
 */
static void make_printable(uint8_t *data, size_t len)
{
    for (size_t i = 0, step; i < len; i += step) {
        size_t character = bytes_utf8(bytes_from(data + i, len - i));

        step = character == 0 ? 1 : character;
        if (data[i] == '\t')
            data[i] = ' ';
        else if (character == 0 || data[i] < 0x20 || data[i] == 0x7f)
            data[i] = '?';
    }
}

static void set_excerpt(struct config_errors *e, struct config_error *error)
{
    uint32_t line = error->line;
    struct bytes text = next_line(e, &line);
    uint32_t length = characters(text);
    uint32_t from;

    if (line != error->line || error->column > length + 1)
        error->column = length + 1; /* past the end of the file: its very end */
    error->line = line;
    from = error->column > EXCERPT_MAX ? error->column - EXCERPT_LEAD : 0;
    text = bytes_skip(text, offset_of(text, from));
    text = arena_copy(&e->arena, bytes_slice(text, 0, offset_of(text, EXCERPT_MAX)));
    if (text.data != NULL)
        make_printable((uint8_t *)(uintptr_t)text.data, text.len);
    error->excerpt = text;
    error->caret = error->column - 1 - from;
}

struct text *config_error_begin(struct config_errors *e, uint32_t line, uint32_t column)
{
    text_init(&e->text, e->room, sizeof(e->room));
    e->line = line;
    e->column = column;
    e->warns = false;
    return &e->text;
}

struct text *config_warning_begin(struct config_errors *e, uint32_t line, uint32_t column)
{
    struct text *t = config_error_begin(e, line, column);

    e->warns = true;
    return t;
}

static bool is_before(const struct config_error *a, const struct config_error *b)
{
    if (a->source != b->source)
        return a->source < b->source;
    return a->line != b->line ? a->line < b->line : a->column < b->column;
}

static void insert(struct config_error *list, uint32_t count, const struct config_error *error)
{
    uint32_t at = count;

    for (; at > 0 && is_before(error, &list[at - 1]); at--)
        list[at] = list[at - 1];
    list[at] = *error;
}

static bool is_known(const struct config_error *list, uint32_t count,
                     const struct config_error *error, struct bytes message)
{
    for (uint32_t i = 0; i < count; i++)
        if (!is_before(error, &list[i]) && !is_before(&list[i], error) &&
            bytes_equal(list[i].message, message))
            return true;
    return false;
}

void config_error_end(struct config_errors *e)
{
    const struct config_error *list = e->warns ? e->warnings : e->at;
    struct config_error error = {.source = e->source, .line = e->line, .column = e->column};

    if (e->warns ? e->warning_count == CONFIG_WARNINGS_MAX : config_errors_full(e))
        return;
    if (is_known(list, e->warns ? e->warning_count : e->count, &error, text_bytes(&e->text)))
        return;
    error.message = arena_copy(&e->arena, text_bytes(&e->text));
    if (error.line > 0)
        set_excerpt(e, &error);
    if (e->warns)
        insert(e->warnings, e->warning_count++, &error);
    else
        insert(e->at, e->count++, &error);
}

void config_error_place(struct text *t, const struct config_errors *e, uint32_t source,
                        uint32_t line)
{
    text_str(t, "line ");
    text_u64(t, line);
    if (source == e->source)
        return;
    text_str(t, " of ");
    text_put(t, e->sources[source].name);
}

void config_error_add(struct config_errors *e, uint32_t line, uint32_t column, const char *message,
                      const char *detail)
{
    struct text *t = config_error_begin(e, line, column);

    text_str(t, message);
    if (detail != NULL)
        text_str(t, detail);
    config_error_end(e);
}

/* C1 is told by its first byte, 0xc2; what is left of it prints as nothing. */
static bool control_at(struct bytes b, size_t i)
{
    uint8_t c = b.data[i];

    return c < 0x20 || c == 0x7f ||
           (c == 0xc2 && i + 1 < b.len && b.data[i + 1] >= 0x80 && b.data[i + 1] < 0xa0);
}

bool config_has_control(struct bytes b)
{
    for (size_t i = 0; i < b.len; i++)
        if (control_at(b, i))
            return true;
    return false;
}

void config_quote(struct text *t, struct bytes b)
{
    size_t end = offset_of(b, QUOTE_MAX);

    text_char(t, '\'');
    for (size_t i = 0; i < end; i++)
        text_char(t, control_at(b, i) ? '?' : (char)b.data[i]);
    text_str(t, end < b.len ? "...'" : "'");
}

static void write_message(struct text *t, const struct config_errors *e,
                          const struct config_error *error, const char *before)
{
    text_put(t, e->sources[error->source].name);
    if (error->line > 0) {
        text_char(t, ':');
        text_u64(t, error->line);
        text_char(t, ':');
        text_u64(t, error->column);
    }
    text_str(t, ": ");
    text_str(t, before);
    text_put(t, error->message);
    text_char(t, '\n');
    if (error->line == 0)
        return;
    text_str(t, "    ");
    text_put(t, error->excerpt);
    text_str(t, "\n    ");
    for (uint32_t i = 0; i < error->caret; i++)
        text_char(t, ' ');
    text_str(t, "^\n");
}

void config_errors_write(struct text *t, const struct config_errors *e)
{
    for (uint32_t i = 0; i < e->count; i++)
        write_message(t, e, &e->at[i], "");
    if (!config_errors_full(e))
        return;
    text_put(t, e->sources[e->at[e->count - 1].source].name);
    text_str(t, ": only the first errors are shown; there may be more\n");
}

void config_warnings_write(struct text *t, const struct config_errors *e)
{
    for (uint32_t i = 0; i < e->warning_count; i++)
        write_message(t, e, &e->warnings[i], "warning: ");
}
