/* SPDX-License-Identifier: Apache-2.0 */
/* Log-linear histogram: a bin is an exponent and the five bits below the leading one. */
#include "stats/histogram.h"

#include <assert.h>

#include "stats/metrics.h"

#define SUB  (1u << HISTOGRAM_SUB_BITS)
#define LAST (HISTOGRAM_BINS - 1)

/* How far the values of |bin| are shifted: 0 for the two octaves of single values. */
static unsigned shift_of(unsigned bin)
{
    return bin < SUB ? 0 : bin / SUB - 1;
}

unsigned histogram_bin(uint64_t us)
{
    if (us < SUB)
        return (unsigned)us;

    unsigned shift = 63u - (unsigned)__builtin_clzll(us) - HISTOGRAM_SUB_BITS;

    if (shift >= HISTOGRAM_OCTAVES)
        return LAST;
    return shift * SUB + (unsigned)(us >> shift);
}

uint64_t histogram_bin_low(unsigned bin)
{
    unsigned shift = shift_of(bin);

    assert(bin < HISTOGRAM_BINS);
    return (uint64_t)(bin - shift * SUB) << shift;
}

uint64_t histogram_bin_high(unsigned bin)
{
    return histogram_bin_low(bin) + (UINT64_C(1) << shift_of(bin)) - 1;
}

/* |sum| before the bin and |count| last: a reader in between sees no more counted than summed. */
void histogram_record(struct histogram *h, uint64_t us)
{
    cell_add(&h->sum, us);
    cell_add(&h->bins[histogram_bin(us)], 1);
    cell_add(&h->count, 1);
}

/* The count is added up from the bins read, so that the two agree whatever the owner does
 * meanwhile. */
void histogram_merge(struct histogram *into, const struct histogram *from)
{
    uint64_t count = 0;

    for (unsigned i = 0; i < HISTOGRAM_BINS; i++) {
        uint64_t n = cell_read(&from->bins[i]);

        if (n == 0)
            continue;
        cell_add(&into->bins[i], n);
        count += n;
    }
    cell_add(&into->count, count);
    cell_add(&into->sum, cell_read(&from->sum));
}

/* The smallest whole number not below q x count, but for the noise of the multiplication. */
static uint64_t rank_of(double q, uint64_t count)
{
    if (!(q > 0.0))
        return 1;
    if (q >= 1.0)
        return count;

    double exact = q * (double)count;
    uint64_t rank = (uint64_t)exact;

    if (exact - (double)rank > exact * 1e-12)
        rank++;
    return rank;
}

uint64_t histogram_quantile(const struct histogram *h, double q)
{
    uint64_t count = cell_read(&h->count);
    uint64_t seen = 0;

    if (count == 0)
        return 0;

    uint64_t rank = rank_of(q, count);
    unsigned highest = 0;

    for (unsigned i = 0; i < HISTOGRAM_BINS; i++) {
        uint64_t n = cell_read(&h->bins[i]);

        if (n == 0)
            continue;
        seen += n;
        highest = i;
        if (seen >= rank)
            break;
    }
    return histogram_bin_high(highest);
}

uint64_t histogram_at_most(const struct histogram *h, uint64_t us)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < HISTOGRAM_BINS && histogram_bin_high(i) <= us; i++)
        n += cell_read(&h->bins[i]);
    return n;
}

double histogram_mean(const struct histogram *h)
{
    uint64_t count = cell_read(&h->count);

    return count == 0 ? 0.0 : (double)cell_read(&h->sum) / (double)count;
}
