/* SPDX-License-Identifier: Apache-2.0 */
/* Values by their rows. */
#include "control/config_value.h"

#include <assert.h>
#include <string.h>

#include "base/address.h"
#include "base/units.h"

/* What a metric's name can carry: Envoy's and Istio's cluster names do ("outbound|80||a.b"). */
#define NAME_MAX_LENGTH 128

/* The kernel's sun_path, less its NUL. */
#define UNIX_PATH_MAX 107

static void store(const struct field *row, void *out, uint64_t value)
{
    uint32_t narrow = (uint32_t)value;
    bool yes = value != 0;

    switch (row->kind) {
    case FIELD_SWITCH:
        memcpy(out, &yes, sizeof(yes));
        return;
    case FIELD_COUNT:
    case FIELD_SECONDS:
    case FIELD_SIZE32:
    case FIELD_CHOICE:
    case FIELD_SHARE:
    case FIELD_PERCENT:
    case FIELD_RATE:
    case FIELD_EVENTS:
        memcpy(out, &narrow, sizeof(narrow));
        return;
    case FIELD_SIZE:
    case FIELD_SPAN:
        memcpy(out, &value, sizeof(value));
        return;
    case FIELD_TEXT:
    case FIELD_NAME:
    case FIELD_ADDRESS:
    case FIELD_TEXTS:
    case FIELD_LABELS:
    case FIELD_LINE:
    case FIELD_PAIRS:
    case FIELD_OBJECT:
    case FIELD_OBJECTS:
    case FIELD_LATER:
    case FIELD_REFUSED:
        return;
    }
}

static bool is_narrow(enum field_kind kind)
{
    return kind == FIELD_COUNT || kind == FIELD_SECONDS || kind == FIELD_SIZE32 ||
           kind == FIELD_CHOICE || kind == FIELD_SHARE || kind == FIELD_PERCENT ||
           kind == FIELD_RATE || kind == FIELD_EVENTS;
}

uint64_t config_value_preset_number(const struct field *row)
{
    uint32_t narrow;
    uint64_t wide;
    bool yes;

    if (row->preset_of == NULL)
        return row->preset;
    if (row->kind == FIELD_SWITCH) {
        memcpy(&yes, row->preset_of, sizeof(yes));
        return yes;
    }
    if (is_narrow(row->kind)) {
        memcpy(&narrow, row->preset_of, sizeof(narrow));
        return narrow;
    }
    memcpy(&wide, row->preset_of, sizeof(wide));
    return wide;
}

void config_value_preset(const struct field *row, void *out)
{
    const char *why;

    if (row->kind == FIELD_TEXT || row->kind == FIELD_NAME)
        *(struct bytes *)out = bytes_of(row->preset_text);
    else if (row->kind == FIELD_ADDRESS && row->preset_text != NULL)
        config_address_parse(NULL, bytes_of(row->preset_text), out, &why);
    else
        store(row, out, config_value_preset_number(row));
}

const char *field_choice(const struct field *row, uint32_t i)
{
    return row->choice != NULL ? row->choice(i) : row->choices[i];
}

#define DAYS 7 /* a week */

static void write_events(struct text *t, uint64_t a_week)
{
    bool daily = a_week > 0 && a_week % DAYS == 0;

    text_u64(t, daily ? a_week / DAYS : a_week);
    text_str(t, daily ? " per day" : " per week");
}

/* Thousandths as percent: 200 is 20, 125 is 12.5. */
static void write_percent(struct text *t, uint64_t thousandths)
{
    text_u64(t, thousandths / 10);
    if (thousandths % 10 == 0)
        return;
    text_char(t, '.');
    text_u64(t, thousandths % 10);
}

void config_value_write(struct text *t, const struct field *row, uint64_t value)
{
    static const char *const units[] = {"", "KiB", "MiB", "GiB"};
    unsigned unit = 0;

    if (row->word != NULL && value == row->word_value) {
        text_str(t, row->word);
    } else if (row->kind == FIELD_SWITCH) {
        text_str(t, value != 0 ? "on" : "off");
    } else if (row->kind == FIELD_SPAN) {
        text_duration(t, value);
    } else if (row->kind == FIELD_SECONDS) {
        text_duration(t, value * NS_PER_S);
    } else if (row->kind == FIELD_SHARE || row->kind == FIELD_PERCENT) {
        write_percent(t, value);
        text_str(t, row->kind == FIELD_SHARE ? "%" : "");
    } else if (row->kind == FIELD_RATE) {
        text_u64(t, value);
        text_str(t, "/s");
    } else if (row->kind == FIELD_EVENTS) {
        write_events(t, value);
    } else if (row->kind == FIELD_CHOICE) {
        text_str(t, field_choice(row, (uint32_t)value));
    } else if (row->kind == FIELD_SIZE || row->kind == FIELD_SIZE32) {
        for (; unit < 3 && value != 0 && value % 1024 == 0; unit++)
            value /= 1024;
        text_u64(t, value);
        text_str(t, units[unit]);
    } else {
        text_u64(t, value);
    }
}

