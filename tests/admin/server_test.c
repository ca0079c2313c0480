/* SPDX-License-Identifier: Apache-2.0 */
/* The admin server as a peer of all kinds of clients. */
#include "admin/world.h"

#include "admin/routes.h"

#define READY "GET /ready HTTP/1.1\r\nhost: x\r\n\r\n"

static void a_page_is_answered(void **state)
{
    struct fake_link *l = connect_client();
    (void)state;

    send_text(l, READY);
    assert_string_equal(l->out, "HTTP/1.1 200 OK\r\ncontent-type: text/plain; charset=UTF-8\r\n"
                                "cache-control: no-cache, max-age=0\r\n"
                                "x-content-type-options: nosniff\r\ncontent-length: 5\r\n\r\n"
                                "LIVE\n");
    assert_false(l->closed); /* kept alive */
    forget_output(l);
    send_text(l, READY);
    assert_string_equal(body_of(l->out), "LIVE\n");
}

static void a_request_may_be_cut_anywhere(void **state)
{
    static const char request[] = "POST /ready?x=1 HTTP/1.1\r\nHost: 127.0.0.1:9901\r\n"
                                  "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nt: 1\r\n\r\n"
                                  "GET /ready HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    (void)state;

    for (size_t cut = 1; cut < sizeof(request) - 1; cut++) {
        struct fake_link *l;

        stop_admin(NULL);
        start_admin(NULL);
        l = connect_client();
        send_bytes(l, request, cut);
        turn(NULL);
        send_bytes(l, request + cut, sizeof(request) - 1 - cut);
        turn(NULL);
        turn(NULL);
        assert_string_equal(strstr(body_of(l->out), "HTTP/1.1 200 OK") == NULL ? "one" : "two",
                            "two");
        assert_true(l->shut);
        end(l);
        assert_true(l->closed && !l->aborted);
    }
}

static void every_byte_may_come_alone(void **state)
{
    static const char request[] = "POST /ready HTTP/1.1\r\nHost: localhost\r\n"
                                  "Content-Length: 4\r\n\r\nbody" READY;
    struct fake_link *l = connect_client();
    (void)state;

    for (size_t i = 0; i < sizeof(request) - 1; i++)
        assert_true(send_bytes(l, request + i, 1));
    assert_non_null(strstr(body_of(l->out), "HTTP/1.1 200 OK"));
    assert_false(l->closed);
}

static unsigned answers_in(const char *text)
{
    unsigned n = 0;

    for (const char *at = text; (at = strstr(at, "HTTP/1.1 ")) != NULL; at++)
        n++;
    return n;
}

/* So that a pipeline of costly pages leaves the control loop its time. */
static void a_pipeline_is_answered_in_order_one_a_turn(void **state)
{
    struct fake_link *l = connect_client();
    unsigned answered;
    (void)state;

    send_text(l, READY "GET /no HTTP/1.1\r\nhost: x\r\n\r\n" READY READY READY);
    answered = answers_in(l->out); /* by events and by timers of one turn */
    assert_in_range(answered, 1, 2);
    while (answered < 5) {
        assert_false(l->reading); /* nothing more is taken before these are done */
        turn(NULL);
        assert_int_equal(answers_in(l->out), ++answered);
    }
    assert_true(strstr(l->out, "LIVE") < strstr(l->out, "404"));
    assert_true(strstr(l->out, "404") < strstr(strstr(l->out, "404"), "LIVE"));
    assert_true(l->reading);
}

static void head_is_answered_without_a_body(void **state)
{
    struct fake_link *l = connect_client();
    (void)state;

    send_text(l, "HEAD /ready HTTP/1.1\r\nhost: x\r\n\r\n" READY);
    turn(NULL);
    assert_non_null(strstr(l->out, "content-length: 5\r\n\r\nHTTP/1.1 200"));
}

