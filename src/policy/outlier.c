/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outlier detection. The first half learns, on any worker: atomics only, and on a healthy host
 * nothing but loads and the time of the success. The second half judges, on the control thread.
 *
 * Several workers may learn at once, so a count and the instant at which it began are two atomics
 * that cannot change together. The order of the writes sees to it that the instant is never too
 * early: a failure sets the instant before it counts, a success clears the count before the
 * instant, and the judge reads no earlier instant than the last success.
 */
#include "policy/outlier.h"

#include <assert.h>

static const char *const trigger_texts[OUTLIER_TRIGGER_COUNT] = {
    [OUTLIER_NONE] = "none",
    [OUTLIER_CONSECUTIVE_5XX] = "consecutive_5xx",
    [OUTLIER_CONSECUTIVE_GATEWAY] = "consecutive_gateway_failure",
    [OUTLIER_CONSECUTIVE_LOCAL_ORIGIN] = "consecutive_local_origin_failure",
};

static const char *const guard_texts[OUTLIER_GUARD_COUNT] = {
    [OUTLIER_GUARD_NONE] = "none",
    [OUTLIER_GUARD_ALREADY_OUT] = "already_out",
    [OUTLIER_GUARD_CAP] = "cap",
    [OUTLIER_GUARD_FEW_HEALTHY] = "few_healthy",
    [OUTLIER_GUARD_LAST_HOST] = "last_host",
};

const char *outlier_trigger_text(enum outlier_trigger t)
{
    assert(t < OUTLIER_TRIGGER_COUNT);
    return trigger_texts[t];
}

const char *outlier_guard_text(enum outlier_guard g)
{
    assert(g < OUTLIER_GUARD_COUNT);
    return guard_texts[g];
}

/* --- evidence --- */

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
}

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

/*
 * One more in the run. The bit of |t| where that completes a run of |threshold|; 0 is off. The
 * judge restarts the run, so what is complete is the first one. Only while he is behind, or where a
 * message to him was lost, is it a second or third: a dead host must not be forgotten for that.
 */
static outlier_triggers lengthen(_Atomic uint32_t *run, uint32_t threshold, enum outlier_trigger t)
{
    uint32_t length = atomic_fetch_add_explicit(run, 1, memory_order_acq_rel) + 1;

    return threshold != 0 && length % threshold == 0 ? (outlier_triggers)1 << t : 0;
}

static outlier_triggers feed_5xx(struct outlier_runs *r, const struct outlier_config *c,
                                 uint32_t status)
{
    outlier_triggers triggers = 0;

    if (status >= 502 && status <= 504)
        triggers |= lengthen(&r->run_gateway, c->consecutive_gateway, OUTLIER_CONSECUTIVE_GATEWAY);
    else
        clear(&r->run_gateway);
    return triggers | lengthen(&r->run_5xx, c->consecutive_5xx, OUTLIER_CONSECUTIVE_5XX);
}

static outlier_triggers learn_answer(struct outlier_runs *r, const struct outlier_config *c,
                                     uint32_t status, mono_ns now)
{
    clear(&r->run_local);
    clear_since(&r->refused, &r->refused_since);
    if (status >= 500) {
        count_since(&r->without_success, &r->failing_since, now);
        return feed_5xx(r, c, status);
    }
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
    return lengthen(&r->run_local, c->consecutive_local_origin, OUTLIER_CONSECUTIVE_LOCAL_ORIGIN);
}

outlier_triggers outlier_learn(struct outlier_runs *r, const struct outlier_config *c,
                               enum outlier_report report, uint32_t status, mono_ns now)
{
    if (!c->enabled)
        return 0;
    switch (report) {
    case OUTLIER_CONNECTED:
        clear_since(&r->refused, &r->refused_since);
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
    case OUTLIER_TRIGGER_COUNT:
        return;
    }
}

/* --- judgement --- */

