/* SPDX-License-Identifier: Apache-2.0 */
/* Files, as little of them as the layers above need. */
#ifndef IO_FILES_H
#define IO_FILES_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

struct file; /* open for appending */

struct files;

struct files_ops {
    /* Whole content in fresh memory (memory_give it); IO_INVALID where larger than |limit|. */
    int (*read)(struct files *f, const char *path, size_t limit, struct bytes *out);
    /* "-" is standard output. Creates (0640) and appends. */
    int (*open)(struct files *f, const char *path, struct file **out);
    /* Bytes written, may be fewer than asked; or a negative io_error. May block. */
    ptrdiff_t (*append)(struct files *f, struct file *file, struct bytes data);
    void (*close)(struct files *f, struct file *file);
};

struct files {
    const struct files_ops *ops;
};

static inline int files_read(struct files *f, const char *path, size_t limit, struct bytes *out)
{
    return f->ops->read(f, path, limit, out);
}

static inline int files_open(struct files *f, const char *path, struct file **out)
{
    return f->ops->open(f, path, out);
}

static inline ptrdiff_t files_append(struct files *f, struct file *file, struct bytes data)
{
    return f->ops->append(f, file, data);
}

static inline void files_close(struct files *f, struct file *file)
{
    f->ops->close(f, file);
}

#endif
