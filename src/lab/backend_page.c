/* SPDX-License-Identifier: Apache-2.0 */
/* What the backend's paths mean. */
#include "lab/backend_internal.h"

#define NUMBER_MAX (UINT64_C(1) << 40)

struct page_row {
    const char *path;
    enum page page;
    uint64_t least; /* of the number after it; 0 and 0: there is none */
    uint64_t most;
};

static const struct page_row rows[] = {
    {"/", PAGE_TEXT, 0, 0},
    {"/echo", PAGE_ECHO, 0, 0},
    {"/healthz", PAGE_HEALTH, 0, 0},
    {"/readyz", PAGE_HEALTH, 0, 0},
    {"/delay/", PAGE_DELAY, 0, 3600 * 1000},
    {"/status/", PAGE_STATUS, 200, 599},
    {"/bytes/", PAGE_BYTES, 0, NUMBER_MAX},
};

#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

enum page backend_page(struct bytes path, uint64_t *number)
{
    *number = 0;
    for (size_t i = 0; i < ROW_COUNT; i++) {
        struct bytes start = bytes_of(rows[i].path);

        if (rows[i].most == 0 && bytes_equal(path, start))
            return rows[i].page;
        if (rows[i].most > 0 && bytes_start_with(path, start) &&
            bytes_parse_u64(bytes_skip(path, start.len), number) && *number >= rows[i].least &&
            *number <= rows[i].most)
            return rows[i].page;
    }
    return PAGE_UNKNOWN;
}

uint32_t backend_page_status(const struct backend_conn *c)
{
    if (c->plan.ending == PLAN_STATUS)
        return c->plan.status;
    if (c->page == PAGE_STATUS)
        return (uint32_t)c->number;
    return c->page == PAGE_UNKNOWN ? 404 : 200;
}

static void put_text(struct text *t, const struct backend_conn *c)
{
    switch (c->page) {
    case PAGE_TEXT:
        text_str(t, "this is ");
        break;
    case PAGE_DELAY:
        text_str(t, "late by ");
        text_u64(t, c->number);
        text_str(t, " ms: ");
        break;
    case PAGE_STATUS:
        text_str(t, "as asked, from ");
        break;
    case PAGE_HEALTH:
        text_str(t, "ok ");
        break;
    case PAGE_UNKNOWN:
        text_str(t, "there is /, /delay/MS, /status/CODE, /echo, /bytes/N, /healthz, /readyz at ");
        break;
    case PAGE_ECHO:
    case PAGE_BYTES:
        break;
    }
}

struct bytes backend_page_text(const struct backend_conn *c, char *room, size_t size)
{
    struct text t;

    text_init(&t, room, size);
    if (c->plan.ending == PLAN_STATUS)
        text_str(&t, "by order of a fault, from ");
    else
        put_text(&t, c);
    text_str(&t, c->server->name);
    text_char(&t, '\n');
    return text_bytes(&t);
}
