/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/server.h"

#include "base/memory.h"
#include "codec/http1.h"
#include "sim/receiver.h"
#include "sim/sender.h"

enum phase {
    PHASE_READING, /* a request, or waits for one */
    PHASE_QUEUED,  /* no worker is free */
    PHASE_WORKING, /* the answer is due later */
    PHASE_SENDING,
    PHASE_CATCHING, /* the answer is out, the rest of the request still comes */
    PHASE_LEAVING   /* has sent its FIN */
};

struct server_conn {
    struct list link;
    struct server *server;
    struct link *io;
    enum phase phase;
    struct wish wish;
    uint64_t last_id; /* of the request before; 0: this is the first */
    enum method method;
    bool asked; /* a request's head is here, its answer not yet out */
    bool hangs;
    bool in_slot;    /* has a worker */
    bool orphan;     /* the connection is gone, the worker does not know */
    struct list job; /* PHASE_QUEUED: in the server's queue */
    struct answer_plan plan;
    struct world_event event; /* the answer is due, the next drip, or idle for too long */
    struct receiver receiver;
    struct sender sender;
};

const struct server_mood server_fine = {
    .service = 10 * NS_PER_MS,
    .error_status = 500,
    .idle_close = MONO_NEVER,
};

static struct world *world_of(const struct server *s)
{
    return s->net->world;
}

void server_blame(struct server *s)
{
    s->blamable = true;
    s->blame_at = world_of(s)->now;
}

/* --- its workers --- */

static void begin_work(struct server_conn *c)
{
    struct world *w = world_of(c->server);

    span_ns takes = pace_thawed(&c->server->mood.pace, w->now, c->plan.delay);

    c->phase = PHASE_WORKING;
    if (c->hangs || takes >= c->server->patience || takes > c->plan.delay)
        server_blame(c->server);
    world_arm(w, &c->event, mono_after(w->now, takes));
}

static void leave_slot(struct server_conn *c)
{
    struct list *next;

    if (!c->in_slot)
        return;
    c->in_slot = false;
    next = slots_leave(&c->server->slots);
    if (next != NULL) {
        struct server_conn *other = CONTAINER_OF(next, struct server_conn, job);

        other->in_slot = true;
        begin_work(other);
    }
}

static void turn_away(struct server_conn *c)
{
    c->server->turned_away++;
    c->hangs = false;
    c->plan = (struct answer_plan){
        .status = 503,
        .framing = c->plan.framing,
        .length = c->plan.length,
        .key = c->plan.key,
    };
    begin_work(c);
}

static void start_work(struct server_conn *c)
{
    struct server *s = c->server;

    if (s->slots.workers == 0) {
        begin_work(c);
        return;
    }
    switch (slots_arrive(&s->slots, &c->job)) {
    case SLOTS_RUN:
        c->in_slot = true;
        begin_work(c);
        break;
    case SLOTS_WAIT:
        c->phase = PHASE_QUEUED;
        server_blame(s); /* it may come to more than anybody waits for */
        break;
    case SLOTS_FULL:
        turn_away(c);
        break;
    }
}

/* --- life of a connection --- */

static void bury(struct server_conn *c)
{
    struct server *s = c->server;

    world_cancel(world_of(s), &c->event);
    leave_slot(c);
    list_remove(&c->link);
    slab_give(&s->conn_slab, c);
}

static void conn_gone(struct server_conn *c)
{
    struct server *s = c->server;

    if (c->asked && (c->hangs || c->plan.delay >= s->patience))
        server_blame(s);
    if (c->asked && c->receiver.state == RECEIVER_BODY)
        s->cut_requests++;
    s->conn_count--;
    if (c->phase == PHASE_QUEUED)
        slots_forget(&s->slots, &c->job);
    if (!c->in_slot) {
        bury(c);
        return;
    }
    c->orphan = true;
    list_remove(&c->link);
    list_push_back(&s->orphans, &c->link);
}

static void conn_close(struct server_conn *c)
{
    link_close(c->io);
    conn_gone(c);
}

static void conn_abort(struct server_conn *c)
{
    link_abort(c->io);
    conn_gone(c);
}

/* Says FIN, then reads on until the other side has read it all, as a polite server does. */
static void conn_leave(struct server_conn *c)
{
    c->phase = PHASE_LEAVING;
    link_shut(c->io);
    link_read_start(c->io);
    world_cancel(world_of(c->server), &c->event);
}

