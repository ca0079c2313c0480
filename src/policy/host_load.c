/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/host_load.h"

#include <math.h>
#include <stddef.h>

#define SMOOTHS_UP      5  /* a fifth: what gets worse shows soon */
#define SMOOTHS_DOWN    10 /* a tenth */
#define SMOOTHS_FAILING 5
#define SMOOTHS_TYPICAL 64
#define SMOOTHS_COMMON  128
#define FAILING_COSTS   24 /* times that: after one failure a host is left alone for 3 s */
#define MILLION         1000000u
#define BEYOND_MOST     20000u /* twenty times */
#define TYPICAL_LEAST   2000u  /* microseconds */
#define TYPICAL_MOST    4      /* one answer counts as so many times the typical one at most */

static uint32_t get(const _Atomic uint32_t *at)
{
    return atomic_load_explicit(at, memory_order_relaxed);
}

static void set(_Atomic uint32_t *at, uint32_t to)
{
    atomic_store_explicit(at, to, memory_order_relaxed);
}

/* |old| and 1 / |n| of what |new| differs from it; reaches |new| in the end. */
static uint32_t smooth(uint32_t old, uint32_t new, uint32_t n)
{
    return new > old ? old + (new - old + n - 1) / n : old - (old - new + n - 1) / n;
}

/* What is typical now. */
static uint32_t learn_typical(_Atomic uint32_t *typical, uint32_t us)
{
    uint32_t old = get(typical);
    uint32_t next;

    if (us == 0)
        us = 1;
    if (old == 0) {
        set(typical, us);
        return us;
    }
    if (us / TYPICAL_MOST > old)
        us = old * TYPICAL_MOST;
    next = smooth(old, us, SMOOTHS_TYPICAL);
    set(typical, next);
    return next;
}

/* What takes next to no time is not told apart: there scheduling is most of it. */
static uint32_t beyond(uint32_t us, uint32_t typical)
{
    uint32_t usual = typical > TYPICAL_LEAST ? typical : TYPICAL_LEAST;
    uint64_t times;

    if (us <= usual)
        return 0;
    times = (uint64_t)us * HOST_LOAD_TYPICAL / usual - HOST_LOAD_TYPICAL;
    return times > BEYOND_MOST ? BEYOND_MOST : (uint32_t)times;
}

/* What says nothing of latency does not make old latency new. */
static void learn_latency(struct host_load *l, struct host_load_typical *typical,
                          const struct evidence *s)
{
    uint32_t old = host_load_left(l, get(&l->latency), s->at);
    uint32_t new = old;

    if (s->outcome == EVIDENCE_OK)
        new = beyond(s->first_us, learn_typical(&typical->us[s->class], s->first_us));
    set(&l->latency, smooth(old, new, new > old ? SMOOTHS_UP : SMOOTHS_DOWN));
}

/*
 * What chance makes of a share that is common to all: four deviations of what is smoothed so, above
 * twice the share, which is not known well either.
 */
static uint32_t usual_of(uint32_t common)
{
    double deviation = sqrt(common * (1000 - common) / (2.0 * SMOOTHS_FAILING - 1));

    return 2 * common + (uint32_t)(4 * deviation);
}

/*
 * What is usual costs nothing. But where most hosts fail that is all there is: who fails nearly
 * always costs as much as others fail less.
 */
static uint32_t cost_of_failing(uint32_t failing, const struct host_load_typical *typical)
{
    uint32_t common = get(&typical->failing) / (MILLION / 1000);
    uint32_t usual = get(&typical->usual);
    uint32_t often = failing > usual ? failing - usual : 0;
    uint32_t always = 4 * failing > 3000 + common ? 4 * failing - 3000 - common : 0;

    return FAILING_COSTS * (often > always ? often : always);
}

uint32_t host_load_cost_of(const struct host_load *l, const struct host_load_typical *typical,
                           mono_ns now)
{
    uint32_t latency = host_load_left(l, get(&l->latency), now);
    uint32_t failing = host_load_left(l, get(&l->failing), now);

    return HOST_LOAD_TYPICAL + latency + (failing == 0 ? 0 : cost_of_failing(failing, typical));
}

/* Common is what several hosts do: one that fails again and again makes nothing common. */
static void learn_common(struct host_load_typical *typical, const struct host_load *l, bool failed)
{
    const struct host_load *last = atomic_load_explicit(&typical->failed, memory_order_relaxed);
    bool counts = failed && last != NULL && last != l;
    uint32_t common = smooth(get(&typical->failing), counts ? MILLION : 0, SMOOTHS_COMMON);

    set(&typical->failing, common);
    set(&typical->usual, usual_of(common / (MILLION / 1000)));
    if (failed)
        atomic_store_explicit(&typical->failed, l, memory_order_relaxed);
}

/* Seldom: what it needs is not paid for each time. */
__attribute__((noinline)) static void
learn_failure(struct host_load *l, struct host_load_typical *typical, bool failed, mono_ns now)
{
    uint32_t failing = host_load_left(l, get(&l->failing), now);

    set(&l->failing, smooth(failing, failed ? 1000 : 0, SMOOTHS_FAILING));
    learn_common(typical, l, failed);
}

static bool is_failure(const struct evidence *s)
{
    return s->outcome != EVIDENCE_OK && s->outcome != EVIDENCE_ABANDONED &&
           s->outcome != EVIDENCE_LATE;
}

void host_load_learn(struct host_load *l, struct host_load_typical *typical,
                     const struct evidence *s)
{
    bool failed = is_failure(s);

    if (failed || (get(&l->failing) | get(&typical->failing)) != 0)
        learn_failure(l, typical, failed, s->at);
    learn_latency(l, typical, s);
    set(&l->at, (uint32_t)(s->at / NS_PER_MS));
}
