/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/scenario.h"

#include "base/memory.h"
#include "sim/bad_days.h"

struct scenario {
    struct rig rig;
    struct laws laws;
    struct crowd crowd;
    struct bad_days days;
    struct world_event trouble; /* of the proxy's own: descriptors, ports, clock */
    mono_ns until;
};

/* --- what the seed chooses --- */

static void choose_limits(struct circuit_limits *l, struct rng *rng)
{
    if (rng_below(rng, 4) == 0)
        l->max_connections = 1 + rng_below(rng, 20);
    if (rng_below(rng, 4) == 0)
        l->max_pending = 1 + rng_below(rng, 20);
    if (rng_below(rng, 4) == 0)
        l->max_requests = 1 + rng_below(rng, 40);
    if (rng_below(rng, 4) == 0)
        l->max_requests_per_connection = 1 + rng_below(rng, 20);
    if (rng_below(rng, 4) == 0)
        l->queue_timeout = (1 + rng_below(rng, 2000)) * NS_PER_MS;
}

static void choose_host_limits(struct host_limits *l, struct rng *rng)
{
    if (rng_below(rng, 6) == 0)
        l->max_connections = 1 + rng_below(rng, 6);
    if (rng_below(rng, 6) == 0)
        l->max_pending = 1 + rng_below(rng, 6);
    if (rng_below(rng, 6) == 0)
        l->max_requests = 1 + rng_below(rng, 8);
}

static void choose_retries(struct rig_settings *s, struct rng *rng)
{
    struct retry_policy *p = &s->retry.policy;

    s->cluster.retry_budget.capacity = rng_below(rng, 20);
    s->cluster.retry_budget.earn_permille = rng_below(rng, 400);
    s->cluster.limits.max_retries = rng_below(rng, 2) == 0 ? LIMIT_NONE : rng_below(rng, 6);
    if (rng_below(rng, 2) == 0)
        return;
    p->attempts = 1 + rng_below(rng, 5);
    p->on = rng_below(rng, 1u << RETRY_CONDITION_COUNT);
    p->base = (1 + rng_below(rng, 100)) * NS_PER_MS;
    p->max = p->base * (1 + rng_below(rng, 20));
    s->retry.buffer_bytes = 1024u << rng_below(rng, 11);
}

static void choose_settings(struct rig_settings *s, struct rng *rng)
{
    static const uint32_t caps[] = {20, 20, 20, 10, 5, 50, 100};

    s->workers = 1 + rng_below(rng, 4);
    s->cluster.lb = (enum lb_kind)rng_below(rng, LB_KIND_COUNT);
    s->cluster.outlier.max_ejection_percent = caps[rng_below(rng, 7)];
    s->cluster.outlier.interval = (1 + rng_below(rng, 10)) * NS_PER_S;
    s->cluster.outlier.base_ejection = (1 + rng_below(rng, 10)) * NS_PER_S;
    s->cluster.outlier.split = rng_below(rng, 2) == 0;
    s->cluster.outlier.consecutive_gateway = rng_below(rng, 2) * 3;
    s->cluster.connect_timeout = (1 + rng_below(rng, 4)) * 500 * NS_PER_MS;
    s->cluster.idle_timeout = (1 + rng_below(rng, 20)) * NS_PER_S;
    s->cluster.connect_failover = rng_below(rng, 4) != 0;
    choose_limits(&s->cluster.limits, rng);
    choose_host_limits(&s->cluster.limits.host, rng);
    choose_retries(s, rng);
    if (rng_below(rng, 4) == 0)
        s->cluster.max_connection_duration = (1 + rng_below(rng, 10)) * NS_PER_S;
    s->route.timeout = (1 + rng_below(rng, 5)) * NS_PER_S;
    s->route.per_try_timeout = rng_below(rng, 3) == 0 ? s->route.timeout / 2 : MONO_NEVER;
    s->listener.body_timeout = 5 * NS_PER_S;
    s->listener.limits.buffer_bytes = 1024u << rng_below(rng, 6);
    if (rng_below(rng, 8) == 0)
        s->memory_limit = (2 + rng_below(rng, 30)) * (uint64_t)REQUEST_MEMORY_MAX;
    s->drain_timeout = (1 + rng_below(rng, 15)) * NS_PER_S;
    if (rng_below(rng, 2) == 0)
        rig_settings_detect(s, (enum detection_profile)rng_below(rng, PROFILE_COUNT));
}

