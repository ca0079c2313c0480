/* SPDX-License-Identifier: Apache-2.0 */
#include "os/cgroup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include <cmocka.h>

/* One file of a made-up /sys/fs/cgroup, or (path NULL) the end. */
struct given {
    const char *path;
    const char *text;
};

#define NONE UINT64_MAX

static const struct {
    const char *name;
    const char *self;
    struct given files[6];
    uint64_t cpu, memory;
} cases[] = {
    {"no groups at all", "", {{NULL, NULL}}, NONE, NONE},
    {"v2, no limits",
     "0::/a\n",
     {{"a/cpu.max", "max 100000\n"}, {"a/memory.max", "max\n"}},
     NONE,
     NONE},
    {"v2, own limits",
     "0::/a/b\n",
     {{"a/b/cpu.max", "150000 100000\n"}, {"a/b/memory.max", "1048576\n"}},
     1500,
     1048576},
    {"v2, a parent's are tighter",
     "0::/a/b\n",
     {{"a/b/cpu.max", "400000 100000\n"},
      {"a/cpu.max", "50000 100000\n"},
      {"a/b/memory.max", "2000000\n"},
      {"a/memory.max", "1000000\n"}},
     500,
     1000000},
    {"v2, a parent's are looser",
     "0::/a/b\n",
     {{"a/b/cpu.max", "50000 100000\n"},
      {"a/cpu.max", "400000 100000\n"},
      {"a/b/memory.max", "1000000\n"},
      {"a/memory.max", "max\n"}},
     500,
     1000000},
    {"v2, a container sees only its root",
     "0::/\n",
     {{"cpu.max", "200000 100000\n"}, {"memory.max", "5000000\n"}},
     2000,
     5000000},
    {"v2, memory.high throttles before",
     "0::/a\n",
     {{"a/memory.max", "2000000\n"}, {"a/memory.high", "1500000\n"}},
     NONE,
     1500000},
    {"v1",
     "5:memory:/m\n4:cpu,cpuacct:/c\n3:pids:/p\n",
     {{"cpu/c/cpu.cfs_quota_us", "250000\n"},
      {"cpu/c/cpu.cfs_period_us", "100000\n"},
      {"memory/m/memory.limit_in_bytes", "3000000\n"}},
     2500,
     3000000},
    {"v1, no quota",
     "4:cpuacct,cpu:/c\n",
     {{"cpu/c/cpu.cfs_quota_us", "-1\n"}, {"cpu/c/cpu.cfs_period_us", "100000\n"}},
     NONE,
     NONE},
    {"v1, in docker the path is not ours",
     "5:memory:/docker/abc\n4:cpu:/docker/abc\n",
     {{"cpu/cpu.cfs_quota_us", "100000\n"},
      {"cpu/cpu.cfs_period_us", "50000\n"},
      {"memory/memory.limit_in_bytes", "4000000\n"}},
     2000,
     4000000},
    {"a word within a word",
     "4:cpuset,xcpu:/c\n",
     {{"cpu/c/cpu.cfs_quota_us", "1000\n"}, {"cpu/c/cpu.cfs_period_us", "1000\n"}},
     NONE,
     NONE},
    {"nonsense",
     "hello\n::\n0:\n0::/a\n",
     {{"a/cpu.max", "lots\n"}, {"a/memory.max", "-5x\n"}},
     NONE,
     NONE},
    {"a period of zero", "0::/a\n", {{"a/cpu.max", "5 0\n"}, {"a/memory.max", "0\n"}}, NONE, NONE},
};

static void put(const char *root, const char *path, const char *text)
{
    char full[512];
    FILE *f;

    snprintf(full, sizeof(full), "%s/%s", root, path);
    for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        mkdir(full, 0700);
        *slash = '/';
    }
    f = fopen(full, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void the_tightest_limit_on_the_way_up_counts(void **state)
{
    (void)state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char root[] = "/tmp/fb-os-cgroup-XXXXXX";
        char self[64], remove[64];
        struct os_cgroup_limits got;

        assert_non_null(mkdtemp(root));
        snprintf(self, sizeof(self), "%s/self", root);
        put(root, "self", cases[i].self);
        for (const struct given *g = cases[i].files; g < cases[i].files + 6 && g->path; g++)
            put(root, g->path, g->text);
        os_cgroup_read(self, root, &got);
        snprintf(remove, sizeof(remove), "rm -r %s", root);
        assert_int_equal(system(remove), 0);
        if (got.cpu_permille != cases[i].cpu || got.memory != cases[i].memory)
            fail_msg("%s: %llu permille, %llu bytes", cases[i].name,
                     (unsigned long long)got.cpu_permille, (unsigned long long)got.memory);
    }
}

static void nothing_to_read_is_no_limit(void **state)
{
    struct os_cgroup_limits got;
    (void)state;

    os_cgroup_read("/nonexistent/self", "/nonexistent", &got);
    assert_true(got.cpu_permille == NONE && got.memory == NONE);
}

static void a_part_of_a_cpu_counts_as_one(void **state)
{
    const struct {
        uint64_t permille;
        unsigned allowed, cpus;
    } rows[] = {{NONE, 8, 8}, {100, 8, 1}, {1000, 8, 1},  {1001, 8, 2}, {7999, 8, 8},
                {9000, 8, 8}, {0, 8, 1},   {2500, 64, 3}, {2500, 2, 2}, {500, 1, 1}};
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct os_cgroup_limits limits = {.cpu_permille = rows[i].permille, .memory = NONE};

        assert_int_equal(os_cgroup_cpus(&limits, rows[i].allowed), rows[i].cpus);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tightest_limit_on_the_way_up_counts),
        cmocka_unit_test(a_part_of_a_cpu_counts_as_one),
        cmocka_unit_test(nothing_to_read_is_no_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
