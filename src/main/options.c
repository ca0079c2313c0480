/* SPDX-License-Identifier: Apache-2.0 */
#include "main/options.h"

#include <string.h>

#include "base/address.h"
#include "base/text.h"
#include "base/units.h"

#define COLUMN    26 /* where explanations begin */
#define NEAR      3  /* edits: more are another word */
#define BOUND_MAX 48

/* One command line being read. */
struct reading {
    const struct command_help *help;
    const struct command_option *options;
    size_t n;
    int argc;
    char **argv;
    int at; /* the argument looked at */
};

static const struct command_option help_option = {
    .name = "help", .letter = 'h', .kind = OPTION_FLAG, .help = "this text"};

const char *options_nearest(const char *word, const char *const *words, size_t n)
{
    const char *nearest = NULL;
    unsigned least = NEAR;

    for (size_t i = 0; i < n; i++) {
        unsigned d = text_distance(bytes_of(word), bytes_of(words[i]), NEAR);

        if (d < least && d < strlen(words[i])) {
            least = d;
            nearest = words[i];
        }
    }
    return nearest;
}

const char *option_parse_address(struct bytes value, void *target)
{
    struct address *out = target;
    uint64_t port;

    if (address_parse(value, out))
        return NULL;
    if (value.len > 1 && value.data[0] == ':' && bytes_parse_u64(bytes_skip(value, 1), &port) &&
        port <= UINT16_MAX) {
        *out = (struct address){.kind = ADDRESS_IPV4, .port = (uint16_t)port};
        return NULL;
    }
    return "write an address and a port such as 127.0.0.1:9001, [::1]:9001 or :9001";
}

/* --- help --- */

static void print_lines(FILE *to, const char *text, int indent)
{
    for (;;) {
        const char *end = strchr(text, '\n');

        if (end == NULL) {
            fprintf(to, "%s\n", text);
            return;
        }
        fprintf(to, "%.*s\n%*s", (int)(end - text), text, indent, "");
        text = end + 1;
    }
}

static void print_option(FILE *to, const struct command_option *o)
{
    char room[96];
    struct text t;

    text_init(&t, room, sizeof(room));
    if (o->letter != 0) {
        text_char(&t, '-');
        text_char(&t, o->letter);
        text_str(&t, ", ");
    }
    text_str(&t, "--");
    text_str(&t, o->name);
    if (o->placeholder != NULL) {
        text_char(&t, ' ');
        text_str(&t, o->placeholder);
    }
    text_end(&t);
    if (t.len + 2 < COLUMN)
        fprintf(to, "  %-*s", COLUMN - 2, room);
    else
        fprintf(to, "  %s\n%*s", room, COLUMN, "");
    print_lines(to, o->help, COLUMN);
}

void options_print_help(const struct command_help *help, const struct command_option *options,
                        size_t n, FILE *to)
{
    fprintf(to, "firebreak %s %s\n\n%s\n\nOptions:\n", help->name, help->usage, help->summary);
    for (size_t i = 0; i < n; i++)
        print_option(to, &options[i]);
    print_option(to, &help_option);
    if (help->notes != NULL)
        fprintf(to, "\n%s\n", help->notes);
    fprintf(to, "\nExamples:\n  ");
    print_lines(to, help->examples, 2);
    fprintf(to, "\nExit codes: 0 done, 1 failed at its work, 2 wrong options or configuration\n");
}

/* --- errors --- */

static enum options_verdict complain(const struct reading *r, const char *option, const char *value,
                                     const char *why)
{
    fprintf(stderr, "firebreak %s: ", r->help->name);
    if (value == NULL)
        fprintf(stderr, "%s: %s\n", option, why);
    else
        fprintf(stderr, "%s %s: %s\n", option, value, why);
    return OPTIONS_BAD;
}

static enum options_verdict complain_unknown(const struct reading *r, const char *word)
{
    const char *names[OPTION_TEXTS_MAX] = {"help"};
    const char *nearest;
    size_t n = 1;
    char bare[64];
    struct text t;

    for (size_t i = 0; i < r->n && n < OPTION_TEXTS_MAX; i++)
        names[n++] = r->options[i].name;
    text_init(&t, bare, sizeof(bare));
    text_put(&t, bytes_slice(bytes_of(word), 0, bytes_find(bytes_of(word), '=')));
    text_end(&t);
    nearest = options_nearest(bare + strspn(bare, "-"), names, n);
    fprintf(stderr, "firebreak %s: there is no option %s", r->help->name, bare);
    if (nearest != NULL)
        fprintf(stderr, "; did you mean --%s?\n", nearest);
    else
        fprintf(stderr, "; firebreak %s --help lists them\n", r->help->name);
    return OPTIONS_BAD;
}

/* --- values --- */

static void put_amount(struct text *t, enum option_kind kind, uint64_t v)
{
    if (kind == OPTION_DURATION)
        text_duration(t, v);
    else
        text_u64(t, v);
}

