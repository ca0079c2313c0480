/* SPDX-License-Identifier: Apache-2.0 */
/* Which clusters are watched, and when what is looked at. What is done is outlier_deeds.c. */
#include "control/outlier_watch.h"

#include <stdlib.h>

#include "base/list.h"
#include "base/memory.h"
#include "control/caller.h"
#include "control/detection.h"
#include "control/effect_watch.h"
#include "control/outlier_deeds.h"
#include "control/panic_note.h"
#include "policy/evidence_ring.h"

#define SWEEP_LEAST NS_PER_MS

/* --- the sweep --- */

static void arm_sweep(struct watched *c, mono_ns now)
{
    span_ns interval = c->config->outlier.interval;

    if (c->config->outlier.enabled)
        wheel_arm(c->watch->setup.wheel, &c->sweep,
                  mono_after(now, interval < SWEEP_LEAST ? SWEEP_LEAST : interval));
    else
        wheel_cancel(c->watch->setup.wheel, &c->sweep);
}

static void sweep_due(struct timer *t, mono_ns now)
{
    struct watched *c = CONTAINER_OF(t, struct watched, sweep);

    deeds_sweep(c, now);
    arm_sweep(c, now);
}

static void release_due(struct timer *t, mono_ns now)
{
    deeds_release(CONTAINER_OF(t, struct watched, release), now);
}

/* --- who is in a cluster --- */

static void roster_release(struct roster *r)
{
    memory_give(r->hosts);
    memory_give(r->members);
    memory_give(r->scratch);
    *r = (struct roster){.count = 0};
}

static int compare_slots(const void *a, const void *b)
{
    const struct watched_host *x = a;
    const struct watched_host *y = b;

    return (x->slot > y->slot) - (x->slot < y->slot);
}

static void roster_fill(struct roster *r, const struct cluster *c)
{
    r->count = c->endpoint_count;
    for (uint32_t i = 0; i < r->count; i++)
        r->hosts[i] = (struct watched_host){.slot = c->endpoints[i].slot,
                                            .text = c->endpoints[i].text,
                                            .endpoint = &c->endpoints[i]};
    qsort(r->hosts, r->count, sizeof(*r->hosts), compare_slots);
    for (uint32_t i = 0; i < r->count; i++) {
        struct host *h = c->hosts.at[r->hosts[i].slot];

        r->members[i] = (struct outlier_member){&h->runs, &h->judged};
    }
}

/* False: no memory. */
static bool roster_make(struct roster *r, const struct cluster *c)
{
    uint32_t hosts = c->endpoint_count;
    size_t room = hosts == 0 ? 1 : hosts;

    *r = (struct roster){
        .hosts = memory_take_array(room, sizeof(*r->hosts)),
        .members = memory_take_array(room, sizeof(*r->members)),
        .scratch = memory_take_array(room, sizeof(*r->scratch)),
    };
    if (r->hosts == NULL || r->members == NULL || r->scratch == NULL) {
        roster_release(r);
        return false;
    }
    roster_fill(r, c);
    return true;
}

/* --- what is watched --- */

static void watched_free(struct watched *c)
{
    wheel_cancel(c->watch->setup.wheel, &c->sweep);
    wheel_cancel(c->watch->setup.wheel, &c->release);
    detection_free(c->detection);
    effects_free(c->effects);
    roster_release(&c->roster);
    cluster_state_drop(c->state);
    memory_give(c);
}

static struct watched *watched_create(struct outlier_watch *w, struct cluster_state *state)
{
    struct watched *c = memory_take(sizeof(*c));

    if (c == NULL)
        return NULL;
    timer_init(&c->sweep, sweep_due);
    timer_init(&c->release, release_due);
    c->watch = w;
    c->state = cluster_state_take(state);
    outlier_init(&c->judge, &w->rng);
    return c;
}

static int by_address(uintptr_t a, uintptr_t b)
{
    return (a > b) - (a < b);
}

