/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/access_line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "telemetry/sample_record.h"

static char room[ACCESS_LINE_MAX + 1];

static const char *line_of(const struct request_record *r,
                           void (*write)(struct text *t, const struct record_copy *c))
{
    struct record_copy *c = malloc(record_copy_size(r));
    struct text t;

    assert_non_null(c);
    record_copy_fill(c, r);
    text_init(&t, room, sizeof(room));
    write(&t, c);
    assert_false(t.failed);
    text_end(&t);
    free(c);
    return room;
}

static void the_json_line_has_istios_keys_and_ours(void **state)
{
    struct request_record r = sample_record();
    (void)state;

    assert_string_equal(
        line_of(&r, access_line_json),
        "{\"start_time\":\"2016-04-15T20:17:00.310Z\",\"method\":\"GET\",\"path\":\"/cart?id=7\","
        "\"protocol\":\"HTTP/1.1\",\"authority\":\"shop.example.test\",\"request_id\":\"0b7e-11\","
        "\"user_agent\":\"curl/8.0\",\"x_forwarded_for\":\"10.1.1.1\",\"response_code\":503,"
        "\"response_flags\":\"URX,UF\",\"response_code_details\":\"via_upstream\","
        "\"connection_termination_details\":null,\"upstream_transport_failure_reason\":null,"
        "\"bytes_received\":12,\"bytes_sent\":3456,\"duration\":15,\"upstream_service_time\":\"7\","
        "\"queue_time\":0.250,\"service_time\":14.125,\"upstream_host\":\"10.0.0.2:8080\","
        "\"upstream_cluster\":\"checkout\",\"upstream_local_address\":null,"
        "\"downstream_local_address\":\"127.0.0.1:8080\","
        "\"downstream_remote_address\":\"192.0.2.1:4242\",\"requested_server_name\":null,"
        "\"route_name\":\"cart\",\"attempts\":[{\"endpoint\":\"10.0.0.1:8080\","
        "\"outcome\":\"connect_failed\",\"status\":null,\"flags\":\"UF\",\"backoff\":0.000,"
        "\"queue_time\":0.100,\"service_time\":0.000},{\"endpoint\":\"10.0.0.2:8080\",\"outcome\":"
        "\"answered\","
        "\"status\":503,\"flags\":\"-\",\"backoff\":12.000,\"queue_time\":0.150,\"service_time\":"
        "14.125}]}\n");
}

static void what_is_missing_is_null_in_json(void **state)
{
    static const char *const nulls[] = {"method",
                                        "path",
                                        "protocol",
                                        "authority",
                                        "request_id",
                                        "user_agent",
                                        "upstream_host",
                                        "route_name",
                                        "x_forwarded_for",
                                        "upstream_cluster",
                                        "upstream_service_time",
                                        "response_code_details",
                                        "downstream_remote_address"};
    struct request_record r = {.upstream_service_time = 5 * NS_PER_MS};
    json_t *line = json_loads(line_of(&r, access_line_json), 0, NULL);
    (void)state;

    assert_non_null(line);
    for (size_t i = 0; i < sizeof(nulls) / sizeof(nulls[0]); i++)
        assert_true(json_is_null(json_object_get(line, nulls[i])));
    assert_int_equal(json_integer_value(json_object_get(line, "response_code")), 0);
    assert_string_equal(json_string_value(json_object_get(line, "response_flags")), "-");
    assert_int_equal(json_array_size(json_object_get(line, "attempts")), 0);
    json_decref(line);
}

static void a_text_that_was_cut_ends_in_dots(void **state)
{
    static char path[9000];
    struct request_record r = sample_record();
    json_t *line;
    const char *got;
    (void)state;

    memset(path, 'p', sizeof(path));
    r.path = bytes_from(path, sizeof(path));
    line = json_loads(line_of(&r, access_line_json), 0, NULL);
    got = json_string_value(json_object_get(line, "path"));
    assert_int_equal(strlen(got), 8192 + 3);
    assert_string_equal(got + 8191, "p...");
    json_decref(line);
}

static void no_input_can_break_out_of_its_line_or_its_quotes(void **state)
{
    struct request_record r = sample_record();
    json_t *line;
    (void)state;

    r.path = BYTES("/\n{\"x\":1}\"\\\x01\x7f");
    r.user_agent = BYTES("a\" 200 \"\xff\r\n");
    line = json_loads(line_of(&r, access_line_json), JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(line);
    assert_string_equal(json_string_value(json_object_get(line, "path")),
                        "/\n{\"x\":1}\"\\\x01\x7f");
    json_decref(line);
    assert_int_equal(strcspn(room, "\n"), strlen(room) - 1);
}

/* Every byte of every text needs the longest escape. */
static void the_longest_line_fits(void **state)
{
    static char worst[9001];
    struct request_record r = sample_record();
    struct bytes text = bytes_from(worst, sizeof(worst) - 1);
    (void)state;

    memset(worst, 1, sizeof(worst) - 1);
    r.method = r.path = r.authority = r.request_id = r.user_agent = r.forwarded_for = r.route =
        r.cluster = r.upstream_host = text;
    r.protocol = r.details = r.termination = r.transport_failure = worst;
    r.downstream_local = r.downstream_remote =
        (struct address){.kind = ADDRESS_UNIX, .path = worst};
    r.bytes_received = r.bytes_sent = r.duration = r.upstream_service_time = r.queue_time =
        r.service_time = UINT64_MAX;
    r.flags = UINT32_MAX;
    r.attempt_count = RECORD_ATTEMPTS_MAX;
    for (unsigned i = 0; i < RECORD_ATTEMPTS_MAX; i++)
        r.attempts[i] = (struct record_attempt){.endpoint = text,
                                                .outcome = worst,
                                                .status = UINT32_MAX,
                                                .flags = UINT32_MAX,
                                                .queue_time = UINT64_MAX,
                                                .service_time = UINT64_MAX};
    assert_true(strlen(line_of(&r, access_line_json)) > 60000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_json_line_has_istios_keys_and_ours),
        cmocka_unit_test(what_is_missing_is_null_in_json),
        cmocka_unit_test(a_text_that_was_cut_ends_in_dots),
        cmocka_unit_test(no_input_can_break_out_of_its_line_or_its_quotes),
        cmocka_unit_test(the_longest_line_fits),
    };

    return cmocka_run_group_tests_name("access_line", tests, NULL, NULL);
}