static enum options_verdict complain_amount(const struct reading *r, const struct command_option *o,
                                            const char *given, const char *value)
{
    char room[160];
    struct text t;

    text_init(&t, room, sizeof(room));
    text_str(&t, o->kind == OPTION_DURATION ? "write a duration such as 250ms, 15s or 1m30s"
                 : o->kind == OPTION_SIZE   ? "write a size such as 65536, 64KiB or 1MiB"
                                            : "write a whole number");
    if (o->most != 0) {
        text_str(&t, ", from ");
        put_amount(&t, o->kind, o->least);
        text_str(&t, " to ");
        put_amount(&t, o->kind, o->most);
    }
    text_end(&t);
    return complain(r, given, value, room);
}

static bool parse_amount(enum option_kind kind, struct bytes value, uint64_t *out)
{
    if (kind == OPTION_DURATION)
        return text_parse_duration(value, out);
    if (kind == OPTION_SIZE)
        return text_parse_size(value, out);
    return bytes_parse_u64(value, out);
}

static enum options_verdict take_amount(const struct reading *r, const struct command_option *o,
                                        const char *given, const char *value)
{
    uint64_t amount;

    if (!parse_amount(o->kind, bytes_of(value), &amount) || amount < o->least ||
        (o->most != 0 && amount > o->most))
        return complain_amount(r, o, given, value);
    *(uint64_t *)o->target = amount;
    return OPTIONS_GO;
}

static enum options_verdict take_text(const struct reading *r, const struct command_option *o,
                                      const char *given, const char *value)
{
    struct option_texts *texts = o->target;

    if (texts->count == OPTION_TEXTS_MAX)
        return complain(r, given, NULL, "it was given more than 64 times");
    texts->items[texts->count++] = value;
    return OPTIONS_GO;
}

static enum options_verdict take_value(const struct reading *r, const struct command_option *o,
                                       const char *given, const char *value)
{
    const char *why;

    switch (o->kind) {
    case OPTION_FLAG:
        *(bool *)o->target = true;
        return OPTIONS_GO;
    case OPTION_TEXT:
        *(const char **)o->target = value;
        return OPTIONS_GO;
    case OPTION_TEXTS:
        return take_text(r, o, given, value);
    case OPTION_NUMBER:
    case OPTION_DURATION:
    case OPTION_SIZE:
        return take_amount(r, o, given, value);
    case OPTION_PARSED:
        why = o->parse(bytes_of(value), o->target);
        return why == NULL ? OPTIONS_GO : complain(r, given, value, why);
    }
    return OPTIONS_BAD;
}

/* --- the line --- */

static bool is_option(const struct command_option *o, const char *word, size_t len)
{
    if (word[0] == '-' && word[1] == '-')
        return strlen(o->name) == len - 2 && memcmp(word + 2, o->name, len - 2) == 0;
    return o->letter != 0 && len == 2 && word[1] == o->letter;
}

static const struct command_option *find_option(const struct reading *r, const char *word,
                                                size_t len)
{
    for (size_t i = 0; i < r->n; i++)
        if (is_option(&r->options[i], word, len))
            return &r->options[i];
    return NULL;
}

/* The option's value: after the '=', or the next argument. NULL: there is none. */
static const char *value_of(struct reading *r, const char *equals)
{
    if (equals != NULL)
        return equals + 1;
    if (r->at + 1 >= r->argc)
        return NULL;
    r->at++;
    return r->argv[r->at];
}

static enum options_verdict read_option(struct reading *r, const char *word)
{
    const char *equals = word[1] == '-' ? strchr(word, '=') : NULL;
    size_t len = equals == NULL ? strlen(word) : (size_t)(equals - word);
    const struct command_option *o = find_option(r, word, len);
    char given[64];
    struct text t;
    const char *value = NULL;

    if (o == NULL)
        return complain_unknown(r, word);
    text_init(&t, given, sizeof(given));
    text_put(&t, bytes_from(word, len));
    text_end(&t);
    if (o->kind == OPTION_FLAG && equals != NULL)
        return complain(r, given, NULL, "it takes no value; leave the '=' and what follows out");
    if (o->kind != OPTION_FLAG) {
        value = value_of(r, equals);
        if (value == NULL)
            return complain(r, given, NULL, "its value is missing");
    }
    return take_value(r, o, given, value);
}

static enum options_verdict read_word(struct reading *r)
{
    const char *word = r->argv[r->at];

    if (word[0] == '-' && word[1] != '\0')
        return read_option(r, word);
    fprintf(stderr,
            "firebreak %s: \"%s\" is no option; options begin with --, firebreak %s --help lists "
            "them\n",
            r->help->name, word, r->help->name);
    return OPTIONS_BAD;
}

static bool asks_for_help(const char *word)
{
    return is_option(&help_option, word, strlen(word));
}

enum options_verdict options_read(const struct command_help *help,
                                  const struct command_option *options, size_t n, int argc,
                                  char **argv)
{
    struct reading r = {
        .help = help, .options = options, .n = n, .argc = argc, .argv = argv, .at = 1};

    for (; r.at < argc; r.at++) {
        enum options_verdict v;

        if (asks_for_help(argv[r.at])) {
            options_print_help(help, options, n, stdout);
            return OPTIONS_HELP;
        }
        v = read_word(&r);
        if (v != OPTIONS_GO)
            return v;
    }
    return OPTIONS_GO;
}
