/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Atomics only; on a healthy host nothing but loads, the time of the success, and one or two counts
 * of the interval's requests.
 *
 * Several workers may learn at once, so a count and the instant at which it began are two atomics
 * that cannot change together. The order of the writes sees to it that the instant is never too
 * early: a failure sets the instant before it counts, a success clears the count before the
 * instant, and the judge reads no earlier instant than the last success.
 */
#include "policy/outlier_runs.h"

void outlier_runs_init(struct outlier_runs *r)
{
    atomic_init(&r->run_5xx, 0);
    atomic_init(&r->run_gateway, 0);
    atomic_init(&r->run_local, 0);
    atomic_init(&r->without_success, 0);
    atomic_init(&r->refused, 0);
    atomic_init(&r->failing_since, MONO_NEVER);
    atomic_init(&r->refused_since, MONO_NEVER);
    atomic_init(&r->last_success, 0);
    for (unsigned i = 0; i < OUTLIER_ORIGIN_COUNT; i++) {
        atomic_init(&r->buckets[i].success, 0);
        atomic_init(&r->buckets[i].failure, 0);
    }
}

/* --- learning --- */

/* Writes only where there is something to clear: the line stays shared between the workers. */
static void clear(_Atomic uint32_t *run)
{
    if (atomic_load_explicit(run, memory_order_relaxed) != 0)
        atomic_store_explicit(run, 0, memory_order_release);
}

static void clear_since(_Atomic uint32_t *count, _Atomic uint64_t *since)
{
    clear(count);
    if (atomic_load_explicit(since, memory_order_relaxed) != MONO_NEVER)
        atomic_store_explicit(since, MONO_NEVER, memory_order_release);
}

static void count_since(_Atomic uint32_t *count, _Atomic uint64_t *since, mono_ns now)
{
    uint64_t never = MONO_NEVER;

    if (atomic_load_explicit(since, memory_order_relaxed) == MONO_NEVER)
        atomic_compare_exchange_strong_explicit(since, &never, now, memory_order_acq_rel,
                                                memory_order_relaxed);
    atomic_fetch_add_explicit(count, 1, memory_order_acq_rel);
}

static void count_one(_Atomic uint32_t *requests)
{
    atomic_fetch_add_explicit(requests, 1, memory_order_relaxed);
}

/*
 * One more in the run. The bit of |t| where that completes a run of |threshold|; 0 is off. The
 * judge restarts the run, so what is complete is the first one. Only while he is behind, or where a
 * message to him was lost, is it a second or third: a dead host must not be forgotten for that.
 */
static outlier_triggers lengthen(_Atomic uint32_t *run, uint32_t threshold, enum outlier_trigger t)
{
    uint32_t length = atomic_fetch_add_explicit(run, 1, memory_order_acq_rel) + 1;

    return threshold != 0 && length % threshold == 0 ? outlier_bit(t) : 0;
}

static outlier_triggers feed_5xx(struct outlier_runs *r, const struct outlier_config *c,
                                 uint32_t status)
{
    outlier_triggers triggers = 0;

    count_one(&r->buckets[OUTLIER_EXTERNAL].failure);
    if (status >= 502 && status <= 504)
        triggers |= lengthen(&r->run_gateway, c->consecutive_gateway, OUTLIER_CONSECUTIVE_GATEWAY);
    else
        clear(&r->run_gateway);
    return triggers | lengthen(&r->run_5xx, c->consecutive_5xx, OUTLIER_CONSECUTIVE_5XX);
}

/* What an answer counts as: an error with its own code, or 500 where that is below; else 200. */
static uint32_t counted_status(const struct outlier_codes *codes, uint32_t status)
{
    uint32_t at = status - OUTLIER_CODE_FIRST;

    if (!codes->given)
        return status;
    if (at > OUTLIER_CODE_LAST - OUTLIER_CODE_FIRST || (codes->bits[at / 64] >> at % 64 & 1) == 0)
        return 200;
    return status >= 500 ? status : 500;
}

static outlier_triggers learn_answer(struct outlier_runs *r, const struct outlier_config *c,
                                     uint32_t answered, mono_ns now)
{
    uint32_t status = counted_status(&c->codes, answered);

    clear(&r->run_local);
    clear_since(&r->refused, &r->refused_since);
    if (status >= 500) {
        count_since(&r->without_success, &r->failing_since, now);
        return feed_5xx(r, c, status);
    }
    count_one(&r->buckets[OUTLIER_EXTERNAL].success);
    atomic_store_explicit(&r->last_success, now, memory_order_release);
    clear_since(&r->without_success, &r->failing_since);
    clear(&r->run_gateway);
    clear(&r->run_5xx);
    return 0;
}

