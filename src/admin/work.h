/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A page that may take longer than others can wait is made in pieces, a piece a turn of the control
 * loop, and each piece is sent before the next is made: so a page of thousands of hosts costs the
 * loop a slice of time now and then, and a slow reader a piece of memory.
 */
#ifndef ADMIN_WORK_H
#define ADMIN_WORK_H

#include "admin/routes.h"

#define WORK_SLICE (2 * NS_PER_MS)    /* of one turn, all admin connections together */
#define WORK_PAUSE (5 * NS_PER_MS)    /* before one that waits is asked again */
#define WORK_NAP   (100 * NS_PER_MS)  /* before one that has no end is asked again */
#define WORK_PIECE ((size_t)64 << 10) /* as much of a page is sent at once */

enum work_state {
    WORK_MORE,  /* to be asked again, in another turn */
    WORK_WAITS, /* the same, but what it needs will take a while */
    WORK_NAPS,  /* nothing is there to be sent, and all was: the answer's time begins anew */
    WORK_DONE,  /* the page is whole */
    WORK_FAILED /* where nothing of it is sent yet, call_refuse has said why; else it is cut */
};

struct admin_work {
    enum work_state (*more)(struct admin_work *w, struct admin_call *call);
    void (*free)(struct admin_work *w);
    struct snapshot *snapshot; /* a reference: the page is of one configuration; NULL: of none */
    struct control_reader reader;
};

/*
 * |size| bytes, zeroed, that begin with a struct admin_work, which is |call|'s from now on; its
 * |more| and |free| are to be set. NULL: no memory, and the call is answered.
 */
void *work_begin(struct admin_call *call, size_t size);

/* The same, but it is of no configuration: it may go on for ever, and keeps nothing alive. */
void *work_begin_stream(struct admin_call *call, size_t size);

/* False: the piece is large enough, or the slice is over. To be asked after each step. */
bool work_goes_on(const struct admin_call *call);

/* Frees |call->work|, which may be NULL. */
void work_end(struct admin_call *call);

#endif
