/* SPDX-License-Identifier: Apache-2.0 */
#include "control/event_log.h"

#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "io/error.h"
#include "stats/metrics.h"

struct event_log {
    struct files *files;
    struct log *log;
    char *path; /* NULL: nowhere */
    struct file *file;
    struct text waiting;      /* whole lines, but that the first may have been written in part */
    bool torn;                /* so it was */
    int trouble;              /* IO_OK, or what the file last said */
    _Atomic uint64_t dropped; /* written by the control thread only */
    uint64_t dropped_then;    /* when the trouble began */
};

/* --- the file --- */

static void say_trouble(struct event_log *l, int error)
{
    if (l->trouble == IO_OK) {
        l->dropped_then = cell_read(&l->dropped);
        log_event(l->log, LOG_ERROR, "event_log.trouble",
                  "cannot write events to %s: %s; they are kept as long as there is room", l->path,
                  io_error_text(error));
    }
    l->trouble = error;
}

static void say_recovery(struct event_log *l)
{
    if (l->trouble == IO_OK)
        return;
    l->trouble = IO_OK;
    log_event(l->log, LOG_WARNING, "event_log.recovered",
              "events can be written to %s again; %llu were dropped", l->path,
              (unsigned long long)(cell_read(&l->dropped) - l->dropped_then));
}

static void advance(struct event_log *l, size_t n)
{
    l->torn = l->waiting.data[n - 1] != '\n';
    memmove(l->waiting.data, l->waiting.data + n, l->waiting.len - n);
    l->waiting.len -= n;
}

static void flush(struct event_log *l)
{
    while (l->file != NULL && l->waiting.len > 0) {
        ptrdiff_t n = files_append(l->files, l->file, text_bytes(&l->waiting));

        if (n < 0)
            say_trouble(l, (int)n);
        if (n <= 0)
            return;
        advance(l, (size_t)n);
    }
    if (l->file != NULL)
        say_recovery(l);
}

/* A line whose beginning is in the file that is left: its end would be no line elsewhere. */
static void drop_torn(struct event_log *l)
{
    if (!l->torn)
        return;
    advance(l, bytes_find(text_bytes(&l->waiting), '\n') + 1);
    cell_add(&l->dropped, 1);
}

static void leave_file(struct event_log *l)
{
    if (l->file == NULL)
        return;
    flush(l);
    drop_torn(l);
    files_close(l->files, l->file);
    l->file = NULL;
}

static void open_path(struct event_log *l)
{
    struct file *file;
    int error = files_open(l->files, l->path, &file);

    if (error != IO_OK) {
        say_trouble(l, error);
        return;
    }
    leave_file(l);
    l->file = file;
    flush(l);
}

/* --- what is asked for --- */

static bool same_path(const struct event_log *l, struct bytes path)
{
    return l->path == NULL ? path.len == 0 : bytes_equal(bytes_of(l->path), path);
}

static bool have_room(struct event_log *l)
{
    if (l->waiting.data == NULL)
        text_init(&l->waiting, memory_take(EVENT_LOG_ROOM), EVENT_LOG_ROOM);
    return l->waiting.data != NULL;
}

static void go_to(struct event_log *l, char *path)
{
    leave_file(l);
    memory_give(l->path);
    l->path = path;
    l->trouble = IO_OK;
    if (path != NULL)
        open_path(l);
}

void event_log_set(struct event_log *l, struct bytes path)
{
    char *copy;

    if (same_path(l, path))
        return;
    if (path.len == 0) {
        go_to(l, NULL);
        return;
    }
    copy = memory_take(path.len + 1);
    if (copy == NULL || !have_room(l)) {
        memory_give(copy);
        log_event(l->log, LOG_ERROR, "event_log.trouble", "no memory to open the event log");
        return;
    }
    memcpy(copy, path.data, path.len);
    go_to(l, copy);
}

bool event_log_on(const struct event_log *l)
{
    return l->path != NULL;
}

void event_log_put(struct event_log *l, struct bytes line)
{
    if (l->path == NULL)
        return;
    if (l->waiting.room - l->waiting.len <= line.len) {
        cell_add(&l->dropped, 1);
        flush(l);
        return;
    }
    text_put(&l->waiting, line);
    text_char(&l->waiting, '\n');
    flush(l);
}

void event_log_reopen(struct event_log *l)
{
    if (l->path != NULL)
        open_path(l);
}

const _Atomic uint64_t *event_log_dropped(const struct event_log *l)
{
    return &l->dropped;
}

/* --- life --- */

struct event_log *event_log_create(struct files *files, struct log *log)
{
    struct event_log *l = memory_take(sizeof(*l));

    if (l == NULL)
        return NULL;
    l->files = files;
    l->log = log;
    return l;
}

void event_log_free(struct event_log *l)
{
    if (l == NULL)
        return;
    leave_file(l);
    memory_give(l->path);
    memory_give(l->waiting.data);
    memory_give(l);
}
