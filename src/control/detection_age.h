/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request that stays open may hang on its connection or on its host. So at the first late one the
 * host's connections are given up (idle ones at once, busy ones after their request), and only
 * where fresh ones do no better is the host accused. For detection.c.
 */
#ifndef CONTROL_DETECTION_AGE_H
#define CONTROL_DETECTION_AGE_H

#include "control/detection_say.h"

/* False: it is of a connection that is given up, and fresh ones work: it says nothing. */
bool detection_age_learn(struct watched *c, uint32_t index, const struct evidence *e, mono_ns now);

/* Had fresh connections their chance? */
bool detection_age_accuses(const struct watched *c, uint32_t index, mono_ns now);

#endif
