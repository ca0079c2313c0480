/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/access_render.h"

#include "base/date.h"
#include "codec/json.h"
#include "model/flags.h"

#define CUT_MARK   "..." /* what follows a text that was cut */
#define ESCAPED    6     /* bytes that one may become */
#define VALUE_ROOM 4096
#define NAME_ROOM  256

/* A value, before it is escaped. */
struct value {
    struct bytes text; /* empty: missing */
    uint64_t number;   /* of operators that are numbers */
    bool is_number;
    bool cut;         /* there was more of it */
    struct text made; /* where the text had to be made, its room */
    char room[VALUE_ROOM];
};

struct view {
    const struct access_format *format;
    const struct record_copy *copy;
    const struct access_surroundings *around;
};

/* --- values --- */

static bool found(const struct value *v)
{
    return v->is_number || v->text.len > 0;
}

static void set_text(struct value *v, struct bytes text)
{
    v->text = text;
}

static void set_word(struct value *v, const char *word)
{
    v->text = bytes_of(word);
}

static void set_fact(struct value *v, const struct record_copy *c, struct bytes text,
                     enum record_text which)
{
    v->text = text;
    v->cut = (c->cut & 1u << which) != 0;
}

static void set_number(struct value *v, uint64_t number)
{
    v->number = number;
    v->is_number = true;
}

static void set_ms(struct value *v, span_ns span)
{
    if (span != MONO_NEVER)
        set_number(v, span / NS_PER_MS);
}

static void set_made(struct value *v)
{
    v->text = text_bytes(&v->made);
}

static void set_flags(struct value *v, uint32_t flags,
                      void (*write)(struct text *t, uint32_t flags))
{
    write(&v->made, flags);
    set_made(v);
}

enum port { WITH_PORT, WITHOUT_PORT };

static void set_address(struct value *v, const struct address *a, enum port port)
{
    if (a->kind == ADDRESS_NONE)
        return;
    if (port == WITHOUT_PORT && a->kind != ADDRESS_UNIX)
        address_write_ip(&v->made, a);
    else
        address_write(&v->made, a);
    set_made(v);
}

/* Where trusted proxies say who the client is, that; its port nobody knows, and Envoy writes 0. */
static void set_remote(struct value *v, const struct request_record *r, enum port port)
{
    struct bytes first = bytes_slice(r->forwarded_for, 0, bytes_find(r->forwarded_for, ','));
    struct address client;

    if (!r->trusts_forwarded_for || first.len == r->forwarded_for.len ||
        !address_parse_ip(bytes_trim(first), &client)) {
        set_address(v, &r->downstream_remote, port);
        return;
    }
    client.port = 0;
    set_address(v, &client, port);
}

static void set_hosts(struct value *v, const struct request_record *r)
{
    for (uint32_t i = 0; i < r->attempt_count; i++) {
        text_str(&v->made, i == 0 ? "" : ",");
        text_put(&v->made, r->attempts[i].endpoint);
    }
    set_made(v);
}

static void set_environment(struct value *v, const struct view *view, struct bytes name)
{
    char room[NAME_ROOM];
    struct text t;

    if (view->around->environment == NULL)
        return;
    text_init(&t, room, sizeof(room));
    text_put(&t, name);
    set_text(v, bytes_slice(bytes_of(view->around->environment(text_end(&t))), 0, VALUE_ROOM));
}

static void set_start(struct value *v, const struct request_record *r, struct bytes format)
{
    if (format.len == 0)
        date_utc(&v->made, r->started);
    else
        date_write(&v->made, r->started, format);
    set_made(v);
}

/* Blanks would end the field for whoever reads the line. */
static void set_details(struct value *v, const char *details)
{
    struct bytes b = bytes_of(details);

    for (size_t i = 0; i < b.len; i++)
        text_char(&v->made, b.data[i] == ' ' ? '_' : (char)b.data[i]);
    set_made(v);
}

static void set_digits(struct value *v, uint64_t number)
{
    text_u64(&v->made, number);
    set_made(v);
}

static void set_kept(struct value *v, const struct bytes *headers, uint32_t count, uint32_t index)
{
    if (headers != NULL && index < count)
        set_text(v, headers[index]);
}

