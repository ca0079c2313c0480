/* SPDX-License-Identifier: Apache-2.0 */
/* A file, or a list, to a snapshot. */
#include "control/config.h"

#include "base/memory.h"
#include "control/config_build.h"
#include "control/config_value.h"
#include "io/error.h"

/* The tree of the largest file that is read, and what is built from it. */
#define SCRATCH_MAX ((size_t)1 << 30)

#define LIST_FILE "--to"

/* Builds, and gives the snapshot away where nothing was wrong. */
static int finish(struct config_build *b, const struct config_file *file, struct snapshot **out)
{
    b->snapshot = snapshot_create();
    if (b->snapshot == NULL)
        return CONFIG_NO_MEMORY;
    config_build(b, file);
    if (!b->no_memory && b->errors->count == 0) {
        *out = b->snapshot;
        return CONFIG_OK;
    }
    snapshot_drop(b->snapshot);
    return b->no_memory ? CONFIG_NO_MEMORY : CONFIG_INVALID;
}

static int no_memory(struct config_errors *errors)
{
    config_error_add(errors, 0, 0, "out of memory", NULL);
    return CONFIG_NO_MEMORY;
}

/* An Istio document, or a second one: says so. False: neither. */
static bool is_foreign(const struct config_node *document, bool first, struct config_errors *errors)
{
    const struct config_node *version = config_node_find(document, "apiVersion");
    const struct config_node *kind = config_node_find(document, "kind");
    struct text *t;

    if (version == NULL && first)
        return false;
    if (version == NULL) {
        config_error_add(errors, document->line, document->column,
                         "a second document: write all in one, without '---'", NULL);
        return true;
    }
    t = config_error_begin(errors, version->key->line, version->key->column);
    if (bytes_start_with(version->text, BYTES("networking.istio.io/"))) {
        text_str(t, "Istio's documents are not supported yet: they come with DestinationRules");
        if (kind != NULL) {
            text_str(t, "; this is of kind ");
            config_quote(t, kind->text);
        }
    } else {
        text_str(t, "a document with an apiVersion is not Firebreak's own form; leave it out: ");
        config_quote(t, version->text);
    }
    config_error_end(errors);
    return true;
}

/* The one document to read; NULL: an error was added. */
static const struct config_node *choose(const struct config_node *documents,
                                        struct config_errors *errors)
{
    const struct config_node *native = NULL;
    bool foreign = false;

    for (const struct config_node *d = documents; d != NULL; d = d->next) {
        if (config_node_empty(d))
            continue;
        if (is_foreign(d, native == NULL, errors))
            foreign = true;
        else
            native = d;
    }
    if (foreign)
        return NULL;
    if (native == NULL)
        config_error_add(errors, 1, 1, "nothing in it: write listeners: and clusters: ",
                         "(docs/configuration.md, examples/minimal.yaml)");
    else if (native->kind == CONFIG_MAP)
        return native;
    else
        config_error_add(errors, native->line, native->column,
                         "a configuration is keys and values: listeners:, clusters: ",
                         "(docs/configuration.md, examples/minimal.yaml)");
    return NULL;
}

static int parse(struct arena *scratch, struct bytes source, struct config_build *b,
                 struct snapshot **out)
{
    struct field_reader reader = {
        .arena = scratch, .errors = b->errors, .root = &config_file_fields};
    struct config_file *file = arena_take(scratch, sizeof(*file));
    struct config_node *documents = NULL;
    const struct config_node *chosen;

    if (file == NULL)
        return CONFIG_NO_MEMORY;
    if (!config_tree_parse(scratch, source, b->errors, &documents))
        return CONFIG_INVALID;
    chosen = choose(documents, b->errors);
    if (chosen == NULL)
        return CONFIG_INVALID;
    fields_preset(&config_file_fields, file);
    fields_read(&reader, &config_file_fields, chosen, file);
    if (reader.no_memory)
        return CONFIG_NO_MEMORY;
    if (config_errors_full(b->errors))
        return CONFIG_INVALID;
    return finish(b, file, out);
}

int config_parse(struct bytes source, struct config_resolver *resolver,
                 struct config_errors *errors, struct snapshot **out)
{
    struct arena scratch;
    struct config_build b = {.scratch = &scratch, .errors = errors, .resolver = resolver};
    int status;

    if (bytes_start_with(source, BYTES("\xef\xbb\xbf"))) /* a byte order mark */
        source = bytes_skip(source, 3);
    errors->source = source;
    arena_init(&scratch, 64 * 1024, SCRATCH_MAX);
    status = parse(&scratch, source, &b, out);
    arena_release(&scratch);
    return status == CONFIG_NO_MEMORY ? no_memory(errors) : status;
}

int config_load(const char *path, struct files *files, struct config_resolver *resolver,
                struct config_errors *errors, struct snapshot **out)
{
    struct bytes source = BYTES_NONE;
    int error = files_read(files, path, CONFIG_FILE_MAX, &source);
    int status;

