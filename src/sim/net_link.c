/* SPDX-License-Identifier: Apache-2.0 */
/* One connection of the simulated network: two ends, two wires. */
#include "base/memory.h"
#include "sim/net_internal.h"

#define RTO_FIRST   (200 * NS_PER_MS)
#define RTO_MOST    (120 * NS_PER_S)
#define GIVEN_UP    (924 * NS_PER_S) /* Linux' tcp_retries2 of 15 */
#define TELL_PIECES 16               /* calls of |received| in one turn */
#define POISON      0xdd

enum note { NOTE_RECEIVED = 1, NOTE_ENDED, NOTE_OPENED, NOTE_WRITABLE, NOTE_FAILED, NOTE_CLOSED };

static struct world *world_of(const struct end *e)
{
    return e->conn->net->world;
}

static const struct net_path *path_of(const struct end *e)
{
    return &e->conn->site->path;
}

static struct wire *incoming(struct end *e)
{
    return &end_peer(e)->out;
}

static void misuse(struct end *e, const char *what)
{
    world_fail(world_of(e), "link contract", what, e->conn->number);
}

/* --- life --- */

static void arrive(struct world_event *event, mono_ns now);
static void room_seen(struct world_event *event, mono_ns now);

static void end_init(struct end *e, struct conn *c)
{
    *e = (struct end){.link = {.ops = &net_link_ops}, .conn = c, .state = END_NONE};
    list_init(&e->ready);
    world_event_init(&e->out.arrival, arrive);
    world_event_init(&e->out.ack, room_seen);
}

struct conn *conn_make(struct net *n, struct net_site *site)
{
    struct conn *c = slab_take(&n->conn_slab);

    if (c == NULL)
        return NULL;
    *c = (struct conn){.net = n, .site = site, .number = ++n->conn_count};
    list_push_back(&n->conns, &c->link);
    end_init(&c->ends[0], c);
    end_init(&c->ends[1], c);
    n->alive++;
    return c;
}

static void wire_release(struct world *w, struct wire *wire)
{
    world_cancel(w, &wire->arrival);
    world_cancel(w, &wire->ack);
    memory_give(wire->data);
    wire->data = NULL;
}

void conn_forget(struct conn *c)
{
    struct net *n = c->net;

    for (unsigned i = 0; i < 2; i++) {
        list_remove(&c->ends[i].ready);
        wire_release(n->world, &c->ends[i].out);
    }
    world_cancel(n->world, &c->step);
    list_remove(&c->link);
    n->alive--;
    slab_give(&n->conn_slab, c);
}

static bool end_over(const struct end *e)
{
    return e->state == END_NONE || e->state == END_GONE;
}

void conn_tidy(struct conn *c)
{
    if (c->busy == 0 && end_over(&c->ends[0]) && end_over(&c->ends[1]))
        conn_forget(c);
}

void end_leave(struct end *e, struct net_process *process)
{
    struct conn *c = e->conn;

    net_note(c->net, NOTE_CLOSED, c->number, e == &c->ends[0]);
    if (process != NULL)
        process->descriptors--;
    if (e == &c->ends[0])
        c->dialer->outgoing--;
    else
        c->site->open--;
    list_remove(&e->ready);
    e->state = END_GONE;
    e->reading = false;
    conn_tidy(c);
}

/* --- what is under way --- */

static struct segment *segment_at(struct wire *w, uint32_t i)
{
    return &w->ring[(w->first + i) % SEGMENTS_MAX];
}

static mono_ns arrival_time(struct end *from, uint64_t len)
{
    const struct net_path *p = path_of(from);
    struct world *w = world_of(from);
    mono_ns at = w->now + p->latency + world_span(w, p->jitter);

    if (world_chance(w, p->loss_permille)) {
        at += RTO_FIRST;
        from->out.lost++;
    }
    if (at < from->out.last_at)
        at = from->out.last_at;
    if (p->bandwidth != 0)
        at += len * NS_PER_S / p->bandwidth;
    from->out.last_at = at;
    return at;
}

/* Puts all that was sent since the last segment, a FIN or a RST on its way. */
void wire_send(struct end *from, enum segment_kind kind)
{
    struct wire *w = &from->out;
    uint64_t before = w->count == 0 ? w->arrived : segment_at(w, w->count - 1)->end;
    mono_ns at;

    if (w->dead)
        return;
    at = arrival_time(from, w->sent - before);
    if (kind == SEGMENT_DATA && w->count >= SEGMENTS_MAX - 2) {
        segment_at(w, w->count - 1)->end =
            w->sent; /* joins the last one, which comes later for it */
        segment_at(w, w->count - 1)->at = at;
        return;
    }
    *segment_at(w, w->count++) = (struct segment){.kind = kind, .at = at, .end = w->sent};
    if (!world_armed(&w->arrival))
        world_arm(world_of(from), &w->arrival, segment_at(w, 0)->at);
}

