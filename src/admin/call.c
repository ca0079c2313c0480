/* SPDX-License-Identifier: Apache-2.0 */
/* What the pages share: their parameters, refusals. */
#include <string.h>

#include "admin/pages.h"
#include "admin/query.h"

#define VALUE_ROOM 1024

static const char *const format_names[FORMAT_COUNT] = {"text", "json", "prometheus", "html"};

void call_refuse(struct admin_call *call, uint32_t status, const char *text)
{
    page_release(call->page);
    call->status = status;
    call->type = ADMIN_TEXT;
    page_str(call->page, text);
    page_str(call->page, "\n");
}

/* "usage: /stats?format=(text|json)" without the path, which is known to whoever asked. */
static void refuse_format(struct admin_call *call, unsigned allowed)
{
    const char *before = "usage: ?format=(";

    call_refuse(call, 400, "unknown format");
    for (unsigned i = 0; i < FORMAT_COUNT; i++) {
        if ((allowed & 1u << i) == 0)
            continue;
        page_str(call->page, before);
        page_str(call->page, format_names[i]);
        before = "|";
    }
    page_str(call->page, ")\n");
}

bool call_format(struct admin_call *call, unsigned allowed, enum page_format *out)
{
    char room[VALUE_ROOM];
    struct text value;
    enum query_result found;

    text_init(&value, room, sizeof(room));
    found = query_find(call->query, "format", &value);
    *out = FORMAT_TEXT;
    if (found == QUERY_ABSENT)
        return true;
    for (unsigned i = 0; found == QUERY_FOUND && i < FORMAT_COUNT; i++) {
        *out = (enum page_format)i;
        if ((allowed & 1u << i) != 0 && bytes_equal(text_bytes(&value), bytes_of(format_names[i])))
            return true;
    }
    refuse_format(call, allowed);
    return false;
}

bool call_regex(struct admin_call *call, const char *key, struct filter *out)
{
    char room[VALUE_ROOM];
    struct text value;
    enum query_result found;
    const char *why = "not percent-encoded as it should be, or too long";

    filter_init(out);
    text_init(&value, room, sizeof(room));
    found = query_find(call->query, key, &value);
    if (found == QUERY_ABSENT)
        return true;
    if (found == QUERY_FOUND)
        why = filter_compile(out, text_bytes(&value));
    if (why == NULL)
        return true;
    call_refuse(call, 400, "Invalid regex");
    page_str(call->page, why);
    page_str(call->page, "\n");
    return false;
}

struct bytes call_value(struct admin_call *call, const char *key, char *room, size_t size)
{
    struct text value;

    text_init(&value, room, size);
    if (query_find(call->query, key, &value) != QUERY_FOUND)
        return BYTES_NONE;
    return text_bytes(&value);
}

bool call_filter(struct admin_call *call, struct filter *out)
{
    bool good = call_regex(call, "filter", out);

    out->invert = call_flag(call, "invert_filter");
    return good;
}

bool call_flag(struct admin_call *call, const char *key)
{
    char room[VALUE_ROOM];
    struct text value;

    text_init(&value, room, sizeof(room));
    return query_find(call->query, key, &value) != QUERY_ABSENT;
}

void json_number_text(struct json *j, const char *key, uint64_t value)
{
    char room[24];
    struct text digits;

    text_init(&digits, room, sizeof(room));
    text_u64(&digits, value);
    json_string(j, key, text_bytes(&digits));
}

void json_socket_address(struct json *j, const char *key, const struct address *a)
{
    char room[ADDRESS_TEXT_MAX];
    struct text ip;

    json_object(j, key);
    if (a->kind == ADDRESS_UNIX) {
        json_object(j, "pipe");
        json_text(j, "path", a->path);
    } else {
        text_init(&ip, room, sizeof(room));
        address_write_ip(&ip, a);
        json_object(j, "socket_address");
        json_string(j, "address", text_bytes(&ip));
        json_u64(j, "port_value", a->port);
    }
    json_object_end(j);
    json_object_end(j);
}