/* What a value of that kind looks like. */
static const char *wanted(enum field_kind kind)
{
    switch (kind) {
    case FIELD_SWITCH:
        return "on or off";
    case FIELD_COUNT:
        return "a whole number";
    case FIELD_SECONDS:
        return "whole seconds: a number with a unit, such as 15s or 1m";
    case FIELD_SPAN:
        return "a number with a unit: 500ms, 15s, 1m";
    case FIELD_SIZE:
    case FIELD_SIZE32:
        return "a number of bytes: 65536, 64KiB, 1MiB";
    case FIELD_SHARE:
        return "a share with its sign, such as 20% or 12.5%";
    case FIELD_PERCENT:
        return "a number of percent without a sign, such as 20 or 12.5";
    case FIELD_RATE:
        return "a number a second, such as 3/s";
    case FIELD_EVENTS:
        return "so many per day or per week, such as 1 per week";
    case FIELD_TEXT:
    case FIELD_NAME:
        return "text";
    case FIELD_ADDRESS:
        return "an address with a port, such as 127.0.0.1:8080";
    case FIELD_CHOICE:
        return "one of";
    case FIELD_TEXTS:
    case FIELD_LABELS:
    case FIELD_LINE:
    case FIELD_PAIRS:
    case FIELD_OBJECT:
    case FIELD_OBJECTS:
    case FIELD_LATER:
    case FIELD_REFUSED:
        break;
    }
    return "";
}

/* "'timeout' must be a number with a unit: 500ms, 15s, 1m; not 'soon'", up to the last part. */
static struct text *begin_wrong(struct field_reader *r, const struct field *row,
                                const struct config_node *node)
{
    struct text *t = config_error_begin(r->errors, node->line, node->column);

    config_quote(t, bytes_of(row->name));
    return t;
}

static bool is_negative(struct bytes b)
{
    uint64_t ignored;

    return bytes_start_with(b, BYTES("-")) && bytes_parse_u64(bytes_skip(b, 1), &ignored);
}

/* "http1MaxPendingRequests" as Istio says it: "http1 max pending requests". */
static void put_words(struct text *t, const char *name)
{
    for (; *name != '\0'; name++) {
        if (byte_lower((uint8_t)*name) != (uint8_t)*name)
            text_char(t, ' ');
        text_char(t, (char)byte_lower((uint8_t)*name));
    }
}

/* What Istio's own validation would say: its words can be searched for. */
static void say_as_istio(struct text *t, const struct field *row, struct bytes value)
{
    if (row->percent) {
        text_str(t, ": percentage ");
        text_put(t, bytes_slice(value, 0, 20));
        text_str(t, " is not in range 0..100");
    } else if (row->kind == FIELD_COUNT) {
        text_str(t, ": ");
        put_words(t, row->name);
        text_str(t, " must be non-negative");
    } else {
        text_str(t, ": duration must be greater than 1ms");
    }
}

static void or_the_word(struct text *t, const struct field *row)
{
    if (row->word == NULL)
        return;
    text_str(t, ", or ");
    text_str(t, row->word);
}

static void wrong_type(struct field_reader *r, const struct field *row,
                       const struct config_node *node, const char *detail)
{
    struct text *t = begin_wrong(r, row, node);

    text_str(t, config_node_empty(node) ? " has no value: write " : " must be ");
    text_str(t, wanted(row->kind));
    or_the_word(t, row);
    if (node->kind == CONFIG_TEXT && !config_node_empty(node)) {
        text_str(t, "; not ");
        config_quote(t, node->text);
    }
    if (detail != NULL) {
        text_str(t, ": ");
        text_str(t, detail);
    } else if (row->kind == FIELD_COUNT && is_negative(node->text)) {
        say_as_istio(t, row, node->text);
    }
    config_error_end(r->errors);
}

static void out_of_range(struct field_reader *r, const struct field *row,
                         const struct config_node *node, uint64_t value)
{
    struct text *t = begin_wrong(r, row, node);

    if (row->max == 0) {
        text_str(t, " must be at least ");
        config_value_write(t, row, row->min);
    } else {
        text_str(t, " must be between ");
        config_value_write(t, row, row->min);
        text_str(t, " and ");
        config_value_write(t, row, row->max);
    }
    or_the_word(t, row);
    text_str(t, "; not ");
    config_quote(t, node->text);
    if (row->percent || (row->kind == FIELD_SPAN && row->min == NS_PER_MS && value < row->min))
        say_as_istio(t, row, node->text);
    config_error_end(r->errors);
}

