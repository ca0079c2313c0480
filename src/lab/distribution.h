/* SPDX-License-Identifier: Apache-2.0 */
/* How long a backend works on a request: a distribution named on the command line. */
#ifndef LAB_DISTRIBUTION_H
#define LAB_DISTRIBUTION_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "base/text.h"
#include "base/units.h"

enum distribution_kind {
    DISTRIBUTION_NONE,        /* no time at all */
    DISTRIBUTION_CONST,       /* |a| */
    DISTRIBUTION_EXPONENTIAL, /* mean |a| */
    DISTRIBUTION_LOGNORMAL,   /* median |a|, |sigma| of the logarithm */
    DISTRIBUTION_UNIFORM      /* |a| to |b| */
};

struct distribution {
    enum distribution_kind kind;
    span_ns a;
    span_ns b;
    double sigma;
};

/* Longest time that can be asked for, and most that is ever drawn. */
#define DISTRIBUTION_MAX (24 * 3600 * NS_PER_S)

#define DISTRIBUTION_FORMS "none, const:5ms, exp:10ms, lognormal:10ms:0.5, uniform:1ms:20ms"

/* One of DISTRIBUTION_FORMS. NULL and |*out|, or what is wrong with it: a constant text. */
const char *distribution_parse(struct bytes text, struct distribution *out);

/* As it is parsed. */
void distribution_write(struct text *t, const struct distribution *d);

span_ns distribution_draw(const struct distribution *d, struct rng *rng);

/* An exponential number with mean 1; never 0. */
double draw_exponential(struct rng *rng);

#endif
