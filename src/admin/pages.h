/* SPDX-License-Identifier: Apache-2.0 */
/* The pages that routes.c lists, and what they share. */
#ifndef ADMIN_PAGES_H
#define ADMIN_PAGES_H

#include "admin/filter.h"
#include "admin/routes.h"
#include "codec/json.h"

void show_help(struct admin_call *call);
void show_stats(struct admin_call *call);
void show_prometheus(struct admin_call *call);
void show_clusters(struct admin_call *call);
void show_listeners(struct admin_call *call);
void show_server_info(struct admin_call *call);
void show_ready(struct admin_call *call);
void start_drain(struct admin_call *call);
void start_quit(struct admin_call *call);

enum page_format { FORMAT_TEXT, FORMAT_JSON, FORMAT_PROMETHEUS, FORMAT_COUNT };

/*
 * Reads "format=". False: it is none of the bits 1 << enum page_format of |allowed|, and the call
 * is answered with 400.
 */
bool call_format(struct admin_call *call, unsigned allowed, enum page_format *out);

/* Reads "filter=". False: it is refused, and the call is answered with 400. */
bool call_filter(struct admin_call *call, struct filter *out);

/* Whether a parameter like "usedonly" is there. */
bool call_flag(struct admin_call *call, const char *key);

/* Answers with |status| and a line of text instead of whatever the page holds. */
void call_refuse(struct admin_call *call, uint32_t status, const char *text);

/* {"socket_address":{"address":"10.0.0.1","port_value":80}}, or {"pipe":{"path":"/x"}}. */
void json_socket_address(struct json *j, const char *key, const struct address *a);

#endif
