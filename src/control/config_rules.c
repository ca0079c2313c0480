/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules find clusters by host; the rules of one host are merged as Istio merges them, and where it
 * would keep one in silence, refused. Then each cluster gets its policy, and its subsets follow it.
 */
#include "control/config_rules.h"

#include "control/config_hosts.h"
#include "control/config_names.h"
#include "control/config_policy.h"
#include "control/config_subsets.h"

/* Of a document that does not say. */
#define NAMESPACE "default"

/* What all rules of one host say. */
struct host_rules {
    const struct config_rule *first;
    const struct config_rule *top; /* whose trafficPolicy holds; NULL: none has one */
    struct config_subset_list subsets;
};

struct applying {
    struct config_loaded *l;
    struct config_names hosts;    /* of clusters */
    struct config_names services; /* the same with their ports: "80 a.b" */
    struct config_names known;    /* hosts and patterns of rules, to an index of |rules| */
    struct host_rules *rules;
    uint32_t rule_count;
    bool no_memory;
};

static struct text *begin(struct applying *a, const struct config_node *at)
{
    config_errors_at(a->l->errors, at->source);
    return config_error_begin(a->l->errors, at->line, at->column);
}

static struct text *begin_warning(struct applying *a, const struct config_node *at)
{
    config_errors_at(a->l->errors, at->source);
    return config_warning_begin(a->l->errors, at->line, at->column);
}

static void end(struct applying *a)
{
    config_error_end(a->l->errors);
}

static void place(struct applying *a, struct text *t, const struct config_node *of)
{
    config_error_place(t, a->l->errors, of->source, of->line);
}

static struct bytes namespace_of(const struct applying *a, const struct config_rule *rule)
{
    if (rule->metadata.namespace.len > 0)
        return rule->metadata.namespace;
    return a->l->file->namespace.len > 0 ? a->l->file->namespace : BYTES(NAMESPACE);
}

/* --- is it for us? --- */

enum exported { EXPORTED, NOT_EXPORTED, NOBODY_KNOWS };

static enum exported exported_by(const struct applying *a, const struct config_rule *rule,
                                 struct bytes to)
{
    struct bytes own = a->l->file->namespace;

    if (bytes_equal(to, BYTES("*")))
        return EXPORTED;
    if (bytes_equal(to, BYTES("~")))
        return NOT_EXPORTED;
    if (bytes_equal(to, BYTES(".")))
        return own.len == 0 || bytes_equal(own, namespace_of(a, rule)) ? EXPORTED : NOT_EXPORTED;
    if (own.len == 0)
        return NOBODY_KNOWS;
    return bytes_equal(own, to) ? EXPORTED : NOT_EXPORTED;
}

/* False: something was said about it. */
static bool is_exported(struct applying *a, const struct config_rule *rule)
{
    const struct field_items *to = &rule->spec.export_to;
    const struct field_text *each = to->at;
    enum exported found = to->count == 0 ? EXPORTED : NOT_EXPORTED;

    for (uint32_t i = 0; i < to->count && found != EXPORTED; i++) {
        enum exported one = exported_by(a, rule, each[i].text);

        if (one != NOT_EXPORTED)
            found = one;
    }
    if (found == EXPORTED)
        return true;
    if (found == NOBODY_KNOWS) {
        text_str(begin(a, to->node->key),
                 "'exportTo' names namespaces: say which one this proxy is in, with `namespace: "
                 "NAME` at the top of the native document, or write ['*']");
    } else {
        struct text *t = begin_warning(a, to->node->key);

        text_str(t, "this rule does nothing here: it is not exported to the namespace ");
        config_quote(t, a->l->file->namespace);
    }
    end(a);
    return false;
}

/* --- which host? --- */

