/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /events: decisions as server-sent events, from those that are kept on. A reader that falls behind
 * what is kept is told how many it missed; one that takes nothing for ADMIN_ANSWER_TIMEOUT is
 * dropped, by conn.c.
 *
 * Source: WHATWG HTML, "Server-sent events": fields id, event, data; a comment begins with a colon.
 */
#include "admin/pages.h"
#include "admin/work.h"
#include "base/list.h"
#include "base/memory.h"
#include "control/journal.h"

#define KEEP_ALIVE (15 * NS_PER_S) /* a line now and then finds out who has gone */

struct events_page {
    struct admin_work work;
    struct journal *journal;
    uint64_t next; /* the number of the decision to be sent */
    bool follows;
    bool begun;
    mono_ns said_at;
};

static void put_missed(struct events_page *p, struct admin_call *call)
{
    uint64_t first = journal_first(p->journal);

    if (p->next >= first)
        return;
    page_str(call->page, ": ");
    page_u64(call->page, first - p->next);
    page_str(call->page, " decisions before this one are not kept any more\n\n");
    p->next = first;
}

static void put_decision(struct admin_call *call, const struct decision *d)
{
    page_room(call->page, DECISION_JSON_ROOM + 128);
    page_str(call->page, "id: ");
    page_u64(call->page, d->number);
    page_str(call->page, "\nevent: ");
    page_str(call->page, decision_what_text(d->what));
    page_str(call->page, "\ndata: ");
    decision_json(&call->page->text, d);
    page_str(call->page, "\n\n");
}

/* The head is to be sent at once, and with it something. */
static void begin(struct events_page *p, struct admin_call *call)
{
    p->begun = true;
    page_str(call->page, "retry: 2000\n\n");
}

static enum work_state rest(struct events_page *p, struct admin_call *call)
{
    if (!p->follows)
        return WORK_DONE;
    if (call->page->text.len == 0 && mono_since(p->said_at, call->view->now) < KEEP_ALIVE)
        return WORK_NAPS;
    if (call->page->text.len == 0)
        page_str(call->page, ": nothing new\n\n");
    p->said_at = call->view->now;
    return WORK_MORE;
}

static enum work_state events_more(struct admin_work *w, struct admin_call *call)
{
    struct events_page *p = CONTAINER_OF(w, struct events_page, work);

    if (!p->begun)
        begin(p, call);
    put_missed(p, call);
    while (p->next < journal_next(p->journal)) {
        put_decision(call, journal_at(p->journal, p->next++));
        if (!work_goes_on(call))
            return WORK_MORE;
    }
    return rest(p, call);
}

static void events_free(struct admin_work *w)
{
    struct events_page *p = CONTAINER_OF(w, struct events_page, work);

    journal_leave(p->journal);
    memory_give(p);
}

/* --- what is asked for --- */

/* A browser that has lost the connection says what it had last. */
static bool find_last_id(const struct message_head *head, uint64_t *id)
{
    for (uint32_t i = 0; i < head->field_count; i++) {
        if (bytes_equal_nocase(head->fields[i].name, BYTES("last-event-id")))
            return bytes_parse_u64(bytes_trim(head->fields[i].value), id) && *id < UINT64_MAX;
    }
    return false;
}

/* False: it is refused. What is yet to come begins with what comes next. */
static bool find_since(struct admin_call *call, const struct journal *j, uint64_t *next)
{
    char room[32];
    struct bytes since = call_value(call, "since", room, sizeof(room));
    uint64_t last;

    *next = journal_first(j);
    if (find_last_id(call->head, &last)) {
        *next = last + 1;
    } else if (call_flag(call, "since") && !bytes_parse_u64(since, next)) {
        call_refuse(call, 400, "since= takes the number of a decision, such as since=17");
        return false;
    }
    if (*next == 0)
        *next = 1;
    if (*next > journal_next(j))
        *next = journal_next(j);
    return true;
}

static bool find_follow(struct admin_call *call, bool *follows)
{
    char room[8];
    struct bytes value = call_value(call, "follow", room, sizeof(room));

    *follows = !bytes_equal(value, BYTES("no"));
    if (!call_flag(call, "follow") || !*follows || bytes_equal(value, BYTES("yes")))
        return true;
    call_refuse(call, 400, "follow= takes yes or no");
    return false;
}

void show_events(struct admin_call *call)
{
    struct journal *j = control_journal(call->control);
    struct events_page *p;
    uint64_t next;
    bool follows;

    if (!find_since(call, j, &next) || !find_follow(call, &follows))
        return;
    if (!journal_join(j)) {
        call_refuse(call, 503, "too many readers of events already");
        return;
    }
    p = work_begin_stream(call, sizeof(*p));
    if (p == NULL) {
        journal_leave(j);
        return;
    }
    *p = (struct events_page){.work = {.more = events_more, .free = events_free},
                              .journal = j,
                              .next = next,
                              .follows = follows,
                              .said_at = call->view->now};
    call->type = ADMIN_EVENTS;
}
