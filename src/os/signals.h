/* SPDX-License-Identifier: Apache-2.0 */
/* Signals as events of a loop. */
#ifndef OS_SIGNALS_H
#define OS_SIGNALS_H

#include "io/poller.h"

struct os_signals;

enum os_signal { OS_SIGNAL_TERM, OS_SIGNAL_INT, OS_SIGNAL_HUP, OS_SIGNAL_USR1 };

/*
 * Blocks the four above in the calling thread and those it starts later, and ignores SIGPIPE and
 * SIGXFSZ, which are error codes to us. First thing in main.
 */
void os_signals_block(void);

/* Undoes os_signals_block, between fork and exec. */
void os_signals_unblock(void);

/* |told| is called out of dispatch of |p|, once for each signal (several alike may become one). */
int os_signals_create(struct poller *p, void (*told)(void *owner, enum os_signal signal),
                      void *owner, struct os_signals **out);

/* Before the poller. Takes NULL. */
void os_signals_free(struct os_signals *s);

#endif