static void wire_kill(struct world *world, struct wire *w)
{
    w->dead = true;
    w->count = 0;
    world_cancel(world, &w->arrival);
    world_cancel(world, &w->ack);
}

void end_fail(struct end *e, int error)
{
    if (end_over(e) || e->error != 0)
        return;
    e->error = error;
    e->opened_due = false;
    wire_kill(world_of(e), &e->out);
    net_ready(e);
}

/* Data for an end that has closed: its kernel says RST. */
static void answer_with_reset(struct end *gone)
{
    struct wire *w = &gone->out;

    wire_kill(world_of(gone), &end_peer(gone)->out);
    if (w->count > 0 && segment_at(w, w->count - 1)->kind == SEGMENT_RST)
        return;
    w->dead = false; /* one that vanished still has a kernel, when it is back */
    wire_send(gone, SEGMENT_RST);
}

static void land_data(struct end *from, struct end *to, uint64_t end)
{
    uint64_t reset_after = path_of(from)->reset_after;

    if (to->state == END_GONE) {
        answer_with_reset(to);
        return;
    }
    from->out.arrived = end;
    if (to->reading)
        net_ready(to);
    if (reset_after != 0 && end >= reset_after) {
        end_fail(to, IO_RESET);
        end_fail(from, IO_RESET);
    }
}

static void land(struct end *from, struct end *to, struct segment s)
{
    switch (s.kind) {
    case SEGMENT_DATA:
        land_data(from, to, s.end);
        break;
    case SEGMENT_FIN:
        from->out.fin_arrived = true;
        if (to->reading)
            net_ready(to);
        break;
    case SEGMENT_RST:
        from->out.dead = true;
        end_fail(to, IO_RESET);
        break;
    }
}

/* Nothing comes through: again later, and less and less often. A RST is not sent again. */
static void hold(struct end *from, struct wire *w)
{
    if (segment_at(w, 0)->kind == SEGMENT_RST) {
        wire_kill(world_of(from), w);
        return;
    }
    w->rto = w->rto == 0 ? RTO_FIRST : 2 * w->rto;
    if (w->rto > RTO_MOST)
        w->rto = RTO_MOST;
    w->stuck += w->rto;
    w->lost++;
    if (w->stuck > GIVEN_UP) {
        wire_kill(world_of(from), w);
        end_fail(from, IO_TIMED_OUT);
        return;
    }
    world_arm(world_of(from), &w->arrival, world_of(from)->now + w->rto);
}

static void arrive(struct world_event *event, mono_ns now)
{
    struct wire *w = CONTAINER_OF(event, struct wire, arrival);
    struct end *from = CONTAINER_OF(w, struct end, out);
    struct end *to = end_peer(from);

    if (path_of(from)->black_hole) {
        hold(from, w);
        return;
    }
    w->rto = 0;
    w->stuck = 0;
    while (w->count > 0 && segment_at(w, 0)->at <= now) {
        struct segment s = *segment_at(w, 0);

        w->first = (w->first + 1) % SEGMENTS_MAX;
        w->count--;
        land(from, to, s);
    }
    if (w->count > 0)
        world_arm(world_of(from), &w->arrival, segment_at(w, 0)->at);
}

/* --- room to send --- */

static uint32_t room_left(const struct end *e)
{
    uint64_t held = e->out.sent - e->out.taken;
    uint32_t window = path_of(e)->window;

    return held >= window ? 0 : window - (uint32_t)held;
}

static void room_seen(struct world_event *event, mono_ns now)
{
    struct end *e = CONTAINER_OF(CONTAINER_OF(event, struct wire, ack), struct end, out);
    uint32_t enough = path_of(e)->window / 3;
    (void)now;

    if (!e->wants_room || room_left(e) < (enough == 0 ? 1 : enough))
        return;
    e->wants_room = false;
    e->writable_due = true;
    net_ready(e);
}

static void acknowledge(struct end *sender)
{
    struct world *w = world_of(sender);

    if (sender->wants_room && !sender->out.dead && !world_armed(&sender->out.ack))
        world_arm(w, &sender->out.ack, w->now + path_of(sender)->latency);
}

/* --- writing --- */

static bool make_room(struct wire *w, uint32_t more)
{
    uint32_t held = (uint32_t)(w->sent - w->taken);
    uint32_t room = w->room == 0 ? 1024 : w->room;
    uint8_t *data;

    if (w->head + held + more <= w->room)
        return true;
    if (held > 0)
        memmove(w->data, w->data + w->head, held);
    w->head = 0;
    if (held + more <= w->room)
        return true;
    while (room < held + more)
        room *= 2;
    data = memory_resize(w->data, room);
    if (data == NULL)
        return false;
    w->data = data;
    w->room = room;
    return true;
}

