/* SPDX-License-Identifier: Apache-2.0 */
/* Files that lost their indentation on the way, from a chat or a page: said once, not twenty times.
 */
#ifndef CONTROL_CONFIG_INDENT_H
#define CONTROL_CONFIG_INDENT_H

#include <stdbool.h>

#include "control/config_error.h"
#include "control/config_tree.h"

/*
 * True where a key of |document| has nothing in it and what belongs there stands beside it; an
 * error was added. Any document: native or Istio's.
 */
bool config_indentation_lost(const struct config_node *document, struct config_errors *errors);

#endif
