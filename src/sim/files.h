/* SPDX-License-Identifier: Apache-2.0 */
/* A small file system in memory, whose disk can be full, whose files can be unreadable. */
#ifndef SIM_FILES_H
#define SIM_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "io/files.h"

struct sim_files {
    struct files base; /* first */
    struct list all;   /* struct file */
    uint64_t space;    /* bytes that still fit on the disk */
    int fault;         /* what open and read give; IO_OK: none */
};

void sim_files_init(struct sim_files *f);
void sim_files_release(struct sim_files *f);

/* Writes a file whole. False: no memory. */
bool sim_files_put(struct sim_files *f, const char *path, struct bytes content);

/* What is in it; {NULL, 0} where there is no such file. Valid until the next write. */
struct bytes sim_files_content(const struct sim_files *f, const char *path);

#endif
