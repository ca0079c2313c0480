/* SPDX-License-Identifier: Apache-2.0 */
/* The journal keeps the newest decisions, and writes each as one line of JSON that fits. */
#include "control/journal.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sim/files.h"

static struct sim_files files;
static struct journal *journal;

static int start(void **state)
{
    (void)state;
    sim_files_init(&files);
    journal = journal_create(&files.base, NULL);
    assert_non_null(journal);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    journal_free(journal);
    sim_files_release(&files);
    return 0;
}

static struct decision some(void)
{
    struct decision d = {.what = DECISION_EJECTED, .line = DETECT_LINE_COUNT, .guard = GUARD_COUNT};

    decision_name_set(&d.cluster, BYTES("c"));
    decision_name_set(&d.host, BYTES("h"));
    return d;
}

static uint32_t lines_in(struct bytes content)
{
    uint32_t n = 0;

    for (size_t i = 0; i < content.len; i++)
        n += content.data[i] == '\n';
    return n;
}

static void the_newest_are_kept_and_all_are_written(void **state)
{
    (void)state;

    assert_int_equal(journal_first(journal), journal_next(journal));
    for (uint32_t i = 0; i < JOURNAL_KEPT + 10; i++) {
        struct decision d = some();

        if (i == 10)
            journal_set(journal, BYTES("j"));
        d.times = i;
        journal_put(journal, &d);
        assert_int_equal(d.number, i + 1);
    }
    assert_int_equal(journal_first(journal), 11);
    assert_int_equal(journal_next(journal), JOURNAL_KEPT + 11);
    assert_int_equal(journal_at(journal, 11)->times, 10);
    assert_int_equal(journal_at(journal, JOURNAL_KEPT + 10)->times, JOURNAL_KEPT + 9);
    assert_int_equal(lines_in(sim_files_content(&files, "j")), JOURNAL_KEPT);
}

static void readers_are_bounded(void **state)
{
    (void)state;

    for (uint32_t i = 0; i < JOURNAL_READERS_MAX; i++)
        assert_true(journal_join(journal));
    assert_false(journal_join(journal));
    journal_leave(journal);
    assert_true(journal_join(journal));
    for (uint32_t i = 0; i < JOURNAL_READERS_MAX; i++)
        journal_leave(journal);
}

/* The largest that there can be: names of quotes, numbers with all their digits. */
static void any_decision_fits_into_its_room(void **state)
{
    char name[DECISION_NAME_MAX + 20], room[DECISION_JSON_ROOM], words[DECISION_WORDS_ROOM];
    struct decision d = some();
    struct text t;
    (void)state;

    memset(name, 1, sizeof(name));
    decision_name_set(&d.cluster, bytes_from(name, sizeof(name)));
    decision_name_set(&d.host, bytes_from(name, sizeof(name)));
    assert_int_equal(d.host.len, DECISION_NAME_MAX);
    d.number = d.when = d.at = UINT64_MAX;
    d.line = DETECT_ERRORS_SOME;
    d.statistic = d.threshold = d.ratio = d.gate = d.usual = -123456789012.0;
    d.rated = true;
    d.sure_for = d.out_for = UINT64_MAX;
    d.step_count = DECISION_STEPS;
    for (uint32_t i = 0; i < DECISION_STEPS; i++)
        d.steps[i] = (struct detect_step){UINT32_MAX, -1e9, -1e9, -1e9, -1e9};
    for (int what = 0; what < DECISION_COUNT; what++) {
        d.what = (enum decision_what)what;
        for (int g = 0; g <= GUARD_COUNT; g++) {
            d.guard = (enum decision_guard)g;
            text_init(&t, room, sizeof(room));
            decision_json(&t, &d);
            assert_false(t.failed);
            text_init(&t, words, sizeof(words));
            decision_words(&t, &d);
            assert_false(t.failed);
            text_init(&t, words, sizeof(words));
            decision_remedy(&t, &d);
            assert_false(t.failed);
        }
    }
}

/* What is no number is null, never something that is no JSON. */
static void odd_numbers_are_still_json(void **state)
{
    struct decision d = some();
    struct bytes line;
    (void)state;

    d.line = DETECT_RANK;
    d.statistic = (double)NAN;
    d.load = (double)INFINITY;
    journal_set(journal, BYTES("j"));
    journal_put(journal, &d);
    line = sim_files_content(&files, "j");
    assert_non_null(memmem(line.data, line.len, "\"statistic\":null", 16));
    assert_non_null(memmem(line.data, line.len, "\"load_without\":null", 19));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_newest_are_kept_and_all_are_written, start, stop),
        cmocka_unit_test_setup_teardown(readers_are_bounded, start, stop),
        cmocka_unit_test_setup_teardown(any_decision_fits_into_its_room, start, stop),
        cmocka_unit_test_setup_teardown(odd_numbers_are_still_json, start, stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
