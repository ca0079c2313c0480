/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of several traffic policies holds (reference/envoy-semantics.md 8.1): whole blocks replace
 * whole blocks, nothing is merged inside one.
 */
#ifndef CONTROL_CONFIG_RESOLVE_H
#define CONTROL_CONFIG_RESOLVE_H

#include "control/config_schema.h"

/*
 * What |policy| says for |port|: itself, or, where portLevelSettings has an entry for it, that
 * entry alone; what the entry leaves out is absent.
 */
void config_resolve_port(const struct config_policy *policy, uint32_t port,
                         struct config_policy *out);

/*
 * Puts what a subset says over |policy|, which is what its rule says for |port|: an entry for the
 * port replaces all blocks, else each block that is present replaces that one.
 */
void config_resolve_subset(const struct config_policy *subset, uint32_t port,
                           struct config_policy *policy);

/*
 * Fills the blocks that |policy| does not have from |other|. Where both have one: its name, and the
 * two places, and |policy| is of no use; else NULL.
 */
struct config_clash {
    const char *block; /* NULL: none */
    const struct config_node *first;
    const struct config_node *second;
};

struct config_clash config_resolve_both(struct config_policy *policy,
                                        const struct config_policy *other);

/* Says nothing: every block is absent. */
void config_resolve_none(struct config_policy *out);

/* The entry of portLevelSettings for |port|; NULL: none. */
const struct config_port_policy *config_resolve_entry(const struct config_policy *policy,
                                                      uint32_t port);

/* The balancer that |balancer| names. */
enum lb_kind config_resolve_balancer(const struct config_balancer *balancer);

#endif
