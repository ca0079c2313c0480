/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/rig.h"

#include "control/control.h"
#include "proxy/worker.h"

/* --- what is configured --- */

void rig_settings_init(struct rig_settings *s, uint64_t seed)
{
    *s = (struct rig_settings){
        .seed = seed,
        .workers = 2,
        .hosts = 10,
        .descriptors = 4096,
        .memory_limit = UINT64_C(512) << 20,
        .cluster =
            {
                .lb = LB_P2C,
                .limits = default_limits,
                .panic = default_panic,
                .outlier = default_outlier,
                .connect_timeout = DEFAULT_CONNECT_TIMEOUT,
                .idle_timeout = DEFAULT_UPSTREAM_IDLE,
                .connect_failover = true,
                .retry_budget = default_retry_budget,
            },
        .route =
            {
                .timeout = DEFAULT_ROUTE_TIMEOUT,
                .per_try_timeout = MONO_NEVER,
                .idle_timeout = DEFAULT_STREAM_IDLE,
            },
        .listener =
            {
                .limits = default_http_limits,
                .head_timeout = DEFAULT_HEAD_TIMEOUT,
                .body_timeout = DEFAULT_BODY_TIMEOUT,
                .idle_timeout = DEFAULT_CLIENT_IDLE,
            },
        .retry = {.policy = {.base = RETRY_BACKOFF_BASE,
                             .max = RETRY_BACKOFF_FACTOR * RETRY_BACKOFF_BASE},
                  .buffer_bytes = DEFAULT_RETRY_BUFFER},
        .drain_timeout = DEFAULT_DRAIN_TIMEOUT,
    };
}

void rig_settings_detect(struct rig_settings *s, enum detection_profile profile)
{
    s->cluster.lb = LB_LEAST;
    s->cluster.detection = default_detection;
    s->cluster.outlier.return_on_proof = true;
    s->route.class = CLASS_BY_REQUEST;
    detection_set_profile(&s->cluster.detection, profile);
}

static struct bytes zone_of(const struct rig *r, uint32_t server)
{
    static const char *const names[] = {"zone-a", "zone-b", "zone-c", "zone-d"};
    uint32_t zones = r->settings.zones;

    return zones == 0 ? BYTES("") : bytes_of(names[server % zones % 4]);
}

static struct bytes version_of(const struct rig *r, uint32_t server)
{
    if (r->settings.versions == 0)
        return BYTES("");
    return (r->settings.versions >> server & 1) != 0 ? BYTES("v2") : BYTES("v1");
}

static struct bytes address_text(struct arena *arena, const struct address *a)
{
    char room[ADDRESS_TEXT_MAX];
    struct text t;

    text_init(&t, room, sizeof(room));
    address_write(&t, a);
    return arena_copy(arena, text_bytes(&t));
}

/* Of |count| servers from |first| on, those that |which| names, a bit each. */
struct chosen {
    uint32_t first;
    uint32_t count;
    uint64_t which;
};

static void make_endpoints(struct rig *r, struct arena *arena, const struct chosen *from,
                           struct cluster *c)
{
    struct endpoint *all = arena_take(arena, from->count * sizeof(*all));
    uint32_t n = 0;

    for (uint32_t i = 0; all != NULL && i < from->count; i++) {
        uint32_t server = from->first + i;

        if ((from->which >> i & 1) == 0)
            continue;
        all[n].address = r->servers[server].address;
        all[n].text = address_text(arena, &all[n].address);
        all[n].hostname = r->settings.name == NULL ? all[n].text : bytes_of(r->settings.name);
        all[n].zone = zone_of(r, server);
        all[n].version = version_of(r, server);
        all[n++].weight = 1;
    }
    c->endpoints = all;
    c->endpoint_count = n;
}

