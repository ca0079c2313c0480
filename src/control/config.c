/* SPDX-License-Identifier: Apache-2.0 */
/* Files, or texts, to a typed form, and on to a snapshot. */
#include "control/config.h"

#include <string.h>

#include "base/memory.h"
#include "control/config_build.h"
#include "control/config_documents.h"
#include "control/config_rules.h"
#include "control/config_value.h"
#include "io/error.h"

/* The trees of the largest files that are read, and what is built from them. */
#define SCRATCH_MAX ((size_t)1 << 30)

static int no_memory(struct config_errors *errors)
{
    config_errors_at(errors, 0);
    config_error_add(errors, 0, 0, "out of memory", NULL);
    return CONFIG_NO_MEMORY;
}

void config_begin(struct config_loaded *l, struct config_errors *errors)
{
    memset(l, 0, sizeof(*l));
    l->errors = errors;
    arena_init(&l->arena, 64 * 1024, SCRATCH_MAX);
}

static struct bytes without_mark(struct bytes text)
{
    return bytes_start_with(text, BYTES("\xef\xbb\xbf")) ? bytes_skip(text, 3) : text;
}

/* All trees; false: one is none, and an error was added. */
static bool parse_trees(struct config_loaded *l, struct config_node **trees)
{
    bool good = true;

    for (uint32_t i = 0; i < l->errors->source_count; i++) {
        config_errors_at(l->errors, i);
        good = config_tree_parse(&l->arena, l->errors, &trees[i]) && good;
    }
    return good;
}

/* The native document, typed. */
static bool read_native(struct field_reader *reader, const struct config_node *document,
                        struct config_file *file)
{
    fields_preset(&config_file_fields, file);
    reader->root = &config_file_fields;
    config_errors_at(reader->errors, document->source);
    fields_read(reader, &config_file_fields, document, file);
    return !reader->no_memory;
}

/* Istio's, typed, and put into the native one's clusters. False: no memory. */
static bool read_rules(struct config_loaded *l, struct field_reader *reader,
                       const struct config_documents *documents)
{
    size_t count = documents->rule_count;
    struct config_rule *rules = arena_take(&l->arena, (count + 1) * sizeof(*rules));
    const struct config_rule_document *d = documents->rules;

    if (rules == NULL)
        return false;
    reader->root = &config_rule_fields;
    for (size_t i = 0; i < count; i++, d = d->next) {
        fields_preset(&config_rule_fields, &rules[i]);
        config_errors_at(l->errors, d->document->source);
        fields_read(reader, &config_rule_fields, d->document, &rules[i]);
    }
    return !reader->no_memory && config_rules_apply(l, rules, documents->rule_count);
}

static int read_trees(struct config_loaded *l, struct config_node *const *trees)
{
    struct config_documents documents;
    struct config_file *file = arena_take(&l->arena, sizeof(*file));
    struct field_reader reader = {.arena = &l->arena, .errors = l->errors};

    if (file == NULL)
        return CONFIG_NO_MEMORY;
    if (!config_documents_sort(&documents, trees, &l->arena, l->errors))
        return documents.no_memory ? CONFIG_NO_MEMORY : CONFIG_INVALID;
    if (!read_native(&reader, documents.native, file))
        return CONFIG_NO_MEMORY;
    l->file = file;
    if (!read_rules(l, &reader, &documents) || !config_find_names(l))
        return CONFIG_NO_MEMORY;
    return config_errors_full(l->errors) ? CONFIG_INVALID : CONFIG_OK;
}

static int read_sources(struct config_loaded *l)
{
    struct config_node *trees[CONFIG_SOURCES_MAX] = {NULL};
    int status = CONFIG_INVALID;

    if (parse_trees(l, trees))
        status = read_trees(l, trees);
    return status == CONFIG_NO_MEMORY ? no_memory(l->errors) : status;
}

static bool too_many(struct config_errors *errors, struct bytes first, uint32_t count)
{
    if (count <= CONFIG_SOURCES_MAX)
        return false;
    config_errors_open(errors, first, BYTES_NONE);
    config_error_add(errors, 0, 0, "too many files: at most 64; put several documents in one, ",
                     "with '---' between them");
    return true;
}

