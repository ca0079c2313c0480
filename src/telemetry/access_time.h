/* SPDX-License-Identifier: Apache-2.0 */
/* Times of the access log, UTC. */
#ifndef TELEMETRY_ACCESS_TIME_H
#define TELEMETRY_ACCESS_TIME_H

#include "base/text.h"
#include "base/units.h"

/* "2016-04-15T20:17:00.310Z" */
void access_time_default(struct text *t, wall_ns at);

/* As strftime, and %f, %1f to %9f: the fraction of the second with as many digits (%f: six). */
void access_time_write(struct text *t, wall_ns at, struct bytes format);

#endif
