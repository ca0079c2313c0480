/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/router.h"

/* "example.test" of "example.test:8080" and of "[::1]:80" the part in brackets. */
static struct bytes without_port(struct bytes authority)
{
    size_t at = authority.len;

    while (at > 0 && authority.data[at - 1] != ':' && authority.data[at - 1] != ']')
        at--;
    if (at == 0 || authority.data[at - 1] == ']')
        return authority;
    return bytes_slice(authority, 0, at - 1);
}

static bool host_matches(struct bytes pattern, struct bytes host)
{
    struct bytes tail;

    if (pattern.len == 0 || pattern.data[0] != '*')
        return bytes_equal_nocase(pattern, host);
    tail = bytes_skip(pattern, 1);
    return host.len >= tail.len && bytes_equal_nocase(bytes_skip(host, host.len - tail.len), tail);
}

static bool any_host(const struct route *r, struct bytes authority)
{
    struct bytes host;

    if (r->host_count == 0)
        return true;
    host = without_port(authority);
    for (uint32_t i = 0; i < r->host_count; i++)
        if (host_matches(r->hosts[i], host) || bytes_equal_nocase(r->hosts[i], authority))
            return true;
    return false;
}

static bool any_method(const struct route *r, struct bytes method)
{
    if (r->method_count == 0)
        return true;
    for (uint32_t i = 0; i < r->method_count; i++)
        if (bytes_equal(r->methods[i], method))
            return true;
    return false;
}

static bool path_matches(const struct route *r, struct bytes path)
{
    return r->match == PATH_EXACT ? bytes_equal(r->path, path) : bytes_start_with(path, r->path);
}

const struct route *router_match(const struct listener_config *listener,
                                 const struct message_head *head, struct bytes path)
{
    for (uint32_t i = 0; i < listener->route_count; i++) {
        const struct route *r = &listener->routes[i];

        if (path_matches(r, path) && any_host(r, head->authority) && any_method(r, head->method))
            return r;
    }
    return NULL;
}