void scenario_options_init(struct scenario_options *o, uint64_t seed)
{
    struct rng rng;

    rng_init(&rng, ~seed);
    *o = (struct scenario_options){.habits = crowd_usual, .calm = 3 * NS_PER_S};
    rig_settings_init(&o->settings, seed);
    choose_settings(&o->settings, &rng);
    o->faulty_hosts = rng_below(&rng, o->settings.hosts + 1);
    o->drains_busy = rng_below(&rng, 3) == 0;
}

/* --- the way there --- */

static void random_path(struct net_path *p, struct rng *rng)
{
    p->latency = 50 * NS_PER_US + rng_below(rng, 2000) * NS_PER_US;
    p->jitter = rng_below(rng, 1000) * NS_PER_US;
    p->cut = rng_below(rng, 3) == 0 ? NET_CUT_SOME : NET_CUT_WHOLE;
    p->short_write_permille = rng_below(rng, 4) == 0 ? 50 : 0;
    if (rng_below(rng, 4) == 0)
        p->window = 500 + rng_below(rng, 8000);
}

/* Where latency counts, a host that is usually much slower than others has a fault. */
static span_ns service_of(struct rig *r, span_ns usual)
{
    struct rng *rng = &r->world.rng;

    if (!r->settings.cluster.detection.on)
        return (1 + rng_below(rng, 30)) * NS_PER_MS;
    return usual * (90 + rng_below(rng, 41)) / 100;
}

static void lay_paths(struct rig *r)
{
    struct world *w = &r->world;
    span_ns usual = (5 + rng_below(&w->rng, 26)) * NS_PER_MS;
    struct net_site *front = net_site(&r->net, &r->address);
    struct net_path alike = front->path;

    random_path(&front->path, &w->rng);
    random_path(&alike, &w->rng);
    for (uint32_t i = 0; i < r->settings.hosts; i++) {
        struct server *s = &r->servers[i];

        if (r->settings.cluster.detection.on)
            s->site->path = alike;
        else
            random_path(&s->site->path, &w->rng);
        s->usual_path = s->site->path;
        s->mood.service = service_of(r, usual);
        s->usual_mood = s->mood;
    }
    w->turn_delay = 100 * NS_PER_US;
    w->stall = 10 * NS_PER_MS;
    w->stall_permille = 2;
}

/* --- the proxy's own bad moments --- */

static void trouble(struct world_event *e, mono_ns now)
{
    struct scenario *s = CONTAINER_OF(e, struct scenario, trouble);
    struct net_process *p = &s->rig.process;
    struct world *w = &s->rig.world;

    p->connect_fault = IO_OK;
    p->descriptors_max = s->rig.settings.descriptors;
    if (now >= s->until)
        return;
    switch (rng_below(&w->rng, 8)) {
    case 0:
        p->connect_fault = world_chance(w, 500) ? IO_NO_PORTS : IO_NO_DESCRIPTORS;
        break;
    case 1:
        world_step_wall(w, (int64_t)world_span(w, 7200 * NS_PER_S) - (int64_t)(3600 * NS_PER_S));
        break;
    case 2:
        if (world_chance(w, 100))
            client_vanish(&s->rig.client);
        break;
    default:
        break;
    }
    world_arm(w, e, now + world_span(w, 2 * NS_PER_S));
}

/* --- running --- */

static void plant(struct scenario *s, const struct scenario_plant *p)
{
    s->rig.servers[s->rig.settings.hosts - 1].plant = p->server;
    s->rig.net.plant = p->net;
    s->rig.net.plant_in = p->after;
    for (uint32_t i = 0; i < s->rig.settings.workers; i++) {
        s->rig.workers[i].sink.plant = p->ledger;
        s->rig.workers[i].sink.plant_in = p->after;
    }
}

