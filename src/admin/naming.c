/* SPDX-License-Identifier: Apache-2.0 */
#include "admin/naming.h"

#include "base/text.h"

#define OWN_MARK   "firebreak: "
#define FAMILY_MAX 256

/* Goes on after what is in |room| already; text_end makes it a string again. */
static void continue_text(struct text *t, char *room, size_t size)
{
    text_init(t, room, size);
    t->len = strlen(room);
}

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), e = strlen(end);

    return n >= e && strcmp(name + n - e, end) == 0;
}

/* "upstream_rq_5xx", but not "upstream_rq_max". */
static bool is_class(const char *name)
{
    size_t n = strlen(name);

    return ends_with(name, "xx") && n > 4 && name[n - 3] >= '1' && name[n - 3] <= '5' &&
           name[n - 4] == '_';
}

static void put_sanitized(struct text *t, struct bytes name)
{
    for (size_t i = 0; i < name.len; i++)
        text_char(t, name.data[i] == '.' ? '_' : (char)name.data[i]);
}

void scope_init(struct scope *s, enum scope_kind kind, const char *family)
{
    s->kind = kind;
    s->family = family;
    s->name[0] = s->labels[0] = s->own[0] = '\0';
}

void scope_name(struct scope *s, struct bytes part)
{
    struct text t;

    continue_text(&t, s->name, sizeof(s->name));
    text_put(&t, part);
    text_end(&t);
}

static void put_label_value(struct text *t, struct bytes value)
{
    for (size_t i = 0; i < value.len; i++) {
        uint8_t c = value.data[i];

        if (c == '"' || c == '\\' || c == '\n')
            text_char(t, '\\');
        text_char(t, c == '\n' ? 'n' : (char)c);
    }
}

/* A label that does not fit is left out whole: half of one would break the page. */
void scope_label(char labels[NAMING_ROOM], const char *name, struct bytes value)
{
    struct text t;
    size_t before;

    continue_text(&t, labels, NAMING_ROOM);
    before = t.len;
    if (before > 0)
        text_char(&t, ',');
    text_str(&t, name);
    text_str(&t, "=\"");
    put_label_value(&t, value);
    text_char(&t, '"');
    if (t.failed || t.len == t.room)
        t.len = before;
    text_end(&t);
}

/* --- one sample --- */

/* The texts of one sample while it is made. */
struct names {
    char name[NAMING_ROOM];
    char family[FAMILY_MAX];
    char labels[NAMING_ROOM];
};

static void write_name(char *to, const struct scope *scope, const char *name)
{
    struct text t;

    text_init(&t, to, NAMING_ROOM);
    text_str(&t, scope->name);
    text_str(&t, name);
    text_end(&t);
}

/* |name| with |suffix|, "_total" or "". */
static void write_family(char *to, const char *prefix, const struct scope *scope, struct bytes name,
                         const char *suffix)
{
    struct text t;

    text_init(&t, to, FAMILY_MAX);
    text_str(&t, prefix);
    text_str(&t, scope->family);
    put_sanitized(&t, name);
    text_str(&t, suffix);
    text_end(&t);
}

/* A label of the metric's own, before those of the scope. */
static void write_labels(char *to, const char *first, struct bytes value, const char *rest)
{
    struct text t;

    to[0] = '\0';
    scope_label(to, first, value);
    continue_text(&t, to, NAMING_ROOM);
    if (rest[0] != '\0' && t.len + 1 + strlen(rest) < NAMING_ROOM) {
        text_char(&t, ',');
        text_str(&t, rest);
    }
    text_end(&t);
}

static bool is_own(const struct scope *scope, const struct metric_info *info)
{
    return scope->kind == SCOPE_OWN || bytes_start_with(bytes_of(info->help), BYTES(OWN_MARK));
}

static const char *own_help(const struct metric_info *info)
{
    bool marked = bytes_start_with(bytes_of(info->help), BYTES(OWN_MARK));

    return marked ? info->help + strlen(OWN_MARK) : info->help;
}

