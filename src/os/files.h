/* SPDX-License-Identifier: Apache-2.0 */
/* io/files.h on the file system. From any thread; one file from one thread at a time. */
#ifndef OS_FILES_H
#define OS_FILES_H

#include "io/files.h"

/* Holds nothing, so there is nothing to release. */
void os_files_init(struct files *f);

/* Another value when the file has become another one; 0: there is none. */
uint64_t os_file_stamp(const char *path);

#endif
