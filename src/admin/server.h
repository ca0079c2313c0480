/* SPDX-License-Identifier: Apache-2.0 */
/* What the listener (admin.c) and its connections (conn.c) know of each other. */
#ifndef ADMIN_SERVER_H
#define ADMIN_SERVER_H

#include "admin/admin.h"
#include "admin/routes.h"
#include "admin/work.h"
#include "base/list.h"
#include "codec/http1.h"
#include "codec/message.h"
#include "io/poller.h"

struct admin {
    struct admin_setup setup;
    struct listener *listener;
    struct timer resume; /* of accepting, after there were no descriptors */
    uint64_t extras_before[ADMIN_EXTRAS_MAX];
    struct list conns;   /* oldest first */
    struct list working; /* those whose page is work, by turns */
    bool work_waits;     /* the one that was just asked has nothing to do yet */
    struct timer work;   /* a slice for the first of them */
    uint32_t conn_count;
    uint32_t refused_count;   /* of further ones that are being told so */
    struct message_head head; /* of the request being answered; large, so one for all */
};

struct conn;

/* Takes the link. False: no memory, the link is still the caller's. */
bool conn_open(struct admin *a, struct link *l);

/* The same, but all it gets is a 503. */
bool conn_refuse(struct admin *a, struct link *l);

/* Closes a connection that waits for its next request. False: there is none. */
bool conn_close_idle(struct admin *a);

void conn_close_all(struct admin *a);

/* A slice for the first that waits for one, and more soon if there are more. */
void conn_work(struct admin *a);

/* Asks the pages. */
void admin_ask(struct admin *a, struct admin_call *call);

/* One slice of the call's work. */
enum work_state admin_work(struct admin *a, struct admin_call *call);

#endif
