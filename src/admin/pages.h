/* SPDX-License-Identifier: Apache-2.0 */
/* The pages that routes.c lists, and what they share. */
#ifndef ADMIN_PAGES_H
#define ADMIN_PAGES_H

#include "admin/filter.h"
#include "admin/routes.h"
#include "codec/json.h"

void show_index(struct admin_call *call);
void show_help(struct admin_call *call);
void show_stats(struct admin_call *call);
void show_prometheus(struct admin_call *call);
void show_clusters(struct admin_call *call);
void show_peers(struct admin_call *call);
void show_explain(struct admin_call *call);
void show_events(struct admin_call *call);
void show_config(struct admin_call *call);
void show_listeners(struct admin_call *call);
void show_server_info(struct admin_call *call);
void show_ready(struct admin_call *call);
void show_memory(struct admin_call *call);
void fail_healthcheck(struct admin_call *call);
void pass_healthcheck(struct admin_call *call);
void reset_counters(struct admin_call *call);
void set_logging(struct admin_call *call);
void start_drain(struct admin_call *call);
void start_reload(struct admin_call *call);
void drain_host(struct admin_call *call);
void eject_host(struct admin_call *call);
void pardon_host(struct admin_call *call);
void undrain_host(struct admin_call *call);
void start_quit(struct admin_call *call);

enum page_format { FORMAT_TEXT, FORMAT_JSON, FORMAT_PROMETHEUS, FORMAT_HTML, FORMAT_COUNT };

/*
 * Reads "format=". False: it is none of the bits 1 << enum page_format of |allowed|, and the call
 * is answered with 400.
 */
bool call_format(struct admin_call *call, unsigned allowed, enum page_format *out);

/* Reads a regular expression, "filter=" or another. False: it is refused, and the call is answered
 * with 400. */
bool call_filter(struct admin_call *call, struct filter *out); /* and "invert_filter" */
bool call_regex(struct admin_call *call, const char *key, struct filter *out);

/* The value of a parameter, percent-decoded, in |room|; BYTES_NONE: absent, or none to speak of. */
struct bytes call_value(struct admin_call *call, const char *key, char *room, size_t size);

/* Whether a parameter like "usedonly" is there. */
bool call_flag(struct admin_call *call, const char *key);

/* Answers with |status| and a line of text instead of whatever the page holds. */
void call_refuse(struct admin_call *call, uint32_t status, const char *text);

/* 64-bit numbers are strings in proto3's JSON. */
void json_number_text(struct json *j, const char *key, uint64_t value);

/* {"socket_address":{"address":"10.0.0.1","port_value":80}}, or {"pipe":{"path":"/x"}}. */
void json_socket_address(struct json *j, const char *key, const struct address *a);

#endif
