/* SPDX-License-Identifier: Apache-2.0 */
/* The hosts of a configuration that must be looked up before it can be compiled. */
#include "base/address.h"
#include "control/config_build.h"
#include "control/config_documents.h"

static bool is_host_name(struct bytes host)
{
    if (host.len == 0 || host.len > 253)
        return false;
    for (size_t i = 0; i < host.len; i++) {
        uint8_t c = byte_lower(host.data[i]);

        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_'))
            return false;
    }
    return true;
}

bool config_endpoint_host(struct bytes address, struct bytes *host, uint16_t *port)
{
    return address_split(address, host, port) && *port != 0 && is_host_name(*host);
}

static uint32_t count_endpoints(const struct config_file *file)
{
    const struct config_cluster *clusters = file->clusters.at;
    uint32_t count = 0;

    for (uint32_t i = 0; i < file->clusters.count; i++)
        count += clusters[i].endpoints.count;
    return count;
}

static void find_in(struct config_loaded *l, const struct config_cluster *cluster,
                    struct config_names *seen, struct bytes *names)
{
    const struct config_endpoint *each = cluster->endpoints.at;

    for (uint32_t i = 0; i < cluster->endpoints.count; i++) {
        struct address numeric;
        struct bytes host;
        uint16_t port;

        if (bytes_start_with(each[i].address, BYTES("unix:")) ||
            address_parse(each[i].address, &numeric) ||
            !config_endpoint_host(each[i].address, &host, &port) ||
            config_names_add(seen, host, l->name_count) != CONFIG_NO_NAME)
            continue;
        names[l->name_count++] = host;
    }
}

bool config_find_names(struct config_loaded *l)
{
    const struct config_cluster *clusters = l->file->clusters.at;
    uint32_t most = count_endpoints(l->file);
    struct bytes *names = arena_take(&l->arena, (most + (size_t)1) * sizeof(*names));
    struct config_names seen;

    if (names == NULL || !config_names_init(&seen, &l->arena, most))
        return false;
    for (uint32_t i = 0; i < l->file->clusters.count; i++)
        find_in(l, &clusters[i], &seen, names);
    l->names = names;
    return true;
}
