/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/ordeal.h"

#include <math.h>

#include "base/memory.h"
#include "sim/crowd.h"
#include "sim/laws.h"

#define SERVER_WORKERS 4 /* where they have no end of them, no queue ever grows */
#define STRANGERS      3
#define STRANGER_RATE  12

const char *ordeal_fault_text(enum ordeal_fault f)
{
#define X(constant, text) [ORDEAL_##constant] = text,
    static const char *const texts[ORDEAL_FAULT_COUNT] = {ORDEAL_FAULTS(X)};
#undef X

    return texts[f];
}

struct ordeal {
    struct rig rig;
    struct laws laws;
    struct crowd crowd;
    struct crowd strangers;
    struct onlooker onlooker;
    const struct ordeal_plan *plan;
    struct world_event throttle;
};

/* --- what the seed says --- */

static double between(struct rng *rng, double least, double most)
{
    return least + (most - least) * rng_unit(rng);
}

static uint64_t bits(uint32_t n)
{
    return (UINT64_C(1) << n) - 1;
}

/* A fault that one host may have, large enough to be noticed and no larger than in life. */
static void choose_fault(struct ordeal_plan *o, struct rng *rng)
{
    o->fault = (enum ordeal_fault)rng_below(rng, ORDEAL_REFUSES + 1);
    switch (o->fault) {
    case ORDEAL_SLOW:
    case ORDEAL_RAMP:
        o->size = between(rng, 3, 10);
        break;
    case ORDEAL_TAIL:
        o->size = between(rng, 0.1, 0.3);
        break;
    case ORDEAL_FREEZES:
        o->size = between(rng, 0.2, 0.4);
        break;
    case ORDEAL_ERRORS:
    case ORDEAL_CUTS:
        o->size = between(rng, 0.1, 1);
        break;
    case ORDEAL_HANGS:
        o->size = between(rng, 0.3, 1);
        break;
    case ORDEAL_REFUSES:
    case ORDEAL_THROTTLED:
    case ORDEAL_STOPPED:
    case ORDEAL_LOSSY:
    case ORDEAL_CUT_OFF:
    case ORDEAL_FAULT_COUNT:
        o->size = 1;
        break;
    }
}

/* What this proxy itself may have, or its machine, or its link. */
static void choose_own_fault(struct ordeal_plan *o, struct rng *rng)
{
    o->fault = (enum ordeal_fault)(ORDEAL_THROTTLED + rng_below(rng, 4));
    o->size = 1;
    if (o->fault == ORDEAL_THROTTLED)
        o->size = between(rng, 0.5, 0.9);
    if (o->fault == ORDEAL_STOPPED)
        o->size = between(rng, 1.5, 2);
    if (o->fault == ORDEAL_LOSSY)
        o->size = between(rng, 0.1, 0.25);
    o->one_loop = rng_below(rng, 2) == 0;
}

/* What all, or many, have alike: they are slow, or they fail. */
static void choose_common(struct ordeal_plan *o, struct rng *rng)
{
    bool slow = o->whose == SCOPE_FLEET || rng_below(rng, 3) != 0;

    o->fault = slow ? (rng_below(rng, 2) == 0 ? ORDEAL_SLOW : ORDEAL_RAMP) : ORDEAL_ERRORS;
    o->size = slow ? between(rng, 2, 6) : between(rng, 0.2, 0.8);
}

static uint64_t hosts_of_zone(const struct rig_settings *s, uint32_t zone)
{
    uint64_t which = 0;

    for (uint32_t i = zone; i < s->hosts; i += s->zones)
        which |= UINT64_C(1) << i;
    return which;
}

static void choose_group(struct ordeal_plan *o, struct rng *rng)
{
    struct rig_settings *s = &o->settings;

    choose_common(o, rng);
    if (o->whose == SCOPE_VERSION) {
        s->versions = UINT64_C(7) << rng_below(rng, s->hosts - 2);
        o->met = s->versions;
        return;
    }
    s->zones = 3;
    s->hosts = 9 + 3 * rng_below(rng, 2);
    o->met = hosts_of_zone(s, rng_below(rng, 3));
}

