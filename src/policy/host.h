/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all workers share of one host: its health, its load, the evidence about it. Atomics only.
 * A host's health is one atomic: written by the control thread, seen by each worker at its next
 * pick.
 */
#ifndef POLICY_HOST_H
#define POLICY_HOST_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/detect.h"
#include "policy/detect_rules.h"
#include "policy/effect.h"
#include "policy/host_life.h"
#include "policy/host_load.h"
#include "policy/host_report.h"
#include "policy/limit.h"
#include "policy/outlier_judge.h"
#include "policy/outlier_runs.h"

enum host_health {
    HOST_HEALTHY,
    HOST_EJECTED,
    HOST_DRAINING, /* by hand: no new requests, whatever the judge says of it */
    HOST_ABSENT,   /* no longer configured; what is under way on it ends */
    HOST_HEALTH_COUNT
};

#define HOST_WHOLE LIFE_WHOLE /* a share: it is chosen as any other */

/* Stands beside what the judge says: both may hold at once, and each ends by itself. */
#define HOST_DRAIN_BIT 0x100u

/* What the kernel saw of the connections to a host (TCP_INFO), all workers. */
struct host_path {
    _Atomic uint64_t requests;    /* that ended on them until they were last looked at */
    _Atomic uint64_t retransmits; /* segments that were sent again meanwhile */
    _Atomic uint32_t rtt;         /* microseconds, as last seen; 0: not known */
};

struct host {
    _Alignas(64) _Atomic uint32_t health; /* enum host_health, and perhaps HOST_DRAIN_BIT */
    _Atomic uint32_t in_flight;           /* attempts on it, all workers */
    _Atomic uint32_t cut; /* thousandths of a fair share that it does not get; read where the epoch
                             has changed */
    _Atomic uint32_t credit;    /* what it has earned of it */
    _Atomic uint32_t probes;    /* requests that it may yet be given though it is out */
    _Atomic uint32_t refreshed; /* how often its connections were given up for fresh ones */
    struct host_load load;
    struct host_report report;
    struct host_path path;
    struct outlier_runs runs;
    struct limit connections; /* open to it, all workers; here and below */
    struct limit pending;     /* requests that wait for a connection to it */
    struct limit requests;    /* on its connections; kept only where they are limited */

    /* To be shown; written by the control thread. */
    _Atomic uint32_t ejections;
    _Atomic uint32_t last_trigger; /* enum outlier_trigger */
    _Atomic uint64_t ejected_at;
    _Atomic uint64_t eject_until;                      /* earliest; the sweep decides */
    _Atomic double success_rate[OUTLIER_ORIGIN_COUNT]; /* percent, of the last interval */

    struct outlier_host judged; /* control thread only, here and below */
    struct life life;
    struct detect_host *detected; /* NULL: nothing is learnt of it */
    struct effect_host *effect;   /* the same */
    struct rules_host ruled;
};

static inline void host_init(struct host *h)
{
    atomic_init(&h->health, (uint32_t)HOST_HEALTHY);
    outlier_runs_init(&h->runs);
    outlier_host_init(&h->judged);
    life_init(&h->life);
    for (unsigned i = 0; i < OUTLIER_ORIGIN_COUNT; i++)
        atomic_init(&h->success_rate[i], OUTLIER_NO_RATE);
}

/*
 * All hosts of a cluster, each in its slot. A host keeps its slot as long as anybody may think of
 * it, whatever becomes of the configuration: slots may be named where a host is meant.
 */
struct host_set {
    struct host *const *at; /* [slot]; NULL: empty */
    uint32_t count;
    _Atomic uint32_t *epoch;                 /* of the cluster; raised after any health changed */
    const struct host_load_typical *typical; /* of the cluster */
};

static inline enum host_health host_health(const struct host *h)
{
    uint32_t health = atomic_load_explicit(&h->health, memory_order_acquire);

    if ((health & HOST_DRAIN_BIT) == 0)
        return (enum host_health)health;
    return (health & ~HOST_DRAIN_BIT) == HOST_ABSENT ? HOST_ABSENT : HOST_DRAINING;
}

/* What the judge says, be it drained or not. */
static inline bool host_is_ejected(const struct host *h)
{
    uint32_t health = atomic_load_explicit(&h->health, memory_order_acquire);

    return (health & ~HOST_DRAIN_BIT) == HOST_EJECTED;
}

/* Thousandths of what is fair. */
static inline uint32_t host_share(const struct host *h)
{
    return HOST_WHOLE - atomic_load_explicit(&h->cut, memory_order_relaxed);
}

/* Next to none: what goes to it is a trial. */
static inline bool host_on_trickle(const struct host *h)
{
    return host_share(h) <= HOST_WHOLE / 8;
}

static inline bool host_is_drained(const struct host *h)
{
    return (atomic_load_explicit(&h->health, memory_order_relaxed) & HOST_DRAIN_BIT) != 0;
}

/* Control thread only, all that follow. Raises the epoch. */
static inline void host_set_bits(const struct host_set *s, uint32_t index, uint32_t bits)
{
    atomic_store_explicit(&s->at[index]->health, bits, memory_order_release);
    atomic_fetch_add_explicit(s->epoch, 1, memory_order_release);
}

static inline uint32_t host_set_drain_bit(const struct host_set *s, uint32_t index)
{
    return atomic_load_explicit(&s->at[index]->health, memory_order_relaxed) & HOST_DRAIN_BIT;
}

/* Anything but HOST_DRAINING. A drain goes on. */
static inline void host_set_health(const struct host_set *s, uint32_t index,
                                   enum host_health health)
{
    host_set_bits(s, index, host_set_drain_bit(s, index) | (uint32_t)health);
}

static inline void host_set_drain(const struct host_set *s, uint32_t index)
{
    uint32_t health = atomic_load_explicit(&s->at[index]->health, memory_order_relaxed);

    host_set_bits(s, index, health | HOST_DRAIN_BIT);
}

static inline void host_set_undrain(const struct host_set *s, uint32_t index)
{
    uint32_t health = atomic_load_explicit(&s->at[index]->health, memory_order_relaxed);

    host_set_bits(s, index, health & ~HOST_DRAIN_BIT);
}

static inline enum host_health host_set_health_of(const struct host_set *s, uint32_t index)
{
    return s->at[index] == NULL ? HOST_ABSENT : host_health(s->at[index]);
}

/* How many there are of that health, as seen now. */
static inline uint32_t host_set_count(const struct host_set *s, enum host_health health)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->count; i++)
        n += host_set_health_of(s, i) == health;
    return n;
}

#endif
