/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of admin pages: "/help" prints it, the tests walk it. To add a page, write a function
 * and a row.
 */
#ifndef ADMIN_ROUTES_H
#define ADMIN_ROUTES_H

#include <stddef.h>
#include <stdint.h>

#include "admin/page.h"
#include "admin/view.h"
#include "base/bytes.h"
#include "codec/message.h"

/* What a page asks to be done once it is on its way. */
enum admin_action { ADMIN_NOTHING, ADMIN_DRAIN, ADMIN_QUIT };

#define ADMIN_TEXT       "text/plain; charset=UTF-8"
#define ADMIN_JSON       "application/json"
#define ADMIN_PROMETHEUS "text/plain; version=0.0.4; charset=utf-8"

/* One request and what is answered. */
struct admin_call {
    const struct admin_view *view;
    struct bytes query; /* with its '?' */
    struct page *page;  /* the body, empty at first */
    uint32_t status;    /* 200 at first */
    const char *type;   /* ADMIN_TEXT at first */
    const char *allow;  /* with 405: what is */
    enum admin_action action;
};

enum admin_method { ADMIN_GET, ADMIN_POST };

struct admin_route {
    const char *path;
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
