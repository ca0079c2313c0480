/* SPDX-License-Identifier: Apache-2.0 */
/* The rings between the workers and the writer, and the batch between the writer and the file. */
#include "telemetry/access_log.h"

#include <stdbool.h>
#include <string.h>

#include "base/list.h"
#include "base/memory.h"
#include "io/error.h"
#include "model/block.h"
#include "stats/metrics.h"
#include "telemetry/access_line.h"
#include "telemetry/record_copy.h"
#include "telemetry/ring.h"

#define BATCH (64u * 1024) /* flushed when this much is together */

struct source {
    struct record_sink sink;
    struct ring ring;
};

struct access_log {
    struct access_log_setup setup;
    struct file *file;
    struct source *sources; /* [worker] */
    void *sources_raw;
    struct text batch;     /* whole lines, but that the first may have been written in part */
    struct text scratch;   /* for access_render */
    uint64_t lines;        /* in the batch */
    bool torn;             /* the first line of the batch has been begun in the file */
    int trouble;           /* IO_OK, or what the file last said */
    uint64_t dropped_then; /* when the trouble began */
    _Atomic bool reopen;
    _Atomic uint64_t written;
    _Atomic uint64_t dropped;
};

/* --- the workers' side --- */

static bool put_record(struct record_sink *s, const struct request_record *r)
{
    struct ring *ring = &CONTAINER_OF(s, struct source, sink)->ring;
    struct record_copy *copy = ring_reserve(ring, record_copy_size(r));

    if (copy == NULL)
        return false;
    record_copy_fill(copy, r);
    ring_commit(ring);
    return true;
}

/* --- the file --- */

static void log_trouble(struct access_log *l, int error)
{
    if (l->trouble == IO_OK) {
        l->dropped_then = cell_read(&l->dropped);
        log_event(l->setup.log, LOG_ERROR, "access_log.trouble",
                  "cannot write the access log to %s: %s; lines are dropped until it works again",
                  l->setup.path, io_error_text(error));
    }
    l->trouble = error;
}

static void log_recovery(struct access_log *l)
{
    if (l->trouble == IO_OK)
        return;
    l->trouble = IO_OK;
    log_event(l->setup.log, LOG_WARNING, "access_log.recovered",
              "the access log can be written to %s again; %llu lines were dropped", l->setup.path,
              (unsigned long long)(cell_read(&l->dropped) - l->dropped_then));
}

static void batch_drop_front(struct access_log *l, size_t n)
{
    memmove(l->batch.data, l->batch.data + n, l->batch.len - n);
    l->batch.len -= n;
}

/* |n| bytes of the batch are in the file: counts the lines that ended in them. */
static void batch_advance(struct access_log *l, size_t n)
{
    struct bytes gone = bytes_from(l->batch.data, n);
    uint64_t lines = 0;

    for (size_t i = 0; (i += bytes_find(bytes_skip(gone, i), '\n')) < n; i++)
        lines++;
    l->torn = gone.data[n - 1] != '\n';
    l->lines -= lines;
    cell_add(&l->written, lines);
    batch_drop_front(l, n);
}

/* The file takes no more: keeps only the rest of a line it has the beginning of. */
static void batch_abandon(struct access_log *l)
{
    size_t keep = 0;

    if (l->torn)
        keep = bytes_find(text_bytes(&l->batch), '\n') + 1;
    cell_add(&l->dropped, l->lines - l->torn);
    l->lines = l->torn;
    l->batch.len = keep;
}

/* False: the file did not take all. */
static bool batch_flush(struct access_log *l)
{
    if (l->batch.len == 0)
        return true;
    while (l->batch.len > 0) {
        ptrdiff_t n = files_append(l->setup.files, l->file, text_bytes(&l->batch));

        if (n == 0)
            return false;
        if (n < 0) {
            log_trouble(l, (int)n);
            batch_abandon(l);
            return false;
        }
        batch_advance(l, (size_t)n);
    }
    log_recovery(l); /* not before: a disk almost full takes a little now and then */
    return true;
}

/* The old file keeps a line in part only if it cannot be written to at all. */
static void open_anew(struct access_log *l)
{
    struct file *file;
    int error = files_open(l->setup.files, l->setup.path, &file);

    if (error != IO_OK) {
        log_event(l->setup.log, LOG_ERROR, "access_log.reopen_failed",
                  "cannot open %s anew: %s; the old file stays in use", l->setup.path,
                  io_error_text(error));
        return;
    }
    batch_flush(l);
    if (l->torn) {
        l->torn = false;
        batch_drop_front(l, bytes_find(text_bytes(&l->batch), '\n') + 1);
        l->lines--;
        cell_add(&l->dropped, 1);
    }
    files_close(l->setup.files, l->file);
    l->file = file;
    log_event(l->setup.log, LOG_INFO, "access_log.reopened", "access log %s opened anew",
              l->setup.path);
}

