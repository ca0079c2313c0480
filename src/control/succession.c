/* SPDX-License-Identifier: Apache-2.0 */
#include "control/succession.h"

#include "base/arena.h"
#include "control/config_names.h"

#define SCRATCH_FIRST 4096

/* What is only needed while one snapshot is made. */
struct succession {
    struct snapshot *next;
    const struct snapshot *before;
    uint64_t adopted;
    struct arena scratch;
};

/* The arrays are in the new snapshot's arena, and still ours. */
static struct cluster *cluster_at(const struct snapshot *s, uint32_t i)
{
    return &((struct cluster *)(uintptr_t)s->clusters)[i];
}

static struct listener_config *listener_at(const struct snapshot *s, uint32_t i)
{
    return &((struct listener_config *)(uintptr_t)s->listeners)[i];
}

/* --- hosts --- */

static bool at_rest(const struct host_state *h)
{
    uint64_t held = 0;

    for (uint32_t w = 0; w < h->workers; w++)
        held += cell_read(&h->cells[w].held);
    return held == 0 && host_state_sum(h, ENDPOINT_cx_active) == 0 &&
           atomic_load_explicit(&h->host.in_flight, memory_order_acquire) == 0;
}

/* The next step of a host on its way out. */
static void age(const struct succession *u, struct cluster_state *state, uint32_t slot)
{
    struct host_state *h = host_state_of(state->slots[slot]);

    if (h->gone_since != 0) {
        if (h->gone_since <= u->adopted)
            cluster_state_vacate(state, slot);
        return;
    }
    if (h->absent_since != 0 && h->absent_since <= u->adopted && at_rest(h))
        h->gone_since = u->next->version;
}

static bool present_or_lingering(struct host *h)
{
    return h != NULL && host_state_of(h)->gone_since == 0;
}

/* Which host is in which slot, but for those that are gone. */
static bool index_hosts(struct succession *u, struct cluster_state *state,
                        struct config_names *slots)
{
    if (!config_names_init(slots, &u->scratch, state->hosts.count))
        return false;
    for (uint32_t i = 0; i < state->hosts.count; i++) {
        if (state->slots[i] != NULL)
            age(u, state, i);
        if (present_or_lingering(state->slots[i]))
            config_names_add(slots, host_state_of(state->slots[i])->text, i);
    }
    return true;
}

/* As Envoy has it: a host that was away starts without history. */
static void forget_history(struct host *h)
{
    outlier_runs_init(&h->runs);
    outlier_host_init(&h->judged);
    atomic_store_explicit(&h->ejections, 0, memory_order_relaxed);
}

static bool place_endpoint(struct cluster_state *state, const struct config_names *slots,
                           struct endpoint *e, uint64_t version)
{
    uint32_t known = config_names_find(slots, e->text);
    struct host_state *h;

    e->slot = known != CONFIG_NO_NAME ? known : cluster_state_add(state, &e->address, e->text);
    if (e->slot == HOST_NO_SLOT)
        return false;
    h = host_state_of(state->slots[e->slot]);
    if (h->absent_since != 0)
        forget_history(&h->host);
    h->named_by = version;
    return true;
}

static bool place_hosts(struct succession *u, struct cluster *c)
{
    struct endpoint *endpoints = (struct endpoint *)(uintptr_t)c->endpoints;
    struct config_names slots;

    if (!index_hosts(u, c->state, &slots))
        return false;
    for (uint32_t i = 0; i < c->endpoint_count; i++)
        if (!place_endpoint(c->state, &slots, &endpoints[i], u->next->version))
            return false;
    return cluster_state_view(c->state, &u->next->arena, &c->hosts);
}

/* --- clusters and listeners --- */

static bool take_over_clusters(struct succession *u)
{
    struct config_names known;

    if (!config_names_init(&known, &u->scratch, u->before->cluster_count))
        return false;
    for (uint32_t i = 0; i < u->before->cluster_count; i++)
        config_names_add(&known, u->before->clusters[i].name, i);
    for (uint32_t i = 0; i < u->next->cluster_count; i++) {
        struct cluster *c = cluster_at(u->next, i);
        uint32_t was = config_names_find(&known, c->name);

        if (was == CONFIG_NO_NAME)
            continue;
        c->state = cluster_state_take(u->before->clusters[was].state);
        if (!place_hosts(u, c))
            return false;
    }
    return true;
}

/* One that listens elsewhere is another one: the old address is given up, the new one opened. */
static bool same_listener(const struct listener_config *a, const struct listener_config *b)
{
    return bytes_equal(a->name, b->name) && address_equal(&a->address, &b->address);
}

static void take_over_listeners(struct succession *u)
{
    for (uint32_t i = 0; i < u->next->listener_count; i++) {
        struct listener_config *l = listener_at(u->next, i);

        for (uint32_t k = 0; k < u->before->listener_count && l->state == NULL; k++)
            if (same_listener(l, &u->before->listeners[k]))
                l->state = listener_state_take(u->before->listeners[k].state);
    }
}

bool succession_prepare(struct snapshot *next, const struct snapshot *before, uint64_t adopted,
                        uint32_t workers)
{
    struct succession u = {.next = next, .before = before, .adopted = adopted};
    bool ok;

    arena_init(&u.scratch, SCRATCH_FIRST, SIZE_MAX);
    take_over_listeners(&u);
    ok = take_over_clusters(&u) && snapshot_attach_state(next, workers);
    arena_release(&u.scratch);
    return ok;
}

/* --- in force --- */

/* What was learnt and done by hand ends with it: it begins anew, should it come back. */
static void leave(const struct cluster *c, uint32_t slot)
{
    struct host_state *h = host_state_of(c->state->slots[slot]);

    outlier_host_init(&h->host.judged);
    host_set_undrain(&c->state->hosts, slot);
    h->drain_since = 0;
    h->drained = false;
}

/* Did it leave, or come back? */
static bool settle(const struct snapshot *s, const struct cluster *c, uint32_t slot)
{
    struct host_state *h = host_state_of(c->state->slots[slot]);
    bool named = h->named_by == s->version;

    if (named == (h->absent_since == 0))
        return false;
    h->absent_since = named ? 0 : s->version + 1;
    if (named)
        outlier_runs_forgive(&h->host.runs);
    else
        leave(c, slot);
    host_set_health(&c->state->hosts, slot, named ? HOST_HEALTHY : HOST_ABSENT);
    return true;
}

/* True: hosts left, or may have. */
static bool settle_cluster(const struct snapshot *s, const struct cluster *c)
{
    bool changed = c->state->named != c->endpoint_count;

    for (uint32_t slot = 0; slot < c->state->hosts.count; slot++)
        if (c->state->slots[slot] != NULL && host_state_of(c->state->slots[slot])->gone_since == 0)
            changed = settle(s, c, slot) || changed;
    c->state->named = c->endpoint_count;
    if (changed)
        atomic_fetch_add_explicit(&c->state->membership_changes, 1, memory_order_relaxed);
    return changed;
}

void succession_commit(const struct snapshot *s, succession_left left, void *owner)
{
    for (uint32_t i = 0; i < s->cluster_count; i++)
        if (settle_cluster(s, &s->clusters[i]))
            left(owner, s->clusters[i].state);
}
