/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange/probing.h"

#include "exchange/attempts.h"
#include "exchange/retrying.h"
#include "policy/lb.h"

/* A whole request that may reach two hosts, while some host is not trusted. */
static uint32_t pick(struct exchange *x, enum attempt_trial *trial)
{
    uint32_t host = cluster_rt_pick_probe(x->cluster);

    if (host != CLUSTER_RT_NO_HOST) {
        *trial = TRIAL_PROBE;
        return host;
    }
    host = cluster_rt_pick(x->cluster);
    if (host < CLUSTER_RT_ALL_FULL && cluster_rt_cover_suspect(x->cluster, host))
        *trial = TRIAL_SUSPECT;
    return host;
}

uint32_t probing_pick(struct exchange *x, enum attempt_trial *trial)
{
    *trial = TRIAL_NONE;
    if (cluster_rt_mistrusts(x->cluster) && x->idempotent && exchange_request_complete(x))
        return pick(x, trial);
    return cluster_rt_pick(x->cluster);
}

uint32_t probing_remedy(struct exchange *x, bool replayable)
{
    uint32_t other;

    if (attempt_present(x)->trial == TRIAL_NONE || !replayable || x->interim)
        return LB_NO_HOST;
    other = retrying_other_host(x);
    return other >= CLUSTER_RT_ALL_FULL ? LB_NO_HOST : other;
}

#define PROBE_MOST (5 * NS_PER_S) /* where nothing is known to be late */

/* Half of the request's time is left for whoever makes it good. */
static span_ns trial_within(const struct exchange *x)
{
    uint32_t us =
        atomic_load_explicit(&x->cluster->state->probe_within[x->class], memory_order_relaxed);
    span_ns passes = us == 0 ? PROBE_MOST : (span_ns)us * NS_PER_US;

    return mono_min(mono_min(passes, x->per_try_timeout), x->timeout / 2);
}

span_ns probing_timeout(struct exchange *x)
{
    return attempt_present(x)->trial != TRIAL_NONE ? trial_within(x) : x->per_try_timeout;
}

static mono_ns last_deadline(struct exchange *x)
{
    return x->per_try_timeout < x->timeout ? mono_after(attempt_asked_at(x), x->per_try_timeout)
                                           : MONO_NEVER;
}

bool probing_only_late(struct exchange *x, mono_ns now)
{
    return attempt_present(x)->trial == TRIAL_SUSPECT && now < last_deadline(x);
}

bool probing_goes_on(struct exchange *x, uint32_t other, mono_ns now)
{
    bool held = atomic_load_explicit(&x->cluster->state->retries_held, memory_order_relaxed);

    if (other != LB_NO_HOST)
        return false;
    if (x->retry != NULL && held)
        x->try_deadline = MONO_NEVER;
    else if (attempt_present(x)->trial != TRIAL_NONE)
        x->try_deadline = last_deadline(x);
    return x->try_deadline > now;
}
