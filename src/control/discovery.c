/* SPDX-License-Identifier: Apache-2.0 */
#include "control/discovery.h"

#include <inttypes.h>
#include <string.h>

#include "base/list.h"
#include "base/memory.h"
#include "base/text.h"
#include "control/config_names.h"
#include "io/error.h"
#include "policy/name_set.h"

#define SCRATCH_FIRST 4096

struct dns_name {
    struct list link; /* of |names|, or of |orphans| */
    struct discovery *discovery;
    struct timer due;
    bool asking;
    bool wanted;
    uint32_t failures; /* in a row */
    span_ns hold;
    struct name_set set;
    size_t len;
    char host[];
};

struct discovery {
    struct discovery_setup setup;
    struct list names;
    struct list orphans; /* no longer wanted, but their answer is to come */
    struct snapshot *root;
    struct snapshot *in_force;
    bool changed;
};

/* A host that was configured by its address has that for a name. */
static bool is_name(const struct endpoint *e)
{
    return !bytes_equal(e->hostname, e->text);
}

static struct bytes host_of(const struct dns_name *n)
{
    return bytes_from(n->host, n->len);
}

static bool has_names(const struct cluster *c)
{
    for (uint32_t i = 0; i < c->endpoint_count; i++)
        if (is_name(&c->endpoints[i]))
            return true;
    return false;
}

/* --- counting --- */

static bool uses(const struct cluster *c, const struct dns_name *n)
{
    for (uint32_t i = 0; c->dns_hold == n->hold && i < c->endpoint_count; i++)
        if (is_name(&c->endpoints[i]) && bytes_equal_nocase(c->endpoints[i].hostname, host_of(n)))
            return true;
    return false;
}

static void count(const struct dns_name *n, enum discovery_metric m)
{
    const struct discovery *d = n->discovery;

    for (uint32_t i = 0; i < d->root->cluster_count; i++)
        if (uses(&d->root->clusters[i], n))
            cell_add(&d->in_force->clusters[i].state->discovery[m], 1);
}

/* --- lookups --- */

static void log_change(const struct dns_name *n)
{
    log_event(n->discovery->setup.log, LOG_INFO, "dns.changed",
              "%.*s has %" PRIu32 " addresses now", (int)n->len, n->host, n->set.count);
}

static void take_answer(struct dns_name *n, const struct address *fresh, size_t count)
{
    mono_ns now = clock_read(n->discovery->setup.clock);

    if (n->failures > 0)
        log_event(n->discovery->setup.log, LOG_INFO, "dns.recovered", "%.*s is answered again",
                  (int)n->len, n->host);
    n->failures = 0;
    if (!name_set_answer(&n->set, fresh, count, n->hold, now))
        return;
    n->discovery->changed = true;
    log_change(n);
}

static void take_failure(struct dns_name *n, const char *why)
{
    if (n->failures == 0)
        log_event(n->discovery->setup.log, LOG_WARNING, "dns.failed",
                  "%.*s: %s; its %" PRIu32 " last good addresses stay", (int)n->len, n->host, why,
                  n->set.count);
    if (n->failures < 16)
        n->failures++;
}

static span_ns retry_after(const struct dns_name *n)
{
    span_ns wait = DISCOVERY_RETRY << (n->failures - 1);

    return wait < DISCOVERY_RETRY_MOST ? wait : DISCOVERY_RETRY_MOST;
}

static span_ns held_for(span_ns ttl)
{
    if (ttl < DISCOVERY_LEAST)
        return DISCOVERY_LEAST;
    return ttl < DISCOVERY_MOST ? ttl : DISCOVERY_MOST;
}

static void on_answer(void *owner, int error, const struct address *addresses, size_t count_of,
                      span_ns ttl)
{
    struct dns_name *n = owner;
    struct discovery *d = n->discovery;
    span_ns wait;

    n->asking = false;
    if (!n->wanted) {
        list_remove(&n->link);
        memory_give(n);
        return;
    }
    if (error == IO_OK && count_of > 0) {
        count(n, DISCOVERY_update_success);
        take_answer(n, addresses, count_of);
        wait = held_for(ttl);
    } else {
        count(n, error == IO_OK ? DISCOVERY_update_empty : DISCOVERY_update_failure);
        take_failure(n, error == IO_OK ? "no addresses" : io_error_text(error));
        wait = retry_after(n);
    }
    wheel_arm(d->setup.wheel, &n->due, mono_after(clock_read(d->setup.clock), wait));
}

static void ask(struct dns_name *n)
{
    n->asking = true;
    count(n, DISCOVERY_update_attempt);
    resolver_lookup(n->discovery->setup.resolver, host_of(n), on_answer, n);
}

