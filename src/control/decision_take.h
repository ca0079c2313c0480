/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decisions of a watched cluster: what is known is taken before the deed, and put into the journal
 * and the log after it. For detection*.c and outlier_deeds.c.
 */
#ifndef CONTROL_DECISION_TAKE_H
#define CONTROL_DECISION_TAKE_H

#include "control/decision.h"
#include "control/detection_say.h"

/* All that is known of member |index| now, with the verdict of every guard on an accusation by
 * |line|; DETECT_LINE_COUNT: it is not accused by its evidence. */
void decision_take(const struct watched *c, uint32_t index, enum detect_line line, mono_ns now,
                   struct decision *d);

/* The same of the fleet. */
void decision_take_fleet(const struct watched *c, mono_ns now, struct decision *d);

/* The deed is done: |d| gets what the host has become, and is told. */
void decision_done(struct watched *c, uint32_t index, enum decision_what what, struct decision *d);
void decision_tell(struct watched *c, struct decision *d);

/* Of outlier detection and by hand (OUTLIER_NONE), before and after; |guard| OUTLIER_GUARD_NONE: it
 * is out. */
void decision_take_trigger(const struct watched *c, uint32_t index, enum outlier_trigger t,
                           mono_ns now, struct decision *d);
void decision_done_trigger(struct watched *c, uint32_t index, enum outlier_guard guard,
                           struct decision *d);

/* Of a rule: before; after it decision_done. */
void decision_take_rule(const struct watched *c, uint32_t index, const struct rule_finding *f,
                        mono_ns now, struct decision *d);

/* It is in again, by the clock or by hand. */
void decision_of_return(struct watched *c, uint32_t index, enum decision_cause cause, mono_ns now);

#endif
