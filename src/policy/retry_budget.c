/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/retry_budget.h"

#include <assert.h>

/*
 * The word: the debt in thousandths of a token, below the millisecond up to which the floor has
 * been paid in. F tokens a second are F thousandths a millisecond, so nothing is ever rounded. An
 * instant that does not fit (after 34 years) is the last one that does: the floor stands still.
 */
#define TOKEN     UINT64_C(1000)
#define DEBT_BITS 24
#define DEBT_MASK ((UINT64_C(1) << DEBT_BITS) - 1)
#define TIME_MAX  (UINT64_MAX >> DEBT_BITS)

static_assert(RETRY_BUDGET_CAPACITY_MAX * TOKEN <= DEBT_MASK, "the largest debt fits");

static uint64_t debt_of(uint64_t word)
{
    return word & DEBT_MASK;
}

static uint64_t time_of(uint64_t word)
{
    return word >> DEBT_BITS;
}

static uint64_t pack(uint64_t debt, uint64_t time)
{
    assert(debt <= DEBT_MASK && time <= TIME_MAX);
    return time << DEBT_BITS | debt;
}

static uint64_t less(uint64_t debt, uint64_t paid)
{
    return paid < debt ? debt - paid : 0;
}

static uint64_t in_ms(mono_ns now)
{
    uint64_t ms = now / NS_PER_MS;

    return ms < TIME_MAX ? ms : TIME_MAX;
}

/* The debt at |ms|: what is owed, less the floor not yet paid in. */
static uint64_t debt_at(uint64_t word, uint32_t rate, uint64_t ms)
{
    uint64_t debt = debt_of(word);
    uint64_t elapsed = ms > time_of(word) ? ms - time_of(word) : 0;

    /* Compared by dividing: elapsed * rate need not fit. */
    if (rate != 0 && elapsed > debt / rate)
        return 0;
    return less(debt, elapsed * rate);
}

void retry_budget_init(struct retry_budget *b)
{
    atomic_init(&b->word, 0);
}

/*
 * Needs no clock: payments that stop at a debt of nothing give the same in any order, so the floor
 * may follow.
 */
static void pay(struct retry_budget *b, uint64_t amount)
{
    uint64_t word = atomic_load_explicit(&b->word, memory_order_relaxed);

    while (debt_of(word) != 0 && amount != 0) {
        uint64_t paid = pack(less(debt_of(word), amount), time_of(word));

        if (atomic_compare_exchange_weak_explicit(&b->word, &word, paid, memory_order_relaxed,
                                                  memory_order_relaxed))
            return;
    }
}

void retry_budget_earn(struct retry_budget *b, const struct retry_budget_config *c)
{
    pay(b, c->earn_permille);
}

/*
 * A debt beyond a capacity that was made smaller stays: were it cut, making it smaller and larger
 * in turn would give tokens away.
 */
bool retry_budget_spend(struct retry_budget *b, const struct retry_budget_config *c, mono_ns now)
{
    uint64_t word = atomic_load_explicit(&b->word, memory_order_relaxed);
    uint64_t ms = in_ms(now);

    assert(c->capacity <= RETRY_BUDGET_CAPACITY_MAX);
    for (;;) {
        uint64_t debt = debt_at(word, c->floor_per_s, ms) + TOKEN;
        uint64_t time = ms > time_of(word) ? ms : time_of(word);

        if (debt > c->capacity * TOKEN)
            return false;
        if (atomic_compare_exchange_weak_explicit(&b->word, &word, pack(debt, time),
                                                  memory_order_relaxed, memory_order_relaxed))
            return true;
    }
}

void retry_budget_refund(struct retry_budget *b)
{
    pay(b, TOKEN);
}

uint32_t retry_budget_tokens(const struct retry_budget *b, const struct retry_budget_config *c,
                             mono_ns now)
{
    uint64_t word = atomic_load_explicit(&b->word, memory_order_relaxed);

    return (uint32_t)(less(c->capacity * TOKEN, debt_at(word, c->floor_per_s, in_ms(now))) / TOKEN);
}

uint32_t retry_share_max(const struct retry_share *s, uint64_t requests)
{
    uint64_t share;

    assert(s->permille <= 1000);
    share = requests > UINT64_MAX / 1000 ? UINT32_MAX : requests * s->permille / 1000;
    if (share < s->least)
        return s->least;
    return share < UINT32_MAX ? (uint32_t)share : UINT32_MAX;
}
