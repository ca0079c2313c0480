/* SPDX-License-Identifier: Apache-2.0 */
/* What a cluster goes by: the name that is shown, the one that was written, its host. */
#include "control/config_build.h"

bool config_build_names(struct config_build *b, const struct config_file *file)
{
    struct config_cluster_names *n = &b->names;
    uint32_t count = file->clusters.count;

    n->several = arena_take(b->scratch, count + (size_t)1);
    return n->several != NULL && config_names_init(&n->shown, b->scratch, count) &&
           config_names_init(&n->stats, b->scratch, count) &&
           config_names_init(&n->written, b->scratch, count) &&
           config_names_init(&n->hosts, b->scratch, 2 * count);
}

static const struct config_node *node_of(const struct config_cluster *c, const char *key)
{
    const struct config_node *found = config_node_find(c->head.node, key);

    return found != NULL ? found : c->head.node;
}

static void same_metrics(struct config_build *b, const struct config_node *at, struct bytes name,
                         struct bytes first)
{
    struct text *t = config_build_error(b, at);

    config_quote(t, name);
    text_str(t, " and ");
    config_quote(t, first);
    text_str(t, " would have the same metrics, since ':' counts as '_' there");
    config_error_end(b->errors);
}

static void same_service(struct config_build *b, const struct config_cluster *c,
                         const struct config_cluster *first)
{
    struct text *t = config_build_error(b, node_of(c, "host"));

    text_str(t, "two clusters would be ");
    config_quote(t, c->shown);
    text_str(t, ": give one of them another port; the first is in ");
    config_error_place(t, b->errors, first->head.node->source, first->head.node->line);
    config_error_end(b->errors);
}

static void enter_host(struct config_build *b, struct bytes host, uint32_t i)
{
    uint32_t first = host.len > 0 ? config_names_add(&b->names.hosts, host, i) : CONFIG_NO_NAME;

    if (first != CONFIG_NO_NAME && first != i)
        b->names.several[first] = true;
}

/* The host as it was written; in full it is |from->host|. */
static struct bytes written_host(const struct config_cluster *c)
{
    const struct config_node *host = config_node_find(c->head.node, "host");

    return host != NULL ? host->text : BYTES_NONE;
}

void config_build_name(struct config_build *b, const struct config_cluster *from, uint32_t i,
                       struct bytes stat_name)
{
    const struct config_cluster *c = &from[i];
    uint32_t first;

    if (c->subset == NULL) {
        first = config_names_add(&b->names.written, c->name, i);
        if (first != CONFIG_NO_NAME) {
            config_build_twice(b, node_of(c, "name"), c->name, node_of(&from[first], "name"));
            return;
        }
        enter_host(b, c->host, i);
        enter_host(b, written_host(c), i);
    }
    if (b->no_memory)
        return;
    first = config_names_add(&b->names.shown, c->shown, i);
    if (first != CONFIG_NO_NAME) {
        same_service(b, c, &from[first]);
        return;
    }
    first = config_names_add(&b->names.stats, stat_name, i);
    if (first != CONFIG_NO_NAME)
        same_metrics(b, node_of(c, "name"), c->shown, from[first].shown);
}

uint32_t config_build_find(const struct config_build *b, struct bytes name, bool *several)
{
    uint32_t found = config_names_find(&b->names.shown, name);

    *several = false;
    if (found == CONFIG_NO_NAME)
        found = config_names_find(&b->names.written, name);
    if (found != CONFIG_NO_NAME)
        return found;
    found = config_names_find(&b->names.hosts, name);
    *several = found != CONFIG_NO_NAME && b->names.several[found];
    return *several ? CONFIG_NO_NAME : found;
}
