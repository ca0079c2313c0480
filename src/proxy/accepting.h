/* SPDX-License-Identifier: Apache-2.0 */
/* The listeners of a worker: opening, accepting within bounds, closing. */
#ifndef PROXY_ACCEPTING_H
#define PROXY_ACCEPTING_H

#include "proxy/worker_state.h"

/* IO_OK, or an io_error and the listener that could not be opened. */
int accepting_open(struct worker *w, const struct listener_config **failed);

/* For good. */
void accepting_close(struct worker *w);

#endif
