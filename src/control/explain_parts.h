/* SPDX-License-Identifier: Apache-2.0 */
/* For explain*.c only. */
#ifndef CONTROL_EXPLAIN_PARTS_H
#define CONTROL_EXPLAIN_PARTS_H

#include "base/text.h"
#include "model/snapshot.h"

/* "  ejection   ", and where a line below it begins. */
void explain_heading(struct text *t, const char *word);
void explain_next_line(struct text *t);

/* explain_detection.c: what accuses, how soon it is seen, what comes of it, how a host comes back.
 */
void explain_detection(struct text *t, const struct cluster *c);

#endif