static void choose_met(struct ordeal_plan *o, struct rng *rng)
{
    uint32_t hosts = o->settings.hosts;

    switch (o->whose) {
    case SCOPE_NODE:
        choose_fault(o, rng);
        o->met = UINT64_C(1) << rng_below(rng, hosts);
        break;
    case SCOPE_NODES:
        choose_fault(o, rng);
        o->met = UINT64_C(5) << rng_below(rng, hosts - 2);
        break;
    case SCOPE_VERSION:
    case SCOPE_ZONE:
        choose_group(o, rng);
        break;
    case SCOPE_FLEET:
    case SCOPE_DEPENDENCY:
        choose_common(o, rng);
        o->met = bits(hosts);
        break;
    case SCOPE_CLASS_SKEW:
        o->met = UINT64_C(1) << rng_below(rng, hosts);
        break;
    case SCOPE_CAPACITY:
        o->usual_load = between(rng, 0.4, 0.8);
        o->size = between(rng, 1.05, 1.3);
        o->met = bits(hosts);
        break;
    case SCOPE_CALLER:
        choose_own_fault(o, rng);
        break;
    case SCOPE_NONE:
    case SCOPE_KIND_COUNT:
        break;
    }
}

static void choose_settings(struct rig_settings *s, struct rng *rng)
{
    s->workers = 1 + rng_below(rng, 4);
    s->hosts = 8 + rng_below(rng, 5);
    s->strangers = STRANGERS;
    rig_settings_detect(s, PROFILE_ADAPTIVE);
    s->cluster.connect_timeout = 250 * NS_PER_MS;
    s->cluster.limits.max_retries = 1000;
    s->cluster.retry_budget =
        (struct retry_budget_config){.earn_permille = 200, .floor_per_s = 1, .capacity = 10};
    s->route.timeout = 2 * NS_PER_S;
    s->route.per_try_timeout = NS_PER_S;
    s->route.large_body = 16 * 1024;
    s->retry.policy.attempts = 1;
    s->retry.policy.on = RETRY_ON_5XX | RETRY_ON_RESET | RETRY_ON_CONNECT_FAILURE;
}

void ordeal_plan_init(struct ordeal_plan *o, uint64_t seed)
{
    struct rng rng;

    rng_init(&rng, seed ^ UINT64_C(0x6f726465616c));
    *o = (struct ordeal_plan){.whose = (enum scope_kind)(seed % SCOPE_KIND_COUNT)};
    rig_settings_init(&o->settings, seed);
    choose_settings(&o->settings, &rng);
    o->rate = 8 + rng_below(&rng, 13);
    o->service = (5 + rng_below(&rng, 26)) * NS_PER_MS;
    o->sigma = between(&rng, 0.3, 0.7);
    choose_met(o, &rng);
}

/* --- the trouble --- */

static uint32_t permille(double share)
{
    return (uint32_t)(1000 * share);
}

/* What the fleet has is in each host for itself: by what is behind them they are slow alike. */
static double size_at(const struct server *s, const struct ordeal_plan *o)
{
    double spread = 1.4 * rng_unit(&s->net->world->rng) - 0.7;

    return o->whose == SCOPE_FLEET ? 1 + (o->size - 1) * exp(spread) : o->size;
}

static void strike(struct server *s, const struct ordeal_plan *o)
{
    mono_ns now = s->net->world->now;

    switch (o->fault) {
    case ORDEAL_SLOW:
    case ORDEAL_RAMP:
        s->mood.pace.slow = size_at(s, o);
        s->mood.pace.slow_from = now;
        s->mood.pace.slow_ramp = o->fault == ORDEAL_RAMP ? 5 * NS_PER_S : 0;
        break;
    case ORDEAL_TAIL:
        s->mood.pace.tail_permille = permille(o->size);
        s->mood.pace.tail = 20;
        break;
    case ORDEAL_FREEZES:
        s->mood.pace.freeze_every = 5 * NS_PER_S;
        s->mood.pace.freeze_for = (span_ns)(o->size * 5 * (double)NS_PER_S);
        break;
    case ORDEAL_ERRORS:
        s->mood.error_permille = permille(o->size);
        break;
    case ORDEAL_HANGS:
        s->mood.hang_permille = permille(o->size);
        break;
    case ORDEAL_CUTS:
        s->mood.cut_permille = permille(o->size);
        break;
    case ORDEAL_REFUSES:
        server_kill(s, DEATH_BY_RESET);
        break;
    case ORDEAL_THROTTLED:
    case ORDEAL_STOPPED:
    case ORDEAL_LOSSY:
    case ORDEAL_CUT_OFF:
    case ORDEAL_FAULT_COUNT:
        break;
    }
    s->blamable = true;
}

/* |size| times of what the hosts' workers can do is asked for. */
static uint32_t crowd_of(const struct ordeal_plan *o, double size)
{
    double work = (double)o->service * exp(o->sigma * o->sigma / 2) / (double)NS_PER_S;

    return (uint32_t)(size * SERVER_WORKERS / work * o->settings.hosts);
}

