/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/access_log.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/list.h"
#include "io/error.h"
#include "telemetry/sample_record.h"

/* --- a file that misbehaves on command, and a log that is remembered --- */

#define DISK (1u << 20)

struct file {
    char content[DISK];
    size_t len;
    int open;
};

static struct disk {
    struct files base;
    struct file files[3];
    unsigned opened; /* how often */
    size_t room;     /* of the disk: bytes that still fit, then IO_NO_SPACE */
    size_t chunk;    /* most bytes in one append; 0: no limit */
    int fault;       /* what append gives instead, if not IO_OK */
    bool stuck;      /* append gives 0 */
    int open_fault;
} disk;

static int disk_open(struct files *f, const char *path, struct file **out)
{
    (void)f;
    assert_string_equal(path, "/var/log/access");
    if (disk.open_fault != IO_OK)
        return disk.open_fault;
    *out = &disk.files[disk.opened++];
    (*out)->open = 1;
    return IO_OK;
}

static ptrdiff_t disk_append(struct files *f, struct file *file, struct bytes data)
{
    size_t n = data.len;
    (void)f;

    assert_int_equal(file->open, 1);
    assert_true(n > 0);
    if (disk.stuck)
        return 0;
    if (disk.fault != IO_OK)
        return disk.fault;
    if (disk.room == 0)
        return IO_NO_SPACE;
    if (disk.chunk != 0 && n > disk.chunk)
        n = disk.chunk;
    if (n > disk.room)
        n = disk.room;
    assert_true(file->len + n <= DISK);
    memcpy(file->content + file->len, data.data, n);
    file->len += n;
    disk.room -= n;
    return (ptrdiff_t)n;
}

static void disk_close(struct files *f, struct file *file)
{
    (void)f;
    assert_int_equal(file->open, 1);
    file->open = 0;
}

static const struct files_ops disk_ops = {
    .open = disk_open, .append = disk_append, .close = disk_close};

static unsigned trouble, recovered;
static char last_line[200];

__attribute__((format(printf, 4, 0))) static void
remember(struct log *l, enum log_level level, const char *event, const char *format, va_list args)
{
    (void)l;
    (void)level;
    trouble += strcmp(event, "access_log.trouble") == 0;
    recovered += strcmp(event, "access_log.recovered") == 0;
    vsnprintf(last_line, sizeof(last_line), format, args);
}

static struct log daemon_log = {.write = remember, .least = LOG_DEBUG};

static const struct access_item short_items[] = {
    {.op = ACCESS_LITERAL, .other = ACCESS_NOTHING, .text = {(const uint8_t *)"to ", 3}},
    {.op = ACCESS_PATH, .other = ACCESS_NOTHING},
};
static const struct access_format short_line = {.text = {.count = 2, .items = short_items}};

static struct access_log *log_with(uint32_t workers, const struct access_format *format)
{
    struct access_log_setup setup = {.files = &disk.base,
                                     .path = "/var/log/access",
                                     .format = format,
                                     .workers = workers,
                                     .ring_size = 64 * 1024,
                                     .log = &daemon_log};
    struct access_log *l;

    memset(&disk, 0, sizeof(disk));
    disk.base.ops = &disk_ops;
    disk.room = SIZE_MAX;
    trouble = recovered = 0;
    assert_int_equal(access_log_create(&setup, &l), IO_OK);
    return l;
}

static bool put(struct access_log *l, uint32_t worker, uint64_t number)
{
    struct request_record r = sample_record();

    r.bytes_sent = number;
    return record_put(access_log_sink(l, worker), &r);
}

/* Checks that every line of a file is one whole JSON object; returns how many. */
static uint64_t whole_lines(const struct file *file)
{
    uint64_t n = 0;

    for (size_t at = 0; at < file->len; n++) {
        const char *line = file->content + at;
        const char *end = memchr(line, '\n', file->len - at);
        json_t *parsed;

        assert_non_null(end);
        parsed = json_loadb(line, (size_t)(end - line), 0, NULL);
        if (parsed == NULL)
            fail_msg("torn: %.*s", (int)(end - line), line);
        json_decref(parsed);
        at += (size_t)(end - line) + 1;
    }
    return n;
}

static uint64_t written(const struct access_log *l)
{
    return *access_log_written(l);
}

static uint64_t dropped(const struct access_log *l)
{
    return *access_log_dropped(l);
}

/* --- the tests --- */

static void a_record_becomes_a_line(void **state)
{
    struct access_log *l = log_with(2, NULL);
    (void)state;

    assert_true(put(l, 0, 1));
    assert_true(put(l, 1, 2));
    assert_int_equal(disk.files[0].len, 0); /* not on the worker's path */
    assert_int_equal(access_log_drain(l), 2);
    assert_int_equal(whole_lines(&disk.files[0]), 2);
    assert_int_equal(access_log_drain(l), 0);
    assert_int_equal(written(l), 2);
    assert_int_equal(dropped(l), 0);
    access_log_free(l);
    assert_int_equal(disk.files[0].open, 0);
}