static int compare_watched(const void *a, const void *b)
{
    const struct watched *const *x = a;
    const struct watched *const *y = b;

    return by_address((uintptr_t)(*x)->state, (uintptr_t)(*y)->state);
}

static int compare_state(const void *state, const void *b)
{
    const struct watched *const *y = b;

    return by_address((uintptr_t)state, (uintptr_t)(*y)->state);
}

/* |state| is only compared: it may be gone; NULL: what is told is of no cluster. */
static struct watched *find(const struct outlier_watch *w, const void *state)
{
    struct watched **found = NULL;

    if (w->count > 0 && state != NULL)
        found = bsearch(state, w->by_state, w->count, sizeof(*w->by_state), compare_state);
    return found == NULL ? NULL : *found;
}

/* --- a snapshot --- */

/* What is to become of the watch; nothing has changed until it is complete. */
struct adoption {
    const struct snapshot *snapshot;
    uint32_t count; /* of those prepared */
    struct watched **all;
    struct watched **by_state;
    struct roster *rosters;
};

static void free_unwanted(struct watched **all, uint32_t n, const struct outlier_watch *kept)
{
    for (uint32_t i = 0; i < n; i++) {
        if (kept == NULL || find(kept, all[i]->state) != all[i])
            watched_free(all[i]);
    }
}

static void give_up(struct outlier_watch *w, struct adoption *a)
{
    for (uint32_t i = 0; i < a->count; i++)
        roster_release(&a->rosters[i]);
    free_unwanted(a->all, a->count, w);
    memory_give(a->all);
    memory_give(a->by_state);
    memory_give(a->rosters);
}

static bool prepare_one(struct outlier_watch *w, struct adoption *a)
{
    const struct cluster *cluster = &a->snapshot->clusters[a->count];
    struct roster roster;
    struct watched *c;

    if (!roster_make(&roster, cluster))
        return false;
    c = find(w, cluster->state);
    if (c == NULL)
        c = watched_create(w, cluster->state);
    if (c == NULL) {
        roster_release(&roster);
        return false;
    }
    a->rosters[a->count] = roster;
    a->by_state[a->count] = c;
    a->all[a->count++] = c;
    return true;
}

/* False: no memory. */
static bool prepare(struct outlier_watch *w, struct adoption *a)
{
    size_t room = a->snapshot->cluster_count == 0 ? 1 : a->snapshot->cluster_count;

    a->all = memory_take_array(room, sizeof(struct watched *));
    a->by_state = memory_take_array(room, sizeof(struct watched *));
    a->rosters = memory_take_array(room, sizeof(*a->rosters));
    if (a->all == NULL || a->by_state == NULL || a->rosters == NULL)
        return false;
    while (a->count < a->snapshot->cluster_count) {
        if (!prepare_one(w, a))
            return false;
    }
    return true;
}

static bool same_rhythm(const struct watched *c, const struct cluster *config)
{
    return c->config != NULL && c->config->outlier.enabled == config->outlier.enabled &&
           c->config->outlier.interval == config->outlier.interval;
}

/* Where detection was switched off, those that are out come back at once. */
static void configure(struct watched *c, const struct cluster *config, struct roster roster,
                      mono_ns now)
{
    bool same = same_rhythm(c, config);

    deeds_release(c, now);
    roster_release(&c->roster);
    c->roster = roster;
    c->config = config;
    outlier_adopt(&c->judge, &config->outlier, c->roster.members, c->roster.count);
    if (!detection_adopt(c, now)) {
        c->judge.by_proof = false;
        log_event(c->watch->setup.log, LOG_WARNING, "detection.off", "no memory for it");
    }
    if (!effects_adopt(c))
        log_event(c->watch->setup.log, LOG_WARNING, "detection.effects_off",
                  "no memory to see whether ejections help");
    deeds_show_active(c);
    if (!same && !config->outlier.enabled)
        deeds_sweep(c, now);
    if (!same)
        arm_sweep(c, now);
    panic_note(config, c->watch->setup.log, now);
}

