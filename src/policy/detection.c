/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/detection.h"

#include <assert.h>

const char *detection_profile_text(enum detection_profile p)
{
#define X(constant, name) [PROFILE_##constant] = #name,
    static const char *const text[PROFILE_COUNT] = {DETECTION_PROFILES(X)};
#undef X

    assert(p < PROFILE_COUNT);
    return text[p];
}