static bool parse_switch(struct bytes b, uint64_t *value)
{
    *value = bytes_equal(b, BYTES("on")) || bytes_equal(b, BYTES("true"));
    return *value || bytes_equal(b, BYTES("off")) || bytes_equal(b, BYTES("false"));
}

/* "20", "12.5" as thousandths. */
static bool parse_percent(struct bytes b, uint64_t *thousandths)
{
    size_t dot = bytes_find(b, '.');
    uint64_t whole, tenths = 0;

    if (!bytes_parse_u64(bytes_slice(b, 0, dot), &whole) || whole > UINT32_MAX / 10)
        return false;
    if (dot < b.len && (b.len != dot + 2 || !bytes_parse_u64(bytes_skip(b, dot + 1), &tenths)))
        return false;
    *thousandths = whole * 10 + tenths;
    return true;
}

/* |b| without |end|; false where it does not end so. */
static bool cut_end(struct bytes *b, struct bytes end)
{
    if (b->len < end.len || !bytes_equal(bytes_skip(*b, b->len - end.len), end))
        return false;
    *b = bytes_slice(*b, 0, b->len - end.len);
    return true;
}

static bool parse_events(struct bytes b, uint64_t *a_week)
{
    uint64_t days = cut_end(&b, BYTES(" per day")) ? DAYS : 1;

    if (days == 1 && !cut_end(&b, BYTES(" per week")))
        return false;
    if (!bytes_parse_u64(b, a_week) || *a_week > UINT32_MAX)
        return false;
    *a_week *= days;
    return true;
}

/* False: not a number of that kind; |*detail| may say more. */
static bool parse_number(const struct field *row, struct bytes b, uint64_t *value,
                         const char **detail)
{
    uint64_t unit = row->kind == FIELD_SECONDS ? NS_PER_S : NS_PER_MS;

    *detail = NULL;
    if (row->kind == FIELD_SWITCH)
        return parse_switch(b, value);
    if (row->kind == FIELD_COUNT)
        return bytes_parse_u64(b, value);
    if (row->kind == FIELD_SIZE || row->kind == FIELD_SIZE32)
        return text_parse_size(b, value);
    if (row->kind == FIELD_SHARE)
        return cut_end(&b, BYTES("%")) && parse_percent(b, value);
    if (row->kind == FIELD_PERCENT)
        return parse_percent(b, value);
    if (row->kind == FIELD_RATE)
        return cut_end(&b, BYTES("/s")) && bytes_parse_u64(b, value);
    if (row->kind == FIELD_EVENTS)
        return parse_events(b, value);
    if (!text_parse_duration(b, value))
        return false;
    if (*value % unit != 0) {
        *detail = row->kind == FIELD_SECONDS ? "fractions of a second are not possible here"
                                             : "only durations to ms precision are supported";
        return false;
    }
    if (row->kind == FIELD_SECONDS)
        *value /= NS_PER_S;
    return true;
}

static uint64_t most(const struct field *row)
{
    if (row->max != 0)
        return row->max;
    return is_narrow(row->kind) ? UINT32_MAX - 1 : UINT64_MAX - 1;
}

static void read_number(struct field_reader *r, const struct field *row,
                        const struct config_node *node, void *out)
{
    const char *detail;
    uint64_t value;

    if (row->word != NULL && bytes_equal(node->text, bytes_of(row->word))) {
        store(row, out, row->word_value);
        return;
    }
    if (!parse_number(row, node->text, &value, &detail)) {
        wrong_type(r, row, node, detail);
        return;
    }
    if (value == 0 && row->zero_is_unset)
        return;
    if (value == 0 && row->zero_is_word)
        store(row, out, row->word_value);
    else if (row->kind != FIELD_SWITCH && (value < row->min || value > most(row)))
        out_of_range(r, row, node, value);
    else
        store(row, out, value);
}

static void put_choices(struct text *t, const struct field *row)
{
    const char *before = " must be ";

    if (row->listed_in != NULL) {
        text_str(t, " must be a name of ");
        text_str(t, row->listed_in);
        return;
    }
    for (uint32_t i = 0; field_choice(row, i) != NULL; i++) {
        text_str(t, before);
        text_str(t, field_choice(row, i));
        if (field_choice(row, i + 1) != NULL)
            before = field_choice(row, i + 2) == NULL ? " or " : ", ";
    }
}

static void wrong_choice(struct field_reader *r, const struct field *row,
                         const struct config_node *node)
{
    struct text *t = begin_wrong(r, row, node);
    struct config_guess guess;

    config_guess_init(&guess, node->text);
    for (uint32_t i = 0; field_choice(row, i) != NULL; i++)
        config_guess_word(&guess, bytes_of(field_choice(row, i)));
    put_choices(t, row);
    text_str(t, "; not ");
    config_quote(t, node->text);
    config_guess_write(&guess, t);
    config_error_end(r->errors);
}

