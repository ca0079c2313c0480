/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes requests on one connection. Oracles: how the bytes are cut does not matter; all views
 * point into the input; a head that was taken is taken again, alike, as it would be written.
 */
#include "../tests/codec/http1_feed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes in = bytes_from(data, size);
    uint64_t seed = bytes_hash(in);
    enum feed_side side = FEED_REQUESTS;

    feed_check_cuts(side, in, seed);
    feed_check_written(side, in);
    return 0;
}
