/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/load.h"

#include <assert.h>

#include "base/list.h"
#include "base/memory.h"
#include "base/slab.h"
#include "io/error.h"

#define CALLS_KEPT 4096

/* A connection with the request that is under way on it. */
struct call {
    struct caller caller;
    struct load *load;
    struct list link; /* idle or in flight; the idle one used last is first */
    struct appointment timeout;
    struct shot shot;
    bool resent;
    char peer[LOAD_PEER_MAX];
};

struct load {
    struct lab_loop *loop;
    struct load_options options;
    struct arrivals arrivals;
    struct appointment arrival;
    struct tally tally;
    struct slab slab;
    struct list idle;
    struct list in_flight;
    uint32_t calls; /* in either list */
    uint32_t flying;
    uint32_t most_flying;
    mono_ns started_at;
    mono_ns next_due;
    mono_ns stopped_at; /* MONO_NEVER: not yet */
    bool arriving;
};

static struct call *call_of(struct caller *c)
{
    return CONTAINER_OF(c, struct call, caller);
}

static struct call *take_idle(struct load *l)
{
    struct list *first = list_pop_front(&l->idle);

    return first == NULL ? NULL : CONTAINER_OF(first, struct call, link);
}

static void give_back(struct call *c)
{
    struct load *l = c->load;

    list_remove(&c->link);
    schedule_cancel(&l->loop->schedule, &c->timeout);
    caller_drop(&c->caller);
    l->calls--;
    slab_give(&l->slab, c);
}

/* It ended, this way or that; the connection stays where it can. */
static void over(struct call *c, enum call_outcome outcome)
{
    struct load *l = c->load;

    c->shot.outcome = outcome;
    c->shot.over_at = l->loop->now;
    tally_over(&l->tally, &c->shot);
    l->flying--;
    schedule_cancel(&l->loop->schedule, &c->timeout);
    if (l->options.observe != NULL)
        l->options.observe(l->options.observer, &c->shot, c->peer);
    list_remove(&c->link);
    if (caller_is_open(&c->caller))
        list_push_front(&l->idle, &c->link);
    else
        give_back(c);
}

static bool may_resend(const struct call *c, enum call_outcome outcome)
{
    const struct call_request *r = &c->load->options.request;

    return (outcome == CALL_RESET || outcome == CALL_CLOSED) && !c->resent &&
           caller_is_reused(&c->caller) && !c->caller.started && r->body == 0 &&
           method_idempotent(r->method);
}

/* On a connection of its own. False: there is none to be had. */
static bool send_afresh(struct call *c)
{
    if (caller_connect(&c->caller, &c->load->options.to) != IO_OK)
        return false;
    c->load->tally.opened++;
    caller_call(&c->caller, &c->load->options.request);
    return true;
}

static void on_head(struct caller *caller, const struct message_head *head)
{
    struct call *c = call_of(caller);
    struct text peer;

    c->shot.status = head->status;
    if (c->load->options.observe == NULL)
        return;
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct field *f = &head->fields[i];

        if (f->value.len >= sizeof(c->peer) ||
            !bytes_equal_nocase(f->name, BYTES("x-firebreak-backend")))
            continue;
        text_init(&peer, c->peer, sizeof(c->peer));
        text_put(&peer, f->value);
        text_end(&peer);
    }
}

static void on_body(struct caller *caller, struct bytes data)
{
    call_of(caller)->load->tally.body_bytes += data.len;
}

/* The race that every pool has: the server closed the idle connection as we used it. */
static void on_done(struct caller *caller, enum call_outcome outcome)
{
    struct call *c = call_of(caller);

    if (!may_resend(c, outcome)) {
        over(c, outcome);
        return;
    }
    c->resent = true;
    c->load->tally.resent++;
    if (!send_afresh(c))
        over(c, CALL_LOCAL);
}

static void on_lost(struct caller *caller)
{
    give_back(call_of(caller));
}

static const struct caller_events events = {
    .head = on_head, .body = on_body, .done = on_done, .lost = on_lost};

