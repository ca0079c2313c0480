/* SPDX-License-Identifier: Apache-2.0 */
/* Listeners and their routes. */
#include "base/address.h"
#include "control/config_build.h"

static void add_error(struct config_build *b, const struct config_node *at, const char *message,
                      struct bytes wrong)
{
    struct text *t = config_build_error(b, at);

    text_str(t, message);
    config_quote(t, wrong);
    config_error_end(b->errors);
}

/* "*", "*.example.test", "example.test", "example.test:8080", "[::1]:8080". */
static bool is_host_pattern(struct bytes host)
{
    for (size_t i = 0; i < host.len; i++) {
        uint8_t c = host.data[i];

        if (c <= 0x20 || c >= 0x7f || c == '/' || c == '@')
            return false;
        if (c == '*' && (i != 0 || (host.len > 1 && host.data[1] != '.') || host.len == 2))
            return false;
    }
    return true;
}

static struct bytes lower_copy(struct config_build *b, struct bytes text)
{
    struct bytes copy = config_build_copy(b, text);
    uint8_t *data = (uint8_t *)(uintptr_t)copy.data;

    for (size_t i = 0; i < copy.len; i++)
        data[i] = byte_lower(data[i]);
    return copy;
}

static void build_hosts(struct config_build *b, const struct field_items *from, struct route *route)
{
    const struct field_text *each = from->at;
    struct bytes *hosts = config_build_array(b, from->count, sizeof(*hosts));
    bool any = false;

    if (hosts == NULL)
        return;
    for (uint32_t i = 0; i < from->count; i++) {
        any = any || bytes_equal(each[i].text, BYTES("*"));
        hosts[i] = lower_copy(b, each[i].text);
        if (!is_host_pattern(each[i].text))
            add_error(b, each[i].head.node,
                      "a host is 'example.test', '*.example.test' or '*'; not ", each[i].text);
    }
    route->host_count = any ? 0 : from->count;
    route->hosts = hosts;
}

