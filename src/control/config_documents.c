/* SPDX-License-Identifier: Apache-2.0 */
/* Which document is which. */
#include "control/config_documents.h"

#include "control/config_indent.h"

#define GROUP "networking.istio.io/"
#define RULE  "DestinationRule"

/* What there is in Istio besides, and what does its work here. */
static const struct {
    const char *kind;
    const char *instead;
} other_kinds[] = {
    {"CircuitBreaker",
     "there is no such kind in Istio either: write a DestinationRule, with the limits in "
     "spec.trafficPolicy.connectionPool and the ejection in spec.trafficPolicy.outlierDetection"},
    {"VirtualService", "write its routes in listeners[].routes of the native document"},
    {"Gateway", "write listeners: in the native document"},
    {"ServiceEntry", "write its hosts as a cluster of the native document"},
    {"WorkloadEntry", "write its address in endpoints: of a cluster of the native document"},
    {"WorkloadGroup", "write the addresses in endpoints: of a cluster of the native document"},
    {"EnvoyFilter", "Firebreak is no Envoy; docs/configuration.md has all keys there are"},
    {"Sidecar", "leave it out: the native document has all that this proxy reaches"},
    {"ProxyConfig", "leave it out; workers: is a key of the native document"},
};

static struct text *begin(struct config_errors *errors, const struct config_node *at)
{
    config_errors_at(errors, at->source);
    return config_error_begin(errors, at->line, at->column);
}

static void second_native(const struct config_node *document, const struct config_node *first,
                          struct config_errors *errors)
{
    struct text *t = begin(errors, document);

    text_str(t,
             "a second document in Firebreak's own form: write all in one; the first begins in ");
    config_error_place(t, errors, first->source, first->line);
    config_error_end(errors);
}

static void other_kind(const struct config_node *kind, struct config_errors *errors)
{
    struct text *t = begin(errors, kind);

    text_str(t, "kind ");
    config_quote(t, kind->text);
    text_str(t, " is not read: ");
    for (size_t i = 0; i < sizeof(other_kinds) / sizeof(other_kinds[0]); i++) {
        if (!bytes_equal(kind->text, bytes_of(other_kinds[i].kind)))
            continue;
        text_str(t, other_kinds[i].instead);
        config_error_end(errors);
        return;
    }
    text_str(t,
             "besides the native document, which has neither apiVersion nor kind, there are only "
             "Istio's DestinationRules");
    config_error_end(errors);
}

static void other_version(const struct config_node *document, const struct config_node *version,
                          struct config_errors *errors)
{
    struct text *t = begin(errors, version == NULL ? document : version);

    if (version == NULL) {
        text_str(t,
                 "a DestinationRule without apiVersion: write apiVersion: networking.istio.io/v1");
    } else {
        text_str(t,
                 "a DestinationRule's apiVersion is networking.istio.io/v1, v1beta1 or v1alpha3; "
                 "not ");
        config_quote(t, version->text);
    }
    config_error_end(errors);
}

static void no_kind(const struct config_node *version, struct config_errors *errors)
{
    struct text *t = begin(errors, version->key);

    if (bytes_start_with(version->text, BYTES(GROUP))) {
        text_str(t, "no kind: write kind: DestinationRule");
    } else {
        text_str(t, "a document with an apiVersion is not Firebreak's own form; leave it out: ");
        config_quote(t, version->text);
    }
    config_error_end(errors);
}

/* --- rules --- */

static bool add_rule(struct config_documents *d, const struct config_node *document)
{
    struct config_rule_document *rule = arena_take(d->arena, sizeof(*rule));

    if (rule == NULL) {
        d->no_memory = true;
        return false;
    }
    rule->document = document;
    if (d->rules == NULL)
        d->rules = rule;
    else
        d->last_rule->next = rule;
    d->last_rule = rule;
    d->rule_count++;
    return true;
}

static bool sort_istio(struct config_documents *d, const struct config_node *document,
                       struct config_errors *errors)
{
    const struct config_node *version = config_node_find(document, "apiVersion");
    const struct config_node *kind = config_node_find(document, "kind");

    if (kind == NULL)
        no_kind(version, errors);
    else if (kind->kind != CONFIG_TEXT || !bytes_equal(kind->text, BYTES(RULE)))
        other_kind(kind, errors);
    else if (version == NULL || !bytes_start_with(version->text, BYTES(GROUP)))
        other_version(document, version, errors);
    else
        return add_rule(d, document);
    return false;
}

/* What `kubectl get -o yaml` makes of several. */
static bool is_list(const struct config_node *document)
{
    const struct config_node *kind = config_node_find(document, "kind");
    const struct config_node *items = config_node_find(document, "items");

    return kind != NULL && items != NULL && bytes_equal(kind->text, BYTES("List")) &&
           items->kind == CONFIG_LIST;
}

static bool sort_list(struct config_documents *d, const struct config_node *list,
                      struct config_errors *errors)
{
    bool good = true;

    for (const struct config_node *n = list->first; n != NULL; n = n->next) {
        if (config_node_find(n, "apiVersion") != NULL || config_node_find(n, "kind") != NULL) {
            good = sort_istio(d, n, errors) && good;
        } else {
            text_str(begin(errors, n), "an item of a List has an apiVersion and a kind");
            config_error_end(errors);
            good = false;
        }
    }
    return good;
}

/* --- all --- */

static bool sort_native(struct config_documents *d, const struct config_node *document,
                        struct config_errors *errors)
{
    if (d->native == NULL && document->kind == CONFIG_MAP) {
        d->native = document;
        return true;
    }
    if (d->native != NULL) {
        second_native(document, d->native, errors);
        return false;
    }
    text_str(begin(errors, document), "a configuration is keys and values: listeners:, clusters: "
                                      "(docs/configuration.md, examples/minimal.yaml)");
    config_error_end(errors);
    return false;
}

static bool sort_one(struct config_documents *d, const struct config_node *document,
                     struct config_errors *errors)
{
    config_errors_at(errors, document->source);
    if (config_indentation_lost(document, errors))
        return false;
    if (is_list(document))
        return sort_list(d, config_node_find(document, "items"), errors);
    if (config_node_find(document, "apiVersion") != NULL ||
        config_node_find(document, "kind") != NULL)
        return sort_istio(d, document, errors);
    return sort_native(d, document, errors);
}

static void no_native(const struct config_documents *d, struct config_errors *errors)
{
    config_errors_at(errors, 0);
    if (d->rules == NULL)
        config_error_add(errors, 1, 1, "nothing in it: write listeners: and clusters: ",
                         "(docs/configuration.md, examples/minimal.yaml)");
    else
        config_error_add(errors, 1, 1,
                         "only Istio's rules: they say how to treat hosts, not where these are; "
                         "give the native document too, with listeners: and clusters: ",
                         "(docs/configuration.md, examples/minimal.yaml)");
}

bool config_documents_sort(struct config_documents *d, struct config_node *const *trees,
                           struct arena *arena, struct config_errors *errors)
{
    bool good = true;

    *d = (struct config_documents){.arena = arena};
    for (uint32_t i = 0; i < errors->source_count; i++)
        for (const struct config_node *n = trees[i]; n != NULL; n = n->next)
            if (!config_node_empty(n))
                good = sort_one(d, n, errors) && good;
    if (good && d->native == NULL)
        no_native(d, errors);
    return good && d->native != NULL;
}
