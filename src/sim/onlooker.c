/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/onlooker.h"

#include <string.h>

#include "policy/host.h"
#include "policy/host_life.h"

static void see_out(struct seen_host *s, bool out, mono_ns now)
{
    if (s->out == out)
        return;
    s->out = out;
    if (!out) {
        s->last_back = now;
        s->time_out += mono_since(s->out_since, now);
        return;
    }
    s->outs++;
    s->out_since = now;
    if (s->first_out == MONO_NEVER)
        s->first_out = now;
}

static void see_share(struct seen_host *s, uint32_t share, mono_ns now)
{
    s->share = share;
    if (share < s->least_share)
        s->least_share = share;
    if (share < LIFE_WHOLE && s->first_cut == MONO_NEVER)
        s->first_cut = now;
}

static void look(struct onlooker *o, mono_ns now)
{
    const struct host_set *hosts = &rig_state(o->rig)->hosts;

    for (uint32_t i = 0; i < hosts->count && i < RIG_HOSTS_MAX; i++) {
        struct host *h = hosts->at[i];

        if (h == NULL)
            continue;
        see_out(&o->hosts[i], host_is_ejected(h), now);
        see_share(&o->hosts[i], LIFE_WHOLE - atomic_load_explicit(&h->cut, memory_order_relaxed),
                  now);
    }
}

static void look_at_verdict(struct onlooker *o, mono_ns now)
{
    uint64_t kind = cell_read(&rig_state(o->rig)->outlier[OUTLIER_STAT_verdict]);

    if (kind == o->verdict)
        return;
    o->verdicts[o->verdict] += mono_since(o->verdict_since, now);
    o->verdict = (enum scope_kind)kind;
    o->verdict_since = now;
}

static void after_turn(struct world_watch *w, mono_ns now)
{
    struct onlooker *o = CONTAINER_OF(w, struct onlooker, watch);
    uint32_t epoch = atomic_load_explicit(rig_state(o->rig)->hosts.epoch, memory_order_relaxed);

    look_at_verdict(o, now);
    if (epoch == o->epoch)
        return;
    o->epoch = epoch;
    look(o, now);
}

void onlooker_forget(struct onlooker *o)
{
    mono_ns now = o->rig->world.now;

    for (uint32_t i = 0; i < RIG_HOSTS_MAX; i++)
        o->hosts[i] = (struct seen_host){
            .least_share = LIFE_WHOLE,
            .first_cut = MONO_NEVER,
            .first_out = MONO_NEVER,
            .last_back = MONO_NEVER,
        };
    look(o, now);
    memset(o->verdicts, 0, sizeof(o->verdicts));
    o->verdict_since = now;
}

enum scope_kind onlooker_verdict(struct onlooker *o)
{
    enum scope_kind most = SCOPE_NONE;
    span_ns longest = NS_PER_S;
    mono_ns now = o->rig->world.now;

    o->verdicts[o->verdict] += mono_since(o->verdict_since, now);
    o->verdict_since = now;
    for (int k = SCOPE_NONE + 1; k < SCOPE_KIND_COUNT; k++) {
        if (o->verdicts[k] < longest)
            continue;
        longest = o->verdicts[k];
        most = (enum scope_kind)k;
    }
    return most;
}

void onlooker_init(struct onlooker *o, struct rig *r)
{
    *o = (struct onlooker){.watch = {.after_turn = after_turn}, .rig = r};
    onlooker_forget(o);
    world_look_on(&r->world, &o->watch);
}

uint32_t onlooker_outs(const struct onlooker *o, uint64_t which)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < RIG_HOSTS_MAX; i++)
        n += (which >> i & 1) != 0 ? o->hosts[i].outs : 0;
    return n;
}

uint64_t onlooker_out(const struct onlooker *o)
{
    uint64_t which = 0;

    for (uint32_t i = 0; i < RIG_HOSTS_MAX; i++)
        which |= (uint64_t)(o->hosts[i].outs > 0) << i;
    return which;
}

uint64_t onlooker_cut(const struct onlooker *o, uint32_t share)
{
    uint64_t which = 0;

    for (uint32_t i = 0; i < RIG_HOSTS_MAX; i++)
        which |= (uint64_t)(o->hosts[i].least_share <= share || o->hosts[i].outs > 0) << i;
    return which;
}
