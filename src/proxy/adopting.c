/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/adopting.h"

#include "base/memory.h"
#include "model/messages.h"
#include "proxy/accepting.h"
#include "proxy/pool.h"

/* --- configurations that are referred to --- */

static struct adopted *note_config(struct worker *w, struct snapshot *s)
{
    struct adopted *a = memory_take(sizeof(*a));

    if (a == NULL)
        return NULL;
    a->snapshot = snapshot_take(s);
    list_push_back(&w->adopted, &a->link);
    return a;
}

static void drop_config(struct adopted *a)
{
    list_remove(&a->link);
    snapshot_drop(a->snapshot);
    memory_give(a);
}

static void drop_unused(struct worker *w)
{
    struct list *at = w->adopted.next;

    while (at != &w->adopted) {
        struct adopted *a = CONTAINER_OF(at, struct adopted, link);

        at = at->next;
        if (a->uses == 0 && a != w->config)
            drop_config(a);
    }
}

/* --- clusters --- */

static void free_pools(struct cluster_pools *c)
{
    struct cluster_state *state = c->rt.state;
    uint32_t worker = c->worker->setup.index;

    if (state->local[worker] == c)
        state->local[worker] = NULL;
    pools_release(c);
    snapshot_drop(c->kept);
    memory_give(c);
}

static struct cluster_pools *make_pools(struct worker *w, const struct cluster *config)
{
    struct cluster_pools *c = memory_take(sizeof(*c));

    if (c == NULL)
        return NULL;
    if (!pools_init(c, w, config)) {
        pools_release(c);
        memory_give(c);
        return NULL;
    }
    config->state->local[w->setup.index] = c;
    return c;
}

/* What the worker has of the cluster, with room for all its hosts. NULL: no memory. */
static struct cluster_pools *pools_for(struct worker *w, const struct cluster *config)
{
    struct cluster_pools *c = config->state->local[w->setup.index];

    if (c == NULL)
        return make_pools(w, config);
    return pools_reserve(c, config->hosts.count) ? c : NULL;
}

/* New ones, of a snapshot that is not adopted after all. */
static void forget_new(struct worker *w, struct cluster_pools **clusters, uint32_t count)
{
    for (uint32_t i = 0; i < w->cluster_count; i++)
        w->clusters[i]->wanted = true;
    for (uint32_t i = 0; i < count; i++)
        if (!clusters[i]->wanted)
            free_pools(clusters[i]);
    for (uint32_t i = 0; i < w->cluster_count; i++)
        w->clusters[i]->wanted = false;
    memory_give(clusters);
}

/* Nothing that is in use changes. NULL: no memory. */
static struct cluster_pools **prepare_clusters(struct worker *w, const struct snapshot *s)
{
    struct cluster_pools **clusters =
        memory_take_array(s->cluster_count + (size_t)1, sizeof(*clusters));

    for (uint32_t i = 0; clusters != NULL && i < s->cluster_count; i++) {
        clusters[i] = pools_for(w, &s->clusters[i]);
        if (clusters[i] == NULL) {
            forget_new(w, clusters, i);
            return NULL;
        }
    }
    return clusters;
}

static void change_clusters(struct worker *w, struct cluster_pools **clusters,
                            const struct snapshot *s)
{
    for (uint32_t i = 0; i < s->cluster_count; i++) {
        pools_adopt(clusters[i], &s->clusters[i]);
        clusters[i]->wanted = true;
    }
    for (uint32_t i = 0; i < w->cluster_count; i++) {
        if (w->clusters[i]->wanted)
            continue;
        pools_retire(w->clusters[i], w->snapshot);
        list_push_back(&w->retired, &w->clusters[i]->link);
    }
    for (uint32_t i = 0; i < s->cluster_count; i++)
        clusters[i]->wanted = false;
    memory_give(w->clusters);
    w->clusters = clusters;
    w->cluster_count = s->cluster_count;
    for (uint32_t i = 0; i < s->cluster_count; i++)
        pools_slot_news(clusters[i]); /* there may be more slots now */
}

/* --- going over --- */

/* A snapshot with other hosts only, as name servers tell them, keeps the routes of its base. */
static struct snapshot *routes_of(struct snapshot *s)
{
    return s->base == NULL ? s : s->base;
}

bool adopting_begin(struct worker *w, struct snapshot *s)
{
    struct cluster_pools **clusters = prepare_clusters(w, s);

    w->config = clusters == NULL ? NULL : note_config(w, routes_of(s));
    if (w->config == NULL) {
        if (clusters != NULL)
            forget_new(w, clusters, s->cluster_count);
        return false;
    }
    w->snapshot = snapshot_take(s);
    w->clusters = clusters;
    w->cluster_count = s->cluster_count;
    atomic_store_explicit(&w->cells->version, s->version, memory_order_release);
    return true;
}

static bool change(struct worker *w, struct snapshot *s)
{
    bool same = w->config->snapshot == routes_of(s);
    struct adopted *config = same ? w->config : note_config(w, routes_of(s));
    struct cluster_pools **clusters = config == NULL ? NULL : prepare_clusters(w, s);

    if (clusters == NULL) {
        if (config != NULL && !same)
            drop_config(config);
        return false;
    }
    change_clusters(w, clusters, s);
    w->config = config;
    if (!same)
        accepting_adopt(w, s);
    return true;
}

static void tell(struct worker *w, uint64_t version)
{
    const struct message m = {.kind = MESSAGE_ADOPTED, .index = w->setup.index, .value = version};

    atomic_store_explicit(&w->cells->version, version, memory_order_release);
    mailbox_post(w->setup.control, &m);
}

void adopting_go_over(struct worker *w, struct snapshot *s)
{
    struct snapshot *before = w->snapshot;

    if (!change(w, s)) {
        log_event(w->setup.log, LOG_ERROR, "config.not_adopted",
                  "worker %u: no memory: it stays with the configuration before", w->setup.index);
        snapshot_drop(s);
        return;
    }
    w->snapshot = s;
    w->going_over = true;
    snapshot_drop(before);
    tell(w, s->version);
}

static void sweep_clusters(struct worker *w)
{
    struct list *at = w->retired.next;

    while (at != &w->retired) {
        struct cluster_pools *c = CONTAINER_OF(at, struct cluster_pools, link);

        at = at->next;
        if (pools_over(c)) {
            list_remove(&c->link);
            free_pools(c);
        }
    }
}

void adopting_sweep(struct worker *w)
{
    bool closing;

    sweep_clusters(w);
    closing = accepting_sweep(w);
    drop_unused(w);
    w->going_over = closing || !list_empty(&w->retired) || w->adopted.next != w->adopted.prev;
}

void adopting_free(struct worker *w)
{
    struct list *at;

    accepting_free(w);
    while ((at = list_pop_front(&w->retired)) != NULL)
        free_pools(CONTAINER_OF(at, struct cluster_pools, link));
    for (uint32_t i = 0; i < w->cluster_count; i++)
        free_pools(w->clusters[i]);
    memory_give(w->clusters);
    while (!list_empty(&w->adopted))
        drop_config(CONTAINER_OF(w->adopted.next, struct adopted, link));
    snapshot_drop(w->snapshot);
}
