/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the simulated network: a table that may change under way, answered after a delay. */
#ifndef SIM_RESOLVER_H
#define SIM_RESOLVER_H

#include <stdbool.h>
#include <stdint.h>

#include "io/resolver.h"
#include "sim/net.h"

#define SIM_NAMES     16
#define SIM_ADDRESSES 16

struct sim_name {
    const char *name;
    int error; /* IO_OK, or what every lookup of it gives */
    span_ns ttl;
    uint32_t count;
    struct address at[SIM_ADDRESSES];
};

/* One a loop; its answers come out of that loop's poller. */
struct sim_resolver {
    struct resolver base; /* first */
    struct sim_poller *poller;
    span_ns delay;
    uint32_t name_count;
    struct sim_name names[SIM_NAMES];
    struct list lookups; /* not yet answered */
    uint64_t asked;
};

void sim_resolver_init(struct sim_resolver *r, struct sim_poller *poller);

/* Lookups under way are never answered. */
void sim_resolver_release(struct sim_resolver *r);

/* The entry for |name| (which must outlive the resolver), made on first use. NULL: the table is
 * full. */
struct sim_name *sim_resolver_name(struct sim_resolver *r, const char *name);

#endif
