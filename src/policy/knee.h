/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How loaded the hosts of a cluster are, learnt from how latency grows with the number of requests
 * that were under way on the host already: up to the knee it does not. Beyond it requests queue,
 * and whoever takes a host out makes the others slower. Where latency never grew there is no knee,
 * and all is well. Pure.
 *
 * Source: the latency knee of closed queueing systems (Kleinrock, "Queueing Systems" II, 1976,
 * power); measured against reports of utilisation where hosts send them.
 */
#ifndef POLICY_KNEE_H
#define POLICY_KNEE_H

#include <stdbool.h>
#include <stdint.h>

#define KNEE_LEVELS 64

/* Zeroed memory knows nothing. Fields only touched by knee.c. */
struct knee {
    double ahead;               /* under way already, the mean over the latest requests */
    double mean[KNEE_LEVELS];   /* natural logarithm of the latency to the typical one */
    double weight[KNEE_LEVELS]; /* of the requests that it is of; old ones weigh less */
};

/* A request that came behind |ahead| others took |log_ratio|. */
void knee_learn(struct knee *k, uint32_t ahead, double log_ratio);

/* From so many under way on, latency is half as much again or more; 0: not seen. */
uint32_t knee_at(const struct knee *k);

/*
 * How loaded hosts would be, if |hosts| of them carried what |serving| carry now: 1 is at the knee,
 * and 0 where there is none.
 */
double knee_load(const struct knee *k, uint32_t serving, uint32_t hosts);

#endif
