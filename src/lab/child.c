/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <sys/prctl.h>
#include <sys/wait.h>

#include "io/error.h"
#include "os/error.h"
#include "os/signals.h"

#define LOOK_EVERY (10 * NS_PER_MS)
#define READ_SIZE  4096

static void close_stream(struct child_stream *s)
{
    os_watch_remove(s->watch);
    s->watch = NULL;
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
    buffer_release(&s->buffer);
}

/* Keeps the end of what was said. */
static void keep_tail(struct child *c, struct bytes data)
{
    size_t have = strlen(c->tail);
    size_t keep;

    if (data.len > CHILD_TAIL)
        data = bytes_skip(data, data.len - CHILD_TAIL);
    keep = have + data.len > CHILD_TAIL ? CHILD_TAIL - data.len : have;
    memmove(c->tail, c->tail + have - keep, keep);
    memcpy(c->tail + keep, data.data, data.len);
    c->tail[keep + data.len] = '\0';
}

static void tell_lines(struct child_stream *s)
{
    struct child *c = s->child;

    for (;;) {
        struct bytes all = buffer_bytes(&s->buffer);
        size_t end = bytes_find(all, '\n');

        if (end == all.len && all.len < CHILD_LINE_MAX)
            return;
        if (c->line != NULL)
            c->line(c->owner, bytes_slice(all, 0, end));
        buffer_take(&s->buffer, end == all.len ? end : end + 1);
    }
}

static void take(struct child_stream *s, struct bytes data)
{
    if (s == &s->child->err)
        keep_tail(s->child, data);
    else if (buffer_add(&s->buffer, data))
        tell_lines(s);
}

static void readable(void *owner, int fd, unsigned ready)
{
    struct child_stream *s = owner;
    uint8_t room[READ_SIZE];
    ssize_t n = read(fd, room, sizeof(room));

    (void)ready;
    if (n > 0)
        take(s, bytes_from(room, (size_t)n));
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        close_stream(s);
}

static int open_stream(struct child *c, struct child_stream *s, int fd)
{
    int err;

    *s = (struct child_stream){.child = c, .fd = fd};
    buffer_init(&s->buffer);
    (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    err = os_watch_add(c->loop->poller, fd, OS_READABLE, &s->watch);
    if (err == IO_OK)
        os_watch_own(s->watch, readable, s);
    return err;
}

/* In the child. Only what may be done between fork and exec. */
static _Noreturn void become(char *const argv[], int out, int err, pid_t parent)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127);      /* it died before we said that we would die with it */
    (void)setpgid(0, 0); /* Ctrl-C is for the parent, who ends us in order */
    if (dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0)
        _exit(127);
    os_signals_unblock();
    (void)execv("/proc/self/exe", argv);
    _exit(127);
}

static int fork_with(struct child *c, char *const argv[], const int out[2], const int err[2])
{
    pid_t parent = getpid();
    pid_t pid = fork();

    if (pid == 0)
        become(argv, out[1], err[1], parent);
    if (pid < 0)
        return os_error(errno);
    c->pid = pid;
    return IO_OK;
}

static void close_pair(int pair[2])
{
    close(pair[0]);
    close(pair[1]);
}

int child_start(struct child *c, char *const argv[])
{
    int out[2];
    int err[2];
    int result;

    if (pipe2(out, O_CLOEXEC) != 0)
        return os_error(errno);
    if (pipe2(err, O_CLOEXEC) != 0) {
        result = os_error(errno);
        close_pair(out);
        return result;
    }
    c->tail[0] = '\0';
    result = fork_with(c, argv, out, err);
    if (result != IO_OK) {
        close_pair(out);
        close_pair(err);
        return result;
    }
    close(out[1]);
    close(err[1]);
    result = open_stream(c, &c->out, out[0]);
    if (result == IO_OK)
        return open_stream(c, &c->err, err[0]);
    close(err[0]);
    return result;
}

bool child_runs(struct child *c)
{
    pid_t ended;

    if (c->pid == 0)
        return false;
    ended = waitpid(c->pid, &c->status, WNOHANG);
    if (ended == 0 || (ended < 0 && errno == EINTR))
        return true;
    c->pid = 0;
    return false;
}

static void nothing(struct appointment *a, mono_ns now)
{
    (void)a;
    (void)now;
}

/* Turns the loop until it has ended, or |until|. */
static void await_end(struct child *c, mono_ns until)
{
    struct appointment look;

    appointment_init(&look, nothing);
    while (child_runs(c) && c->loop->now < until) {
        schedule_arm(&c->loop->schedule, &look, mono_after(c->loop->now, LOOK_EVERY));
        lab_loop_turn(c->loop);
    }
    schedule_cancel(&c->loop->schedule, &look);
}

void child_stop(struct child *c, span_ns grace)
{
    if (child_runs(c)) {
        kill(c->pid, SIGTERM);
        await_end(c, mono_after(c->loop->now, grace));
    }
    if (child_runs(c)) {
        kill(c->pid, SIGKILL);
        while (waitpid(c->pid, &c->status, 0) < 0 && errno == EINTR)
            ;
        c->pid = 0;
    }
    close_stream(&c->out);
    close_stream(&c->err);
}