/* --- planning --- */

/* Heavy requests have answers of their own size, whatever was wished. */
static span_ns service_time(struct server_conn *c, struct fact *f)
{
    struct server *s = c->server;
    struct pace_time t = pace_draw(&s->mood.pace, world_of(s), s->mood.service, c->method);

    if (t.blamed)
        server_blame(s);
    f->answer = UINT64_MAX;
    if (t.heavy && c->wish.framing != FRAMING_NONE)
        f->answer = c->wish.answer = s->mood.pace.heavy_bytes;
    return t.work;
}

static void plan_break(struct server *s, struct answer_plan *p, enum answer_break where)
{
    struct world *w = world_of(s);

    p->broken = where;
    p->break_at = p->length == 0 ? 0 : rng_below(&w->rng, (uint32_t)p->length);
    if (p->broken == BREAK_IN_BODY && (p->length == 0 || p->framing == FRAMING_NONE))
        p->broken = BREAK_BEFORE_HEAD;
    /* The end of a body that ends by FIN cannot be told from a FIN in its midst. */
    p->break_softly = p->framing != FRAMING_TO_CLOSE && world_chance(w, s->mood.soft_permille);
}

static void plan_faults(struct server *s, struct answer_plan *p)
{
    const struct server_mood *m = &s->mood;
    struct world *w = world_of(s);

    if (world_chance(w, m->error_permille))
        p->status = m->error_status;
    if (world_chance(w, m->hang_permille))
        p->delay = MONO_NEVER;
    if (world_chance(w, m->reset_permille))
        plan_break(s, p, (enum answer_break)(1 + rng_below(&w->rng, 3)));
    if (world_chance(w, m->cut_permille))
        plan_break(s, p, BREAK_IN_BODY);
    if (world_chance(w, m->drip_permille)) {
        p->drip_piece = 1 + (uint32_t)(p->length / 8);
        p->drip_gap = 20 * NS_PER_MS;
    }
}

static void make_plan(struct server_conn *c, const struct message_head *head, struct fact *f)
{
    struct server *s = c->server;
    struct world *w = world_of(s);
    span_ns delay = service_time(c, f);

    c->plan = (struct answer_plan){
        .delay = delay,
        .status = 200,
        .framing = c->wish.framing,
        .length = c->wish.answer,
        .key = payload_key_answer(c->wish.id),
        .early = world_chance(w, s->mood.early_permille),
        .interims = world_chance(w, s->mood.interim_permille) ? 1 + rng_below(&w->rng, 2) : 0,
        .says_close = world_chance(w, s->mood.says_close_permille),
        .closes = world_chance(w, s->mood.closes_permille),
    };
    plan_faults(s, &c->plan);
    if (s->plant == SERVER_PLANT_SECRET)
        c->plan.status = 503;
    if (s->plant == SERVER_PLANT_SHORT && c->plan.length > 0)
        c->plan.length--;
    if (s->decide != NULL)
        s->decide(s, &c->wish, head, &c->plan);
    c->hangs = c->plan.delay == MONO_NEVER;
}

/* --- answering --- */

static void go_on(struct server_conn *c);

static void put_field(struct text *t, const char *name, uint64_t value)
{
    text_str(t, name);
    text_str(t, ": ");
    text_u64(t, value);
    text_str(t, "\r\n");
}

static bool bodiless(uint32_t status)
{
    return status == 204 || status == 304;
}

/* When the |n|-th latest request came; 1: the latest. */
static mono_ns came_at(const struct server *s, uint64_t n)
{
    return s->came[(s->arrivals - n) % SERVER_LOAD_OF];
}

/* As of its latest requests, by the time between them. */
static double load_of(const struct server *s)
{
    mono_ns now = world_of(s)->now;
    uint64_t n = 1;
    span_ns over;

    while (n < SERVER_LOAD_OF && n < s->arrivals &&
           mono_since(came_at(s, n + 1), now) <= SERVER_LOAD_SPAN)
        n++;
    over = mono_since(came_at(s, n), came_at(s, 1));
    return over == 0 ? 0 : (double)(n - 1) * (double)NS_PER_S / (double)over / s->capacity;
}

static void write_load(const struct server *s, struct text *t)
{
    if (s->capacity == 0)
        return;
    text_str(t, "endpoint-load-metrics: TEXT application_utilization=");
    text_double(t, load_of(s), 6);
    text_str(t, "\r\n");
}

