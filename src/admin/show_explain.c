/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /explain: of one host why it is in or out, and what was decided; of a cluster, or all, a line a
 * host and the latest decisions. What `firebreak explain` shows.
 */
#include "admin/pages.h"
#include "admin/work.h"
#include "base/list.h"
#include "base/memory.h"
#include "control/why.h"

#define NAME_ROOM 512
#define LATEST    20u /* decisions that are told */
#define LINE_ROOM 1024

struct explain_page {
    struct admin_work work;
    enum page_format format;
    struct bytes cluster; /* in |room|, here and below; empty: all */
    struct bytes host;
    char room[2 * NAME_ROOM];
    uint32_t at_cluster;
    uint32_t at_endpoint;
    bool begun;
    bool any;      /* host is in the JSON */
    bool listed;   /* all hosts are */
    uint32_t told; /* decisions, of those that are the latest */
    uint32_t count;
    uint64_t latest[LATEST]; /* newest first */
};

static bool is_cluster(const struct cluster *c, struct bytes name)
{
    return name.len == 0 || bytes_equal(name, c->name) || bytes_equal(name, c->alias);
}

static bool is_endpoint(const struct endpoint *e, struct bytes name)
{
    return name.len == 0 || bytes_equal(name, e->text);
}

static bool is_about(const struct explain_page *p, const struct decision *d)
{
    return (p->cluster.len == 0 || bytes_equal(p->cluster, decision_name_bytes(&d->cluster))) &&
           (p->host.len == 0 || d->host.len == 0 ||
            bytes_equal(p->host, decision_name_bytes(&d->host)));
}

/* --- hosts --- */

static void begin_cluster(struct explain_page *p, struct admin_call *call, const struct cluster *c)
{
    if (p->format == FORMAT_JSON || p->host.len > 0)
        return;
    page_str(call->page, "cluster ");
    page_put(call->page, c->name);
    page_str(call->page, "\n");
}

static void put_host(struct explain_page *p, struct admin_call *call, const struct cluster *c)
{
    const struct outlier_watch *w = control_watch(call->control);
    struct text *t = &call->page->text;
    mono_ns now = call->view->now;

    page_room(call->page, 2 * DECISION_JSON_ROOM + WHY_HOST_ROOM);
    if (p->format == FORMAT_JSON) {
        if (p->any)
            text_char(t, ',');
        p->any = true;
        why_json(w, c, p->at_endpoint, now, t);
    } else if (p->host.len > 0) {
        why_host(w, c, p->at_endpoint, now, t);
    } else {
        text_str(t, "  ");
        why_line(w, c, p->at_endpoint, now, t);
    }
}

/* One endpoint. */
static void step(struct explain_page *p, struct admin_call *call)
{
    const struct cluster *c = &p->work.snapshot->clusters[p->at_cluster];

    if (!is_cluster(c, p->cluster) || p->at_endpoint == c->endpoint_count) {
        p->at_cluster++;
        p->at_endpoint = 0;
        return;
    }
    if (p->at_endpoint == 0)
        begin_cluster(p, call, c);
    if (is_endpoint(&c->endpoints[p->at_endpoint], p->host))
        put_host(p, call, c);
    p->at_endpoint++;
}

/* --- decisions --- */

static void find_latest(struct explain_page *p, const struct journal *j)
{
    for (uint64_t n = journal_next(j); n > journal_first(j) && p->count < LATEST; n--) {
        if (is_about(p, journal_at(j, n - 1)))
            p->latest[p->count++] = n - 1;
    }
}

static void begin_decisions(struct explain_page *p, struct admin_call *call)
{
    p->listed = true;
    find_latest(p, control_journal(call->control));
    if (p->format == FORMAT_JSON)
        page_str(call->page, "],\"decisions\":[");
    else
        page_str(call->page, p->count == 0 ? "\nNothing was decided.\n"
                                           : "\nWhat was decided, the latest last:\n");
}

static void put_decision(struct explain_page *p, struct admin_call *call)
{
    const struct journal *j = control_journal(call->control);
    uint64_t number = p->latest[p->count - ++p->told];

    if (number < journal_first(j))
        return; /* it was forgotten in between */
    page_room(call->page, DECISION_JSON_ROOM + WHY_DECISION_ROOM);
    if (p->format == FORMAT_JSON) {
        if (p->told > 1)
            page_str(call->page, ",");
        decision_json(&call->page->text, journal_at(j, number));
    } else {
        why_decision(journal_at(j, number), &call->page->text);
    }
}

static enum work_state explain_more(struct admin_work *w, struct admin_call *call)
{
    struct explain_page *p = CONTAINER_OF(w, struct explain_page, work);

    if (!p->begun && p->format == FORMAT_JSON)
        page_str(call->page, "{\"hosts\":[");
    p->begun = true;
    while (p->at_cluster < w->snapshot->cluster_count) {
        step(p, call);
        if (!work_goes_on(call))
            return WORK_MORE;
    }
    if (!p->listed)
        begin_decisions(p, call);
    while (p->told < p->count) {
        put_decision(p, call);
        if (!work_goes_on(call))
            return WORK_MORE;
    }
    page_str(call->page, p->format == FORMAT_JSON ? "]}\n" : "");
    return WORK_DONE;
}

static void explain_free(struct admin_work *w)
{
    memory_give(CONTAINER_OF(w, struct explain_page, work));
}

/* --- what is asked for --- */

/* False: refused. */
static bool check_names(struct admin_call *call, struct bytes cluster, struct bytes host)
{
    const struct snapshot *s = call->view->snapshot;
    bool found = false;

    if (host.len > 0 && cluster.len == 0) {
        call_refuse(call, 400, "host= needs cluster= beside it");
        return false;
    }
    for (uint32_t i = 0; i < s->cluster_count; i++) {
        const struct cluster *c = &s->clusters[i];

        if (!is_cluster(c, cluster))
            continue;
        found = true;
        for (uint32_t e = 0; e < c->endpoint_count; e++) {
            if (is_endpoint(&c->endpoints[e], host))
                return true;
        }
    }
    if (found && host.len == 0)
        return true; /* a cluster without endpoints */
    call_refuse(call, 404,
                found ? "the cluster has no such host; /clusters shows how they are written"
                      : "no such cluster; /clusters lists them");
    return false;
}

void show_explain(struct admin_call *call)
{
    char room[2 * NAME_ROOM] = {0};
    struct bytes cluster = call_value(call, "cluster", room, NAME_ROOM);
    struct bytes host = call_value(call, "host", room + NAME_ROOM, NAME_ROOM);
    enum page_format format;
    struct explain_page *p;

    if (!call_format(call, 1u << FORMAT_TEXT | 1u << FORMAT_JSON, &format) ||
        !check_names(call, cluster, host))
        return;
    p = work_begin(call, sizeof(*p));
    if (p == NULL)
        return;
    p->work.more = explain_more;
    p->work.free = explain_free;
    p->format = format;
    memcpy(p->room, room, sizeof(room));
    p->cluster = bytes_from(p->room, cluster.len);
    p->host = bytes_from(p->room + NAME_ROOM, host.len);
    if (format == FORMAT_JSON)
        call->type = ADMIN_JSON;
}
