/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DestinationRules on the clusters they are for: whose policy holds, and which subsets there are.
 * Afterwards nobody needs to know that there were rules: there are clusters, with policies.
 */
#ifndef CONTROL_CONFIG_RULES_H
#define CONTROL_CONFIG_RULES_H

#include "control/config.h"

/*
 * Replaces the clusters of |l->file| by what they and |rules| say together. Adds errors and
 * warnings. False: no memory.
 */
bool config_rules_apply(struct config_loaded *l, const struct config_rule *rules, uint32_t count);

#endif
