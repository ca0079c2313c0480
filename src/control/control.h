/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control loop: judges what the workers saw (outlier watch), tells workers what to do
 * (snapshots, drain, quit). One thread in the daemon; one more loop in the simulator. Admin pages
 * hang on its poller and wheel.
 */
#ifndef CONTROL_CONTROL_H
#define CONTROL_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/text.h"
#include "base/units.h"
#include "base/wheel.h"
#include "control/host_hand.h"
#include "io/clock.h"
#include "io/files.h"
#include "io/log.h"
#include "io/mailbox.h"
#include "io/poller.h"
#include "io/resolver.h"
#include "model/process_state.h"
#include "model/snapshot.h"

struct control;
struct journal;
struct outlier_watch;
struct reloader;

struct control_setup {
    uint64_t seed;
    struct clock *clock;
    struct poller *poller;
    struct mailbox *inbox;
    struct mailbox *const *workers;
    uint32_t worker_count;
    struct log *log;
    struct files *files; /* of the event log */
    struct process_state *process;
    struct resolver
        *resolver; /* on |poller|, freed before the control; NULL: names stay as they are */
    struct snapshot *snapshot; /* takes a reference of its own */
};

/* What |setup| points to outlives the control, the snapshot by the reference taken. NULL: no
 * memory. */
struct control *control_create(const struct control_setup *setup);

/* When control_turn should next be called, if nothing happens before. MONO_NEVER: only on events.
 */
mono_ns control_wakeup(const struct control *c);

/* One turn: waits (not beyond control_wakeup), reads the clock once, does all there is to do. */
void control_turn(struct control *c);

/* The instant of the present turn: for those whose callbacks run inside it. */
mono_ns control_now(const struct control *c);
struct wheel *control_wheel(struct control *c);
struct poller *control_poller(struct control *c);

/* The snapshot in force; valid during the turn. */
struct snapshot *control_snapshot(const struct control *c);
struct process_state *control_process(const struct control *c);

/*
 * |s|, new and without run-time state, is in force from now on; |c| takes a reference of its own.
 * What is still in it keeps all that was learnt and counted. Workers go over between two turns.
 * False: no memory, and the one before stays in force.
 */
bool control_publish(struct control *c, struct snapshot *s);

/* Who loads the configuration anew; NULL: nobody can. Must outlive the control loop's turns. */
void control_set_reloader(struct control *c, struct reloader *r);
struct reloader *control_reloader(const struct control *c);

/*
 * Who looks at a snapshot over several turns, holding a reference to it: hosts that it names are
 * not freed before control_read_end. Embed by value.
 */
struct control_reader {
    struct list link;
    uint64_t version;
};

/* Of the snapshot in force. */
void control_read_begin(struct control *c, struct control_reader *r);
void control_read_end(struct control_reader *r);

/* Workers end connections as their requests end, and go on listening. It is not taken back. */
void control_shed(struct control *c);

/*
 * The process is to end: /ready says so and each answer ends its connection, at once; after the
 * snapshot's drain wait workers stop listening and finish what is under way; at its drain timeout
 * from now they are ended. Again: nothing changes. As with all messages, one for which a worker's
 * mailbox has no room is posted again until there is.
 */
void control_drain(struct control *c);
bool control_drains(const struct control *c);

/* The event log and the journal are opened anew (after a rotation). */
void control_reopen(struct control *c);

/* How many of its lines were dropped, and of the journal's; they live as long as |c|. */
const _Atomic uint64_t *control_events_dropped(const struct control *c);
const _Atomic uint64_t *control_journal_dropped(const struct control *c);

/* What was decided, and who decides: to be looked at. */
struct journal *control_journal(const struct control *c);
struct outlier_watch *control_watch(const struct control *c);

/* Workers end at once. */
void control_quit(struct control *c);

/* Does to a host what an operator says (host_hand.h). */
enum host_answer control_host(struct control *c, const struct host_order *order, struct text *said);

/* True once every worker has said that it is done. */
bool control_done(const struct control *c);

void control_free(struct control *c);

#endif
