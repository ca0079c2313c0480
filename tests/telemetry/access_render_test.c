/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/access_render.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/rng.h"
#include "telemetry/sample_record.h"

static struct arena arena;
static struct access_format format;
static struct access_key keys[ACCESS_KEYS_MAX];
static char *line;

static int begin(void **state)
{
    (void)state;
    arena_init(&arena, 4096, SIZE_MAX);
    memset(&format, 0, sizeof(format));
    line = NULL;
    return 0;
}

static int finish(void **state)
{
    (void)state;
    arena_release(&arena);
    free(line);
    return 0;
}

static void use_text(const char *text)
{
    struct access_fault fault;

    assert_true(access_compile(&arena, bytes_of(text), &format, &format.text, &fault));
}

static void use_key(const char *name, const char *text)
{
    struct access_key *key = &keys[format.key_count++];
    struct access_fault fault;

    key->name = bytes_of(name);
    assert_true(access_compile(&arena, bytes_of(text), &format, &key->value, &fault));
    format.keys = keys;
}

static const char *environment(const char *name)
{
    return strcmp(name, "ZONE") == 0 ? "b" : NULL;
}

/* In no more memory than is said to suffice. */
static const char *render(const struct request_record *r)
{
    const struct access_surroundings around = {.hostname = "box", .environment = environment};
    size_t room = access_render_room(&format);
    struct record_copy *c = malloc(record_copy_size(r));
    char *scratch_room = malloc(room);
    struct text t, scratch;

    free(line);
    line = malloc(room + 1);
    assert_true(c != NULL && scratch_room != NULL && line != NULL);
    record_copy_fill(c, r);
    text_init(&t, line, room);
    text_init(&scratch, scratch_room, room);
    access_render(&t, &scratch, &format, c, &around);
    assert_false(t.failed || scratch.failed);
    line[t.len] = '\0';
    free(scratch_room);
    free(c);
    return line;
}

static void envoys_default_line(void **state)
{
    struct request_record r = sample_record();
    (void)state;

    use_text("[%START_TIME%] x");
    assert_string_equal(render(&r), "[2016-04-15T20:17:00.310Z] x\n");
    assert_int_equal(format.text.count, 3);
    use_text(access_format_envoy);
    assert_string_equal(render(&r),
                        "[2016-04-15T20:17:00.310Z] \"GET /cart?id=7 HTTP/1.1\" 503 URX,UF 12 3456 "
                        "15 7 \"10.1.1.1\" \"curl/8.0\" \"0b7e-11\" \"shop.example.test\" "
                        "\"10.0.0.2:8080\"\n");
    assert_int_equal(format.request.count + format.response.count, 0);
    memset(&r, 0, sizeof(r));
    assert_string_equal(render(&r),
                        "[1970-01-01T00:00:00.000Z] \"- - -\" 0 - 0 0 0 - \"-\" \"-\" \"-\" \"-\" "
                        "\"-\"\n");
}

static void istios_default_line(void **state)
{
    struct request_record r = sample_record();
    (void)state;

    r.details = "upstream_reset{connect failed}";
    use_text(access_format_istio);
    assert_string_equal(render(&r),
                        "[2016-04-15T20:17:00.310Z] \"GET /cart?id=7 HTTP/1.1\" 503 URX,UF "
                        "upstream_reset{connect_failed} - \"-\" 12 3456 15 7 \"10.1.1.1\" "
                        "\"curl/8.0\" \"0b7e-11\" \"shop.example.test\" \"10.0.0.2:8080\" checkout "
                        "- 127.0.0.1:8080 192.0.2.1:4242 - cart\n");
}

