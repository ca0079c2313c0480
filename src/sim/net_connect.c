/* SPDX-License-Identifier: Apache-2.0 */
/* How connections of the simulated network begin: connecting, listening, accepting. */
#include "base/memory.h"
#include "sim/net_internal.h"

#define SYN_RETRIES     6 /* after 1, 3, 7, 15, 31, 63 s */
#define BACKLOG_DEFAULT 4096
#define ACCEPTS_MAX     16 /* in one turn */

enum note { NOTE_SYN = 16, NOTE_ACCEPTED, NOTE_TROUBLED };

/* --- connecting --- */

/* Who listens at the address, or at any address with this port; NULL: nobody. */
static struct net_site *listening(struct net_site *s)
{
    struct address any = s->address;
    struct net_site *wild;

    if (!list_empty(&s->listeners))
        return s;
    memset(any.ip, 0, sizeof(any.ip));
    for (struct list *l = s->net->sites.next; l != &s->net->sites; l = l->next) {
        wild = CONTAINER_OF(l, struct net_site, link);
        if (address_equal(&wild->address, &any) && !list_empty(&wild->listeners))
            return wild;
    }
    return NULL;
}

static struct sim_listener *choose(struct net_site *s)
{
    uint32_t count = 0;
    uint32_t which;
    struct list *l;

    for (l = s->listeners.next; l != &s->listeners; l = l->next)
        count++;
    which = count == 1 ? 0 : rng_below(&s->net->world->rng, count);
    for (l = s->listeners.next; which > 0; which--)
        l = l->next;
    return CONTAINER_OF(l, struct sim_listener, link);
}

/* The SYN or what answered it was lost: the kernel tries again, then gives up. */
static void try_again(struct conn *c, mono_ns now)
{
    span_ns wait = (NS_PER_S << c->syns);

    if (c->syns++ >= SYN_RETRIES) {
        c->handshake = SYN_REFUSED;
        c->refusal = IO_TIMED_OUT;
    }
    world_arm(c->net->world, &c->step, now + wait);
}

static void refuse(struct conn *c, int error, mono_ns now)
{
    c->handshake = SYN_REFUSED;
    c->refusal = error;
    world_arm(c->net->world, &c->step, now + c->site->path.latency);
}

static void queue(struct conn *c, struct sim_listener *l, mono_ns now)
{
    struct end *e = &c->ends[1];

    e->state = END_OPEN;
    c->site->open++;
    list_push_back(&l->backlog, &e->ready);
    l->queued++;
    if (!l->paused)
        net_listener_ready(l);
    c->handshake = SYN_ACKED;
    e->out.last_at = now + c->site->path.latency; /* no data before the SYN-ACK */
    world_arm(c->net->world, &c->step, e->out.last_at);
}

static void syn_came(struct conn *c, mono_ns now)
{
    const struct net_path *p = &c->site->path;
    struct net_site *there = listening(c->site);
    struct sim_listener *l;

    if (p->black_hole || world_chance(c->net->world, p->loss_permille)) {
        try_again(c, now);
        return;
    }
    if (p->unreachable || p->refuse || there == NULL) {
        refuse(c, p->unreachable ? IO_UNREACHABLE : IO_REFUSED, now);
        return;
    }
    l = choose(there);
    if (l->queued >= l->backlog_max)
        try_again(c, now);
    else
        queue(c, l, now);
}

static void step(struct world_event *event, mono_ns now)
{
    struct conn *c = CONTAINER_OF(event, struct conn, step);
    struct end *e = &c->ends[0];

    switch (c->handshake) {
    case SYN_UNDER_WAY:
        syn_came(c, now);
        break;
    case SYN_ACKED:
        c->handshake = HANDSHAKE_OVER;
        if (e->error == 0)
            e->opened_due = true;
        net_ready(e);
        break;
    case SYN_REFUSED:
        c->handshake = HANDSHAKE_OVER;
        end_fail(e, c->refusal);
        break;
    case HANDSHAKE_OVER:
        break;
    }
}

static int our_trouble(const struct net_process *p)
{
    if (p->connect_fault != IO_OK)
        return p->connect_fault;
    if (p->descriptors >= p->descriptors_max)
        return IO_NO_DESCRIPTORS;
    if (p->outgoing >= p->ports_max)
        return IO_NO_PORTS;
    return IO_OK;
}

static struct address dialer_address(struct net *n)
{
    struct address a = {.kind = ADDRESS_IPV4, .ip = {192, 0, 2, 1}};

    n->next_port = n->next_port == UINT16_MAX ? 20000 : (uint16_t)(n->next_port + 1);
    a.port = n->next_port;
    return a;
}

int net_connect(struct poller *base, const struct address *to, const struct connect_options *o,
                struct link **out)
{
    struct sim_poller *p = (struct sim_poller *)(void *)base;
    struct world *w = p->net->world;
    struct net_site *site = net_site(p->net, to);
    int trouble = our_trouble(p->process);
    struct conn *c;
    (void)o; /* probes find dead peers in hours; the runs are minutes */