/* To cluster |to|; those with a class of their own before the one for all else. */
static struct route *make_routes(const struct rig *r, struct snapshot *s, uint32_t named,
                                 uint32_t to)
{
    const struct rig_settings *set = &r->settings;
    struct route *all = arena_take(&s->arena, (named + 1) * sizeof(*all));

    for (uint32_t i = 0; all != NULL && i <= named; i++) {
        all[i] = set->route;
        all[i].path = BYTES("/");
        all[i].cluster = to;
        if (set->retry.policy.attempts > 0)
            all[i].retry = &set->retry;
        if (i == named)
            break;
        all[i].method_count = 1;
        all[i].methods = &set->named[i].method;
        all[i].class = (uint8_t)s->class_count;
        s->classes[s->class_count++] = set->named[i].class;
    }
    return all;
}

struct part {
    uint32_t index;
    struct bytes cluster;
    struct bytes listener;
    const struct address *address;
    struct chosen hosts;
};

/* One cluster, and the listener before it. False: no memory. */
static bool fill_part(struct rig *r, struct snapshot *s, const struct part *part, struct cluster *c,
                      struct listener_config *l)
{
    uint32_t named = part->index == 0 ? r->settings.named_count : 0;
    struct route *routes = make_routes(r, s, named, part->index);

    if (routes == NULL)
        return false;
    *c = r->settings.cluster;
    cluster_follow(c, c->differences);
    c->name = part->cluster;
    c->stat_name = c->name;
    make_endpoints(r, &s->arena, &part->hosts, c);
    *l = r->settings.listener;
    l->name = part->listener;
    l->address = *part->address;
    l->route_count = named + 1;
    l->routes = routes;
    return c->endpoints != NULL;
}

static void fill_process(const struct rig *r, struct snapshot *s)
{
    s->version = 1;
    s->workers = r->settings.workers;
    s->access_log.to = BYTES("off");
    s->outlier_event_log = r->settings.event_log;
    s->journal = r->settings.journal;
    s->drain_wait = r->settings.drain_wait;
    s->drain_timeout = r->settings.drain_timeout;
}

static bool fill_snapshot(struct rig *r, struct snapshot *s, uint64_t hosts)
{
    const struct part parts[] = {
        {0, BYTES("backend"), BYTES("web"), &r->address, {0, r->settings.hosts, hosts}},
        {1,
         BYTES("elsewhere"),
         BYTES("other"),
         &r->stranger_address,
         {r->settings.hosts, r->settings.strangers, RIG_ALL_HOSTS}}};
    uint32_t count = r->settings.strangers == 0 ? 1 : 2;
    struct cluster *clusters = arena_take(&s->arena, count * sizeof(*clusters));
    struct listener_config *listeners = arena_take(&s->arena, count * sizeof(*listeners));

    if (clusters == NULL || listeners == NULL)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (!fill_part(r, s, &parts[i], &clusters[i], &listeners[i]))
            return false;
    if (r->settings.name != NULL)
        clusters[0].endpoint_count = 1; /* the others come by name */
    s->listener_count = s->cluster_count = count;
    s->listeners = listeners;
    s->clusters = clusters;
    fill_process(r, s);
    return true;
}

bool rig_reload(struct rig *r, uint64_t hosts)
{
    struct snapshot *s = snapshot_create();

    if (s == NULL || !fill_snapshot(r, s, hosts) || !control_publish(r->control, s)) {
        snapshot_drop(s);
        return false;
    }
    snapshot_drop(r->snapshot);
    r->snapshot = s;
    world_loop_wake(&r->control_loop);
    return true;
}

/* --- the loops --- */

static mono_ns worker_loop_wakeup(void *owner)
{
    return worker_wakeup(((struct rig_worker *)owner)->worker);
}

static void worker_loop_turn(void *owner)
{
    worker_turn(((struct rig_worker *)owner)->worker);
}

static bool worker_loop_done(void *owner)
{
    return worker_done(((struct rig_worker *)owner)->worker);
}

static const struct world_loop_ops worker_ops = {
    .wakeup = worker_loop_wakeup,
    .turn = worker_loop_turn,
    .done = worker_loop_done,
};

static mono_ns control_loop_wakeup(void *owner)
{
    return control_wakeup(owner);
}

static void control_loop_turn(void *owner)
{
    control_turn(owner);
}

static bool control_loop_done(void *owner)
{
    return control_done(owner);
}

