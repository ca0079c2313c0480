/* SPDX-License-Identifier: Apache-2.0 */
#include "os/log.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static char got[1 << 20];

struct sink {
    int ends[2];
    struct log *log;
};

static void sink_open(struct sink *s, enum os_log_format format, enum log_level least)
{
    assert_int_equal(pipe2(s->ends, O_CLOEXEC), 0);
    assert_int_equal(fcntl(s->ends[0], F_SETFL, O_NONBLOCK), 0);
    s->log = os_log_create(s->ends[1], format, least);
    assert_non_null(s->log);
}

static const char *sink_read(struct sink *s)
{
    ssize_t n = read(s->ends[0], got, sizeof(got) - 1);

    got[n < 0 ? 0 : n] = '\0';
    return got;
}

static void sink_close(struct sink *s)
{
    os_log_free(s->log);
    close(s->ends[0]);
    close(s->ends[1]);
}

/* "2026-11-30T06:00:00.123Z", and not far from now. */
static void assert_time(const char *text)
{
    struct tm tm;
    time_t said;
    unsigned ms = 1000;

    memset(&tm, 0, sizeof(tm));
    assert_int_equal(sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d.%3uZ", &tm.tm_year, &tm.tm_mon,
                            &tm.tm_mday, &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &ms),
                     7);
    assert_int_equal(text[10], 'T');
    assert_int_equal(text[23], 'Z');
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    said = timegm(&tm);
    assert_true(said <= time(NULL) && said > time(NULL) - 60);
    assert_true(ms < 1000);
}

static void a_line_says_when_how_grave_what_and_the_rest(void **state)
{
    struct sink s;
    const char *line;
    (void)state;

    sink_open(&s, OS_LOG_TEXT, LOG_INFO);
    log_event(s.log, LOG_INFO, "endpoint.ejected", "%s for %d s", "10.0.0.7:80", 30);
    line = sink_read(&s);
    assert_time(line);
    assert_string_equal(line + 24, " info endpoint.ejected 10.0.0.7:80 for 30 s\n");
    sink_close(&s);
    os_log_free(NULL);
}

static void below_the_level_nothing_is_written(void **state)
{
    struct sink s;
    (void)state;

    sink_open(&s, OS_LOG_TEXT, LOG_WARNING);
    log_event(s.log, LOG_DEBUG, "a", "b");
    log_event(s.log, LOG_INFO, "a", "b");
    assert_string_equal(sink_read(&s), "");
    log_event(s.log, LOG_WARNING, "a", "b");
    assert_string_equal(sink_read(&s) + 24, " warning a b\n");
    log_event(s.log, LOG_ERROR, "a", "b");
    assert_string_equal(sink_read(&s) + 24, " error a b\n");
    sink_close(&s);
}

static const struct {
    const char *in;
    const char *text;
    const char *json;
} escapes[] = {
    {"plain", "plain", "plain"},
    {"two\nlines\r\t", "two\\x0alines\\x0d\\x09", "two\\u000alines\\u000d\\u0009"},
    {"\x1b[31mred", "\\x1b[31mred", "\\u001b[31mred"},
    {"del\x7f", "del\\x7f", "del\\u007f"},
    {"back\\slash", "back\\\\slash", "back\\\\slash"},
    {"\"quoted\"", "\"quoted\"", "\\\"quoted\\\""},
    {"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80",
     "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80",
     "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80"},
    {"csi \xc2\x9b"
     "31m",
     "csi \\xc2\\x9b31m", "csi \\u009b31m"},
    {"nbsp\xc2\xa0", "nbsp\xc2\xa0", "nbsp\xc2\xa0"},
    {"broken \xc3(", "broken \\xc3(", "broken \\ufffd("},
    {"lone \x80", "lone \\x80", "lone \\ufffd"},
    {"overlong \xc0\xaf", "overlong \\xc0\\xaf", "overlong \\ufffd\\ufffd"},
    {"overlong \xe0\x80\xaf", "overlong \\xe0\\x80\\xaf", "overlong \\ufffd\\ufffd\\ufffd"},
    {"surrogate \xed\xa0\x80", "surrogate \\xed\\xa0\\x80", "surrogate \\ufffd\\ufffd\\ufffd"},
    {"beyond \xf4\x90\x80\x80", "beyond \\xf4\\x90\\x80\\x80",
     "beyond \\ufffd\\ufffd\\ufffd\\ufffd"},
    {"cut \xe2\x82", "cut \\xe2\\x82", "cut \\ufffd\\ufffd"},
    {"\xff", "\\xff", "\\ufffd"},
    {"", "", ""},
};

