/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why is it out, why is it still in: what is known of a host now, what each guard would say, how
 * long detection would take at its present rate, and what was decided of it. Control thread only.
 */
#ifndef CONTROL_WHY_H
#define CONTROL_WHY_H

#include "base/text.h"
#include "control/journal.h"
#include "control/outlier_watch.h"

#define WHY_HOST_ROOM     24576 /* of all that is said of one host but its decisions */
#define WHY_DECISION_ROOM (DECISION_WORDS_ROOM * 2)

/* In a line: how it is, and the nearest evidence against it. */
void why_line(const struct outlier_watch *w, const struct cluster *c, uint32_t endpoint,
              mono_ns now, struct text *t);

/* All of it. */
void why_host(const struct outlier_watch *w, const struct cluster *c, uint32_t endpoint,
              mono_ns now, struct text *t);

/* The same as one JSON object. */
void why_json(const struct outlier_watch *w, const struct cluster *c, uint32_t endpoint,
              mono_ns now, struct text *t);

/* One decision: when, in words, and what would change it. */
void why_decision(const struct decision *d, struct text *t);

#endif
