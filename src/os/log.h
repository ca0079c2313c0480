/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io/log.h to a descriptor, one write a line:
 *
 *   2026-11-30T06:00:00.123Z info endpoint.ejected 10.0.0.7:80 for 30s
 *   {"time":"2026-11-30T06:00:00.123Z","level":"info","event":"endpoint.ejected","message":"..."}
 *
 * What peers sent may be in a message: control bytes and broken UTF-8 are escaped, so that a line
 * is one line and moves no terminal's cursor. A reader that stalls costs lines, which are counted
 * and reported, never a loop's time without bound.
 */
#ifndef OS_LOG_H
#define OS_LOG_H

#include "io/log.h"

enum os_log_format { OS_LOG_TEXT, OS_LOG_JSON };

/* |fd| stays the caller's and open. NULL: no memory. */
struct log *os_log_create(int fd, enum os_log_format format, enum log_level least);

/* Takes NULL. */
void os_log_free(struct log *l);

#endif
