/* SPDX-License-Identifier: Apache-2.0 */
#include "control/retired.h"

#define CLUSTERS_AT_A_TIME 32

void retired_init(struct retired *r)
{
    list_init(&r->snapshots);
}

void retired_release(struct retired *r)
{
    struct list *l;

    while ((l = list_pop_front(&r->snapshots)) != NULL)
        snapshot_drop(CONTAINER_OF(l, struct snapshot, retired));
}

void retired_add(struct retired *r, struct snapshot *s)
{
    list_push_back(&r->snapshots, &s->retired);
}

static struct snapshot *first_unshared(const struct retired *r)
{
    for (struct list *l = r->snapshots.next; l != &r->snapshots; l = l->next) {
        struct snapshot *s = CONTAINER_OF(l, struct snapshot, retired);

        if (snapshot_is_unshared(s))
            return s;
    }
    return NULL;
}

bool retired_free_some(struct retired *r)
{
    struct snapshot *s = first_unshared(r);

    if (s == NULL)
        return false;
    if (!snapshot_shed_clusters(s, CLUSTERS_AT_A_TIME)) {
        list_remove(&s->retired);
        snapshot_drop(s);
    }
    return true;
}
