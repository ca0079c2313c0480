/* SPDX-License-Identifier: Apache-2.0 */
/* Which document is which. */
#include "control/config_documents.h"

#include "control/config_indent.h"

static void second_native(const struct config_node *document, const struct config_node *first,
                          struct config_errors *errors)
{
    struct text *t = config_error_begin(errors, document->line, document->column);

    text_str(t,
             "a second document in Firebreak's own form: write all in one; the first begins at ");
    text_put(t, errors->sources[first->source].name);
    text_char(t, ':');
    text_u64(t, first->line);
    config_error_end(errors);
}

static void foreign(const struct config_node *version, const struct config_node *kind,
                    struct config_errors *errors)
{
    struct text *t = config_error_begin(errors, version->key->line, version->key->column);

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
}

static bool sort_one(struct config_documents *d, const struct config_node *document,
                     struct config_errors *errors)
{
    const struct config_node *version = config_node_find(document, "apiVersion");

    config_errors_at(errors, document->source);
    if (config_indentation_lost(document, errors))
        return false;
    if (version != NULL) {
        foreign(version, config_node_find(document, "kind"), errors);
        return false;
    }
    if (document->kind != CONFIG_MAP) {
        config_error_add(errors, document->line, document->column,
                         "a configuration is keys and values: listeners:, clusters: ",
                         "(docs/configuration.md, examples/minimal.yaml)");
        return false;
    }
    if (d->native != NULL) {
        second_native(document, d->native, errors);
        return false;
    }
    d->native = document;
    return true;
}

bool config_documents_sort(struct config_documents *d, struct config_node *const *trees,
                           struct config_errors *errors)
{
    bool good = true;

    *d = (struct config_documents){.native = NULL};
    for (uint32_t i = 0; i < errors->source_count; i++)
        for (const struct config_node *n = trees[i]; n != NULL; n = n->next)
            if (!config_node_empty(n))
                good = sort_one(d, n, errors) && good;
    if (!good || d->native != NULL)
        return good;
    config_errors_at(errors, 0);
    config_error_add(errors, 1, 1, "nothing in it: write listeners: and clusters: ",
                     "(docs/configuration.md, examples/minimal.yaml)");
    return false;
}
