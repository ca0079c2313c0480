/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One finished request as one line of text (reference/envoy-semantics.md 6.4): JSON with the keys
 * of Istio's log and our own, or Envoy's default line.
 */
#ifndef TELEMETRY_ACCESS_LINE_H
#define TELEMETRY_ACCESS_LINE_H

#include "base/text.h"
#include "telemetry/record_copy.h"

/*
 * The longest line: each byte of a text may become six ("\u0001"), each word twelve more around it,
 * and about 1200 bytes are keys and numbers, 200 more for an attempt.
 */
#define ACCESS_LINE_MAX (6 * RECORD_COPY_MAX + 8192)

/* Both end with a line feed. */
void access_line_json(struct text *t, const struct record_copy *c);
void access_line_text(struct text *t, const struct record_copy *c);

/* "2016-04-15T20:17:00.310Z" */
void access_line_time(struct text *t, wall_ns at);

#endif
