/* SPDX-License-Identifier: Apache-2.0 */
#include "os/usage.h"

#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static uint64_t resident(void)
{
    unsigned long long total, pages;
    FILE *f = fopen("/proc/self/statm", "re");
    int n;

    if (f == NULL)
        return 0;
    n = fscanf(f, "%llu %llu", &total, &pages);
    fclose(f);
    return n == 2 ? (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

static uint64_t descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    uint64_t n = 0;

    if (d == NULL)
        return 0;
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n > 3 ? n - 3 : 0; /* ".", ".." and the directory itself */
}

void os_usage_read(struct os_usage *out)
{
    struct mallinfo2 heap = mallinfo2();
    struct rlimit limit = {0};

    getrlimit(RLIMIT_NOFILE, &limit);
    *out = (struct os_usage){
        .allocated = heap.uordblks + heap.hblkhd,
        .heap = heap.arena + heap.hblkhd,
        .resident = resident(),
        .descriptors = descriptors(),
        .descriptors_max = limit.rlim_cur,
    };
}
