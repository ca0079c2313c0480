/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict is policy's, the deed is ours: the health of a host, the counters, the log line. */
#include "control/outlier_watch.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/list.h"
#include "base/memory.h"
#include "base/rng.h"
#include "base/text.h"
#include "control/panic_note.h"
#include "policy/outlier.h"
#include "stats/metrics.h"

#define SWEEP_LEAST   NS_PER_MS
#define REFUSED_EVERY NS_PER_S /* at most one such line a host in that time */

/* Lines about a host that stays in though a run of failures was seen. */
struct refusals {
    mono_ns next; /* no line before */
    uint32_t held_back;
};

struct watched {
    struct timer sweep;
    struct outlier_watch *watch;
    const struct cluster *config; /* of the snapshot in force */
    struct cluster_state *state;  /* a reference */
    struct outlier judge;
    struct outlier_host *hosts; /* [host], here and below */
    struct outlier_runs **runs;
    uint32_t *returned;
    struct refusals *refusals;
};

struct outlier_watch {
    struct wheel *wheel;
    struct log *log;
    struct rng rng;
    struct watched **all;      /* in the order of the snapshot */
    struct watched **by_state; /* the same, by address, to be found */
    uint32_t count;
};

/* --- the deeds --- */

static const struct {
    enum outlier_metric detected;
    enum outlier_metric enforced;
} metrics_of[OUTLIER_TRIGGER_COUNT] = {
    [OUTLIER_CONSECUTIVE_5XX] = {OUTLIER_STAT_ejections_detected_consecutive_5xx,
                                 OUTLIER_STAT_ejections_enforced_consecutive_5xx},
    [OUTLIER_CONSECUTIVE_GATEWAY] = {OUTLIER_STAT_ejections_detected_consecutive_gateway_failure,
                                     OUTLIER_STAT_ejections_enforced_consecutive_gateway_failure},
    [OUTLIER_CONSECUTIVE_LOCAL_ORIGIN] =
        {OUTLIER_STAT_ejections_detected_consecutive_local_origin_failure,
         OUTLIER_STAT_ejections_enforced_consecutive_local_origin_failure},
};

static void count(struct watched *c, enum outlier_metric m)
{
    cell_add(&c->state->outlier[m], 1);
}

static void show_active(struct watched *c)
{
    atomic_store_explicit(&c->state->outlier[OUTLIER_STAT_ejections_active], c->judge.ejected,
                          memory_order_relaxed);
}

#define DURATION_TEXT_MAX 64

static const char *duration_text(char *buffer, span_ns span)
{
    struct text t;

    text_init(&t, buffer, DURATION_TEXT_MAX);
    text_duration(&t, span - span % NS_PER_MS);
    return text_end(&t);
}

static struct bytes host_text(const struct watched *c, uint32_t index)
{
    return index < c->config->endpoint_count ? c->config->endpoints[index].text : BYTES("?");
}

/* For "%.*s". */
static int width(struct bytes b)
{
    return b.len > 256 ? 256 : (int)b.len;
}

static void log_ejected(const struct watched *c, uint32_t index, enum outlier_trigger t,
                        const struct outlier_verdict *v)
{
    struct bytes host = host_text(c, index);
    char buffer[DURATION_TEXT_MAX];

    log_event(c->watch->log, LOG_WARNING, "endpoint.ejected",
              "%.*s of cluster %.*s is out for %s after %s; %" PRIu32 " of %" PRIu32 " hosts out",
              width(host), (const char *)host.data, width(c->config->name),
              (const char *)c->config->name.data, duration_text(buffer, v->eject_for),
              outlier_trigger_text(t), c->judge.ejected, c->judge.count);
}

static void log_returned(const struct watched *c, uint32_t index, span_ns out)
{
    struct bytes host = host_text(c, index);
    char buffer[DURATION_TEXT_MAX];

    log_event(c->watch->log, LOG_INFO, "endpoint.returned",
              "%.*s of cluster %.*s is in again after %s; %" PRIu32 " of %" PRIu32 " hosts out",
              width(host), (const char *)host.data, width(c->config->name),
              (const char *)c->config->name.data, duration_text(buffer, out), c->judge.ejected,
              c->judge.count);
}

static void log_refused(struct watched *c, uint32_t index, enum outlier_trigger t,
                        enum outlier_guard guard, mono_ns now)
{
    struct refusals *r = &c->refusals[index];
    struct bytes host = host_text(c, index);

