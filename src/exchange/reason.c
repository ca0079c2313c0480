/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange/reason.h"

#define X(name_, status_, flag_, details_, body_)                                                  \
    {.status = status_, .flag = FLAG_##flag_, .details = details_, .body = body_},
const struct reason_info reasons[REASON_COUNT] = {REASONS(X)};
#undef X
