/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/record_copy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "telemetry/sample_record.h"

/* In memory of exactly the size announced, so that a sanitizer sees a byte too many. */
static struct record_copy *copy_of(const struct request_record *r)
{
    struct record_copy *c = malloc(record_copy_size(r));

    assert_non_null(c);
    record_copy_fill(c, r);
    return c;
}

static void assert_text(struct bytes got, const char *want)
{
    assert_int_equal(got.len, strlen(want));
    assert_memory_equal(got.data, want, got.len);
}

static void a_copy_says_the_same_and_needs_nothing_of_the_original(void **state)
{
    struct request_record r = sample_record();
    char path[] = "/volatile", word[] = "details{x}";
    struct record_copy *c;
    (void)state;

    r.path = bytes_of(path);
    r.details = word;
    c = copy_of(&r);
    memset(path, 'x', sizeof(path));
    memset(word, 'x', sizeof(word));
    memset(&r, 0xa5, sizeof(r));
    assert_text(c->record.path, "/volatile");
    assert_string_equal(c->record.details, "details{x}");
    assert_text(c->record.method, "GET");
    assert_text(c->record.authority, "shop.example.test");
    assert_text(c->record.upstream_host, "10.0.0.2:8080");
    assert_string_equal(c->record.protocol, "HTTP/1.1");
    assert_null(c->record.termination);
    assert_int_equal(c->record.status, 503);
    assert_int_equal(c->record.duration, 15 * NS_PER_MS + 999999);
    assert_int_equal(c->record.attempt_count, 2);
    assert_text(c->record.attempts[0].endpoint, "10.0.0.1:8080");
    assert_string_equal(c->record.attempts[0].outcome, "connect_failed");
    assert_string_equal(c->record.attempts[1].outcome, "answered");
    assert_int_equal(c->record.attempts[1].status, 503);
    assert_int_equal(c->cut, 0);
    free(c);
}

static void an_empty_record_is_copied_too(void **state)
{
    struct request_record r = {.status = 0};
    struct record_copy *c = copy_of(&r);
    (void)state;

    assert_int_equal(c->record.path.len, 0);
    assert_null(c->record.details);
    assert_int_equal(c->record.attempt_count, 0);
    assert_true(record_copy_size(&r) < 600);
    free(c);
}

static void a_text_is_cut_at_its_limit_and_marked(void **state)
{
    static char huge[70000];
    struct request_record r = sample_record();
    struct record_copy *c;
    (void)state;

    memset(huge, 'a', sizeof(huge));
    huge[8192] = (char)0x80; /* what follows a text is none of its business */
    r.path = bytes_from(huge, 8192);
    r.user_agent = bytes_from(huge, 1025);
    r.cluster = bytes_from(huge, sizeof(huge));
    c = copy_of(&r);
    assert_int_equal(c->record.path.len, 8192);
    assert_int_equal(c->record.user_agent.len, 1024);
    assert_int_equal(c->record.cluster.len, 352);
    assert_int_equal(c->cut, 1u << RECORD_TEXT_user_agent | 1u << RECORD_TEXT_cluster);
    free(c);
}

static void a_cut_does_not_split_a_character(void **state)
{
    static char text[300];
    struct request_record r = sample_record();
    struct record_copy *c;
    (void)state;

    memset(text, 'a', sizeof(text));
    memcpy(text + 253, "\xf0\x9f\x92\xa3", 4); /* one character over the limit of 256 */
    r.route = bytes_from(text, sizeof(text));
    memset(text + 257, 0x80, 3);
    c = copy_of(&r);
    assert_int_equal(c->record.route.len, 253);
    free(c);
    memset(text, 0x80, sizeof(text)); /* no UTF-8 at all: not searched far */
    c = copy_of(&r);
    assert_int_equal(c->record.route.len, 253);
    free(c);
}

static void long_words_are_cut(void **state)
{
    char word[600];
    struct request_record r = sample_record();
    struct record_copy *c;
    (void)state;

    memset(word, 'w', sizeof(word));
    word[599] = '\0';
    r.details = word;
    r.attempts[1].outcome = word;
    c = copy_of(&r);
    assert_int_equal(strlen(c->record.details), RECORD_WORD_MAX);
    assert_int_equal(strlen(c->record.attempts[1].outcome), RECORD_WORD_MAX);
    free(c);
}

