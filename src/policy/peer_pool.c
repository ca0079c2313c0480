/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/peer_pool.h"

#include <assert.h>
#include <math.h>

#define BINS_PER_E 23.083120654223414 /* PEER_OCTAVE / ln 2 */

/* --- bins --- */

uint16_t peer_bin(uint32_t us)
{
    double bin = us == 0 ? 0 : floor(log2((double)us) * PEER_OCTAVE);

    return bin >= PEER_BINS ? PEER_BINS - 1 : (uint16_t)bin;
}

double peer_bin_us(double bin)
{
    return exp((bin + 0.5) / BINS_PER_E);
}

double peer_log_ratio(double bins)
{
    return bins / BINS_PER_E;
}

/* --- one series --- */

/* Position of the |n|-th latest; 0: the latest. */
static uint32_t latest(const struct peer_series *s, uint32_t n)
{
    return (s->next + PEER_KEPT - 1u - n) % PEER_KEPT;
}

static uint32_t recent_count(const struct peer_series *s)
{
    return s->count < PEER_RECENT ? s->count : PEER_RECENT;
}

/* --- the pool's counts --- */

static void recent_change(struct peer_pool *pool, uint16_t bin, uint32_t by)
{
    pool->recent[bin] += by;
    pool->recent_count += by;
    for (uint32_t i = bin + 1u; i <= PEER_BINS; i += i & (0u - i))
        pool->recent_sums[i] += by;
}

static void kept_change(struct peer_pool *pool, uint16_t bin, uint32_t by)
{
    pool->kept[bin] += by;
    pool->kept_count += by;
    pool->p99_above += bin >= pool->p99 ? by : 0;
    while (pool->p99 > 0 && pool->p99_above * 100 <= pool->kept_count)
        pool->p99_above += pool->kept[--pool->p99];
    while ((pool->p99_above - pool->kept[pool->p99]) * 100 > pool->kept_count)
        pool->p99_above -= pool->kept[pool->p99++];
}

#define MINUS_ONE UINT32_MAX

static void count_all(struct peer_pool *pool, const struct peer_series *s, uint32_t by)
{
    for (uint32_t n = 0; n < s->count; n++) {
        uint16_t bin = s->bin[latest(s, n)];

        kept_change(pool, bin, by);
        if (n < PEER_RECENT)
            recent_change(pool, bin, by);
    }
}

/* Those that make room for one more. */
static void count_leaving(struct peer_pool *pool, const struct peer_series *s)
{
    if (s->count >= PEER_RECENT)
        recent_change(pool, s->bin[latest(s, PEER_RECENT - 1)], MINUS_ONE);
    if (s->count == PEER_KEPT)
        kept_change(pool, s->bin[s->next], MINUS_ONE);
}

void peer_add(struct peer_pool *pool, struct peer_series *s, uint16_t bin, uint32_t when)
{
    assert(bin < PEER_BINS);
    if (s->counted) {
        count_leaving(pool, s);
        recent_change(pool, bin, 1);
        kept_change(pool, bin, 1);
    }
    s->bin[s->next] = bin;
    s->when[s->next] = when;
    s->next = (uint8_t)((s->next + 1) % PEER_KEPT);
    s->count = (uint8_t)(s->count < PEER_KEPT ? s->count + 1 : PEER_KEPT);
}

void peer_set_counted(struct peer_pool *pool, struct peer_series *s, bool counted)
{
    if (s->counted == counted)
        return;
    s->counted = counted;
    count_all(pool, s, counted ? 1 : MINUS_ONE);
}

void peer_shift(struct peer_pool *pool, struct peer_series *s, int32_t bins)
{
    if (s->counted)
        count_all(pool, s, MINUS_ONE);
    for (uint32_t n = 0; n < s->count; n++) {
        int32_t bin = s->bin[latest(s, n)] + bins;

        s->bin[latest(s, n)] = (uint16_t)(bin < 0 ? 0 : bin >= PEER_BINS ? PEER_BINS - 1 : bin);
    }
    if (s->counted)
        count_all(pool, s, 1);
}

