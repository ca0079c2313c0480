/* SPDX-License-Identifier: Apache-2.0 */
/* The backend's control address: faults are set, shown and cleared; counts are read. */
#include <string.h>

#include "base/memory.h"
#include "codec/json.h"
#include "io/error.h"
#include "lab/backend_internal.h"
#include "lab/fault_json.h"
#include "lab/fault_kinds.h"

#define RETRY_AFTER (100 * NS_PER_MS)

#define BODY_MAX   65536
#define QUERY_MAX  64
#define WHY_ROOM   512
#define FAULT_ROOM 2048 /* one as JSON; a path may need six bytes for each of its own */

struct control_conn {
    struct served served;
    struct backend *backend;
    struct list link;
    struct buffer body;
    const struct control_route *route; /* NULL: there is none */
    char query[QUERY_MAX];
    bool known_path;
    bool too_large;
};

struct control_route {
    enum method method;
    const char *path;
    void (*answer)(struct control_conn *c);
};

static void reply(struct control_conn *c, uint32_t status, const char *type, struct bytes body)
{
    char room[128];
    struct text t;

    text_init(&t, room, sizeof(room));
    text_str(&t, "content-type: ");
    text_str(&t, type);
    text_str(&t, "\r\n");
    served_answer_with(
        &c->served,
        &(struct served_answer){.status = status, .length = body.len, .fields = text_bytes(&t)},
        body);
}

static void reply_error(struct control_conn *c, uint32_t status, struct bytes why)
{
    char room[WHY_ROOM * 6 + 64];
    struct text t;
    struct json j;

    text_init(&t, room, sizeof(room));
    json_init(&j, &t);
    json_object(&j, NULL);
    json_string(&j, "error", why);
    json_object_end(&j);
    text_char(&t, '\n');
    reply(c, status, "application/json", text_bytes(&t));
}

/* Room for everything that |write| may say, which is then sent. */
static void reply_json(struct control_conn *c, size_t room,
                       void (*write)(struct backend *b, struct json *j))
{
    char *data = memory_take(room);
    struct text t;
    struct json j;

    if (data == NULL) {
        reply_error(c, 503, BYTES("out of memory"));
        return;
    }
    text_init(&t, data, room);
    json_init(&j, &t);
    write(c->backend, &j);
    text_char(&t, '\n');
    if (t.failed)
        reply_error(c, 500, BYTES("the answer does not fit its buffer"));
    else
        reply(c, 200, "application/json", text_bytes(&t));
    memory_give(data);
}

static void write_faults(struct backend *b, struct json *j)
{
    json_object(j, NULL);
    json_array(j, "faults");
    for (uint32_t i = 0; i < b->faults.count; i++)
        fault_to_json(j, &b->faults.faults[i], b->loop->now);
    json_array_end(j);
    json_object_end(j);
}

static void get_faults(struct control_conn *c)
{
    fault_set_expire(&c->backend->faults, c->backend->loop->now);
    reply_json(c, (FAULTS_MAX + 1) * FAULT_ROOM, write_faults);
}

static void write_newest(struct backend *b, struct json *j)
{
    fault_to_json(j, &b->faults.faults[b->faults.count - 1], b->loop->now);
}

static void post_fault(struct control_conn *c)
{
    struct backend *b = c->backend;
    char room[WHY_ROOM];
    struct text why;
    struct fault f;

    text_init(&why, room, sizeof(room));
    if (!fault_from_json(buffer_bytes(&c->body), b->options.count, &f, &why)) {
        reply_error(c, 400, text_bytes(&why));
        return;
    }
    fault_set_expire(&b->faults, b->loop->now);
    if (fault_set_add(&b->faults, &f, b->loop->now) == NULL) {
        reply_error(c, 409,
                    BYTES("64 faults are set already; DELETE /fault clears them all, "
                          "DELETE /fault?id=N one of them"));
        return;
    }
    backend_faults_changed(b);
    reply_json(c, FAULT_ROOM, write_newest);
}

static void delete_faults(struct control_conn *c)
{
    struct bytes query = bytes_of(c->query);
    uint64_t id = 0;
    uint32_t cleared;
    char room[64];
    struct text t;

    if (query.len > 0 && (!bytes_start_with(query, BYTES("?id=")) ||
                          !bytes_parse_u64(bytes_skip(query, 4), &id) || id == 0)) {
        reply_error(c, 400,
                    BYTES("write DELETE /fault, or DELETE /fault?id=N with an id that "
                          "GET /fault shows"));
        return;
    }
    cleared = fault_set_clear(&c->backend->faults, id);
    if (id != 0 && cleared == 0) {
        reply_error(c, 404, BYTES("no such fault; GET /fault shows those that are set"));
        return;
    }
    backend_faults_changed(c->backend);
    text_init(&t, room, sizeof(room));
    text_str(&t, "{\"cleared\":");
    text_u64(&t, cleared);
    text_str(&t, "}\n");
    reply(c, 200, "application/json", text_bytes(&t));
}

static void write_counts(struct json *j, const struct backend_server *s)
{
#define X(name) json_u64(j, #name, s->counts.name);
    BACKEND_COUNTS(X)
#undef X
}