static void write_head(struct server_conn *c, struct text *t)
{
    const struct answer_plan *p = &c->plan;

    for (uint32_t i = 0; i < p->interims; i++)
        text_str(t, "HTTP/1.1 103 Early Hints\r\nlink: </style.css>; rel=preload\r\n\r\n");
    text_str(t, "HTTP/1.1 ");
    text_u64(t, p->status);
    text_char(t, ' ');
    text_str(t, http1_reason(p->status));
    text_str(t, "\r\n");
    put_field(t, "x-sim-host", c->server->index);
    put_field(t, "x-sim-id", c->wish.id);
    write_load(c->server, t);
    if (!bodiless(p->status) && (p->framing == FRAMING_LENGTH || p->framing == FRAMING_NONE))
        put_field(t, "content-length", p->framing == FRAMING_NONE ? 0 : p->length);
    if (!bodiless(p->status) && p->framing == FRAMING_CHUNKED)
        text_str(t, "transfer-encoding: chunked\r\n");
    if (p->says_close || p->framing == FRAMING_TO_CLOSE)
        text_str(t, "connection: close\r\n");
    text_str(t, "\r\n");
}

/* The answer to the last request once more, where the one to this request is due. */
static void write_stray(struct server_conn *c, struct text *t)
{
    text_str(t, "HTTP/1.1 200 OK\r\n");
    put_field(t, "x-sim-host", c->server->index);
    put_field(t, "x-sim-id", c->last_id);
    text_str(t, "content-length: 0\r\n\r\n");
}

static void break_off(struct server_conn *c)
{
    server_blame(c->server);
    if (c->plan.break_softly)
        conn_close(c);
    else
        conn_abort(c);
}

static void note_answer(struct server_conn *c)
{
    struct server *s = c->server;

    s->answered++;
    if (c->plan.status >= 500 && s->plant != SERVER_PLANT_SECRET)
        server_blame(s);
    else
        s->good_at = world_of(s)->now;
}

static void begin_answer(struct server_conn *c)
{
    bool body = c->method != METHOD_HEAD && !bodiless(c->plan.status);
    enum framing framing = body ? c->plan.framing : FRAMING_NONE;
    char head[1024];
    struct text t;

    text_init(&t, head, sizeof(head));
    text_put(&t, bytes_from(c->sender.out + c->sender.at, c->sender.len - c->sender.at));
    if (c->server->plant == SERVER_PLANT_TWICE && c->last_id != 0)
        write_stray(c, &t);
    c->last_id = c->wish.id;
    write_head(c, &t);
    c->phase = PHASE_SENDING;
    if (c->plan.broken == BREAK_IN_HEAD) {
        sender_start(&c->sender, bytes_from(head, t.len / 2), FRAMING_NONE, 0, 0);
        (void)sender_go(&c->sender, c->io);
    }
    if (c->plan.broken == BREAK_BEFORE_HEAD || c->plan.broken == BREAK_IN_HEAD) {
        break_off(c);
        return;
    }
    note_answer(c);
    sender_start(&c->sender, text_bytes(&t), framing, c->plan.key, c->plan.length);
    if (c->plan.drip_piece != 0)
        c->sender.allowed = 0;
    else if (c->plan.broken == BREAK_IN_BODY)
        c->sender.allowed = c->plan.break_at;
    go_on(c);
}

static void await_next(struct server_conn *c)
{
    struct world *w = world_of(c->server);

    c->phase = PHASE_READING;
    c->asked = false;
    world_arm(w, &c->event, mono_after(w->now, c->server->mood.idle_close));
    link_read_start(c->io);
    receiver_next(&c->receiver);
    if (c->receiver.state != RECEIVER_HEAD || c->receiver.len != 0)
        world_fail(w, "law 7", "the proxy sent more than one request at once to host",
                   c->server->index);
}

static void answer_out(struct server_conn *c)
{
    c->asked = false;
    if (c->plan.says_close || c->plan.closes || c->plan.framing == FRAMING_TO_CLOSE) {
        if (c->plan.closes)
            server_blame(c->server); /* a request may be on its way to the closed connection */
        conn_leave(c);
    } else if (c->receiver.state == RECEIVER_DONE) {
        await_next(c);
    } else {
        c->phase = PHASE_CATCHING;
        link_read_start(c->io);
    }
}

