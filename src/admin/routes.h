/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of admin pages: "/help" and "/" print it, the tests walk it. To add a page or an
 * action, write a function and a row.
 */
#ifndef ADMIN_ROUTES_H
#define ADMIN_ROUTES_H

#include <stddef.h>
#include <stdint.h>

#include "admin/page.h"
#include "admin/view.h"
#include "base/bytes.h"
#include "codec/message.h"
#include "control/control.h"

/* What a page asks to be done once it is on its way: what may end the admin server itself. */
enum admin_action { ADMIN_NOTHING, ADMIN_SHED, ADMIN_DRAIN, ADMIN_QUIT };

#define ADMIN_TEXT        "text/plain; charset=UTF-8"
#define ADMIN_HTML        "text/html; charset=UTF-8"
#define ADMIN_JSON        "application/json"
#define ADMIN_EVENTS      "text/event-stream"
#define ADMIN_PROMETHEUS  "text/plain; version=0.0.4; charset=utf-8"
#define ADMIN_OPENMETRICS "application/openmetrics-text; version=1.0.0; charset=utf-8"

#define ADMIN_PARTS_MAX 4    /* "*" in the path of a route */
#define ADMIN_PART_ROOM 1024 /* of all that stood for them, together */

struct admin_work;

/* One request and what is answered. */
struct admin_call {
    const struct admin_view *view;
    struct control *control; /* for actions: they act at once and say in the page what came of it */
    const struct message_head *head;     /* these two only while the route's function runs */
    struct bytes query;                  /* with its '?' */
    struct bytes parts[ADMIN_PARTS_MAX]; /* what stood for each "*" of the path, decoded */
    struct page *page;                   /* the body, empty at first */
    uint32_t status;                     /* 200 at first */
    const char *type;                    /* ADMIN_TEXT at first */
    const char *allow;                   /* with 405: what is */
    enum admin_action action;
    struct admin_work *work; /* makes the rest of the page, see work.h; NULL: it is whole */
    mono_ns slice_end;       /* when the work has to let others have their turn */
};

enum admin_method { ADMIN_GET, ADMIN_POST };

struct admin_route {
    const char *path; /* "*" stands for one segment, not empty, percent-decoded: see call->parts */
    enum admin_method method; /* ADMIN_GET: HEAD and POST too, as with Envoy */
    void (*answer)(struct admin_call *call);
    const char *help;
};

extern const struct admin_route admin_routes[];
extern const size_t admin_route_count;

/*
 * Answers one request: finds the page, checks the method and whether a POST may come from there.
 * Whatever goes wrong is an answer too.
 */
void admin_answer(struct admin_call *call, const struct message_head *head);

#endif
