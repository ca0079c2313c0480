/* SPDX-License-Identifier: Apache-2.0 */
/* What the process uses at present. Costs a few system calls: for pages, not for loops. */
#ifndef OS_USAGE_H
#define OS_USAGE_H

#include <stdint.h>

struct os_usage {
    uint64_t allocated;       /* bytes in use on the heap */
    uint64_t heap;            /* bytes taken from the system for it */
    uint64_t resident;        /* bytes; 0: not known */
    uint64_t descriptors;     /* open; 0: not known */
    uint64_t descriptors_max; /* soft limit */
};

void os_usage_read(struct os_usage *out);

#endif
