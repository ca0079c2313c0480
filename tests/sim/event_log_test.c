/* SPDX-License-Identifier: Apache-2.0 */
/* The event log: whole lines or none, whatever becomes of the file. */
#include "control/event_log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "io/error.h"
#include "sim/files.h"

static struct sim_files files;
static struct event_log *events;

static void start(const char *path)
{
    sim_files_init(&files);
    events = event_log_create(&files.base, NULL);
    assert_non_null(events);
    event_log_set(events, bytes_of(path));
}

static void stop(void)
{
    event_log_free(events);
    sim_files_release(&files);
}

static void holds(const char *path, const char *content)
{
    assert_true(bytes_equal(sim_files_content(&files, path), bytes_of(content)));
}

static void lines_go_to_the_path_that_is_set(void **state)
{
    (void)state;

    start("");
    assert_false(event_log_on(events));
    event_log_put(events, BYTES("nobody sees it"));
    event_log_set(events, BYTES("a"));
    assert_true(event_log_on(events));
    event_log_put(events, BYTES("one"));
    event_log_set(events, BYTES("a"));
    event_log_put(events, BYTES("two"));
    event_log_set(events, BYTES("b"));
    event_log_put(events, BYTES("three"));
    event_log_set(events, BYTES_NONE);
    event_log_put(events, BYTES("four"));
    holds("a", "one\ntwo\n");
    holds("b", "three\n");
    stop();
}

static void what_a_full_disk_keeps_back_comes_when_there_is_room(void **state)
{
    (void)state;

    start("a");
    files.space = 6;
    event_log_put(events, BYTES("one"));
    event_log_put(events, BYTES("two"));
    holds("a", "one\ntw");
    event_log_put(events, BYTES("three"));
    files.space = 100;
    event_log_put(events, BYTES("four"));
    holds("a", "one\ntwo\nthree\nfour\n");
    assert_int_equal(*event_log_dropped(events), 0);
    stop();
}

static void what_waits_is_bounded_and_dropped_in_whole_lines(void **state)
{
    char line[1000];
    struct bytes all;
    (void)state;

    memset(line, 'x', sizeof(line));
    start("a");
    files.space = 500; /* the first is torn */
    for (uint32_t i = 0; i < 1000; i++)
        event_log_put(events, bytes_from(line, sizeof(line)));
    assert_in_range(*event_log_dropped(events), 700, 760);
    files.space = UINT64_C(1) << 30;
    event_log_put(events, BYTES("end"));
    event_log_put(events, BYTES("end"));
    all = sim_files_content(&files, "a");
    for (size_t i = 0, from = 0; i < all.len; i++) {
        if (all.data[i] != '\n')
            continue;
        assert_true(i - from == 1000 || i - from == 3);
        from = i + 1;
    }
    assert_int_equal(all.data[all.len - 1], '\n');
    stop();
}

static void opened_anew_a_torn_line_ends_with_its_file(void **state)
{
    (void)state;

    start("a");
    files.space = 6;
    event_log_put(events, BYTES("one"));
    event_log_put(events, BYTES("two"));
    event_log_put(events, BYTES("three"));
    event_log_set(events, BYTES("b"));
    files.space = 100;
    event_log_put(events, BYTES("four"));
    holds("a", "one\ntw");
    holds("b", "three\nfour\n"); /* not "o" */
    assert_int_equal(*event_log_dropped(events), 1);
    stop();
}

static void what_cannot_be_opened_is_tried_again(void **state)
{
    (void)state;

    sim_files_init(&files);
    files.fault = IO_REFUSED;
    events = event_log_create(&files.base, NULL);
    event_log_set(events, BYTES("a"));
    event_log_put(events, BYTES("one"));
    files.fault = IO_OK;
    event_log_reopen(events);
    event_log_put(events, BYTES("two"));
    holds("a", "one\ntwo\n");
    files.fault = IO_REFUSED;
    event_log_reopen(events); /* the old file stays */
    event_log_put(events, BYTES("three"));
    holds("a", "one\ntwo\nthree\n");
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_go_to_the_path_that_is_set),
        cmocka_unit_test(what_a_full_disk_keeps_back_comes_when_there_is_room),
        cmocka_unit_test(what_waits_is_bounded_and_dropped_in_whole_lines),
        cmocka_unit_test(opened_anew_a_torn_line_ends_with_its_file),
        cmocka_unit_test(what_cannot_be_opened_is_tried_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