static void text_lines_are_written_where_asked_for(void **state)
{
    struct access_log *l = log_with(1, &short_line);
    (void)state;

    put(l, 0, 77);
    access_log_drain(l);
    assert_memory_equal(disk.files[0].content, "to /cart?id=7\n", 14);
    access_log_free(l);
}

static void a_full_ring_drops_and_says_so(void **state)
{
    struct access_log *l = log_with(1, NULL);
    unsigned n = 0;
    (void)state;

    while (put(l, 0, n))
        n++;
    assert_in_range(n, 20, 200);
    assert_false(put(l, 0, n));
    assert_int_equal(access_log_drain(l), n);
    assert_true(put(l, 0, n));
    assert_int_equal(access_log_drain(l), 1);
    assert_int_equal(whole_lines(&disk.files[0]), n + 1);
    access_log_free(l);
}

static void a_full_disk_drops_whole_lines_and_tears_none(void **state)
{
    (void)state;
    for (size_t room = 0; room < 3000; room += 7) {
        struct access_log *l = log_with(1, NULL);

        disk.room = room;
        for (uint64_t i = 0; i < 5; i++)
            put(l, 0, i);
        access_log_drain(l);
        put(l, 0, 5);
        access_log_drain(l);
        assert_int_equal(trouble, 1);
        assert_int_equal(recovered, 0);
        disk.room = SIZE_MAX;
        put(l, 0, 6);
        access_log_drain(l);
        assert_int_equal(recovered, 1);
        assert_int_equal(whole_lines(&disk.files[0]), written(l));
        assert_int_equal(written(l) + dropped(l), 7);
        assert_int_equal(trouble, 1);
        access_log_free(l);
    }
}

static void recovery_says_how_many_lines_were_lost(void **state)
{
    struct access_log *l = log_with(1, NULL);
    (void)state;

    disk.fault = IO_CLOSED;
    put(l, 0, 1);
    put(l, 0, 2);
    access_log_drain(l);
    assert_non_null(strstr(last_line, "/var/log/access: closed by peer"));
    put(l, 0, 3);
    access_log_drain(l);
    disk.fault = IO_OK;
    put(l, 0, 4);
    access_log_drain(l);
    assert_non_null(strstr(last_line, " 3 lines"));
    assert_int_equal(trouble, 1);
    disk.fault = IO_NO_SPACE;
    put(l, 0, 5);
    access_log_drain(l);
    disk.fault = IO_OK;
    put(l, 0, 6);
    access_log_drain(l);
    assert_int_equal(trouble, 2);
    assert_non_null(strstr(last_line, " 1 lines"));
    access_log_free(l);
}

/* A disk that takes a little now and then must not fill the daemon's log. */
static void a_partial_write_is_no_recovery(void **state)
{
    struct access_log *l = log_with(1, NULL);
    (void)state;

    for (int i = 0; i < 50; i++) {
        put(l, 0, 1);
        disk.room = 20;
        access_log_drain(l);
    }
    assert_int_equal(trouble, 1);
    assert_int_equal(recovered, 0);
    access_log_free(l);
}

static void partial_writes_are_completed(void **state)
{
    struct access_log *l = log_with(1, NULL);
    (void)state;

    disk.chunk = 13;
    for (uint64_t i = 0; i < 20; i++)
        put(l, 0, i);
    assert_int_equal(access_log_drain(l), 20);
    assert_int_equal(whole_lines(&disk.files[0]), 20);
    assert_int_equal(written(l), 20);
    access_log_free(l);
}

static void a_file_that_takes_nothing_for_now_loses_nothing_but_by_full_rings(void **state)
{
    struct access_log *l = log_with(1, NULL);
    uint64_t taken = 0, drained = 0, got;
    (void)state;

    disk.stuck = true;
    do {
        while (put(l, 0, taken))
            taken++;
        got = access_log_drain(l);
        drained += got;
    } while (got > 0);
    assert_true(drained < taken);
    assert_int_equal(dropped(l), 0);
    disk.stuck = false;
    while (access_log_drain(l) > 0)
        ;
    assert_int_equal(whole_lines(&disk.files[0]), taken);
    access_log_free(l);
}

static void reopening_goes_on_in_a_new_file(void **state)
{
    struct access_log *l = log_with(1, NULL);
    (void)state;

    put(l, 0, 1);
    access_log_drain(l);
    access_log_reopen(l);
    put(l, 0, 2);
    access_log_drain(l);
    access_log_drain(l);
    assert_int_equal(disk.opened, 2);
    assert_int_equal(disk.files[0].open, 0);
    assert_int_equal(whole_lines(&disk.files[0]), 1);
    assert_int_equal(whole_lines(&disk.files[1]), 1);
    access_log_free(l);
}

static void a_path_that_cannot_be_opened_anew_keeps_the_old_file(void **state)
{
    struct access_log *l = log_with(1, NULL);
    (void)state;

    disk.open_fault = IO_DENIED;
    access_log_reopen(l);
    put(l, 0, 2);
    access_log_drain(l);
    assert_int_equal(disk.files[0].open, 1);
    assert_int_equal(whole_lines(&disk.files[0]), 1);
    access_log_free(l);
}