/* Raises what may be sent. False: the answer is to break here. */
static bool allow_more(struct server_conn *c)
{
    struct answer_plan *p = &c->plan;
    struct world *w = world_of(c->server);
    uint64_t end = p->broken == BREAK_IN_BODY ? p->break_at : UINT64_MAX;

    if (p->drip_piece == 0 || c->sender.allowed >= end)
        return false;
    c->sender.allowed += p->drip_piece;
    if (c->sender.allowed > end)
        c->sender.allowed = end;
    world_arm(w, &c->event, mono_after(w->now, p->drip_gap));
    return true;
}

static void go_on(struct server_conn *c)
{
    switch (sender_go(&c->sender, c->io)) {
    case SENDER_DONE:
        answer_out(c);
        break;
    case SENDER_HELD:
        if (!allow_more(c))
            break_off(c);
        break;
    case SENDER_BLOCKED:
    case SENDER_BROKEN: /* |failed| comes */
        break;
    }
}

static void work_done(struct server_conn *c)
{
    leave_slot(c);
    if (c->orphan)
        bury(c);
    else
        begin_answer(c);
}

static void event_due(struct world_event *e, mono_ns now)
{
    struct server_conn *c = CONTAINER_OF(e, struct server_conn, event);
    (void)now;

    switch (c->phase) {
    case PHASE_READING:
        server_blame(c->server); /* the race of keep-alive */
        conn_leave(c);
        break;
    case PHASE_WORKING:
        work_done(c);
        break;
    case PHASE_SENDING:
        go_on(c);
        break;
    case PHASE_QUEUED:
    case PHASE_CATCHING:
    case PHASE_LEAVING:
        break;
    }
}

/* --- the request --- */

static void invite(struct server_conn *c)
{
    sender_start(&c->sender, BYTES("HTTP/1.1 100 Continue\r\n\r\n"), FRAMING_NONE, 0, 0);
    (void)sender_go(&c->sender, c->io);
}

static void head_came(struct receiver *r, const struct message_head *head)
{
    struct server_conn *c = r->owner;
    struct server *s = c->server;
    struct fact *f;

    world_cancel(world_of(s), &c->event);
    c->method = head->method_id;
    c->asked = true;
    s->came[s->arrivals++ % SERVER_LOAD_OF] = world_of(s)->now;
    if (!wish_parse(head->target, &c->wish)) {
        world_fail(world_of(s), "law 7", "a path nobody sent came to host", s->index);
        return;
    }
    f = ledger_fact(s->ledger, c->wish.id);
    if (f == NULL)
        return;
    f->arrivals += s->plant == SERVER_PLANT_ECHO ? 2 : 1;
    r->key = payload_key_request(c->wish.id);
    make_plan(c, head, f);
    if (c->plan.early)
        start_work(c);
    else if (head->expect_continue)
        invite(c);
    if (c->plan.stops_reading)
        link_read_stop(c->io);
}

static void body_whole(struct server_conn *c)
{
    struct world *w = world_of(c->server);
    struct fact *f = ledger_fact(c->server->ledger, c->wish.id);

    if (f != NULL && c->receiver.got != f->body)
        world_fail(w, "law 7", "a request body came whole, but not as long as it was; request",
                   c->wish.id);
    if (c->phase == PHASE_READING)
        start_work(c);
    else if (c->phase == PHASE_CATCHING)
        await_next(c);
}

static void received(void *owner, struct bytes data)
{
    struct server_conn *c = owner;
    struct receiver *r = &c->receiver;
    bool was_whole = r->state == RECEIVER_DONE;
    struct world *w = world_of(c->server);

    if (c->phase == PHASE_LEAVING)
        return;
    receiver_take(r, data);
    if (r->state == RECEIVER_BAD)
        world_fail(w, "law 7", "what the proxy sent to a host is no HTTP; host", c->server->index);
    else if (r->wrong)
        world_fail(w, "law 7", "a wrong byte in the body of request", c->wish.id);
    else if (was_whole)
        world_fail(w, "law 7", "the proxy sent on while it was being answered; host",
                   c->server->index);
    else if (r->state == RECEIVER_DONE)
        body_whole(c);
}

static void ended(void *owner)
{
    conn_close(owner);
}

static void failed(void *owner, int error)
{
    (void)error;
    conn_close(owner);
}

static void writable(void *owner)
{
    struct server_conn *c = owner;

    if (c->phase != PHASE_SENDING)
        (void)sender_go(&c->sender, c->io); /* the rest of a 100 */
    else if (!world_armed(&c->event))
        go_on(c);
}

