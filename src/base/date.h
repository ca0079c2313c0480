/* SPDX-License-Identifier: Apache-2.0 */
/* Wall-clock times as text, UTC. */
#ifndef BASE_DATE_H
#define BASE_DATE_H

#include "base/text.h"
#include "base/units.h"

/* "2016-04-15T20:17:00.310Z" */
void date_utc(struct text *t, wall_ns at);

/* As strftime, and %f, %1f to %9f: the fraction of the second with as many digits (%f: six). */
void date_write(struct text *t, wall_ns at, struct bytes format);

#endif