void peer_forget(struct peer_pool *pool, struct peer_series *s)
{
    if (s->counted)
        count_all(pool, s, MINUS_ONE);
    s->count = 0;
    s->next = 0;
}

/* --- where one stands --- */

uint32_t peer_others(const struct peer_pool *pool, const struct peer_series *s)
{
    return pool->recent_count - (s->counted ? recent_count(s) : 0);
}

static uint32_t sum_below(const struct peer_pool *pool, uint16_t bin)
{
    uint32_t sum = 0;

    for (uint32_t i = bin; i > 0; i -= i & (0u - i))
        sum += pool->recent_sums[i];
    return sum;
}

double peer_rank(const struct peer_pool *pool, const struct peer_series *s, uint16_t bin)
{
    uint32_t below = sum_below(pool, bin);
    uint32_t same = pool->recent[bin];

    for (uint32_t n = 0; s->counted && n < recent_count(s); n++) {
        uint16_t own = s->bin[latest(s, n)];

        below -= own < bin;
        same -= own == bin;
    }
    return ((double)below + 0.5 * (double)same + 0.5) / ((double)peer_others(pool, s) + 1);
}

/* How many of its own that are counted are in |bin| or above. */
static uint32_t own_from(const struct peer_series *s, uint32_t bin)
{
    uint32_t count = s->counted ? s->count : 0;
    uint32_t n = 0;

    if (count == PEER_KEPT) {
        for (uint32_t i = 0; i < PEER_KEPT; i++) /* a fixed number, which is quicker */
            n += s->bin[i] >= bin;
        return n;
    }
    for (uint32_t i = 0; i < count; i++)
        n += s->bin[i] >= bin;
    return n;
}

/* That of the others is not far from that of all. */
uint32_t peer_p99(const struct peer_pool *pool, const struct peer_series *s)
{
    uint32_t others = pool->kept_count - (s->counted ? s->count : 0);
    uint32_t bin = pool->p99, above = pool->p99_above;

    if (others == 0)
        return PEER_BINS;
    while ((above - own_from(s, bin)) * 100 <= others)
        above += pool->kept[--bin];
    while ((above - pool->kept[bin] - own_from(s, bin + 1)) * 100 > others)
        above -= pool->kept[bin++];
    return bin;
}

void peer_leave_out(struct peer_pool *pool, const struct peer_series *s)
{
    for (uint32_t i = 0; s->counted && i < s->count; i++)
        kept_change(pool, s->bin[i], MINUS_ONE);
}

static void sort(uint16_t *at, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        uint16_t one = at[i];
        uint32_t to = i;

        for (; to > 0 && at[to - 1] > one; to--)
            at[to] = at[to - 1];
        at[to] = one;
    }
}

/* The |n| latest in order. */
static void take_latest(const struct peer_series *s, uint32_t n, uint16_t *out)
{
    for (uint32_t i = 0; i < n; i++)
        out[i] = s->bin[latest(s, i)];
    sort(out, n);
}

double peer_median(const struct peer_series *s, uint32_t since, uint32_t least)
{
    uint16_t sorted[PEER_KEPT];
    uint32_t n = recent_count(s);

    while (n < s->count && s->when[latest(s, n)] >= since)
        n++;
    if (n == 0 || n < least)
        return -1;
    take_latest(s, n, sorted);
    return ((double)sorted[(n - 1) / 2] + (double)sorted[n / 2]) / 2;
}

double peer_quantile(const struct peer_series *s, double q)
{
    uint16_t sorted[PEER_KEPT];
    uint32_t at = (uint32_t)ceil(q * (double)s->count);

    if (s->count == 0)
        return -1;
    take_latest(s, s->count, sorted);
    return (double)sorted[at == 0 ? 0 : at - 1];
}
