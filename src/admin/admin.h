/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The admin server: a listener on the control loop's poller and wheel that answers the pages of
 * routes.h. Bounded against whoever reaches it: ADMIN_CONNECTIONS_MAX connections, small heads,
 * one answer at a time on each, a time for everything.
 */
#ifndef ADMIN_ADMIN_H
#define ADMIN_ADMIN_H

#include <stdint.h>

#include "admin/view.h"
#include "base/address.h"
#include "base/units.h"
#include "control/control.h"
#include "io/log.h"

#define ADMIN_CONNECTIONS_MAX 16
#define ADMIN_REFUSALS_MAX    16 /* more that are just being told that there is no room */
#define ADMIN_HEAD_MAX        (16u * 1024)
#define ADMIN_BODY_MAX        (64u * 1024)   /* of a request: read and thrown away */
#define ADMIN_REQUEST_TIMEOUT (5 * NS_PER_S) /* from the first byte of a request to its last */
#define ADMIN_IDLE_TIMEOUT    (120 * NS_PER_S)
#define ADMIN_ANSWER_TIMEOUT  (60 * NS_PER_S) /* for a client to take an answer whole */
#define ADMIN_LINGER          (1 * NS_PER_S)  /* for a client to read the last answer and close */

struct admin;

/* All must outlive the admin server; it must be freed before |control|. */
struct admin_setup {
    struct control *control;
    struct clock *clock;
    struct address address; /* port 0: any; a unix socket is for this user only */
    struct log *log;
    const struct admin_extra *extras; /* counters and gauges of other parts, to be shown */
    uint32_t extra_count;
    void (*usage)(struct admin_usage *out); /* NULL: not known */
};

/* Listens. IO_OK and |*out|, or an io_error: the address is in use, not ours, no memory, ... */
int admin_create(const struct admin_setup *setup, struct admin **out);

/* As bound: the real port. */
void admin_address(const struct admin *a, struct address *out);

/* Closes all. */
void admin_free(struct admin *a);

#endif
