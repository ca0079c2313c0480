/* SPDX-License-Identifier: Apache-2.0 */
/* Names in a configuration to addresses, before there is a loop: waits for the answer. */
#ifndef MAIN_RESOLVE_H
#define MAIN_RESOLVE_H

#include "control/config.h"
#include "io/poller.h"
#include "io/resolver.h"
#include "model/snapshot.h"

/*
 * A name that cannot be looked up keeps the address that it has in |before| (NULL: none was). NULL:
 * none can be had; then a name is an error of the configuration.
 */
struct config_resolver *resolve_open(const struct snapshot *before);

/* The name servers: FIREBREAK_NAMESERVERS ("ADDRESS:PORT,..."), else as the system has them. */
int resolve_create(struct poller *p, struct resolver **out);

/* Takes NULL. */
void resolve_close(struct config_resolver *r);

#endif