static void no_such_host(struct applying *a, const struct config_node *at, struct bytes host)
{
    const struct config_cluster *clusters = a->l->file->clusters.at;
    struct text *t = begin(a, at);
    struct config_guess guess;

    text_str(t, "no cluster has the host ");
    config_quote(t, host);
    config_guess_init(&guess, host);
    for (uint32_t i = 0; i < a->l->file->clusters.count; i++)
        if (clusters[i].host.len > 0)
            config_guess_word(&guess, clusters[i].host);
    config_guess_write(&guess, t);
    if (guess.best.data == NULL)
        text_str(t, ": give the one that the rule is for the key `host:` with this name in the "
                    "native document, or leave the rule out");
    end(a);
}

/* The name under which the rules of that host are kept; empty: something was said. */
static struct bytes find_host(struct applying *a, const struct config_rule *rule)
{
    const struct config_node *at = config_node_find(rule->spec.head.node, "host");
    struct bytes forms[CONFIG_HOST_FORMS];
    struct bytes host = rule->spec.host;
    bool pattern = config_host_is_pattern(host);
    unsigned count;

    if (pattern ? !config_host_pattern_valid(host) : !config_host_valid(host)) {
        struct text *t = begin(a, at);

        text_str(t, "a host is a name such as checkout.shop.svc.cluster.local, or '*.suffix', or "
                    "'*'; not ");
        config_quote(t, host);
        end(a);
        return BYTES_NONE;
    }
    count = config_host_forms(&a->l->arena, host, namespace_of(a, rule), forms);
    a->no_memory = a->no_memory || count == 0;
    if (pattern || count == 0)
        return count == 0 ? BYTES_NONE : forms[0];
    for (unsigned i = 0; i < count; i++)
        if (config_names_find(&a->hosts, forms[i]) != CONFIG_NO_NAME)
            return forms[i];
    no_such_host(a, at, count > 1 ? forms[1] : forms[0]);
    return BYTES_NONE;
}

/* --- ports that nobody has --- */

#define SERVICE_ROOM (CONFIG_HOST_MAX + 12)

static struct bytes service_of(uint32_t port, struct bytes host, char room[SERVICE_ROOM])
{
    struct text t;

    text_init(&t, room, SERVICE_ROOM);
    text_u64(&t, port);
    text_char(&t, ' ');
    text_put(&t, host);
    return text_bytes(&t);
}

static void nobody_has(struct applying *a, const struct config_port_policy *entry,
                       const char *whose, struct bytes name)
{
    struct text *t = begin_warning(a, entry->port.head.node);

    text_str(t, "this entry does nothing: ");
    text_str(t, whose);
    config_quote(t, name);
    text_str(t, " has not port ");
    text_u64(t, entry->port.number);
    text_str(t, " (it is the cluster's key `port`; 80 where that is absent)");
    end(a);
}

static void check_rule_ports(struct applying *a, const struct config_policy *policy,
                             struct bytes host)
{
    const struct config_port_policy *each = policy->ports.at;

    for (uint32_t i = 0; i < policy->ports.count; i++) {
        char room[SERVICE_ROOM];

        if (each[i].port.number != 0 &&
            config_names_find(&a->services, service_of(each[i].port.number, host, room)) ==
                CONFIG_NO_NAME)
            nobody_has(a, &each[i], "a cluster of host ", host);
    }
}

static void check_own_ports(struct applying *a, const struct config_cluster *cluster)
{
    const struct config_port_policy *each = cluster->policy.ports.at;

    for (uint32_t i = 0; i < cluster->policy.ports.count; i++)
        if (each[i].port.number != 0 && each[i].port.number != cluster->port)
            nobody_has(a, &each[i], "cluster ", cluster->name);
}

static void check_ports(struct applying *a, const struct config_rule *rule, struct bytes host)
{
    const struct config_subset *subsets = rule->spec.subsets.at;

    if (config_host_is_pattern(host))
        return;
    check_rule_ports(a, &rule->spec.policy, host);
    for (uint32_t i = 0; i < rule->spec.subsets.count; i++)
        check_rule_ports(a, &subsets[i].policy, host);
}

