/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange/probing.h"

#include "exchange/attempts.h"
#include "exchange/retrying.h"
#include "policy/lb.h"

uint32_t probing_pick(struct exchange *x, bool *probe)
{
    uint32_t host = LB_NO_HOST;

    if (x->idempotent && exchange_request_complete(x))
        host = cluster_rt_pick_probe(x->cluster);
    *probe = host != LB_NO_HOST;
    return *probe ? host : cluster_rt_pick(x->cluster);
}

uint32_t probing_remedy(struct exchange *x, bool replayable)
{
    uint32_t other;

    if (!attempt_present(x)->probe || !replayable || x->interim)
        return LB_NO_HOST;
    other = retrying_other_host(x);
    return other >= CLUSTER_RT_ALL_FULL ? LB_NO_HOST : other;
}

#define PROBE_MOST (5 * NS_PER_S) /* where nothing is known to be late */

/* Half of the request's time is left for whoever makes it good. */
static span_ns probe_within(const struct exchange *x)
{
    uint32_t us =
        atomic_load_explicit(&x->cluster->state->probe_within[x->class], memory_order_relaxed);
    span_ns passes = us == 0 ? PROBE_MOST : (span_ns)us * NS_PER_US;

    return mono_min(mono_min(passes, x->per_try_timeout), x->timeout / 2);
}

span_ns probing_timeout(struct exchange *x)
{
    return attempt_present(x)->probe ? probe_within(x) : x->per_try_timeout;
}