/* What REQ() and RESP() find; false: |op| is none of theirs. */
static bool header_value(struct value *v, const struct record_copy *c, enum access_op op,
                         uint32_t index)
{
    const struct request_record *r = &c->record;

    if (op == ACCESS_METHOD)
        set_fact(v, c, r->method, RECORD_TEXT_method);
    else if (op == ACCESS_PATH)
        set_fact(v, c, r->path, RECORD_TEXT_path);
    else if (op == ACCESS_AUTHORITY)
        set_fact(v, c, r->authority, RECORD_TEXT_authority);
    else if (op == ACCESS_SCHEME)
        set_word(v, "http");
    else if (op == ACCESS_USER_AGENT)
        set_fact(v, c, r->user_agent, RECORD_TEXT_user_agent);
    else if (op == ACCESS_REQUEST_ID)
        set_fact(v, c, r->request_id, RECORD_TEXT_request_id);
    else if (op == ACCESS_FORWARDED_FOR)
        set_fact(v, c, r->forwarded_for, RECORD_TEXT_forwarded_for);
    else if (op == ACCESS_STATUS_TEXT && r->status != 0)
        set_digits(v, r->status);
    else if (op == ACCESS_SERVICE_TIME_TEXT && r->from_upstream)
        set_digits(v, r->upstream_service_time / NS_PER_MS);
    else if (op == ACCESS_KEPT_REQUEST)
        set_kept(v, r->request_headers, r->request_header_count, index);
    else if (op == ACCESS_KEPT_RESPONSE)
        set_kept(v, r->response_headers, r->response_header_count, index);
    else
        return op >= ACCESS_LITERAL;
    return true;
}

static void response_value(struct value *v, const struct request_record *r, enum access_op op)
{
    if (op == ACCESS_RESPONSE_CODE)
        set_number(v, r->status);
    else if (op == ACCESS_RESPONSE_CODE_DETAILS)
        set_details(v, r->details);
    else if (op == ACCESS_RESPONSE_FLAGS)
        set_flags(v, r->flags, flags_write);
    else if (op == ACCESS_RESPONSE_FLAGS_LONG)
        set_flags(v, r->flags, flags_write_long);
    else if (op == ACCESS_BYTES_RECEIVED)
        set_number(v, r->bytes_received);
    else if (op == ACCESS_BYTES_SENT)
        set_number(v, r->bytes_sent);
    else if (op == ACCESS_TERMINATION)
        set_details(v, r->termination);
    else if (op == ACCESS_PROTOCOL)
        set_word(v, r->protocol);
    else if (op == ACCESS_ROUTE_NAME)
        set_text(v, r->route);
}

static void time_value(struct value *v, const struct request_record *r, enum access_op op)
{
    bool answered = r->response_duration != MONO_NEVER && r->duration >= r->response_duration;

    if (op == ACCESS_DURATION)
        set_ms(v, r->duration);
    else if (op == ACCESS_REQUEST_DURATION)
        set_ms(v, r->request_duration);
    else if (op == ACCESS_RESPONSE_DURATION)
        set_ms(v, r->response_duration);
    else if (op == ACCESS_RESPONSE_TX_DURATION && answered)
        set_ms(v, r->duration - r->response_duration);
    else if (op == ACCESS_QUEUE_TIME)
        set_ms(v, r->queue_time);
    else if (op == ACCESS_SERVICE_TIME)
        set_ms(v, r->service_time);
}

static void place_value(struct value *v, const struct request_record *r, enum access_op op)
{
    if (op == ACCESS_UPSTREAM_HOST)
        set_text(v, r->upstream_host);
    else if (op == ACCESS_UPSTREAM_HOSTS_ATTEMPTED)
        set_hosts(v, r);
    else if (op == ACCESS_ATTEMPT_COUNT)
        set_number(v, r->attempt_count);
    else if (op == ACCESS_UPSTREAM_CLUSTER || op == ACCESS_UPSTREAM_CLUSTER_RAW)
        set_text(v, r->cluster);
    else if (op == ACCESS_TRANSPORT_FAILURE)
        set_word(v, r->transport_failure);
    else if (op == ACCESS_DIRECT_REMOTE || op == ACCESS_DIRECT_REMOTE_IP)
        set_address(v, &r->downstream_remote,
                    op == ACCESS_DIRECT_REMOTE ? WITH_PORT : WITHOUT_PORT);
    else if (op == ACCESS_REMOTE || op == ACCESS_REMOTE_IP)
        set_remote(v, r, op == ACCESS_REMOTE ? WITH_PORT : WITHOUT_PORT);
    else if (op == ACCESS_LOCAL || op == ACCESS_LOCAL_IP)
        set_address(v, &r->downstream_local, op == ACCESS_LOCAL ? WITH_PORT : WITHOUT_PORT);
}

/* At most one of the four groups knows |op|; what none knows is missing. */
static void look_up(struct value *v, const struct view *view, const struct access_item *item,
                    enum access_op op, uint32_t index)
{
    const struct request_record *r = &view->copy->record;

