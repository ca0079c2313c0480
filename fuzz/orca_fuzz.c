/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load reports, as hosts send them. Oracles: whatever is taken says something, shares are shares,
 * names are clean, and the same value with its field's own name (binary) is read alike.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "codec/orca.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_share(double share)
{
    assert(share == LOAD_NOT_SAID || (isfinite(share) && share >= 0));
}

static void check(const struct load_report *r)
{
    check_share(r->cpu);
    check_share(r->memory);
    check_share(r->application);
    assert(r->named_count <= LOAD_NAMED_MAX);
    assert(r->cpu >= 0 || r->memory >= 0 || r->application >= 0 || r->named_count > 0);
    for (uint32_t i = 0; i < r->named_count; i++) {
        const struct load_named *n = &r->named[i];

        assert(n->len > 0 && n->len <= LOAD_NAME_MAX && strlen(n->name) == n->len);
        assert(fabs(n->value) <= LOAD_VALUE_MAX && strpbrk(n->name, " \"\\\r\n") == NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes value = bytes_from(data, size);
    struct load_report r, alone;

    if (!orca_read(value, &r))
        return 0;
    check(&r);
    if (!bytes_start_with(value, BYTES("BIN ")))
        return 0;
    assert(orca_read_binary(bytes_skip(value, 4), &alone));
    assert(alone.cpu == r.cpu && alone.named_count == r.named_count);
    return 0;
}