    if (trouble != IO_OK)
        return trouble;
    c = site == NULL ? NULL : conn_make(p->net, site);
    if (c == NULL)
        return IO_NO_MEMORY;
    c->dialer = p->process;
    c->from = dialer_address(p->net);
    c->ends[0].poller = p;
    c->ends[0].state = END_CONNECTING;
    p->process->descriptors++;
    p->process->outgoing++;
    site->connects++;
    net_note(p->net, NOTE_SYN, c->number, to->port);
    world_event_init(&c->step, step);
    world_arm(w, &c->step, w->now + site->path.latency + world_span(w, site->path.jitter));
    *out = &c->ends[0].link;
    return IO_OK;
}

/* --- listening --- */

static struct sim_listener *of(struct listener *l)
{
    return (struct sim_listener *)(void *)l;
}

static void pause(struct listener *l)
{
    of(l)->paused = true;
}

static void resume(struct listener *l)
{
    of(l)->paused = false;
    if (of(l)->queued > 0)
        net_listener_ready(of(l));
}

static void address(struct listener *l, struct address *out)
{
    *out = of(l)->site->address;
}

static void free_closed(struct sim_listener *l)
{
    if (l->closed && l->busy == 0)
        memory_give(l);
}

/* Nobody will ever accept it: its kernel resets it. */
static void drop_queued(struct end *e)
{
    wire_send(e, SEGMENT_RST);
    end_leave(e, NULL);
}

static void close_listener(struct listener *base)
{
    struct sim_listener *l = of(base);
    struct list *e;

    while ((e = list_pop_front(&l->backlog)) != NULL)
        drop_queued(CONTAINER_OF(e, struct end, ready));
    list_remove(&l->link);
    list_remove(&l->ready);
    l->poller->process->descriptors--;
    l->closed = true;
    free_closed(l);
}

static void turn_away(struct listener *base)
{
    struct sim_listener *l = of(base);

    list_remove(&l->link);
}

static const struct listener_ops listener_table = {
    .pause = pause,
    .resume = resume,
    .turn_away = turn_away,
    .address = address,
    .close = close_listener,
};

/* Several may listen at one address if all say so and are of one process. */
static bool in_use(struct net_site *s, const struct sim_poller *p, const struct listen_options *o)
{
    struct sim_listener *first;

    if (list_empty(&s->listeners))
        return false;
    first = CONTAINER_OF(s->listeners.next, struct sim_listener, link);
    return !o->reuse_port || first->poller->process != p->process;
}

int net_listen(struct poller *base, const struct address *at, const struct listen_options *o,
               struct listener **out)
{
    struct sim_poller *p = (struct sim_poller *)(void *)base;
    struct address real = *at;
    struct net_site *site;
    struct sim_listener *l;

    if (p->process->descriptors >= p->process->descriptors_max)
        return IO_NO_DESCRIPTORS;
    if (real.port == 0)
        real.port = ++p->net->next_port;
    site = net_site(p->net, &real);
    if (site == NULL)
        return IO_NO_MEMORY;
    if (in_use(site, p, o))
        return IO_ADDRESS_IN_USE;
    l = memory_take(sizeof(*l));
    if (l == NULL)
        return IO_NO_MEMORY;
    *l = (struct sim_listener){
        .base = {.ops = &listener_table},
        .poller = p,
        .site = site,
        .backlog_max = o->backlog == 0 ? BACKLOG_DEFAULT : (uint32_t)o->backlog,
    };
    list_init(&l->ready);
    list_init(&l->backlog);
    list_push_back(&site->listeners, &l->link);
    p->process->descriptors++;
    *out = &l->base;
    return IO_OK;
}

/* --- accepting --- */

static void trouble(struct sim_listener *l, int error)
{
    if (error == IO_NO_DESCRIPTORS || error == IO_NO_MEMORY)
        l->paused = true;
    l->poller->loop->progress++;
    net_note(l->poller->net, NOTE_TROUBLED, l->queued, (uint64_t)-error);
    l->base.events->troubled(l->base.owner, error);
}

static void accept_one(struct sim_listener *l)
{
    struct end *e = CONTAINER_OF(list_pop_front(&l->backlog), struct end, ready);
    struct conn *c = e->conn;

    l->queued--;
    e->poller = l->poller;
    l->poller->process->descriptors++;
    l->poller->loop->progress++;
    net_note(c->net, NOTE_ACCEPTED, c->number, l->queued);
    c->busy++;
    l->base.events->accepted(l->base.owner, &e->link, &c->from);
    c->busy--;
    if (e->state == END_OPEN && e->error != 0)
        net_ready(e);
    conn_tidy(c);
}

void listener_tell(struct sim_listener *l)
{
    struct net_process *p = l->poller->process;

    if (l->base.events == NULL) {
        world_fail(l->poller->net->world, "listener contract", "nobody owns the listener at port",
                   l->site->address.port);
        return;
    }
    l->busy++;
    for (unsigned i = 0; i < ACCEPTS_MAX && !l->closed && !l->paused && l->queued > 0; i++) {
        if (p->accept_fault != IO_OK)
            trouble(l, p->accept_fault);
        else if (p->descriptors >= p->descriptors_max)
            trouble(l, IO_NO_DESCRIPTORS);
        else
            accept_one(l);
    }
    l->busy--;
    if (!l->closed && !l->paused && l->queued > 0)
        net_listener_ready(l);
    free_closed(l);
}
