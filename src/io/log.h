/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's own log: one line an event. Not the access log. Pure layers never log; they return
 * a reason and the glue logs it.
 */
#ifndef IO_LOG_H
#define IO_LOG_H

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR, LOG_LEVEL_COUNT };

struct log {
    void (*write)(struct log *l, enum log_level level, const char *event, const char *format,
                  va_list args);
    _Atomic enum log_level least; /* below it nothing is written */
};

/* From any thread. */
static inline enum log_level log_least(const struct log *l)
{
    return atomic_load_explicit(&l->least, memory_order_relaxed);
}

static inline void log_set_least(struct log *l, enum log_level least)
{
    atomic_store_explicit(&l->least, least, memory_order_relaxed);
}

/* "debug", "info", "warning", "error". */
const char *log_level_text(enum log_level level);
bool log_level_parse(const char *text, enum log_level *out);

/*
 * |event| is one dotted word that never changes ("endpoint.ejected"), for grep and alerts; the
 * rest is a sentence for people. From any thread. NULL |l| writes nothing.
 */
__attribute__((format(printf, 4, 5))) void log_event(struct log *l, enum log_level level,
                                                     const char *event, const char *format, ...);

#endif