/* |as_status|: what it counts as where local-origin failures are not kept apart. */
static outlier_triggers learn_local(struct outlier_runs *r, const struct outlier_config *c,
                                    uint32_t as_status, mono_ns now)
{
    count_since(&r->without_success, &r->failing_since, now);
    if (!c->split)
        return feed_5xx(r, c, as_status);
    count_one(&r->buckets[OUTLIER_LOCAL].failure);
    return lengthen(&r->run_local, c->consecutive_local_origin, OUTLIER_CONSECUTIVE_LOCAL_ORIGIN);
}

static void learn_ready(struct outlier_runs *r, const struct outlier_config *c)
{
    if (!c->split)
        return;
    count_one(&r->buckets[OUTLIER_LOCAL].success);
    if (as_envoy(c->differences, DIFFERENCE_CONNECT_ENDS_LOCAL_RUN))
        clear(&r->run_local);
}

outlier_triggers outlier_learn(struct outlier_runs *r, const struct outlier_config *c,
                               enum outlier_report report, uint32_t status, mono_ns now)
{
    if (!c->enabled)
        return 0;
    switch (report) {
    case OUTLIER_CONNECTED:
        clear_since(&r->refused, &r->refused_since);
        learn_ready(r, c);
        return 0;
    case OUTLIER_REUSED:
        learn_ready(r, c);
        return 0;
    case OUTLIER_ANSWERED:
        return learn_answer(r, c, status, now);
    case OUTLIER_TIMED_OUT:
        return learn_local(r, c, 504, now);
    case OUTLIER_CONNECT_FAILED:
        count_since(&r->refused, &r->refused_since, now);
        return learn_local(r, c, 503, now);
    case OUTLIER_RESET:
        return learn_local(r, c, 503, now);
    }
    return 0;
}

/* --- for the judge --- */

void outlier_runs_restart(struct outlier_runs *r, enum outlier_trigger t)
{
    switch (t) {
    case OUTLIER_CONSECUTIVE_5XX:
        clear(&r->run_5xx);
        return;
    case OUTLIER_CONSECUTIVE_GATEWAY:
        clear(&r->run_gateway);
        return;
    case OUTLIER_CONSECUTIVE_LOCAL_ORIGIN:
        clear(&r->run_local);
        return;
    case OUTLIER_NONE:
    case OUTLIER_DETECTED:
    case OUTLIER_SUCCESS_RATE:
    case OUTLIER_SUCCESS_RATE_LOCAL_ORIGIN:
    case OUTLIER_FAILURE_PERCENTAGE:
    case OUTLIER_FAILURE_PERCENTAGE_LOCAL_ORIGIN:
    case OUTLIER_TRIGGER_COUNT:
        return;
    }
}

void outlier_runs_restart_all(struct outlier_runs *r)
{
    clear(&r->run_5xx);
    clear(&r->run_gateway);
    clear(&r->run_local);
}

void outlier_runs_forgive(struct outlier_runs *r)
{
    outlier_runs_restart_all(r);
    clear_since(&r->without_success, &r->failing_since);
    clear_since(&r->refused, &r->refused_since);
}

struct outlier_count outlier_runs_take(struct outlier_runs *r, enum outlier_origin origin)
{
    struct outlier_bucket *b = &r->buckets[origin];
    uint64_t success = atomic_exchange_explicit(&b->success, 0, memory_order_relaxed);
    uint64_t failure = atomic_exchange_explicit(&b->failure, 0, memory_order_relaxed);

    return (struct outlier_count){.total = success + failure, .success = success};
}

/* Since when |count| has been growing, where it is |attempts| or more; else MONO_NEVER. */
static mono_ns lasting_since(const struct outlier_runs *r, const _Atomic uint32_t *count,
                             const _Atomic uint64_t *since, uint32_t attempts)
{
    uint32_t n = atomic_load_explicit(count, memory_order_acquire);
    mono_ns from = atomic_load_explicit(since, memory_order_acquire);
    mono_ns success = atomic_load_explicit(&r->last_success, memory_order_relaxed);

    if (n < attempts)
        return MONO_NEVER;
    return from > success ? from : success;
}

mono_ns outlier_total_evidence(const struct outlier_runs *r, mono_ns now)
{
    mono_ns failing =
        lasting_since(r, &r->without_success, &r->failing_since, OUTLIER_FAILING_ATTEMPTS);
    mono_ns refused = lasting_since(r, &r->refused, &r->refused_since, OUTLIER_REFUSED_ATTEMPTS);

    if (mono_since(failing, now) >= OUTLIER_FAILING_SPAN)
        return failing;
    if (mono_since(refused, now) >= OUTLIER_REFUSED_SPAN)
        return refused;
    return MONO_NEVER;
}

bool outlier_fine(const struct outlier_runs *r, mono_ns trouble, mono_ns now)
{
    mono_ns success = atomic_load_explicit(&r->last_success, memory_order_acquire);

    return success > trouble && mono_since(success, now) <= OUTLIER_PEER_FINE_SPAN &&
           outlier_total_evidence(r, now) == MONO_NEVER;
}
