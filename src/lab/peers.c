/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/peers.h"

#include <string.h>

#include <jansson.h>

#include "base/text.h"

static bool has_name(const json_t *object, const char *name)
{
    const char *given = json_string_value(json_object_get(object, "name"));

    return given != NULL && strcmp(given, name) == 0;
}

/* Numbers of 64 bits stand there as texts, and zeros are left out. */
static uint64_t number(const json_t *v)
{
    uint64_t n;

    if (json_is_integer(v) && json_integer_value(v) >= 0)
        return (uint64_t)json_integer_value(v);
    if (json_is_string(v) && bytes_parse_u64(bytes_of(json_string_value(v)), &n))
        return n;
    return 0;
}

static bool read_address(const json_t *host, struct address *out)
{
    const json_t *socket = json_object_get(json_object_get(host, "address"), "socket_address");
    const char *ip = json_string_value(json_object_get(socket, "address"));
    uint64_t port = number(json_object_get(socket, "port_value"));

    if (ip == NULL || port > UINT16_MAX || !address_parse_ip(bytes_of(ip), out))
        return false;
    out->port = (uint16_t)port;
    return true;
}

static void read_ejection(const json_t *host, struct peer_state *p)
{
    const json_t *ours = json_object_get(host, "firebreak");
    const char *reason = json_string_value(json_object_get(ours, "last_trigger"));
    struct text t;

    p->ejected = json_is_true(
        json_object_get(json_object_get(host, "health_status"), "failed_outlier_check"));
    p->ejected_ms_ago = number(json_object_get(ours, "ejected_ms_ago"));
    p->back_in_ms = number(json_object_get(ours, "back_in_ms"));
    text_init(&t, p->reason, sizeof(p->reason));
    text_put(&t, bytes_slice(bytes_of(reason), 0, PEER_REASON_MAX));
    text_end(&t);
}

static void read_stats(const json_t *host, struct peer_state *p)
{
    const json_t *stat;
    size_t i;

    json_array_foreach(json_object_get(host, "stats"), i, stat)
    {
        if (has_name(stat, "rq_total"))
            p->attempts = number(json_object_get(stat, "value"));
    }
}

static uint32_t read_hosts(const json_t *cluster, struct peer_state *peers, uint32_t room)
{
    const json_t *host;
    uint32_t n = 0;
    size_t i;

    json_array_foreach(json_object_get(cluster, "host_statuses"), i, host)
    {
        struct peer_state p = {.ejected = false};

        if (n == room || !read_address(host, &p.address))
            return 0;
        read_ejection(host, &p);
        read_stats(host, &p);
        peers[n++] = p;
    }
    return n;
}

uint32_t peers_read(struct bytes page, const char *cluster, struct peer_state *peers, uint32_t room)
{
    json_t *root = json_loadb(page.len == 0 ? "" : (const char *)page.data, page.len, 0, NULL);
    const json_t *one;
    uint32_t n = 0;
    size_t i;

    json_array_foreach(json_object_get(root, "cluster_statuses"), i, one)
    {
        if (n == 0 && has_name(one, cluster))
            n = read_hosts(one, peers, room);
    }
    json_decref(root);
    return n;
}
