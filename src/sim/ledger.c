/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/ledger.h"

#include "base/memory.h"
#include "sim/payload.h"

void ledger_init(struct ledger *l, struct world *w)
{
    *l = (struct ledger){.world = w};
}

void ledger_release(struct ledger *l)
{
    memory_give(l->at);
    l->at = NULL;
    l->count = 0;
    l->room = 0;
}

uint64_t ledger_open(struct ledger *l)
{
    uint64_t room = l->room == 0 ? 1024 : 2 * l->room;
    struct fact *at;

    if (l->count == l->room) {
        at = memory_resize(l->at, room * sizeof(struct fact));
        if (at == NULL)
            return 0;
        l->at = at;
        l->room = room;
    }
    l->at[l->count] = (struct fact){
        .begun = l->world->now,
        .complete = MONO_NEVER,
        .ended = MONO_NEVER,
        .server = NO_SERVER,
        .answer = UINT64_MAX,
    };
    return ++l->count;
}

struct fact *ledger_fact(struct ledger *l, uint64_t id)
{
    if (id == 0 || id > l->count) {
        world_fail(l->world, "law 7", "a request that nobody sent", id);
        return NULL;
    }
    return &l->at[id - 1];
}

void ledger_end(struct ledger *l, uint64_t id, enum outcome outcome)
{
    struct fact *f = ledger_fact(l, id);

    if (f == NULL)
        return;
    if (f->outcome != OUTCOME_PENDING) {
        world_fail(l->world, "law 6", "a request ended twice; request", id);
        return;
    }
    f->outcome = outcome;
    f->ended = l->world->now;
    l->outcomes[outcome]++;
    if (outcome == OUTCOME_ANSWERED && f->status < 600)
        l->statuses[f->status / 100]++;
    if (outcome == OUTCOME_ANSWERED && f->server != NO_SERVER)
        l->from_servers++;
    while (l->settled < l->count && l->at[l->settled].outcome != OUTCOME_PENDING)
        l->settled++;
    world_digest_value(l->world, id << 16 ^ (uint64_t)outcome << 12 ^ f->status);
}

/* --- records --- */

static void write_down(struct ledger *l, const struct request_record *r)
{
    struct wish wish;
    struct fact *f;

    world_digest_value(l->world, (uint64_t)r->flags << 32 | r->status);
    world_digest_value(l->world, r->duration);
    if (!wish_parse(r->path, &wish))
        return; /* not one of ours: malformed on purpose */
    f = ledger_fact(l, wish.id);
    if (f == NULL)
        return;
    if (++f->records > 1)
        world_fail(l->world, "law 6", "two records of one request; request", wish.id);
    f->record_status = r->status;
    f->record_flags = r->flags;
    f->record_attempts = r->attempt_count;
}

static bool put(struct record_sink *base, const struct request_record *r)
{
    struct ledger_sink *s = (struct ledger_sink *)(void *)base;
    struct request_record changed = *r;

    if (s->plant == LEDGER_PLANT_NONE || s->plant_in-- != 0) {
        write_down(s->ledger, r);
        return true;
    }
    changed.status = s->plant == LEDGER_PLANT_STATUS ? 299 : r->status;
    if (s->plant != LEDGER_PLANT_LOST)
        write_down(s->ledger, &changed);
    if (s->plant == LEDGER_PLANT_TWICE)
        write_down(s->ledger, &changed);
    s->plant = LEDGER_PLANT_NONE;
    return true;
}

void ledger_sink_init(struct ledger_sink *s, struct ledger *l)
{
    *s = (struct ledger_sink){.base = {.put = put}, .ledger = l};
}
