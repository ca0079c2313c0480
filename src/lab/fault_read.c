/* SPDX-License-Identifier: Apache-2.0 */
/* Reads faults. (Beside jansson.h there is no codec/json.h: they have names in common.) */
#include <stddef.h>
#include <string.h>

#include <jansson.h>

#include "base/text.h"
#include "lab/fault_kinds.h"

#define LONGEST (24 * 3600 * NS_PER_S)

/* A document being read. */
struct reading {
    json_t *root;
    struct fault *fault;
    uint32_t servers;
    struct text *why;
};

static bool wrong(struct reading *r, const char *key, const char *write_instead)
{
    text_char(r->why, '"');
    text_str(r->why, key);
    text_str(r->why, "\": ");
    text_str(r->why, write_instead);
    return false;
}

static bool is_fraction(const json_t *v)
{
    return json_is_number(v) && json_number_value(v) >= 0 && json_number_value(v) <= 1;
}

static bool read_span(const json_t *v, span_ns *out)
{
    span_ns ns;

    if (!json_is_string(v) ||
        !text_parse_duration(bytes_from(json_string_value(v), json_string_length(v)), &ns) ||
        ns == 0 || ns > LONGEST)
        return false;
    *out = ns;
    return true;
}

static bool read_count(const json_t *v, uint64_t least, uint64_t most, uint64_t *out)
{
    if (!json_is_integer(v) || json_integer_value(v) < 0)
        return false;
    *out = (uint64_t)json_integer_value(v);
    return *out >= least && *out <= most;
}

static bool read_kind(struct reading *r, const json_t *v)
{
    for (int k = 0; json_is_string(v) && k < FAULT_KIND_COUNT; k++)
        if (strcmp(json_string_value(v), fault_kinds[k].name) == 0) {
            r->fault->kind = (enum fault_kind)k;
            return true;
        }
    return wrong(r, "fault",
                 "write one of delay, jitter, slow, status, refuse, accept-reset, hang, "
                 "reset-mid-body, stop-reading, drip, stall-every, heavy");
}

static bool read_server(struct reading *r, const json_t *v)
{
    uint64_t index;

    if (json_is_string(v) && strcmp(json_string_value(v), "all") == 0)
        return true;
    if (read_count(v, 0, r->servers - 1, &index)) {
        r->fault->server = (uint32_t)index;
        return true;
    }
    text_str(r->why, "\"server\": write \"all\" or a number from 0 to ");
    text_u64(r->why, r->servers - 1);
    return false;
}

static bool read_number_value(struct reading *r, const json_t *v)
{
    uint64_t status;

    if (fault_kinds[r->fault->kind].value == VALUE_FACTOR) {
        r->fault->factor = json_number_value(v);
        return json_is_number(v) && r->fault->factor >= 0 && r->fault->factor <= FAULT_FACTOR_MAX;
    }
    if (!read_count(v, 200, 599, &status))
        return false;
    r->fault->status = (uint32_t)status;
    return true;
}

static bool read_value(struct reading *r, const json_t *v)
{
    const struct fault_kind_row *k = &fault_kinds[r->fault->kind];
    bool good = k->value == VALUE_SPAN ? read_span(v, &r->fault->span) : read_number_value(r, v);

    if (k->value == VALUE_NONE)
        return wrong(r, "value", "this fault takes none; leave it out");
    if (good)
        return true;
    text_str(r->why, "\"value\": write ");
    text_str(r->why, k->value == VALUE_SPAN     ? "a duration up to 24h"
                     : k->value == VALUE_STATUS ? "a status from 200 to 599"
                                                : "a factor from 0 to 1000000");
    text_str(r->why, " such as ");
    text_str(r->why, k->example);
    return false;
}

static bool read_probability(struct reading *r, const json_t *v)
{
    if (!is_fraction(v))
        return wrong(r, "probability", "write a number from 0 to 1 such as 0.5");
    if (r->fault->kind == FAULT_REFUSE)
        return wrong(r, "probability", "a port is closed or not; use accept-reset for some");
    r->fault->probability = json_number_value(v);
    return true;
}

static bool read_path(struct reading *r, const json_t *v)
{
    if (fault_kinds[r->fault->kind].for_connections)
        return wrong(r, "path",
                     "this fault hits connections, before there is a path; leave it out");
    if (!json_is_string(v) || json_string_value(v)[0] != '/' ||
        json_string_length(v) > FAULT_PATH_MAX)
        return wrong(r, "path",
                     "write the beginning of a path, up to 255 bytes, such as \"/delay\"");
    memcpy(r->fault->path, json_string_value(v), json_string_length(v) + 1);
    return true;
}

static bool read_for(struct reading *r, const json_t *v)
{
    return read_span(v, &r->fault->lasts) ||
           wrong(r, "for", "write a duration up to 24h such as \"10s\"");
}

