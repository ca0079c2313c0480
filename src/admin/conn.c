/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One admin connection: one request after the other, an answer whole before the next request is
 * looked at, and no more than one a turn, so that a pipeline of costly pages cannot hold up the
 * control loop. What is work (work.h) waits for its slice in a line of all connections.
 */
#include <assert.h>

#include "admin/server.h"
#include "admin/work.h"
#include "base/memory.h"
#include "base/text.h"

#define HEAD_ROOM 512
#define AT_ONCE   ((mono_ns)0) /* in the past: the next time that timers fire */

enum conn_state {
    CONN_REQUEST, /* reads a head, or waits for one */
    CONN_ANSWER,  /* an answer is being written; reading is stopped */
    CONN_BODY,    /* answered already; the rest of the request is read and thrown away */
    CONN_LINGER   /* nothing more to say: until the client closes, so that it reads the answer */
};

struct conn {
    struct list in_admin;
    struct admin *admin;
    struct link *link;
    enum conn_state state;
    struct timer deadline;
    struct timer next_turn; /* the next request is here already */
    struct timer nap;       /* of its work */
    uint8_t *in;            /* what was received and not yet used */
    size_t in_len;
    struct http1_scan scan;
    struct http1_body body;
    uint64_t body_seen;
    bool reading;
    bool served; /* once, at least */
    mono_ns opened_at;
    struct admin_call call; /* being answered */
    struct list in_working; /* its work waits for a slice; else to itself */
    char head_room[HEAD_ROOM];
    struct text head;  /* of the answer or of a chunk */
    struct page page;  /* its body, or the next piece of it */
    size_t sent;       /* of both */
    bool with_body;    /* false: HEAD */
    bool begun;        /* the answer's head is out */
    bool chunked;      /* else its length is known, or its end is that of the connection */
    bool old;          /* the client speaks HTTP/1.0 */
    bool last;         /* closes after this answer */
    uint32_t *counter; /* of the admin's: what it is one of */
};

static const struct http1_limits limits = {.head_bytes = ADMIN_HEAD_MAX, .fields = 100};

static struct wheel *wheel_of(struct conn *c)
{
    return control_wheel(c->admin->setup.control);
}

static void arm(struct conn *c, span_ns after)
{
    mono_ns now = control_now(c->admin->setup.control);

    wheel_arm(wheel_of(c), &c->deadline, mono_after(now, after));
}

/* The link has been closed or aborted. */
static void forget(struct conn *c)
{
    wheel_cancel(wheel_of(c), &c->deadline);
    wheel_cancel(wheel_of(c), &c->next_turn);
    wheel_cancel(wheel_of(c), &c->nap);
    list_remove(&c->in_admin);
    list_remove(&c->in_working);
    work_end(&c->call);
    (*c->counter)--;
    page_release(&c->page);
    memory_give(c->in);
    memory_give(c);
}

static void close_now(struct conn *c)
{
    link_close(c->link);
    forget(c);
}

static void abort_now(struct conn *c)
{
    link_abort(c->link);
    forget(c);
}

/* --- input --- */

static bool keep(struct conn *c, struct bytes data)
{
    uint8_t *in = memory_resize(c->in, c->in_len + data.len);

    if (in == NULL)
        return false;
    memcpy(in + c->in_len, data.data, data.len);
    c->in = in;
    c->in_len += data.len;
    return true;
}

static void use(struct conn *c, size_t n)
{
    assert(n <= c->in_len);
    c->in_len -= n;
    if (c->in_len > 0) {
        memmove(c->in, c->in + n, c->in_len);
        return;
    }
    memory_give(c->in);
    c->in = NULL;
}

/* --- the answer --- */

/* |whole|: the page is all there is. */
static void write_head(struct conn *c, bool whole)
{
    const struct admin_call *call = &c->call;
    struct text *t = &c->head;

    c->chunked = !whole && !c->old;
    c->last = c->last || (!whole && c->old);
    text_str(t, "HTTP/1.1 ");
    text_u64(t, call->status);
    text_char(t, ' ');
    text_str(t, http1_reason(call->status));
    text_str(t, "\r\ncontent-type: ");
    text_str(t, call->type);
    text_str(t, "\r\ncache-control: no-cache, max-age=0\r\nx-content-type-options: nosniff\r\n");
    if (call->allow != NULL) {
        text_str(t, "allow: ");
        text_str(t, call->allow);
        text_str(t, "\r\n");
    }
    if (whole) {
        text_str(t, "content-length: ");
        text_u64(t, c->page.text.len);
        text_str(t, "\r\n");
    } else if (c->chunked) {
        text_str(t, "transfer-encoding: chunked\r\n");
    }
    text_str(t, c->last ? "connection: close\r\n\r\n" : "\r\n");
}

