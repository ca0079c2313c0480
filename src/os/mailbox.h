/* SPDX-License-Identifier: Apache-2.0 */
/* io/mailbox.h without locks: a ring in which each cell says whose turn it is (Vyukov's queue). */
#ifndef OS_MAILBOX_H
#define OS_MAILBOX_H

#include <stdint.h>

#include "io/mailbox.h"
#include "io/poller.h"

#define OS_MAILBOX_ROOM 4096

/*
 * |receiver| is woken by each post (for the price of a system call only where it sleeps) and
 * outlives the mailbox; NULL: nobody is. |room| is a power of two, at least 2. NULL: no memory.
 */
struct mailbox *os_mailbox_create(struct poller *receiver, uint32_t room);

/* When nobody posts any more. Takes NULL. */
void os_mailbox_free(struct mailbox *m);

#endif
