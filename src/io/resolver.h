/* SPDX-License-Identifier: Apache-2.0 */
/* Names to addresses. The answer comes out of poller_dispatch of the poller the resolver is on. */
#ifndef IO_RESOLVER_H
#define IO_RESOLVER_H

#include <stddef.h>
#include <stdint.h>

#include "base/address.h"
#include "base/bytes.h"
#include "base/units.h"

/* |addresses| (port 0, valid during the call), |n| of them; 0 with a negative io_error. */
typedef void (*resolver_done)(void *owner, int error, const struct address *addresses, size_t n,
                              span_ns ttl);

struct resolver {
    /* |done| is called exactly once, never before this returns. */
    void (*lookup)(struct resolver *r, struct bytes host, resolver_done done, void *owner);
};

static inline void resolver_lookup(struct resolver *r, struct bytes host, resolver_done done,
                                   void *owner)
{
    r->lookup(r, host, done, owner);
}

#endif