/* The piece becomes a chunk; the last one has the end behind it. An empty chunk would be the end.
 */
static void write_chunk(struct conn *c, bool final)
{
    size_t len = c->page.text.len;

    if (len > 0) {
        text_hex(&c->head, len, 8);
        text_str(&c->head, "\r\n");
        page_str(&c->page, "\r\n");
    }
    if (final)
        page_str(&c->page, "0\r\n\r\n");
}

static void read_more(struct conn *c)
{
    if (!c->reading)
        link_read_start(c->link);
    c->reading = true;
}

static void read_no_more(struct conn *c)
{
    if (c->reading)
        link_read_stop(c->link);
    c->reading = false;
}

/* The last answer is out. */
static void linger(struct conn *c)
{
    c->state = CONN_LINGER;
    link_shut(c->link);
    arm(c, ADMIN_LINGER);
    read_more(c);
}

/* What is here already is looked at in the next turn, and nothing is read before. */
static void go_on(struct conn *c)
{
    if (c->in_len > 0) {
        read_no_more(c);
        arm(c, ADMIN_REQUEST_TIMEOUT);
        wheel_arm(wheel_of(c), &c->next_turn, control_now(c->admin->setup.control));
        return;
    }
    arm(c, c->state == CONN_REQUEST ? ADMIN_IDLE_TIMEOUT : ADMIN_REQUEST_TIMEOUT);
    read_more(c);
}

static void answer_done(struct conn *c)
{
    page_release(&c->page);
    c->served = true;
    if (c->last) {
        linger(c);
        return;
    }
    c->state = http1_body_done(&c->body) ? CONN_REQUEST : CONN_BODY;
    go_on(c);
}

/* Its work gets a slice when those before it have had theirs. */
static void wait_for_slice(struct conn *c)
{
    struct admin *a = c->admin;

    list_push_back(&a->working, &c->in_working);
    wheel_arm(wheel_of(c), &a->work, AT_ONCE);
}

static void nap_over(struct timer *t, mono_ns now)
{
    (void)now;
    wait_for_slice(CONTAINER_OF(t, struct conn, nap));
}

/* All is sent: the client keeps up. Whether it is still there is seen by reading. */
static void nap(struct conn *c)
{
    if (c->in_len == 0)
        read_more(c);
    arm(c, ADMIN_ANSWER_TIMEOUT);
    wheel_arm(wheel_of(c), &c->nap, mono_after(control_now(c->admin->setup.control), WORK_NAP));
}

static void piece_done(struct conn *c)
{
    if (c->call.work == NULL) {
        answer_done(c);
        return;
    }
    page_clear(&c->page);
    wait_for_slice(c);
}

/* Writes what the link takes; goes on when it is writable again. May end the connection. */
static void write_on(struct conn *c)
{
    size_t head = c->head.len;
    size_t whole = head + (c->with_body ? c->page.text.len : 0);

    while (c->sent < whole) {
        struct bytes parts[2] = {
            bytes_skip(text_bytes(&c->head), c->sent),
            bytes_skip(text_bytes(&c->page.text), c->sent < head ? 0 : c->sent - head),
        };
        size_t first = parts[0].len == 0 ? 1 : 0;
        size_t n = (c->with_body && parts[1].len > 0 ? 2 : 1) - first;
        ptrdiff_t taken = link_write(c->link, parts + first, n);

        if (taken < 0) {
            abort_now(c);
            return;
        }
        if (taken == 0)
            return;
        c->sent += (size_t)taken;
    }
    piece_done(c);
}

/* What the page holds. |final|: nothing comes after it. */
static void send_piece(struct conn *c, bool final)
{
    text_init(&c->head, c->head_room, sizeof(c->head_room));
    if (!c->begun)
        write_head(c, final);
    c->begun = true;
    if (c->chunked && c->with_body)
        write_chunk(c, final);
    assert(!c->head.failed);
    if (c->page.text.failed) {
        abort_now(c);
        return;
    }
    c->sent = 0;
    write_on(c);
}