static void http_1_0_and_connection_close_end_the_connection(void **state)
{
    static const char *const requests[] = {
        "GET /ready HTTP/1.0\r\n\r\n", "GET /ready HTTP/1.0\r\nconnection: keep-alive\r\n\r\n",
        "GET /ready HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"};
    (void)state;

    for (int i = 0; i < 3; i++) {
        struct fake_link *l = connect_client();

        send_text(l, requests[i]);
        assert_non_null(strstr(l->out, "connection: close\r\n\r\nLIVE\n"));
        assert_true(l->shut && !l->closed); /* the client is left time to read */
        send_text(l, "more that nobody wants");
        end(l);
        assert_true(l->closed && !l->aborted);
    }
}

static void a_client_that_never_closes_is_left(void **state)
{
    struct fake_link *l = connect_client();
    (void)state;

    send_text(l, "GET /ready HTTP/1.0\r\n\r\n");
    turn_at(START_AT + ADMIN_LINGER - 10 * NS_PER_MS);
    assert_false(l->closed);
    turn_at(START_AT + ADMIN_LINGER + 10 * NS_PER_MS);
    assert_true(l->closed);
}

static void a_client_that_half_closes_gets_its_answer(void **state)
{
    struct fake_link *l = connect_client();
    (void)state;

    send_text(l, READY READY);
    turn(NULL);
    turn(NULL);
    end(l);
    assert_true(l->closed);
    assert_string_equal(l->out + l->out_len - 5, "LIVE\n");
}

/* The next request came with the end of the body: it waits for its turn, and nothing else is read.
 */
static void what_follows_a_body_is_not_lost_by_a_half_close(void **state)
{
    struct fake_link *l = connect_client();
    (void)state;

    send_text(l, "POST /ready HTTP/1.1\r\nhost: localhost\r\ncontent-length: 3\r\n\r\n");
    send_text(l, "abc" READY READY READY);
    while (!l->reading)
        turn(NULL);
    assert_int_equal(answers_in(l->out), 4);
    end(l);
    assert_true(l->closed);
}

static void do_receive_then_end(struct world *w)
{
    do_receive(w);
    if (w->at_link->reading)
        do_end(w);
}

static void a_body_a_request_and_the_end_in_one_turn_are_answered(void **state)
{
    struct fake_link *l = connect_client();
    (void)state;

    send_text(l, "POST /ready HTTP/1.1\r\nhost: localhost\r\ncontent-length: 3\r\n\r\n");
    world.at_link = l;
    world.at_data = BYTES("abc" READY);
    turn(do_receive_then_end);
    while (!l->reading)
        turn(NULL);
    assert_int_equal(answers_in(l->out), 2);
    end(l);
}

static void half_a_request_and_then_the_end_is_dropped(void **state)
{
    struct fake_link *l = connect_client();
    (void)state;

    send_text(l, "GET /ready HT");
    end(l);
    assert_true(l->closed);
    assert_null(l->out);
}

static void what_is_no_http_is_refused(void **state)
{
    struct fake_link *l = connect_client();
    (void)state;

    send_text(l, "\x16\x03\x01 TLS it is\r\n\r\n");
    assert_int_equal(status_of(l->out), 400);
    assert_true(l->shut);
    end(l);
}

static void a_head_over_the_limit_is_refused(void **state)
{
    struct fake_link *l = connect_client();
    static char field[2000];
    unsigned sent = 0;
    (void)state;

    memset(field, 'f', sizeof(field) - 1);
    memcpy(field, "\r\nx: ", 5);
    send_text(l, "GET /ready HTTP/1.1\r\nhost: x");
    while (l->out == NULL) {
        send_text(l, field);
        assert_true(++sent < 10);
    }
    assert_int_equal(status_of(l->out), 431);
    end(l);
}

static void slow_heads_run_out_of_time(void **state)
{
    struct fake_link *l = connect_client();
    struct fake_link *silent = connect_client();
    (void)state;

    for (int i = 0; i < 5; i++) { /* a byte a second does not help */
        world.now = START_AT + (mono_ns)i * NS_PER_S;
        assert_true(send_bytes(l, &READY[i], 1));
    }
    turn_at(START_AT + ADMIN_REQUEST_TIMEOUT - 10 * NS_PER_MS);
    assert_null(l->out);
    turn_at(START_AT + ADMIN_REQUEST_TIMEOUT + 10 * NS_PER_MS);
    assert_int_equal(status_of(l->out), 408);
    assert_true(silent->closed);
    assert_null(silent->out);
    end(l);
}