/* --- the rules of one host --- */

static void two_policies(struct applying *a, const struct config_rule *rule,
                         const struct config_rule *first)
{
    struct text *t = begin(a, rule->spec.policy.head.node->key);

    text_str(t, "a second trafficPolicy for the host ");
    config_quote(t, rule->spec.host);
    text_str(t, ": the first is in ");
    place(a, t, first->spec.policy.head.node);
    text_str(t, "; keep one (Istio would take the older rule, and not say so)");
    end(a);
}

static void two_namespaces(struct applying *a, const struct config_rule *rule,
                           const struct config_rule *first)
{
    struct text *t = begin(a, rule->head.node);

    text_str(t, "a second rule for the host ");
    config_quote(t, rule->spec.host);
    text_str(t, ", of another namespace than the first in ");
    place(a, t, first->head.node);
    text_str(t, ": keep the one that is meant for this proxy");
    end(a);
}

static void merge(struct applying *a, struct host_rules *into, const struct config_rule *rule)
{
    if (!bytes_equal(namespace_of(a, into->first), namespace_of(a, rule))) {
        two_namespaces(a, rule, into->first);
        return;
    }
    if (rule->spec.policy.head.node != NULL && into->top != NULL)
        two_policies(a, rule, into->top);
    else if (rule->spec.policy.head.node != NULL)
        into->top = rule;
    if (!config_subsets_add(&into->subsets, a->l, rule))
        a->no_memory = true;
}

static void add_rule(struct applying *a, const struct config_rule *rule)
{
    struct bytes host;
    uint32_t known;

    config_policy_check(a->l->errors, &rule->spec.policy);
    if (rule->spec.head.node == NULL || rule->spec.host.len == 0 || !is_exported(a, rule))
        return;
    host = find_host(a, rule);
    if (host.len == 0)
        return;
    check_ports(a, rule, host);
    known = config_names_add(&a->known, host, a->rule_count);
    if (known == CONFIG_NO_NAME) {
        known = a->rule_count++;
        a->rules[known].first = rule;
    }
    merge(a, &a->rules[known], rule);
}

/* --- clusters --- */

/* The rules for |host|: its own, else those of the narrowest pattern. */
static const struct host_rules *rules_of(const struct applying *a, struct bytes host, bool *pattern)
{
    char room[CONFIG_HOST_MAX + 1];
    uint32_t found = config_names_find(&a->known, host);

    *pattern = false;
    while (found == CONFIG_NO_NAME && config_host_widen(&host, room)) {
        found = config_names_find(&a->known, host);
        *pattern = true;
    }
    return found == CONFIG_NO_NAME ? NULL : &a->rules[found];
}

static void both_have_it(struct applying *a, const struct config_cluster *cluster,
                         const struct config_clash *clash)
{
    struct text *t = begin(a, clash->second->key);

    config_quote(t, bytes_of(clash->block));
    text_str(t, " of cluster ");
    config_quote(t, cluster->name);
    text_str(t, " is in the DestinationRule of its host as well, in ");
    place(a, t, clash->first);
    text_str(t, ": keep one of them");
    end(a);
}

/*
 * A cluster's own block and its rule's block exclude one another; a pattern's block is for those
 * that say nothing themselves.
 */
static void join(struct applying *a, struct config_cluster *cluster,
                 const struct config_policy *rule, bool pattern)
{
    struct config_policy own = cluster->policy;
    struct config_clash clash;

    cluster->policy = pattern ? own : *rule;
    clash = config_resolve_both(&cluster->policy, pattern ? rule : &own);
    if (clash.block != NULL && !pattern)
        both_have_it(a, cluster, &clash);
}