static void name_own(struct names *n, const struct scope *scope, const struct metric_info *info)
{
    bool counts = info->kind == METRIC_COUNTER && !ends_with(info->name, "_total");

    write_family(n->family, "firebreak_", scope, bytes_of(info->name), counts ? "_total" : "");
}

/* "rq_5xx" is the family "rq_xx" with the class as a label. */
static void name_class(struct names *n, const struct scope *scope, const char *name)
{
    size_t len = strlen(name);

    write_family(n->family, "envoy_", scope, bytes_from(name, len - 3), "xx");
    write_labels(n->labels, "envoy_response_code_class", bytes_from(name + len - 3, 1),
                 scope->labels);
}

static uint64_t shown(const struct metric_info *info, uint64_t value)
{
    return info->kind == METRIC_GAUGE && value > INT64_MAX ? 0 : value;
}

bool scope_wants(const struct samples *s, const struct scope *scope, const char *name)
{
    char whole[NAMING_ROOM];

    write_name(whole, scope, name);
    return samples_wanted(s, whole);
}

void scope_add(struct samples *s, const struct scope *scope, const struct metric_info *info,
               uint64_t value)
{
    struct names n;
    struct sample sample = {
        .name = n.name,
        .family = n.family,
        .labels = scope->labels,
        .kind = info->kind == METRIC_COUNTER ? SAMPLE_COUNTER : SAMPLE_GAUGE,
        .value = shown(info, value),
        .thousandths = info->kind == METRIC_RATIO,
    };

    write_name(n.name, scope, info->name);
    if (!samples_wanted(s, n.name))
        return;
    if (is_own(scope, info)) {
        name_own(&n, scope, info);
        sample.labels = scope->own;
        sample.help = own_help(info);
    } else if (is_class(info->name)) {
        name_class(&n, scope, info->name);
        sample.labels = n.labels;
    } else {
        write_family(n.family, "envoy_", scope, bytes_of(info->name), "");
    }
    samples_add(s, &sample);
}

void scope_add_code(struct samples *s, const struct scope *scope, const char *name, uint32_t code,
                    uint64_t value)
{
    struct names n;
    char digits[16];
    struct text number;
    struct sample sample = {.name = n.name,
                            .family = n.family,
                            .labels = n.labels,
                            .kind = SAMPLE_COUNTER,
                            .value = value};
    struct text t;

    text_init(&number, digits, sizeof(digits));
    text_u64(&number, code);
    write_name(n.name, scope, name);
    continue_text(&t, n.name, sizeof(n.name));
    text_char(&t, '_');
    text_put(&t, text_bytes(&number));
    text_end(&t);
    if (!samples_wanted(s, n.name))
        return;
    write_family(n.family, "envoy_", scope, bytes_of(name), "");
    write_labels(n.labels, "envoy_response_code", text_bytes(&number), scope->labels);
    samples_add(s, &sample);
}

void scope_add_flag(struct samples *s, const struct scope *scope, const char *flag, uint64_t value)
{
    struct names n;
    struct text t;
    struct sample sample = {.name = n.name,
                            .family = n.family,
                            .labels = n.labels,
                            .help = "requests that ended with this response flag",
                            .kind = SAMPLE_COUNTER,
                            .value = value};

    write_name(n.name, scope, "response_flags.");
    continue_text(&t, n.name, sizeof(n.name));
    text_str(&t, flag);
    text_end(&t);
    if (value == 0 || !samples_wanted(s, n.name))
        return;
    write_family(n.family, "firebreak_", scope, BYTES("response_flags"), "_total");
    write_labels(n.labels, "flag", bytes_of(flag), scope->own);
    samples_add(s, &sample);
}

void scope_add_histogram(struct samples *s, const struct scope *scope, const char *name,
                         const char *help, struct histogram *h)
{
    bool own = scope->kind == SCOPE_OWN;
    struct names n;
    struct sample sample = {.name = n.name,
                            .family = n.family,
                            .labels = own ? scope->own : scope->labels,
                            .help = help,
                            .kind = SAMPLE_HISTOGRAM,
                            .histogram = h};

    write_name(n.name, scope, name);
    write_family(n.family, own ? "firebreak_" : "envoy_", scope, bytes_of(name), "");
    samples_add(s, &sample);
}
