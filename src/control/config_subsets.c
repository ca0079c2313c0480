/* SPDX-License-Identifier: Apache-2.0 */
#include "control/config_subsets.h"

#include "base/text.h"
#include "control/config_policy.h"

#define VERSION_LABEL "version"
#define ZONE_LABEL    "topology.kubernetes.io/zone"

/* Of one host. More would be no parts of a set, but a mistake. */
#define SUBSETS_MAX 1000u

struct config_expanded {
    struct config_cluster cluster;
    struct config_expanded *next;
};

/* --- which subsets --- */

static struct text *begin_at(struct config_errors *errors, const struct config_node *at)
{
    config_errors_at(errors, at->source);
    return config_error_begin(errors, at->line, at->column);
}

/* As a label of DNS, which it is in Kubernetes. */
static bool is_name(struct bytes name)
{
    for (size_t i = 0; i < name.len; i++) {
        uint8_t c = name.data[i];
        bool edge = i == 0 || i + 1 == name.len;

        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c == '-' && !edge)))
            return false;
    }
    return name.len > 0;
}

/* False: not to be added, which was said. */
static bool is_new(const struct config_subset_list *list, struct config_errors *errors,
                   const struct config_subset *subset)
{
    const struct config_node *at = config_node_find(subset->head.node, "name");
    uint32_t count = 0;
    struct text *t;

    if (!is_name(subset->name)) {
        t = begin_at(errors, at);
        text_str(t, "subset name is invalid: ");
        text_put(t, subset->name);
        text_str(t, "; write small letters, digits and '-'");
        config_error_end(errors);
        return false;
    }
    for (const struct config_subset_item *s = list->first; s != NULL; s = s->next, count++) {
        if (!bytes_equal(s->subset->name, subset->name))
            continue;
        t = begin_at(errors, at);
        text_str(t, "duplicate subset names: ");
        text_put(t, subset->name);
        text_str(t, "; the first is in ");
        config_error_place(t, errors, s->subset->head.node->source, s->subset->head.node->line);
        config_error_end(errors);
        return false;
    }
    if (count < SUBSETS_MAX)
        return true;
    text_str(begin_at(errors, at), "more than 1000 subsets of one host");
    config_error_end(errors);
    return false;
}

bool config_subsets_add(struct config_subset_list *list, struct config_loaded *l,
                        const struct config_rule *rule)
{
    const struct config_subset *each = rule->spec.subsets.at;

    for (uint32_t i = 0; i < rule->spec.subsets.count; i++) {
        struct config_subset_item *item;

        if (config_errors_full(l->errors))
            return true;
        if (each[i].head.node == NULL || each[i].name.len == 0)
            continue;
        config_policy_check(l->errors, &each[i].policy);
        if (!is_new(list, l->errors, &each[i]))
            continue;
        item = arena_take(&l->arena, sizeof(*item));
        if (item == NULL)
            return false;
        *item = (struct config_subset_item){.rule = rule, .subset = &each[i]};
        if (list->first == NULL)
            list->first = item;
        else
            list->last->next = item;
        list->last = item;
    }
    return true;
}

/* --- which endpoints --- */

static bool has_label(const struct config_endpoint *e, const struct field_label *label)
{
    const struct field_label *own = e->labels.at;

    if (e->version.len > 0 && bytes_equal(label->name, BYTES(VERSION_LABEL)))
        return bytes_equal(e->version, label->value);
    if (e->zone.len > 0 && bytes_equal(label->name, BYTES(ZONE_LABEL)))
        return bytes_equal(e->zone, label->value);
    for (uint32_t i = 0; i < e->labels.count; i++)
        if (bytes_equal(own[i].name, label->name))
            return bytes_equal(own[i].value, label->value);
    return false;
}

static bool is_in(const struct config_endpoint *e, const struct field_items *labels)
{
    const struct field_label *each = labels->at;

    for (uint32_t i = 0; i < labels->count; i++)
        if (!has_label(e, &each[i]))
            return false;
    return e->head.node != NULL;
}