static const struct world_loop_ops control_ops = {
    .wakeup = control_loop_wakeup,
    .turn = control_loop_turn,
    .done = control_loop_done,
};

/* --- starting --- */

static bool start_worker(struct rig *r, uint32_t i)
{
    struct rig_worker *w = &r->workers[i];
    const struct listener_config *failed = NULL;
    const struct worker_setup setup = {
        .index = i,
        .seed = r->settings.seed * RIG_WORKERS_MAX + i,
        .clock = &r->world.clock,
        .poller = &w->poller.base,
        .inbox = &w->inbox.base,
        .control = &r->control_inbox.base,
        .peers = r->inboxes,
        .peer_count = r->settings.workers,
        .log = &r->log.base,
        .records = &w->sink.base,
        .process = r->state,
        .snapshot = r->snapshot,
    };

    if (worker_create(&setup, &w->worker, &failed) != IO_OK)
        return false;
    world_loop_start(&w->loop);
    return true;
}

void rig_name_hosts(struct rig *r, uint64_t which)
{
    struct sim_name *n = sim_resolver_name(&r->resolver, r->settings.name);

    n->count = 0;
    for (uint32_t i = 0; i < r->settings.hosts && n->count < SIM_ADDRESSES; i++) {
        if ((which & (uint64_t)1 << i) == 0)
            continue;
        n->at[n->count] = r->servers[i].address;
        n->at[n->count++].port = 0;
    }
}

static bool start_control(struct rig *r)
{
    const struct control_setup setup = {
        .seed = r->settings.seed,
        .clock = &r->world.clock,
        .poller = &r->control_poller.base,
        .inbox = &r->control_inbox.base,
        .workers = r->inboxes,
        .worker_count = r->settings.workers,
        .log = &r->log.base,
        .files = &r->files.base,
        .process = r->state,
        .resolver = &r->resolver.base,
        .snapshot = r->snapshot,
    };

    sim_resolver_init(&r->resolver, &r->control_poller);
    if (r->settings.name != NULL)
        rig_name_hosts(r, UINT64_MAX);
    r->control = control_create(&setup);
    if (r->control == NULL) {
        sim_resolver_release(&r->resolver);
        return false;
    }
    r->control_loop.owner = r->control;
    world_loop_start(&r->control_loop);
    return true;
}

/* Half of what the proxy grants: the rest may go on the way. */
static span_ns patience(const struct route *route)
{
    return (route->timeout < route->per_try_timeout ? route->timeout : route->per_try_timeout) / 2;
}

static uint32_t all_servers(const struct rig *r)
{
    return r->settings.hosts + r->settings.strangers;
}

static bool start_servers(struct rig *r)
{
    for (uint32_t i = 0; i < all_servers(r); i++) {
        const struct address a = {
            .kind = ADDRESS_IPV4, .ip = {10, 0, 0, (uint8_t)(i + 1)}, .port = 8000};

        if (!server_init(&r->servers[i], &r->server_loop, &r->ledger, i, &a) ||
            !server_listen(&r->servers[i]))
            return false;
        r->servers[i].patience = patience(&r->settings.route);
    }
    return true;
}

/* What needs no memory, so that rig_stop can undo a start that failed. */
static void lay_out(struct rig *r)
{
    ledger_init(&r->ledger, &r->world);
    sim_log_init(&r->log, &r->world);
    sim_files_init(&r->files);
    net_process_init(&r->process);
    r->process.descriptors_max = r->settings.descriptors;
    r->address = (struct address){.kind = ADDRESS_IPV4, .ip = {10, 1, 0, 1}, .port = 8080};
    r->stranger_address = (struct address){.kind = ADDRESS_IPV4, .ip = {10, 1, 0, 1}, .port = 8081};
    world_loop_init(&r->control_loop, &r->world, &control_ops, NULL);
    sim_mailbox_init(&r->control_inbox, &r->control_loop);
    sim_poller_init(&r->control_poller, &r->net, &r->process, &r->control_loop);
    for (uint32_t i = 0; i < r->settings.workers; i++) {
        struct rig_worker *w = &r->workers[i];

        w->worker = NULL;
        world_loop_init(&w->loop, &r->world, &worker_ops, w);
        sim_mailbox_init(&w->inbox, &w->loop);
        sim_poller_init(&w->poller, &r->net, &r->process, &w->loop);
        ledger_sink_init(&w->sink, &r->ledger);
        r->inboxes[i] = &w->inbox.base;
    }
    actor_loop_init(&r->client_loop, &r->net);
    actor_loop_init(&r->server_loop, &r->net);
}

