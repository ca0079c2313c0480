/* SPDX-License-Identifier: Apache-2.0 */
#include "control/host_hand.h"

#include <inttypes.h>

#include "base/list.h"
#include "base/memory.h"
#include "control/health_news.h"
#include "control/outlier_watch.h"
#include "control/panic_note.h"

#define LOOK_EVERY        (100 * NS_PER_MS) /* while a drain goes on */
#define DURATION_TEXT_MAX 64

struct host_hand {
    struct host_hand_setup setup;
    const struct snapshot *snapshot;
    struct timer look;
};

/* --- what is left --- */

struct host_rest host_rest_of(const struct host_state *h)
{
    return (struct host_rest){
        .requests = atomic_load_explicit(&h->host.in_flight, memory_order_relaxed),
        .connections = host_state_sum(h, ENDPOINT_cx_active),
    };
}

static void put_rest(struct text *t, const struct host_state *h)
{
    struct host_rest left = host_rest_of(h);

    text_u64(t, left.requests);
    text_str(t, " requests and ");
    text_u64(t, left.connections);
    text_str(t, " connections left");
}

static void log_about(const struct host_hand *h, const struct cluster *c,
                      const struct host_state *host, const char *event, const char *what)
{
    log_event(h->setup.log, LOG_INFO, event, "%.*s of cluster %.*s %s", bytes_width(host->text),
              (const char *)host->text.data, bytes_width(c->name), (const char *)c->name.data,
              what);
}

static void log_rest(const struct host_hand *h, const struct cluster *c,
                     const struct host_state *host, const char *event, const char *what)
{
    char room[160];
    struct text t;

    text_init(&t, room, sizeof(room));
    text_str(&t, what);
    put_rest(&t, host);
    log_about(h, c, host, event, text_end(&t));
}

static void log_drained(const struct host_hand *h, const struct cluster *c,
                        const struct host_state *host, mono_ns now)
{
    span_ns took = mono_since(host->drain_since, now);
    char room[DURATION_TEXT_MAX + 64];
    struct text t;

    text_init(&t, room, sizeof(room));
    text_str(&t, "is drained: nothing is left on it, after ");
    text_duration(&t, took - took % NS_PER_MS);
    log_about(h, c, host, "endpoint.drained", text_end(&t));
}

/* --- while a drain goes on --- */

/* What is idle is closed now, not at the next request. A full mailbox is tried again. */
static void tell_workers(const struct host_hand *h, struct cluster_state *state)
{
    health_news(h->setup.workers, h->setup.worker_count, state);
}

static bool is_draining(const struct host_state *host)
{
    return host->drain_since != 0 && !host->drained;
}

/* Is there something left on |host| to wait for? */
static bool look_at_host(const struct host_hand *h, const struct cluster *c,
                         struct host_state *host, mono_ns now)
{
    struct host_rest left = host_rest_of(host);

    if (left.requests > 0 || left.connections > 0)
        return true;
    host->drained = true;
    log_drained(h, c, host, now);
    return false;
}

static bool look_at_cluster(const struct host_hand *h, const struct cluster *c, mono_ns now)
{
    bool left = false;

    for (uint32_t i = 0; i < c->endpoint_count; i++) {
        struct host_state *host = host_state_of(c->hosts.at[c->endpoints[i].slot]);

        if (is_draining(host))
            left = look_at_host(h, c, host, now) || left;
    }
    if (left)
        tell_workers(h, c->state);
    return left;
}

static void look_around(struct timer *t, mono_ns now)
{
    struct host_hand *h = CONTAINER_OF(t, struct host_hand, look);
    bool left = false;

    for (uint32_t i = 0; h->snapshot != NULL && i < h->snapshot->cluster_count; i++)
        left = look_at_cluster(h, &h->snapshot->clusters[i], now) || left;
    if (left)
        wheel_arm(h->setup.wheel, &h->look, mono_after(now, LOOK_EVERY));
}

/* --- orders --- */

static uint32_t find_host(const struct cluster *c, struct bytes text)
{
    for (uint32_t i = 0; i < c->endpoint_count; i++)
        if (bytes_equal(c->endpoints[i].text, text))
            return c->endpoints[i].slot;
    return HOST_NO_SLOT;
}

static void warn_if_nobody_serves(const struct cluster *c, struct text *said)
{
    if (host_set_count(&c->hosts, HOST_HEALTHY) == 0)
        text_str(said, "; no healthy host is left in this cluster");
}

