/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/client.h"

#include <assert.h>

#include "base/memory.h"
#include "codec/http1.h"
#include "sim/receiver.h"
#include "sim/sender.h"

#define EXPECT_PATIENCE NS_PER_S
#define QUEUE_TIME      (100 * NS_PER_MS)

/* One connection. */
struct talk {
    struct list link; /* of all */
    struct list idle; /* of those without a request; else to itself */
    struct client *client;
    struct link *io;
    bool open;
    bool used;   /* an answer has come on it */
    uint64_t id; /* of the request under way; 0: none */
    struct ask ask;
    bool uploaded;
    bool head_came;
    bool keep;                 /* the answer lets the connection be used again */
    bool from_server;          /* the answer is not the proxy's own */
    struct world_event pace;   /* the next piece of the upload, or patience with 100 is over */
    struct world_event resume; /* of reading */
    struct world_event cancel;
    struct receiver receiver;
    struct sender sender;
};

static struct world *world_of(const struct talk *t)
{
    return t->client->net->world;
}

static struct fact *fact_of(const struct talk *t)
{
    return ledger_fact(t->client->ledger, t->id);
}

/* --- ending --- */

static void calm(struct talk *t)
{
    world_cancel(world_of(t), &t->pace);
    world_cancel(world_of(t), &t->resume);
    world_cancel(world_of(t), &t->cancel);
}

static void talk_forget(struct talk *t)
{
    struct client *c = t->client;

    calm(t);
    list_remove(&t->idle);
    list_remove(&t->link);
    c->talk_count--;
    slab_give(&c->talk_slab, t);
}

/* Tells of the end only when the connection is in order again, so that |done| may ask anew. */
static void finish(struct talk *t, enum outcome outcome)
{
    struct client *c = t->client;
    uint64_t id = t->id;

    t->id = 0;
    ledger_end(c->ledger, id, outcome);
    if (c->done != NULL)
        c->done(c, id);
}

static void end_and_close(struct talk *t, enum outcome outcome)
{
    struct client *c = t->client;
    uint64_t id = t->id;

    link_close(t->io);
    talk_forget(t);
    if (id == 0)
        return;
    ledger_end(c->ledger, id, outcome);
    if (c->done != NULL)
        c->done(c, id);
}

static void complain(struct talk *t, const char *law, const char *what)
{
    world_fail(world_of(t), law, what, t->id);
}

/*
 * Nobody promised anything to requests of that time: nor to those on connections that may still
 * have been in the kernel's queue when the proxy stopped listening.
 */
static bool lenient(const struct talk *t)
{
    mono_ns since = t->client->lenient_since;

    if (since == MONO_NEVER)
        return false;
    return fact_of(t)->begun + (t->used ? 0 : QUEUE_TIME) >= since;
}

/* The connection is at its end before the answer was. */
static void broken(struct talk *t)
{
    struct client *c = t->client;

    if (t->id == 0) {
        end_and_close(t, OUTCOME_SILENCE);
        return;
    }
    if (!t->open) {
        c->refused++;
        fact_of(t)->excused = true;
        if (!lenient(t))
            complain(t, "law 6", "the proxy did not take a connection; request");
    }
    if (t->head_came || t->receiver.len > 0) {
        end_and_close(t, OUTCOME_CUT);
        return;
    }
    fact_of(t)->excused |= lenient(t);
    end_and_close(t, OUTCOME_SILENCE);
}

/* --- the answer --- */

static void check_answer(struct talk *t)
{
    const struct ask *a = &t->ask;
    uint64_t chosen = fact_of(t)->answer;
    uint64_t due = chosen == UINT64_MAX ? a->answer : chosen;
    bool bodiless = a->method == METHOD_HEAD || fact_of(t)->status == 204 ||
                    fact_of(t)->status == 304 || a->framing == FRAMING_NONE;

    if (!t->from_server)
        return;
    if (t->receiver.got != (bodiless ? 0 : due))
        complain(t, "law 7", "an answer looks whole and is not; request");
}

static void answered(struct talk *t)
{
    struct client *c = t->client;
    bool reuse = t->keep && t->uploaded && !t->ask.says_close && t->receiver.len == 0;

    check_answer(t);
    if (t->receiver.len != 0)
        complain(t, "law 7", "bytes behind the end of the answer; request");
    calm(t);
    if (!reuse) {
        end_and_close(t, OUTCOME_ANSWERED);
        return;
    }
    list_push_front(&c->idle, &t->idle);
    link_read_start(t->io);
    finish(t, OUTCOME_ANSWERED);
}

static bool field_number(const struct message_head *head, struct bytes name, uint64_t *out)
{
    for (uint32_t i = 0; i < head->field_count; i++)
        if (bytes_equal_nocase(head->fields[i].name, name))
            return bytes_parse_u64(head->fields[i].value, out);
    return false;
}

static void go_on(struct talk *t);

static void interim_came(struct talk *t, uint32_t status)
{
    t->client->interims++;
    if (status != 100 || !t->ask.expects || t->uploaded || t->sender.allowed != 0)
        return;
    world_cancel(world_of(t), &t->pace);
    t->sender.allowed = UINT64_MAX;
    go_on(t);
}

