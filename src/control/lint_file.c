/* SPDX-License-Identifier: Apache-2.0 */
/* Traps of the file as a whole, and of the order of routes. */
#include "base/address.h"
#include "control/lint_trap.h"

static bool is_loopback(const struct address *a)
{
    char room[ADDRESS_TEXT_MAX];
    struct text t;

    if (a->kind == ADDRESS_NONE || a->kind == ADDRESS_UNIX)
        return true;
    text_init(&t, room, sizeof(room));
    address_write(&t, a);
    return bytes_start_with(text_bytes(&t), BYTES("127.")) ||
           bytes_start_with(text_bytes(&t), BYTES("[::1]"));
}

LINT_TRAP(lint_admin_exposed)
{
    char room[ADDRESS_TEXT_MAX];
    struct text t;

    if (is_loopback(&s->snapshot->admin))
        return NULL;
    text_init(&t, room, sizeof(room));
    address_write(&t, &s->snapshot->admin);
    lint_say(&w->why,
             "the admin pages listen on %.*s and know no passwords: whoever reaches that port sees "
             "every host and can change what runs",
             (int)t.len, t.data);
    lint_say(&w->instead, "admin: {listen: 127.0.0.1:9901}");
    return lint_at(s->file->admin.head.node, "listen");
}

static bool same_texts(const struct bytes *a, uint32_t n, struct bytes one)
{
    for (uint32_t i = 0; i < n; i++)
        if (bytes_equal(a[i], one))
            return true;
    return n == 0;
}

/* Whether all that |list| names is in |wide|, of which none means any. */
static bool covers(const struct bytes *wide, uint32_t wide_count, const struct bytes *list,
                   uint32_t count)
{
    if (wide_count == 0)
        return true;
    for (uint32_t i = 0; i < count; i++)
        if (!same_texts(wide, wide_count, list[i]))
            return false;
    return count > 0;
}

static bool takes_all_of(const struct route *first, const struct route *r)
{
    bool path = first->match == PATH_PREFIX
                    ? bytes_start_with(r->path, first->path)
                    : r->match == PATH_EXACT && bytes_equal(r->path, first->path);

    return path && covers(first->hosts, first->host_count, r->hosts, r->host_count) &&
           covers(first->methods, first->method_count, r->methods, r->method_count);
}

/* Among more routes nobody is told: each pair is compared. */
#define ROUTES_MAX 2000

LINT_TRAP(lint_route_never_reached)
{
    for (uint32_t i = 0; i < s->index && i < ROUTES_MAX; i++) {
        const struct route *first = &s->listener->routes[i];
        const struct config_route *written =
            (const struct config_route *)s->listener_written->routes.at + i;

        if (!takes_all_of(first, s->route))
            continue;
        lint_say(&w->why,
                 "the first route that matches wins, and route %u in line %u already takes every "
                 "request that this one could: it is never reached",
                 i + 1, written->head.node->line);
        lint_say(&w->instead, "this route above the one in line %u, or leave it out",
                 written->head.node->line);
        return s->route_written->head.node;
    }
    return NULL;
}

LINT_TRAP(lint_cluster_unused)
{
    const struct snapshot *all = s->snapshot;

    if (s->cluster_written->subset != NULL) /* it is there for whoever wants it */
        return NULL;
    for (uint32_t i = 0; i < all->listener_count; i++)
        for (uint32_t k = 0; k < all->listeners[i].route_count; k++)
            if (all->listeners[i].routes[k].cluster == s->index)
                return NULL;
    lint_say(&w->why, "no route leads to this cluster: its hosts get no request, and nothing is "
                      "learnt about them");
    lint_say(&w->instead, "a route with cluster: %.*s, or leave the cluster out",
             (int)s->cluster->name.len, (const char *)s->cluster->name.data);
    return lint_at(s->cluster_written->head.node, "name");
}
