/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker: one loop with its listeners, client connections and upstream pools. The daemon runs
 * each on a thread of its own; the simulator runs them all on one, in virtual time.
 */
#ifndef PROXY_WORKER_H
#define PROXY_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/units.h"
#include "io/clock.h"
#include "io/log.h"
#include "io/mailbox.h"
#include "io/poller.h"
#include "model/process_state.h"
#include "model/record.h"
#include "model/snapshot.h"

struct worker;

/* All but |snapshot| must outlive the worker; of the snapshot it takes a reference of its own. */
struct worker_setup {
    uint32_t index;
    uint64_t seed;
    struct clock *clock;
    struct poller *poller; /* this worker's own */
    struct mailbox *inbox; /* this worker's own; posting to it wakes |poller| */
    struct mailbox *control;
    struct mailbox *const *peers; /* inboxes of all workers, this one's included */
    uint32_t peer_count;
    struct log *log;
    struct record_sink *records;            /* may be NULL: no access log */
    const struct access_format *log_format; /* whose headers are kept; may be NULL: none are */
    struct process_state *process;
    struct snapshot *snapshot; /* with its state attached (snapshot_attach_state) */
};

/*
 * Opens the listeners of the snapshot. IO_OK and |*out|; or an io_error, and |*failed| is the
 * listener that could not be opened (NULL: no memory).
 */
int worker_create(const struct worker_setup *setup, struct worker **out,
                  const struct listener_config **failed);

/* When worker_turn should next be called, if nothing happens before. MONO_NEVER: only on events. */
mono_ns worker_wakeup(const struct worker *w);

/* One turn: waits (not beyond worker_wakeup), reads the clock once, does all there is to do. */
void worker_turn(struct worker *w);

/* True once it has drained or was told to quit: no more turns are needed. */
bool worker_done(const struct worker *w);

/* Closes what is open. */
void worker_free(struct worker *w);

#endif