/* --- our own trouble --- */

static void hold_all(struct rig *r, mono_ns until)
{
    for (uint32_t i = 0; i < r->settings.workers; i++)
        world_loop_hold(&r->workers[i].loop, until);
    world_loop_hold(&r->control_loop, until);
}

/* Clients keep few connections: a worker may have none, and nobody misses it. */
static struct world_loop *busiest(struct rig *r)
{
    struct world_loop *most = &r->workers[0].loop;

    for (uint32_t i = 1; i < r->settings.workers; i++)
        most = r->workers[i].loop.turns > most->turns ? &r->workers[i].loop : most;
    return most;
}

#define QUOTA_PERIOD (100 * NS_PER_MS) /* as the kernel's for a group of processes */

static void throttle(struct world_event *e, mono_ns now)
{
    struct ordeal *x = CONTAINER_OF(e, struct ordeal, throttle);

    hold_all(&x->rig, now + (span_ns)(x->plan->size * (double)QUOTA_PERIOD));
    world_arm(&x->rig.world, e, mono_after(now, QUOTA_PERIOD));
}

static void set_loss(struct rig *r, uint32_t loss)
{
    for (struct list *l = r->net.sites.next; l != &r->net.sites; l = l->next)
        CONTAINER_OF(l, struct net_site, link)->path.loss_permille = loss;
}

/* The way to all hosts, of whatever cluster. */
static void set_black_hole(struct rig *r, bool on)
{
    for (uint32_t i = 0; i < r->settings.hosts + r->settings.strangers; i++)
        r->servers[i].site->path.black_hole = on;
}

static void strike_self(struct ordeal *x, const struct ordeal_plan *o)
{
    struct rig *r = &x->rig;
    mono_ns stopped_until = r->world.now + (span_ns)(o->size * (double)NS_PER_S);

    if (o->fault == ORDEAL_THROTTLED)
        world_arm(&r->world, &x->throttle, r->world.now);
    if (o->fault == ORDEAL_STOPPED && o->one_loop)
        world_loop_hold(busiest(r), stopped_until);
    else if (o->fault == ORDEAL_STOPPED)
        hold_all(r, stopped_until);
    if (o->fault == ORDEAL_LOSSY)
        set_loss(r, permille(o->size));
    if (o->fault == ORDEAL_CUT_OFF)
        set_black_hole(r, true);
}

static void recover(struct ordeal *x)
{
    world_cancel(&x->rig.world, &x->throttle);
    set_loss(&x->rig, 0);
    set_black_hole(&x->rig, false);
}

/* --- begin and end --- */

static void begin_trouble(struct ordeal *x, const struct ordeal_plan *o)
{
    struct rig *r = &x->rig;

    if (o->whose == SCOPE_CAPACITY)
        x->crowd.habits.rate = crowd_of(o, o->size);
    if (o->whose == SCOPE_CALLER)
        strike_self(x, o);
    for (uint32_t i = 0; i < o->settings.hosts; i++) {
        struct server *s = &r->servers[i];

        if ((o->met >> i & 1) == 0 || o->whose == SCOPE_CAPACITY)
            continue;
        if (o->whose == SCOPE_CLASS_SKEW)
            s->mood.pace.heavy_permille = 600;
        else
            strike(s, o);
    }
}

static uint32_t usual_rate(const struct ordeal_plan *o)
{
    return o->whose == SCOPE_CAPACITY ? crowd_of(o, o->usual_load) : o->rate * o->settings.hosts;
}

static void end_trouble(struct ordeal *x, const struct ordeal_plan *o)
{
    struct rig *r = &x->rig;

    recover(x);
    x->crowd.habits.rate = usual_rate(o);
    for (uint32_t i = 0; i < o->settings.hosts; i++) {
        struct server *s = &r->servers[i];

        s->mood = s->usual_mood;
        if (!server_listen(s))
            world_fail(&r->world, "simulator", "a server cannot come back; host", i);
    }
}

/* --- the run --- */

static void lay_out(struct ordeal *x, const struct ordeal_plan *o)
{
    for (uint32_t i = 0; i < o->settings.hosts + o->settings.strangers; i++) {
        struct server *s = &x->rig.servers[i];
        bool stranger = i >= o->settings.hosts;

        s->site->path.latency = 200 * NS_PER_US;
        s->site->path.jitter = 100 * NS_PER_US;
        s->mood.service = o->service;
        s->mood.pace.sigma = o->sigma;
        if (o->whose == SCOPE_CLASS_SKEW && !stranger) {
            s->mood.pace.heavy_permille = 200;
            s->mood.pace.heavy = 10;
            s->mood.pace.heavy_bytes = 32 * 1024;
        }
        if (o->whose == SCOPE_CAPACITY && !stranger)
            slots_init(&s->slots, SERVER_WORKERS, 200);
        s->usual_mood = s->mood;
        s->usual_path = s->site->path;
    }
    x->rig.world.turn_delay = 100 * NS_PER_US;
}

