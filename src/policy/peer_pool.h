/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The latest latencies of hosts that are each other's peers in one class, and where a new one
 * stands among those of the others. Latencies are put into bins of a sixteenth of an octave
 * (4.4 %), so that a rank costs the same with ten hosts and with a thousand. Pure.
 */
#ifndef POLICY_PEER_POOL_H
#define POLICY_PEER_POOL_H

#include <stdbool.h>
#include <stdint.h>

#define PEER_KEPT   64 /* latest latencies of a host: what its peers' p99 is made of */
#define PEER_RECENT 20 /* the latest of those: what it is ranked among, and its median */

#define PEER_OCTAVE 16 /* bins */
#define PEER_BINS   (28 * PEER_OCTAVE)

/* One host's. Zeroed memory is an empty one that is not |counted|. */
struct peer_series {
    bool counted; /* peers are ranked among these */
    uint8_t count;
    uint8_t next; /* where the next one goes */
    uint16_t bin[PEER_KEPT];
    uint32_t when[PEER_KEPT]; /* number of the half second */
};

/* Of all counted series. Zeroed memory is an empty one. Fields only touched by peer_pool.c. */
struct peer_pool {
    uint32_t recent_count;
    uint32_t kept_count;
    uint32_t recent_sums[PEER_BINS + 1]; /* a Fenwick tree */
    uint32_t recent[PEER_BINS];
    uint32_t kept[PEER_BINS];
    uint32_t p99;       /* of all kept ones: the bin which at most a hundredth lies above */
    uint32_t p99_above; /* how many lie in it or above */
};

uint16_t peer_bin(uint32_t us);

/* Microseconds in the middle of a bin, and of a point between bins. */
double peer_bin_us(double bin);

/* Bins are logarithms: natural one of the ratio between two points that are |bins| apart. */
double peer_log_ratio(double bins);

/* |s| belongs to |pool|, always the same one. */
void peer_add(struct peer_pool *pool, struct peer_series *s, uint16_t bin, uint32_t when);

/* The host serves, or serves no more: its peers are ranked among its latencies, or not. */
void peer_set_counted(struct peer_pool *pool, struct peer_series *s, bool counted);

/* All of them are so many bins more, or less. */
void peer_shift(struct peer_pool *pool, struct peer_series *s, int32_t bins);

/* Its latencies are forgotten. */
void peer_forget(struct peer_pool *pool, struct peer_series *s);

/* How many recent latencies of others than |s| there are to be ranked among. */
uint32_t peer_others(const struct peer_pool *pool, const struct peer_series *s);

/*
 * The share of the others' recent latencies below |bin|, ties as half; strictly between 0 and 1.
 * Only where there are others.
 */
double peer_rank(const struct peer_pool *pool, const struct peer_series *s, uint16_t bin);

/* The bin which at most a hundredth of what the others have kept lies above; PEER_BINS: none. */
uint32_t peer_p99(const struct peer_pool *pool, const struct peer_series *s);

/* From now on |pool|, a copy, has no more of what |s| has kept: for peer_p99 alone. */
void peer_leave_out(struct peer_pool *pool, const struct peer_series *s);

/*
 * Median of the recent latencies, of all kept ones since |since| where those are more. Bins;
 * negative: fewer than |least|.
 */
double peer_median(const struct peer_series *s, uint32_t since, uint32_t least);

/* The bin with a share |q| of the kept latencies at or below it; negative: there are none. */
double peer_quantile(const struct peer_series *s, double q);

#endif
