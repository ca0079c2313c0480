/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/fetch.h"

#include "base/list.h"
#include "base/text.h"
#include "io/error.h"

#define REQUEST_MAX 4096

struct fetching {
    struct caller caller;
    struct appointment timeout;
    struct buffer *answer;
    uint32_t status;
    enum call_outcome outcome;
    bool over;
    bool too_large;
};

static void on_head(struct caller *c, const struct message_head *head)
{
    CONTAINER_OF(c, struct fetching, caller)->status = head->status;
}

static void on_body(struct caller *c, struct bytes data)
{
    struct fetching *f = CONTAINER_OF(c, struct fetching, caller);

    if (buffer_len(f->answer) + data.len > FETCH_BODY_MAX || !buffer_add(f->answer, data))
        f->too_large = true;
}

static void on_done(struct caller *c, enum call_outcome outcome)
{
    struct fetching *f = CONTAINER_OF(c, struct fetching, caller);

    f->outcome = f->too_large ? CALL_LOCAL : outcome;
    f->over = true;
}

static void on_lost(struct caller *c)
{
    (void)c;
}

static const struct caller_events events = {
    .head = on_head, .body = on_body, .done = on_done, .lost = on_lost};

static void timed_out(struct appointment *a, mono_ns now)
{
    struct fetching *f = CONTAINER_OF(a, struct fetching, timeout);

    (void)now;
    f->outcome = CALL_TIMEOUT;
    f->over = true;
}

static bool write_request(const struct fetch *f, struct text *t)
{
    text_str(t, f->method);
    text_char(t, ' ');
    text_str(t, f->target);
    text_str(t, " HTTP/1.1\r\nhost: ");
    address_write(t, &f->to);
    if (f->body.len > 0) {
        text_str(t, "\r\ncontent-length: ");
        text_u64(t, f->body.len);
    }
    text_str(t, "\r\nconnection: close\r\n\r\n");
    text_put(t, f->body);
    return !t->failed;
}

uint32_t fetch(struct lab_loop *loop, const struct fetch *f, struct buffer *answer,
               enum call_outcome *outcome)
{
    struct fetching g = {.answer = answer, .outcome = CALL_LOCAL};
    struct call_request request = {.method = method_lookup(bytes_of(f->method))};
    char room[REQUEST_MAX];
    struct text t;

    buffer_init(answer);
    text_init(&t, room, sizeof(room));
    caller_init(&g.caller, &events, loop);
    appointment_init(&g.timeout, timed_out);
    if (!write_request(f, &t) || caller_connect(&g.caller, &f->to) != IO_OK) {
        *outcome = CALL_LOCAL;
        return 0;
    }
    request.head = text_bytes(&t);
    caller_call(&g.caller, &request);
    schedule_arm(&loop->schedule, &g.timeout, mono_after(loop->now, f->timeout));
    while (!g.over && !loop->stopped)
        lab_loop_turn(loop);
    schedule_cancel(&loop->schedule, &g.timeout);
    caller_drop(&g.caller);
    *outcome = g.outcome;
    if (g.outcome == CALL_ANSWERED)
        return g.status;
    buffer_release(answer);
    return 0;
}