static uint64_t attempts(const struct ordeal *x)
{
    return rig_cluster_sum(&x->rig, CLUSTER_upstream_rq_total);
}

static span_ns first_act(const struct ordeal *x, const struct ordeal_plan *o, mono_ns begun)
{
    mono_ns first = MONO_NEVER;

    for (uint32_t i = 0; i < o->settings.hosts; i++) {
        const struct seen_host *h = &x->onlooker.hosts[i];

        if ((o->met >> i & 1) == 0)
            continue;
        first = h->first_out < first ? h->first_out : first;
        first = h->first_cut < first ? h->first_cut : first;
    }
    return first == MONO_NEVER ? MONO_NEVER : mono_since(begun, first);
}

static void note(struct ordeal *x, const struct ordeal_plan *o, mono_ns begun,
                 struct ordeal_result *out)
{
    out->said = onlooker_verdict(&x->onlooker);
    out->out = onlooker_out(&x->onlooker);
    out->cut = onlooker_cut(&x->onlooker, LIFE_WHOLE / 2);
    out->flips = onlooker_outs(&x->onlooker, UINT64_MAX);
    out->acted = first_act(x, o, begun);
}

static void wind_up(struct ordeal *x, const struct ordeal_plan *o)
{
    crowd_stop(&x->crowd);
    crowd_stop(&x->strangers);
    world_run_for(&x->rig.world, o->settings.route.timeout + 2 * LAWS_SLACK);
    laws_check_quiet(&x->laws);
    if (!x->rig.world.failed)
        (void)rig_drain(&x->rig, o->settings.drain_timeout + LAWS_SLACK);
    rig_free_proxy(&x->rig);
    laws_check_freed(&x->laws);
}

static void run(struct ordeal *x, const struct ordeal_plan *o, struct ordeal_result *out)
{
    const struct crowd_habits habits = {.rate = usual_rate(o), .post_permille = 100, .small = 400};
    struct crowd_habits elsewhere = habits;
    struct world *w = &x->rig.world;
    mono_ns begun = w->now + ORDEAL_BEFORE, ended = begun + ORDEAL_DURING;
    uint64_t made, asked;

    elsewhere.rate = STRANGER_RATE;
    crowd_start(&x->crowd, &x->rig.client, &habits, MONO_NEVER);
    crowd_start(&x->strangers, &x->rig.stranger, &elsewhere, MONO_NEVER);
    world_run(w, begun);
    onlooker_forget(&x->onlooker);
    made = attempts(x);
    asked = x->crowd.asked;
    begin_trouble(x, o);
    world_run(w, ended);
    note(x, o, begun, out);
    made = attempts(x) - made;
    asked = x->crowd.asked - asked;
    end_trouble(x, o);
    world_run_for(w, ORDEAL_AFTER);
    for (uint32_t i = 0; i < o->settings.hosts; i++)
        out->outs_after += x->onlooker.hosts[i].out;
    wind_up(x, o);
    out->before = score_between(&x->rig.ledger, begun - ORDEAL_BEFORE / 2, begun);
    out->during = score_between(&x->rig.ledger, begun, ended);
    out->after = score_between(&x->rig.ledger, ended + ORDEAL_AFTER / 2, ended + ORDEAL_AFTER);
    out->attempts = (double)made / (double)(asked == 0 ? 1 : asked);
    out->good = !w->failed;
    out->digest = world_digest(w);
    memcpy(out->failure, w->failure, sizeof(out->failure));
}

bool ordeal_run(const struct ordeal_plan *o, struct ordeal_result *out)
{
    struct ordeal *x = memory_take(sizeof(*x));
    bool ran = false;

    *out = (struct ordeal_result){.acted = MONO_NEVER};
    if (x == NULL)
        return false;
    x->plan = o;
    world_event_init(&x->throttle, throttle);
    if (rig_start(&x->rig, &o->settings)) {
        lay_out(x, o);
        laws_init(&x->laws, &x->rig, &o->settings);
        onlooker_init(&x->onlooker, &x->rig);
        run(x, o, out);
        ran = true;
    }
    rig_stop(&x->rig);
    memory_give(x);
    return ran;
}