static void on_due(struct timer *t, mono_ns now)
{
    struct dns_name *n = CONTAINER_OF(t, struct dns_name, due);

    (void)now;
    ask(n);
}

/* --- names --- */

/* The same with another hold, or NULL. */
static const struct dns_name *name_twin(const struct discovery *d, struct bytes host)
{
    for (struct list *at = d->names.next; at != &d->names; at = at->next) {
        const struct dns_name *n = CONTAINER_OF(at, struct dns_name, link);

        if (bytes_equal_nocase(host_of(n), host))
            return n;
    }
    return NULL;
}

static void begin_set(const struct discovery *d, const struct endpoint *e, struct name_set *set)
{
    const struct dns_name *twin = name_twin(d, e->hostname);
    struct address configured = e->address;

    configured.port = 0;
    if (twin == NULL)
        name_set_init(set, &configured, clock_read(d->setup.clock));
    else
        *set = twin->set;
}

/* Knows the addresses already known, else the one that the configuration began with. */
static struct dns_name *name_create(struct discovery *d, const struct endpoint *e, span_ns hold)
{
    struct dns_name *n = memory_take(sizeof(*n) + e->hostname.len);

    if (n == NULL)
        return NULL;
    n->discovery = d;
    timer_init(&n->due, on_due);
    n->hold = hold;
    begin_set(d, e, &n->set);
    n->len = e->hostname.len;
    memcpy(n->host, e->hostname.data, n->len);
    list_push_back(&d->names, &n->link);
    return n;
}

static void name_drop(struct dns_name *n)
{
    wheel_cancel(n->discovery->setup.wheel, &n->due);
    list_remove(&n->link);
    n->wanted = false;
    if (n->asking)
        list_push_back(&n->discovery->orphans, &n->link);
    else
        memory_give(n);
}

static void free_all(struct list *names, struct wheel *wheel)
{
    struct list *first;

    while ((first = list_pop_front(names)) != NULL) {
        struct dns_name *n = CONTAINER_OF(first, struct dns_name, link);

        wheel_cancel(wheel, &n->due);
        memory_give(n);
    }
}

static struct dns_name *name_find(const struct discovery *d, struct bytes host, span_ns hold)
{
    for (struct list *at = d->names.next; at != &d->names; at = at->next) {
        struct dns_name *n = CONTAINER_OF(at, struct dns_name, link);

        if (n->hold == hold && bytes_equal_nocase(host_of(n), host))
            return n;
    }
    return NULL;
}

/* --- a snapshot with the hosts that there are --- */

struct filling {
    struct discovery *discovery;
    struct snapshot *to;
    struct arena scratch;
    struct config_names seen; /* addresses of the cluster under way */
    struct endpoint *endpoints;
    uint32_t count;
};

static struct bytes copy_address(struct arena *arena, const struct address *a)
{
    char room[ADDRESS_TEXT_MAX];
    struct text t;

    text_init(&t, room, sizeof(room));
    address_write(&t, a);
    return arena_copy(arena, text_bytes(&t));
}

/* Two names may have an address in common: it is one host. */
static void put(struct filling *f, const struct endpoint *e)
{
    if (config_names_add(&f->seen, e->text, f->count) == CONFIG_NO_NAME)
        f->endpoints[f->count++] = *e;
}

static bool put_name(struct filling *f, const struct endpoint *from, span_ns hold)
{
    const struct name_set *set = &name_find(f->discovery, from->hostname, hold)->set;

    for (uint32_t i = 0; i < set->count; i++) {
        struct endpoint e = *from;

        e.address = set->at[i];
        e.address.port = from->address.port;
        e.text = copy_address(&f->to->arena, &e.address);
        if (e.text.data == NULL)
            return false;
        put(f, &e);
    }
    return true;
}

static uint32_t room_for(const struct discovery *d, const struct cluster *c)
{
    uint32_t room = 0;

    for (uint32_t i = 0; i < c->endpoint_count; i++)
        room += is_name(&c->endpoints[i])
                    ? name_find(d, c->endpoints[i].hostname, c->dns_hold)->set.count
                    : 1;
    return room;
}

static bool fill_cluster(struct filling *f, const struct cluster *from, struct cluster *to)
{
    uint32_t room = room_for(f->discovery, from);

    f->count = 0;
    f->endpoints = arena_take(&f->to->arena, (room + (size_t)1) * sizeof(*f->endpoints));
    if (f->endpoints == NULL || !config_names_init(&f->seen, &f->scratch, room))
        return false;
    for (uint32_t i = 0; i < from->endpoint_count; i++) {
        const struct endpoint *e = &from->endpoints[i];

        if (!is_name(e))
            put(f, e);
        else if (!put_name(f, e, from->dns_hold))
            return false;
    }
    to->endpoints = f->endpoints;
    to->endpoint_count = f->count;
    return true;
}