static void opened(void *owner)
{
    (void)owner; /* never: it is dialled */
}

static const struct link_events events = {
    .opened = opened,
    .received = received,
    .ended = ended,
    .writable = writable,
    .failed = failed,
};

/* --- listening --- */

static void accepted(void *owner, struct link *l, const struct address *peer)
{
    struct server *s = owner;
    struct server_conn *c = s->mood.accept_reset ? NULL : slab_take(&s->conn_slab);
    (void)peer;

    s->accepted++;
    if (c == NULL) {
        server_blame(s);
        link_abort(l);
        return;
    }
    c->server = s;
    c->io = l;
    c->asked = false;
    c->hangs = false;
    c->in_slot = false;
    c->orphan = false;
    list_init(&c->job);
    c->last_id = 0;
    sender_start(&c->sender, BYTES(""), FRAMING_NONE, 0, 0);
    world_event_init(&c->event, event_due);
    list_push_back(&s->conns, &c->link);
    s->conn_count++;
    receiver_init(&c->receiver, head_came, c);
    c->receiver.requests = true;
    link_own(l, &events, c);
    await_next(c);
}

static void troubled(void *owner, int error)
{
    (void)owner; /* actors have descriptors without end */
    (void)error;
}

static const struct listener_events listener_events = {.accepted = accepted, .troubled = troubled};

bool server_init(struct server *s, struct actor_loop *loop, struct ledger *ledger, uint32_t index,
                 const struct address *address)
{
    *s = (struct server){
        .net = loop->poller.net,
        .loop = loop,
        .ledger = ledger,
        .index = index,
        .address = *address,
        .site = net_site(loop->poller.net, address),
        .mood = server_fine,
        .usual_mood = server_fine,
        .patience = MONO_NEVER,
        .down_since = loop->poller.net->world->now,
    };
    list_init(&s->conns);
    list_init(&s->orphans);
    slab_init(&s->conn_slab, sizeof(struct server_conn), 256);
    if (s->site != NULL)
        s->usual_path = s->site->path;
    return s->site != NULL;
}

/* Keeps |down_since|. */
static void note_road(struct server *s)
{
    const struct net_path *p = &s->site->path;
    bool up = s->listener != NULL && !p->black_hole && !p->refuse && !p->unreachable;

    if (up && s->down_since != MONO_NEVER && s->blamable)
        server_blame(s); /* up to now it gave cause */
    if (up)
        s->down_since = MONO_NEVER;
    else if (s->down_since == MONO_NEVER)
        s->down_since = world_of(s)->now;
}

bool server_listen(struct server *s)
{
    const struct listen_options o = {.backlog = 0};

    if (s->listener != NULL)
        return true;
    if (poller_listen(actor_poller(s->loop), &s->address, &o, &s->listener) != IO_OK)
        return false;
    listener_own(s->listener, &listener_events, s);
    note_road(s);
    return true;
}

void server_refuse(struct server *s)
{
    if (s->listener == NULL)
        return;
    server_blame(s);
    listener_close(s->listener);
    s->listener = NULL;
    note_road(s);
}

void server_set_road(struct server *s, enum server_road road)
{
    struct net_path *p = &s->site->path;

    if (road != ROAD_OPEN || p->black_hole || p->refuse || p->unreachable)
        server_blame(s);
    p->black_hole = road == ROAD_BLACK_HOLE;
    p->refuse = road == ROAD_REFUSES;
    p->unreachable = road == ROAD_UNREACHABLE;
    note_road(s);
}

void server_kill(struct server *s, enum server_death how)
{
    server_refuse(s);
    server_blame(s);
    while (!list_empty(&s->conns)) {
        struct server_conn *c = CONTAINER_OF(s->conns.next, struct server_conn, link);

        switch (how) {
        case DEATH_OF_PROCESS:
            conn_close(c);
            break;
        case DEATH_BY_RESET:
            conn_abort(c);
            break;
        case DEATH_OF_POWER:
            net_vanish(c->io);
            conn_gone(c);
            break;
        }
    }
    while (!list_empty(&s->orphans))
        bury(CONTAINER_OF(s->orphans.next, struct server_conn, link));
}

void server_release(struct server *s)
{
    server_kill(s, DEATH_OF_PROCESS);
    slab_release(&s->conn_slab);
}
