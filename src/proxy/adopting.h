/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a worker goes over to a new snapshot, between two turns: clusters and listeners that are
 * still configured go on with their connections, new ones begin, others end when their last request
 * has. Requests under way finish by the route they were given.
 */
#ifndef PROXY_ADOPTING_H
#define PROXY_ADOPTING_H

#include "proxy/worker_state.h"

/* The first one: clusters, no listeners. False: no memory. */
bool adopting_begin(struct worker *w, struct snapshot *s);

/* Another one; |s| comes with a reference. Where there is no memory the worker stays as it is. */
void adopting_go_over(struct worker *w, struct snapshot *s);

/* While |w->going_over|: frees what nobody thinks of any more. At the end of a turn, after streams
 * were buried. */
void adopting_sweep(struct worker *w);

/* At the worker's end. */
void adopting_free(struct worker *w);

#endif
