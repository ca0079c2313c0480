/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hosts of a cluster serve no more: the workers are told, so that what is idle towards them is
 * closed now and not at the next request. Needs no answer; to whom a mailbox is full is told by
 * that next request.
 */
#ifndef CONTROL_HEALTH_NEWS_H
#define CONTROL_HEALTH_NEWS_H

#include "io/mailbox.h"
#include "model/cluster_state.h"

void health_news(struct mailbox *const *workers, uint32_t count, struct cluster_state *state);

#endif
