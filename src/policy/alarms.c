/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/alarms.h"

#include <math.h>

#include "policy/detect.h"

#define GONE 0.25 /* of the threshold */
#define HOUR (3600 * NS_PER_S)

/* A sum does not grow beyond DETECT_SUM_MOST thresholds: there it has grown by half of one. */
static bool is_borne_out(double sum, double threshold)
{
    return sum >= 0.999 * DETECT_SUM_MOST * threshold;
}

bool alarm_raise(enum alarm *a)
{
    if (*a != ALARM_NONE)
        return false;
    *a = ALARM_OPEN;
    return true;
}

void alarm_settle(enum alarm *a)
{
    if (*a == ALARM_OPEN)
        *a = ALARM_SETTLED;
}

bool alarm_follow(enum alarm *a, double sum, double threshold)
{
    bool was_open = *a == ALARM_OPEN;

    if (*a == ALARM_NONE)
        return false;
    if (is_borne_out(sum, threshold))
        alarm_settle(a);
    if (sum > GONE * threshold)
        return false;
    *a = ALARM_NONE;
    return was_open;
}

void alarms_turn(struct alarms *a, mono_ns now)
{
    uint64_t hour = now / HOUR;

    if (!a->began) {
        *a = (struct alarms){.began = true, .since = now, .hour = hour};
        return;
    }
    for (uint64_t h = a->hour + 1; h <= hour && h <= a->hour + ALARMS_HOURS; h++)
        a->by_hour[h % ALARMS_HOURS] = 0;
    a->hour = hour;
}

void alarms_add(struct alarms *a, mono_ns now)
{
    alarms_turn(a, now);
    a->by_hour[a->hour % ALARMS_HOURS]++;
}

double alarms_a_day(const struct alarms *a, mono_ns now)
{
    double hours = fmax((double)mono_since(a->since, now) / (double)HOUR, 1);
    /* The hour under way has only begun. */
    double kept = ALARMS_HOURS - 1 + (double)(now % HOUR) / (double)HOUR;
    uint64_t n = 0;

    for (uint32_t h = 0; h < ALARMS_HOURS; h++)
        n += a->by_hour[h];
    return (double)n * 24 / fmin(hours, kept);
}
