/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/laws.h"

#include "base/list.h"
#include "io/error.h"

static struct world *world_of(const struct laws *l)
{
    return &l->rig->world;
}

static void broken(struct laws *l, const char *law, const char *what, uint64_t which)
{
    world_fail(world_of(l), law, what, which);
}

/* --- law 1: never below the floor --- */

/* How many may be out by the cap alone: never nobody of two or more, never the last. */
static uint32_t cap_of(const struct laws *l)
{
    uint32_t hosts = l->truth->hosts;
    uint32_t percent = l->truth->cluster.outlier.max_ejection_percent;
    uint32_t cap = hosts * percent / 100;

    if (percent == 0 || hosts < 2)
        return 0;
    if (cap == 0)
        cap = 1;
    return cap < hosts ? cap : hosts - 1;
}

/* Total evidence: nothing but refusals for a second, or no good answer for five. */
static bool all_evidence(const struct laws *l, const struct server *s)
{
    mono_ns now = world_of(l)->now;
    bool down = s->down_since != MONO_NEVER && mono_since(s->down_since, now) >= NS_PER_S;
    span_ns silent = mono_since(s->good_at, now);

    /* A good answer that was sent a moment ago may not have come yet. */
    return down || silent + LAWS_SLACK >= 5 * NS_PER_S || silent < LAWS_SLACK / 4;
}

static void check_floor(struct laws *l, uint32_t host, uint32_t out_before)
{
    uint32_t hosts = l->truth->hosts;
    uint32_t healthy_before = hosts - out_before;

    if (l->truth->cluster.differences != DIFFERENCES_FIREBREAK)
        return; /* `semantics: envoy` lifts this law */
    if (healthy_before <= 1)
        broken(l, "law 1", "the last host was ejected; host", host);
    else if (healthy_before < 4 && !all_evidence(l, &l->rig->servers[host]))
        broken(l, "law 1", "few were healthy and one more went without total evidence; host", host);
    else if (healthy_before >= 4 && out_before + 1 > cap_of(l))
        broken(l, "law 1", "the cap was passed; host", host);
    else if (healthy_before < 3 && healthy_before < hosts)
        broken(l, "law 1", "more than one went while fewer than four were healthy; host", host);
}

/* --- law 2: nobody is blamed for what was not his fault --- */

/* What has a twentieth of its share shows only now and then that it is well again. */
#define SUSPECT_ASKED (10 * NS_PER_S)

/* When it last gave cause: where latency counts, all of a bad day is one. */
static mono_ns cause_at(const struct laws *l, const struct server *s)
{
    mono_ns over = s->troubled ? world_of(l)->now : s->trouble_over;

    return l->truth->cluster.detection.on && over > s->blame_at ? over : s->blame_at;
}

static void check_blame(struct laws *l, uint32_t host)
{
    const struct server *s = &l->rig->servers[host];
    const struct rig_settings *set = l->truth;
    span_ns memory = set->route.timeout + set->cluster.connect_timeout + LAWS_SLACK;

    if (set->cluster.detection.on)
        memory += SUSPECT_ASKED;
    if (!s->blamable)
        broken(l, "law 2", "a host that never gave cause was ejected; host", host);
    else if (s->down_since == MONO_NEVER && mono_since(cause_at(l, s), world_of(l)->now) > memory)
        broken(l, "law 2", "a host was ejected though it has long given no cause; host", host);
}

/* --- law 3: once the fleet is slow, and is known to be, nobody goes for being slow --- */

#define FLEET_KNOWN (5 * NS_PER_S)

static bool is_slow(const struct server *s, mono_ns now)
{
    const struct pace *p = &s->mood.pace;
    mono_ns then = now > FLEET_KNOWN ? now - FLEET_KNOWN : 0;

    return p->whom == PACE_ALL && pace_slow_by(p, then) >= 2;
}

/* Not even for what follows from being slow: timeouts. */
static bool is_only_slow(const struct server *s)
{
    const struct server_mood *m = &s->mood;

    return m->error_permille == 0 && m->hang_permille == 0 && m->reset_permille == 0 &&
           m->cut_permille == 0 && m->closes_permille == 0 && m->pace.tail_permille == 0 &&
           m->pace.freeze_every == 0 && m->idle_close == MONO_NEVER && !m->accept_reset &&
           s->down_since == MONO_NEVER;
}

