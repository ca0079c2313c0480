/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON writer: see json.h. */
#include "codec/json.h"

#include "base/date.h"

#include <math.h>
#include <stddef.h>

#define REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */

/* How a byte is written inside a string. */
enum string_byte { PLAIN, ESCAPED, CONTROL, HIGH };

static enum string_byte kind_of(uint8_t c)
{
    if (c >= 0x80)
        return HIGH;
    if (c == '"' || c == '\\' || c == '\n' || c == '\r' || c == '\t')
        return ESCAPED;
    return c < 0x20 || c == 0x7f ? CONTROL : PLAIN;
}

/* Nearly all bytes are; one comparison each, for a line of the access log is a thousand of them. */
static size_t ascii_length(struct bytes b)
{
    size_t n = 0;

    while (n < b.len && (uint8_t)(b.data[n] - 0x20) < 0x7f - 0x20 && b.data[n] != '"' &&
           b.data[n] != '\\')
        n++;
    return n;
}

/* Length of the run at the start of |b| that is written as it is. */
static size_t plain_length(struct bytes b)
{
    size_t n = ascii_length(b);

    while (n < b.len) {
        enum string_byte kind = kind_of(b.data[n]);
        size_t step = kind == HIGH ? bytes_utf8(bytes_skip(b, n)) : kind == PLAIN;

        if (step == 0)
            break;
        n += step;
    }
    return n;
}

static char escape_letter(uint8_t c)
{
    switch (c) {
    case '\n':
        return 'n';
    case '\r':
        return 'r';
    case '\t':
        return 't';
    default:
        return (char)c;
    }
}

/* One byte that cannot stand in a string as it is. */
static void put_special(struct text *t, uint8_t c)
{
    switch (kind_of(c)) {
    case HIGH:
        text_str(t, REPLACEMENT);
        break;
    case CONTROL:
        text_str(t, "\\u00");
        text_hex(t, c, 2);
        break;
    case ESCAPED:
    case PLAIN:
        text_char(t, '\\');
        text_char(t, escape_letter(c));
        break;
    }
}

static void put_string(struct text *t, struct bytes value)
{
    text_char(t, '"');
    while (value.len > 0) {
        size_t plain = plain_length(value);

        text_put(t, bytes_slice(value, 0, plain));
        value = bytes_skip(value, plain);
        if (value.len > 0) {
            put_special(t, value.data[0]);
            value = bytes_skip(value, 1);
        }
    }
    text_char(t, '"');
}

/* What stands before a value: a comma, its key. */
static void begin_value(struct json *j, const char *key)
{
    if (j->need_comma)
        text_char(j->text, ',');
    if (key != NULL) {
        put_string(j->text, bytes_of(key));
        text_char(j->text, ':');
    }
    j->need_comma = true;
}

void json_key(struct json *j, struct bytes key)
{
    if (j->need_comma)
        text_char(j->text, ',');
    put_string(j->text, key);
    text_char(j->text, ':');
    j->need_comma = false;
}

static void open_nest(struct json *j, const char *key, char bracket)
{
    begin_value(j, key);
    text_char(j->text, bracket);
    j->need_comma = false;
}

static void close_nest(struct json *j, char bracket)
{
    text_char(j->text, bracket);
    j->need_comma = true;
}

void json_init(struct json *j, struct text *text)
{
    *j = (struct json){.text = text};
}

void json_object(struct json *j, const char *key)
{
    open_nest(j, key, '{');
}

void json_object_end(struct json *j)
{
    close_nest(j, '}');
}

void json_array(struct json *j, const char *key)
{
    open_nest(j, key, '[');
}

void json_array_end(struct json *j)
{
    close_nest(j, ']');
}

void json_string(struct json *j, const char *key, struct bytes value)
{
    begin_value(j, key);
    put_string(j->text, value);
}

void json_text(struct json *j, const char *key, const char *value)
{
    if (value == NULL)
        json_null(j, key);
    else
        json_string(j, key, bytes_of(value));
}

void json_u64(struct json *j, const char *key, uint64_t value)
{
    begin_value(j, key);
    text_u64(j->text, value);
}

void json_i64(struct json *j, const char *key, int64_t value)
{
    begin_value(j, key);
    text_i64(j->text, value);
}

void json_double(struct json *j, const char *key, double value, unsigned decimals)
{
    if (!isfinite(value)) {
        json_null(j, key);
        return;
    }
    begin_value(j, key);
    text_double(j->text, value, decimals);
}

void json_bool(struct json *j, const char *key, bool value)
{
    begin_value(j, key);
    text_str(j->text, value ? "true" : "false");
}

void json_null(struct json *j, const char *key)
{
    begin_value(j, key);
    text_str(j->text, "null");
}

void json_time(struct json *j, const char *key, wall_ns at)
{
    char room[40];
    struct text t;

    text_init(&t, room, sizeof(room));
    date_utc(&t, at);
    json_string(j, key, text_bytes(&t));
}