bool outlier_watch_adopt(struct outlier_watch *w, const struct snapshot *s, mono_ns now)
{
    struct adoption a = {.snapshot = s};
    struct outlier_watch old = *w;

    if (!prepare(w, &a)) {
        give_up(w, &a);
        return false;
    }
    qsort(a.by_state, a.count, sizeof(*a.by_state), compare_watched);
    w->all = a.all;
    w->by_state = a.by_state;
    w->count = a.count;
    for (uint32_t i = 0; i < w->count; i++)
        configure(w->all[i], &s->clusters[i], a.rosters[i], now);
    memory_give(a.rosters);
    free_unwanted(old.all, old.count, w);
    memory_give(old.all);
    memory_give(old.by_state);
    return true;
}

/* --- messages --- */

/* UINT32_MAX: it is no longer there. */
static uint32_t member_of(const struct watched *c, uint32_t slot)
{
    uint32_t low = 0, high = c->roster.count;

    if (slot < high && c->roster.hosts[slot].slot == slot)
        return slot; /* as long as no slot before it is free */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (c->roster.hosts[middle].slot < slot)
            low = middle + 1;
        else
            high = middle;
    }
    return low < c->roster.count && c->roster.hosts[low].slot == slot ? low : UINT32_MAX;
}

const struct watched *watched_find(const struct outlier_watch *w, const void *state, uint32_t slot,
                                   uint32_t *index)
{
    const struct watched *c = find(w, state);

    *index = c == NULL ? UINT32_MAX : member_of(c, slot);
    return *index == UINT32_MAX ? NULL : c;
}

void outlier_watch_tell(struct outlier_watch *w, const struct message *m, mono_ns now)
{
    /* Envoy's order: where one failure completes two runs, the gateway one gets the host. */
    static const enum outlier_trigger order[] = {
        OUTLIER_CONSECUTIVE_GATEWAY, OUTLIER_CONSECUTIVE_5XX, OUTLIER_CONSECUTIVE_LOCAL_ORIGIN};
    struct watched *c = find(w, m->object);
    uint32_t index = c == NULL ? UINT32_MAX : member_of(c, m->index);

    if (index == UINT32_MAX)
        return;
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        if ((m->value & outlier_bit(order[i])) == 0)
            continue;
        if (c->config->outlier.enabled)
            deeds_consider(c, index, order[i], now);
        else
            outlier_runs_restart(c->roster.members[index].runs, order[i]);
    }
}

/* --- evidence --- */

#define BATCH_MAX (4 * EVIDENCE_RING_ROOM)

static int compare_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* The same order whichever worker saw what. */
static int compare_evidence(const void *a, const void *b)
{
    const struct evidence *x = a, *y = b;
    int order = compare_u64(x->at, y->at);

    if (order == 0)
        order = compare_u64(x->host, y->host);
    if (order == 0)
        order = compare_u64(x->class, y->class);
    if (order == 0)
        order = compare_u64(x->outcome, y->outcome);
    return order == 0 ? compare_u64(x->first_us, y->first_us) : order;
}

static uint32_t collect(struct outlier_watch *w)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < w->setup.worker_count; i++)
        while (n < BATCH_MAX && evidence_ring_take(&w->setup.rings[i], &w->batch[n]))
            n++;
    qsort(w->batch, n, sizeof(*w->batch), compare_evidence);
    return n;
}

static void learn(struct outlier_watch *w, struct evidence *e, mono_ns now)
{
    struct watched *c = find(w, e->cluster);
    uint32_t index = c == NULL || c->detection == NULL ? UINT32_MAX : member_of(c, e->host);

    if (index == UINT32_MAX)
        return;
    caller_learn(c, e);
    if (caller_believes(c, e, now))
        detection_learn(c, index, e, now);
    else
        detection_doubt(c);
}