static void a_unix_path_is_copied_other_addresses_have_none(void **state)
{
    char path[] = "/run/x.sock";
    struct request_record r = sample_record();
    struct record_copy *c;
    (void)state;

    r.downstream_remote = (struct address){.kind = ADDRESS_UNIX, .path = path};
    r.downstream_local.path = path;
    c = copy_of(&r);
    path[1] = 'x';
    assert_string_equal(c->record.downstream_remote.path, "/run/x.sock");
    assert_null(c->record.downstream_local.path);
    assert_int_equal(c->record.downstream_local.port, 8080);
    free(c);
}

static void more_attempts_than_there_is_room_for_are_left_out(void **state)
{
    struct request_record r = sample_record();
    struct record_copy *c;
    (void)state;

    for (unsigned i = 0; i < RECORD_ATTEMPTS_MAX; i++)
        r.attempts[i] = r.attempts[1];
    r.attempt_count = 1000;
    c = copy_of(&r);
    assert_int_equal(c->record.attempt_count, RECORD_ATTEMPTS_MAX);
    assert_text(c->record.attempts[RECORD_ATTEMPTS_MAX - 1].endpoint, "10.0.0.2:8080");
    free(c);
}

static void headers_are_copied_as_far_as_there_is_room(void **state)
{
    static char huge[5000];
    const struct bytes requests[] = {BYTES("one"), BYTES_NONE, bytes_from(huge, sizeof(huge)),
                                     bytes_from(huge, sizeof(huge)), BYTES("late")};
    const struct bytes responses[] = {BYTES("two")};
    struct request_record r = sample_record();
    struct record_copy *c;
    (void)state;

    r.request_headers = requests;
    r.request_header_count = 5;
    r.response_headers = responses;
    r.response_header_count = 1;
    c = copy_of(&r);
    assert_int_equal(c->record.request_header_count, 5);
    assert_text(c->record.request_headers[0], "one");
    assert_int_equal(c->record.request_headers[1].len, 0);
    assert_int_equal(c->record.request_headers[2].len, 5000);
    assert_int_equal(c->record.request_headers[3].len, RECORD_HEADER_BYTES / 2 - 5003);
    assert_int_equal(c->record.request_headers[4].len, 0);
    assert_text(c->record.response_headers[0], "two");
    assert_text(c->record.path, "/cart?id=7");
    free(c);
}

static void no_record_is_larger_than_the_most(void **state)
{
    static char huge[10000];
    struct request_record r = sample_record();
    struct bytes text = bytes_from(huge, sizeof(huge) - 1);
    struct bytes headers[ACCESS_HEADERS_MAX];
    (void)state;

    memset(huge, 'h', sizeof(huge) - 1);
    r.method = r.path = r.authority = r.request_id = r.user_agent = r.forwarded_for = r.route =
        r.cluster = r.upstream_host = text;
    r.protocol = r.details = r.termination = r.transport_failure = huge;
    r.downstream_local = r.downstream_remote = (struct address){.kind = ADDRESS_UNIX, .path = huge};
    for (unsigned i = 0; i < ACCESS_HEADERS_MAX; i++)
        headers[i] = text;
    r.request_headers = r.response_headers = headers;
    r.request_header_count = r.response_header_count = ACCESS_HEADERS_MAX;
    r.attempt_count = RECORD_ATTEMPTS_MAX;
    for (unsigned i = 0; i < RECORD_ATTEMPTS_MAX; i++)
        r.attempts[i] = (struct record_attempt){.endpoint = text, .outcome = huge};
    assert_true(record_copy_size(&r) <= RECORD_COPY_MAX);
    assert_true(record_copy_size(&r) >= RECORD_COPY_MAX - 64);
    free(copy_of(&r));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_says_the_same_and_needs_nothing_of_the_original),
        cmocka_unit_test(an_empty_record_is_copied_too),
        cmocka_unit_test(a_text_is_cut_at_its_limit_and_marked),
        cmocka_unit_test(a_cut_does_not_split_a_character),
        cmocka_unit_test(long_words_are_cut),
        cmocka_unit_test(a_unix_path_is_copied_other_addresses_have_none),
        cmocka_unit_test(more_attempts_than_there_is_room_for_are_left_out),
        cmocka_unit_test(headers_are_copied_as_far_as_there_is_room),
        cmocka_unit_test(no_record_is_larger_than_the_most),
    };

    return cmocka_run_group_tests_name("record_copy", tests, NULL, NULL);
}
