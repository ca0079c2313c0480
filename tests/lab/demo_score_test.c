/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/demo_score.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MS NS_PER_MS

static struct demo_half half;

static int set_up(void **state)
{
    struct address servers[DEMO_PEERS];
    (void)state;

    for (uint16_t i = 0; i < DEMO_PEERS; i++)
        servers[i] = (struct address){
            .kind = ADDRESS_IPV4, .port = (uint16_t)(9001 + i), .ip = {127, 0, 0, 1}};
    demo_half_init(&half, "Half", servers);
    return 0;
}

static void learn(mono_ns due_at, uint32_t status, const char *peer)
{
    const struct shot s = {.due_at = due_at,
                           .sent_at = due_at,
                           .over_at = due_at + 5 * MS,
                           .outcome = CALL_ANSWERED,
                           .status = status};

    demo_half_learn(&half, &s, peer);
}

/* What a page says of three hosts; the second is out. */
static const char page[] =
    "{\"cluster_statuses\":[{\"name\":\"other\"},{\"name\":\"demo\",\"host_statuses\":["
    "{\"address\":{\"socket_address\":{\"address\":\"127.0.0.1\",\"port_value\":9001}},"
    "\"stats\":[{\"name\":\"cx_total\",\"value\":\"2\"},{\"name\":\"rq_total\",\"value\":\"40\"}],"
    "\"health_status\":{\"eds_health_status\":\"HEALTHY\"},\"firebreak\":{\"ejected\":false}},"
    "{\"address\":{\"socket_address\":{\"address\":\"127.0.0.1\",\"port_value\":9002}},"
    "\"stats\":[{\"name\":\"rq_total\",\"value\":\"7\"}],"
    "\"health_status\":{\"failed_outlier_check\":true},"
    "\"firebreak\":{\"ejected\":true,\"last_trigger\":\"consecutive_5xx\","
    "\"ejected_ms_ago\":1000,\"back_in_ms\":28999}},"
    "{\"address\":{\"socket_address\":{\"address\":\"127.0.0.1\",\"port_value\":9003}},"
    "\"stats\":[{\"name\":\"rq_total\"}],\"health_status\":{}}"
    "]}]}";

static void see(mono_ns now)
{
    struct peer_state states[DEMO_PEERS];

    demo_half_see(&half, states, peers_read(bytes_of(page), "demo", states, DEMO_PEERS), 2500 * MS,
                  now);
}

static void a_page_of_the_admin_is_read(void **state)
{
    struct peer_state p[4];
    (void)state;

    assert_int_equal(peers_read(bytes_of(page), "demo", p, 4), 3);
    assert_int_equal(p[0].address.port, 9001);
    assert_false(p[0].ejected);
    assert_int_equal(p[0].attempts, 40);
    assert_true(p[1].ejected);
    assert_string_equal(p[1].reason, "consecutive_5xx");
    assert_int_equal(p[1].back_in_ms, 28999);
    assert_int_equal(p[2].attempts, 0);
}

static void what_is_no_such_page_is_read_as_nothing(void **state)
{
    static const char *const pages[] = {
        "",
        "x",
        "[]",
        "{}",
        "{\"cluster_statuses\":5}",
        "{\"cluster_statuses\":[5,{\"name\":6}]}",
        "{\"cluster_statuses\":[{\"name\":\"demo\",\"host_statuses\":[{}]}]}",
        "{\"cluster_statuses\":[{\"name\":\"demo\",\"host_statuses\":[{\"address\":"
        "{\"socket_address\":{\"address\":\"nobody\",\"port_value\":1}}}]}]}",
        "{\"cluster_statuses\":[{\"name\":\"demo\",\"host_statuses\":[{\"address\":"
        "{\"socket_address\":{\"address\":\"1.2.3.4\",\"port_value\":65536}}}]}]}"};
    struct peer_state p[4];
    (void)state;

    for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++)
        assert_int_equal(peers_read(bytes_of(pages[i]), "demo", p, 4), 0);
    assert_int_equal(peers_read(bytes_of(page), "demo", p, 2), 0); /* more than there is room for */
    assert_int_equal(peers_read(bytes_of(page), "none", p, 4), 0);
}

static void answers_count_for_who_gave_them_and_all_for_the_whole(void **state)
{
    (void)state;

    learn(0, 200, "127.0.0.1:9002");
    learn(0, 503, "127.0.0.1:9002");
    learn(0, 200, "127.0.0.1:9010");
    learn(0, 503, "");
    learn(0, 200, "somebody else");
    assert_int_equal(half.whole.ended, 5);
    assert_int_equal(half.whole.succeeded, 3);
    assert_int_equal(half.peers[1].score.ended, 2);
    assert_int_equal(half.peers[1].score.succeeded, 1);
    assert_int_equal(half.peers[9].score.ended, 1);
    assert_int_equal(half.peers[0].score.ended, 0);
}