static void check_fleet(struct laws *l, uint32_t host)
{
    mono_ns now = world_of(l)->now;

    if (!l->truth->cluster.detection.on)
        return;
    for (uint32_t i = 0; i < l->truth->hosts; i++) {
        if (!is_slow(&l->rig->servers[i], now))
            return;
    }
    if (is_only_slow(&l->rig->servers[host]))
        broken(l, "law 3", "a host was ejected for being slow as all are; host", host);
}

static bool is_out(const struct host_set *hosts, uint32_t i)
{
    return hosts->at[i] != NULL && host_is_ejected(hosts->at[i]);
}

static void note_ejected(struct laws *l, uint32_t host)
{
    l->ejected[host] = true;
    l->ejections++;
    check_floor(l, host, l->ejected_count++);
    check_blame(l, host);
    check_fleet(l, host);
}

/* Who came back in the same turn made room for who went. */
static void look_at_hosts(struct laws *l)
{
    const struct host_set *hosts = &rig_state(l->rig)->hosts;
    uint32_t epoch = atomic_load_explicit(hosts->epoch, memory_order_relaxed);

    if (epoch == l->epoch)
        return;
    l->epoch = epoch;
    for (uint32_t i = 0; i < hosts->count; i++) {
        if (!l->ejected[i] || is_out(hosts, i))
            continue;
        l->ejected[i] = false;
        l->ejected_count--;
    }
    for (uint32_t i = 0; i < hosts->count; i++) {
        if (!l->ejected[i] && is_out(hosts, i))
            note_ejected(l, i);
    }
}

/* --- law 8: bounded --- */

static void check_bounds(struct laws *l)
{
    const struct circuit_limits *most = &l->truth->cluster.limits;
    const struct rig *r = l->rig;
    struct cluster_state *s = rig_state(r);

    if (r->process.outgoing > (uint64_t)most->max_connections * r->snapshot->cluster_count &&
        !as_envoy(l->truth->cluster.differences, DIFFERENCE_QUEUE_PER_HOST))
        broken(l, "law 8", "more upstream connections than allowed", r->process.outgoing);
    if (limit_used(&s->requests) > most->max_requests)
        broken(l, "law 8", "more requests than allowed", limit_used(&s->requests));
    if (limit_used(&s->pending) > most->max_pending)
        broken(l, "law 8", "more waiting requests than allowed", limit_used(&s->pending));
    if (r->process.descriptors > r->process.descriptors_max)
        broken(l, "law 8", "more descriptors than allowed", r->process.descriptors);
    if (limit_used(&r->state->requests) > r->state->requests_max)
        broken(l, "law 8", "more requests than the process may have",
               limit_used(&r->state->requests));
}

static void check_host_bounds(struct laws *l)
{
    const struct host_limits *most = &l->truth->cluster.limits.host;
    const struct host_set *hosts = &rig_state(l->rig)->hosts;

    for (uint32_t i = 0; i < hosts->count; i++) {
        const struct host *h = hosts->at[i];

        if (h == NULL)
            continue;
        if (limit_used(&h->connections) > most->max_connections)
            broken(l, "law 8", "more connections to a host than allowed; host", i);
        if (limit_used(&h->pending) > most->max_pending)
            broken(l, "law 8", "more requests wait for a host than may; host", i);
        if (limit_used(&h->requests) > most->max_requests)
            broken(l, "law 8", "more requests on a host than allowed; host", i);
    }
}

static bool slot_is_unused(const struct laws *l)
{
    const struct circuit_limits *most = &l->truth->cluster.limits;
    const struct rig *r = l->rig;

    return most->host.max_connections == LIMIT_NONE && most->host.max_requests == LIMIT_NONE &&
           most->host.max_pending == LIMIT_NONE && slot_order_waiting(&rig_state(r)->queue) > 0 &&
           limit_used(&rig_state(r)->connections) < most->max_connections &&
           limit_used(&r->state->upstream) < r->state->upstream_max &&
           r->process.connect_fault == IO_OK && r->process.descriptors < r->process.descriptors_max;
}

/* Messages take their time, and loops may stand still for a while. */
static void check_slots(struct laws *l)
{
    mono_ns now = world_of(l)->now;

    if (!slot_is_unused(l))
        l->unused_since = MONO_NEVER;
    else if (l->unused_since == MONO_NEVER)
        l->unused_since = now;
    else if (mono_since(l->unused_since, now) > LAWS_SLACK)
        broken(l, "law 8", "requests wait for a connection while a slot is free; they are",
               slot_order_waiting(&rig_state(l->rig)->queue));
}

