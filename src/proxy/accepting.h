/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The listeners of a worker: opening, accepting within bounds, closing. A listener closes in two
 * steps: first it turns new connections away and takes in those whose handshake has begun, half a
 * second later it is gone. So nobody is reset who was let in.
 */
#ifndef PROXY_ACCEPTING_H
#define PROXY_ACCEPTING_H

#include "proxy/worker_state.h"

/* IO_OK, or an io_error. */
int accepting_open(struct worker *w, const struct listener_config *config);

/* The listeners of |s|, which |w->config| is, from now on: some go on, some open, some close. */
void accepting_adopt(struct worker *w, const struct snapshot *s);

/* All begin to close. */
void accepting_drain(struct worker *w);
bool accepting_closed(const struct worker *w);

/* All are closed, whoever waits. */
void accepting_close(struct worker *w);

/* Frees listeners that are no longer configured and whose connections are gone. True: some have
 * connections still. */
bool accepting_sweep(struct worker *w);

/* Closes and frees all; no connection of theirs may be left. */
void accepting_free(struct worker *w);

/* A client's connection is gone: accepting may go on. */
void accepting_left(struct listener_rt *l);

/* When |w->accept_retry| is due. */
void accepting_on_retry(struct timer *t, mono_ns now);

#endif
