/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/differences.h"

#define X(name, key_, text_) {.key = key_, .text = text_},
const struct difference_info difference_info[DIFFERENCE_COUNT] = {DIFFERENCES(X)};
#undef X