/* False: all sleep. */
static bool look(struct outlier_watch *w, mono_ns now)
{
    bool awake = false;

    for (uint32_t i = 0; i < w->count; i++) {
        if (w->all[i]->detection != NULL)
            awake |= detection_look(w->all[i], now);
    }
    return awake;
}

/* Nothing happens any more: the next evidence wakes the watch. */
static bool sleep(struct outlier_watch *w)
{
    bool all = true;

    for (uint32_t i = 0; i < w->setup.worker_count; i++)
        all = evidence_ring_sleep(&w->setup.rings[i]) && all;
    return all;
}

static void tick_due(struct timer *t, mono_ns now)
{
    struct outlier_watch *w = CONTAINER_OF(t, struct outlier_watch, tick);
    uint32_t n = collect(w);

    for (uint32_t i = 0; i < n; i++)
        learn(w, &w->batch[i], now);
    caller_look(w, now);
    if (look(w, now) || n > 0 || !sleep(w))
        wheel_arm(w->setup.wheel, &w->tick, mono_after(now, DETECTION_EVERY));
}

void outlier_watch_wake(struct outlier_watch *w, mono_ns now)
{
    if (!timer_armed(&w->tick))
        wheel_arm(w->setup.wheel, &w->tick, mono_after(now, DETECTION_EVERY));
}

/* --- by hand --- */

bool outlier_watch_on(const struct outlier_watch *w, const struct cluster_state *state)
{
    const struct watched *c = find(w, state);

    return c != NULL && c->config->outlier.enabled;
}

enum outlier_guard outlier_watch_eject(struct outlier_watch *w, const struct cluster_state *state,
                                       uint32_t slot, mono_ns now)
{
    struct watched *c = find(w, state);
    uint32_t index = c == NULL ? UINT32_MAX : member_of(c, slot);

    return index == UINT32_MAX ? OUTLIER_GUARD_NOT_ENFORCED : deeds_eject(c, index, now);
}

bool outlier_watch_pardon(struct outlier_watch *w, const struct cluster_state *state, uint32_t slot,
                          mono_ns now)
{
    struct watched *c = find(w, state);
    uint32_t index = c == NULL ? UINT32_MAX : member_of(c, slot);

    return index != UINT32_MAX && deeds_pardon(c, index, now);
}

void outlier_watch_note_drain(struct outlier_watch *w, const struct cluster_state *state,
                              uint32_t slot)
{
    struct watched *c = find(w, state);
    uint32_t index = c == NULL ? UINT32_MAX : member_of(c, slot);

    if (index != UINT32_MAX)
        deeds_note_drain(c, index);
}

void outlier_watch_note_undrain(struct outlier_watch *w, const struct cluster_state *state,
                                uint32_t slot, span_ns drained)
{
    struct watched *c = find(w, state);
    uint32_t index = c == NULL ? UINT32_MAX : member_of(c, slot);

    if (index != UINT32_MAX)
        deeds_note_undrain(c, index, drained);
}

/* --- life --- */

struct outlier_watch *outlier_watch_create(const struct outlier_watch_setup *setup)
{
    struct outlier_watch *w = memory_take(sizeof(*w));

    if (w == NULL)
        return NULL;
    w->setup = *setup;
    rng_init(&w->rng, setup->seed);
    timer_init(&w->tick, tick_due);
    w->batch = memory_take_array(BATCH_MAX, sizeof(*w->batch));
    if (w->batch == NULL) {
        memory_give(w);
        return NULL;
    }
    (void)sleep(w);
    return w;
}

void outlier_watch_free(struct outlier_watch *w)
{
    if (w == NULL)
        return;
    wheel_cancel(w->setup.wheel, &w->tick);
    memory_give(w->batch);
    for (uint32_t i = 0; i < w->count; i++)
        watched_free(w->all[i]);
    memory_give(w->all);
    memory_give(w->by_state);
    memory_give(w);
}
