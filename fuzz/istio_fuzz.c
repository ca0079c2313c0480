/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Istio's documents, any bytes, beside a good native document. Oracle: they are accepted, and all
 * clusters can be found by their names and have hosts; or refused with an error whose place is
 * inside one of the two files; and the same when read again.
 */
#include <assert.h>

#include "control/config.h"

static const char native[] =
    "namespace: shop\n"
    "listeners: [{name: web, listen: 127.0.0.1:0, routes: [{cluster: a}, {cluster: b.shop}]}]\n"
    "clusters:\n"
    "- name: a\n"
    "  host: a.shop.svc.cluster.local\n"
    "  endpoints:\n"
    "  - {address: '127.0.0.1:1', version: v1, zone: z}\n"
    "  - {address: '127.0.0.1:2', labels: {version: v2, track: canary}}\n"
    "- {name: b, host: b.shop, port: 81, endpoints: [{address: 127.0.0.1:1}],\n"
    "   trafficPolicy: {connectionPool: {tcp: {maxConnections: 3}}}}\n"
    "- {name: c, endpoints: [{address: 127.0.0.1:1}]}\n";

static void check_places(const struct config_error *list, uint32_t count,
                         const struct config_source *sources)
{
    for (uint32_t i = 0; i < count; i++) {
        size_t size;

        assert(list[i].source < 2);
        size = sources[list[i].source].text.len;
        assert(list[i].line >= 1 && list[i].line <= size + 1);
        assert(list[i].column >= 1 && list[i].column <= size + 1);
        assert(list[i].message.len > 0 && list[i].caret <= 100);
    }
}

static void check_snapshot(const struct snapshot *s)
{
    assert(s->cluster_count >= 3);
    for (uint32_t i = 0; i < s->cluster_count; i++) {
        const struct cluster *c = &s->clusters[i];

        assert(c->endpoint_count > 0 && c->outlier.interval > 0 && c->connect_timeout > 0);
        assert(c->panic.threshold <= 100 && c->outlier.max_ejection_percent <= 100);
        assert(snapshot_find_cluster(s, c->name) == c);
    }
}

static int load(const struct config_source *sources, struct snapshot **out)
{
    struct config_errors e;
    int status;

    config_errors_init(&e);
    status = config_parse(sources, 2, NULL, &e, out);
    check_places(e.warnings, e.warning_count, sources);
    check_places(e.at, e.count, sources);
    assert(status == CONFIG_OK ? e.count == 0 : status == CONFIG_INVALID && e.count > 0);
    config_errors_release(&e);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct config_source sources[] = {{BYTES("native"), BYTES(native)},
                                            {BYTES("rules"), bytes_from(data, size)}};
    struct snapshot *first = NULL;
    struct snapshot *second = NULL;

    if (load(sources, &first) == CONFIG_OK) {
        check_snapshot(first);
        assert(load(sources, &second) == CONFIG_OK);
        assert(second->cluster_count == first->cluster_count);
    }
    snapshot_drop(first);
    snapshot_drop(second);
    return 0;
}
