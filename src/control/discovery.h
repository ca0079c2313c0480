/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Endpoints given as names, looked up again and again: each of a name's addresses is a host, and
 * when they change a snapshot is made with the new hosts and all else as configured. An answer
 * holds for its time to live. A lookup that fails, or an answer without addresses, changes nothing:
 * the last good set stays. What an answer leaves
 * out is held for the cluster's |dns_hold| (policy/name_set.h). Control thread only.
 */
#ifndef CONTROL_DISCOVERY_H
#define CONTROL_DISCOVERY_H

#include <stdbool.h>

#include "base/wheel.h"
#include "io/clock.h"
#include "io/log.h"
#include "io/resolver.h"
#include "model/snapshot.h"

#define DISCOVERY_LEAST      (1 * NS_PER_S) /* between two lookups of a name */
#define DISCOVERY_MOST       (3600 * NS_PER_S)
#define DISCOVERY_RETRY      (5 * NS_PER_S) /* after a failure, doubled with each more */
#define DISCOVERY_RETRY_MOST (60 * NS_PER_S)

struct discovery;

struct discovery_setup {
    struct wheel *wheel;
    struct clock *clock;
    struct log *log;
    struct resolver *resolver; /* NULL: names keep the address that they began with */
};

/* What |setup| points to outlives it, but for the resolver, which is freed before. NULL: no memory.
 */
struct discovery *discovery_create(const struct discovery_setup *setup);
void discovery_free(struct discovery *d);

/*
 * What to put in force for |root|, a configuration: itself where it has no names, else one with it
 * as base and what is known of the names. A reference of the caller's. NULL: no memory.
 */
struct snapshot *discovery_fill(struct discovery *d, struct snapshot *root);

/*
 * |in_force| is so, made by discovery_fill of |root| (or |root| as it is): its names are looked up
 * from now on, and no others. Takes references.
 */
void discovery_adopt(struct discovery *d, struct snapshot *root, struct snapshot *in_force);

/* The first one is in force, with the address that each name has in it. False: no memory. */
bool discovery_begin(struct discovery *d, struct snapshot *root);

/* The configuration of which names have other addresses now than what is in force; NULL: none. */
struct snapshot *discovery_changed(const struct discovery *d);

#endif