void outlier_init(struct outlier *o, struct outlier_host *hosts, uint32_t count)
{
    *o = (struct outlier){.hosts = hosts, .count = count};
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

/* Since when there has been total evidence against a host; MONO_NEVER: there is none. */
static mono_ns total_evidence(const struct outlier_runs *r, mono_ns now)
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

/* As a peer of a host that has been failing since |trouble|. */
static bool fine(const struct outlier_runs *r, mono_ns trouble, mono_ns now)
{
    mono_ns success = atomic_load_explicit(&r->last_success, memory_order_acquire);

    return success > trouble && mono_since(success, now) <= OUTLIER_PEER_FINE_SPAN &&
           total_evidence(r, now) == MONO_NEVER;
}

/* Total evidence, and not of what is common: some peer is fine meanwhile. */
static bool alone_in_trouble(const struct outlier *o, struct outlier_runs *const *runs,
                             uint32_t index, mono_ns now)
{
    mono_ns trouble = total_evidence(runs[index], now);

    if (trouble == MONO_NEVER)
        return false;
    for (uint32_t i = 0; i < o->count; i++) {
        if (i != index && !o->hosts[i].ejected && fine(runs[i], trouble, now))
            return true;
    }
    return false;
}

static bool one_is_out_by_few_rule(const struct outlier *o)
{
    for (uint32_t i = 0; i < o->count; i++) {
        if (o->hosts[i].by_few_rule)
            return true;
    }
    return false;
}

/* How many may be out at once, the one in question included. */
static uint32_t allowed_out(const struct outlier *o, const struct outlier_config *c)
{
    uint32_t percent = c->max_ejection_percent > 100 ? 100 : c->max_ejection_percent;
    uint32_t allowed = (uint32_t)((uint64_t)o->count * percent / 100);

    return allowed == 0 && percent > 0 ? 1 : allowed;
}

static bool few_healthy(const struct outlier *o)
{
    return o->count - o->ejected < OUTLIER_FEW_HEALTHY;
}

/* The guards, hardest first. */
static enum outlier_guard guard_of(const struct outlier *o, const struct outlier_config *c,
                                   struct outlier_runs *const *runs, uint32_t index, mono_ns now)
{
    if (o->hosts[index].ejected)
        return OUTLIER_GUARD_ALREADY_OUT;
    if (o->count - o->ejected <= 1)
        return OUTLIER_GUARD_LAST_HOST;
    if (o->ejected + 1 > allowed_out(o, c))
        return OUTLIER_GUARD_CAP;
    if (few_healthy(o) && (one_is_out_by_few_rule(o) || !alone_in_trouble(o, runs, index, now)))
        return OUTLIER_GUARD_FEW_HEALTHY;
    return OUTLIER_GUARD_NONE;
}

static span_ns longest(const struct outlier_config *c)
{
    return c->max_ejection > c->base_ejection ? c->max_ejection : c->base_ejection;
}

/* base x multiplier, at most |limit|; compared by dividing, the product need not fit. */
static span_ns multiplied(span_ns base, uint32_t multiplier, span_ns limit)
{
    if (base == 0 || multiplier <= limit / base)
        return base * multiplier;
    return limit;
}

/* Envoy's rule: one more while base x multiplier < max + base, that is: while (m - 1) x base < max.
 */
static uint32_t raised(uint32_t multiplier, const struct outlier_config *c)
{
    span_ns limit = longest(c);

    if (multiplier > 0 && multiplied(c->base_ejection, multiplier - 1, limit) >= limit)
        return multiplier;
    return multiplier == UINT32_MAX ? multiplier : multiplier + 1;
}

/* In whole milliseconds, as Envoy draws it. */
static span_ns draw_jitter(span_ns most, struct rng *rng)
{
    uint64_t ms = most / NS_PER_MS;

    if (ms == 0)
        return 0;
    if (ms >= UINT32_MAX)
        ms = UINT32_MAX - 1;
    return rng_below(rng, (uint32_t)ms + 1) * NS_PER_MS;
}

struct outlier_verdict outlier_consider(struct outlier *o, const struct outlier_config *c,
                                        struct outlier_runs *const *runs, uint32_t index,
                                        struct rng *rng, mono_ns now)
{
    assert(index < o->count);

    struct outlier_host *h = &o->hosts[index];
    enum outlier_guard guard = guard_of(o, c, runs, index, now);

    if (guard != OUTLIER_GUARD_NONE)
        return (struct outlier_verdict){.guard = guard, .multiplier = h->multiplier};
    h->by_few_rule = few_healthy(o);
    h->ejected = true;
    o->ejected++;
    h->ejections++;
    h->ejected_at = now;
    h->multiplier = raised(h->multiplier, c);
    h->eject_for = mono_after(multiplied(c->base_ejection, h->multiplier, longest(c)),
                              draw_jitter(c->jitter, rng));
    assert(o->ejected < o->count);
    return (struct outlier_verdict){
        .guard = OUTLIER_GUARD_NONE, .eject_for = h->eject_for, .multiplier = h->multiplier};
}

static void let_back(struct outlier *o, uint32_t index, struct outlier_runs *r, mono_ns now)
{
    struct outlier_host *h = &o->hosts[index];

    clear(&r->run_5xx);
    clear(&r->run_gateway);
    clear(&r->run_local);
    if (!h->by_few_rule) {
        clear_since(&r->without_success, &r->failing_since);
        clear_since(&r->refused, &r->refused_since);
    }
    h->ejected = false;
    h->by_few_rule = false;
    h->returned_at = now;
    o->ejected--;
}

uint32_t outlier_sweep(struct outlier *o, const struct outlier_config *c,
                       struct outlier_runs *const *runs, uint32_t *returned, mono_ns now)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < o->count; i++) {
        struct outlier_host *h = &o->hosts[i];

        if (h->ejected && (!c->enabled || mono_since(h->ejected_at, now) >= h->eject_for)) {
            let_back(o, i, runs[i], now);
            returned[n++] = i;
        } else if (!h->ejected && h->multiplier > 0 &&
                   mono_since(h->returned_at, now) >= c->interval) {
            h->multiplier--;
        }
    }
    return n;
}