    if (now < r->next) {
        r->held_back++;
        return;
    }
    log_event(c->watch->log, LOG_WARNING, "endpoint.ejection_refused",
              "%.*s of cluster %.*s stays in after %s because of %s; %" PRIu32 " of %" PRIu32
              " hosts out, cap %" PRIu32 "%%; %" PRIu32 " refusals before this one not logged",
              width(host), (const char *)host.data, width(c->config->name),
              (const char *)c->config->name.data, outlier_trigger_text(t),
              outlier_guard_text(guard), c->judge.ejected, c->judge.count,
              c->config->outlier.max_ejection_percent, r->held_back);
    r->next = mono_after(now, REFUSED_EVERY);
    r->held_back = 0;
}

/* What is shown of a host is written before its health, so that who sees it out sees why. */
static void eject(struct watched *c, uint32_t index, enum outlier_trigger t,
                  const struct outlier_verdict *v, mono_ns now)
{
    struct host *h = c->state->hosts.at[index];

    atomic_store_explicit(&h->ejections, c->hosts[index].ejections, memory_order_relaxed);
    atomic_store_explicit(&h->last_trigger, (uint32_t)t, memory_order_relaxed);
    atomic_store_explicit(&h->ejected_at, now, memory_order_relaxed);
    atomic_store_explicit(&h->eject_until, mono_after(now, v->eject_for), memory_order_relaxed);
    host_set_health(&c->state->hosts, index, HOST_EJECTED);
    show_active(c);
    count(c, OUTLIER_STAT_ejections_enforced_total);
    count(c, metrics_of[t].enforced);
    if (t == OUTLIER_CONSECUTIVE_5XX)
        count(c, OUTLIER_STAT_ejections_total);
    log_ejected(c, index, t, v);
    panic_note(c->config, c->watch->log, now);
}

static void let_back(struct watched *c, uint32_t index, mono_ns now)
{
    host_set_health(&c->state->hosts, index, HOST_HEALTHY);
    show_active(c);
    log_returned(c, index, mono_since(c->hosts[index].ejected_at, now));
    panic_note(c->config, c->watch->log, now);
}

static void consider(struct watched *c, uint32_t index, enum outlier_trigger t, mono_ns now)
{
    struct outlier_verdict v =
        outlier_consider(&c->judge, &c->config->outlier, c->runs, index, &c->watch->rng, now);

    outlier_runs_restart(c->runs[index], t);
    if (v.guard == OUTLIER_GUARD_ALREADY_OUT)
        return;
    count(c, metrics_of[t].detected);
    if (t == OUTLIER_CONSECUTIVE_5XX)
        count(c, OUTLIER_STAT_ejections_consecutive_5xx);
    if (v.guard == OUTLIER_GUARD_NONE) {
        eject(c, index, t, &v, now);
        return;
    }
    count(c, OUTLIER_STAT_ejections_overflow);
    log_refused(c, index, t, v.guard, now);
}

/* --- the sweep --- */

static void arm_sweep(struct watched *c, mono_ns now)
{
    span_ns interval = c->config->outlier.interval;

    if (c->config->outlier.enabled)
        wheel_arm(c->watch->wheel, &c->sweep,
                  mono_after(now, interval < SWEEP_LEAST ? SWEEP_LEAST : interval));
    else
        wheel_cancel(c->watch->wheel, &c->sweep);
}

static void sweep(struct watched *c, mono_ns now)
{
    uint32_t n = outlier_sweep(&c->judge, &c->config->outlier, c->runs, c->returned, now);

    for (uint32_t i = 0; i < n; i++)
        let_back(c, c->returned[i], now);
}

static void sweep_due(struct timer *t, mono_ns now)
{
    struct watched *c = CONTAINER_OF(t, struct watched, sweep);

    sweep(c, now);
    arm_sweep(c, now);
}

/* --- what is watched --- */

static void watched_free(struct watched *c)
{
    wheel_cancel(c->watch->wheel, &c->sweep);
    cluster_state_drop(c->state);
    memory_give(c->hosts);
    memory_give(c->runs);
    memory_give(c->returned);
    memory_give(c->refusals);
    memory_give(c);
}

static struct watched *watched_create(struct outlier_watch *w, struct cluster_state *state)
{
    uint32_t hosts = state->hosts.count;
    size_t room = hosts == 0 ? 1 : hosts;
    struct watched *c = memory_take(sizeof(*c));