int config_open_texts(struct config_loaded *l, const struct config_source *sources, uint32_t count,
                      struct config_errors *errors)
{
    config_begin(l, errors);
    if (too_many(errors, sources[0].name, count))
        return CONFIG_INVALID;
    for (uint32_t i = 0; i < count; i++)
        config_errors_open(errors, sources[i].name, without_mark(sources[i].text));
    return read_sources(l);
}

static int read_file(struct config_loaded *l, const char *path, struct files *files)
{
    struct bytes text = BYTES_NONE;
    int error = files_read(files, path, CONFIG_FILE_MAX, &text);

    config_errors_open(l->errors, bytes_of(path), without_mark(text));
    if (error == IO_NO_MEMORY)
        return no_memory(l->errors);
    if (error == IO_OK) {
        l->texts[l->text_count++] = text;
        return CONFIG_OK;
    }
    config_error_add(l->errors, 0, 0, "cannot be read: ",
                     error == IO_INVALID ? "not a file, or larger than 16 MiB"
                                         : io_error_text(error));
    return CONFIG_UNREADABLE;
}

int config_open(struct config_loaded *l, const char *const *paths, uint32_t count,
                struct files *files, struct config_errors *errors)
{
    int status = CONFIG_OK;

    config_begin(l, errors);
    if (too_many(errors, bytes_of(paths[0]), count))
        return CONFIG_INVALID;
    for (uint32_t i = 0; i < count && status != CONFIG_NO_MEMORY; i++) {
        int one = read_file(l, paths[i], files);

        if (one != CONFIG_OK)
            status = one;
    }
    return status == CONFIG_OK ? read_sources(l) : status;
}

int config_compile(struct config_loaded *l, struct config_resolver *resolver, struct snapshot **out)
{
    struct config_build b = {.scratch = &l->arena, .errors = l->errors, .resolver = resolver};

    b.snapshot = snapshot_create();
    if (b.snapshot == NULL)
        return no_memory(l->errors);
    config_build(&b, l->file);
    if (!b.no_memory && l->errors->count == 0) {
        *out = b.snapshot;
        return CONFIG_OK;
    }
    snapshot_drop(b.snapshot);
    return b.no_memory ? no_memory(l->errors) : CONFIG_INVALID;
}

void config_follow(struct config_loaded *l, enum config_follow whom)
{
    struct config_cluster *clusters = l->file == NULL ? NULL : l->file->clusters.at;

    if (clusters == NULL || whom == FOLLOW_FILES)
        return;
    for (uint32_t i = 0; i < l->file->clusters.count; i++)
        clusters[i].resilience.semantics =
            whom == FOLLOW_ENVOY ? SEMANTICS_ENVOY : SEMANTICS_FIREBREAK;
}

void config_close(struct config_loaded *l)
{
    config_errors_close(l->errors);
    for (uint32_t i = 0; i < l->text_count; i++)
        memory_give((void *)(uintptr_t)l->texts[i].data);
    arena_release(&l->arena);
    l->text_count = 0;
    l->file = NULL;
}

/* The rest of the way, where |status| says that there is one. */
static int finish(struct config_loaded *l, int status, struct config_resolver *resolver,
                  struct snapshot **out)
{
    if (status == CONFIG_OK)
        status = config_compile(l, resolver, out);
    config_close(l);
    return status;
}

int config_load(const char *const *paths, uint32_t count, struct files *files,
                struct config_resolver *resolver, struct config_errors *errors,
                struct snapshot **out)
{
    struct config_loaded l;

    return finish(&l, config_open(&l, paths, count, files, errors), resolver, out);
}

int config_parse(const struct config_source *sources, uint32_t count,
                 struct config_resolver *resolver, struct config_errors *errors,
                 struct snapshot **out)
{
    struct config_loaded l;

    return finish(&l, config_open_texts(&l, sources, count, errors), resolver, out);
}

int config_from_list(const struct config_run *run, struct config_resolver *resolver,
                     struct config_errors *errors, struct snapshot **out)
{
    struct config_loaded l;
    int status = config_open_list(&l, run, errors);

    config_follow(&l, run->follow);
    return finish(&l, status == CONFIG_NO_MEMORY ? no_memory(errors) : status, resolver, out);
}

bool config_parse_address(struct arena *arena, struct bytes text, struct address *out,
                          const char **why)
{
    if (!bytes_equal(text, BYTES("off")))
        return config_address_parse(arena, text, out, why);
    *out = (struct address){.kind = ADDRESS_NONE};
    return true;
}