static void head_came(struct receiver *r, const struct message_head *head)
{
    struct talk *t = r->owner;
    struct fact *f = fact_of(t);
    uint64_t host = NO_SERVER;
    uint64_t id = 0;

    if (head->status / 100 == 1 && head->status != 101) {
        interim_came(t, head->status);
        return;
    }
    t->head_came = true;
    t->used = true;
    t->keep = head->keep_alive;
    t->from_server = field_number(head, BYTES("x-sim-host"), &host);
    f->status = head->status;
    f->server = (uint32_t)host;
    if (!t->from_server)
        return;
    if (!field_number(head, BYTES("x-sim-id"), &id) || id != t->id)
        complain(t, "law 7", "the answer is another request's; request");
    r->key = payload_key_answer(t->id);
}

static void slow_down(struct talk *t)
{
    struct world *w = world_of(t);

    if (t->ask.read_gap == 0)
        return;
    link_read_stop(t->io);
    world_arm(w, &t->resume, w->now + t->ask.read_gap);
}

static void received(void *owner, struct bytes data)
{
    struct talk *t = owner;
    struct receiver *r = &t->receiver;

    if (t->id == 0) {
        world_fail(world_of(t), "law 7", "bytes that nobody asked for; connection",
                   net_link_number(t->io));
        end_and_close(t, OUTCOME_SILENCE);
        return;
    }
    receiver_take(r, data);
    if (r->state == RECEIVER_BAD)
        complain(t, "law 7", "what the proxy answered is no HTTP; request");
    else if (r->wrong)
        complain(t, "law 7", "a wrong byte in the answer to request");
    else if (r->state == RECEIVER_DONE)
        answered(t);
    else
        slow_down(t);
}

static void ended(void *owner)
{
    struct talk *t = owner;

    t->keep = false;
    if (t->id != 0 && t->receiver.state != RECEIVER_DONE && receiver_end(&t->receiver))
        answered(t);
    else
        broken(t);
}

static void failed(void *owner, int error)
{
    (void)error;
    broken(owner);
}

/* --- the request --- */

static bool paced(const struct talk *t)
{
    return t->ask.upload_piece != 0;
}

static void hold_back(struct talk *t)
{
    struct world *w = world_of(t);

    if (t->ask.never_ends && t->sender.made >= t->ask.body / 2)
        return;
    if (paced(t))
        world_arm(w, &t->pace, w->now + t->ask.upload_gap);
}

static void go_on(struct talk *t)
{
    switch (sender_go(&t->sender, t->io)) {
    case SENDER_DONE:
        t->uploaded = true;
        fact_of(t)->complete = world_of(t)->now;
        break;
    case SENDER_HELD:
        hold_back(t);
        break;
    case SENDER_BLOCKED:
    case SENDER_BROKEN: /* an answer may still be read */
        break;
    }
}

static void pace_due(struct world_event *e, mono_ns now)
{
    struct talk *t = CONTAINER_OF(e, struct talk, pace);
    (void)now;

    if (paced(t))
        t->sender.allowed += t->ask.upload_piece;
    else
        t->sender.allowed = UINT64_MAX; /* no 100 came in time */
    go_on(t);
}

static void resume_due(struct world_event *e, mono_ns now)
{
    (void)now;
    link_read_start(CONTAINER_OF(e, struct talk, resume)->io);
}

static void cancelled(struct talk *t)
{
    struct client *c = t->client;
    uint64_t id = t->id;

    if (id != 0)
        fact_of(t)->excused = true;
    talk_forget(t);
    if (id == 0)
        return;
    ledger_end(c->ledger, id, OUTCOME_CANCELLED);
    if (c->done != NULL)
        c->done(c, id);
}

static void cancel_due(struct world_event *e, mono_ns now)
{
    struct talk *t = CONTAINER_OF(e, struct talk, cancel);
    (void)now;

    if (t->ask.cancel_softly)
        link_close(t->io);
    else
        link_abort(t->io);
    cancelled(t);
}

static const char *method_text(enum method m)
{
    switch (m) {
    case METHOD_HEAD:
        return "HEAD ";
    case METHOD_POST:
        return "POST ";
    case METHOD_PUT:
        return "PUT ";
    case METHOD_DELETE:
        return "DELETE ";
    case METHOD_GET:
    case METHOD_OTHER:
    case METHOD_OPTIONS:
    case METHOD_TRACE:
    case METHOD_CONNECT:
    case METHOD_PATCH:
        break;
    }
    return "GET ";
}

