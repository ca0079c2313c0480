/* SPDX-License-Identifier: Apache-2.0 */
/* For the traps of lint.h: what one sees, how it says what it found, and the table of them. */
#ifndef CONTROL_LINT_TRAP_H
#define CONTROL_LINT_TRAP_H

#include "control/config_schema.h"
#include "control/lint.h"

/* What a trap is asked about; what it is not about is NULL. */
struct lint_subject {
    const struct snapshot *snapshot;
    const struct config_file *file; /* as written */
    const struct cluster *cluster;  /* of a route: where it leads */
    const struct config_cluster *cluster_written;
    const struct cluster *before; /* the same cluster in what is to be replaced */
    const struct listener_config *listener;
    const struct config_listener *listener_written;
    const struct route *route;
    const struct config_route *route_written;
    uint32_t index; /* of the cluster, or of the route in its listener */
};

struct lint_words {
    struct text why;     /* the arithmetic */
    struct text instead; /* "write ..." */
};

enum lint_scope { LINT_FILE, LINT_CLUSTER, LINT_ROUTE };

struct lint_trap {
    const char *id;
    enum lint_scope scope;
    enum lint_severity severity;
    /* Where it is sprung, with words for it; NULL: it is not. A function of NULL: found elsewhere.
     */
    const struct config_node *(*find)(const struct lint_subject *s, struct lint_words *w);
};

/* Ends with an id of NULL. */
extern const struct lint_trap lint_traps[];

/* As printf, into one of the two texts. */
__attribute__((format(printf, 2, 3))) void lint_say(struct text *t, const char *format, ...);

/* "300ms", for lint_say. */
struct lint_span {
    char text[32];
};
struct lint_span lint_span(span_ns span);

/* A key where it is written, else the key of the map it would be in. */
const struct config_node *lint_at(const struct config_node *map, const char *key);

/* As written: present and not empty. */
bool lint_written(const struct config_node *map, const char *key);
/* The same, and 0. */
bool lint_written_zero(const struct config_node *map, const char *key);

/*
 * How many hosts the cluster has; 0: nobody knows before it runs, since some are names, which may
 * have any number of addresses.
 */
uint32_t lint_hosts(const struct lint_subject *s);

/* 100 x whole / part, rounded: what |part| hosts carry of the load of |whole|; 0 where |part| is.
 */
uint32_t lint_share(uint32_t whole, uint32_t part);

#define LINT_TRAP(name)                                                                            \
    const struct config_node *name(const struct lint_subject *s, struct lint_words *w)

/* lint_ejection.c */
LINT_TRAP(lint_cap_rounds_to_nobody);
LINT_TRAP(lint_cap_half_of_few);
LINT_TRAP(lint_cap_without_limit);
LINT_TRAP(lint_few_peers);
LINT_TRAP(lint_ejection_never_grows);
LINT_TRAP(lint_interval_over_ejection);
LINT_TRAP(lint_gateway_blind);
LINT_TRAP(lint_gateway_never_first);
LINT_TRAP(lint_only_local_ejects);
LINT_TRAP(lint_local_origin_escaped);
LINT_TRAP(lint_no_rule);
LINT_TRAP(lint_one_error_ejects);
LINT_TRAP(lint_zero_cap);
LINT_TRAP(lint_zero_local_origin);

/* lint_rates.c */
LINT_TRAP(lint_rates_too_few_hosts);
LINT_TRAP(lint_success_rate_blind);

/* lint_detection.c */
LINT_TRAP(lint_adaptive_few_peers);
LINT_TRAP(lint_detection_blind);
LINT_TRAP(lint_detection_idle);
LINT_TRAP(lint_false_alarms_too_few);
LINT_TRAP(lint_max_load_high);
LINT_TRAP(lint_observe_left_on);
LINT_TRAP(lint_probes_without_budget);
LINT_TRAP(lint_readmit_few_successes);
LINT_TRAP(lint_return_on_proof);

/* lint_panic.c */
LINT_TRAP(lint_cap_empties_cluster);
LINT_TRAP(lint_min_health_zero);
LINT_TRAP(lint_min_health_cannot_act);
LINT_TRAP(lint_min_health_late);

/* Whether all hosts can be out at once, and nobody serves then. */
bool lint_can_be_empty(const struct lint_subject *s);

/* lint_limits.c */
LINT_TRAP(lint_connections_not_requests);
LINT_TRAP(lint_waiting_unbounded);
LINT_TRAP(lint_queue_below_connections);
LINT_TRAP(lint_no_keep_alive);
LINT_TRAP(lint_zero_limit);

/* lint_timeout.c */
LINT_TRAP(lint_timeout_absent);
LINT_TRAP(lint_timeout_none);
LINT_TRAP(lint_timeout_over_p99);
LINT_TRAP(lint_timeout_under_p99);
LINT_TRAP(lint_per_try_never_fires);
LINT_TRAP(lint_connect_never_fires);
LINT_TRAP(lint_queue_never_over);

/* lint_retry.c */
LINT_TRAP(lint_retries_without_budget);
LINT_TRAP(lint_retries_more_than_one);
LINT_TRAP(lint_retries_do_not_fit);
LINT_TRAP(lint_retries_without_per_try);
LINT_TRAP(lint_budget_too_wide);
LINT_TRAP(lint_budget_never_pays);
LINT_TRAP(lint_limits_without_max_retries);
LINT_TRAP(lint_ejection_without_budget);
LINT_TRAP(lint_budget_without_ejection);
LINT_TRAP(lint_pair_changed_by_half);

/* lint_rule.c */
LINT_TRAP(lint_port_drops_blocks);
LINT_TRAP(lint_subset_drops_blocks);

/* lint_rules.c */
LINT_TRAP(lint_rules_only_counted);
LINT_TRAP(lint_rule_lacks_peers);
LINT_TRAP(lint_rule_one_failure);

/* lint_file.c */
LINT_TRAP(lint_admin_exposed);
LINT_TRAP(lint_route_never_reached);
LINT_TRAP(lint_cluster_unused);

#endif
