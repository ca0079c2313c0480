/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All decisions of a process: the newest JOURNAL_KEPT in memory, to be asked for, and every one as
 * a line of JSON in a file, where there is to be one. Control thread only.
 */
#ifndef CONTROL_JOURNAL_H
#define CONTROL_JOURNAL_H

#include "control/decision.h"
#include "control/event_log.h"

#define JOURNAL_KEPT        1024u
#define JOURNAL_READERS_MAX 8u /* who wait for what is new, at once */

struct journal;

/* Writes nowhere yet. NULL: no memory. */
struct journal *journal_create(struct files *files, struct log *log);

/* As event_log_set and event_log_reopen. */
void journal_set(struct journal *j, struct bytes path);
void journal_reopen(struct journal *j);

/* |d| gets its number. */
void journal_put(struct journal *j, struct decision *d);

/* The number of the oldest one kept and of the next one to come: the same where there is none. */
uint64_t journal_first(const struct journal *j);
uint64_t journal_next(const struct journal *j);

/* From first on and before next. */
const struct decision *journal_at(const struct journal *j, uint64_t number);

/* Somebody waits for what is new. False: there are too many already. */
bool journal_join(struct journal *j);
void journal_leave(struct journal *j);

/* How many lines were dropped; it lives as long as |j|. */
const _Atomic uint64_t *journal_dropped(const struct journal *j);

void journal_free(struct journal *j);

#endif
