/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The proxy as a process: its loops, threads and signals put together around a snapshot. The
 * control loop runs on the calling thread, each worker on one of its own, the access log's writer
 * on another.
 */
#ifndef MAIN_DAEMON_H
#define MAIN_DAEMON_H

#include "io/files.h"
#include "io/log.h"
#include "main/reload.h"
#include "model/snapshot.h"

struct daemon_setup {
    struct snapshot *snapshot; /* without run-time state; the daemon takes a reference */
    const struct config_source_files *source; /* where to load it anew from */
    struct files *files;
    struct log *log;
};

/*
 * Opens all that is to be open, says where on standard output ("listening NAME ADDRESS",
 * "admin ADDRESS"), runs until it was told to stop and has. The process' exit code.
 */
int daemon_run(const struct daemon_setup *setup);

#endif
