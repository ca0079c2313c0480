/* SPDX-License-Identifier: Apache-2.0 */
#include "main/resolve.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/list.h"
#include "io/error.h"
#include "io/resolver.h"
#include "os/clock.h"
#include "os/poller.h"
#include "os/resolver.h"

/* c-ares gives up earlier by itself; this is for the case that it does not. */
#define PATIENCE (30 * NS_PER_S)

struct resolve {
    struct config_resolver base;
    const struct snapshot *before;
    struct clock clock;
    struct poller *poller;
    struct resolver *resolver;
};

struct answer {
    bool here;
    int error;
    struct address address;
};

static void on_done(void *owner, int error, const struct address *addresses, size_t n, span_ns ttl)
{
    struct answer *a = owner;

    (void)ttl;
    a->here = true;
    a->error = error;
    if (n > 0)
        a->address = addresses[0];
}

static int look_up(struct resolve *r, struct bytes host, struct address *out)
{
    mono_ns until = mono_after(clock_read(&r->clock), PATIENCE);
    struct answer *a = calloc(1, sizeof(*a));
    int error;

    if (a == NULL)
        return IO_NO_MEMORY;
    resolver_lookup(r->resolver, host, on_done, a);
    while (!a->here && clock_read(&r->clock) < until) {
        poller_wait(r->poller, mono_until(clock_read(&r->clock), until));
        poller_dispatch(r->poller);
    }
    if (!a->here)
        return IO_TIMED_OUT; /* |a| stays: the answer may still come */
    error = a->error;
    if (error == IO_OK)
        *out = a->address;
    free(a);
    return error;
}

/* Its address in the configuration that is in force. */
static bool find_before(const struct snapshot *s, struct bytes host, struct address *out)
{
    for (uint32_t i = 0; s != NULL && i < s->cluster_count; i++) {
        const struct cluster *c = &s->clusters[i];

        for (uint32_t k = 0; k < c->endpoint_count; k++) {
            if (!bytes_equal_nocase(c->endpoints[k].hostname, host))
                continue;
            *out = c->endpoints[k].address;
            out->port = 0;
            return true;
        }
    }
    return false;
}

static int resolve(struct config_resolver *base, struct bytes host, struct address *out)
{
    struct resolve *r = CONTAINER_OF(base, struct resolve, base);
    int error = look_up(r, host, out);

    return error != IO_OK && find_before(r->before, host, out) ? IO_OK : error;
}

int resolve_create(struct poller *p, struct resolver **out)
{
    const struct os_resolver_options options = {.servers = getenv("FIREBREAK_NAMESERVERS")};

    return os_resolver_create(p, &options, out);
}

struct config_resolver *resolve_open(const struct snapshot *before)
{
    struct resolve *r = calloc(1, sizeof(*r));

    if (r == NULL)
        return NULL;
    r->base.resolve = resolve;
    r->before = before;
    os_clock_init(&r->clock);
    if (os_poller_create(&r->poller) == IO_OK && resolve_create(r->poller, &r->resolver) == IO_OK)
        return &r->base;
    resolve_close(&r->base);
    return NULL;
}

void resolve_close(struct config_resolver *base)
{
    struct resolve *r;

    if (base == NULL)
        return;
    r = CONTAINER_OF(base, struct resolve, base);
    os_resolver_free(r->resolver);
    os_poller_free(r->poller);
    free(r);
}
