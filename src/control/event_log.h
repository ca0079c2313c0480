/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of events, a line each, written by the control thread: what the outlier watch did, and
 * what was done by hand. Trouble with the file (disk full) never reaches the watch: lines wait in a
 * bounded buffer and are dropped when it is full; trouble and its end are logged once each, and a
 * line is whole or absent.
 */
#ifndef CONTROL_EVENT_LOG_H
#define CONTROL_EVENT_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "io/files.h"
#include "io/log.h"

#define EVENT_LOG_ROOM (256u * 1024) /* bytes that may wait for the file */

struct event_log;

/* Writes nowhere yet. NULL: no memory. */
struct event_log *event_log_create(struct files *files, struct log *log);

/* To |path| from now on; empty: nowhere. What cannot be opened is logged, and tried again when the
 * file is opened anew. */
void event_log_set(struct event_log *l, struct bytes path);

/* Is there anywhere to write to? */
bool event_log_on(const struct event_log *l);

/* |line| without its end. */
void event_log_put(struct event_log *l, struct bytes line);

/* Opens the path anew (after a rotation). */
void event_log_reopen(struct event_log *l);

/* How many lines were dropped; it lives as long as |l|. */
const _Atomic uint64_t *event_log_dropped(const struct event_log *l);

void event_log_free(struct event_log *l);

#endif