static void timed_out(struct appointment *a, mono_ns now)
{
    struct call *c = CONTAINER_OF(a, struct call, timeout);

    (void)now;
    caller_drop(&c->caller);
    over(c, CALL_TIMEOUT);
}

static struct call *make_call(struct load *l)
{
    struct call *c = l->calls < l->options.connections ? slab_take(&l->slab) : NULL;

    if (c == NULL)
        return NULL;
    *c = (struct call){.load = l};
    list_init(&c->link);
    appointment_init(&c->timeout, timed_out);
    caller_init(&c->caller, &events, l->loop);
    l->calls++;
    return c;
}

static void fire(struct load *l, mono_ns due_at)
{
    struct call *c = take_idle(l);

    l->tally.due++;
    if (c == NULL)
        c = make_call(l);
    if (c == NULL) {
        l->tally.dropped++;
        return;
    }
    list_push_back(&l->in_flight, &c->link);
    c->shot = (struct shot){.due_at = due_at, .sent_at = l->loop->now};
    c->resent = false;
    c->peer[0] = '\0';
    l->flying++;
    if (l->flying > l->most_flying)
        l->most_flying = l->flying;
    tally_sent(&l->tally, due_at, l->loop->now);
    schedule_arm(&l->loop->schedule, &c->timeout, mono_after(due_at, l->options.timeout));
    if (caller_is_open(&c->caller))
        caller_call(&c->caller, &l->options.request);
    else if (!send_afresh(c))
        over(c, CALL_LOCAL);
}

static void schedule_next_arrival(struct load *l)
{
    span_ns at = arrivals_next(&l->arrivals);

    if (at >= l->options.duration) {
        l->arriving = false;
        l->stopped_at = mono_after(l->started_at, l->options.duration);
        return;
    }
    l->next_due = mono_after(l->started_at, at);
    schedule_arm(&l->loop->schedule, &l->arrival, l->next_due);
}

/* Behind schedule, all that is due fires in this same run: nothing is skipped. */
static void arrived(struct appointment *a, mono_ns now)
{
    struct load *l = CONTAINER_OF(a, struct load, arrival);

    (void)now;
    fire(l, l->next_due);
    if (l->arriving)
        schedule_next_arrival(l);
}

struct load *load_create(struct lab_loop *loop, const struct load_options *o)
{
    struct load *l = memory_take(sizeof(*l));

    if (l == NULL)
        return NULL;
    l->loop = loop;
    l->options = *o;
    l->stopped_at = MONO_NEVER;
    arrivals_init(&l->arrivals, o->arrivals, o->rate, o->seed);
    appointment_init(&l->arrival, arrived);
    slab_init(&l->slab, sizeof(struct call), CALLS_KEPT);
    list_init(&l->idle);
    list_init(&l->in_flight);
    return l;
}

void load_start(struct load *l)
{
    l->started_at = l->loop->now;
    l->arriving = true;
    schedule_next_arrival(l);
}

void load_stop(struct load *l)
{
    if (!l->arriving)
        return;
    l->arriving = false;
    l->stopped_at = l->loop->now;
    schedule_cancel(&l->loop->schedule, &l->arrival);
}

bool load_done(const struct load *l)
{
    return !l->arriving && l->flying == 0;
}

const struct tally *load_tally(const struct load *l)
{
    return &l->tally;
}

uint32_t load_in_flight(const struct load *l)
{
    return l->flying;
}

uint32_t load_most_in_flight(const struct load *l)
{
    return l->most_flying;
}

span_ns load_elapsed(const struct load *l)
{
    return mono_since(l->started_at, l->arriving ? l->loop->now : l->stopped_at);
}

static void give_back_all(struct list *head)
{
    while (!list_empty(head))
        give_back(CONTAINER_OF(head->next, struct call, link));
}

void load_free(struct load *l)
{
    if (l == NULL)
        return;
    schedule_cancel(&l->loop->schedule, &l->arrival);
    give_back_all(&l->idle);
    give_back_all(&l->in_flight);
    slab_release(&l->slab);
    memory_give(l);
}
