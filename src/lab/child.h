/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child process that runs this very program with other arguments. What it prints comes line by
 * line; it dies with its parent, however that dies.
 */
#ifndef LAB_CHILD_H
#define LAB_CHILD_H

#include <stdbool.h>

#include <sys/types.h>

#include "base/bytes.h"
#include "lab/buffer.h"
#include "lab/loop.h"
#include "os/watch.h"

#define CHILD_LINE_MAX 4096
#define CHILD_TAIL     1024

struct child;

struct child_stream {
    struct child *child;
    int fd; /* -1: at its end */
    struct os_watch *watch;
    struct buffer buffer;
};

struct child {
    struct lab_loop *loop;
    pid_t pid; /* 0: not running */
    struct child_stream out;
    struct child_stream err;
    /* A line of its standard output, without the line's end. */
    void (*line)(void *owner, struct bytes line);
    void *owner;
    char tail[CHILD_TAIL + 1]; /* the last of what it said on standard error */
    int status;                /* as waitpid gave it, once it has ended */
};

static inline void child_init(struct child *c, struct lab_loop *loop)
{
    *c = (struct child){.loop = loop, .out.fd = -1, .err.fd = -1};
}

/* |argv| as for the command, with NULL at its end. IO_OK or an io_error. */
int child_start(struct child *c, char *const argv[]);

/* Looks whether it has ended. */
bool child_runs(struct child *c);

/* TERM, and KILL where that does not help within |grace|. Turns the loop. Takes one not running. */
void child_stop(struct child *c, span_ns grace);

#endif
