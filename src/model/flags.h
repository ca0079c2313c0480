/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Response flags, Envoy's names (reference/envoy-semantics.md 6.1), as bits of one word. In the
 * order in which Envoy sets those that come together: UO and URX, which say why there was no
 * further retry, before the failure of the last attempt.
 */
#ifndef MODEL_FLAGS_H
#define MODEL_FLAGS_H

#include <stdint.h>

#include "base/text.h"

#define RESPONSE_FLAGS(X)                                                                          \
    X(UH, "NoHealthyUpstream")                                                                     \
    X(UO, "UpstreamOverflow")                                                                      \
    X(URX, "UpstreamRetryLimitExceeded")                                                           \
    X(UF, "UpstreamConnectionFailure")                                                             \
    X(NR, "NoRouteFound")                                                                          \
    X(NC, "NoClusterFound")                                                                        \
    X(UT, "UpstreamRequestTimeout")                                                                \
    X(UC, "UpstreamConnectionTermination")                                                         \
    X(UPE, "UpstreamProtocolError")                                                                \
    X(LR, "LocalReset")                                                                            \
    X(SI, "StreamIdleTimeout")                                                                     \
    X(DPE, "DownstreamProtocolError")                                                              \
    X(DC, "DownstreamConnectionTermination")                                                       \
    X(OM, "OverloadManagerTerminated")                                                             \
    X(DT, "DurationTimeout")

#define X(name, long_name) FLAG_INDEX_##name,
enum flag_index { RESPONSE_FLAGS(X) FLAG_COUNT };
#undef X

#define X(name, long_name) FLAG_##name = 1u << FLAG_INDEX_##name,
enum response_flag { FLAG_NONE = 0, RESPONSE_FLAGS(X) };
#undef X

/* "UH" */
const char *flag_name(enum flag_index i);

/* "URX,UF", or "-" for none. */
void flags_write(struct text *t, uint32_t flags);
/* "UpstreamRetryLimitExceeded,UpstreamConnectionFailure", or "-". */
void flags_write_long(struct text *t, uint32_t flags);

#endif
