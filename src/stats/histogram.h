/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log-linear histogram of microseconds (the method of HdrHistogram): 32 bins an octave, so a value
 * is known to 3.1 %, exact below 64. One writer; a reader merges what it sees.
 */
#ifndef STATS_HISTOGRAM_H
#define STATS_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

#define HISTOGRAM_SUB_BITS 5
#define HISTOGRAM_OCTAVES  28 /* up to 2^33 us, 2.4 hours; more counts in the last bin */
#define HISTOGRAM_BINS     ((HISTOGRAM_OCTAVES + 1) << HISTOGRAM_SUB_BITS)

struct histogram {
    _Atomic uint64_t bins[HISTOGRAM_BINS];
    _Atomic uint64_t count;
    _Atomic uint64_t sum; /* us */
};

/* The bin of |us|. */
unsigned histogram_bin(uint64_t us);

/* Smallest and largest value of a bin. */
uint64_t histogram_bin_low(unsigned bin);
uint64_t histogram_bin_high(unsigned bin);

/* By the owner. */
void histogram_record(struct histogram *h, uint64_t us);

/* Adds |from| to |into|; |into| is the reader's own. */
void histogram_merge(struct histogram *into, const struct histogram *from);

/*
 * The value at quantile |q| (0 to 1) in us, by nearest rank, the upper end of its bin; 0 where
 * nothing was recorded.
 */
uint64_t histogram_quantile(const struct histogram *h, double q);

/* How many were at or below |us| (by whole bins: a bin counts when its upper end is <= |us|). */
uint64_t histogram_at_most(const struct histogram *h, uint64_t us);

double histogram_mean(const struct histogram *h);

#endif