    config_errors_open(errors, bytes_of(path), source);
    if (error == IO_NO_MEMORY)
        return no_memory(errors);
    if (error != IO_OK) {
        config_error_add(errors, 0, 0, "cannot be read: ",
                         error == IO_INVALID ? "not a file, or larger than 16 MiB"
                                             : io_error_text(error));
        return CONFIG_UNREADABLE;
    }
    status = config_parse(source, resolver, errors, out);
    config_errors_close(errors);
    memory_give((void *)(uintptr_t)source.data);
    return status;
}

/* A place in the list, as if it were the only line of a file. */
static const struct config_node *list_node(struct config_build *b, size_t offset)
{
    struct config_node *n = arena_take(b->scratch, sizeof(*n));

    if (n == NULL)
        return NULL;
    n->line = 1;
    n->column = (uint32_t)offset + 1;
    return n;
}

static bool list_endpoints(struct config_build *b, struct bytes list, struct config_cluster *c)
{
    struct bytes rest = list;
    struct bytes element;
    struct config_endpoint *e;
    uint32_t count = 0;

    while (bytes_next_element(&rest, &element))
        count++;
    c->endpoints.node = list_node(b, 0);
    c->endpoints.count = count;
    c->endpoints.at = e = arena_take(b->scratch, (count + (size_t)1) * sizeof(*e));
    c->head.node = c->endpoints.node;
    if (e == NULL || c->endpoints.node == NULL)
        return false;
    for (rest = list; bytes_next_element(&rest, &element); e++) {
        fields_preset(&config_endpoint_fields, e);
        e->address = element;
        e->head.node = list_node(b, (size_t)(element.data - list.data));
        if (e->head.node == NULL)
            return false;
    }
    return true;
}

/* The address of an option, in place of the default. */
static void option_address(struct config_build *b, const char *option, struct bytes text,
                           struct address *out)
{
    const char *why;
    struct text *t;

    if (text.len == 0)
        return;
    if (bytes_equal(text, BYTES("off")) && out->kind != ADDRESS_NONE) {
        *out = (struct address){.kind = ADDRESS_NONE};
        return;
    }
    if (config_address_parse(b->scratch, text, out, &why))
        return;
    t = config_error_begin(b->errors, 0, 0);
    text_str(t, option);
    text_str(t, " must be an address with a port, such as 127.0.0.1:8080; not ");
    config_quote(t, text);
    text_str(t, ": ");
    text_str(t, why);
    config_error_end(b->errors);
}

/* One listener, one route, one cluster, and every default there is. */
static int build_list(struct config_build *b, const struct config_run *run, struct snapshot **out)
{
    struct config_file file = {.workers = 0};
    struct config_listener listener = {.via = false};
    struct config_route route = {.timeout = 0};
    struct config_cluster cluster = {.protocol = 0};

    fields_preset(&config_file_fields, &file);
    fields_preset(&config_listener_fields, &listener);
    fields_preset(&config_route_fields, &route);
    fields_preset(&config_cluster_fields, &cluster);
    if (!list_endpoints(b, run->to, &cluster))
        return CONFIG_NO_MEMORY;
    if (cluster.endpoints.count == 0) {
        config_error_add(b->errors, 0, 0, "no hosts: write HOST:PORT,HOST:PORT", NULL);
        return CONFIG_INVALID;
    }
    option_address(b, "--admin", run->admin, &file.admin.listen);
    option_address(b, "--listen", run->listen.len > 0 ? run->listen : BYTES(CONFIG_LISTEN_DEFAULT),
                   &listener.listen);
    file.workers = run->workers;
    if (run->access_log.len > 0)
        file.access_log.to = run->access_log;
    listener.name = BYTES(CONFIG_LIST_LISTENER);
    cluster.name = route.cluster = BYTES(CONFIG_LIST_CLUSTER);
    listener.head.node = route.head.node = file.head.node = cluster.head.node;
    listener.routes = (struct field_items){.node = cluster.head.node, .count = 1, .at = &route};
    file.listeners = (struct field_items){.node = cluster.head.node, .count = 1, .at = &listener};
    file.clusters = (struct field_items){.node = cluster.head.node, .count = 1, .at = &cluster};
    return finish(b, &file, out);
}

int config_from_list(const struct config_run *run, struct config_resolver *resolver,
                     struct config_errors *errors, struct snapshot **out)
{
    struct arena scratch;
    struct config_build b = {.scratch = &scratch, .errors = errors, .resolver = resolver};
    int status;

    config_errors_open(errors, BYTES(LIST_FILE), run->to);
    arena_init(&scratch, 4096, SCRATCH_MAX);
    status = build_list(&b, run, out);
    arena_release(&scratch);
    config_errors_close(errors);
    return status == CONFIG_NO_MEMORY ? no_memory(errors) : status;
}

bool config_parse_address(struct arena *arena, struct bytes text, struct address *out,
                          const char **why)
{
    if (!bytes_equal(text, BYTES("off")))
        return config_address_parse(arena, text, out, why);
    *out = (struct address){.kind = ADDRESS_NONE};
    return true;
}