static void begin_answer(struct conn *c)
{
    c->begun = false;
    c->chunked = false;
    c->state = CONN_ANSWER;
    read_no_more(c);
    arm(c, ADMIN_ANSWER_TIMEOUT);
    if (c->call.work == NULL) {
        send_piece(c, true);
    } else if (c->with_body) {
        wait_for_slice(c);
    } else {
        work_end(&c->call);
        send_piece(c, false);
    }
}

static void work_failed(struct conn *c)
{
    work_end(&c->call);
    if (c->begun)
        abort_now(c);
    else
        send_piece(c, true);
}

static void work_on(struct conn *c)
{
    switch (admin_work(c->admin, &c->call)) {
    case WORK_MORE:
        if (c->page.text.len > 0)
            send_piece(c, false);
        else
            wait_for_slice(c);
        return;
    case WORK_WAITS:
        list_push_back(&c->admin->working, &c->in_working);
        c->admin->work_waits = true;
        return;
    case WORK_NAPS:
        nap(c);
        return;
    case WORK_DONE:
        work_end(&c->call);
        send_piece(c, true);
        return;
    case WORK_FAILED:
        work_failed(c);
        return;
    }
}

void conn_work(struct admin *a)
{
    struct list *first = list_pop_front(&a->working);
    struct control *control = a->setup.control;

    a->work_waits = false;
    if (first != NULL)
        work_on(CONTAINER_OF(first, struct conn, in_working));
    if (!list_empty(&a->working))
        wheel_arm(control_wheel(control), &a->work,
                  a->work_waits ? mono_after(control_now(control), WORK_PAUSE) : AT_ONCE);
}

/* What is no request, or took too long. */
static void refuse(struct conn *c, uint32_t status, const char *why)
{
    c->call = (struct admin_call){.page = &c->page, .status = status, .type = ADMIN_TEXT};
    page_release(&c->page);
    page_str(&c->page, why);
    page_str(&c->page, "\n");
    c->last = true;
    c->with_body = true;
    begin_answer(c);
}

/* The connection may be gone afterwards; what is asked for is done with the answer on its way. */
static void perform(struct control *control, enum admin_action action)
{
    switch (action) {
    case ADMIN_NOTHING:
        return;
    case ADMIN_SHED:
        control_shed(control);
        return;
    case ADMIN_DRAIN:
        control_drain(control);
        return;
    case ADMIN_QUIT:
        control_quit(control);
        return;
    }
}

/* The head's views end with use(): all that is needed of it is taken before. */
static void answer(struct conn *c, size_t used)
{
    const struct message_head *head = &c->admin->head;
    struct control *control = c->admin->setup.control;
    enum admin_action action;

    c->call = (struct admin_call){
        .query = head->query, .page = &c->page, .status = 200, .type = ADMIN_TEXT};
    admin_ask(c->admin, &c->call);
    action = c->call.action;
    c->with_body = head->method_id != METHOD_HEAD;
    c->old = head->minor == 0;
    c->last = !head->keep_alive || c->old || head->length > ADMIN_BODY_MAX;
    c->body_seen = 0;
    http1_body_init(&c->body, head, ADMIN_HEAD_MAX);
    c->scan = (struct http1_scan){0};
    use(c, used);
    begin_answer(c);
    perform(control, action);
}

/* --- one step --- */

static void read_request(struct conn *c)
{
    struct http1_fault fault;
    size_t used = 0;

    switch (http1_parse_request(bytes_from(c->in, c->in_len), &c->scan, &limits, &c->admin->head,
                                &used, &fault)) {
    case HTTP1_OK:
        answer(c, used);
        return;
    case HTTP1_BAD:
        refuse(c, fault.status, fault.why);
        return;
    case HTTP1_MORE:
        read_more(c);
        return;
    }
}

/* A body that is broken or long ends the connection: its answer is out already. */
static void read_body(struct conn *c)
{
    struct bytes in = bytes_from(c->in, c->in_len);
    struct bytes data, trailers;
    struct http1_fault fault;
    enum http1_result result = HTTP1_OK;

    while (result == HTTP1_OK && !http1_body_done(&c->body))
        result = http1_body_read(&c->body, &in, &data, &trailers, &fault);
    c->body_seen += c->in_len - in.len;
    use(c, c->in_len - in.len);
    if (result == HTTP1_BAD || c->body_seen > ADMIN_BODY_MAX) {
        linger(c);
    } else if (!http1_body_done(&c->body)) {
        read_more(c);
    } else {
        c->state = CONN_REQUEST;
        go_on(c);
    }
}

