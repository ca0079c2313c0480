/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server's workers: so many requests are worked on at once, so many more wait in line, the rest
 * is turned away. What makes load cost something.
 */
#ifndef BASE_SLOTS_H
#define BASE_SLOTS_H

#include <stdint.h>

#include "base/list.h"

enum slots_verdict { SLOTS_RUN, SLOTS_WAIT, SLOTS_FULL };

struct slots {
    uint32_t workers;
    uint32_t room; /* in the queue */
    uint32_t busy;
    uint32_t waiting;
    struct list queue;
};

/* |workers| >= 1. */
void slots_init(struct slots *s, uint32_t workers, uint32_t room);

/* A request comes; with SLOTS_WAIT |job| is on the queue. */
enum slots_verdict slots_arrive(struct slots *s, struct list *job);

/* A worker is done. The job that it takes next is returned and off the queue; NULL: it rests. */
struct list *slots_leave(struct slots *s);

/* A job that waits is given up. */
void slots_forget(struct slots *s, struct list *job);

#endif
