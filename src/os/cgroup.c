/* SPDX-License-Identifier: Apache-2.0 */
#include "os/cgroup.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Reads a small file as a string; "" where it cannot be read. */
static void slurp(const char *path, char *out, size_t room)
{
    FILE *f = fopen(path, "re");
    size_t n = 0;

    if (f != NULL) {
        n = fread(out, 1, room - 1, f);
        fclose(f);
    }
    out[n] = '\0';
}

static void slurp_in(const char *folder, const char *name, char *out, size_t room)
{
    char path[PATH_MAX + 64];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    slurp(path, out, room);
}

static void tighten(uint64_t *limit, uint64_t value)
{
    if (value < *limit)
        *limit = value;
}

/* "max 100000" or "150000 100000": microseconds of CPU in each period. */
static void read_cpu(const char *folder, struct os_cgroup_limits *out)
{
    char text[64];
    int64_t quota = -1;
    int64_t period = 0;

    slurp_in(folder, "cpu.max", text, sizeof(text));
    if (sscanf(text, "%" SCNd64 " %" SCNd64, &quota, &period) != 2) {
        slurp_in(folder, "cpu.cfs_quota_us", text, sizeof(text)); /* -1: none */
        if (sscanf(text, "%" SCNd64, &quota) != 1)
            return;
        slurp_in(folder, "cpu.cfs_period_us", text, sizeof(text));
        if (sscanf(text, "%" SCNd64, &period) != 1)
            return;
    }
    if (quota > 0 && quota < INT64_MAX / 1000 && period > 0)
        tighten(&out->cpu_permille, (uint64_t)(quota * 1000 / period));
}

static void read_memory(const char *folder, struct os_cgroup_limits *out)
{
    const char *const names[] = {"memory.max", "memory.high", "memory.limit_in_bytes"};
    char text[64];
    int64_t limit; /* v1 says "none" by a number near the largest */

    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        slurp_in(folder, names[i], text, sizeof(text));
        if (sscanf(text, "%" SCNd64, &limit) == 1 && limit > 0)
            tighten(&out->memory, (uint64_t)limit);
    }
}

/* From |group| up to the root of the hierarchy at |root|. */
static void climb(const char *root, const char *group, struct os_cgroup_limits *out)
{
    char folder[PATH_MAX];
    size_t stem = strlen(root);
    int n = snprintf(folder, sizeof(folder), "%s%s", root, group);

    if (n < 0 || (size_t)n >= sizeof(folder))
        return;
    for (;;) {
        char *slash;

        read_cpu(folder, out);
        read_memory(folder, out);
        slash = strrchr(folder + stem, '/');
        if (slash == NULL)
            return;
        *slash = '\0';
    }
}

/* True where |list| ("cpu,cpuacct") has the word. */
static int names(const char *list, const char *word)
{
    size_t n = strlen(word);
    const char *at = list;

    while ((at = strstr(at, word)) != NULL) {
        if ((at == list || at[-1] == ',') && (at[n] == '\0' || at[n] == ','))
            return 1;
        at += n;
    }
    return 0;
}

/* A line is "0::/path" (version 2) or "4:cpu,cpuacct:/path" (version 1). */
static void read_line(char *line, const char *mount, struct os_cgroup_limits *out)
{
    char root[PATH_MAX];
    char *list = strchr(line, ':');
    char *path = list == NULL ? NULL : strchr(list + 1, ':');

    if (path == NULL)
        return;
    *path++ = '\0';
    list++;
    if (*list == '\0') {
        climb(mount, path, out);
        return;
    }
    if (!names(list, "cpu") && !names(list, "memory"))
        return;
    snprintf(root, sizeof(root), "%s/%s", mount, names(list, "memory") ? "memory" : "cpu");
    climb(root, path, out);
}

void os_cgroup_read(const char *self, const char *mount, struct os_cgroup_limits *out)
{
    char text[8192];
    char *rest = NULL;

    *out = (struct os_cgroup_limits){.cpu_permille = UINT64_MAX, .memory = UINT64_MAX};
    slurp(self, text, sizeof(text));
    for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
        read_line(line, mount, out);
}

unsigned os_cgroup_cpus(const struct os_cgroup_limits *limits, unsigned allowed)
{
    uint64_t quota = limits->cpu_permille / 1000 + (limits->cpu_permille % 1000 != 0);
    uint64_t cpus = quota < allowed ? quota : allowed;

    return cpus == 0 ? 1 : (unsigned)cpus;
}