/* --- laws 4, 5, 6 on each request --- */

static void check_pending(struct laws *l, uint64_t id, const struct fact *f)
{
    const struct rig_settings *s = l->truth;
    mono_ns now = world_of(l)->now;
    span_ns slack = LAWS_SLACK + world_of(l)->held; /* nobody ends what nobody runs */

    if (f->slow_reader)
        return;
    /* A body that lies in the client's kernel is not yet the proxy's: its time has not begun. */
    if (f->body == 0 && f->complete != MONO_NEVER &&
        mono_since(f->complete, now) > s->route.timeout + slack)
        broken(l, "law 5", "a request outlives its deadline; request", id);
    if (mono_since(f->begun, now) > s->listener.body_timeout + s->route.timeout + slack)
        broken(l, "law 5", "a request never ends; request", id);
}

static void look_at_pending(struct laws *l)
{
    const struct ledger *ledger = &l->rig->ledger;

    for (uint64_t i = ledger->settled; i < ledger->count; i++)
        if (ledger->at[i].outcome == OUTCOME_PENDING)
            check_pending(l, i + 1, &ledger->at[i]);
}

static void check_attempts(struct laws *l)
{
    const struct rig *r = l->rig;
    uint64_t attempts = rig_cluster_sum(r, CLUSTER_upstream_rq_total);
    uint64_t first = rig_http_sum(r, HTTP_downstream_rq_total);
    uint64_t again =
        rig_cluster_sum(r, CLUSTER_connect_failover) + rig_cluster_sum(r, CLUSTER_reuse_resend);

    again += rig_cluster_sum(r, CLUSTER_upstream_rq_retry);
    again += rig_cluster_sum(r, CLUSTER_probe_made_good);
    if (attempts > first + again)
        broken(l, "law 4",
               "more attempts than requests, failovers, resends, probes and retries; attempts",
               attempts);
    if (rig_cluster_sum(r, CLUSTER_connect_failover) > first)
        broken(l, "law 4", "more failovers than requests", again);
}

/* In thousandths: what first attempts paid for, what time did, what was saved up at the beginning.
 */
static void check_budget(struct laws *l)
{
    const struct retry_budget_config *c = &l->truth->cluster.retry_budget;
    span_ns gone = mono_since(l->started, world_of(l)->now);
    uint64_t attempts = rig_cluster_sum(l->rig, CLUSTER_upstream_rq_total);
    uint64_t first = rig_http_sum(l->rig, HTTP_downstream_rq_total);
    uint64_t most = first * (1000 + (uint64_t)c->earn_permille) +
                    (gone / NS_PER_MS + 1) * c->floor_per_s + c->capacity * UINT64_C(1000);

    if (attempts * 1000 > most &&
        !as_envoy(l->truth->cluster.differences, DIFFERENCE_RETRY_UNBUDGETED))
        broken(l, "law 4", "more attempts than the retry budget pays for; attempts", attempts);
}

static void each_second(struct laws *l)
{
    mono_ns now = world_of(l)->now;

    if (now < l->next_second)
        return;
    l->next_second = now + NS_PER_S;
    look_at_pending(l);
    check_attempts(l);
}

static void after_turn(struct world_watch *w, mono_ns now)
{
    struct laws *l = CONTAINER_OF(w, struct laws, watch);
    (void)now;

    l->checks++;
    look_at_hosts(l);
    check_bounds(l);
    check_budget(l);
    check_host_bounds(l);
    check_slots(l);
    each_second(l);
}

void laws_init(struct laws *l, struct rig *r, const struct rig_settings *truth)
{
    *l = (struct laws){
        .watch = {.after_turn = after_turn},
        .rig = r,
        .truth = truth,
        .unused_since = MONO_NEVER,
        .started = r->world.now,
        .next_second = r->world.now + NS_PER_S,
    };
    world_look_on(&r->world, &l->watch);
}

/* --- at the end --- */

/* A reset can overtake the little that was sent of an answer: silence is then a cut, too. */
static bool was_cut(const struct fact *f)
{
    return f->outcome == OUTCOME_CUT || f->outcome == OUTCOME_SILENCE;
}