static bool is_method(struct bytes method)
{
    for (size_t i = 0; i < method.len; i++) {
        uint8_t c = method.data[i];

        if (!((c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_'))
            return false;
    }
    return true;
}

static void build_methods(struct config_build *b, const struct field_items *from,
                          struct route *route)
{
    const struct field_text *each = from->at;
    struct bytes *methods = config_build_array(b, from->count, sizeof(*methods));

    if (methods == NULL)
        return;
    for (uint32_t i = 0; i < from->count; i++) {
        methods[i] = config_build_copy(b, each[i].text);
        if (!is_method(each[i].text))
            add_error(b, each[i].head.node, "a method is a word in capitals, such as GET; not ",
                      each[i].text);
    }
    route->method_count = from->count;
    route->methods = methods;
}

/* "." and ".." never reach a route, and "//" only where slashes are left alone. */
static bool can_match(struct bytes path, bool merge_slashes)
{
    size_t i = 0;

    while (i < path.len) {
        struct bytes segment = bytes_skip(path, i + 1);
        size_t end = bytes_find(segment, '/');

        segment = bytes_slice(segment, 0, end);
        if (bytes_equal(segment, BYTES(".")) || bytes_equal(segment, BYTES("..")))
            return false;
        if (merge_slashes && end == 0 && i + 1 < path.len)
            return false;
        i += 1 + end;
    }
    return true;
}

static void check_path(struct config_build *b, const struct config_node *at, struct bytes path,
                       bool merge_slashes)
{
    if (path.data[0] != '/')
        add_error(b, at, "a path begins with '/'; not ", path);
    else if (bytes_find(path, '?') < path.len || bytes_find(path, '#') < path.len)
        add_error(b, at, "only the path is compared, without query and fragment; not ", path);
    else if (!can_match(path, merge_slashes))
        add_error(b, at, "paths are normalised before they are compared, so nothing can match ",
                  path);
}

static void build_path(struct config_build *b, const struct config_match *from, bool merge_slashes,
                       struct route *route)
{
    const struct config_node *exact = config_node_find(from->head.node, "path");
    const struct config_node *prefix = config_node_find(from->head.node, "pathPrefix");
    bool is_exact = from->path.len > 0;

    if (exact != NULL && prefix != NULL) {
        text_str(config_build_error(b, exact->key),
                 "'path' and 'pathPrefix' exclude one another: keep one");
        config_error_end(b->errors);
    }
    route->match = is_exact ? PATH_EXACT : PATH_PREFIX;
    route->path = config_build_copy(b, is_exact ? from->path : from->path_prefix);
    if (!b->no_memory && (exact != NULL || prefix != NULL))
        check_path(b, is_exact ? exact : prefix, route->path, merge_slashes);
}

static void find_cluster(struct config_build *b, const struct config_file *file,
                         const struct config_route *from, struct route *route)
{
    const struct config_cluster *clusters = file->clusters.at;
    struct config_guess guess;
    struct text *t;
    bool several;

    route->cluster = config_build_find(b, from->cluster, &several);
    if (route->cluster != CONFIG_NO_NAME || from->cluster.len == 0 || b->nameless)
        return;
    t = config_build_error(b, config_node_find(from->head.node, "cluster"));
    if (several) {
        text_str(t, "several clusters have the host ");
        config_quote(t, from->cluster);
        text_str(t, ": write the name of one, or outbound|PORT||HOST");
        config_error_end(b->errors);
        return;
    }
    text_str(t, "there is no cluster ");
    config_quote(t, from->cluster);
    config_guess_init(&guess, from->cluster);
    for (uint32_t i = 0; i < file->clusters.count; i++)
        config_guess_word(&guess, clusters[i].name);
    config_guess_write(&guess, t);
    config_error_end(b->errors);
}

static void too_many_classes(struct config_build *b, const struct config_route *from)
{
    struct text *t = config_build_error(b, config_node_find(from->head.node, "class"));

    text_str(t, "there are 5 classes already: give requests that take alike the same one");
    config_error_end(b->errors);
}

static uint8_t build_class(struct config_build *b, const struct config_route *from)
{
    struct snapshot *s = b->snapshot;

    if (from->class.len == 0)
        return CLASS_BY_REQUEST;
    for (uint32_t i = 0; i < s->class_count; i++) {
        if (bytes_equal(s->classes[i], from->class))
            return (uint8_t)i;
    }
    if (s->class_count == EVIDENCE_CLASS_MAX) {
        too_many_classes(b, from);
        return CLASS_BY_REQUEST;
    }
    s->classes[s->class_count] = config_build_copy(b, from->class);
    return (uint8_t)s->class_count++;
}

/* Requests with a name of their own are not told apart by size. */
static void check_large_body(struct config_build *b, const struct config_route *from, uint8_t class)
{
    const struct config_node *at = config_node_find(from->head.node, "largeBody");

    if (at == NULL || class == CLASS_BY_REQUEST || class < CLASS_NAMED_FIRST)
        return;
    text_str(config_build_error(b, at->key != NULL ? at->key : at),
             "'largeBody' does nothing beside 'class', which names all requests of the route: "
             "leave one of them out");
    config_error_end(b->errors);
}

/* To wait without end is said by name, not by a number that may be a slip. */
static void check_timeout(struct config_build *b, const struct config_route *from)
{
    const struct config_node *timeout = config_node_find(from->head.node, "timeout");

    if (timeout == NULL || !bytes_equal(timeout->text, BYTES("0")))
        return;
    text_str(config_build_error(b, timeout), "'timeout' 0 would let requests wait without end: "
                                             "write 0s or none if that is meant");
    config_error_end(b->errors);
}

static void build_routes(struct config_build *b, const struct config_file *file,
                         const struct config_listener *from, struct listener_config *l)
{
    const struct config_route *each = from->routes.at;
    struct route *routes = config_build_array(b, from->routes.count, sizeof(*routes));

    for (uint32_t i = 0; i < from->routes.count; i++) {
        if (config_errors_full(b->errors) || b->no_memory)
            return;
        if (each[i].head.node == NULL)
            continue;
        routes[i].name = config_build_copy(b, each[i].name);
        routes[i].timeout = each[i].timeout;
        routes[i].per_try_timeout = each[i].per_try_timeout;
        routes[i].idle_timeout = each[i].idle_timeout;
        routes[i].class = build_class(b, &each[i]);
        routes[i].large_body = each[i].large_body;
        check_large_body(b, &each[i], routes[i].class);
        routes[i].retry = config_build_retry(b, &each[i].retry);
        check_timeout(b, &each[i]);
        build_hosts(b, &each[i].match.hosts, &routes[i]);
        build_methods(b, &each[i].match.methods, &routes[i]);
        build_path(b, &each[i].match, from->merge_slashes, &routes[i]);
        find_cluster(b, file, &each[i], &routes[i]);
    }
    if (from->routes.count == 0 && from->routes.node != NULL) {
        text_str(config_build_error(b, from->routes.node), "a listener needs at least one route");
        config_error_end(b->errors);
    }
    l->route_count = from->routes.count;
    l->routes = routes;
}

static void build_listener(struct config_build *b, const struct config_listener *from,
                           struct listener_config *l)
{
    l->name = config_build_copy(b, from->name);
    l->address = config_build_address(b, &from->listen);
    l->limits = from->limits.is;
    l->head_timeout = from->head_timeout;
    l->body_timeout = from->body_timeout;
    l->idle_timeout = from->idle_timeout;
    l->max_connection_age = from->max_connection_age;
    l->trusted_hops = from->trusted_hops;
    l->trust_retry_headers = from->trust_retry_headers;
    l->via = from->via;
    l->normalize_forwarded = from->forward_normalized;
    l->merge_slashes = from->merge_slashes;
}

/* The text of an address that only one can have; empty: any number of them can. */
static struct bytes exclusive(struct config_build *b, const struct address *a)
{
    char room[2 * ADDRESS_TEXT_MAX];
    struct text t;

    if (a->kind == ADDRESS_NONE || (a->kind != ADDRESS_UNIX && a->port == 0))
        return BYTES_NONE;
    text_init(&t, room, sizeof(room));
    address_write(&t, a);
    return config_build_copy(b, text_bytes(&t));
}

static const struct config_node *node_of(const struct config_node *map, const char *key)
{
    const struct config_node *found = config_node_find(map, key);

    return found != NULL ? found : map;
}

static void check_name(struct config_build *b, const struct config_listener *each, uint32_t i,
                       struct config_names *names)
{
    uint32_t first;

    if (each[i].name.len == 0)
        return;
    first = config_names_add(names, each[i].name, i);
    if (first != CONFIG_NO_NAME)
        config_build_twice(b, node_of(each[i].head.node, "name"), each[i].name,
                           node_of(each[first].head.node, "name"));
}

/* |addresses| has those of the listeners, and that of the admin pages as number |count|. */
static void check_address(struct config_build *b, const struct config_file *file, uint32_t i,
                          struct config_names *addresses)
{
    const struct config_listener *each = file->listeners.at;
    struct bytes address = exclusive(b, &each[i].listen);
    const struct config_node *at = node_of(each[i].head.node, "listen");
    uint32_t first;

    if (address.len == 0)
        return;
    first = config_names_add(addresses, address, i);
    if (first == CONFIG_NO_NAME)
        return;
    if (first == file->listeners.count)
        add_error(b, at, "the admin pages listen there already: ", address);
    else
        config_build_twice(b, at, address, node_of(each[first].head.node, "listen"));
}

void config_build_listeners(struct config_build *b, const struct config_file *file)
{
    const struct config_listener *from = file->listeners.at;
    uint32_t count = file->listeners.count;
    struct listener_config *listeners = config_build_array(b, count, sizeof(*listeners));
    struct config_names names, addresses;
    struct bytes admin = exclusive(b, &file->admin.listen);

    if (b->no_memory || !config_names_init(&names, b->scratch, count) ||
        !config_names_init(&addresses, b->scratch, count + 1)) {
        b->no_memory = true;
        return;
    }
    if (admin.len > 0)
        config_names_add(&addresses, admin, count);
    if (count == 0 && file->listeners.node != NULL) {
        text_str(config_build_error(b, file->listeners.node),
                 "there must be at least one listener");
        config_error_end(b->errors);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (config_errors_full(b->errors) || b->no_memory)
            return;
        if (from[i].head.node == NULL)
            continue;
        build_listener(b, &from[i], &listeners[i]);
        check_name(b, from, i, &names);
        check_address(b, file, i, &addresses);
        build_routes(b, file, &from[i], &listeners[i]);
    }
    b->snapshot->listener_count = count;
    b->snapshot->listeners = listeners;
}
