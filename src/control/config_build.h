/* SPDX-License-Identifier: Apache-2.0 */
/* From the typed form of a configuration to a snapshot: what the rows alone cannot check. */
#ifndef CONTROL_CONFIG_BUILD_H
#define CONTROL_CONFIG_BUILD_H

#include "base/arena.h"
#include "control/config.h"
#include "control/config_names.h"
#include "control/config_schema.h"

/* What clusters go by; each to an index. */
struct config_cluster_names {
    struct config_names shown;
    struct config_names stats;   /* "a:b" and "a_b" would count as one */
    struct config_names written; /* the native names */
    struct config_names hosts;
    bool *several; /* [index]: another cluster has the same host */
};

struct config_build {
    struct arena *scratch; /* lives until the snapshot is built */
    struct config_errors *errors;
    struct config_resolver *resolver;
    struct snapshot *snapshot; /* under way */
    struct config_cluster_names names;
    struct config_names hosts; /* looked up already */
    struct address *host_addresses;
    uint32_t host_count;
    uint32_t lookups_failed;
    bool nameless; /* a cluster has no good name, or there is none: routes are not to blame */
    bool no_memory;
};

/* The whole. Adds errors; |b->snapshot| is only of use where there are none. */
void config_build(struct config_build *b, const struct config_file *file);

/* For the parts of the builder. */
struct bytes config_build_copy(struct config_build *b, struct bytes text);
struct address config_build_address(struct config_build *b, const struct address *a);
void *config_build_array(struct config_build *b, size_t count, size_t size);
struct text *config_build_error(struct config_build *b, const struct config_node *at);
/* "'name' is given twice" with the line of the first. */
void config_build_twice(struct config_build *b, const struct config_node *at, struct bytes name,
                        const struct config_node *first);

/* "example.test:80" in its parts. False: it is none. */
bool config_endpoint_host(struct bytes address, struct bytes *host, uint16_t *port);

/* config_build_names.c: room for the names of all clusters. False: no memory. */
bool config_build_names(struct config_build *b, const struct config_file *file);
/* Enters cluster |i|; two of a name are an error. */
void config_build_name(struct config_build *b, const struct config_cluster *from, uint32_t i,
                       struct bytes stat_name);
/* The cluster that a route means; CONFIG_NO_NAME: none, or more than one, and |*several| is true.
 */
uint32_t config_build_find(const struct config_build *b, struct bytes name, bool *several);

/* config_build_cluster.c: all clusters of |file| into the snapshot. */
void config_build_clusters(struct config_build *b, const struct config_file *file);
/* config_build_log.c: the access log. */
void config_build_access_log(struct config_build *b, const struct config_access_log *from);
/* config_build_outlier.c: who is ejected, and where the cluster follows Envoy. */
void config_build_outlier(struct config_build *b, const struct config_cluster *from,
                          struct cluster *c);

/* config_build_detection.c: after config_build_outlier, whose words it may narrow. */
void config_build_detection(struct config_build *b, const struct config_cluster *from,
                            struct cluster *c);
/* config_build_rules.c: resilience.rules. |d| has its profile. */
void config_build_rules(struct config_build *b, const struct field_items *from,
                        struct detection_config *d);
/* config_build_retry.c: NULL where a route has none, or where memory or words were wrong. */
const struct route_retry *config_build_retry(struct config_build *b,
                                             const struct config_retry *from);
/* config_build_listener.c: all listeners. */
void config_build_listeners(struct config_build *b, const struct config_file *file);

#endif
