/* SPDX-License-Identifier: Apache-2.0 */
/* A route's retries: words to conditions, codes to a set, and what fits together. */
#include "control/config_build.h"

static void wrong(struct config_build *b, const struct config_node *at, const char *message,
                  struct bytes word)
{
    struct text *t = config_build_error(b, at);

    text_str(t, message);
    config_quote(t, word);
    config_error_end(b->errors);
}

static const char *comes_later(struct bytes word)
{
    static const char *const later[] = {
        "cancelled",   "gRPC", "deadline-exceeded",          "gRPC",
        "internal",    "gRPC", "resource-exhausted",         "gRPC",
        "unavailable", "gRPC", "http3-post-connect-failure", "HTTP/3",
        NULL};

    for (const char *const *each = later; each[0] != NULL; each += 2)
        if (bytes_equal(word, bytes_of(each[0])))
            return each[1];
    return NULL;
}

static void unknown_condition(struct config_build *b, const struct field_text *from)
{
    const char *with = comes_later(from->text);
    struct text *t = config_build_error(b, from->head.node);
    struct config_guess guess;

    if (with != NULL) {
        config_quote(t, from->text);
        text_str(t, " is not supported yet: it comes with ");
        text_str(t, with);
        config_error_end(b->errors);
        return;
    }
    config_guess_init(&guess, from->text);
    text_str(t, "'on' has words such as 5xx, reset, connect-failure; not ");
    config_quote(t, from->text);
    for (uint32_t i = 0; retry_on_text(i) != NULL; i++)
        config_guess_word(&guess, bytes_of(retry_on_text(i)));
    config_guess_write(&guess, t);
    config_error_end(b->errors);
}

static void build_conditions(struct config_build *b, const struct config_retry *from,
                             struct retry_policy *p)
{
    const struct field_text *each = from->on.at;

    for (uint32_t i = 0; i < from->on.count; i++) {
        uint32_t on = retry_on_parse(each[i].text);

        if (on == RETRY_ON_NOTHING && each[i].text.len > 0)
            unknown_condition(b, &each[i]);
        p->on |= on;
    }
    if (from->statuses.count > 0)
        p->on |= RETRY_ON_RETRIABLE_STATUS_CODES;
    if (from->headers.count > 0)
        p->on |= RETRY_ON_RETRIABLE_HEADERS;
    if (from->on.node == NULL && p->on == RETRY_ON_NOTHING)
        p->on = RETRY_ON_CONNECT_FAILURE | RETRY_ON_REFUSED_STREAM | RETRY_ON_RESET_BEFORE_REQUEST;
}

/* A condition that asks for a list, and there is none. */
static void check_lists(struct config_build *b, const struct config_retry *from)
{
    const struct field_text *each = from->on.at;

    for (uint32_t i = 0; i < from->on.count; i++) {
        uint32_t on = retry_on_parse(each[i].text);

        if (on == RETRY_ON_RETRIABLE_STATUS_CODES && from->statuses.count == 0)
            wrong(b, each[i].head.node, "say which codes: 'statuses: [503]' beside ", each[i].text);
        if (on == RETRY_ON_RETRIABLE_HEADERS && from->headers.count == 0)
            wrong(b, each[i].head.node, "say which headers: 'headers: [NAME]' beside ",
                  each[i].text);
    }
}

static void build_statuses(struct config_build *b, const struct field_items *from,
                           struct retry_statuses *statuses)
{
    const struct field_text *each = from->at;

    for (uint32_t i = 0; i < from->count; i++) {
        uint64_t status = 0;

        if (!bytes_parse_u64(each[i].text, &status) || status < 200 ||
            !retry_statuses_add(statuses, status))
            wrong(b, each[i].head.node, "a status to be retried is a number from 200 to 599; not ",
                  each[i].text);
    }
}

static bool is_token(struct bytes word)
{
    static const char others[] = "!#$%&'*+-.^_`|~";

    for (size_t i = 0; i < word.len; i++) {
        uint8_t c = byte_lower(word.data[i]);
        bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');

        if (!plain && bytes_find(bytes_of(others), c) == sizeof(others) - 1)
            return false;
    }
    return word.len > 0;
}

static const struct bytes *build_words(struct config_build *b, const struct field_items *from,
                                       const char *message)
{
    const struct field_text *each = from->at;
    struct bytes *words = config_build_array(b, from->count, sizeof(*words));

    for (uint32_t i = 0; words != NULL && i < from->count; i++) {
        words[i] = config_build_copy(b, each[i].text);
        if (!is_token(each[i].text))
            wrong(b, each[i].head.node, message, each[i].text);
    }
    return words;
}

static void build_backoff(struct config_build *b, const struct config_backoff *from,
                          struct retry_policy *p)
{
    const struct config_node *max = config_node_find(from->head.node, "max");

    p->base = from->base;
    p->max = from->max == 0 ? RETRY_BACKOFF_FACTOR * from->base : from->max;
    if (p->max >= p->base || max == NULL)
        return;
    text_str(config_build_error(b, max), "'max' may not be less than 'base'");
    config_error_end(b->errors);
}

static bool says_when(const struct config_retry *from)
{
    return from->on.node != NULL || from->statuses.count > 0 || from->headers.count > 0;
}

const struct route_retry *config_build_retry(struct config_build *b,
                                             const struct config_retry *from)
{
    struct route_retry *retry;

    if (from->head.node == NULL)
        return NULL;
    retry = config_build_array(b, 1, sizeof(*retry));
    if (retry == NULL)
        return NULL;
    build_conditions(b, from, &retry->policy);
    check_lists(b, from);
    build_statuses(b, &from->statuses, &retry->policy.statuses);
    build_backoff(b, &from->backoff, &retry->policy);
    retry->policy.attempts = from->attempts;
    retry->methods =
        build_words(b, &from->methods, "a method is a word in capitals, such as POST; not ");
    retry->method_count = from->methods.count;
    retry->headers = build_words(b, &from->headers, "a header is named by a word; not ");
    retry->header_count = from->headers.count;
    retry->buffer_bytes = from->buffer_bytes;
    retry->count_in_answer = from->count_in_answer;
    return from->attempts == 0 && !says_when(from) ? NULL : retry;
}