    if (c == NULL)
        return NULL;
    timer_init(&c->sweep, sweep_due);
    c->watch = w;
    c->state = cluster_state_take(state);
    c->hosts = memory_take_array(room, sizeof(*c->hosts));
    c->runs = memory_take_array(room, sizeof(struct outlier_runs *));
    c->returned = memory_take_array(room, sizeof(*c->returned));
    c->refusals = memory_take_array(room, sizeof(*c->refusals));
    if (c->hosts == NULL || c->runs == NULL || c->returned == NULL || c->refusals == NULL) {
        watched_free(c);
        return NULL;
    }
    for (uint32_t i = 0; i < hosts; i++)
        c->runs[i] = &state->hosts.at[i]->runs;
    outlier_init(&c->judge, c->hosts, hosts);
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

/* |state| is only compared: it may be gone. */
static struct watched *find(const struct outlier_watch *w, const void *state)
{
    struct watched **found = NULL;

    if (w->count > 0)
        found = bsearch(state, w->by_state, w->count, sizeof(*w->by_state), compare_state);
    return found == NULL ? NULL : *found;
}

static void free_unwanted(struct watched **all, uint32_t n, const struct outlier_watch *kept)
{
    for (uint32_t i = 0; i < n; i++) {
        if (all[i] != NULL && (kept == NULL || find(kept, all[i]->state) != all[i]))
            watched_free(all[i]);
    }
}

/* False: no memory; what |next| got that |w| has not is freed. */
static bool collect(struct outlier_watch *w, const struct snapshot *s, struct watched **next)
{
    for (uint32_t i = 0; i < s->cluster_count; i++) {
        struct cluster_state *state = s->clusters[i].state;

        next[i] = find(w, state);
        if (next[i] == NULL)
            next[i] = watched_create(w, state);
        if (next[i] == NULL) {
            free_unwanted(next, i, w);
            return false;
        }
    }
    return true;
}

/* Where detection was switched off, those that are out come back at once. */
static void configure(struct watched *c, const struct cluster *config, mono_ns now)
{
    bool same = c->config != NULL && c->config->outlier.enabled == config->outlier.enabled &&
                c->config->outlier.interval == config->outlier.interval;

    c->config = config;
    if (!same && !config->outlier.enabled)
        sweep(c, now);
    if (!same)
        arm_sweep(c, now);
    panic_note(config, c->watch->log, now);
}

bool outlier_watch_adopt(struct outlier_watch *w, const struct snapshot *s, mono_ns now)
{
    size_t room = s->cluster_count == 0 ? 1 : s->cluster_count;
    struct watched **next = memory_take_array(room, sizeof(struct watched *));
    struct watched **by_state = memory_take_array(room, sizeof(struct watched *));
    struct outlier_watch old = *w;

    if (next == NULL || by_state == NULL || !collect(w, s, next)) {
        memory_give(next);
        memory_give(by_state);
        return false;
    }
    for (uint32_t i = 0; i < s->cluster_count; i++)
        by_state[i] = next[i];
    qsort(by_state, s->cluster_count, sizeof(*by_state), compare_watched);
    w->all = next;
    w->by_state = by_state;
    w->count = s->cluster_count;
    for (uint32_t i = 0; i < w->count; i++)
        configure(w->all[i], &s->clusters[i], now);
    free_unwanted(old.all, old.count, w);
    memory_give(old.all);
    memory_give(old.by_state);
    return true;
}

struct outlier_watch *outlier_watch_create(struct wheel *wheel, struct log *log, uint64_t seed)
{
    struct outlier_watch *w = memory_take(sizeof(*w));

    if (w == NULL)
        return NULL;
    w->wheel = wheel;
    w->log = log;
    rng_init(&w->rng, seed);
    return w;
}

void outlier_watch_tell(struct outlier_watch *w, const struct message *m, mono_ns now)
{
    /* Envoy's order: where one failure completes two runs, the gateway one gets the host. */
    static const enum outlier_trigger order[] = {
        OUTLIER_CONSECUTIVE_GATEWAY, OUTLIER_CONSECUTIVE_5XX, OUTLIER_CONSECUTIVE_LOCAL_ORIGIN};
    struct watched *c = find(w, m->object);

    if (c == NULL || m->index >= c->judge.count)
        return;
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        if ((m->value & (uint64_t)1 << order[i]) == 0)
            continue;
        if (c->config->outlier.enabled)
            consider(c, m->index, order[i], now);
        else
            outlier_runs_restart(c->runs[m->index], order[i]);
    }
}

void outlier_watch_free(struct outlier_watch *w)
{
    if (w == NULL)
        return;
    for (uint32_t i = 0; i < w->count; i++)
        watched_free(w->all[i]);
    memory_give(w->all);
    memory_give(w->by_state);
    memory_give(w);
}
