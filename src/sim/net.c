/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/net.h"

#include <assert.h>

#include "base/memory.h"
#include "sim/net_internal.h"

#define FIRST_PORT 20000
#define READY_FIRST_EACH                                                                           \
    125 /* permille of ends that are told before those that were ready earlier */

/* --- the whole --- */

bool net_init(struct net *n, struct world *w)
{
    *n = (struct net){.world = w, .next_port = FIRST_PORT};
    list_init(&n->sites);
    list_init(&n->conns);
    slab_init(&n->conn_slab, sizeof(struct conn), 1024);
    n->scratch = memory_take(NET_RECEIVE_MAX);
    return n->scratch != NULL;
}

static void forget_site(struct net_site *s)
{
    struct list *l;

    while ((l = list_pop_front(&s->listeners)) != NULL)
        memory_give(CONTAINER_OF(l, struct sim_listener, link));
    memory_give(s);
}

void net_release(struct net *n)
{
    struct list *l;

    while (!list_empty(&n->conns))
        conn_forget(CONTAINER_OF(n->conns.next, struct conn, link));
    while ((l = list_pop_front(&n->sites)) != NULL)
        forget_site(CONTAINER_OF(l, struct net_site, link));
    slab_release(&n->conn_slab);
    memory_give(n->scratch);
    n->scratch = NULL;
}

static const struct net_path default_path = {
    .latency = 200 * NS_PER_US,
    .window = 65536,
    .cut = NET_CUT_WHOLE,
};

struct net_site *net_site(struct net *n, const struct address *at)
{
    struct net_site *s;

    for (struct list *l = n->sites.next; l != &n->sites; l = l->next) {
        s = CONTAINER_OF(l, struct net_site, link);
        if (address_equal(&s->address, at))
            return s;
    }
    s = memory_take(sizeof(*s));
    if (s == NULL)
        return NULL;
    *s = (struct net_site){.net = n, .address = *at, .path = default_path};
    list_init(&s->listeners);
    list_push_back(&n->sites, &s->link);
    return s;
}

void net_process_init(struct net_process *p)
{
    *p = (struct net_process){.descriptors_max = NET_LIMITLESS, .ports_max = NET_LIMITLESS};
}

void net_note(struct net *n, uint32_t what, uint64_t which, uint64_t value)
{
    world_digest_value(n->world, n->world->now);
    world_digest_value(n->world, (uint64_t)what << 48 ^ which << 24 ^ value);
}

/* --- who has something to tell --- */

void net_ready(struct end *e)
{
    struct sim_poller *p = e->poller;

    if (p == NULL)
        return;
    if (list_empty(&e->ready)) {
        if (world_chance(p->net->world, READY_FIRST_EACH))
            list_push_front(&p->ready, &e->ready);
        else
            list_push_back(&p->ready, &e->ready);
    }
    world_loop_wake(p->loop);
}

void net_listener_ready(struct sim_listener *l)
{
    if (list_empty(&l->ready))
        list_push_back(&l->poller->ready_listeners, &l->ready);
    world_loop_wake(l->poller->loop);
}

/* --- the poller --- */

static void wait_for_it(struct poller *p, span_ns most)
{
    (void)p; /* whoever calls was woken, or its time has come */
    (void)most;
}

/* What becomes ready by what the owners now do is for the next turn. */
static void move_all(struct list *from, struct list *to)
{
    list_init(to);
    if (list_empty(from))
        return;
    to->next = from->next;
    to->prev = from->prev;
    to->next->prev = to;
    to->prev->next = to;
    list_init(from);
}

static void dispatch(struct poller *base)
{
    struct sim_poller *p = (struct sim_poller *)(void *)base;
    struct list ends;
    struct list listeners;
    struct list calls;
    struct list *l;

    move_all(&p->ready, &ends);
    move_all(&p->ready_listeners, &listeners);
    move_all(&p->calls, &calls);
    while ((l = list_pop_front(&ends)) != NULL)
        end_tell(CONTAINER_OF(l, struct end, ready));
    while ((l = list_pop_front(&listeners)) != NULL)
        listener_tell(CONTAINER_OF(l, struct sim_listener, ready));
    while ((l = list_pop_front(&calls)) != NULL) {
        struct sim_call *c = CONTAINER_OF(l, struct sim_call, link);

        p->loop->progress++;
        c->call(c);
    }
}

static void wake(struct poller *base)
{
    world_loop_wake(((struct sim_poller *)(void *)base)->loop);
}

static const struct poller_ops poller_table = {
    .wait = wait_for_it,
    .dispatch = dispatch,
    .connect = net_connect,
    .listen = net_listen,
    .wake = wake,
};

void sim_poller_init(struct sim_poller *p, struct net *n, struct net_process *process,
                     struct world_loop *loop)
{
    *p = (struct sim_poller){
        .base = {.ops = &poller_table},
        .net = n,
        .process = process,
        .loop = loop,
    };
    list_init(&p->ready);
    list_init(&p->ready_listeners);
    list_init(&p->calls);
}

void sim_poller_call(struct sim_poller *p, struct sim_call *c)
{
    if (list_empty(&c->link))
        list_push_back(&p->calls, &c->link);
    world_loop_wake(p->loop);
}

uint64_t net_link_number(const struct link *l)
{
    return ((const struct end *)(const void *)l)->conn->number;
}

void net_vanish(struct link *l)
{
    struct end *e = (struct end *)(void *)l;

    assert(e->state == END_OPEN || e->state == END_FAILED);
    world_cancel(e->conn->net->world, &e->out.arrival);
    e->out.dead = true;
    end_leave(e, e->poller->process);
}
