/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/resolver.h"

#include "base/memory.h"

#define HOST_MAX 255

struct lookup {
    struct sim_call call; /* first */
    struct list link;     /* of the resolver */
    struct world_event event;
    struct sim_resolver *resolver;
    resolver_done done;
    void *owner;
    int error; /* IO_OK: ask the table */
    size_t len;
    char host[HOST_MAX];
};

static const struct sim_name *find(const struct sim_resolver *r, struct bytes host)
{
    for (uint32_t i = 0; i < r->name_count; i++)
        if (bytes_equal_nocase(bytes_of(r->names[i].name), host))
            return &r->names[i];
    return NULL;
}

/* In the loop's turn. The table is read now, not when the question was asked. */
static void answer(struct sim_call *call)
{
    struct lookup *l = (struct lookup *)(void *)call;
    const struct sim_name *n = find(l->resolver, bytes_from(l->host, l->len));
    struct lookup copy = *l;
    int error = l->error;

    list_remove(&l->link);
    memory_give(l);
    if (error == IO_OK && n == NULL)
        error = IO_NOT_FOUND;
    else if (error == IO_OK)
        error = n->error;
    if (error == IO_OK)
        copy.done(copy.owner, IO_OK, n->at, n->count, n->ttl);
    else
        copy.done(copy.owner, error, NULL, 0, 0);
}

static void due(struct world_event *event, mono_ns now)
{
    struct lookup *l = CONTAINER_OF(event, struct lookup, event);
    (void)now;

    sim_poller_call(l->resolver->poller, &l->call);
}

static void lookup(struct resolver *base, struct bytes host, resolver_done done, void *owner)
{
    struct sim_resolver *r = (struct sim_resolver *)(void *)base;
    struct world *w = r->poller->net->world;
    struct lookup *l = memory_take(sizeof(*l));

    r->asked++;
    if (l == NULL) {
        world_fail(w, "simulator", "out of memory for a lookup", r->asked);
        return;
    }
    *l = (struct lookup){.call = {.call = answer}, .resolver = r, .done = done, .owner = owner};
    l->len = host.len < HOST_MAX ? host.len : HOST_MAX;
    l->error = host.len < HOST_MAX ? IO_OK : IO_INVALID;
    if (l->len > 0)
        memcpy(l->host, host.data, l->len);
    list_init(&l->call.link);
    list_push_back(&r->lookups, &l->link);
    world_event_init(&l->event, due);
    world_arm(w, &l->event, mono_after(w->now, r->delay));
}

void sim_resolver_init(struct sim_resolver *r, struct sim_poller *poller)
{
    *r = (struct sim_resolver){.base = {.lookup = lookup}, .poller = poller, .delay = NS_PER_MS};
    list_init(&r->lookups);
}

void sim_resolver_release(struct sim_resolver *r)
{
    struct list *first;

    while ((first = list_pop_front(&r->lookups)) != NULL) {
        struct lookup *l = CONTAINER_OF(first, struct lookup, link);

        world_cancel(r->poller->net->world, &l->event);
        list_remove(&l->call.link);
        memory_give(l);
    }
}

struct sim_name *sim_resolver_name(struct sim_resolver *r, const char *name)
{
    for (uint32_t i = 0; i < r->name_count; i++)
        if (bytes_equal_nocase(bytes_of(r->names[i].name), bytes_of(name)))
            return &r->names[i];
    if (r->name_count == SIM_NAMES)
        return NULL;
    r->names[r->name_count] = (struct sim_name){.name = name, .ttl = 60 * NS_PER_S};
    return &r->names[r->name_count++];
}