static const struct {
    const char *text;
    const char *value;
} values[] = {
    {"%START_TIME(%s.%3f)%", "1460751420.310"},
    {"%PROTOCOL%", "HTTP/1.1"},
    {"%RESPONSE_CODE%", "503"},
    {"%RESPONSE_CODE_DETAILS%", "via_upstream"},
    {"%RESPONSE_FLAGS%", "URX,UF"},
    {"%RESPONSE_FLAGS_LONG%", "UpstreamRetryLimitExceeded,UpstreamConnectionFailure"},
    {"%BYTES_RECEIVED%", "12"},
    {"%BYTES_SENT%", "3456"},
    {"%DURATION%", "15"},
    {"%REQUEST_DURATION%", "2"},
    {"%RESPONSE_DURATION%", "9"},
    {"%RESPONSE_TX_DURATION%", "6"},
    {"%QUEUE_TIME%", "0"},
    {"%SERVICE_TIME%", "14"},
    {"%UPSTREAM_REQUEST_ATTEMPT_COUNT%", "2"},
    {"%UPSTREAM_HOST%", "10.0.0.2:8080"},
    {"%UPSTREAM_HOSTS_ATTEMPTED%", "10.0.0.1:8080,10.0.0.2:8080"},
    {"%UPSTREAM_CLUSTER%", "checkout"},
    {"%UPSTREAM_CLUSTER_RAW%", "checkout"},
    {"%UPSTREAM_TRANSPORT_FAILURE_REASON%", "-"},
    {"%UPSTREAM_LOCAL_ADDRESS%", "-"},
    {"%CONNECTION_TERMINATION_DETAILS%", "-"},
    {"%DOWNSTREAM_REMOTE_ADDRESS%", "192.0.2.1:4242"},
    {"%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%", "192.0.2.1"},
    {"%DOWNSTREAM_DIRECT_REMOTE_ADDRESS%", "192.0.2.1:4242"},
    {"%DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT%", "192.0.2.1"},
    {"%DOWNSTREAM_LOCAL_ADDRESS%", "127.0.0.1:8080"},
    {"%DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT%", "127.0.0.1"},
    {"%ROUTE_NAME%", "cart"},
    {"%REQUESTED_SERVER_NAME%", "-"},
    {"%HOSTNAME%", "box"},
    {"%ENVIRONMENT(ZONE)%", "b"},
    {"%ENVIRONMENT(NONE)%", "-"},
    {"%REQ(:METHOD)%", "GET"},
    {"%REQ(:path)%", "/cart?id=7"},
    {"%REQ(:PATH):5%", "/cart"},
    {"%REQ(:SCHEME)%", "http"},
    {"%REQ(HOST)%", "shop.example.test"},
    {"%REQUEST_HEADER(User-Agent)%", "curl/8.0"},
    {"%REQ(X-REQUEST-ID)%", "0b7e-11"},
    {"%REQ(X-FORWARDED-FOR)%", "10.1.1.1"},
    {"%RESP(:STATUS)%", "503"},
    {"%RESPONSE_HEADER(x-envoy-upstream-service-time)%", "7"},
    {"100%%", "100%"},
    {"%%%BYTES_SENT%%%", "%3456%"},
    {"plain", "plain"},
};

static void each_operator_has_its_value(void **state)
{
    struct request_record r = sample_record();
    (void)state;

    r.request_duration = 2 * NS_PER_MS;
    r.response_duration = 9 * NS_PER_MS;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        const char *got;

        use_text(values[i].text);
        got = render(&r);
        if (strlen(got) != strlen(values[i].value) + 1 ||
            strncmp(got, values[i].value, strlen(values[i].value)) != 0)
            fail_msg("%s is \"%s\", not \"%s\"", values[i].text, got, values[i].value);
    }
}

static void headers_that_are_named_are_kept_and_shown(void **state)
{
    const struct bytes requests[] = {BYTES("blue"), BYTES_NONE};
    const struct bytes responses[] = {BYTES("a long value")};
    struct request_record r = sample_record();
    (void)state;

    use_text("%REQ(X-Tenant)% %REQ(x-none?x-tenant)% %REQ(x-none?:AUTHORITY):4% %RESP(X-Kind):6%");
    assert_int_equal(format.request.count, 2);
    assert_int_equal(format.response.count, 1);
    assert_true(bytes_equal(format.request.at[0].name, BYTES("x-tenant")));
    assert_int_equal(format.request.at[0].limit, ACCESS_HEADER_LIMIT);
    assert_int_equal(format.response.at[0].limit, 6);
    assert_string_equal(render(&r), "- - shop -\n"); /* nothing was kept */
    r.request_headers = requests;
    r.request_header_count = 2;
    r.response_headers = responses;
    r.response_header_count = 1;
    assert_string_equal(render(&r), "blue blue shop a long\n");
}