static void step(struct conn *c)
{
    switch (c->state) {
    case CONN_REQUEST:
        read_request(c);
        return;
    case CONN_BODY:
        read_body(c);
        return;
    case CONN_ANSWER:
    case CONN_LINGER:
        return;
    }
}

static void next_turn_due(struct timer *t, mono_ns now)
{
    (void)now;
    step(CONTAINER_OF(t, struct conn, next_turn));
}

static void deadline_due(struct timer *t, mono_ns now)
{
    struct conn *c = CONTAINER_OF(t, struct conn, deadline);
    (void)now;

    switch (c->state) {
    case CONN_REQUEST:
        if (c->in_len > 0)
            refuse(c, 408, "request timeout");
        else
            close_now(c);
        return;
    case CONN_ANSWER:
        abort_now(c);
        return;
    case CONN_BODY:
    case CONN_LINGER:
        close_now(c);
        return;
    }
}

/* --- what the link tells --- */

static void on_opened(void *owner)
{
    (void)owner; /* accepted links are open already */
}

static void on_received(void *owner, struct bytes data)
{
    struct conn *c = owner;

    if (c->state == CONN_LINGER)
        return;
    if (c->state == CONN_REQUEST && c->in_len == 0)
        arm(c, ADMIN_REQUEST_TIMEOUT);
    if (c->state == CONN_ANSWER)
        read_no_more(c); /* its next request; one piece of it is enough for now */
    if (keep(c, data))
        step(c);
    else
        abort_now(c);
}

/* Told only while more is read: what is here, if anything, is no whole request, or its answer has
 * no end. */
static void on_ended(void *owner)
{
    close_now(owner);
}

static void on_writable(void *owner)
{
    struct conn *c = owner;

    if (c->state == CONN_ANSWER && list_empty(&c->in_working) && !timer_armed(&c->nap))
        write_on(c);
}

static void on_failed(void *owner, int error)
{
    (void)error;
    close_now(owner);
}

static const struct link_events events = {.opened = on_opened,
                                          .received = on_received,
                                          .ended = on_ended,
                                          .writable = on_writable,
                                          .failed = on_failed};

/* --- life --- */

static struct conn *conn_create(struct admin *a, struct link *l, uint32_t *counter)
{
    struct conn *c = memory_take(sizeof(*c));

    if (c == NULL)
        return NULL;
    c->admin = a;
    c->link = l;
    c->opened_at = control_now(a->setup.control);
    timer_init(&c->deadline, deadline_due);
    timer_init(&c->next_turn, next_turn_due);
    timer_init(&c->nap, nap_over);
    page_init(&c->page, PAGE_LIMIT);
    list_init(&c->in_working);
    list_push_back(&a->conns, &c->in_admin);
    c->counter = counter;
    (*counter)++;
    link_own(l, &events, c);
    return c;
}

bool conn_open(struct admin *a, struct link *l)
{
    struct conn *c = conn_create(a, l, &a->conn_count);

    if (c == NULL)
        return false;
    arm(c, ADMIN_REQUEST_TIMEOUT);
    read_more(c);
    return true;
}

bool conn_refuse(struct admin *a, struct link *l)
{
    struct conn *c = conn_create(a, l, &a->refused_count);

    if (c == NULL)
        return false;
    refuse(c, 503, "too many admin connections");
    return true;
}

/* One that was just opened is about to ask. */
static bool is_idle(const struct conn *c, mono_ns now)
{
    return c->state == CONN_REQUEST && c->in_len == 0 &&
           (c->served || mono_since(c->opened_at, now) >= NS_PER_S);
}

bool conn_close_idle(struct admin *a)
{
    mono_ns now = control_now(a->setup.control);

    for (struct list *l = a->conns.next; l != &a->conns; l = l->next) {
        struct conn *c = CONTAINER_OF(l, struct conn, in_admin);

        if (is_idle(c, now)) {
            close_now(c);
            return true;
        }
    }
    return false;
}

void conn_close_all(struct admin *a)
{
    while (!list_empty(&a->conns))
        close_now(CONTAINER_OF(a->conns.next, struct conn, in_admin));
}
