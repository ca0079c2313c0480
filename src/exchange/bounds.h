/* SPDX-License-Identifier: Apache-2.0 */
/* The doors to the bounds on the whole process (law 8), for the glue. */
#ifndef EXCHANGE_BOUNDS_H
#define EXCHANGE_BOUNDS_H

#include <stdbool.h>

#include "model/process_state.h"

/*
 * One more client connection was accepted. It is counted even where that is one too many: several
 * workers may see the last place free, and who was accepted is not reset.
 */
void bounds_add_client(struct process_state *p);
void bounds_give_client(struct process_state *p);

/* Is there a place for one more? If not, leave them in the kernel's queue. */
bool bounds_client_room(const struct process_state *p);

/* One more connection to a host; false where there are as many as the descriptors allow. */
bool bounds_take_upstream(struct process_state *p);
void bounds_give_upstream(struct process_state *p);

/* Memory to keep more of a body for another attempt; false where all requests together have enough.
 */
bool bounds_take_replay(struct process_state *p, uint64_t bytes);
void bounds_give_replay(struct process_state *p, uint64_t bytes);

#endif
