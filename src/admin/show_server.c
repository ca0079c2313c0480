/* SPDX-License-Identifier: Apache-2.0 */
/* The small pages: what the process is, whether it is ready, where it listens. */
#include <string.h>

#include "admin/pages.h"

#define SMALL 1024

void show_help(struct admin_call *call)
{
    page_str(call->page, "admin commands are:\n");
    for (size_t i = 0; i < admin_route_count; i++) {
        page_str(call->page, "  ");
        page_str(call->page, admin_routes[i].path);
        if (admin_routes[i].method == ADMIN_POST)
            page_str(call->page, " (POST)");
        page_str(call->page, ": ");
        page_str(call->page, admin_routes[i].help);
        page_str(call->page, "\n");
    }
}

static void html_route(struct page *p, const struct admin_route *r)
{
    bool link = r->method == ADMIN_GET && strchr(r->path, '*') == NULL;

    page_str(p, "<tr><td>");
    page_str(p, r->method == ADMIN_POST ? "POST " : "");
    if (link) {
        page_str(p, "<a href=\"");
        page_str(p, r->path);
        page_str(p, "\">");
    }
    page_str(p, r->path);
    page_str(p, link ? "</a></td><td>" : "</td><td>");
    page_str(p, r->help);
    page_str(p, "</td></tr>\n");
}

/* Paths and help texts are our own, and hold nothing that HTML would take for itself. */
void show_index(struct admin_call *call)
{
    call->type = ADMIN_HTML;
    page_str(call->page, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                         "<title>Firebreak admin</title></head><body>\n<h1>Firebreak</h1>\n"
                         "<table>\n");
    for (size_t i = 0; i < admin_route_count; i++)
        html_route(call->page, &admin_routes[i]);
    page_str(call->page, "</table>\n</body></html>\n");
}

static void json_seconds(struct json *j, const char *key, uint64_t seconds)
{
    char room[24];
    struct text t;

    text_init(&t, room, sizeof(room));
    text_u64(&t, seconds);
    text_char(&t, 's');
    json_string(j, key, text_bytes(&t));
}

void show_server_info(struct admin_call *call)
{
    const struct admin_view *v = call->view;
    uint64_t uptime = mono_since(v->process->started, v->now) / NS_PER_S;
    struct json j;

    call->type = ADMIN_JSON;
    page_room(call->page, SMALL);
    json_init(&j, &call->page->text);
    json_object(&j, NULL);
    json_text(&j, "version", "firebreak/" FIREBREAK_VERSION);
    json_text(&j, "state", view_state_text(v));
    json_seconds(&j, "uptime_current_epoch", uptime);
    json_seconds(&j, "uptime_all_epochs", uptime);
    json_text(&j, "hot_restart_version", "disabled");
    json_object(&j, "command_line_options");
    json_u64(&j, "concurrency", v->process->workers);
    json_object_end(&j);
    json_object(&j, "node");
    json_object_end(&j);
    json_object_end(&j);
    text_char(&call->page->text, '\n');
}

void show_ready(struct admin_call *call)
{
    call->status = view_draining(call->view) ? 503 : 200;
    page_str(call->page, view_state_text(call->view));
    page_str(call->page, "\n");
}

/* Envoy's keys; its allocator's caches have no counterpart here, and are zero there too. */
void show_memory(struct admin_call *call)
{
    struct admin_usage u = {0};
    struct json j;

    if (call->view->usage != NULL)
        call->view->usage(&u);
    call->type = ADMIN_JSON;
    page_room(call->page, SMALL);
    json_init(&j, &call->page->text);
    json_object(&j, NULL);
    json_number_text(&j, "allocated", u.allocated);
    json_number_text(&j, "heap_size", u.heap);
    json_number_text(&j, "pageheap_unmapped", 0);
    json_number_text(&j, "pageheap_free", 0);
    json_number_text(&j, "total_thread_cache", 0);
    json_number_text(&j, "total_physical_bytes", u.resident);
    json_object_end(&j);
    text_char(&call->page->text, '\n');
}

static void listeners_text(struct admin_call *call)
{
    const struct snapshot *s = call->view->snapshot;

    for (uint32_t i = 0; i < s->listener_count; i++) {
        struct address at = view_listener_address(&s->listeners[i]);

        page_put(call->page, s->listeners[i].name);
        page_str(call->page, "::");
        page_room(call->page, SMALL);
        address_write(&call->page->text, &at);
        page_str(call->page, "\n");
    }
}

static void listeners_json(struct admin_call *call)
{
    const struct snapshot *s = call->view->snapshot;
    struct json j;

    call->type = ADMIN_JSON;
    page_room(call->page, SMALL);
    json_init(&j, &call->page->text);
    json_object(&j, NULL);
    json_array(&j, "listener_statuses");
    for (uint32_t i = 0; i < s->listener_count; i++) {
        struct address at = view_listener_address(&s->listeners[i]);

        page_room(call->page, SMALL + 6 * s->listeners[i].name.len);
        json_object(&j, NULL);
        json_string(&j, "name", s->listeners[i].name);
        json_socket_address(&j, "local_address", &at);
        json_object_end(&j);
    }
    json_array_end(&j);
    json_object_end(&j);
    text_char(&call->page->text, '\n');
}

void show_listeners(struct admin_call *call)
{
    enum page_format format;

    if (!call_format(call, 1u << FORMAT_TEXT | 1u << FORMAT_JSON, &format))
        return;
    if (format == FORMAT_JSON)
        listeners_json(call);
    else
        listeners_text(call);
}
