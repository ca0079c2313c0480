/* SPDX-License-Identifier: Apache-2.0 */
/* What the steps of reading a configuration share (config.h is the whole). */
#ifndef CONTROL_CONFIG_DOCUMENTS_H
#define CONTROL_CONFIG_DOCUMENTS_H

#include "control/config.h"

/* Empty, nothing allocated. */
void config_begin(struct config_loaded *l, struct config_errors *errors);

/* Fills the names of |l->file|'s endpoints. False: no memory. */
bool config_find_names(struct config_loaded *l);

struct config_rule_document {
    const struct config_node *document;
    struct config_rule_document *next;
};

/* The documents of all sources, by what they are. */
struct config_documents {
    struct arena *arena;
    const struct config_node *native;
    struct config_rule_document *rules; /* Istio's, in order */
    struct config_rule_document *last_rule;
    uint32_t rule_count;
    bool no_memory;
};

/* |trees| are the documents of each source. False: an error was added, or there is no memory. */
bool config_documents_sort(struct config_documents *d, struct config_node *const *trees,
                           struct arena *arena, struct config_errors *errors);

#endif