/* --- the writer's side --- */

/* A line for which the room does not suffice, which cannot be, is dropped rather than torn. */
static void format(struct access_log *l, const struct record_copy *copy)
{
    size_t before = l->batch.len;

    if (l->setup.format == NULL)
        access_line_json(&l->batch, copy);
    else
        access_render(&l->batch, &l->scratch, l->setup.format, copy, &l->setup.around);
    if (!l->batch.failed) {
        l->lines++;
        return;
    }
    l->batch.len = before;
    l->batch.failed = false;
    cell_add(&l->dropped, 1);
}

/* False: the batch is full and the file does not take it. */
static bool drain_source(struct access_log *l, struct ring *ring, uint64_t *taken)
{
    const struct record_copy *copy;

    while ((copy = ring_peek(ring)) != NULL) {
        if (l->batch.len >= BATCH && !batch_flush(l) && l->batch.len >= BATCH)
            return false;
        format(l, copy);
        ring_consume(ring);
        (*taken)++;
    }
    return true;
}

uint64_t access_log_drain(struct access_log *l)
{
    uint64_t taken = 0;

    if (atomic_exchange_explicit(&l->reopen, false, memory_order_acquire))
        open_anew(l);
    for (uint32_t i = 0; i < l->setup.workers; i++)
        if (!drain_source(l, &l->sources[i].ring, &taken))
            return taken;
    batch_flush(l);
    return taken;
}

/* --- life --- */

/* On cache lines of their own. */
static bool take_sources(struct access_log *l)
{
    struct block b;

    block_init(&b);
    block_take(&b, l->setup.workers, sizeof(*l->sources));
    if (!block_allocate(&b))
        return false;
    l->sources_raw = b.raw;
    l->sources = block_take(&b, l->setup.workers, sizeof(*l->sources));
    return true;
}

static bool make_sources(struct access_log *l)
{
    uint32_t size = l->setup.ring_size == 0 ? ACCESS_LOG_RING : l->setup.ring_size;

    if (!take_sources(l))
        return false;
    for (uint32_t i = 0; i < l->setup.workers; i++) {
        l->sources[i].sink.put = put_record;
        if (!ring_init(&l->sources[i].ring, size))
            return false;
    }
    return true;
}

static int open_first(struct access_log *l)
{
    int error = files_open(l->setup.files, l->setup.path, &l->file);

    if (error != IO_OK)
        log_event(l->setup.log, LOG_ERROR, "access_log.open_failed", "cannot open %s: %s",
                  l->setup.path, io_error_text(error));
    return error;
}

static bool make_room(struct access_log *l)
{
    const struct access_format *f = l->setup.format;
    size_t line = f == NULL ? ACCESS_LINE_MAX : access_render_room(f);

    text_init(&l->batch, memory_take(BATCH + line), BATCH + line);
    text_init(&l->scratch, memory_take(line), line);
    return l->batch.data != NULL && l->scratch.data != NULL;
}

int access_log_create(const struct access_log_setup *setup, struct access_log **out)
{
    struct access_log *l = memory_take(sizeof(*l));
    int error = IO_NO_MEMORY;

    if (l == NULL)
        return IO_NO_MEMORY;
    l->setup = *setup;
    if (make_room(l) && make_sources(l))
        error = open_first(l);
    if (error != IO_OK) {
        access_log_free(l);
        return error;
    }
    *out = l;
    return IO_OK;
}

struct record_sink *access_log_sink(struct access_log *l, uint32_t worker)
{
    return &l->sources[worker].sink;
}

void access_log_reopen(struct access_log *l)
{
    atomic_store_explicit(&l->reopen, true, memory_order_release);
}

const _Atomic uint64_t *access_log_written(const struct access_log *l)
{
    return &l->written;
}

const _Atomic uint64_t *access_log_dropped(const struct access_log *l)
{
    return &l->dropped;
}

void access_log_free(struct access_log *l)
{
    if (l == NULL)
        return;
    if (l->file != NULL)
        files_close(l->setup.files, l->file);
    for (uint32_t i = 0; l->sources != NULL && i < l->setup.workers; i++)
        ring_release(&l->sources[i].ring);
    memory_give(l->sources_raw);
    memory_give(l->batch.data);
    memory_give(l->scratch.data);
    memory_give(l);
}
