/* SPDX-License-Identifier: Apache-2.0 */
/* What the process has and who it is. */
#ifndef OS_PROCESS_H
#define OS_PROCESS_H

#include <stddef.h>
#include <stdint.h>

/* Raises the soft limit on descriptors to the hard one; what holds now. */
uint64_t os_process_raise_descriptors(void);

/* CPUs that we may use: by affinity and by the quota of our control groups, rounded up; >= 1. */
unsigned os_process_cpus(void);

/* Bytes of memory that we may use: the machine's or our control groups'; 0: not known. */
uint64_t os_process_memory(void);

/*
 * Becomes |user|, with its groups, for good. IO_OK; IO_NOT_FOUND: no such user; IO_DENIED: we are
 * not root (being that user already is fine); IO_OTHER: it did not hold, and one must not go on.
 * Before threads are started.
 */
int os_process_become(const char *user);

/* What the machine is called, in |room|, a string; NULL: not known. */
const char *os_process_hostname(char *room, size_t size);

/* A seed from the kernel. */
uint64_t os_process_seed(void);

#endif
