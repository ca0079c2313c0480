/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection to a server: a request is read, waits for a worker, is worked on, is answered.
 * A worker is busy until the answer is out, or until its fault lets go of it.
 */
#include <assert.h>

#include "lab/backend_internal.h"

#define HELD_MAX    (600 * NS_PER_S) /* no fault keeps a connection longer */
#define RESET_AFTER (20 * NS_PER_MS) /* so that what was sent before is read before the RST */
#define FILL_PIECE  16384
#define TEXT_ROOM   160
#define FIELDS_ROOM 1024
#define ECHOED_MAX  200

static const char fill_line[] = "firebreak backend: bytes that are here to be counted, 64 a row.\n";

static struct backend_conn *conn_of(struct served *s)
{
    return CONTAINER_OF(s, struct backend_conn, served);
}

static struct schedule *schedule_of(struct backend_conn *c)
{
    return &c->served.loop->schedule;
}

static mono_ns now_of(const struct backend_conn *c)
{
    return c->served.loop->now;
}

static bool is_filler(const struct backend_conn *c)
{
    return c->page == PAGE_BYTES && c->plan.ending != PLAN_STATUS;
}

static bool echoes(const struct backend_conn *c)
{
    return c->page == PAGE_ECHO && c->plan.ending != PLAN_STATUS;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void release(struct backend_conn *c)
{
    schedule_cancel(schedule_of(c), &c->due);
    list_remove(&c->link);
    slab_give(&c->server->backend->slab, c);
}

static void hold(struct backend_conn *c)
{
    c->work = WORK_HELD;
    c->server->counts.held++;
    schedule_arm(schedule_of(c), &c->due, mono_min(c->plan.until, mono_after(now_of(c), HELD_MAX)));
}

static span_ns service_time(struct backend_conn *c)
{
    struct backend *b = c->server->backend;

    if (c->page == PAGE_HEALTH)
        return 0;
    if (c->page == PAGE_DELAY)
        return c->number * NS_PER_MS;
    return distribution_draw(&b->options.service, &b->rng);
}

/* A worker has it. */
static void begin_work(struct backend_conn *c)
{
    c->work = WORK_SERVICE;
    if (c->plan.ending == PLAN_HANG || c->plan.ending == PLAN_STOP_READING)
        hold(c);
    else
        schedule_arm(schedule_of(c), &c->due,
                     request_plan_end(&c->plan, now_of(c), service_time(c)));
}

static void leave_slot(struct backend_conn *c)
{
    struct list *next;

    if (!c->in_slot)
        return;
    c->in_slot = false;
    next = slots_leave(&c->server->slots);
    if (next != NULL) {
        struct backend_conn *other = CONTAINER_OF(next, struct backend_conn, job);

        other->in_slot = true;
        begin_work(other);
    }
}

static void count_answer(struct backend_conn *c, uint32_t status)
{
    struct backend_counts *n = &c->server->counts;

    if (status < 300)
        n->answered_2xx++;
    else if (status < 400)
        n->answered_3xx++;
    else if (status < 500)
        n->answered_4xx++;
    else
        n->answered_5xx++;
}

static void put_fields(struct backend_conn *c, struct text *t)
{
    text_str(t, "x-firebreak-backend: ");
    text_str(t, c->server->name);
    text_str(t, "\r\n");
    if (c->page == PAGE_ECHO && c->plan.ending != PLAN_STATUS)
        text_str(t, c->echo_lines);
    else if (is_filler(c))
        text_str(t, "content-type: application/octet-stream\r\n");
    else
        text_str(t, "content-type: text/plain\r\n");
}

/* The worker is free, then the answer is sent off; |c| may be gone after. */
static void finish(struct backend_conn *c)
{
    c->work = WORK_NONE;
    schedule_cancel(schedule_of(c), &c->due);
    leave_slot(c);
    served_end(&c->served);
}

static void turn_away(struct backend_conn *c)
{
    char room[FIELDS_ROOM];
    struct bytes body = BYTES("the queue is full\n");
    struct text t;

    c->server->counts.queue_full++;
    count_answer(c, 503);
    text_init(&t, room, sizeof(room));
    text_str(&t, "content-type: text/plain\r\nx-firebreak-backend: ");
    text_str(&t, c->server->name);
    text_str(&t, "\r\n");
    c->work = WORK_NONE;
    served_answer_with(
        &c->served,
        &(struct served_answer){.status = 503, .length = body.len, .fields = text_bytes(&t)}, body);
}

/* A request that can be worked on: what a worker would need of it is here. */
static void queue_up(struct backend_conn *c)
{
    if (c->page == PAGE_HEALTH) {
        begin_work(c); /* probes have a worker of their own, as they have in most servers */
        return;
    }
    switch (slots_arrive(&c->server->slots, &c->job)) {
    case SLOTS_RUN:
        c->in_slot = true;
        begin_work(c);
        break;
    case SLOTS_WAIT:
        c->work = WORK_QUEUED;
        break;
    case SLOTS_FULL:
        turn_away(c);
        break;
    }
}

static void write_text(struct backend_conn *c, uint64_t n)
{
    char room[TEXT_ROOM];
    struct bytes text = backend_page_text(c, room, sizeof(room));
    size_t len = (size_t)smaller(n, c->left);

    served_write(&c->served, bytes_slice(text, text.len - (size_t)c->left, len));
    c->left -= len;
}

/* A long body in pieces, as long as the peer takes them. */
static void write_filler(struct backend_conn *c, uint64_t n)
{
    uint8_t piece[FILL_PIECE];

    for (size_t i = 0; i < sizeof(piece); i += sizeof(fill_line) - 1)
        memcpy(piece + i, fill_line, sizeof(fill_line) - 1);
    while (n > 0 && c->left > 0 && !c->served.owes_writable && !c->served.broken) {
        uint64_t len = smaller(smaller(n, c->left), sizeof(piece));

        served_write(&c->served, bytes_from(piece, (size_t)len));
        c->left -= len;
        n -= len;
    }
}

/* The next |n| bytes of the body, or fewer. */
static void write_body(struct backend_conn *c, uint64_t n)
{
    if (c->served.bodiless)
        c->left = 0;
    else if (is_filler(c))
        write_filler(c, n);
    else
        write_text(c, n);
}

static void go_on(struct backend_conn *c)
{
    bool drips = c->plan.drip > 0;

    write_body(c, drips ? c->plan.drip_bytes : c->left);
    if (c->left == 0 || c->served.broken) {
        finish(c);
    } else if (drips) {
        served_flush(&c->served);
        schedule_arm(schedule_of(c), &c->due, mono_after(now_of(c), c->plan.drip));
    }
}

static void cut_short(struct backend_conn *c)
{
    write_body(c, c->left / 2);
    served_flush(&c->served);
    c->server->counts.resets_mid_body++;
    c->work = WORK_RESETTING;
    schedule_arm(schedule_of(c), &c->due, mono_after(now_of(c), RESET_AFTER));
}

static uint64_t body_length(const struct backend_conn *c)
{
    char room[TEXT_ROOM];

    if (is_filler(c))
        return c->number;
    return backend_page_text(c, room, sizeof(room)).len;
}

/* The service time is over. */
static void respond(struct backend_conn *c)
{
    char room[FIELDS_ROOM];
    struct text fields;
    struct served_answer a = {.status = backend_page_status(c)};

    text_init(&fields, room, sizeof(room));
    put_fields(c, &fields);
    a.fields = text_bytes(&fields);
    count_answer(c, a.status);
    c->left = echoes(c) ? 0 : body_length(c);
    a.length = echoes(c) ? c->length : c->left;
    a.framing = echoes(c) && !c->stated_length ? SERVED_STREAM : SERVED_LENGTH;
    c->work = WORK_ANSWERING;
    if (echoes(c))
        served_invite_body(&c->served);
    served_begin(&c->served, &a);
    if (c->plan.ending == PLAN_RESET_MID_BODY)
        cut_short(c);
    else if (echoes(c))
        served_read_body(&c->served);
    else
        go_on(c);
}

/* The one whose peer has gone: its worker did not know until now. */
static void bury(struct backend_conn *c)
{
    leave_slot(c);
    release(c);
}

static void due(struct appointment *a, mono_ns now)
{
    struct backend_conn *c = CONTAINER_OF(a, struct backend_conn, due);

    (void)now;
    if (c->orphan) {
        bury(c);
        return;
    }
    switch (c->work) {
    case WORK_SERVICE:
        respond(c);
        break;
    case WORK_ANSWERING:
        go_on(c);
        break;
    case WORK_HELD:
    case WORK_RESETTING:
        served_reset(&c->served);
        break;
    case WORK_NONE:
    case WORK_READING:
    case WORK_QUEUED:
        break;
    }
}

static void put_line(struct text *t, const char *name, struct bytes value)
{
    text_str(t, name);
    text_str(t, ": ");
    text_put(t, bytes_slice(value, 0, ECHOED_MAX));
    text_str(t, "\r\n");
}

/* The few fields of the request that /echo shows. */
static void keep_echo_lines(struct backend_conn *c, const struct message_head *head)
{
    struct bytes type = BYTES("application/octet-stream");
    struct text t;

    for (uint32_t i = 0; i < head->field_count; i++)
        if (bytes_equal_nocase(head->fields[i].name, BYTES("content-type")))
            type = head->fields[i].value;
    text_init(&t, c->echo_lines, sizeof(c->echo_lines));
    put_line(&t, "content-type", type);
    put_line(&t, "x-echo-method", bytes_slice(head->method, 0, 32));
    put_line(&t, "x-echo-target", head->target);
    text_end(&t);
    assert(!t.failed);
}

static void on_head(struct served *s, const struct message_head *head)
{
    struct backend_conn *c = conn_of(s);
    struct backend *b = c->server->backend;

    c->server->counts.requests++;
    c->page = backend_page(head->path, &c->number);
    c->stated_length = head->body != BODY_CHUNKED; /* none is a length of 0 */
    c->length = head->body == BODY_LENGTH ? head->length : 0;
    c->work = WORK_READING;
    if (c->page == PAGE_ECHO)
        keep_echo_lines(c, head);
    fault_set_plan(&b->faults, c->server->index, head->path, &b->rng, b->loop->now, &c->plan);
    if (c->plan.heavy_bytes > 0 && c->page == PAGE_TEXT) {
        c->page = PAGE_BYTES;
        c->number = c->plan.heavy_bytes;
    }
    if (b->faults.count > 0)
        backend_arm_expiry(b);
    if (c->plan.ending == PLAN_STOP_READING)
        served_stop_reading(s);
    if (c->plan.ending == PLAN_STOP_READING || echoes(c))
        queue_up(c);
    else
        served_read_body(s);
}

static void on_body(struct served *s, struct bytes data)
{
    struct backend_conn *c = conn_of(s);

    if (c->work != WORK_ANSWERING || !echoes(c))
        return;
    served_write(s, data);
    served_flush(s);
}

static void on_complete(struct served *s)
{
    struct backend_conn *c = conn_of(s);

    if (c->work == WORK_READING)
        queue_up(c);
    else if (c->work == WORK_ANSWERING)
        finish(c);
}

static void on_writable(struct served *s)
{
    struct backend_conn *c = conn_of(s);

    if (c->work == WORK_ANSWERING && !echoes(c) && c->plan.drip == 0)
        go_on(c);
}

static void on_half_closed(struct served *s)
{
    if (conn_of(s)->work == WORK_HELD)
        served_close(s);
}

static void on_gone(struct served *s)
{
    struct backend_conn *c = conn_of(s);

    c->server->open--;
    if (c->work != WORK_NONE && c->work != WORK_RESETTING && c->work != WORK_HELD)
        c->server->counts.abandoned++;
    if (c->work == WORK_QUEUED)
        slots_forget(&c->server->slots, &c->job);
    if (c->work == WORK_SERVICE && c->in_slot) {
        c->orphan = true;
        return;
    }
    bury(c);
}

static const struct served_events events = {
    .head = on_head,
    .body = on_body,
    .complete = on_complete,
    .writable = on_writable,
    .half_closed = on_half_closed,
    .gone = on_gone,
};

void backend_conn_open(struct backend_server *server, struct link *link)
{
    struct backend_conn *c = slab_take(&server->backend->slab);

    if (c == NULL) {
        link_abort(link);
        return;
    }
    memset(c, 0, sizeof(*c));
    c->server = server;
    list_init(&c->job);
    appointment_init(&c->due, due);
    list_push_back(&server->connections, &c->link);
    server->counts.accepted++;
    server->open++;
    served_open(&c->served, &events, server->backend->loop, link);
}

/* Held by a fault that is set no more. */
static struct backend_conn *find_held(struct backend_server *server)
{
    struct fault_set *faults = &server->backend->faults;

    for (struct list *l = server->connections.next; l != &server->connections; l = l->next) {
        struct backend_conn *c = CONTAINER_OF(l, struct backend_conn, link);

        if (c->work == WORK_HELD && !fault_set_has(faults, c->plan.fault))
            return c;
    }
    return NULL;
}

/* Closing one starts the next in line, which may be held too: so the search begins anew. */
void backend_release_held(struct backend *b)
{
    for (uint32_t i = 0; i < b->options.count; i++) {
        struct backend_conn *c;

        while ((c = find_held(&b->servers[i])) != NULL)
            served_reset(&c->served);
    }
}

void backend_drop_connections(struct backend_server *server)
{
    while (!list_empty(&server->connections)) {
        struct backend_conn *c = CONTAINER_OF(server->connections.next, struct backend_conn, link);

        if (c->orphan)
            release(c);
        else
            served_reset(&c->served); /* may make an orphan of it: found again */
    }
}