static void the_client_behind_trusted_proxies_is_the_remote(void **state)
{
    struct request_record r = sample_record();
    (void)state;

    use_text("%DOWNSTREAM_REMOTE_ADDRESS% %DOWNSTREAM_DIRECT_REMOTE_ADDRESS%");
    r.forwarded_for = BYTES("203.0.113.7, 192.0.2.1");
    assert_string_equal(render(&r), "192.0.2.1:4242 192.0.2.1:4242\n"); /* nobody vouches for it */
    r.trusts_forwarded_for = true;
    assert_string_equal(render(&r), "203.0.113.7:0 192.0.2.1:4242\n");
    r.forwarded_for = BYTES("unknown, 192.0.2.1");
    assert_string_equal(render(&r), "192.0.2.1:4242 192.0.2.1:4242\n");
}

static void json_keeps_types(void **state)
{
    struct request_record r = sample_record();
    (void)state;

    use_key("status", "%RESPONSE_CODE%");
    use_key("time", "%RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)%");
    use_key("none", "%UPSTREAM_TRANSPORT_FAILURE_REASON%");
    use_key("mixed \"", "%REQ(:METHOD)% \"%ROUTE_NAME%\" %REQUESTED_SERVER_NAME%");
    use_key("const", "a");
    assert_string_equal(render(&r), "{\"status\":503,\"time\":\"7\",\"none\":null,"
                                    "\"mixed \\\"\":\"GET \\\"cart\\\" -\",\"const\":\"a\"}\n");
}

static void no_input_can_break_out_of_its_line_or_its_quotes(void **state)
{
    struct request_record r = sample_record();
    json_t *object;
    (void)state;

    r.path = BYTES("/\n{\"x\":1}\"\\\x01\x7f");
    r.user_agent = BYTES("a\" 200 \"\xff\r\n");
    use_text("\"%REQ(:PATH)%\" \"%REQ(USER-AGENT)%\"");
    assert_string_equal(render(&r), "\"/\\x0a{\\x22x\\x22:1}\\x22\\x5c\\x01\\x7f\" "
                                    "\"a\\x22 200 \\x22\\xff\\x0d\\x0a\"\n");
    use_key("p", "%REQ(:PATH)%");
    use_key("u", "<%REQ(USER-AGENT)%>");
    object = json_loads(render(&r), 0, NULL);
    assert_non_null(object);
    assert_string_equal(json_string_value(json_object_get(object, "p")),
                        "/\n{\"x\":1}\"\\\x01\x7f");
    json_decref(object);
}

static void a_text_that_was_cut_ends_in_dots(void **state)
{
    static char path[9000];
    struct request_record r = sample_record();
    (void)state;

    memset(path, 'p', sizeof(path));
    r.path = bytes_from(path, sizeof(path));
    use_text("%REQ(:PATH)%|%REQ(:PATH):10%");
    assert_int_equal(strlen(render(&r)), 8192 + 3 + 1 + 10 + 1);
    assert_non_null(strstr(line, "pp...|pppppppppp\n"));
}

/* --- any format, any record: one line, whole, within the room --- */

static struct bytes any_bytes(struct rng *rng, size_t most)
{
    size_t len = rng_below(rng, 4) == 0 ? rng_below(rng, (uint32_t)most) : rng_below(rng, 12);
    uint8_t *b = arena_take_bytes(&arena, len + 1);

    for (size_t i = 0; i < len; i++)
        b[i] = (uint8_t)(rng_below(rng, 3) == 0 ? rng_below(rng, 256) : 'a');
    return bytes_from(b, len);
}

static struct request_record any_record(struct rng *rng, struct bytes *headers)
{
    struct request_record r = sample_record();

