/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A foreign descriptor on the loop (a signalfd, a timerfd, a DNS socket), level-triggered. For os
 * and lab; the descriptor stays its owner's, who closes it after os_watch_remove.
 */
#ifndef OS_WATCH_H
#define OS_WATCH_H

#include "io/poller.h"

struct os_watch;

enum os_readiness { OS_READABLE = 1, OS_WRITABLE = 2 };

/* |ready| is what is true of it now (errors make it both); 0 after os_watch_soon. */
typedef void (*os_watch_event)(void *owner, int fd, unsigned ready);

/* Wanted: enum os_readiness, or'ed. IO_OK and |*out|, or an io_error. */
int os_watch_add(struct poller *p, int fd, unsigned wanted, struct os_watch **out);

/* Who is told. Before the next dispatch. */
void os_watch_own(struct os_watch *w, os_watch_event event, void *owner);

void os_watch_change(struct os_watch *w, unsigned wanted);

/* The owner is called in the next dispatch, which comes without waiting. */
void os_watch_soon(struct os_watch *w);

/* No call follows. Before the descriptor is closed, and before the poller is freed. Takes NULL. */
void os_watch_remove(struct os_watch *w);

#endif