static void write_stats(struct backend *b, struct json *j)
{
    json_object(j, NULL);
    json_array(j, "servers");
    for (uint32_t i = 0; i < b->options.count; i++) {
        const struct backend_server *s = &b->servers[i];

        json_object(j, NULL);
        json_text(j, "address", s->name);
        json_bool(j, "listening", s->listener != NULL);
        json_u64(j, "connections", s->open);
        json_u64(j, "busy", s->slots.busy);
        json_u64(j, "waiting", s->slots.waiting);
        write_counts(j, s);
        json_object_end(j);
    }
    json_array_end(j);
    json_object_end(j);
}

static void get_stats(struct control_conn *c)
{
    reply_json(c, 1024 + 1024 * (size_t)c->backend->options.count, write_stats);
}

static void get_help(struct control_conn *c)
{
    reply(c, 200, "text/plain",
          BYTES("firebreak backend: control\n"
                "GET /stats         counts of each server\n"
                "GET /fault         faults that are set\n"
                "POST /fault        sets one, for example\n"
                "                   {\"fault\": \"delay\", \"value\": \"200ms\", \"server\": 0,\n"
                "                    \"probability\": 0.5, \"path\": \"/\", \"for\": \"10s\", "
                "\"after\": 100}\n"
                "DELETE /fault      clears all; DELETE /fault?id=N clears one\n"));
}

static const struct control_route routes[] = {
    {METHOD_GET, "/", get_help},
    {METHOD_GET, "/stats", get_stats},
    {METHOD_GET, "/fault", get_faults},
    {METHOD_POST, "/fault", post_fault},
    {METHOD_DELETE, "/fault", delete_faults},
};

#define ROUTE_COUNT (sizeof(routes) / sizeof(routes[0]))

static struct control_conn *conn_of(struct served *s)
{
    return CONTAINER_OF(s, struct control_conn, served);
}

static void on_head(struct served *s, const struct message_head *head)
{
    struct control_conn *c = conn_of(s);
    struct text query;

    c->route = NULL;
    c->known_path = c->too_large = false;
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        if (!bytes_equal(head->path, bytes_of(routes[i].path)))
            continue;
        c->known_path = true;
        if (head->method_id == routes[i].method)
            c->route = &routes[i];
    }
    text_init(&query, c->query, sizeof(c->query));
    text_put(&query, head->query.len < QUERY_MAX ? head->query : BYTES("?"));
    text_end(&query);
    served_read_body(s);
}

static void on_body(struct served *s, struct bytes data)
{
    struct control_conn *c = conn_of(s);

    if (c->too_large || buffer_len(&c->body) + data.len > BODY_MAX || !buffer_add(&c->body, data))
        c->too_large = true;
}

static void on_complete(struct served *s)
{
    struct control_conn *c = conn_of(s);

    if (c->too_large)
        reply_error(c, 413, BYTES("the body is larger than 64 KiB"));
    else if (c->route != NULL)
        c->route->answer(c);
    else if (c->known_path)
        reply_error(c, 405, BYTES("not with this method; GET / tells what there is"));
    else
        reply_error(c, 404, BYTES("there is /stats and /fault; GET / tells more"));
    buffer_take(&c->body, buffer_len(&c->body));
}

static void ignore(struct served *s)
{
    (void)s;
}

static void on_gone(struct served *s)
{
    struct control_conn *c = conn_of(s);

    list_remove(&c->link);
    buffer_release(&c->body);
    memory_give(c);
}

static const struct served_events events = {
    .head = on_head,
    .body = on_body,
    .complete = on_complete,
    .writable = ignore,
    .half_closed = ignore,
    .gone = on_gone,
};

static void accepted(void *owner, struct link *l, const struct address *peer)
{
    struct backend *b = owner;
    struct control_conn *c = memory_take(sizeof(*c));

    (void)peer;
    if (c == NULL) {
        link_abort(l);
        return;
    }
    c->backend = b;
    buffer_init(&c->body);
    list_push_back(&b->control_connections, &c->link);
    served_open(&c->served, &events, b->loop, l);
}

static void troubled(void *owner, int error)
{
    struct backend *b = owner;

    (void)error;
    schedule_arm(&b->loop->schedule, &b->control_retry, mono_after(b->loop->now, RETRY_AFTER));
}

static void accept_again(struct appointment *a, mono_ns now)
{
    (void)now;
    listener_resume(CONTAINER_OF(a, struct backend, control_retry)->control);
}

static const struct listener_events listener_events = {.accepted = accepted, .troubled = troubled};

int backend_control_open(struct backend *b)
{
    int err = poller_listen(b->loop->poller, &b->options.control, &(struct listen_options){0},
                            &b->control);

    appointment_init(&b->control_retry, accept_again);
    if (err == IO_OK)
        listener_own(b->control, &listener_events, b);
    else
        b->control = NULL;
    return err;
}

void backend_control_close(struct backend *b)
{
    if (b->control == NULL)
        return;
    listener_close(b->control);
    schedule_cancel(&b->loop->schedule, &b->control_retry);
    while (!list_empty(&b->control_connections))
        served_reset(&CONTAINER_OF(b->control_connections.next, struct control_conn, link)->served);
}
