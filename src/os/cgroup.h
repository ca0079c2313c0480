/* SPDX-License-Identifier: Apache-2.0 */
/* What the control groups we run in allow: the limits that containers are given. */
#ifndef OS_CGROUP_H
#define OS_CGROUP_H

#include <stdint.h>

struct os_cgroup_limits {
    uint64_t cpu_permille; /* 1000: one CPU. UINT64_MAX: no limit */
    uint64_t memory;       /* bytes. UINT64_MAX: no limit */
};

/*
 * The tightest of all groups from ours up to the root, version 1 and 2. |self| is /proc/self/cgroup
 * and |mount| /sys/fs/cgroup, unless in a test.
 */
void os_cgroup_read(const char *self, const char *mount, struct os_cgroup_limits *out);

/* Whole CPUs: the quota rounded up, no more than |allowed|, at least 1. */
unsigned os_cgroup_cpus(const struct os_cgroup_limits *limits, unsigned allowed);

#endif