static void an_ejection_is_noted_with_its_instant_and_reason(void **state)
{
    (void)state;

    see(100 * MS);
    assert_true(half.ejected);
    assert_string_equal(half.ejected_name, "127.0.0.1:9002");
    assert_string_equal(half.ejected_reason, "consecutive_5xx");
    assert_int_equal(half.ejected_after, 1500 * MS); /* 2.5 s, a second ago */
    assert_int_equal(half.attempts, 47);
    see(200 * MS);
    assert_int_equal(half.attempts, 47); /* totals, not sums of totals */
}

static void only_what_was_due_after_it_counts_as_since(void **state)
{
    (void)state;

    learn(50 * MS, 200, "");
    see(100 * MS);
    learn(99 * MS, 503, "");
    learn(100 * MS, 200, "");
    see(300 * MS); /* does not move it */
    learn(200 * MS, 200, "");
    assert_int_equal(half.since_ejection.ended, 2);
    assert_int_equal(half.since_ejection.succeeded, 2);
    assert_int_equal(half.whole.ended, 4);
}

static size_t count(const char *text, const char *part)
{
    size_t n = 0;

    while ((text = strstr(text, part)) != NULL) {
        n++;
        text++;
    }
    return n;
}

static void the_table_always_has_the_same_number_of_lines(void **state)
{
    char room[8192];
    struct text t;
    (void)state;

    text_init(&t, room, sizeof(room));
    demo_write_table(&t, &half, 0);
    assert_int_equal(count(text_end(&t), "\n"), DEMO_TABLE_LINES);
    see(1);
    learn(0, 503, "127.0.0.1:9002");
    text_init(&t, room, sizeof(room));
    demo_write_table(&t, &half, 3 * NS_PER_S);
    assert_int_equal(count(text_end(&t), "\n"), DEMO_TABLE_LINES);
    assert_false(t.failed);
    assert_non_null(strstr(room, "Half, 3 s\n"));
    assert_int_equal(count(room, "OUT 29s consecutive_5xx\n"), 1);
    assert_int_equal(count(room, " in\n"), 9);
}

static void the_comparison_has_a_third_column_only_after_an_ejection(void **state)
{
    static struct demo_half off;
    char room[8192];
    struct text t;
    (void)state;

    learn(0, 503, "127.0.0.1:9002");
    off = half;
    text_init(&t, room, sizeof(room));
    demo_write_comparison(&t, &off, &half);
    assert_null(strstr(text_end(&t), "once it was out"));
    assert_non_null(strstr(room, "Nobody was ejected"));
    see(1);
    learn(2, 200, "");
    text_init(&t, room, sizeof(room));
    demo_write_comparison(&t, &off, &half);
    assert_non_null(strstr(text_end(&t), "once it was out"));
    assert_non_null(
        strstr(room, "success              0.00 %          50.00 %         100.00 %\n"));
    assert_non_null(strstr(room, "127.0.0.1:9002 was taken out after 1.50s: consecutive_5xx."));
    assert_null(strstr(room, "dropped"));
    half.dropped = 3;
    text_init(&t, room, sizeof(room));
    demo_write_comparison(&t, &off, &half);
    assert_non_null(strstr(text_end(&t), "dropped 0 and 3"));
}

static void the_plain_line_says_who_is_out(void **state)
{
    char room[512];
    struct text t;
    (void)state;

    text_init(&t, room, sizeof(room));
    demo_write_line(&t, &half, NS_PER_S);
    assert_string_equal(text_end(&t),
                        "Half, 1 s: 0 requests, success -, p50 -, p99 -, out: nobody\n");
    learn(0, 200, "");
    see(1);
    text_init(&t, room, sizeof(room));
    demo_write_line(&t, &half, NS_PER_S);
    assert_string_equal(text_end(&t), "Half, 1 s: 1 requests, success 100.00 %, p50 5.00ms, p99 "
                                      "5.00ms, out: 127.0.0.1:9002 (consecutive_5xx)\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_page_of_the_admin_is_read, set_up),
        cmocka_unit_test_setup(what_is_no_such_page_is_read_as_nothing, set_up),
        cmocka_unit_test_setup(answers_count_for_who_gave_them_and_all_for_the_whole, set_up),
        cmocka_unit_test_setup(an_ejection_is_noted_with_its_instant_and_reason, set_up),
        cmocka_unit_test_setup(only_what_was_due_after_it_counts_as_since, set_up),
        cmocka_unit_test_setup(the_table_always_has_the_same_number_of_lines, set_up),
        cmocka_unit_test_setup(the_comparison_has_a_third_column_only_after_an_ejection, set_up),
        cmocka_unit_test_setup(the_plain_line_says_who_is_out, set_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
