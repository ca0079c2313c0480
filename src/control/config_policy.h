/* SPDX-License-Identifier: Apache-2.0 */
/* A trafficPolicy as written: what its rows alone cannot check. */
#ifndef CONTROL_CONFIG_POLICY_H
#define CONTROL_CONFIG_POLICY_H

#include "control/config_error.h"
#include "control/config_resolve.h"
#include "control/config_schema.h"

/* Adds errors; all of it, ports that are not ours included. */
void config_policy_check(struct config_errors *errors, const struct config_policy *policy);

/* What |rule| says for |port|; NULL says nothing. */
void config_policy_of_rule(const struct config_rule *rule, uint32_t port,
                           struct config_policy *out);

#endif
