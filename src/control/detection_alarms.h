/* SPDX-License-Identifier: Apache-2.0 */
/* False alarms of one cluster under watch (policy/alarms.h), and the gauges of them. For
 * detection.c and effect_watch.c. */
#ifndef CONTROL_DETECTION_ALARMS_H
#define CONTROL_DETECTION_ALARMS_H

#include "control/detection_say.h"

/* Line |line| is past the threshold at member |index|, whatever comes of it. */
void detection_alarm(struct watched *c, uint32_t index, enum detect_line line);

/* It is what others have as well. */
void detection_alarm_common(struct watched *c, uint32_t index, enum detect_line line);

/* It went out, or was let back: what came of that is for effect_watch.c to see. */
void detection_alarms_over(struct watched *c, uint32_t index);

/* Its ejection by a line of evidence was for nothing. */
void detection_alarm_false(struct watched *c, mono_ns now);

/* A half second is over. */
void detection_alarms_turn(struct watched *c, mono_ns now);

#endif
