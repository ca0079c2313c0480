/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loading the configuration anew while the proxy runs: on a thread of its own, so that neither a
 * large file nor a slow name server holds up the control loop; then it is published whole, or
 * refused whole. Asked for by HUP, by POST /reload, and where files are watched by a change.
 */
#ifndef MAIN_RELOAD_H
#define MAIN_RELOAD_H

#include <stdbool.h>

#include "base/text.h"
#include "control/control.h"
#include "control/reloader.h"
#include "io/log.h"
#include "io/poller.h"
#include "model/snapshot.h"

/* Where a configuration comes from. */
struct config_source_files {
    /*
     * Reads it; on any thread, but on one at a time. |before| is what it is to replace. NULL, and
     * |why| says what is wrong, line by line.
     */
    struct snapshot *(*load)(void *owner, const struct snapshot *before, struct text *why);
    void *owner;
    const char *const *paths;
    uint32_t count; /* 0: there are no files, and nothing to reload */
    bool watch;     /* reload when one of them has changed */
};

struct reload_setup {
    const struct config_source_files *files;
    struct control *control;
    struct poller *poller; /* the control loop's, to be woken */
    struct log *log;
};

struct reload;

/* NULL: no memory. */
struct reload *reload_create(const struct reload_setup *setup);

/* As HUP does. */
void reload_begin(struct reload *r);

/* After each turn of the control loop: what was loaded is put in force. */
void reload_turn(struct reload *r);

/* Waits for the thread. Takes NULL. */
void reload_free(struct reload *r);

#endif
