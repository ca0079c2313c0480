/* SPDX-License-Identifier: Apache-2.0 */
/* The access log: formats compiled, and what is wrong with one said with its place in the text. */
#include "control/config_build.h"

#define LINE_MAX_BYTES ((size_t)4 << 20)

static void guess_operator(struct text *t, struct bytes word)
{
    struct config_guess guess;
    const char *name;

    config_guess_init(&guess, word);
    for (uint32_t i = 0; (name = access_operator(i)) != NULL; i++)
        config_guess_word(&guess, bytes_of(name));
    config_guess_write(&guess, t);
}

/* "at character 9 of the format: unknown operator 'RESPONSE_COD', did you mean ...?" */
static void wrong_format(struct config_build *b, const struct field_text *from,
                         const struct access_fault *fault)
{
    struct text *t;

    if (fault->why == NULL) {
        b->no_memory = true;
        return;
    }
    t = config_build_error(b, from->head.node);
    text_str(t, "at character ");
    text_u64(t, fault->at + 1);
    text_str(t, " of the format: ");
    if (fault->word.len > 0) {
        config_quote(t, fault->word);
        text_str(t, ": ");
    }
    text_str(t, fault->why);
    if (bytes_equal(bytes_of(fault->why), BYTES("unknown operator")))
        guess_operator(t, fault->word);
    config_error_end(b->errors);
}

static bool compile(struct config_build *b, const struct field_text *from, struct bytes text,
                    struct access_format *format, struct access_program *program)
{
    struct bytes copy = config_build_copy(b, text);
    struct access_fault fault;

    if (b->no_memory)
        return false;
    if (access_compile(&b->snapshot->arena, copy, format, program, &fault))
        return true;
    wrong_format(b, from, &fault);
    return false;
}

static void not_a_format(struct config_build *b, const struct field_text *from)
{
    static const char *const words[] = {"json", "text", "envoy", "istio"};
    struct text *t = config_build_error(b, from->head.node);
    struct config_guess guess;

    text_str(t, "'format' must be json, text, envoy, istio, or a line with operators, such as "
                "\"%RESPONSE_CODE% %DURATION%\"; not ");
    config_quote(t, from->text);
    config_guess_init(&guess, from->text);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        config_guess_word(&guess, bytes_of(words[i]));
    config_guess_write(&guess, t);
    config_error_end(b->errors);
}

/* The text behind a name. BYTES_NONE: JSON. */
static struct bytes line_of(struct bytes format)
{
    if (bytes_equal(format, BYTES("text")) || bytes_equal(format, BYTES("envoy")))
        return bytes_of(access_format_envoy);
    if (bytes_equal(format, BYTES("istio")))
        return bytes_of(access_format_istio);
    return format;
}

static void build_keys(struct config_build *b, const struct field_items *from,
                       struct access_format *format)
{
    const struct field_text *pairs = from->at;
    struct access_key *keys = config_build_array(b, from->count, sizeof(*keys));

    for (uint32_t i = 0; !b->no_memory && i < from->count; i++) {
        for (uint32_t k = 0; k < i; k++)
            if (bytes_equal(pairs[k].key, pairs[i].key) && pairs[k].head.node != NULL &&
                pairs[i].head.node != NULL)
                config_build_twice(b, pairs[i].head.node, pairs[i].key, pairs[k].head.node);
        keys[i].name = config_build_copy(b, pairs[i].key);
        if (pairs[i].head.node != NULL)
            compile(b, &pairs[i], pairs[i].text, format, &keys[i].value);
    }
    format->keys = keys;
    format->key_count = from->count;
}

static void check_keys(struct config_build *b, const struct config_access_log *from)
{
    const struct field_text *format = &from->format;
    const struct config_node *at = from->json_format.node;
    const char *why = NULL;

    if (from->json_format.count == 0)
        why = "'jsonFormat' names no values: write at least one, such as {status: "
              "\"%RESPONSE_CODE%\"}";
    else if (from->json_format.count > ACCESS_KEYS_MAX)
        why = "'jsonFormat' has more than 64 values";
    else if (format->head.node != NULL && !bytes_equal(format->text, BYTES("json")))
        why = "'jsonFormat' and a format of text: write one of them";
    if (why == NULL)
        return;
    text_str(config_build_error(b, at), why);
    config_error_end(b->errors);
}

static void check_room(struct config_build *b, const struct config_access_log *from,
                       const struct access_format *format)
{
    size_t room = access_program_room(format, &format->text);

    for (uint32_t i = 0; i < format->key_count; i++)
        room += access_program_room(format, &format->keys[i].value);
    if (room <= LINE_MAX_BYTES / 6) /* a byte may become six */
        return;
    text_str(config_build_error(b, from->head.node),
             "a line of this format could be longer than 4 MiB: name fewer values, or shorten them "
             "as in %REQ(:PATH):200%");
    config_error_end(b->errors);
}

void config_build_access_log(struct config_build *b, const struct config_access_log *from)
{
    struct access_log_config *log = &b->snapshot->access_log;
    struct bytes line = line_of(from->format.text);
    bool json = line.len == 0 || bytes_equal(line, BYTES("json"));
    struct access_format *format;

    log->to = config_build_copy(b, from->to);
    if (json && from->json_format.node == NULL)
        return;
    format = config_build_array(b, 1, sizeof(*format));
    if (format == NULL)
        return;
    if (from->json_format.node != NULL) {
        check_keys(b, from);
        build_keys(b, &from->json_format, format);
    } else if (bytes_find(line, '%') == line.len) {
        not_a_format(b, &from->format);
        return;
    } else if (!compile(b, &from->format, line, format, &format->text)) {
        return;
    }
    if (!b->no_memory && b->errors->count == 0)
        check_room(b, from, format);
    log->format = format;
}
