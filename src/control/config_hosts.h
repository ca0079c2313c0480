/* SPDX-License-Identifier: Apache-2.0 */
/* Names of services as Istio writes them: short, with a namespace, in full, with a wildcard. */
#ifndef CONTROL_CONFIG_HOSTS_H
#define CONTROL_CONFIG_HOSTS_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/bytes.h"

#define CONFIG_HOST_MAX 253

/* Letters, digits, '-', '_' between single dots; |wildcard|: of which the first part may be "*". */
bool config_host_valid(struct bytes host);
bool config_host_pattern_valid(struct bytes pattern);
bool config_host_is_pattern(struct bytes host);

/*
 * The host of a cluster in full and in small letters: "a" in |namespace| (empty: it stays) and
 * "a.ns.svc" become "a.ns.svc.cluster.local". {NULL, 0}: no memory.
 */
struct bytes config_host_complete(struct arena *arena, struct bytes host, struct bytes namespace);

/*
 * The forms in which a rule may mean a host that it writes as |host| in |namespace|, likeliest
 * first: as it stands, in full, with the namespace only. Their number; 0: no memory.
 */
#define CONFIG_HOST_FORMS 3
unsigned config_host_forms(struct arena *arena, struct bytes host, struct bytes namespace,
                           struct bytes forms[CONFIG_HOST_FORMS]);

/*
 * The next less specific pattern: of "a.b.c" "*.b.c", of that "*.c", of that "*"; into |room|.
 * False: there is none.
 */
bool config_host_widen(struct bytes *host, char room[CONFIG_HOST_MAX + 1]);

#endif
