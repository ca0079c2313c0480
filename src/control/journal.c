/* SPDX-License-Identifier: Apache-2.0 */
#include "control/journal.h"

#include <assert.h>

#include "base/memory.h"

struct journal {
    struct event_log *file;
    struct decision *kept; /* [number % JOURNAL_KEPT] */
    uint64_t next;
    uint32_t readers;
};

struct journal *journal_create(struct files *files, struct log *log)
{
    struct journal *j = memory_take(sizeof(*j));

    if (j == NULL)
        return NULL;
    j->next = 1;
    j->kept = memory_take_array(JOURNAL_KEPT, sizeof(*j->kept));
    j->file = event_log_create(files, log);
    if (j->kept != NULL && j->file != NULL)
        return j;
    journal_free(j);
    return NULL;
}

void journal_set(struct journal *j, struct bytes path)
{
    event_log_set(j->file, path);
}

void journal_reopen(struct journal *j)
{
    event_log_reopen(j->file);
}

static void write_line(struct journal *j, const struct decision *d)
{
    char room[DECISION_JSON_ROOM];
    struct text t;

    text_init(&t, room, sizeof(room));
    decision_json(&t, d);
    assert(!t.failed);
    event_log_put(j->file, text_bytes(&t));
}

void journal_put(struct journal *j, struct decision *d)
{
    d->number = j->next++;
    j->kept[d->number % JOURNAL_KEPT] = *d;
    if (event_log_on(j->file))
        write_line(j, d);
}

uint64_t journal_first(const struct journal *j)
{
    return j->next > JOURNAL_KEPT ? j->next - JOURNAL_KEPT : 1;
}

uint64_t journal_next(const struct journal *j)
{
    return j->next;
}

const struct decision *journal_at(const struct journal *j, uint64_t number)
{
    assert(number >= journal_first(j) && number < j->next);
    return &j->kept[number % JOURNAL_KEPT];
}

bool journal_join(struct journal *j)
{
    if (j->readers == JOURNAL_READERS_MAX)
        return false;
    j->readers++;
    return true;
}

void journal_leave(struct journal *j)
{
    assert(j->readers > 0);
    j->readers--;
}

const _Atomic uint64_t *journal_dropped(const struct journal *j)
{
    return event_log_dropped(j->file);
}

void journal_free(struct journal *j)
{
    if (j == NULL)
        return;
    event_log_free(j->file);
    memory_give(j->kept);
    memory_give(j);
}
