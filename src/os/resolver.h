/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io/resolver.h on c-ares: /etc/hosts and DNS (A and AAAA at once) as the system is configured,
 * without a thread and without blocking.
 *
 * Time to live: as the answer says (zero counts as OS_RESOLVER_HOSTS_TTL); of what stands in
 * /etc/hosts OS_RESOLVER_HOSTS_TTL; of a numeric address for ever (UINT64_MAX).
 *
 * Only where there is no memory even to note the question, |done| is called at once.
 */
#ifndef OS_RESOLVER_H
#define OS_RESOLVER_H

#include "io/poller.h"
#include "io/resolver.h"

#define OS_RESOLVER_HOSTS_TTL     (5 * NS_PER_S)
#define OS_RESOLVER_ADDRESSES_MAX 1024 /* of one answer; the rest is dropped */

/* NULL: as /etc/resolv.conf says. Else "ADDRESS[:PORT]", as many as wanted with commas between. */
struct os_resolver_options {
    const char *servers;
    uint32_t timeout_ms; /* of the first try at one server; 0: 2000 */
    uint32_t tries;      /* 0: 3 */
};

/* |o| may be NULL. IO_OK and |*out|, or an io_error (IO_INVALID: |servers|). */
int os_resolver_create(struct poller *p, const struct os_resolver_options *o,
                       struct resolver **out);

/* Before the poller, and not inside |done|. Lookups under way are dropped without an answer. Takes
 * NULL. */
void os_resolver_free(struct resolver *r);

#endif