static void slow_bodies_run_out_of_time(void **state)
{
    struct fake_link *l = connect_client();
    (void)state;

    send_text(l, "POST /ready HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\nab");
    assert_int_equal(status_of(l->out), 200);
    turn(NULL);
    turn_at(START_AT + ADMIN_REQUEST_TIMEOUT + 10 * NS_PER_MS);
    assert_true(l->closed);
}

static void a_large_body_ends_the_connection(void **state)
{
    struct fake_link *l = connect_client();
    struct fake_link *chunked = connect_client();
    static char chunk[9 + 0x8000 + 2];
    (void)state;

    send_text(l, "POST /ready HTTP/1.1\r\nhost: localhost\r\ncontent-length: 65537\r\n\r\n");
    assert_non_null(strstr(l->out, "connection: close"));
    end(l);
    memset(chunk, 'c', sizeof(chunk));
    memcpy(chunk, "0008000\r\n", 9);
    memcpy(chunk + sizeof(chunk) - 2, "\r\n", 2);
    send_text(chunked,
              "POST /ready HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n");
    for (int i = 0; i < 3 && !chunked->shut; i++)
        send_bytes(chunked, chunk, sizeof(chunk));
    assert_true(chunked->shut);
    end(chunked);
}

static void an_idle_connection_is_closed_in_the_end(void **state)
{
    struct fake_link *l = connect_client();
    (void)state;

    send_text(l, READY);
    turn_at(START_AT + ADMIN_IDLE_TIMEOUT - 100 * NS_PER_MS);
    assert_false(l->closed);
    turn_at(START_AT + ADMIN_IDLE_TIMEOUT + 100 * NS_PER_MS);
    assert_true(l->closed);
}

static void a_slow_reader_gets_all_of_it(void **state)
{
    const char *whole = body_of(get("/stats"));
    struct fake_link *l = connect_client();
    (void)state;

    l->room = 10;
    send_text(l, "GET /stats HTTP/1.1\r\nhost: x\r\n\r\n");
    assert_false(l->reading);
    for (size_t room = 1; l->blocked; room = room * 2 % 977)
        take_more(l, room);
    assert_string_equal(body_of(l->out), whole);
    assert_true(l->reading);
    l->room = ANY_ROOM;
    send_text(l, READY);
    assert_string_equal(l->out + l->out_len - 5, "LIVE\n");
}

static void a_reader_that_stopped_is_aborted(void **state)
{
    struct fake_link *l = connect_client();
    (void)state;

    l->room = 10;
    send_text(l, "GET /stats HTTP/1.1\r\nhost: x\r\n\r\n");
    turn_at(START_AT + ADMIN_ANSWER_TIMEOUT - 100 * NS_PER_MS);
    assert_false(l->closed);
    turn_at(START_AT + ADMIN_ANSWER_TIMEOUT + 100 * NS_PER_MS);
    assert_true(l->closed && l->aborted);
}

static void a_client_may_leave_at_any_moment(void **state)
{
    struct fake_link *before = connect_client();
    struct fake_link *within = connect_client();
    struct fake_link *answered = connect_client();
    struct fake_link *queued = connect_client();
    (void)state;

    fail_link(before);
    send_text(within, "GET /rea");
    fail_link(within);
    answered->room = 5;
    send_text(answered, READY);
    fail_link(answered);
    send_text(queued, READY READY);
    assert_true(queued->closed == false);
    fail_link(queued);
    turn(NULL);
    turn(NULL);
    assert_true(before->closed && within->closed && answered->closed && queued->closed);
}

static void there_are_at_most_sixteen_at_once(void **state)
{
    struct fake_link *last;
    (void)state;

    for (int i = 0; i < ADMIN_CONNECTIONS_MAX; i++) /* in the midst of a request */
        send_text(connect_client(), "GET /");
    for (int i = 0; i < ADMIN_REFUSALS_MAX; i++) {
        last = connect_client();
        assert_int_equal(status_of(last->out), 503);
        assert_true(last->shut && !last->closed); /* it is left time to read that */
    }
    last = connect_client();
    assert_true(last->closed);
    assert_null(last->out);
    fail_link(&world.links[3]);
    last = connect_client();
    assert_false(last->closed);
    send_text(last, "GET /");
    assert_null(last->out);
    turn_at(START_AT + ADMIN_LINGER + 10 * NS_PER_MS);
    assert_int_equal(status_of(connect_client()->out), 503);
}

