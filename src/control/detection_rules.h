/* SPDX-License-Identifier: Apache-2.0 */
/* What comes of the rules judge's findings (policy/detect_rules.h). For detection.c. */
#ifndef CONTROL_DETECTION_RULES_H
#define CONTROL_DETECTION_RULES_H

#include "control/detection_say.h"

/* |c->detection| is new, |old| (or NULL) was its before. */
void detection_rules_adopt(struct watched *c, const struct detection *old);

/* What is found against member |index| is done, or counted. */
void detection_rules_look(struct watched *c, uint32_t index, mono_ns now);

/* Does a rule that acts speak against it? */
bool detection_rules_suspect(struct watched *c, uint32_t index, mono_ns now);

#endif