    r.method = any_bytes(rng, 100);
    r.path = any_bytes(rng, 10000);
    r.authority = any_bytes(rng, 2000);
    r.user_agent = any_bytes(rng, 2000);
    r.forwarded_for = any_bytes(rng, 2000);
    r.route = any_bytes(rng, 300);
    r.flags = (uint32_t)rng_next(rng);
    r.duration = rng_next(rng);
    r.bytes_sent = rng_next(rng);
    r.response_duration = rng_below(rng, 2) == 0 ? MONO_NEVER : rng_next(rng);
    for (unsigned i = 0; i < 2 * ACCESS_HEADERS_MAX; i++)
        headers[i] = any_bytes(rng, 3000);
    r.request_headers = headers;
    r.request_header_count = format.request.count;
    r.response_headers = headers + ACCESS_HEADERS_MAX;
    r.response_header_count = format.response.count;
    for (unsigned i = 0; i < ACCESS_HEADERS_MAX; i++) { /* as the data plane cuts them */
        if (headers[i].len > format.request.at[i].limit)
            headers[i].len = format.request.at[i].limit;
        if (headers[ACCESS_HEADERS_MAX + i].len > format.response.at[i].limit)
            headers[ACCESS_HEADERS_MAX + i].len = format.response.at[i].limit;
    }
    return r;
}

static const char *any_format(struct rng *rng)
{
    static const char *const arguments[] = {"(x-a)",  "(x-b?x-a):50", "(:PATH):100", "(%F %9f)",
                                            "(ZONE)", "(x-c):4096",   "(host?x-d)"};
    struct text t;
    char *room = arena_take_bytes(&arena, 4096);

    text_init(&t, room, 4096);
    for (unsigned n = 1 + rng_below(rng, 8); n > 0; n--) {
        text_str(&t, rng_below(rng, 3) == 0 ? " \"lit\" %%" : "");
        text_char(&t, '%');
        text_str(&t, access_operator(rng_below(rng, ACCESS_OPERATOR_COUNT)));
        if (rng_below(rng, 2) == 0)
            text_str(&t, arguments[rng_below(rng, sizeof(arguments) / sizeof(arguments[0]))]);
        text_char(&t, '%');
    }
    return text_end(&t);
}

static void check_line(const char *got)
{
    size_t len = strlen(got);

    assert_int_equal(strcspn(got, "\n"), len - 1);
    for (size_t i = 0; i + 1 < len; i++)
        assert_true((uint8_t)got[i] >= 0x20 && (uint8_t)got[i] != 0x7f);
}

static void any_format_of_any_record_is_one_line(void **state)
{
    struct bytes headers[2 * ACCESS_HEADERS_MAX];
    struct rng rng;
    unsigned good = 0;
    (void)state;

    rng_init(&rng, 44);
    for (int round = 0; round < 6000; round++) {
        struct access_program program;
        struct access_fault fault;
        struct request_record r;

        arena_reset(&arena);
        memset(&format, 0, sizeof(format));
        if (!access_compile(&arena, bytes_of(any_format(&rng)), &format, &program, &fault))
            continue;
        good++;
        r = any_record(&rng, headers);
        format.text = program;
        check_line(render(&r));
        keys[0] = (struct access_key){.name = BYTES("k"), .value = program};
        format.keys = keys;
        format.key_count = 1;
        check_line(render(&r));
        json_t *object = json_loads(line, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
        assert_non_null(object);
        json_decref(object);
    }
    assert_true(good > 500);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, begin, finish)
    const struct CMUnitTest tests[] = {
        T(envoys_default_line),
        T(istios_default_line),
        T(each_operator_has_its_value),
        T(headers_that_are_named_are_kept_and_shown),
        T(the_client_behind_trusted_proxies_is_the_remote),
        T(json_keeps_types),
        T(no_input_can_break_out_of_its_line_or_its_quotes),
        T(a_text_that_was_cut_ends_in_dots),
        T(any_format_of_any_record_is_one_line),
    };
#undef T

    return cmocka_run_group_tests_name("access_render", tests, NULL, NULL);
}
