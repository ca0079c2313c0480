/* SPDX-License-Identifier: Apache-2.0 */
#include "stats/metrics.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    const char *of;
    const struct metric_info *info;
    unsigned count;
} lists[] = {
    {"cluster", cluster_metric_info, CLUSTER_METRIC_COUNT},
    {"retry", retry_metric_info, RETRY_METRIC_COUNT},
    {"endpoint", endpoint_metric_info, ENDPOINT_METRIC_COUNT},
    {"outlier", outlier_metric_info, OUTLIER_METRIC_COUNT},
    {"effect", effect_metric_info, EFFECT_METRIC_COUNT},
    {"discovery", discovery_metric_info, DISCOVERY_METRIC_COUNT},
    {"http", http_metric_info, HTTP_METRIC_COUNT},
    {"worker", worker_metric_info, WORKER_METRIC_COUNT},
};
#define LISTS (sizeof(lists) / sizeof(lists[0]))

static void every_metric_has_a_name_of_its_own_and_a_help_text(void **state)
{
    (void)state;
    for (size_t l = 0; l < LISTS; l++) {
        for (unsigned i = 0; i < lists[l].count; i++) {
            const struct metric_info *info = &lists[l].info[i];

            assert_non_null(info->name);
            assert_true(strspn(info->name, "abcdefghijklmnopqrstuvwxyz0123456789_") ==
                        strlen(info->name));
            assert_true(info->help != NULL && strlen(info->help) > 3);
            for (unsigned j = 0; j < i; j++)
                assert_string_not_equal(info->name, lists[l].info[j].name);
        }
    }
}

static void names_stand_at_the_index_of_their_constant(void **state)
{
    (void)state;
    assert_string_equal(cluster_metric_info[CLUSTER_upstream_rq_total].name, "upstream_rq_total");
    assert_string_equal(cluster_metric_info[CLUSTER_reuse_resend].name, "reuse_resend");
    assert_string_equal(endpoint_metric_info[ENDPOINT_rq_timeout].name, "rq_timeout");
    assert_string_equal(outlier_metric_info[OUTLIER_STAT_ejections_active].name,
                        "ejections_active");
    assert_string_equal(http_metric_info[HTTP_no_route].name, "no_route");
    assert_string_equal(worker_metric_info[WORKER_records_dropped].name, "records_dropped");
}

/* A gauge that was called a counter would be wrong in every rate() over it. */
static void only_what_goes_down_again_is_a_gauge(void **state)
{
    (void)state;
    for (size_t l = 0; l < LISTS; l++) {
        if (strcmp(lists[l].of, "effect") == 0)
            continue; /* estimates, not counts of what is there */
        for (unsigned i = 0; i < lists[l].count; i++) {
            const char *name = lists[l].info[i].name;
            size_t n = strlen(name);
            int active =
                (n > 7 && strcmp(name + n - 7, "_active") == 0) || strcmp(name, "verdict") == 0;

            assert_int_equal(lists[l].info[i].kind == METRIC_GAUGE, active);
        }
    }
}

static const char *documentation(void)
{
    static char text[1 << 17];
    FILE *f = fopen(TESTS_DIR "/../docs/metrics.md", "r");

    assert_non_null(f);
    text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
    fclose(f);
    return text;
}

/* With its kind and in the same words as here. */
static void every_metric_stands_in_the_documentation(void **state)
{
    const char *text = documentation();
    (void)state;

    for (size_t l = 0; l < LISTS; l++) {
        for (unsigned i = 0; i < lists[l].count; i++) {
            const struct metric_info *info = &lists[l].info[i];
            const char *kind = info->kind == METRIC_COUNTER ? "counter" : "gauge";
            const char *help = info->help + (strncmp(info->help, "firebreak: ", 11) == 0 ? 11 : 0);
            char begin[200], end[300];
            const char *row, *rest;

            snprintf(begin, sizeof(begin), "\n| `%s` |", info->name);
            snprintf(end, sizeof(end), " | %s | %s |\n", kind, help);
            for (row = strstr(text, begin); row != NULL; row = strstr(row + 1, begin)) {
                rest = strstr(row, end);
                if (rest != NULL && rest < strchr(row + 1, '\n'))
                    break;
            }
            if (row == NULL)
                fail_msg("docs/metrics.md has no row %s ... %s", begin + 1, end);
        }
    }
}

static void a_status_is_counted_under_its_code(void **state)
{
    struct status_cells s = {0};
    (void)state;

    status_cells_add(&s, 200);
    status_cells_add(&s, 503);
    status_cells_add(&s, 200);
    assert_int_equal(s.code[0], 200);
    assert_int_equal(s.count[0], 2);
    assert_int_equal(s.code[1], 503);
    assert_int_equal(s.count[1], 1);
    assert_int_equal(s.code[2], 0);
}

static void no_status_is_not_a_code(void **state)
{
    struct status_cells s = {0};
    (void)state;

    status_cells_add(&s, 0);
    assert_int_equal(s.count[0], 0);
}

static void a_full_table_keeps_counting_the_codes_it_has(void **state)
{
    struct status_cells s = {0};
    (void)state;

    for (uint32_t code = 200; code < 200 + STATUS_SLOTS + 10; code++)
        status_cells_add(&s, code);
    status_cells_add(&s, 200 + STATUS_SLOTS - 1);
    assert_int_equal(s.code[STATUS_SLOTS - 1], 200 + STATUS_SLOTS - 1);
    assert_int_equal(s.count[STATUS_SLOTS - 1], 2);
    for (unsigned i = 0; i + 1 < STATUS_SLOTS; i++)
        assert_int_equal(s.count[i], 1);
}

/* Two workers, one opens what the other closes: the shares wrap, the sum does not. */
static void shares_of_a_gauge_may_be_negative_their_sum_is_not(void **state)
{
    _Atomic uint64_t a = 0, b = 0;
    (void)state;

    cell_add(&a, 3);
    cell_sub(&b, 2);
    assert_int_equal(cell_read(&a) + cell_read(&b), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_metric_has_a_name_of_its_own_and_a_help_text),
        cmocka_unit_test(names_stand_at_the_index_of_their_constant),
        cmocka_unit_test(only_what_goes_down_again_is_a_gauge),
        cmocka_unit_test(every_metric_stands_in_the_documentation),
        cmocka_unit_test(a_status_is_counted_under_its_code),
        cmocka_unit_test(no_status_is_not_a_code),
        cmocka_unit_test(a_full_table_keeps_counting_the_codes_it_has),
        cmocka_unit_test(shares_of_a_gauge_may_be_negative_their_sum_is_not),
    };

    return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}