static void append(struct wire *w, const struct bytes *parts, uint32_t len)
{
    uint8_t *to = w->data + w->head + (w->sent - w->taken);

    w->sent += len;
    for (; len > 0; parts++) {
        uint32_t n = parts->len < len ? (uint32_t)parts->len : len;

        if (n > 0)
            memcpy(to, parts->data, n);
        to += n;
        len -= n;
    }
}

static uint32_t how_much(struct end *e, uint64_t offered)
{
    uint32_t room = room_left(e);
    uint32_t n = offered < room ? (uint32_t)offered : room;

    if (n > 1 && world_chance(world_of(e), path_of(e)->short_write_permille))
        n = 1 + rng_below(&world_of(e)->rng, n);
    return n;
}

static bool may_write(struct end *e, size_t parts)
{
    if (e->state != END_OPEN && e->state != END_FAILED)
        misuse(e, "written to before it was open or after it was closed; connection");
    else if (e->shut)
        misuse(e, "written to after it was shut; connection");
    else if (parts > LINK_PARTS_MAX)
        misuse(e, "too many parts in one write; connection");
    else
        return true;
    return false;
}

static ptrdiff_t write_parts(struct link *l, const struct bytes *parts, size_t n)
{
    struct end *e = (struct end *)(void *)l;
    uint64_t offered = 0;
    uint32_t len;

    if (!may_write(e, n))
        return IO_CLOSED;
    if (e->error != 0)
        return e->error;
    for (size_t i = 0; i < n; i++)
        offered += parts[i].len;
    len = how_much(e, offered);
    if (len > 0 && !make_room(&e->out, len))
        return IO_NO_MEMORY;
    append(&e->out, parts, len);
    e->poller->process->taken += len;
    if (len > 0)
        wire_send(e, SEGMENT_DATA);
    if (len < offered)
        e->wants_room = true; /* something is under way: when it is read, that is acknowledged */
    return (ptrdiff_t)len;
}

/* --- telling --- */

static bool unread(struct end *e)
{
    return incoming(e)->arrived > incoming(e)->taken;
}

static bool end_is_due(struct end *e)
{
    return incoming(e)->fin_arrived && !unread(e) && !e->ended_told;
}

static bool has_news(struct end *e)
{
    if (e->state != END_OPEN && e->state != END_CONNECTING)
        return false;
    return e->opened_due || e->writable_due || (e->error != 0 && !unread(e)) ||
           (e->reading && (unread(e) || end_is_due(e)));
}

static void note(struct end *e, enum note what, uint64_t value)
{
    e->poller->loop->progress++;
    net_note(e->conn->net, (uint32_t)what, 2 * e->conn->number + (e == &e->conn->ends[1]), value);
}

static uint32_t piece_length(struct end *e)
{
    uint64_t there = incoming(e)->arrived - incoming(e)->taken;
    uint32_t n = there < NET_RECEIVE_MAX ? (uint32_t)there : NET_RECEIVE_MAX;

    switch (path_of(e)->cut) {
    case NET_CUT_WHOLE:
        return n;
    case NET_CUT_SOME:
        return 1 + rng_below(&world_of(e)->rng, n);
    case NET_CUT_BYTES:
        return 1;
    }
    return n;
}

/* The world's own faults, planted by tests of the laws. */
static uint32_t plant(struct net *n, uint32_t len)
{
    if (n->plant == NET_PLANT_NONE || n->plant_in-- != 0)
        return len;
    switch (n->plant) {
    case NET_PLANT_FLIP_BYTE:
        n->scratch[len - 1] ^= 1;
        break;
    case NET_PLANT_LOSE_BYTES:
        len -= len > 1;
        break;
    case NET_PLANT_REPEAT_BYTES:
        if (len < NET_RECEIVE_MAX / 2) {
            memcpy(n->scratch + len, n->scratch, len);
            len *= 2;
        }
        break;
    case NET_PLANT_NONE:
        break;
    }
    n->plant = NET_PLANT_NONE;
    return len;
}

static void tell_piece(struct end *e)
{
    struct net *n = e->conn->net;
    struct wire *w = incoming(e);
    uint32_t len = piece_length(e);
    uint32_t told;

    memcpy(n->scratch, w->data + w->head, len);
    w->taken += len;
    w->head = w->taken == w->sent ? 0 : w->head + len;
    told = plant(n, len);
    note(e, NOTE_RECEIVED, told);
    world_digest_bytes(n->world, bytes_from(n->scratch, told));
    e->poller->process->received += told;
    acknowledge(end_peer(e));
    e->link.events->received(e->link.owner, bytes_from(n->scratch, told));
    memset(n->scratch, POISON, told);
}

