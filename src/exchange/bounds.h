/* SPDX-License-Identifier: Apache-2.0 */
/* The doors to the bounds on the whole process (law 8), for the glue. */
#ifndef EXCHANGE_BOUNDS_H
#define EXCHANGE_BOUNDS_H

#include <stdbool.h>

#include "model/process_state.h"

/* One more client connection; false where there are as many as the descriptors allow. */
bool bounds_take_client(struct process_state *p);
void bounds_give_client(struct process_state *p);

/* Would bounds_take_client succeed now? */
bool bounds_client_room(const struct process_state *p);

#endif