static void report(const struct scenario *s, struct scenario_result *out)
{
    const struct rig *r = &s->rig;
    const struct ledger *l = &r->ledger;

    *out = (struct scenario_result){
        .good = !r->world.failed,
        .digest = world_digest(&r->world),
        .requests = l->count,
        .from_servers = l->from_servers,
        .dropped = r->client.dropped,
        .ejections = s->laws.ejections,
        .failovers = rig_cluster_sum(r, CLUSTER_connect_failover),
        .resends = rig_cluster_sum(r, CLUSTER_reuse_resend),
        .events = r->world.fired,
        .checks = s->laws.checks,
        .bad_days = s->days.count,
    };
    memcpy(out->failure, r->world.failure, sizeof(out->failure));
    memcpy(out->outcomes, l->outcomes, sizeof(out->outcomes));
    memcpy(out->statuses, l->statuses, sizeof(out->statuses));
    for (unsigned i = 0; i < SCENARIO_LOG_LINES; i++)
        memcpy(out->log[i], sim_log_line(&r->log, i), strlen(sim_log_line(&r->log, i)) + 1);
}

static void drain(struct scenario *s)
{
    struct rig *r = &s->rig;

    if (!r->world.failed && !rig_drain(r, r->settings.drain_timeout + LAWS_SLACK))
        world_fail(&r->world, "law 5", "the proxy does not drain; connections",
                   r->process.outgoing);
}

/* Each request gets its time, then nothing may be left. */
static void wind_up(struct scenario *s)
{
    struct rig *r = &s->rig;
    const struct rig_settings *set = &r->settings;

    bad_days_end(&s->days);
    world_run_for(&r->world, set->listener.body_timeout + set->route.timeout + 2 * LAWS_SLACK);
    laws_check_quiet(&s->laws);
    drain(s);
    rig_free_proxy(r);
    laws_check_freed(&s->laws);
}

/* What is under way when the drain begins is finished, or cut at its end; what comes later is not.
 */
static void wind_up_busy(struct scenario *s)
{
    struct rig *r = &s->rig;

    s->crowd.until = MONO_NEVER;
    crowd_go_on(&s->crowd);
    drain(s);
    crowd_stop(&s->crowd);
    bad_days_end(&s->days);
    world_run_for(&r->world, LAWS_SLACK);
    laws_check_quiet(&s->laws);
    rig_free_proxy(r);
    world_run_for(&r->world, LAWS_SLACK);
    laws_check_freed(&s->laws);
}

static bool run(struct scenario *s, const struct scenario_options *o, span_ns duration,
                struct scenario_result *out)
{
    struct rig_settings settings = o->settings;
    struct world *w = &s->rig.world;

    if (o->plant.tamper != NULL)
        o->plant.tamper(&settings);
    if (!rig_start(&s->rig, &settings))
        return false;
    lay_paths(&s->rig);
    laws_init(&s->laws, &s->rig, &o->settings);
    plant(s, &o->plant);
    s->until = w->now + duration;
    world_event_init(&s->trouble, trouble);
    crowd_start(&s->crowd, &s->rig.client, &o->habits, s->until);
    bad_days_start(&s->days, &s->rig, o->calm_only ? 0 : o->faulty_hosts, o->calm, s->until);
    if (!o->calm_only)
        world_arm(w, &s->trouble, w->now);
    world_run(w, s->until);
    if (o->drains_busy)
        wind_up_busy(s);
    else
        wind_up(s);
    report(s, out);
    return true;
}

bool scenario_run(const struct scenario_options *o, span_ns duration, struct scenario_result *out)
{
    struct scenario *s = memory_take(sizeof(*s));
    bool ran;

    if (s == NULL)
        return false;
    ran = run(s, o, duration, out);
    rig_stop(&s->rig);
    memory_give(s);
    return ran;
}