static void tell_data(struct end *e)
{
    for (unsigned i = 0; i < TELL_PIECES && e->reading && e->state == END_OPEN && unread(e); i++)
        tell_piece(e);
    if (!e->reading || e->state != END_OPEN || !end_is_due(e))
        return;
    e->ended_told = true;
    note(e, NOTE_ENDED, 0);
    e->link.events->ended(e->link.owner);
}

static void tell_opened(struct end *e)
{
    if (!e->opened_due || e->state != END_CONNECTING)
        return;
    e->opened_due = false;
    e->state = END_OPEN;
    note(e, NOTE_OPENED, 0);
    e->link.events->opened(e->link.owner);
}

static void tell_writable(struct end *e)
{
    if (!e->writable_due || e->state != END_OPEN || e->error != 0)
        return;
    e->writable_due = false;
    note(e, NOTE_WRITABLE, 0);
    e->link.events->writable(e->link.owner);
}

static void tell_failed(struct end *e)
{
    if (e->error == 0 || (e->state != END_OPEN && e->state != END_CONNECTING))
        return;
    if (unread(e))
        return; /* what came before is read first, however long it takes */
    e->state = END_FAILED;
    e->reading = false;
    note(e, NOTE_FAILED, (uint64_t)-e->error);
    e->link.events->failed(e->link.owner, e->error);
}

void end_tell(struct end *e)
{
    struct conn *c = e->conn;

    if (e->link.events == NULL) {
        misuse(e, "nobody owns the link; connection");
        return;
    }
    c->busy++;
    tell_opened(e);
    tell_data(e);
    tell_writable(e);
    tell_failed(e);
    c->busy--;
    if (has_news(e))
        net_ready(e);
    conn_tidy(c);
}

/* --- the rest of the link's table --- */

static bool still_there(struct end *e, const char *what)
{
    if (e->state == END_CONNECTING || e->state == END_OPEN || e->state == END_FAILED)
        return true;
    misuse(e, what);
    return false;
}

static void read_start(struct link *l)
{
    struct end *e = (struct end *)(void *)l;

    if (!still_there(e, "read from after it was closed; connection") || e->state == END_FAILED)
        return;
    e->reading = true;
    if (has_news(e))
        net_ready(e);
}

static void read_stop(struct link *l)
{
    struct end *e = (struct end *)(void *)l;

    if (still_there(e, "stopped after it was closed; connection"))
        e->reading = false;
}

static void shut(struct link *l)
{
    struct end *e = (struct end *)(void *)l;

    if (!still_there(e, "shut after it was closed; connection"))
        return;
    if (e->state == END_CONNECTING)
        misuse(e, "shut before it was open; connection");
    if (e->shut || e->error != 0 || e->state != END_OPEN)
        return;
    e->shut = true;
    wire_send(e, SEGMENT_FIN);
}

/* A RST overtakes nothing, but what had not left yet is thrown away. */
static void send_reset(struct end *e)
{
    struct wire *w = &e->out;

    if (w->count > 0 && world_chance(world_of(e), 500))
        w->count = rng_below(&world_of(e)->rng, w->count + 1);
    if (w->count == 0)
        world_cancel(world_of(e), &w->arrival);
    wire_send(e, SEGMENT_RST);
}

static void close_link(struct link *l, bool reset)
{
    struct end *e = (struct end *)(void *)l;
    struct conn *c = e->conn;

    if (!still_there(e, "closed twice; connection"))
        return;
    if (e->state == END_CONNECTING) {
        world_cancel(world_of(e), &c->step);
        if (!end_over(end_peer(e)))
            wire_send(e, SEGMENT_RST);
    } else if (e->error == 0 && (reset || unread(e))) {
        send_reset(e);
    } else if (e->error == 0 && !e->shut) {
        wire_send(e, SEGMENT_FIN);
    }
    end_leave(e, e->poller->process);
}

static void info(struct link *l, struct link_info *out)
{
    struct end *e = (struct end *)(void *)l;

    *out = (struct link_info){
        .rtt = 2 * path_of(e)->latency + path_of(e)->jitter,
        .rtt_variance = path_of(e)->jitter / 2,
        .retransmits = e->out.lost,
        .lost = e->out.lost,
        .unacked = e->out.count,
        .known = true,
    };
}

const struct link_ops net_link_ops = {
    .read_start = read_start,
    .read_stop = read_stop,
    .write = write_parts,
    .shut = shut,
    .close = close_link,
    .info = info,
};
