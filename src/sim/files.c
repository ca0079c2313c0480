/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/files.h"

#include <string.h>

#include "base/memory.h"
#include "io/error.h"

struct file {
    struct list link;
    char *path;
    uint8_t *data;
    size_t len;
    size_t room;
};

static struct file *find(const struct sim_files *f, const char *path)
{
    for (struct list *l = f->all.next; l != &f->all; l = l->next) {
        struct file *file = CONTAINER_OF(l, struct file, link);

        if (strcmp(file->path, path) == 0)
            return file;
    }
    return NULL;
}

static void forget(struct file *file)
{
    list_remove(&file->link);
    memory_give(file->path);
    memory_give(file->data);
    memory_give(file);
}

static struct file *make(struct sim_files *f, const char *path)
{
    struct file *file = memory_take(sizeof(*file));
    size_t len = strlen(path) + 1;

    if (file == NULL)
        return NULL;
    file->path = memory_take(len);
    if (file->path == NULL) {
        memory_give(file);
        return NULL;
    }
    memcpy(file->path, path, len);
    list_push_back(&f->all, &file->link);
    return file;
}

static bool add(struct file *file, struct bytes data)
{
    size_t room = file->room == 0 ? 256 : file->room;
    uint8_t *bigger;

    while (room < file->len + data.len)
        room *= 2;
    if (room != file->room) {
        bigger = memory_resize(file->data, room);
        if (bigger == NULL)
            return false;
        file->data = bigger;
        file->room = room;
    }
    if (data.len > 0)
        memcpy(file->data + file->len, data.data, data.len);
    file->len += data.len;
    return true;
}

static int read_whole(struct files *base, const char *path, size_t limit, struct bytes *out)
{
    struct sim_files *f = (struct sim_files *)(void *)base;
    const struct file *file = find(f, path);
    uint8_t *copy;

    if (f->fault != IO_OK)
        return f->fault;
    if (file == NULL)
        return IO_NOT_FOUND;
    if (file->len > limit)
        return IO_INVALID;
    copy = memory_take(file->len + 1);
    if (copy == NULL)
        return IO_NO_MEMORY;
    if (file->len > 0)
        memcpy(copy, file->data, file->len);
    *out = bytes_from(copy, file->len);
    return IO_OK;
}

static int open_file(struct files *base, const char *path, struct file **out)
{
    struct sim_files *f = (struct sim_files *)(void *)base;
    struct file *file = find(f, path);

    if (f->fault != IO_OK)
        return f->fault;
    if (file == NULL)
        file = make(f, path);
    if (file == NULL)
        return IO_NO_MEMORY;
    *out = file;
    return IO_OK;
}

static ptrdiff_t append(struct files *base, struct file *file, struct bytes data)
{
    struct sim_files *f = (struct sim_files *)(void *)base;

    if (data.len > 0 && f->space == 0)
        return IO_NO_SPACE;
    if (data.len > f->space)
        data.len = (size_t)f->space;
    if (!add(file, data))
        return IO_NO_MEMORY;
    f->space -= data.len;
    return (ptrdiff_t)data.len;
}

static void close_file(struct files *base, struct file *file)
{
    (void)base; /* it stays on the disk */
    (void)file;
}

static const struct files_ops table = {
    .read = read_whole,
    .open = open_file,
    .append = append,
    .close = close_file,
};

void sim_files_init(struct sim_files *f)
{
    *f = (struct sim_files){.base = {.ops = &table}, .space = UINT64_MAX};
    list_init(&f->all);
}

void sim_files_release(struct sim_files *f)
{
    while (!list_empty(&f->all))
        forget(CONTAINER_OF(f->all.next, struct file, link));
}

bool sim_files_put(struct sim_files *f, const char *path, struct bytes content)
{
    struct file *file = find(f, path);

    if (file == NULL)
        file = make(f, path);
    if (file == NULL)
        return false;
    file->len = 0;
    return add(file, content);
}

struct bytes sim_files_content(const struct sim_files *f, const char *path)
{
    const struct file *file = find(f, path);

    return file == NULL ? BYTES_NONE : bytes_from(file->data, file->len);
}
