/* SPDX-License-Identifier: Apache-2.0 */
/* Clusters and their endpoints: names to addresses, and which default applies where. */
#include "base/address.h"
#include "control/config_build.h"
#include "control/config_resolve.h"
#include "control/config_value.h"
#include "io/error.h"

/* A resolver that does not answer takes seconds a name; this many are enough to see it. */
#define LOOKUPS_FAILED_MAX 3

static void cannot_resolve(struct config_build *b, const struct config_node *at, struct bytes host,
                           const char *why)
{
    struct text *t = config_build_error(b, at);

    text_str(t, "cannot resolve ");
    config_quote(t, host);
    text_str(t, ": ");
    text_str(t, why);
    config_error_end(b->errors);
}

/* Each name is asked for once, however many endpoints it has. */
static bool resolve(struct config_build *b, const struct config_node *at, struct bytes host,
                    struct address *out)
{
    uint32_t known = config_names_find(&b->hosts, host);
    int error;

    if (known != CONFIG_NO_NAME) {
        *out = b->host_addresses[known];
        return true;
    }
    if (b->resolver == NULL) {
        cannot_resolve(b, at, host, "names are not looked up here; write an IP address");
        return false;
    }
    /* Where there is something else wrong already, nobody waits for a resolver. */
    if (b->errors->count > b->lookups_failed || b->lookups_failed == LOOKUPS_FAILED_MAX)
        return false;
    error = b->resolver->resolve(b->resolver, host, out);
    if (error != IO_OK) {
        b->lookups_failed++;
        cannot_resolve(b, at, host, io_error_text(error));
        return false;
    }
    b->host_addresses[b->host_count] = *out;
    config_names_add(&b->hosts, host, b->host_count++);
    return true;
}

static void wrong_address(struct config_build *b, const struct config_node *at, struct bytes text)
{
    struct text *t = config_build_error(b, at);

    text_str(t, "an endpoint's address is HOST:PORT, such as 127.0.0.1:9001 or "
                "example.test:80, or unix:PATH; not ");
    config_quote(t, text);
    if (bytes_find(text, '/') < text.len)
        text_str(t, ": leave out http:// and the path");
    config_error_end(b->errors);
}

/* False: an error was added, or the address is not known for want of a resolver's answer. */
static bool endpoint_address(struct config_build *b, const struct config_endpoint *e,
                             struct bytes *host, struct address *out)
{
    const struct config_node *at = config_node_find(e->head.node, "address");
    const char *why;
    uint16_t port;

    if (at == NULL)
        at = e->head.node; /* of the list form */
    *host = BYTES_NONE;
    if (bytes_start_with(e->address, BYTES("unix:"))) {
        if (config_address_parse(&b->snapshot->arena, e->address, out, &why))
            return true;
        wrong_address(b, at, e->address);
        return false;
    }
    if (address_parse(e->address, out)) {
        if (out->port != 0)
            return true;
        wrong_address(b, at, e->address);
        return false;
    }
    if (!config_endpoint_host(e->address, host, &port)) {
        wrong_address(b, at, e->address);
        return false;
    }
    if (!resolve(b, at, *host, out))
        return false;
    out->port = port;
    return true;
}

/* A key of its own, or a label. */
static struct bytes version_of(struct config_build *b, const struct config_endpoint *e)
{
    const struct field_label *each = e->labels.at;

    for (uint32_t i = 0; i < e->labels.count; i++) {
        if (!bytes_equal(each[i].name, BYTES("version")))
            continue;
        if (e->version.len > 0)
            config_build_twice(b, each[i].head.node->key, each[i].name,
                               config_node_find(e->head.node, "version")->key);
        return each[i].value;
    }
    return e->version;
}

static void build_endpoint(struct config_build *b, const struct config_endpoint *from,
                           struct endpoint *e)
{
    char room[ADDRESS_TEXT_MAX];
    struct bytes host;
    struct text t;

