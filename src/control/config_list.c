/* SPDX-License-Identifier: Apache-2.0 */
/* The list of `run --to`, as if somebody had written it as a file. */
#include "control/config.h"
#include "control/config_documents.h"
#include "control/config_value.h"

#define LIST_FILE "--to"

/* A place in the list, as if it were the only line of a file. */
static const struct config_node *list_node(struct config_loaded *l, size_t offset)
{
    struct config_node *n = arena_take(&l->arena, sizeof(*n));

    if (n == NULL)
        return NULL;
    n->line = 1;
    n->column = (uint32_t)offset + 1;
    return n;
}

static bool list_endpoints(struct config_loaded *l, struct bytes list, struct config_cluster *c)
{
    struct bytes rest = list;
    struct bytes element;
    struct config_endpoint *e;
    uint32_t count = 0;

    while (bytes_next_element(&rest, &element))
        count++;
    c->endpoints.node = list_node(l, 0);
    c->endpoints.count = count;
    c->endpoints.at = e = arena_take(&l->arena, (count + (size_t)1) * sizeof(*e));
    c->head.node = c->endpoints.node;
    if (e == NULL || c->endpoints.node == NULL)
        return false;
    for (rest = list; bytes_next_element(&rest, &element); e++) {
        fields_preset(&config_endpoint_fields, e);
        e->address = element;
        e->head.node = list_node(l, (size_t)(element.data - list.data));
        if (e->head.node == NULL)
            return false;
    }
    return true;
}

/* The address of an option, in place of the default. */
static void option_address(struct config_loaded *l, const char *option, struct bytes text,
                           struct address *out)
{
    const char *why;
    struct text *t;

    if (text.len == 0)
        return;
    if (bytes_equal(text, BYTES("off")) && out->kind != ADDRESS_NONE) {
        *out = (struct address){.kind = ADDRESS_NONE};
        return;
    }
    if (config_address_parse(&l->arena, text, out, &why))
        return;
    t = config_error_begin(l->errors, 0, 0);
    text_str(t, option);
    text_str(t, " must be an address with a port, such as 127.0.0.1:8080; not ");
    config_quote(t, text);
    text_str(t, ": ");
    text_str(t, why);
    config_error_end(l->errors);
}

/* One listener, one route, one cluster: what |parts| needs to outlive the reader. */
struct parts {
    struct config_file file;
    struct config_listener listener;
    struct config_route route;
    struct config_cluster cluster;
};

static void preset(struct parts *p)
{
    fields_preset(&config_file_fields, &p->file);
    fields_preset(&config_listener_fields, &p->listener);
    fields_preset(&config_route_fields, &p->route);
    fields_preset(&config_cluster_fields, &p->cluster);
}

/* Every default there is, and what the options say. */
static void put_together(struct config_loaded *l, const struct config_run *run, struct parts *p)
{
    const struct config_node *node = p->cluster.head.node;
    struct bytes listen = run->listen.len > 0 ? run->listen : BYTES(CONFIG_LISTEN_DEFAULT);

    option_address(l, "--admin", run->admin, &p->file.admin.listen);
    option_address(l, "--listen", listen, &p->listener.listen);
    p->file.workers = run->workers;
    if (run->access_log.len > 0)
        p->file.access_log.to = run->access_log;
    p->listener.name = BYTES(CONFIG_LIST_LISTENER);
    p->cluster.name = p->cluster.shown = p->route.cluster = BYTES(CONFIG_LIST_CLUSTER);
    p->listener.head.node = p->route.head.node = p->file.head.node = node;
    p->listener.routes = (struct field_items){.node = node, .count = 1, .at = &p->route};
    p->file.listeners = (struct field_items){.node = node, .count = 1, .at = &p->listener};
    p->file.clusters = (struct field_items){.node = node, .count = 1, .at = &p->cluster};
}

int config_open_list(struct config_loaded *l, const struct config_run *run,
                     struct config_errors *errors)
{
    struct parts *p;

    config_begin(l, errors);
    config_errors_open(errors, BYTES(LIST_FILE), run->to);
    p = arena_take(&l->arena, sizeof(*p));
    if (p == NULL)
        return CONFIG_NO_MEMORY;
    preset(p);
    if (!list_endpoints(l, run->to, &p->cluster))
        return CONFIG_NO_MEMORY;
    if (p->cluster.endpoints.count == 0) {
        config_error_add(errors, 0, 0, "no hosts: write HOST:PORT,HOST:PORT", NULL);
        return CONFIG_INVALID;
    }
    put_together(l, run, p);
    l->file = &p->file;
    return config_find_names(l) ? CONFIG_OK : CONFIG_NO_MEMORY;
}