static bool read_after(struct reading *r, const json_t *v)
{
    if (r->fault->kind == FAULT_REFUSE)
        return wrong(r, "after", "a closed port sees no requests to count; leave it out");
    return read_count(v, 0, INT64_MAX, &r->fault->after) ||
           wrong(r, "after", "write how many matching requests are let by first, such as 100");
}

static bool read_stall(struct reading *r, const json_t *v)
{
    if (r->fault->kind != FAULT_STALL_EVERY)
        return wrong(r, "stall", "only stall-every takes it; leave it out");
    return read_span(v, &r->fault->stall) ||
           wrong(r, "stall", "write how long each stall is, such as \"500ms\"");
}

static bool read_bytes(struct reading *r, const json_t *v)
{
    uint64_t n;

    if (!fault_takes_bytes(r->fault->kind))
        return wrong(r, "bytes", "only drip and heavy take it; leave it out");
    if (!read_count(v, 1, 65536, &n))
        return wrong(r, "bytes",
                     "write how many bytes go out at a time, or are asked for, 1 to 65536");
    r->fault->bytes = (uint32_t)n;
    return true;
}

struct key_row {
    const char *name;
    bool (*read)(struct reading *r, const json_t *v);
};

/* In the order in which they are read: what a value means depends on the fault. */
static const struct key_row keys[] = {
    {"fault", read_kind},  {"server", read_server}, {"value", read_value},
    {"stall", read_stall}, {"bytes", read_bytes},   {"probability", read_probability},
    {"path", read_path},   {"for", read_for},       {"after", read_after},
};

#define KEY_COUNT (sizeof(keys) / sizeof(keys[0]))

static bool refuse_key(struct reading *r, const char *name)
{
    const char *nearest = NULL;
    unsigned least = 3;

    for (size_t k = 0; k < KEY_COUNT; k++) {
        unsigned d = text_distance(bytes_of(name), bytes_of(keys[k].name), 3);

        if (d < least) {
            least = d;
            nearest = keys[k].name;
        }
    }
    text_str(r->why, "unknown key \"");
    text_put(r->why, bytes_slice(bytes_of(name), 0, 40));
    text_str(r->why, nearest == NULL ? "\": the keys are fault, server, value, stall, bytes, "
                                       "probability, path, for, after"
                                     : "\": did you mean \"");
    if (nearest != NULL) {
        text_str(r->why, nearest);
        text_str(r->why, "\"?");
    }
    return false;
}

static bool keys_are_known(struct reading *r)
{
    const char *name;
    json_t *value;

    json_object_foreach(r->root, name, value)
    {
        bool known = false;

        for (size_t k = 0; k < KEY_COUNT; k++)
            known = known || strcmp(name, keys[k].name) == 0;
        if (!known)
            return refuse_key(r, name);
    }
    return true;
}

static bool check_whole(struct reading *r)
{
    const struct fault *f = r->fault;

    if (fault_kinds[f->kind].value != VALUE_NONE && json_object_get(r->root, "value") == NULL) {
        text_str(r->why, "\"value\" is missing: write for example \"value\": ");
        text_str(r->why, fault_kinds[f->kind].example);
        return false;
    }
    if (f->kind == FAULT_STALL_EVERY && f->stall == 0)
        return wrong(r, "stall", "it is missing: write how long each stall is, such as \"500ms\"");
    if (f->kind == FAULT_STALL_EVERY && f->stall >= f->span)
        return wrong(r, "stall", "it must be shorter than \"value\", the time from stall to stall");
    return true;
}

static bool read_document(struct reading *r)
{
    if (!keys_are_known(r))
        return false;
    if (json_object_get(r->root, "fault") == NULL)
        return read_kind(r, NULL);
    for (size_t k = 0; k < KEY_COUNT; k++) {
        const json_t *v = json_object_get(r->root, keys[k].name);

        if (v != NULL && !keys[k].read(r, v))
            return false;
    }
    return check_whole(r);
}

bool fault_from_json(struct bytes json, uint32_t servers, struct fault *out, struct text *why)
{
    struct fault f = {.server = FAULT_ALL, .probability = 1.0, .factor = 1.0, .bytes = 1};
    struct reading r = {.fault = &f, .servers = servers, .why = why};
    json_error_t error;
    bool good;

    r.root = json_loadb(json.len == 0 ? "" : (const char *)json.data, json.len,
                        JSON_REJECT_DUPLICATES, &error);
    if (!json_is_object(r.root)) {
        text_str(why, r.root == NULL ? error.text : "this is no object");
        text_str(why, "; write a JSON object such as {\"fault\": \"delay\", \"value\": \"200ms\"}");
        json_decref(r.root);
        return false;
    }
    good = read_document(&r);
    json_decref(r.root);
    if (good)
        *out = f;
    return good;
}
