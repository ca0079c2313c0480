/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots that were in force. Whoever lets go of one last frees all hosts of its clusters: tens
 * of milliseconds for ten thousand. So that this is never a worker, each is held here until nobody
 * else holds it, and then freed in pieces.
 */
#ifndef CONTROL_RETIRED_H
#define CONTROL_RETIRED_H

#include <stdbool.h>

#include "base/list.h"
#include "model/snapshot.h"

struct retired {
    struct list snapshots;
};

void retired_init(struct retired *r);
/* Lets go of all, whoever else holds them. */
void retired_release(struct retired *r);

/* The reference is taken over. */
void retired_add(struct retired *r, struct snapshot *s);

/* Frees a piece of what nobody else holds. True: there is more. */
bool retired_free_some(struct retired *r);

#endif
