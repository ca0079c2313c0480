/* SPDX-License-Identifier: Apache-2.0 */
/* A request record with every part filled, for the tests of this folder. */
#ifndef TESTS_TELEMETRY_SAMPLE_RECORD_H
#define TESTS_TELEMETRY_SAMPLE_RECORD_H

#include "model/flags.h"
#include "model/record.h"

static inline struct request_record sample_record(void)
{
    struct request_record r = {
        .started = UINT64_C(1460751420310) * NS_PER_MS + 999999, /* 2016-04-15T20:17:00.310Z */
        .method = BYTES("GET"),
        .path = BYTES("/cart?id=7"),
        .authority = BYTES("shop.example.test"),
        .request_id = BYTES("0b7e-11"),
        .user_agent = BYTES("curl/8.0"),
        .forwarded_for = BYTES("10.1.1.1"),
        .protocol = "HTTP/1.1",
        .status = 503,
        .flags = FLAG_UF | FLAG_URX,
        .details = "via_upstream",
        .bytes_received = 12,
        .bytes_sent = 3456,
        .duration = 15 * NS_PER_MS + 999999,
        .upstream_service_time = 7 * NS_PER_MS + 500000,
        .from_upstream = true,
        .queue_time = 250 * NS_PER_US,
        .service_time = 14 * NS_PER_MS + 125 * NS_PER_US,
        .route = BYTES("cart"),
        .cluster = BYTES("checkout"),
        .upstream_host = BYTES("10.0.0.2:8080"),
        .downstream_remote = {.kind = ADDRESS_IPV4, .port = 4242, .ip = {192, 0, 2, 1}},
        .downstream_local = {.kind = ADDRESS_IPV4, .port = 8080, .ip = {127, 0, 0, 1}},
        .attempt_count = 2,
    };

    r.attempts[0] = (struct record_attempt){.endpoint = BYTES("10.0.0.1:8080"),
                                            .outcome = "connect_failed",
                                            .flags = FLAG_UF,
                                            .queue_time = 100 * NS_PER_US};
    r.attempts[1] = (struct record_attempt){.endpoint = BYTES("10.0.0.2:8080"),
                                            .outcome = "answered",
                                            .status = 503,
                                            .backoff = 12 * NS_PER_MS,
                                            .queue_time = 150 * NS_PER_US,
                                            .service_time = 14 * NS_PER_MS + 125 * NS_PER_US};
    return r;
}

#endif
