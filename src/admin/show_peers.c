/* SPDX-License-Identifier: Apache-2.0 */
/* /peers: endpoints side by side, by class, as text or JSON. */
#include "admin/pages.h"
#include "admin/work.h"
#include "base/list.h"
#include "base/memory.h"
#include "control/peers.h"

#define NAME_ROOM 512
#define ROW_ROOM  1024

/* Where the page is. */
struct peers_page {
    struct admin_work work;
    enum page_format format;
    struct json json;
    bool begun;
    size_t name_len; /* of the only cluster that is asked for; 0: all */
    char name[NAME_ROOM];
    uint32_t cluster;
    struct peers *peers; /* of |cluster|; NULL: it has not begun */
    bool collected;
    uint32_t endpoint;
};

static struct bytes class_name(const struct snapshot *s, uint32_t class)
{
    return s->classes[class];
}

/* --- text --- */

static void pad(struct text *t, size_t from, size_t width)
{
    while (t->len - from < width)
        text_char(t, ' ');
}

/* To the right of |width|. */
static void put_right(struct text *t, struct bytes what, size_t width)
{
    for (size_t n = what.len; n < width; n++)
        text_char(t, ' ');
    text_put(t, what);
}

/* Of a row's cells: behind a blank, to the right. Negative: there is no such number. */
struct measure {
    double value;
    unsigned decimals;
    const char *before;
    const char *behind;
};

static void put_measure(struct text *t, const struct measure *m, size_t width)
{
    char room[40];
    struct text number;

    text_init(&number, room, sizeof(room));
    if (m->value < 0) {
        text_char(&number, '-');
    } else {
        text_str(&number, m->before);
        text_double(&number, m->value, m->decimals);
        text_str(&number, m->behind);
    }
    text_char(t, ' ');
    put_right(t, text_bytes(&number), width);
}

static void put_number(struct text *t, uint64_t n, size_t width)
{
    char room[24];
    struct text number;

    text_init(&number, room, sizeof(room));
    text_u64(&number, n);
    text_char(t, ' ');
    put_right(t, text_bytes(&number), width);
}

/* "12.3ms" */
static void put_us(struct text *t, double us, size_t width)
{
    unsigned decimals = us < 10000 ? 2 : us < 100000 ? 1 : 0;

    put_measure(t, &(struct measure){us / 1000, decimals, "", "ms"}, width);
}

static void put_times(struct text *t, double times, size_t width)
{
    put_measure(t, &(struct measure){times, times < 100 ? 2 : 0, "x", ""}, width);
}

static void text_head(struct admin_call *call, const struct cluster *c)
{
    struct text *t = &call->page->text;

    page_room(call->page, c->name.len + ROW_ROOM);
    text_str(t, "cluster ");
    text_put(t, c->name);
    text_str(t, "\nhost                   class     requests     5xx timeout   reset connect"
                "      p50      x      p95      x      p99      x  share state       since\n");
}

static void text_numbers(struct text *t, const struct peer_row *r)
{
    put_number(t, r->requests, 9);
    put_number(t, r->errors, 7);
    put_number(t, r->timeouts, 7);
    put_number(t, r->resets, 7);
    put_number(t, r->connects, 7);
    for (uint32_t q = 0; q < PEER_QUANTILES; q++) {
        put_us(t, r->us[q], 8);
        put_times(t, r->times[q], 6);
    }
}

static void text_state(struct text *t, const struct peer_state *s)
{
    size_t from;
    char room[16];
    struct text share;

    text_init(&share, room, sizeof(room));
    text_double(&share, s->share / 10.0, s->share % 10 == 0 ? 0 : 1);
    text_char(&share, '%');
    text_char(t, ' ');
    put_right(t, text_bytes(&share), 6);
    text_char(t, ' ');
    from = t->len;
    text_str(t, s->text);
    pad(t, from, 11);
    text_char(t, ' ');
    if (s->since == 0)
        text_char(t, '-');
    else
        text_duration(t, s->since - s->since % (s->since < NS_PER_S ? NS_PER_MS : NS_PER_S));
    text_char(t, '\n');
}

static void text_row(struct admin_call *call, const struct endpoint *e, struct bytes class,
                     const struct peer_row *r, const struct peer_state *s)
{
    struct text *t = &call->page->text;
    size_t from;

    page_room(call->page, e->text.len + class.len + ROW_ROOM);
    from = t->len;
    text_put(t, e->text);
    pad(t, from, 22);
    text_char(t, ' ');
    from = t->len;
    text_put(t, class.len == 0 ? BYTES("-") : class);
    pad(t, from, 8);
    text_numbers(t, r);
    text_state(t, s);
}

static void text_endpoint(struct peers_page *p, struct admin_call *call, const struct cluster *c)
{
    static const struct peer_row none = {.us = {-1, -1, -1}, .times = {-1, -1, -1}};
    const struct endpoint *e = &c->endpoints[p->endpoint];
    struct peer_state state;
    struct peer_row row;
    bool any = false;

    peers_state(p->peers, p->endpoint, call->view->now, &state);
    for (uint32_t class = 0; class < p->work.snapshot->class_count; class ++) {
        if (!peers_row(p->peers, p->endpoint, class, &row))
            continue;
        text_row(call, e, class_name(p->work.snapshot, class), &row, &state);
        any = true;
    }
    if (!any)
        text_row(call, e, BYTES_NONE, &none, &state);
}

/* --- JSON --- */