static void an_idle_connection_makes_room_for_a_new_one(void **state)
{
    struct fake_link *fresh;
    (void)state;

    for (int i = 0; i < ADMIN_CONNECTIONS_MAX; i++)
        connect_client();
    send_text(&world.links[5], READY);
    fresh = connect_client();
    assert_false(fresh->closed);
    assert_true(world.links[5].closed);
    assert_int_equal(status_of(connect_client()->out), 503); /* the others have but just come */
    world.now += NS_PER_S;
    assert_false(connect_client()->closed);
    assert_true(world.links[0].closed);
}

static void do_trouble(struct world *w)
{
    w->listener.events->troubled(w->listener.owner, IO_NO_DESCRIPTORS);
}

static void accepting_goes_on_after_descriptors_ran_out(void **state)
{
    (void)state;
    turn(do_trouble);
    assert_int_equal(world.resumed, 0);
    turn_at(START_AT + 110 * NS_PER_MS);
    assert_int_equal(world.resumed, 1);
    turn_at(START_AT + 400 * NS_PER_MS);
    assert_int_equal(world.resumed, 1);
}

static void an_address_in_use_is_an_error(void **state)
{
    struct admin_setup setup = {.control = world.control};
    struct admin *admin = NULL;
    (void)state;

    world.listen_error = IO_ADDRESS_IN_USE;
    assert_int_equal(admin_create(&setup, &admin), IO_ADDRESS_IN_USE);
    assert_null(admin);
}

static void post_actions_act_after_they_are_answered(void **state)
{
    struct fake_link *l = connect_client();
    (void)state;

    send_text(l, "POST /drain_listeners HTTP/1.1\r\nhost: localhost:9901\r\n\r\n");
    assert_string_equal(body_of(l->out), "OK\n");
    assert_true(world.process->draining);
    assert_int_equal(world.told[0].kind, MESSAGE_DRAIN);
    assert_int_equal(world.told[1].kind, MESSAGE_DRAIN);
    assert_string_equal(body_of(get("/ready")), "DRAINING\n");
    assert_int_equal(status_of(get("/ready")), 503);
    forget_output(l);
    send_text(l, "POST /quitquitquit HTTP/1.1\r\nhost: [::1]\r\n\r\n");
    assert_string_equal(body_of(l->out), "OK\n");
    assert_int_equal(world.told[1].kind, MESSAGE_QUIT);
}

static void a_get_changes_nothing(void **state)
{
    static const char *const paths[] = {"/drain_listeners", "/quitquitquit"};
    (void)state;

    for (int i = 0; i < 2; i++) {
        const char *answer = get(paths[i]);

        assert_int_equal(status_of(answer), 405);
        assert_non_null(strstr(answer, "\r\nallow: POST\r\n"));
        assert_string_equal(body_of(answer), "Method GET not allowed, POST required.");
    }
    assert_int_equal(world.told_count, 0);
}

static const struct {
    const char *fields;
    int status;
} posts[] = {
    {"host: 127.0.0.1:9901\r\n", 200},
    {"host: 127.8.9.1\r\n", 200},
    {"host: LocalHost\r\n", 200},
    {"host: [::1]:9901\r\n", 200},
    {"host: localhost:9901\r\norigin: http://localhost:9901\r\n", 200},
    {"host: example.test\r\n", 403},
    {"host: 10.0.0.1:9901\r\n", 403},
    {"host: localhost.example.test\r\n", 403},
    {"host: 127.0.0.1.example.test\r\n", 403},
    {"host: localhost:9901\r\norigin: http://evil.example.test\r\n", 403},
    {"host: localhost:9901\r\nOrigin: null\r\n", 403},
    {"host: localhost:9901\r\norigin: http://localhost:9902\r\n", 403},
    {"host: localhost:9901\r\norigin: http://localhost:9901\r\norigin: http://b\r\n", 403},
};

