/* SPDX-License-Identifier: Apache-2.0 */
/* Names in a configuration to addresses, before there is a loop: waits for the answer. */
#ifndef MAIN_RESOLVE_H
#define MAIN_RESOLVE_H

#include "control/config.h"

/* NULL: none can be had; then a name is an error of the configuration. */
struct config_resolver *resolve_open(void);

/* Takes NULL. */
void resolve_close(struct config_resolver *r);

#endif
