/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange/witness.h"

#include "exchange/attempts.h"
#include "policy/evidence_ring.h"
#include "policy/host.h"

/* An answer up to that size lies in our buffers as a whole: its last byte comes when the host sends
 * it, not when the client takes it. */
#define SMALL_BYTES 8192

/* Of a larger body as much time counts as that part of it took, in the mean: answers of many sizes
 * can be compared. */
#define BODY_BYTES (64 * 1024.0)

static bool watched(const struct exchange *x)
{
    return x->cluster->witness != NULL && x->cluster->config->detection.on;
}

static uint32_t micros(mono_ns from, mono_ns to)
{
    uint64_t us = mono_since(from, to) / NS_PER_US;

    return us > UINT32_MAX ? UINT32_MAX : (uint32_t)us;
}

bool witness_doubts(const struct cluster_rt *rt, enum outlier_report report)
{
    return (report == OUTLIER_TIMED_OUT || report == OUTLIER_CONNECT_FAILED) &&
           rt->witness != NULL && rt->config->detection.on && rt->witness->late;
}

static void put(struct cluster_rt *rt, const struct evidence *e)
{
    enum evidence_put did = evidence_ring_put(rt->witness->ring, e);

    rt->witness->tell |= did == EVIDENCE_PUT_TELL;
    rt->witness->lost += did == EVIDENCE_LOST;
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
    if (a->trial == TRIAL_PROBE)
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

static span_ns body_time(const struct exchange *x, mono_ns now)
{
    double whole = (double)mono_since(x->head_at, now);

    if ((double)x->answer_bytes <= BODY_BYTES)
        return (span_ns)whole;
    return (span_ns)(whole * BODY_BYTES / (double)x->answer_bytes);
}

/* One that drips or hangs is as late as it is, unless its client made it so. */
static uint32_t latency(const struct exchange *x, mono_ns asked, mono_ns now)
{
    if (x->head_at == MONO_NEVER || x->answer_bytes < SMALL_BYTES)
        return micros(asked, now);
    return micros(asked, x->held_up ? x->head_at : mono_after(x->head_at, body_time(x, now)));
}

static struct evidence evidence_of(const struct exchange *x, enum evidence_outcome outcome,
                                   mono_ns now)
{
    const struct attempt *a = &x->attempts[(x->attempt_count - 1) % RECORD_ATTEMPTS_MAX];
    mono_ns asked = attempt_asked_at(x);
    bool connected = a->connected_at != MONO_NEVER;

    return (struct evidence){
        .at = now,
        .cluster = x->cluster->state,
        .host = a->host,
        .class = outcome == EVIDENCE_LATE ? x->class : class_at_end(x),
        .outcome = (uint8_t)outcome,
        .flags = flags_of(x, a),
        .first_us = latency(x, asked, now),
        .queue_us = micros(a->picked_at, connected ? a->connected_at : now),
        .ahead = a->ahead,
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

        if (micros(attempt_asked_at(x), now) < after)
            return;
        tell_late(x, now);
    }
}

void witness_look(struct cluster_rt *rt, mono_ns now)
{
    for (uint32_t class = 0; class < EVIDENCE_CLASS_MAX; class ++)
        look_at(rt, class, now);
}
