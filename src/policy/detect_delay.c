/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/detect_delay.h"

#include <math.h>

#include "policy/detect_parts.h"

#define OVERSHOOT   1.166
#define SIGMA_LEAST 0.05

static double answers(double threshold, double gain)
{
    return gain <= 0 ? -1 : (threshold + OVERSHOOT) / gain;
}

double detect_answers_slower(double threshold, double times, double sigma)
{
    double shift = log(times) / fmax(sigma, SIGMA_LEAST);

    return answers(threshold, fmin(shift, PLACE_MOST) - PLACE_DESIGN);
}

/* What a line that is made for a share |bad| gains a sample, in the mean. */
static double gain_of(double bad, double usual, double failing)
{
    return failing * log(bad / usual) + (1 - failing) * log((1 - bad) / (1 - usual));
}

double detect_answers_failing(double threshold, double usual, double failing)
{
    double p = fmin(fmax(usual, RATE_LEAST), 0.99);
    double some = fmin(fmax(BAD_SOME, BAD_TIMES * p), BAD_MANY);
    double gain = -1;

    if (some >= BAD_OVER_USUAL * p)
        gain = fmax(gain, gain_of(some, p, failing));
    if (BAD_MANY >= BAD_OVER_USUAL * p)
        gain = fmax(gain, gain_of(BAD_MANY, p, failing));
    return answers(threshold, gain);
}
