/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One finished request as one line of JSON with the keys of Istio's log
 * (reference/envoy-semantics.md 6.4) and our own: the default. Formats of the operator's are in
 * access_render.h.
 */
#ifndef TELEMETRY_ACCESS_LINE_H
#define TELEMETRY_ACCESS_LINE_H

#include "base/text.h"
#include "telemetry/record_copy.h"

/*
 * The longest line: each byte of a text may become six ("\u0001"), each word twelve more around it,
 * and about 1200 bytes are keys and numbers, 200 more for an attempt.
 */
#define ACCESS_LINE_MAX (6 * RECORD_TEXT_MAX + 8192)

/* Ends with a line feed. */
void access_line_json(struct text *t, const struct record_copy *c);

#endif