static void json_row(struct json *j, struct bytes class, const struct peer_row *r)
{
    static const char *const names[PEER_QUANTILES] = {"p50_us", "p95_us", "p99_us"};
    static const char *const times[PEER_QUANTILES] = {"p50_times", "p95_times", "p99_times"};

    json_object(j, NULL);
    json_string(j, "class", class);
    json_u64(j, "requests", r->requests);
    json_u64(j, "errors_5xx", r->errors);
    json_u64(j, "timeouts", r->timeouts);
    json_u64(j, "resets", r->resets);
    json_u64(j, "connects_failed", r->connects);
    for (uint32_t q = 0; q < PEER_QUANTILES; q++) {
        if (r->us[q] >= 0)
            json_double(j, names[q], r->us[q], 0);
        if (r->times[q] >= 0)
            json_double(j, times[q], r->times[q], 3);
    }
    json_object_end(j);
}

static void json_endpoint(struct peers_page *p, struct admin_call *call, const struct cluster *c)
{
    const struct endpoint *e = &c->endpoints[p->endpoint];
    struct json *j = &p->json;
    struct peer_state state;
    struct peer_row row;

    page_room(call->page, 6 * (e->text.len + e->zone.len + e->version.len) + ROW_ROOM);
    peers_state(p->peers, p->endpoint, call->view->now, &state);
    json_object(j, NULL);
    json_string(j, "host", e->text);
    json_string(j, "zone", e->zone);
    json_string(j, "version", e->version);
    json_text(j, "state", state.text);
    json_u64(j, "since_ms", state.since / NS_PER_MS);
    json_u64(j, "share", state.share);
    json_u64(j, "in_flight", state.in_flight);
    json_u64(j, "times_out", state.times_out);
    json_array(j, "classes");
    for (uint32_t class = 0; class < p->work.snapshot->class_count; class ++) {
        struct bytes name = class_name(p->work.snapshot, class);

        page_room(call->page, 6 * name.len + ROW_ROOM);
        if (peers_row(p->peers, p->endpoint, class, &row))
            json_row(j, name, &row);
    }
    json_array_end(j);
    json_object_end(j);
}

/* --- the page --- */

static void begin_page(struct peers_page *p, struct admin_call *call)
{
    p->begun = true;
    if (p->format == FORMAT_JSON)
        page_list_begin(call->page, &p->json, "clusters");
}

static void begin_cluster(struct peers_page *p, struct admin_call *call, const struct cluster *c)
{
    p->endpoint = 0;
    if (p->format != FORMAT_JSON) {
        text_head(call, c);
        return;
    }
    page_room(call->page, 6 * c->name.len + 64);
    json_object(&p->json, NULL);
    json_string(&p->json, "name", c->name);
    json_array(&p->json, "hosts");
}

static void end_cluster(struct peers_page *p, struct admin_call *call)
{
    page_room(call->page, 64);
    if (p->format == FORMAT_JSON) {
        json_array_end(&p->json);
        json_object_end(&p->json);
    } else {
        text_char(&call->page->text, '\n');
    }
    peers_free(p->peers);
    p->peers = NULL;
    p->collected = false;
    p->cluster++;
}

static bool is_wanted(const struct peers_page *p, const struct cluster *c)
{
    struct bytes name = bytes_from(p->name, p->name_len);

    return name.len == 0 || bytes_equal(name, c->name) || bytes_equal(name, c->alias);
}

/* One endpoint, or what stands around the endpoints of one cluster. False: no memory. */
static bool step(struct peers_page *p, struct admin_call *call)
{
    const struct cluster *c = &p->work.snapshot->clusters[p->cluster];

    if (!is_wanted(p, c)) {
        p->cluster++;
    } else if (p->peers == NULL) {
        p->peers = peers_create(c);
        return p->peers != NULL;
    } else if (!p->collected) {
        p->collected = !peers_collect(p->peers);
        if (p->collected)
            begin_cluster(p, call, c);
    } else if (p->endpoint == c->endpoint_count) {
        end_cluster(p, call);
    } else {
        if (p->format == FORMAT_JSON)
            json_endpoint(p, call, c);
        else
            text_endpoint(p, call, c);
        p->endpoint++;
    }
    return true;
}

static enum work_state peers_more(struct admin_work *w, struct admin_call *call)
{
    struct peers_page *p = CONTAINER_OF(w, struct peers_page, work);

    if (!p->begun)
        begin_page(p, call);
    while (p->cluster < w->snapshot->cluster_count) {
        if (!step(p, call)) {
            call_refuse(call, 503, "out of memory");
            return WORK_FAILED;
        }
        if (!work_goes_on(call))
            return WORK_MORE;
    }
    if (p->format == FORMAT_JSON)
        page_list_end(call->page, &p->json);
    return WORK_DONE;
}

static void peers_page_free(struct admin_work *w)
{
    struct peers_page *p = CONTAINER_OF(w, struct peers_page, work);

    peers_free(p->peers);
    memory_give(p);
}

static bool is_known(const struct snapshot *s, struct bytes name)
{
    for (uint32_t i = 0; i < s->cluster_count; i++) {
        if (bytes_equal(name, s->clusters[i].name) || bytes_equal(name, s->clusters[i].alias))
            return true;
    }
    return false;
}

void show_peers(struct admin_call *call)
{
    char room[NAME_ROOM];
    struct bytes name = call_value(call, "cluster", room, sizeof(room));
    enum page_format format;
    struct peers_page *p;

    if (!call_format(call, 1u << FORMAT_TEXT | 1u << FORMAT_JSON, &format))
        return;
    if (call_flag(call, "cluster") && !is_known(call->view->snapshot, name)) {
        call_refuse(call, 404, "no such cluster; /clusters lists them");
        return;
    }
    p = work_begin(call, sizeof(*p));
    if (p == NULL)
        return;
    p->work.more = peers_more;
    p->work.free = peers_page_free;
    p->format = format;
    p->name_len = name.len;
    memcpy(p->name, room, name.len);
    if (format == FORMAT_JSON)
        call->type = ADMIN_JSON;
}
