/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration loader on any bytes. Oracle: it is accepted, and then sound and the same when
 * read again; or refused with at least one error whose place is inside the file.
 */
#include <assert.h>

#include "control/config.h"

static void check_errors(const struct config_errors *e, size_t size)
{
    static char room[64 * 1024];
    struct text t;

    assert(e->count >= 1 && e->count <= CONFIG_ERRORS_MAX);
    for (uint32_t i = 0; i < e->count; i++) {
        assert(e->at[i].line >= 1 && e->at[i].line <= size + 1);
        assert(e->at[i].column >= 1 && e->at[i].column <= size + 1);
        assert(e->at[i].message.len > 0 && e->at[i].caret <= 100);
    }
    text_init(&t, room, sizeof(room));
    config_errors_write(&t, e);
    assert(!t.failed);
}

static void check_snapshot(const struct snapshot *s)
{
    assert(s->listener_count > 0 && s->cluster_count > 0);
    for (uint32_t i = 0; i < s->listener_count; i++) {
        assert(s->listeners[i].route_count > 0);
        for (uint32_t k = 0; k < s->listeners[i].route_count; k++) {
            assert(s->listeners[i].routes[k].cluster < s->cluster_count);
            assert(s->listeners[i].routes[k].path.data[0] == '/');
        }
    }
    for (uint32_t i = 0; i < s->cluster_count; i++)
        assert(s->clusters[i].endpoint_count > 0 && s->clusters[i].outlier.interval > 0);
}

/* Names of even length are known, the others are not. */
static int resolve(struct config_resolver *r, struct bytes host, struct address *out)
{
    (void)r;
    if (host.len % 2 == 1)
        return -11;
    *out = (struct address){.kind = ADDRESS_IPV4, .ip = {10, 0, 0, (uint8_t)host.len}};
    return 0;
}

static int load(const uint8_t *data, size_t size, struct snapshot **out)
{
    struct config_resolver resolver = {resolve};
    struct bytes source = bytes_from(data, size);
    struct config_errors e;
    int status;

    config_errors_init(&e);
    status = config_parse(&(struct config_source){BYTES("fuzz"), source}, 1, &resolver, &e, out);
    assert(status == CONFIG_OK || status == CONFIG_INVALID);
    if (status == CONFIG_OK)
        assert(e.count == 0);
    else
        check_errors(&e, size);
    config_errors_release(&e);
    return status;
}

static void load_list(const uint8_t *data, size_t size)
{
    const struct config_run run = {.to = bytes_from(data, size)};
    struct config_resolver resolver = {resolve};
    struct config_errors e;
    struct snapshot *s = NULL;

    config_errors_init(&e);
    if (config_from_list(&run, &resolver, &e, &s) == CONFIG_OK)
        check_snapshot(s);
    else
        assert(e.count > 0 && s == NULL);
    config_errors_release(&e);
    snapshot_drop(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct snapshot *first = NULL;
    struct snapshot *second = NULL;

    if (load(data, size, &first) == CONFIG_OK) {
        check_snapshot(first);
        assert(load(data, size, &second) == CONFIG_OK);
        assert(second->cluster_count == first->cluster_count);
        assert(second->listener_count == first->listener_count);
    }
    snapshot_drop(first);
    snapshot_drop(second);
    if (size < 512)
        load_list(data, size);
    return 0;
}