static bool start_proxy(struct rig *r)
{
    r->state = process_state_create(r->settings.workers, r->settings.descriptors,
                                    r->settings.memory_limit, r->world.now);
    r->snapshot = snapshot_create();
    if (r->state == NULL || r->snapshot == NULL || !fill_snapshot(r, r->snapshot, RIG_ALL_HOSTS) ||
        !snapshot_attach_state(r->snapshot, r->settings.workers))
        return false;
    for (uint32_t i = 0; i < r->settings.workers; i++)
        if (!start_worker(r, i))
            return false;
    return start_control(r);
}

bool rig_start(struct rig *r, const struct rig_settings *s)
{
    bool netted;

    r->settings = *s;
    r->state = NULL;
    r->snapshot = NULL;
    r->control = NULL;
    memset(r->servers, 0, sizeof(r->servers));
    world_init(&r->world, s->seed);
    netted = net_init(&r->net, &r->world);
    lay_out(r);
    if (!netted)
        return false;
    client_init(&r->client, &r->client_loop, &r->ledger, &r->address);
    client_init(&r->stranger, &r->client_loop, &r->ledger, &r->stranger_address);
    return start_servers(r) && start_proxy(r);
}

/* --- ending --- */

static void be_lenient(struct rig *r)
{
    if (r->client.lenient_since == MONO_NEVER)
        r->client.lenient_since = r->stranger.lenient_since = r->world.now;
}

bool rig_drain(struct rig *r, span_ns within)
{
    mono_ns until = mono_after(r->world.now, within);

    be_lenient(r);
    control_drain(r->control);
    world_loop_wake(&r->control_loop);
    while (!control_done(r->control) && r->world.now < until && !r->world.failed)
        world_run_for(&r->world, 10 * NS_PER_MS);
    return control_done(r->control);
}

void rig_free_proxy(struct rig *r)
{
    be_lenient(r);
    world_loop_stop(&r->control_loop);
    for (uint32_t i = 0; i < r->settings.workers; i++) {
        world_loop_stop(&r->workers[i].loop);
        if (r->workers[i].worker != NULL)
            worker_free(r->workers[i].worker);
        r->workers[i].worker = NULL;
    }
    if (r->control != NULL) {
        sim_resolver_release(&r->resolver);
        control_free(r->control);
    }
    r->control = NULL;
}

void rig_stop(struct rig *r)
{
    rig_free_proxy(r);
    if (r->net.scratch != NULL) {
        client_release(&r->client);
        client_release(&r->stranger);
        for (uint32_t i = 0; i < all_servers(r); i++)
            if (r->servers[i].net != NULL)
                server_release(&r->servers[i]);
        net_release(&r->net);
    }
    actor_loop_release(&r->client_loop);
    actor_loop_release(&r->server_loop);
    snapshot_drop(r->snapshot);
    process_state_free(r->state);
    sim_files_release(&r->files);
    ledger_release(&r->ledger);
    world_release(&r->world);
}

/* --- sums --- */

uint64_t rig_connections(const struct rig *r)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < r->snapshot->cluster_count; i++)
        sum += limit_used(&r->snapshot->clusters[i].state->connections);
    return sum;
}

uint64_t rig_http_sum(const struct rig *r, enum http_metric m)
{
    const struct listener_state *s = r->snapshot->listeners[0].state;
    uint64_t sum = 0;

    for (uint32_t i = 0; i < s->workers; i++)
        sum += cell_read(&s->cells[i]->at[m]);
    return sum;
}

uint64_t rig_cluster_sum(const struct rig *r, enum cluster_metric m)
{
    return cluster_state_sum(rig_state(r), m);
}
