/* SPDX-License-Identifier: Apache-2.0 */
/* Subsets of rules, and the list of clusters that they make longer. */
#ifndef CONTROL_CONFIG_SUBSETS_H
#define CONTROL_CONFIG_SUBSETS_H

#include "control/config.h"

struct config_subset_item {
    const struct config_rule *rule;
    const struct config_subset *subset;
    struct config_subset_item *next;
};

struct config_subset_list {
    struct config_subset_item *first;
    struct config_subset_item *last;
};

/* Appends those of |rule|; one of a name that is there already is an error. False: no memory. */
bool config_subsets_add(struct config_subset_list *list, struct config_loaded *l,
                        const struct config_rule *rule);

/* What subsets may come to: a rule for every host multiplies. */
#define CONFIG_SUBSET_CLUSTERS_MAX  100000u
#define CONFIG_SUBSET_ENDPOINTS_MAX 1000000u

struct config_expanded;

/* The clusters as they will be. */
struct config_expansion {
    struct config_loaded *l;
    struct config_expanded *first;
    struct config_expanded *last;
    uint32_t count;
    uint32_t subsets;
    uint32_t endpoints; /* of subsets */
    bool full;          /* there are too many, which was said */
    bool no_memory;
};

/*
 * The endpoints of |cluster| that have all labels of |subset|. False: there are none (which is
 * said, but not of a rule for a |pattern| of hosts), or too many.
 */
bool config_subset_endpoints(struct config_expansion *e, const struct config_subset *subset,
                             bool pattern, const struct config_cluster *cluster,
                             struct field_items *out);

/* Appends a copy, with its name. */
void config_expansion_add(struct config_expansion *e, const struct config_cluster *cluster);

/* Gives |l->file| the list. False: no memory. */
bool config_expansion_end(struct config_expansion *e);

#endif