    if (from->head.node == NULL || from->address.len == 0 ||
        !endpoint_address(b, from, &host, &e->address))
        return;
    text_init(&t, room, sizeof(room));
    address_write(&t, &e->address);
    e->text = config_build_copy(b, text_bytes(&t));
    e->hostname = host.len > 0 ? config_build_copy(b, host) : e->text;
    e->zone = config_build_copy(b, from->zone);
    e->version = config_build_copy(b, version_of(b, from));
    e->weight = 1;
}

static void build_endpoints(struct config_build *b, const struct config_cluster *from,
                            struct cluster *c)
{
    struct endpoint *endpoints = config_build_array(b, from->endpoints.count, sizeof(*endpoints));
    const struct config_endpoint *each = from->endpoints.at;
    struct config_names seen;

    if (endpoints == NULL || !config_names_init(&seen, b->scratch, from->endpoints.count)) {
        b->no_memory = true;
        return;
    }
    for (uint32_t i = 0; i < from->endpoints.count && !config_errors_full(b->errors); i++) {
        uint32_t first;

        build_endpoint(b, &each[i], &endpoints[i]);
        if (b->no_memory)
            return;
        if (endpoints[i].text.len == 0)
            continue;
        first = config_names_add(&seen, endpoints[i].text, i);
        if (first != CONFIG_NO_NAME)
            config_build_twice(b, each[i].head.node, endpoints[i].text, each[first].head.node);
    }
    c->endpoint_count = from->endpoints.count;
    c->endpoints = endpoints;
}

static void given_in_both(struct config_build *b, const struct config_node *at, const char *name,
                          const struct config_node *other)
{
    struct text *t = config_build_error(b, at->key);

    config_quote(t, bytes_of(name));
    text_str(t, " is in trafficPolicy as well, in ");
    config_error_place(t, b->errors, other->source, other->line);
    text_str(t, ": keep one of them");
    config_error_end(b->errors);
}

/* The cluster's own word where it has one, else that of the block. */
static span_ns own_or(const struct config_cluster *from, const char *name, span_ns own,
                      span_ns block)
{
    return config_node_find(from->head.node, name) != NULL ? own : block;
}

static void check_both(struct config_build *b, const struct config_cluster *from, const char *own,
                       const struct config_node *block, const char *name)
{
    const struct config_node *first = config_node_find(from->head.node, own);
    const struct config_node *second = config_node_find(block, name);

    if (first != NULL && second != NULL)
        given_in_both(b, first, own, second);
}

static void build_balancer(struct config_build *b, const struct config_cluster *from,
                           struct cluster *c)
{
    const struct config_balancer *balancer = &from->policy.balancer;

    c->lb = (enum lb_kind)from->lb;
    if (config_node_find(balancer->head.node, "simple") == NULL)
        return;
    check_both(b, from, "loadBalancer", balancer->head.node, "simple");
    c->lb = config_resolve_balancer(balancer);
}

/* http.idleTimeout, else tcp.idleTimeout, else what both have for a default. */
static span_ns pool_idle(const struct config_pool *pool)
{
    bool http = config_node_find(pool->http.head.node, "idleTimeout") != NULL;

    return http ? pool->http.idle_timeout : pool->tcp.idle_timeout;
}

static void build_pool(struct config_build *b, const struct config_cluster *from, struct cluster *c)
{
    const struct config_pool *pool = &from->policy.pool;

    c->limits = default_limits;
    c->limits.host = from->resilience.per_host.is;
    c->limits.queue_timeout = from->resilience.queue_timeout;
    c->connect_timeout = from->connect_timeout;
    c->idle_timeout = from->idle_timeout;
    c->max_connection_age = from->max_connection_age;
    c->dns_hold = from->dns_hold;
    c->host_drain_timeout = from->host_drain_timeout;
    if (pool->head.node == NULL)
        return;
    check_both(b, from, "connectTimeout", pool->tcp.head.node, "connectTimeout");
    check_both(b, from, "idleTimeout", pool->http.head.node, "idleTimeout");
    check_both(b, from, "idleTimeout", pool->tcp.head.node, "idleTimeout");
    c->limits.max_connections = pool->tcp.max_connections;
    c->limits.max_pending = pool->http.max_pending;
    c->limits.max_requests = pool->http.max_requests;
    c->limits.max_retries = pool->http.max_retries;
    c->limits.max_requests_per_connection = pool->http.max_requests_per_connection;
    c->connect_timeout =
        own_or(from, "connectTimeout", from->connect_timeout, pool->tcp.connect_timeout);
    c->idle_timeout = own_or(from, "idleTimeout", from->idle_timeout, pool_idle(pool));
    c->max_connection_duration = pool->tcp.max_connection_duration;
    c->keepalive = pool->tcp.keepalive.head.node != NULL;
    c->keepalive_idle_s = pool->tcp.keepalive.time_s;
    c->keepalive_interval_s = pool->tcp.keepalive.interval_s;
    c->keepalive_probes = pool->tcp.keepalive.probes;
}