static void a_new_file_never_begins_within_a_line(void **state)
{
    struct access_log *l = log_with(1, NULL);
    (void)state;

    disk.room = 100;
    put(l, 0, 1);
    put(l, 0, 2);
    access_log_drain(l); /* 100 bytes of the first line are in the old file */
    access_log_reopen(l);
    access_log_drain(l);
    disk.room = SIZE_MAX;
    put(l, 0, 3);
    access_log_drain(l);
    assert_int_equal(whole_lines(&disk.files[1]), 1);
    assert_int_equal(written(l), 1);
    assert_int_equal(dropped(l), 2);
    access_log_free(l);
}

static void a_line_begun_is_completed_before_the_file_is_changed(void **state)
{
    struct access_log *l = log_with(1, NULL);
    (void)state;

    disk.room = 100;
    put(l, 0, 1);
    access_log_drain(l);
    disk.room = SIZE_MAX;
    access_log_reopen(l);
    put(l, 0, 2);
    access_log_drain(l);
    assert_int_equal(whole_lines(&disk.files[0]), 1);
    assert_int_equal(whole_lines(&disk.files[1]), 1);
    assert_int_equal(dropped(l), 0);
    access_log_free(l);
}

static void a_path_that_cannot_be_opened_is_an_error_at_once(void **state)
{
    struct access_log_setup setup = {
        .files = &disk.base, .path = "/var/log/access", .workers = 1, .log = &daemon_log};
    struct access_log *l = NULL;
    (void)state;

    memset(&disk, 0, sizeof(disk));
    disk.base.ops = &disk_ops;
    disk.open_fault = IO_NOT_FOUND;
    assert_int_equal(access_log_create(&setup, &l), IO_NOT_FOUND);
    assert_null(l);
}

/* Random trouble: what was accepted is written or counted as dropped, and no line is ever torn. */
static void whatever_the_disk_does_lines_are_whole_and_accounted_for(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct access_log *l = log_with(2, NULL);
        uint64_t random = seed, accepted = 0;

        for (int step = 0; step < 400; step++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
            switch (random >> 61) {
            case 0:
                disk.room = (random >> 20) % 2000;
                break;
            case 1:
                disk.chunk = (random >> 20) % 500;
                disk.stuck = (random >> 40) % 8 == 0;
                break;
            case 2:
                disk.room = SIZE_MAX;
                break;
            case 3:
                access_log_drain(l);
                break;
            default:
                accepted += put(l, (random >> 20) % 2, random >> 8);
                break;
            }
        }
        disk.room = SIZE_MAX;
        disk.stuck = false;
        while (access_log_drain(l) > 0)
            ;
        assert_int_equal(whole_lines(&disk.files[0]), written(l));
        assert_int_equal(written(l) + dropped(l), accepted);
        access_log_free(l);
    }
}

#define RECORDS 20000

struct worker {
    struct access_log *log;
    uint32_t index;
    uint64_t refused;
};

static void *work(void *arg)
{
    struct worker *w = arg;

    for (uint64_t i = 0; i < RECORDS; i++)
        w->refused += !put(w->log, w->index, i);
    return NULL;
}

static void workers_and_the_writer_run_side_by_side(void **state)
{
    struct access_log *l = log_with(2, NULL);
    struct worker workers[2] = {{l, 0, 0}, {l, 1, 0}};
    pthread_t threads[2];
    uint64_t drained = 0, got, total;
    (void)state;

    disk.fault = IO_NO_SPACE; /* formatting and counting are what is looked at here */
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    for (int i = 0; i < 200; i++)
        drained += access_log_drain(l);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    while ((got = access_log_drain(l)) > 0)
        drained += got;
    total = drained + workers[0].refused + workers[1].refused;
    assert_int_equal(total, 2 * RECORDS);
    assert_int_equal(dropped(l), drained);
    access_log_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_becomes_a_line),
        cmocka_unit_test(text_lines_are_written_where_asked_for),
        cmocka_unit_test(a_full_ring_drops_and_says_so),
        cmocka_unit_test(a_full_disk_drops_whole_lines_and_tears_none),
        cmocka_unit_test(recovery_says_how_many_lines_were_lost),
        cmocka_unit_test(a_partial_write_is_no_recovery),
        cmocka_unit_test(partial_writes_are_completed),
        cmocka_unit_test(a_file_that_takes_nothing_for_now_loses_nothing_but_by_full_rings),
        cmocka_unit_test(reopening_goes_on_in_a_new_file),
        cmocka_unit_test(a_path_that_cannot_be_opened_anew_keeps_the_old_file),
        cmocka_unit_test(a_new_file_never_begins_within_a_line),
        cmocka_unit_test(a_line_begun_is_completed_before_the_file_is_changed),
        cmocka_unit_test(a_path_that_cannot_be_opened_is_an_error_at_once),
        cmocka_unit_test(whatever_the_disk_does_lines_are_whole_and_accounted_for),
        cmocka_unit_test(workers_and_the_writer_run_side_by_side),
    };

    return cmocka_run_group_tests_name("access_log", tests, NULL, NULL);
}