static bool comes_later(struct field_reader *r, const struct field *row,
                        const struct config_node *node)
{
    if (row->later == NULL)
        return false;
    for (const char *const *word = row->later; word[0] != NULL; word += 2) {
        struct text *t;

        if (!bytes_equal(node->text, bytes_of(word[0])))
            continue;
        t = begin_wrong(r, row, node);
        text_str(t, ": ");
        config_quote(t, node->text);
        text_str(t, " is not supported yet: it comes with ");
        text_str(t, word[1]);
        config_error_end(r->errors);
        return true;
    }
    return false;
}

static void read_choice(struct field_reader *r, const struct field *row,
                        const struct config_node *node, void *out)
{
    for (uint32_t i = 0; field_choice(row, i) != NULL; i++)
        if (bytes_equal(node->text, bytes_of(field_choice(row, i)))) {
            store(row, out, i);
            return;
        }
    if (!comes_later(r, row, node))
        wrong_choice(r, row, node);
}

static bool is_name(struct bytes b, size_t most)
{
    for (size_t i = 0; i < b.len; i++) {
        uint8_t c = byte_lower(b.data[i]);
        bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');

        if (!plain && (c == 0 || strchr("._-:/|@", c) == NULL))
            return false;
    }
    return b.len <= most;
}

static void read_text(struct field_reader *r, const struct field *row,
                      const struct config_node *node, void *out)
{
    size_t most = row->max != 0 ? row->max : NAME_MAX_LENGTH;
    struct text *t;

    if (node->text.len == 0 || config_node_empty(node)) {
        wrong_type(r, row, node, NULL);
        return;
    }
    if (row->kind == FIELD_NAME && !is_name(node->text, most)) {
        t = begin_wrong(r, row, node);
        text_str(t, " may have up to ");
        text_u64(t, most);
        text_str(t, " letters, digits and . _ - : / | @, since it stands in the names of metrics; "
                    "not ");
        config_quote(t, node->text);
        config_error_end(r->errors);
        return;
    }
    if (config_has_control(node->text)) {
        t = begin_wrong(r, row, node);
        text_str(t, " may not have control characters in it");
        config_error_end(r->errors);
        return;
    }
    *(struct bytes *)out = node->text;
}

static bool parse_unix(struct arena *arena, struct bytes path, struct address *out,
                       const char **why)
{
    char *copy;

    *why = "a unix socket's path has 1 to 107 bytes";
    if (path.len == 0 || path.len > UNIX_PATH_MAX || bytes_find(path, 0) < path.len)
        return false;
    copy = arena_text(arena, path);
    *why = "out of memory";
    if (copy == NULL)
        return false;
    *out = (struct address){.kind = ADDRESS_UNIX, .path = copy};
    return true;
}

bool config_address_parse(struct arena *arena, struct bytes text, struct address *out,
                          const char **why)
{
    struct bytes host;
    uint64_t ignored;
    uint16_t port;

    if (bytes_start_with(text, BYTES("unix:")))
        return parse_unix(arena, bytes_skip(text, 5), out, why);
    if (address_parse(text, out))
        return true;
    if (bytes_find(text, '/') < text.len)
        *why = "leave out http:// and the path";
    else if (bytes_parse_u64(text, &ignored) || bytes_start_with(text, BYTES(":")) ||
             bytes_start_with(text, BYTES("*:")))
        *why = "write 0.0.0.0:PORT for every interface, 127.0.0.1:PORT for this machine only";
    else if (!address_split(text, &host, &port))
        *why = "the port is missing, or not between 0 and 65535";
    else
        *why = "a name cannot stand here: write an IP address";
    return false;
}

static void read_address(struct field_reader *r, const struct field *row,
                         const struct config_node *node, void *out)
{
    const char *why;

    if (row->word != NULL && bytes_equal(node->text, bytes_of(row->word)))
        *(struct address *)out = (struct address){.kind = ADDRESS_NONE};
    else if (!config_address_parse(r->arena, node->text, out, &why))
        wrong_type(r, row, node, why);
}

void config_value_read(struct field_reader *r, const struct field *row,
                       const struct config_node *node, void *out)
{
    if (node->kind != CONFIG_TEXT || config_node_empty(node))
        wrong_type(r, row, node, NULL);
    else if (row->kind == FIELD_TEXT || row->kind == FIELD_NAME)
        read_text(r, row, node, out);
    else if (row->kind == FIELD_ADDRESS)
        read_address(r, row, node, out);
    else if (row->kind == FIELD_CHOICE)
        read_choice(r, row, node, out);
    else
        read_number(r, row, node, out);
}