static void a_post_comes_from_this_host_and_no_other_site(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(posts) / sizeof(posts[0]); i++) {
        struct fake_link *l = connect_client();
        char request[512];
        unsigned before = world.told_count;

        snprintf(request, sizeof(request), "POST /drain_listeners HTTP/1.1\r\n%s\r\n",
                 posts[i].fields);
        send_text(l, request);
        if (status_of(l->out) != posts[i].status)
            fail_msg("%s: %d", posts[i].fields, status_of(l->out));
        if (posts[i].status != 200)
            assert_int_equal(world.told_count, before);
        end(l);
    }
}

static void every_page_is_answered_and_listed_by_help(void **state)
{
    const char *help = body_of(get("/help"));
    const char *unknown = get("/unknown");
    (void)state;

    assert_int_equal(status_of(unknown), 404);
    assert_memory_equal(body_of(unknown), "invalid path. admin commands are:\n", 34);
    for (size_t i = 0; i < admin_route_count; i++) {
        bool endless = strcmp(admin_routes[i].path, "/events") == 0;
        char line[300];

        snprintf(line, sizeof(line), "  %s%s: %s", admin_routes[i].path,
                 admin_routes[i].method == ADMIN_POST ? " (POST)" : "", admin_routes[i].help);
        assert_line(help, line);
        assert_non_null(strstr(unknown, line));
        assert_int_equal(status_of(get(endless ? "/events?follow=no" : admin_routes[i].path)),
                         admin_routes[i].method == ADMIN_POST ? 405 : 200);
    }
}

static void other_methods_are_refused(void **state)
{
    struct fake_link *l = connect_client();
    (void)state;

    send_text(l, "DELETE /stats HTTP/1.1\r\nhost: localhost\r\n\r\n");
    assert_int_equal(status_of(l->out), 405);
    assert_non_null(strstr(l->out, "allow: GET, HEAD, POST\r\n"));
    assert_string_equal(body_of(l->out), "Method DELETE not allowed, GET required.");
}

static void freeing_the_server_closes_what_is_open(void **state)
{
    struct fake_link *l = connect_client(), *m = connect_client();
    (void)state;

    send_text(l, READY READY);
    m->room = 3;
    send_text(m, READY); /* stop_admin sees to the rest */
    assert_false(l->closed || m->closed);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, start_admin, stop_admin)
    const struct CMUnitTest tests[] = {
        T(a_page_is_answered),
        T(a_request_may_be_cut_anywhere),
        T(every_byte_may_come_alone),
        T(a_pipeline_is_answered_in_order_one_a_turn),
        T(head_is_answered_without_a_body),
        T(http_1_0_and_connection_close_end_the_connection),
        T(a_client_that_never_closes_is_left),
        T(a_client_that_half_closes_gets_its_answer),
        T(what_follows_a_body_is_not_lost_by_a_half_close),
        T(a_body_a_request_and_the_end_in_one_turn_are_answered),
        T(half_a_request_and_then_the_end_is_dropped),
        T(what_is_no_http_is_refused),
        T(a_head_over_the_limit_is_refused),
        T(slow_heads_run_out_of_time),
        T(slow_bodies_run_out_of_time),
        T(a_large_body_ends_the_connection),
        T(an_idle_connection_is_closed_in_the_end),
        T(a_slow_reader_gets_all_of_it),
        T(a_reader_that_stopped_is_aborted),
        T(a_client_may_leave_at_any_moment),
        T(there_are_at_most_sixteen_at_once),
        T(an_idle_connection_makes_room_for_a_new_one),
        T(accepting_goes_on_after_descriptors_ran_out),
        T(an_address_in_use_is_an_error),
        T(post_actions_act_after_they_are_answered),
        T(a_get_changes_nothing),
        T(a_post_comes_from_this_host_and_no_other_site),
        T(every_page_is_answered_and_listed_by_help),
        T(other_methods_are_refused),
        T(freeing_the_server_closes_what_is_open),
    };
#undef T

    return cmocka_run_group_tests_name("admin server", tests, NULL, NULL);
}
