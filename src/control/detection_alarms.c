/* SPDX-License-Identifier: Apache-2.0 */
#include "control/detection_alarms.h"

#include "policy/detection.h"

#define LATELY_SPAN 2.0 /* seconds that detect_rate |lately| is of, just after it has faded */

void detection_alarm(struct watched *c, uint32_t index, enum detect_line line)
{
    if (alarm_raise(&c->detection->notes[index].alarms[line]))
        cell_add(&c->state->outlier[OUTLIER_STAT_accusations], 1);
}

void detection_alarm_common(struct watched *c, uint32_t index, enum detect_line line)
{
    alarm_settle(&c->detection->notes[index].alarms[line]);
}

void detection_alarms_over(struct watched *c, uint32_t index)
{
    for (int line = 0; line < DETECT_LINE_COUNT; line++)
        c->detection->notes[index].alarms[line] = ALARM_NONE;
}

void detection_alarm_false(struct watched *c, mono_ns now)
{
    alarms_add(&c->detection->alarms, now);
    cell_add(&c->state->outlier[OUTLIER_STAT_false_alarms], 1);
}

static void follow(struct watched *c, uint32_t index, mono_ns now)
{
    const struct detect *judge = &c->detection->judge;

    for (int line = 0; line < DETECT_LINE_COUNT; line++) {
        if (alarm_follow(&c->detection->notes[index].alarms[line],
                         detect_sum(judge, index, (enum detect_line)line), judge->config.threshold))
            detection_alarm_false(c, now);
    }
}

static void show(struct watched *c, enum outlier_metric m, double value)
{
    atomic_store_explicit(&c->state->outlier[m], (uint64_t)(1000 * value + 0.5),
                          memory_order_relaxed);
}

void detection_alarms_turn(struct watched *c, mono_ns now)
{
    struct detection *d = c->detection;
    double rate = d->judge.lately[DETECT_OF_ERRORS].tries / LATELY_SPAN;

    for (uint32_t i = 0; i < c->roster.count; i++)
        follow(c, i, now);
    alarms_turn(&d->alarms, now);
    show(c, OUTLIER_STAT_false_alarm_rate, alarms_a_day(&d->alarms, now));
    show(c, OUTLIER_STAT_false_alarm_rate_expected,
         detection_false_alarms(d->judge.config.threshold, rate) / 7);
    show(c, OUTLIER_STAT_drift, d->judge.deviation);
}
