/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/normal.h"

#include <assert.h>
#include <math.h>

/* Beyond it, on either side, the tail's own approximation holds. */
#define TAIL 0.02425

static double in_the_middle(double q)
{
    double r = q * q;
    double above = -3.969683028665376e+01;
    double below = -5.447609879822406e+01;

    above = above * r + 2.209460984245205e+02;
    above = above * r - 2.759285104469687e+02;
    above = above * r + 1.383577518672690e+02;
    above = above * r - 3.066479806614716e+01;
    above = above * r + 2.506628277459239e+00;
    below = below * r + 1.615858368580409e+02;
    below = below * r - 1.556989798598866e+02;
    below = below * r + 6.680131188771972e+01;
    below = below * r - 1.328068155288572e+01;
    return q * above / (below * r + 1);
}

/* For the lower tail. */
static double in_the_tail(double p)
{
    double q = sqrt(-2 * log(p));
    double above = -7.784894002430293e-03;
    double below = 7.784695709041462e-03;

    above = above * q - 3.223964580411365e-01;
    above = above * q - 2.400758277161838e+00;
    above = above * q - 2.549732539343734e+00;
    above = above * q + 4.374664141464968e+00;
    above = above * q + 2.938163982698783e+00;
    below = below * q + 3.224671290700398e-01;
    below = below * q + 2.445134137142996e+00;
    below = below * q + 3.754408661907416e+00;
    return above / (below * q + 1);
}

double normal_quantile(double p)
{
    assert(p > 0 && p < 1);
    if (p < TAIL)
        return in_the_tail(p);
    if (p > 1 - TAIL)
        return -in_the_tail(1 - p);
    return in_the_middle(p - 0.5);
}
