/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange/witness.h"

#include "exchange/attempts.h"
#include "policy/evidence_ring.h"
#include "policy/host.h"

/* Of an answer up to that size the last byte comes when the host sends it, not when the client
 * takes it: the whole of it lies in our buffers. */
#define SMALL_KIB 8

static bool watched(const struct exchange *x)
{
    return x->cluster->witness != NULL && x->cluster->config->detection.on;
}

static uint32_t micros(mono_ns from, mono_ns to)
{
    uint64_t us = mono_since(from, to) / NS_PER_US;

    return us >= EVIDENCE_NO_TIME ? EVIDENCE_NO_TIME - 1 : (uint32_t)us;
}

/* When the host had the whole request. */
static mono_ns asked_at(const struct exchange *x, const struct attempt *a)
{
    if (a->connected_at == MONO_NEVER)
        return a->picked_at;
    return exchange_request_complete(x) && x->complete_at > a->connected_at ? x->complete_at
                                                                            : a->connected_at;
}

static void put(struct cluster_rt *rt, const struct evidence *e)
{
    if (evidence_ring_put(rt->witness->ring, e) == EVIDENCE_PUT_TELL)
        rt->witness->tell = true;
}

static void unlink_open(struct exchange *x)
{
    if (!x->watched)
        return;
    x->watched = false;
    list_remove(&x->open);
    x->cluster->witness->open--;
}

void witness_open(struct exchange *x)
{
    if (!watched(x) || x->tunnel)
        return;
    unlink_open(x);
    x->watched = true;
    list_push_back(&x->cluster->open[x->class], &x->open);
    x->cluster->witness->open++;
}

void witness_forget(struct exchange *x)
{
    unlink_open(x);
}

static uint8_t flags_of(const struct exchange *x, const struct attempt *a)
{
    uint8_t flags = 0;

    if (x->attempt_count > 1)
        flags |= EVIDENCE_RETRY;
    if (a->connected_at != MONO_NEVER && !x->reused)
        flags |= EVIDENCE_FRESH;
    if (a->probe)
        flags |= EVIDENCE_PROBE;
    if (x->cluster->witness->late)
        flags |= EVIDENCE_DOUBTFUL;
    return flags;
}

static uint8_t class_at_end(const struct exchange *x)
{
    bool named = x->class >= CLASS_NAMED_FIRST;

    return !named && x->answer_bytes >= x->route->large_body ? (uint8_t)CLASS_LARGE : x->class;
}

/* Of a small answer the last byte counts: one that drips or hangs is as late as it is. */
static uint32_t latency(const struct exchange *x, mono_ns asked, mono_ns now)
{
    bool small = x->answer_bytes / 1024 < SMALL_KIB;

    return micros(asked, small || x->head_at == MONO_NEVER ? now : x->head_at);
}

static struct evidence evidence_of(const struct exchange *x, enum evidence_outcome outcome,
                                   mono_ns now)
{
    const struct attempt *a = &x->attempts[(x->attempt_count - 1) % RECORD_ATTEMPTS_MAX];
    mono_ns asked = asked_at(x, a);
    bool connected = a->connected_at != MONO_NEVER;

    return (struct evidence){
        .at = now,
        .cluster = x->cluster->state,
        .host = a->host,
        .class = outcome == EVIDENCE_LATE ? x->class : class_at_end(x),
        .outcome = (uint8_t)outcome,
        .flags = flags_of(x, a),
        .first_us = latency(x, asked, now),
        .last_us = outcome == EVIDENCE_OK ? micros(asked, now) : EVIDENCE_NO_TIME,
        .connect_us =
            connected && !x->reused ? micros(a->picked_at, a->connected_at) : EVIDENCE_NO_TIME,
        .queue_us = micros(a->picked_at, connected ? a->connected_at : now),
        .ahead = a->ahead,
        .kib = (uint32_t)(x->answer_bytes / 1024),
    };
}

void witness_end(struct exchange *x, enum evidence_outcome outcome, mono_ns now)
{
    struct evidence e;

    unlink_open(x);
    if (!watched(x))
        return;
    e = evidence_of(x, outcome, now);
    host_load_learn(&attempt_host(x)->load, &x->cluster->state->typical, &e);
    put(x->cluster, &e);
}

static void tell_late(struct exchange *x, mono_ns now)
{
    struct evidence e = evidence_of(x, EVIDENCE_LATE, now);

    if (attempt_present(x)->connected_at == MONO_NEVER)
        e.flags |= EVIDENCE_FRESH; /* it waits for a connection that is opened for it */
    unlink_open(x);
    put(x->cluster, &e);
}

/* The list is in the order of their beginnings. */
static void look_at(struct cluster_rt *rt, uint32_t class, mono_ns now)
{
    uint32_t after = atomic_load_explicit(&rt->state->late_after[class], memory_order_relaxed);

    while (after != 0 && !list_empty(&rt->open[class])) {
        struct exchange *x = CONTAINER_OF(rt->open[class].next, struct exchange, open);

        if (micros(asked_at(x, attempt_present(x)), now) < after)
            return;
        tell_late(x, now);
    }
}

void witness_look(struct cluster_rt *rt, mono_ns now)
{
    for (uint32_t class = 0; class < EVIDENCE_CLASS_MAX; class ++)
        look_at(rt, class, now);
}
