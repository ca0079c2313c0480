/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/panic.h"

#include <assert.h>

#define OVERPROVISIONING 140 /* percent; Envoy's default, which Istio leaves as it is */

const char *panic_policy_text(enum panic_policy p)
{
#define X(constant, name) [PANIC_##constant] = #name,
    static const char *const names[PANIC_POLICY_COUNT] = {PANIC_POLICIES(X)};
#undef X

    assert(p < PANIC_POLICY_COUNT);
    return names[p];
}

static uint64_t threshold(const struct panic_config *c)
{
    return c->threshold < 100 ? c->threshold : 100;
}

bool panic_is_on(const struct panic_config *c, uint32_t healthy, uint32_t hosts)
{
    if (hosts == 0 || (uint64_t)OVERPROVISIONING * healthy / hosts >= 100)
        return false;
    return (uint64_t)100 * healthy < threshold(c) * hosts;
}

uint32_t panic_floor(const struct panic_config *c, uint32_t hosts)
{
    uint32_t least = (uint32_t)((threshold(c) * hosts + 99) / 100);

    return least == 0 && hosts > 0 ? 1 : least;
}