static void write_head(const struct talk *t, struct text *out)
{
    const struct ask *a = &t->ask;
    const struct wish wish = {.id = t->id, .answer = a->answer, .framing = a->framing};

    text_str(out, method_text(a->method));
    wish_write(out, &wish);
    text_str(out, a->http10 ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n");
    text_str(out, "host: sim.example.test\r\nuser-agent: sim\r\n");
    if (a->upload == FRAMING_LENGTH) {
        text_str(out, "content-length: ");
        text_u64(out, a->body);
        text_str(out, "\r\n");
    }
    if (a->upload == FRAMING_CHUNKED)
        text_str(out, "transfer-encoding: chunked\r\n");
    if (a->expects)
        text_str(out, "expect: 100-continue\r\n");
    if (a->says_close)
        text_str(out, "connection: close\r\n");
    text_str(out, "\r\n");
}

static void start(struct talk *t)
{
    struct world *w = world_of(t);
    char head[512];
    struct text text;

    text_init(&text, head, sizeof(head));
    write_head(t, &text);
    assert(!text.failed);
    t->uploaded = false;
    t->head_came = false;
    t->keep = false;
    t->from_server = false;
    t->receiver.asked = t->ask.method;
    receiver_next(&t->receiver);
    sender_start(&t->sender, text_bytes(&text), t->ask.upload, payload_key_request(t->id),
                 t->ask.body);
    if (t->ask.expects || paced(t))
        t->sender.allowed = 0;
    fact_of(t)->begun = w->now;
    world_arm(w, &t->cancel, mono_after(w->now, t->ask.cancel_after));
    go_on(t);
    if (t->ask.expects && !paced(t) && !t->uploaded)
        world_arm(w, &t->pace, w->now + EXPECT_PATIENCE);
}

/* --- connections --- */

static void opened(void *owner)
{
    struct talk *t = owner;

    t->open = true;
    if (t->id != 0)
        start(t);
    else
        list_push_back(&t->client->idle, &t->idle);
}

static void writable(void *owner)
{
    struct talk *t = owner;

    if (t->id != 0)
        go_on(t);
}

static const struct link_events events = {
    .opened = opened,
    .received = received,
    .ended = ended,
    .writable = writable,
    .failed = failed,
};

static struct talk *dial(struct client *c)
{
    const struct connect_options o = {.keepalive = false};
    struct talk *t = c->talk_count >= c->conns_max ? NULL : slab_take(&c->talk_slab);

    if (t == NULL)
        return NULL;
    if (poller_connect(actor_poller(c->loop), &c->address, &o, &t->io) != IO_OK) {
        slab_give(&c->talk_slab, t);
        return NULL;
    }
    t->client = c;
    t->open = false;
    t->used = false;
    t->head_came = false;
    t->id = 0;
    list_init(&t->idle);
    list_push_back(&c->talks, &t->link);
    c->talk_count++;
    world_event_init(&t->pace, pace_due);
    world_event_init(&t->resume, resume_due);
    world_event_init(&t->cancel, cancel_due);
    receiver_init(&t->receiver, head_came, t);
    link_own(t->io, &events, t);
    link_read_start(t->io);
    return t;
}

void client_init(struct client *c, struct actor_loop *loop, struct ledger *ledger,
                 const struct address *address)
{
    *c = (struct client){
        .net = loop->poller.net,
        .loop = loop,
        .ledger = ledger,
        .address = *address,
        .conns_max = UINT32_MAX,
        .lenient_since = MONO_NEVER,
    };
    list_init(&c->talks);
    list_init(&c->idle);
    slab_init(&c->talk_slab, sizeof(struct talk), 1024);
}

void client_release(struct client *c)
{
    while (!list_empty(&c->talks)) {
        struct talk *t = CONTAINER_OF(c->talks.next, struct talk, link);

        link_close(t->io);
        talk_forget(t);
    }
    slab_release(&c->talk_slab);
}

uint64_t client_ask(struct client *c, const struct ask *a)
{
    struct list *first = list_pop_front(&c->idle);
    struct talk *t = first == NULL ? dial(c) : CONTAINER_OF(first, struct talk, idle);
    uint64_t id = t == NULL ? 0 : ledger_open(c->ledger);

    if (id == 0) {
        c->dropped++;
        return 0;
    }
    t->ask = *a;
    t->id = id;
    fact_of(t)->body = a->upload == FRAMING_NONE ? 0 : a->body;
    fact_of(t)->slow_reader = a->read_gap != 0;
    fact_of(t)->idempotent = method_idempotent(a->method);
    if (t->open)
        start(t);
    return id;
}

bool client_open_idle(struct client *c)
{
    return dial(c) != NULL;
}

void client_close_idle(struct client *c)
{
    struct list *first;

    while ((first = list_pop_front(&c->idle)) != NULL)
        end_and_close(CONTAINER_OF(first, struct talk, idle), OUTCOME_SILENCE);
}

void client_vanish(struct client *c)
{
    struct list all;

    list_init(&all);
    while (!list_empty(&c->talks)) {
        struct talk *t = CONTAINER_OF(c->talks.next, struct talk, link);

        list_remove(&t->link);
        list_push_back(&all, &t->link);
    }
    while (!list_empty(&all)) {
        struct talk *t = CONTAINER_OF(all.next, struct talk, link);

        if (t->open)
            net_vanish(t->io);
        else
            link_close(t->io);
        cancelled(t);
    }
}

const struct fact *client_fact(const struct client *c, uint64_t id)
{
    assert(id > 0 && id <= c->ledger->count);
    return &c->ledger->at[id - 1];
}