    if (header_value(v, view->copy, op, index))
        return;
    if (op == ACCESS_START_TIME)
        set_start(v, r, item->text);
    else if (op == ACCESS_ENVIRONMENT)
        set_environment(v, view, item->text);
    else if (op == ACCESS_HOSTNAME)
        set_word(v, view->around->hostname);
    response_value(v, r, op);
    time_value(v, r, op);
    place_value(v, r, op);
}

static void value_init(struct value *v)
{
    v->text = BYTES_NONE;
    v->number = 0;
    v->is_number = false;
    v->cut = false;
    text_init(&v->made, v->room, sizeof(v->room));
}

static void find_value(struct value *v, const struct view *view, const struct access_item *item)
{
    value_init(v);
    look_up(v, view, item, item->op, item->index);
    if (!found(v) && item->other != ACCESS_NOTHING)
        look_up(v, view, item, item->other, item->other_index);
    if (v->is_number || item->limit == 0 || v->text.len <= item->limit)
        return;
    v->text = bytes_slice(v->text, 0, item->limit);
    v->cut = false; /* as short as it was asked for */
}

/* As it is, for JSON, which escapes. */
static void put_raw(struct text *t, const struct value *v)
{
    if (v->is_number)
        text_u64(t, v->number);
    else if (v->text.len == 0)
        text_char(t, '-');
    else
        text_put(t, v->text);
    if (v->cut)
        text_str(t, CUT_MARK);
}

/* --- text --- */

/* What would break the line or its quoted fields is escaped, as nginx does. */
static void put_escaped(struct text *t, struct bytes b)
{
    size_t plain = 0;

    for (size_t i = 0; i < b.len; i++) {
        uint8_t c = b.data[i];

        if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\')
            continue;
        text_put(t, bytes_slice(b, plain, i - plain));
        text_str(t, "\\x");
        text_hex(t, c, 2);
        plain = i + 1;
    }
    text_put(t, bytes_skip(b, plain));
}

static void put_value(struct text *t, const struct view *view, const struct access_item *item)
{
    struct value v;

    find_value(&v, view, item);
    if (v.is_number || v.text.len == 0) {
        put_raw(t, &v);
        return;
    }
    put_escaped(t, v.text);
    if (v.cut)
        text_str(t, CUT_MARK);
}

static void put_text(struct text *t, const struct view *view)
{
    const struct access_program *p = &view->format->text;

    for (uint32_t i = 0; i < p->count; i++) {
        if (p->items[i].op == ACCESS_LITERAL)
            text_put(t, p->items[i].text);
        else
            put_value(t, view, &p->items[i]);
    }
}

/* --- JSON --- */

/* One operator and nothing else: its type stays, and what is missing is null. */
static void json_alone(struct json *j, const struct access_key *key, struct text *scratch,
                       const struct view *view)
{
    struct value v;

    find_value(&v, view, &key->value.items[0]);
    if (v.is_number) {
        json_u64(j, NULL, v.number);
    } else if (!found(&v)) {
        json_null(j, NULL);
    } else {
        put_raw(scratch, &v);
        json_string(j, NULL, text_bytes(scratch));
    }
}

static void json_mixed(struct json *j, const struct access_key *key, struct text *scratch,
                       const struct view *view)
{
    struct value v;

    for (uint32_t i = 0; i < key->value.count; i++) {
        const struct access_item *item = &key->value.items[i];

        if (item->op == ACCESS_LITERAL) {
            text_put(scratch, item->text);
            continue;
        }
        find_value(&v, view, item);
        put_raw(scratch, &v);
    }
    json_string(j, NULL, text_bytes(scratch));
}

static void put_json(struct text *t, struct text *scratch, const struct view *view)
{
    struct json j;

    json_init(&j, t);
    json_object(&j, NULL);
    for (uint32_t i = 0; i < view->format->key_count; i++) {
        const struct access_key *key = &view->format->keys[i];
        bool alone = key->value.count == 1 && key->value.items[0].op != ACCESS_LITERAL;

        scratch->len = 0;
        json_key(&j, key->name);
        if (alone)
            json_alone(&j, key, scratch, view);
        else
            json_mixed(&j, key, scratch, view);
    }
    json_object_end(&j);
}

/* --- the line --- */

size_t access_render_room(const struct access_format *f)
{
    size_t room = ESCAPED * access_program_room(f, &f->text) + 64;

    for (uint32_t i = 0; i < f->key_count; i++)
        room += ESCAPED * (f->keys[i].name.len + access_program_room(f, &f->keys[i].value) + 2);
    return room;
}

void access_render(struct text *t, struct text *scratch, const struct access_format *f,
                   const struct record_copy *c, const struct access_surroundings *around)
{
    const struct view view = {.format = f, .copy = c, .around = around};

    if (f->key_count > 0)
        put_json(t, scratch, &view);
    else
        put_text(t, &view);
    text_char(t, '\n');
}
