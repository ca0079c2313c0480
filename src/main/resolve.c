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

static int resolve(struct config_resolver *base, struct bytes host, struct address *out)
{
    struct resolve *r = CONTAINER_OF(base, struct resolve, base);
    mono_ns until = mono_after(clock_read(&r->clock), PATIENCE);
    struct answer *a = calloc(1, sizeof(*a));
    int error;

    if (a == NULL)
        return IO_NO_MEMORY;
    resolver_lookup(r->resolver, host, on_done, a);
    while (!a->here && clock_read(&r->clock) < until) {
        poller_wait(r->poller, until);
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

struct config_resolver *resolve_open(void)
{
    struct resolve *r = calloc(1, sizeof(*r));

    if (r == NULL)
        return NULL;
    r->base.resolve = resolve;
    os_clock_init(&r->clock);
    if (os_poller_create(&r->clock, &r->poller) == IO_OK &&
        os_resolver_create(r->poller, NULL, &r->resolver) == IO_OK)
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
