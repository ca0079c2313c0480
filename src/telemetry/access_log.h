/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The access log. Each worker has a sink that copies a record into a bounded ring of its own: no
 * lock, no allocation, no waiting; a full ring drops the record. One other thread, the writer,
 * calls access_log_drain again and again, which makes lines of what is there and appends them to a
 * file.
 *
 * The writer sleeps a little (ACCESS_LOG_PAUSE) when there was nothing: workers never wake it.
 * At shutdown: workers first, then drain until it returns 0, then free.
 *
 * Trouble with the file (disk full, pipe closed) never reaches the workers: lines are dropped and
 * counted, the trouble and its end are logged once each, and a line is whole or absent: what was
 * written in part is completed before anything else.
 */
#ifndef TELEMETRY_ACCESS_LOG_H
#define TELEMETRY_ACCESS_LOG_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/units.h"
#include "io/files.h"
#include "io/log.h"
#include "model/access_format.h"
#include "model/record.h"
#include "telemetry/access_render.h"

#define ACCESS_LOG_RING  (2u << 20) /* bytes a worker, where the setup says 0 */
#define ACCESS_LOG_PAUSE (20 * NS_PER_MS)

struct access_log;

struct access_log_setup {
    struct files *files;
    const char *path;                   /* "-": standard output; must outlive the log */
    const struct access_format *format; /* NULL: access_line.h; must outlive the log */
    struct access_surroundings around;  /* what it points to, too */
    uint32_t workers;
    uint32_t ring_size; /* bytes a worker, a power of two of 64 KiB or more; 0: ACCESS_LOG_RING */
    struct log *log;
};

/* Opens the file. IO_OK and |*out|, or an io_error. */
int access_log_create(const struct access_log_setup *setup, struct access_log **out);

/* For that worker's setup; used by its thread only. */
struct record_sink *access_log_sink(struct access_log *l, uint32_t worker);

/*
 * Writer's thread only. Takes records until the rings are empty or the file takes no more; returns
 * how many it took. May block as long as the file does.
 */
uint64_t access_log_drain(struct access_log *l);

/* From any thread or signal handler: the next drain opens the path anew (after a rotation). */
void access_log_reopen(struct access_log *l);

/* Lines written, and lines dropped for trouble with the file: cells to be read by anybody. */
const _Atomic uint64_t *access_log_written(const struct access_log *l);
const _Atomic uint64_t *access_log_dropped(const struct access_log *l);

/* Closes the file; what is still in the rings is lost. */
void access_log_free(struct access_log *l);

#endif
