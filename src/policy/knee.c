/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/knee.h"

#include <math.h>

#define AHEAD_RATE   0.005
#define WEIGHT_MOST  200.0 /* so many of the latest requests of a level count */
#define WEIGHT_LEAST 30.0  /* fewer say nothing */
#define WEIGHT_FADES 0.9995
#define GROWN        0.4054651081081644 /* ln 1.5 */

void knee_learn(struct knee *k, uint32_t ahead, double log_ratio)
{
    uint32_t level = ahead < KNEE_LEVELS ? ahead : KNEE_LEVELS - 1;
    double own;

    k->ahead += AHEAD_RATE * ((double)ahead - k->ahead);
    k->weight[level] = fmin(k->weight[level] + 1, WEIGHT_MOST);
    k->mean[level] += (log_ratio - k->mean[level]) / k->weight[level];
    own = k->weight[level];
    for (uint32_t i = 0; i < KNEE_LEVELS; i++)
        k->weight[i] *= WEIGHT_FADES;
    k->weight[level] = own;
}

/* Of levels |from| to |to|; NAN: too few requests. */
static double mean_of(const struct knee *k, uint32_t from, uint32_t to)
{
    double weight = 0, sum = 0;

    for (uint32_t i = from; i <= to; i++) {
        weight += k->weight[i];
        sum += k->weight[i] * k->mean[i];
    }
    return weight < WEIGHT_LEAST ? (double)NAN : sum / weight;
}

uint32_t knee_at(const struct knee *k)
{
    uint32_t first = 0;

    while (first + 1 < KNEE_LEVELS && !(mean_of(k, 0, first) == mean_of(k, 0, first)))
        first++;
    for (uint32_t level = first + 1; level < KNEE_LEVELS; level++) {
        if (mean_of(k, level, KNEE_LEVELS - 1) - mean_of(k, 0, first) > GROWN)
            return level;
    }
    return 0;
}

double knee_load(const struct knee *k, uint32_t serving, uint32_t hosts)
{
    uint32_t knee = knee_at(k);

    if (knee == 0)
        return 0;
    return hosts == 0 ? (double)INFINITY : k->ahead * serving / hosts / knee;
}
