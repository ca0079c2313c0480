/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detection in one cluster under watch: the workers' evidence goes to the judge (policy/detect.h),
 * what holds of its accusations becomes a share, an ejection, a return (policy/host_life.h). For
 * outlier_watch.c and outlier_deeds.c.
 */
#ifndef CONTROL_DETECTION_H
#define CONTROL_DETECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/units.h"
#include "control/outlier_deeds.h"
#include "policy/evidence.h"

/* How often the evidence is read while there is any. */
#define DETECTION_EVERY (25 * NS_PER_MS)

/*
 * The watched cluster's hosts or configuration are others now. False: no memory; detection is off
 * for it then.
 */
bool detection_adopt(struct watched *c, mono_ns now);
void detection_free(struct detection *d);

/* About member |index|, in the order of their times. */
void detection_learn(struct watched *c, uint32_t index, const struct evidence *e, mono_ns now);

/* There was evidence that is none: this proxy itself was sick. */
void detection_doubt(struct watched *c);

/* All there was is learnt. False: nothing has been under way for so long that nothing is done any
 * more before there is evidence. */
bool detection_look(struct watched *c, mono_ns now);

/* Told by whoever puts member |index| out, or lets it back, for other reasons. */
void detection_note_ejected(struct watched *c, uint32_t index, mono_ns now);
void detection_note_pardoned(struct watched *c, uint32_t index, mono_ns now);

/* Do its peers fail alike, so that no run of failures says anything of member |index|? They do not
 * where it never succeeds, and one of them does. */
bool detection_is_common(struct watched *c, uint32_t index, mono_ns now);

#endif
