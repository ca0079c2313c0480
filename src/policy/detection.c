/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/detection.h"

#include <assert.h>
#include <math.h>

#define ADAPTIVE_LEAST_SHARE 50 /* thousandths of what is fair, for a suspect */

void detection_set_profile(struct detection_config *d, enum detection_profile profile)
{
    d->profile = profile;
    if (profile != PROFILE_ADAPTIVE)
        return;
    d->life.quick = true;
    d->life.least_share = ADAPTIVE_LEAST_SHARE;
}

const char *detection_profile_text(enum detection_profile p)
{
#define X(constant, name) [PROFILE_##constant] = #name,
    static const char *const text[PROFILE_COUNT] = {DETECTION_PROFILES(X)};
#undef X

    assert(p < PROFILE_COUNT);
    return text[p];
}

const char *detection_mode_text(enum detection_mode m)
{
    switch (m) {
    case DETECTION_ENFORCE:
        return "enforce";
    case DETECTION_OBSERVE:
        return "observe";
    }
    return "?";
}

#define WEEK_S    604800.0
#define OVERSHOOT 1.166 /* nats: a sum passes the threshold by that */

double detection_threshold(double alarms_a_week, double rate)
{
    assert(alarms_a_week > 0 && rate > 0);
    return log(rate * WEEK_S / alarms_a_week / 2) - OVERSHOOT;
}

double detection_false_alarms(double threshold, double rate)
{
    return rate * WEEK_S / (2 * exp(threshold + OVERSHOOT));
}
