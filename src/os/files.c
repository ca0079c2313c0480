/* SPDX-License-Identifier: Apache-2.0 */
#include "os/files.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include "base/memory.h"
#include "io/error.h"
#include "os/error.h"

#define READ_FIRST    4096 /* where the size is not known: pipes, /proc */
#define APPEND_PAUSE  1000 /* ms to wait where somebody made standard output non-blocking */
#define MODE_OF_FILES 0640

struct file {
    int fd;
};

struct growing {
    uint8_t *data;
    size_t len;
    size_t room;
};

static int grow(struct growing *g, size_t limit)
{
    size_t room = g->room == 0 ? READ_FIRST : g->room * 2;
    uint8_t *data;

    if (room > limit + 1) /* one more than allowed, to see that it is more */
        room = limit + 1;
    data = memory_resize(g->data, room);
    if (data == NULL)
        return IO_NO_MEMORY;
    g->data = data;
    g->room = room;
    return IO_OK;
}

static int read_all(int fd, size_t limit, struct growing *g)
{
    for (;;) {
        ssize_t n;

        if (g->len > limit)
            return IO_INVALID;
        if (g->len == g->room) {
            int error = grow(g, limit);

            if (error != IO_OK)
                return error;
        }
        n = read(fd, g->data + g->len, g->room - g->len);
        if (n < 0 && errno != EINTR)
            return os_error(errno);
        if (n == 0)
            return IO_OK;
        if (n > 0)
            g->len += (size_t)n;
    }
}

static int os_files_read(struct files *f, const char *path, size_t limit, struct bytes *out)
{
    struct growing g = {.data = NULL};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    int error;
    (void)f;

    if (fd < 0)
        return os_error(errno);
    if (limit >= SIZE_MAX / 4)
        limit = SIZE_MAX / 4;
    error = read_all(fd, limit, &g);
    close(fd);
    if (error != IO_OK) {
        memory_give(g.data);
        return error;
    }
    *out = bytes_from(g.data, g.len);
    return IO_OK;
}

/* Without O_NONBLOCK the open of a pipe that nobody reads would wait for ever. */
static int open_to_append(const char *path)
{
    int fd;

    if (strcmp(path, "-") == 0)
        return fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
              MODE_OF_FILES);
    if (fd >= 0)
        (void)fcntl(fd, F_SETFL, O_APPEND);
    return fd;
}

static int os_files_open(struct files *f, const char *path, struct file **out)
{
    struct file *file = malloc(sizeof(*file));
    int error;
    (void)f;

    if (file == NULL)
        return IO_NO_MEMORY;
    file->fd = open_to_append(path);
    if (file->fd < 0) {
        error = os_error(errno);
        free(file);
        return error;
    }
    *out = file;
    return IO_OK;
}

static ptrdiff_t os_files_append(struct files *f, struct file *file, struct bytes data)
{
    ssize_t n;
    (void)f;

    do {
        n = write(file->fd, data.data, data.len);
    } while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN) {
        struct pollfd room = {.fd = file->fd, .events = POLLOUT};

        (void)poll(&room, 1, APPEND_PAUSE);
        n = write(file->fd, data.data, data.len);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return 0;
    }
    return n < 0 ? os_error(errno) : n;
}

static void os_files_close(struct files *f, struct file *file)
{
    (void)f;
    close(file->fd);
    free(file);
}

static const struct files_ops ops = {
    .read = os_files_read,
    .open = os_files_open,
    .append = os_files_append,
    .close = os_files_close,
};

void os_files_init(struct files *f)
{
    *f = (struct files){.ops = &ops};
}

uint64_t os_file_stamp(const char *path)
{
    struct stat about;

    if (stat(path, &about) != 0)
        return 0;
    return (uint64_t)about.st_ino * 0x9e3779b97f4a7c15u + (uint64_t)about.st_size * 31 +
           (uint64_t)about.st_mtim.tv_sec * 1000000007u + (uint64_t)about.st_mtim.tv_nsec + 1;
}