static void check_record(struct laws *l, uint64_t id, const struct fact *f)
{
    if (f->records == 0)
        broken(l, "law 6", "no record of request", id);
    else if (f->outcome == OUTCOME_ANSWERED && f->record_status != f->status)
        broken(l, "law 6", "the record has another status than the client saw; request", id);
    else if (was_cut(f) && f->record_flags == 0)
        broken(l, "law 6", "an answer was cut and the record says nothing of it; request", id);
}

static void check_fact(struct laws *l, uint64_t id, const struct fact *f)
{
    if (f->outcome == OUTCOME_PENDING)
        broken(l, "law 6", "a request never ended; request", id);
    else if (f->records > 1)
        broken(l, "law 6", "two records of one request; request", id);
    else if (f->arrivals > 2 + l->truth->retry.policy.attempts)
        broken(l, "law 4", "a request came to servers too often; request", id);
    else if (!f->idempotent && f->arrivals > 1)
        broken(l, "law 4", "a request that is not idempotent was sent twice; request", id);
    else if (f->record_attempts > 3 + l->truth->retry.policy.attempts) /* failover, resend */
        broken(l, "law 4", "a request made more attempts than it may; request", id);
    else if (!f->excused)
        check_record(l, id, f);
}

static void expect_zero(struct laws *l, const char *what, uint64_t value)
{
    if (value != 0)
        broken(l, "law 8", what, value);
}

static void expect_host_idle(struct laws *l, struct host *h)
{
    const struct host_state *state = host_state_of(h);

    expect_zero(l, "attempts still counted on a host", atomic_load(&h->in_flight));
    expect_zero(l, "requests still wait at a host", limit_used(&h->pending));
    expect_zero(l, "requests still under way on a host", limit_used(&h->requests));
    for (uint32_t w = 0; w < state->workers; w++)
        expect_zero(l, "attempts still remembered", cell_read(&state->cells[w].held));
}

static void check_gauges(struct laws *l)
{
    const struct rig *r = l->rig;
    struct cluster_state *s = rig_state(r);

    expect_zero(l, "requests still counted as waiting", limit_used(&s->pending));
    expect_zero(l, "requests still counted as under way", limit_used(&s->requests));
    expect_zero(l, "retries still counted as under way", limit_used(&s->retries));
    expect_zero(l, "bytes still kept for retries", r->state->replay);
    expect_zero(l, "requests still held by the process", limit_used(&r->state->requests));
    expect_zero(l, "requests still wait for a slot", slot_order_waiting(&s->queue));
    expect_zero(l, "upstream_rq_active", rig_cluster_sum(r, CLUSTER_upstream_rq_active));
    expect_zero(l, "upstream_rq_pending_active",
                rig_cluster_sum(r, CLUSTER_upstream_rq_pending_active));
    expect_zero(l, "downstream_rq_active", rig_http_sum(r, HTTP_downstream_rq_active));
    for (uint32_t i = 0; i < s->hosts.count; i++)
        if (s->hosts.at[i] != NULL)
            expect_host_idle(l, s->hosts.at[i]);
    if (rig_connections(r) != r->process.outgoing)
        broken(l, "law 8", "connections counted and connections open differ; open",
               r->process.outgoing);
}

void laws_check_quiet(struct laws *l)
{
    const struct ledger *ledger = &l->rig->ledger;

    if (world_of(l)->failed)
        return;
    for (uint64_t i = 0; i < ledger->count; i++)
        check_fact(l, i + 1, &ledger->at[i]);
    check_attempts(l);
    check_gauges(l);
}

void laws_check_freed(struct laws *l)
{
    const struct rig *r = l->rig;

    if (world_of(l)->failed)
        return;
    expect_zero(l, "descriptors never given back", r->process.descriptors);
    expect_zero(l, "connections never closed", r->process.outgoing);
    expect_zero(l, "connections still counted", rig_connections(r));
    expect_zero(l, "client connections still counted", limit_used(&r->state->downstream));
    expect_zero(l, "connections to hosts still counted", limit_used(&r->state->upstream));
    expect_zero(l, "upstream_cx_active", rig_cluster_sum(r, CLUSTER_upstream_cx_active));
    expect_zero(l, "downstream_cx_active", rig_http_sum(r, HTTP_downstream_cx_active));
}
