/* SPDX-License-Identifier: Apache-2.0 */
/* The builder's frame, and what its parts share. */
#include "control/config_build.h"

struct bytes config_build_copy(struct config_build *b, struct bytes text)
{
    struct bytes copy = arena_copy(&b->snapshot->arena, text);

    if (text.len > 0 && copy.data == NULL)
        b->no_memory = true;
    return copy;
}

struct address config_build_address(struct config_build *b, const struct address *a)
{
    struct address copy = *a;

    if (a->kind != ADDRESS_UNIX)
        return copy;
    copy.path = arena_text(&b->snapshot->arena, bytes_of(a->path));
    if (copy.path == NULL)
        b->no_memory = true;
    return copy;
}

void *config_build_array(struct config_build *b, size_t count, size_t size)
{
    void *array;

    if (count == 0)
        return NULL;
    array = arena_take(&b->snapshot->arena, count * size);
    if (array == NULL)
        b->no_memory = true;
    return array;
}

struct text *config_build_error(struct config_build *b, const struct config_node *at)
{
    config_errors_at(b->errors, at->source);
    return config_error_begin(b->errors, at->line, at->column);
}

void config_build_twice(struct config_build *b, const struct config_node *at, struct bytes name,
                        const struct config_node *first)
{
    struct text *t = config_build_error(b, at);

    config_quote(t, name);
    text_str(t, " is given twice: first in ");
    config_error_place(t, b->errors, first->source, first->line);
    config_error_end(b->errors);
}

static void build_drain(struct config_build *b, const struct config_file *file)
{
    const struct config_node *wait = config_node_find(file->head.node, "drainWait");

    b->snapshot->drain_wait = file->drain_wait;
    b->snapshot->drain_timeout = file->drain_timeout;
    if (file->drain_wait <= file->drain_timeout)
        return;
    text_str(config_build_error(b, wait), "'drainWait' is a part of 'drainTimeout' and may not be "
                                          "longer: write a longer 'drainTimeout' as well");
    config_error_end(b->errors);
}

void config_build(struct config_build *b, const struct config_file *file)
{
    struct snapshot *s = b->snapshot;

    s->admin = config_build_address(b, &file->admin.listen);
    s->workers = file->workers;
    s->user = config_build_copy(b, file->user);
    config_build_access_log(b, &file->access_log);
    s->outlier_event_log = config_build_copy(b, file->outlier_event_log);
    s->journal = config_build_copy(b, file->journal);
    s->memory_limit = file->memory_limit;
    build_drain(b, file);
    config_build_clusters(b, file);
    if (!b->no_memory)
        config_build_listeners(b, file);
}