static enum host_answer drain(struct host_hand *h, const struct cluster *c, uint32_t slot,
                              struct text *said, mono_ns now)
{
    struct host_state *host = host_state_of(c->hosts.at[slot]);
    bool already = host_is_drained(&host->host);

    text_str(said, already ? "already draining: " : "draining: ");
    put_rest(said, host);
    if (already)
        return HOST_ANSWER_ALREADY;
    host_set_drain(&c->hosts, slot);
    host->drain_since = now;
    host->host.judged.drained = true;
    host->drained = false;
    warn_if_nobody_serves(c, said);
    log_rest(h, c, host, "endpoint.draining", "gets no new requests, by hand; ");
    outlier_watch_note_drain(h->setup.watch, c->state, slot);
    panic_note(c, h->setup.log, now);
    tell_workers(h, c->state);
    wheel_arm(h->setup.wheel, &h->look, mono_after(now, NS_PER_MS));
    return HOST_ANSWER_DONE;
}

static enum host_answer undrain(struct host_hand *h, const struct cluster *c, uint32_t slot,
                                struct text *said, mono_ns now)
{
    struct host_state *host = host_state_of(c->hosts.at[slot]);

    if (!host_is_drained(&host->host)) {
        text_str(said, "it was not draining");
        return HOST_ANSWER_ALREADY;
    }
    host_set_undrain(&c->hosts, slot);
    outlier_watch_note_undrain(h->setup.watch, c->state, slot, mono_since(host->drain_since, now));
    host->drain_since = 0;
    host->host.judged.drained = false;
    text_str(said, host_is_ejected(&host->host) ? "no longer draining, but ejected" : "in again");
    log_about(h, c, host, "endpoint.undrained", "gets requests again, by hand");
    panic_note(c, h->setup.log, now);
    return HOST_ANSWER_DONE;
}

/* As the judge would on evidence: the cap, the last host and few healthy ones are his to weigh. */
static enum host_answer eject(struct host_hand *h, const struct cluster *c, uint32_t slot,
                              struct text *said, mono_ns now)
{
    enum outlier_guard guard;

    if (!outlier_watch_on(h->setup.watch, c->state)) {
        text_str(said,
                 "outlier detection is off in this cluster: nobody would let it back; drain it");
        return HOST_ANSWER_REFUSED;
    }
    guard = outlier_watch_eject(h->setup.watch, c->state, slot, now);
    if (guard == OUTLIER_GUARD_NONE) {
        text_str(said, "ejected");
        return HOST_ANSWER_DONE;
    }
    text_str(said, "not ejected, because of ");
    text_str(said, outlier_guard_text(guard));
    return guard == OUTLIER_GUARD_ALREADY_OUT ? HOST_ANSWER_ALREADY : HOST_ANSWER_REFUSED;
}

static enum host_answer pardon(struct host_hand *h, const struct cluster *c, uint32_t slot,
                               struct text *said, mono_ns now)
{
    bool was_out = outlier_watch_pardon(h->setup.watch, c->state, slot, now);

    text_str(said, was_out ? "in again" : "it was not ejected");
    return was_out ? HOST_ANSWER_DONE : HOST_ANSWER_ALREADY;
}

enum host_answer host_hand_obey(struct host_hand *h, const struct host_order *order,
                                struct text *said, mono_ns now)
{
    const struct cluster *c =
        h->snapshot == NULL ? NULL : snapshot_find_cluster(h->snapshot, order->cluster);
    uint32_t slot;

    if (c == NULL)
        return HOST_ANSWER_NO_CLUSTER;
    slot = find_host(c, order->host);
    if (slot == HOST_NO_SLOT)
        return HOST_ANSWER_NO_HOST;
    switch (order->deed) {
    case HOST_DEED_DRAIN:
        return drain(h, c, slot, said, now);
    case HOST_DEED_UNDRAIN:
        return undrain(h, c, slot, said, now);
    case HOST_DEED_EJECT:
        return eject(h, c, slot, said, now);
    case HOST_DEED_PARDON:
        return pardon(h, c, slot, said, now);
    }
    return HOST_ANSWER_NO_HOST;
}

/* --- life --- */

void host_hand_adopt(struct host_hand *h, const struct snapshot *s)
{
    h->snapshot = s;
}

struct host_hand *host_hand_create(const struct host_hand_setup *setup)
{
    struct host_hand *h = memory_take(sizeof(*h));

    if (h == NULL)
        return NULL;
    h->setup = *setup;
    timer_init(&h->look, look_around);
    return h;
}

void host_hand_free(struct host_hand *h)
{
    if (h == NULL)
        return;
    wheel_cancel(h->setup.wheel, &h->look);
    memory_give(h);
}