static void add_subsets(struct applying *a, struct config_expansion *e,
                        const struct config_cluster *plain, const struct host_rules *rules,
                        bool pattern)
{
    for (const struct config_subset_item *s = rules->subsets.first; s != NULL; s = s->next) {
        struct config_cluster cluster;
        struct config_policy policy;
        struct field_items endpoints;

        if (config_errors_full(a->l->errors) || e->full)
            return;
        if (!config_subset_endpoints(e, s->subset, pattern, plain, &endpoints))
            continue;
        cluster = *plain;
        cluster.endpoints = endpoints;
        config_policy_of_rule(rules->top, plain->port, &policy);
        config_resolve_subset(&s->subset->policy, plain->port, &policy);
        join(a, &cluster, &policy, pattern);
        cluster.subset = s->subset;
        cluster.rule = s->rule;
        config_expansion_add(e, &cluster);
    }
}

static void expand(struct applying *a, struct config_expansion *e,
                   const struct config_cluster *written)
{
    struct config_cluster plain = *written;
    struct config_cluster cluster;
    struct config_policy policy;
    const struct host_rules *rules;
    bool pattern;

    config_policy_check(a->l->errors, &written->policy);
    check_own_ports(a, written);
    config_resolve_port(&written->policy, written->port, &plain.policy);
    rules = written->host.len > 0 ? rules_of(a, written->host, &pattern) : NULL;
    cluster = plain;
    if (rules == NULL) {
        config_expansion_add(e, &cluster);
        return;
    }
    config_policy_of_rule(rules->top, written->port, &policy);
    join(a, &cluster, &policy, pattern);
    cluster.rule = rules->first;
    config_expansion_add(e, &cluster);
    add_subsets(a, e, &plain, rules, pattern);
}

static void wrong_host(struct applying *a, const struct config_cluster *cluster)
{
    struct text *t = begin(a, config_node_find(cluster->head.node, "host"));

    text_str(t, "a host is a name such as checkout.shop.svc.cluster.local; not ");
    config_quote(t, cluster->host);
    end(a);
}

/* The host in full, and known. False: no memory. */
static bool enter_host(struct applying *a, struct config_cluster *cluster, uint32_t i)
{
    char room[SERVICE_ROOM];
    struct bytes service;

    if (!config_host_valid(cluster->host)) {
        wrong_host(a, cluster);
        return true;
    }
    cluster->host = config_host_complete(&a->l->arena, cluster->host, a->l->file->namespace);
    if (cluster->host.data == NULL)
        return false;
    if (cluster->host.len > CONFIG_HOST_MAX) {
        wrong_host(a, cluster);
        cluster->host = BYTES_NONE;
        return true;
    }
    service = arena_copy(&a->l->arena, service_of(cluster->port, cluster->host, room));
    if (service.data == NULL)
        return false;
    config_names_add(&a->hosts, cluster->host, i);
    config_names_add(&a->services, service, i);
    return true;
}

static bool enter_hosts(struct applying *a)
{
    struct config_cluster *clusters = a->l->file->clusters.at;
    uint32_t count = a->l->file->clusters.count;

    if (!config_names_init(&a->hosts, &a->l->arena, count) ||
        !config_names_init(&a->services, &a->l->arena, count))
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (clusters[i].host.len > 0 && !enter_host(a, &clusters[i], i))
            return false;
    return true;
}

bool config_rules_apply(struct config_loaded *l, const struct config_rule *rules, uint32_t count)
{
    struct applying a = {.l = l};
    struct config_expansion e = {.l = l};
    const struct config_cluster *clusters = l->file->clusters.at;

    a.rules = arena_take(&l->arena, (count + (size_t)1) * sizeof(*a.rules));
    if (a.rules == NULL || !config_names_init(&a.known, &l->arena, count) || !enter_hosts(&a))
        return false;
    for (uint32_t i = 0; i < count && !config_errors_full(l->errors); i++)
        add_rule(&a, &rules[i]);
    for (uint32_t i = 0; i < l->file->clusters.count && !a.no_memory; i++)
        expand(&a, &e, &clusters[i]);
    return !a.no_memory && config_expansion_end(&e);
}