static void nobody_in(struct config_errors *errors, const struct config_subset *subset,
                      const struct config_cluster *cluster)
{
    const struct config_node *at = subset->head.node;
    struct text *t;

    config_errors_at(errors, at->source);
    t = config_warning_begin(errors, at->line, at->column);
    text_str(t, "no endpoint of cluster ");
    config_quote(t, cluster->name);
    text_str(t, " has the labels of subset ");
    config_quote(t, subset->name);
    text_str(t, ", so there is no cluster for it");
    config_error_end(errors);
}

static uint32_t count_in(const struct config_cluster *cluster, const struct field_items *labels)
{
    const struct config_endpoint *each = cluster->endpoints.at;
    uint32_t count = 0;

    for (uint32_t i = 0; i < cluster->endpoints.count; i++)
        count += is_in(&each[i], labels);
    return count;
}

static bool too_many(struct config_expansion *e, const struct config_subset *subset, uint32_t count)
{
    if (e->subsets < CONFIG_SUBSET_CLUSTERS_MAX &&
        count <= CONFIG_SUBSET_ENDPOINTS_MAX - e->endpoints) {
        e->subsets++;
        e->endpoints += count;
        return false;
    }
    e->full = true;
    text_str(begin_at(e->l->errors, subset->head.node),
             "too many subsets: at most 100,000 clusters and 1,000,000 endpoints come of them");
    config_error_end(e->l->errors);
    return true;
}

bool config_subset_endpoints(struct config_expansion *e, const struct config_subset *subset,
                             bool pattern, const struct config_cluster *cluster,
                             struct field_items *out)
{
    const struct config_endpoint *each = cluster->endpoints.at;
    uint32_t count = count_in(cluster, &subset->labels);
    struct config_endpoint *chosen;
    uint32_t k = 0;

    if (count == 0) {
        if (!pattern && cluster->endpoints.count > 0)
            nobody_in(e->l->errors, subset, cluster);
        return false;
    }
    if (too_many(e, subset, count))
        return false;
    chosen = arena_take(&e->l->arena, count * sizeof(*chosen));
    if (chosen == NULL) {
        e->no_memory = true;
        return false;
    }
    for (uint32_t i = 0; i < cluster->endpoints.count; i++)
        if (is_in(&each[i], &subset->labels))
            chosen[k++] = each[i];
    *out = (struct field_items){.node = cluster->endpoints.node, .count = count, .at = chosen};
    return true;
}

/* --- the list --- */

static struct bytes shown(struct config_expansion *e, const struct config_cluster *cluster)
{
    char room[CONFIG_CLUSTER_NAME_MAX];
    struct bytes copy;
    struct text t;

    if (cluster->host.len == 0)
        return cluster->name;
    text_init(&t, room, sizeof(room));
    text_str(&t, "outbound|");
    text_u64(&t, cluster->port);
    text_char(&t, '|');
    if (cluster->subset != NULL)
        text_put(&t, cluster->subset->name);
    text_char(&t, '|');
    text_put(&t, cluster->host);
    copy = arena_copy(&e->l->arena, text_bytes(&t));
    e->no_memory = e->no_memory || copy.data == NULL;
    return copy;
}

void config_expansion_add(struct config_expansion *e, const struct config_cluster *cluster)
{
    struct config_expanded *item = arena_take(&e->l->arena, sizeof(*item));

    if (item == NULL) {
        e->no_memory = true;
        return;
    }
    item->cluster = *cluster;
    item->cluster.shown = shown(e, cluster);
    if (e->first == NULL)
        e->first = item;
    else
        e->last->next = item;
    e->last = item;
    e->count++;
}

bool config_expansion_end(struct config_expansion *e)
{
    struct field_items *clusters = &e->l->file->clusters;
    struct config_cluster *at;

    if (e->no_memory)
        return false;
    if (e->count == 0)
        return true;
    at = arena_take(&e->l->arena, e->count * sizeof(*at));
    if (at == NULL)
        return false;
    clusters->at = at;
    clusters->count = e->count;
    for (const struct config_expanded *item = e->first; item != NULL; item = item->next)
        *at++ = item->cluster;
    return true;
}