static void what_peers_sent_is_escaped(void **state)
{
    struct sink text, json;
    char wanted[256];
    (void)state;

    sink_open(&text, OS_LOG_TEXT, LOG_DEBUG);
    sink_open(&json, OS_LOG_JSON, LOG_DEBUG);
    for (size_t i = 0; i < sizeof(escapes) / sizeof(escapes[0]); i++) {
        log_event(text.log, LOG_INFO, "e", "%s", escapes[i].in);
        snprintf(wanted, sizeof(wanted), " info e %s\n", escapes[i].text);
        assert_string_equal(sink_read(&text) + 24, wanted);
        log_event(json.log, LOG_INFO, "e", "%s", escapes[i].in);
        snprintf(wanted, sizeof(wanted),
                 "\",\"level\":\"info\",\"event\":\"e\",\"message\":\"%s\"}\n", escapes[i].json);
        assert_string_equal(sink_read(&json) + 33, wanted);
        assert_memory_equal(got, "{\"time\":\"", 9);
        assert_time(got + 9);
    }
    sink_close(&text);
    sink_close(&json);
}

static void a_long_message_is_cut_and_says_so(void **state)
{
    struct sink s;
    char message[9000];
    size_t n;
    (void)state;

    for (int round = 0; round < 4; round++) {
        sink_open(&s, round % 2 ? OS_LOG_JSON : OS_LOG_TEXT, LOG_INFO);
        memset(message, round < 2 ? 'a' : '\1', sizeof(message)); /* the latter grow six-fold */
        message[sizeof(message) - 1] = '\0';
        log_event(s.log, LOG_INFO, "long", "%s", message);
        n = strlen(sink_read(&s));
        assert_true(n > 2000 && n <= 4096);
        assert_string_equal(got + n - (round % 2 ? 6 : 4), round % 2 ? "...\"}\n" : "...\n");
        assert_ptr_equal(strchr(got, '\n'), got + n - 1);
        sink_close(&s);
    }
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void a_reader_that_stalls_costs_lines_not_time(void **state)
{
    struct sink s;
    double before = seconds();
    unsigned lines = 0;
    (void)state;

    sink_open(&s, OS_LOG_TEXT, LOG_INFO);
    for (int i = 0; i < 20000; i++)
        log_event(s.log, LOG_INFO, "flood", "line %05d", i);
    assert_true(seconds() - before < 10);
    while (*sink_read(&s) != '\0') {
        for (const char *at = got; (at = strchr(at, '\n')) != NULL; at++)
            lines++;
    }
    assert_true(lines > 500 && lines < 20000);
    log_event(s.log, LOG_INFO, "after", "it reads again");
    sink_read(&s);
    assert_non_null(strstr(got, " info after it reads again\n"));
    unsigned lost = 0;

    assert_int_equal(sscanf(strstr(got, "log.lost"), "log.lost %u lines lost", &lost), 1);
    assert_int_equal(lost, 20000 - lines);
    log_event(s.log, LOG_INFO, "after", "twice");
    assert_null(strstr(sink_read(&s), "log.lost"));
    sink_close(&s);
}

static void a_reader_that_went_away_does_no_harm(void **state)
{
    struct sink s;
    (void)state;

    signal(SIGPIPE, SIG_IGN);
    sink_open(&s, OS_LOG_TEXT, LOG_INFO);
    close(s.ends[0]);
    for (int i = 0; i < 10; i++)
        log_event(s.log, LOG_INFO, "a", "b");
    s.ends[0] = dup(s.ends[1]);
    sink_close(&s);
}

static void *shout(void *log)
{
    for (int i = 0; i < 100; i++)
        log_event(log, LOG_INFO, "thread", "a line that must stay whole");
    return NULL;
}

static void threads_do_not_mix_their_lines(void **state)
{
    struct sink s;
    pthread_t threads[4];
    unsigned lines = 0;
    char *rest = NULL;
    (void)state;

    sink_open(&s, OS_LOG_TEXT, LOG_INFO);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, shout, s.log);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    sink_read(&s);
    for (char *line = strtok_r(got, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        assert_string_equal(line + 24, " info thread a line that must stay whole");
        lines++;
    }
    assert_int_equal(lines, 400);
    sink_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_says_when_how_grave_what_and_the_rest),
        cmocka_unit_test(below_the_level_nothing_is_written),
        cmocka_unit_test(what_peers_sent_is_escaped),
        cmocka_unit_test(a_long_message_is_cut_and_says_so),
        cmocka_unit_test(a_reader_that_stalls_costs_lines_not_time),
        cmocka_unit_test(a_reader_that_went_away_does_no_harm),
        cmocka_unit_test(threads_do_not_mix_their_lines),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
