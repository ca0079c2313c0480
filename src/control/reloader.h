/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whoever can load the configuration anew, as the admin pages see it. Loading takes its time and
 * happens elsewhere; each wish has a number, and is fulfilled once |done| has reached it.
 */
#ifndef CONTROL_RELOADER_H
#define CONTROL_RELOADER_H

#include <stdbool.h>
#include <stdint.h>

#define RELOAD_WHY_MAX 4096

struct reloader {
    /* A wish: what is in the files now is to be in force. Control thread only. */
    void (*begin)(struct reloader *r);
    uint64_t asked;
    uint64_t done;
    bool ok;                  /* how the last one ended, where |done| > 0 */
    char why[RELOAD_WHY_MAX]; /* where it did not: what is wrong, line by line */
};

#endif
