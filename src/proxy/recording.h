/* SPDX-License-Identifier: Apache-2.0 */
/* What is counted and written down when a request is over: once each (law 6). */
#ifndef PROXY_RECORDING_H
#define PROXY_RECORDING_H

#include "proxy/stream.h"

void recording_make(struct stream *s);

/* A message that never became a request (malformed, too slow): its answer counted and written down.
 */
void recording_make_reject(struct downstream *d, uint32_t status, uint32_t flags,
                           const char *details);

/* The same of one whose head, in |worker->head|, is good. */
void recording_make_refusal(struct downstream *d, enum reason reason);

#endif