static bool fill_clusters(struct filling *f, const struct snapshot *root)
{
    struct cluster *clusters =
        arena_take(&f->to->arena, (root->cluster_count + (size_t)1) * sizeof(*clusters));

    if (clusters == NULL)
        return false;
    f->to->clusters = clusters;
    for (uint32_t i = 0; i < root->cluster_count; i++) {
        struct endpoint *own;
        uint32_t n = root->clusters[i].endpoint_count;

        clusters[i] = root->clusters[i];
        clusters[i].state = NULL;
        f->to->cluster_count = i + 1;
        if (has_names(&root->clusters[i])) {
            if (!fill_cluster(f, &root->clusters[i], &clusters[i]))
                return false;
            continue;
        }
        own = arena_take(&f->to->arena, (n + (size_t)1) * sizeof(*own)); /* slots are its own */
        if (own == NULL)
            return false;
        memcpy(own, root->clusters[i].endpoints, n * sizeof(*own));
        clusters[i].endpoints = own;
    }
    return true;
}

static struct snapshot *fill(struct discovery *d, struct snapshot *root)
{
    struct filling f = {.discovery = d, .to = snapshot_derive(root)};
    bool ok = f.to != NULL;

    arena_init(&f.scratch, SCRATCH_FIRST, SIZE_MAX);
    ok = ok && fill_clusters(&f, root);
    arena_release(&f.scratch);
    if (ok)
        return f.to;
    snapshot_drop(f.to);
    return NULL;
}

/* False: no memory; names that are not wanted do no harm. */
static bool know_names(struct discovery *d, const struct cluster *c, bool *any)
{
    for (uint32_t i = 0; i < c->endpoint_count; i++) {
        const struct endpoint *e = &c->endpoints[i];

        if (!is_name(e))
            continue;
        *any = true;
        if (name_find(d, e->hostname, c->dns_hold) == NULL &&
            name_create(d, e, c->dns_hold) == NULL)
            return false;
    }
    return true;
}

static bool know_all_names(struct discovery *d, const struct snapshot *root, bool *any)
{
    *any = false;
    for (uint32_t i = 0; d->setup.resolver != NULL && i < root->cluster_count; i++)
        if (!know_names(d, &root->clusters[i], any))
            return false;
    return true;
}

struct snapshot *discovery_fill(struct discovery *d, struct snapshot *root)
{
    bool any;

    if (!know_all_names(d, root, &any))
        return NULL;
    return any ? fill(d, root) : snapshot_take(root);
}

/* --- in force --- */

static void want_names(struct discovery *d, const struct cluster *c)
{
    for (uint32_t i = 0; i < c->endpoint_count; i++)
        if (is_name(&c->endpoints[i])) {
            struct dns_name *n = name_find(d, c->endpoints[i].hostname, c->dns_hold);

            if (n != NULL)
                n->wanted = true;
        }
}

static void settle_name(struct dns_name *n)
{
    if (!n->wanted)
        name_drop(n);
    else if (!n->asking && !timer_armed(&n->due))
        ask(n);
}

void discovery_adopt(struct discovery *d, struct snapshot *root, struct snapshot *in_force)
{
    struct snapshot *old_root = d->root, *old = d->in_force;
    struct list *at;

    d->root = snapshot_take(root);
    d->in_force = snapshot_take(in_force);
    d->changed = false;
    snapshot_drop(old_root);
    snapshot_drop(old);
    for (at = d->names.next; at != &d->names; at = at->next)
        CONTAINER_OF(at, struct dns_name, link)->wanted = false;
    for (uint32_t i = 0; i < root->cluster_count; i++)
        want_names(d, &root->clusters[i]);
    for (at = d->names.next; at != &d->names;) {
        struct dns_name *n = CONTAINER_OF(at, struct dns_name, link);

        at = at->next;
        settle_name(n);
    }
}

bool discovery_begin(struct discovery *d, struct snapshot *root)
{
    bool any;

    if (!know_all_names(d, root, &any))
        return false;
    discovery_adopt(d, root, root);
    return true;
}

struct snapshot *discovery_changed(const struct discovery *d)
{
    return d->changed ? d->root : NULL;
}

/* --- life --- */

struct discovery *discovery_create(const struct discovery_setup *setup)
{
    struct discovery *d = memory_take(sizeof(*d));

    if (d == NULL)
        return NULL;
    d->setup = *setup;
    list_init(&d->names);
    list_init(&d->orphans);
    return d;
}

void discovery_free(struct discovery *d)
{
    if (d == NULL)
        return;
    free_all(&d->names, d->setup.wheel);
    free_all(&d->orphans, d->setup.wheel);
    snapshot_drop(d->root);
    snapshot_drop(d->in_force);
    memory_give(d);
}