static void build_panic(const struct config_cluster *from, struct cluster *c)
{
    const struct config_outlier *outlier = &from->policy.outlier;

    c->panic = default_panic;
    c->panic.policy = (enum panic_policy)from->resilience.panic;
    if (outlier->head.node != NULL)
        c->panic.threshold = outlier->min_health_percent;
}

static struct bytes stat_name(struct config_build *b, struct bytes name)
{
    struct bytes copy = config_build_copy(b, name);

    for (size_t i = 0; i < copy.len; i++)
        if (copy.data[i] == ':')
            ((uint8_t *)(uintptr_t)copy.data)[i] = '_';
    return copy;
}

static void build_cluster(struct config_build *b, const struct config_cluster *from,
                          struct cluster *c)
{
    const struct field_items *endpoints = &from->endpoints;

    c->name = config_build_copy(b, from->shown);
    c->stat_name = stat_name(b, from->shown);
    c->alias = from->subset == NULL ? config_build_copy(b, from->name) : BYTES_NONE;
    c->host = config_build_copy(b, from->host);
    build_balancer(b, from, c);
    c->retry_budget = from->resilience.retry_budget.is;
    c->retry_share = (struct retry_share){
        .given = from->policy.retry_budget.head.node != NULL,
        .permille = from->policy.retry_budget.permille,
        .least = from->policy.retry_budget.least,
    };
    build_pool(b, from, c);
    config_build_outlier(b, from, c);
    config_build_detection(b, from, c);
    build_panic(from, c);
    if (endpoints->count > 0) {
        build_endpoints(b, from, c);
    } else if (endpoints->node != NULL) {
        text_str(config_build_error(b, endpoints->node), "a cluster needs at least one endpoint");
        config_error_end(b->errors);
    }
}

/* Room for every name that could be asked for. */
static bool prepare(struct config_build *b, const struct config_file *file)
{
    const struct config_cluster *clusters = file->clusters.at;
    uint32_t endpoints = 0;

    for (uint32_t i = 0; i < file->clusters.count; i++)
        endpoints += clusters[i].endpoints.count;
    b->host_addresses = arena_take(b->scratch, (endpoints + 1) * sizeof(*b->host_addresses));
    return b->host_addresses != NULL && config_names_init(&b->hosts, b->scratch, endpoints) &&
           config_build_names(b, file);
}

void config_build_clusters(struct config_build *b, const struct config_file *file)
{
    const struct config_cluster *from = file->clusters.at;
    struct cluster *clusters = config_build_array(b, file->clusters.count, sizeof(*clusters));

    if (b->no_memory || !prepare(b, file)) {
        b->no_memory = true;
        return;
    }
    b->nameless = file->clusters.count == 0;
    if (file->clusters.count == 0 && file->clusters.node != NULL) {
        text_str(config_build_error(b, file->clusters.node), "there must be at least one cluster");
        config_error_end(b->errors);
    }
    for (uint32_t i = 0; i < file->clusters.count; i++) {
        if (config_errors_full(b->errors) || b->no_memory)
            return;
        if (from[i].head.node != NULL)
            build_cluster(b, &from[i], &clusters[i]);
        if (from[i].name.len == 0) {
            b->nameless = true;
            continue;
        }
        config_build_name(b, from, i, clusters[i].stat_name);
    }
    b->snapshot->cluster_count = file->clusters.count;
    b->snapshot->clusters = clusters;
}
