/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Laws of Istio's documents: any damage is taken or refused with a place; of policies for a host, a
 * port and a subset the one of reference 8.1 holds, on random rules; memory grows as the files do.
 */
#include "control/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "control/mutate.h"

#include "base/rng.h"

#define EXAMPLES TESTS_DIR "/../examples/"

static char native[16 * 1024], rule[16 * 1024];
static size_t native_len, rule_len;

static size_t read_file(const char *path, char *to, size_t room)
{
    FILE *f = fopen(path, "rb");
    size_t len;

    if (f == NULL)
        return 0;
    len = fread(to, 1, room, f);
    fclose(f);
    return len;
}

static int read_examples(void **state)
{
    (void)state;
    native_len = read_file(EXAMPLES "llm-server.yaml", native, sizeof(native));
    rule_len = read_file(EXAMPLES "llm-server.destinationrule.yaml", rule, sizeof(rule));
    return native_len > 0 && rule_len > 0 ? 0 : -1;
}

static uint32_t lines_of(struct bytes source)
{
    uint32_t lines = 1;

    for (size_t i = 0; i < source.len; i++)
        lines += source.data[i] == '\n' || source.data[i] == '\r' || source.data[i] == 0x85 ||
                 source.data[i] == 0xa8 || source.data[i] == 0xa9;
    return lines;
}

static void check_places(const struct config_error *list, uint32_t count,
                         const struct config_source *sources)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct config_error *e = &list[i];

        assert_true(e->message.len > 0 && e->source < 2);
        assert_in_range(e->line, 1, lines_of(sources[e->source].text));
        assert_in_range(e->column, 1, sources[e->source].text.len + 1);
        if (i > 0)
            assert_true(list[i - 1].source < e->source ||
                        (list[i - 1].source == e->source && list[i - 1].line <= e->line));
    }
}

static void check_snapshot(const struct snapshot *s)
{
    for (uint32_t i = 0; i < s->cluster_count; i++) {
        const struct cluster *c = &s->clusters[i];

        assert_true(c->name.len > 0 && c->endpoint_count > 0 && c->lb < LB_KIND_COUNT);
        assert_true(c->outlier.interval > 0 && c->connect_timeout > 0 && c->idle_timeout > 0);
        assert_in_range(c->panic.threshold, 0, 100);
        assert_ptr_equal(snapshot_find_cluster(s, c->name), c);
        for (uint32_t k = 0; k < c->endpoint_count; k++)
            assert_true(c->endpoints[k].text.len > 0);
    }
}

/* 1 where it was accepted. */
static unsigned check(const char *data, size_t len)
{
    char *copy = malloc(len > 0 ? len : 1); /* of just that size, for the sanitizer */
    const struct config_source sources[] = {{BYTES("n"), bytes_from(native, native_len)},
                                            {BYTES("r"), bytes_from(copy, len)}};
    struct config_errors e;
    struct snapshot *s = NULL;
    int status;

    memcpy(copy, data, len);
    config_errors_init(&e);
    status = config_parse(sources, 2, NULL, &e, &s);
    check_places(e.warnings, e.warning_count, sources);
    if (status == CONFIG_OK) {
        assert_int_equal(e.count, 0);
        check_snapshot(s);
        snapshot_drop(s);
    } else {
        assert_int_equal(status, CONFIG_INVALID);
        assert_true(e.count > 0 && s == NULL);
        check_places(e.at, e.count, sources);
    }
    config_errors_release(&e);
    free(copy);
    return status == CONFIG_OK;
}

static void every_beginning_of_a_rule_is_taken_or_refused_with_a_place(void **state)
{
    unsigned accepted = 0;
    (void)state;

    for (size_t len = 0; len <= rule_len; len++)
        accepted += check(rule, len);
    assert_true(accepted > 1); /* the whole, and nothing at all */
    assert_true(accepted < rule_len / 2);
}

static const char *const pieces[] = {
    "\n",
    "  ",
    "- ",
    ": ",
    "{",
    "}",
    "[",
    "]",
    "*",
    "'",
    "#",
    "---\n",
    "\xff",
    "\x01",
    "0",
    "-1",
    "99999999999",
    "0s",
    "null",
    "subsets: [{name: a}]\n",
    "  portLevelSettings: [{}]\n",
    "host: '*'\n",
    "exportTo: [.]\n",
    "kind: List\nitems:\n",
    "labels: {a: b}",
    "tls: {}\n",
};

static void no_damage_to_a_rule_breaks_the_law(void **state)
{
    unsigned accepted = 0, tried = 4000;
    (void)state;

    for (uint64_t seed = 1; seed <= tried; seed++) {
        char text[sizeof(rule)];
        size_t len = rule_len;
        unsigned changes;
        struct rng rng;

        rng_init(&rng, seed);
        memcpy(text, rule, rule_len);
        for (changes = 1 + rng_below(&rng, 5); changes > 0 && len > 1; changes--)
            len = mutate(text, len, pieces, sizeof(pieces) / sizeof(pieces[0]), &rng);
        accepted += check(text, len);
    }
    assert_in_range(accepted, tried / 100, tried * 3 / 4);
}

/* --- which policy holds --- */

/* The blocks of one policy: a number each, 0 where it is absent. */
struct blocks {
    uint32_t pool, outlier, balancer; /* the last: 1 ROUND_ROBIN, 2 RANDOM */
};

struct policy {
    bool present;
    uint32_t budget; /* percent of a retryBudget; 0: absent */
    struct blocks blocks;
    struct blocks port[2]; /* of the ports 80 and 81 */
};

static bool any(const struct blocks *b)
{
    return b->pool != 0 || b->outlier != 0 || b->balancer != 0;
}

static struct blocks some_blocks(struct rng *rng)
{
    struct blocks b = {0, 0, 0};

    if (rng_below(rng, 2) == 0)
        b.pool = 1 + rng_below(rng, 1000);
    if (rng_below(rng, 2) == 0)
        b.outlier = 1 + rng_below(rng, 1000);
    if (rng_below(rng, 3) == 0)
        b.balancer = 1 + rng_below(rng, 2);
    return b;
}

static struct policy some_policy(struct rng *rng)
{
    struct policy p = {.present = rng_below(rng, 4) != 0};

    if (!p.present)
        return p;
    p.blocks = some_blocks(rng);
    for (unsigned i = 0; i < 2; i++)
        if (rng_below(rng, 3) == 0)
            p.port[i] = some_blocks(rng);
    if (rng_below(rng, 3) == 0)
        p.budget = 1 + rng_below(rng, 100);
    p.present = p.budget != 0 || any(&p.blocks) || any(&p.port[0]) || any(&p.port[1]);
    return p;
}

static void put_blocks(struct text *t, const struct blocks *b)
{
    static const char *const balancers[] = {"", "ROUND_ROBIN", "RANDOM"};

    if (b->pool != 0) {
        text_str(t, "connectionPool: {tcp: {maxConnections: ");
        text_u64(t, b->pool);
        text_str(t, "}}, ");
    }
    if (b->outlier != 0) {
        text_str(t, "outlierDetection: {consecutive5xxErrors: ");
        text_u64(t, b->outlier);
        text_str(t, "}, ");
    }
    if (b->balancer != 0) {
        text_str(t, "loadBalancer: {simple: ");
        text_str(t, balancers[b->balancer]);
        text_str(t, "}, ");
    }
}

static void put_policy(struct text *t, const struct policy *p)
{
    if (!p->present)
        return;
    text_str(t, "trafficPolicy: {");
    put_blocks(t, &p->blocks);
    if (p->budget != 0) {
        text_str(t, "retryBudget: {percent: ");
        text_u64(t, p->budget);
        text_str(t, "}, ");
    }
    if (any(&p->port[0]) || any(&p->port[1]))
        text_str(t, "portLevelSettings: [");
    for (unsigned i = 0; i < 2; i++) {
        if (!any(&p->port[i]))
            continue;
        text_str(t, "{port: {number: ");
        text_u64(t, 80 + i);
        text_str(t, "}, ");
        put_blocks(t, &p->port[i]);
        text_str(t, "}, ");
    }
    text_str(t, any(&p->port[0]) || any(&p->port[1]) ? "]}, " : "}, ");
}

/* Reference 8.1, rules 1 and 2. |subset| may be NULL. */
static struct blocks resolved(const struct policy *top, const struct policy *subset, unsigned port)
{
    struct blocks b = any(&top->port[port]) ? top->port[port] : top->blocks;

    if (subset == NULL)
        return b;
    if (any(&subset->port[port]))
        return subset->port[port];
    if (subset->blocks.pool != 0)
        b.pool = subset->blocks.pool;
    if (subset->blocks.outlier != 0)
        b.outlier = subset->blocks.outlier;
    if (subset->blocks.balancer != 0)
        b.balancer = subset->blocks.balancer;
    return b;
}

/* An entry for the port drops it; a subset's own holds, whatever its ports say. */
static uint32_t budget(const struct policy *top, const struct policy *subset, unsigned port)
{
    if (subset != NULL && subset->budget != 0)
        return subset->budget;
    return any(&top->port[port]) ? 0 : top->budget;
}

static void check_cluster(const struct snapshot *s, const char *name, const struct policy *top,
                          const struct policy *subset)
{
    unsigned port = name[strlen("outbound|8")] == '1';
    struct blocks expected = resolved(top, subset, port);
    uint32_t percent = budget(top, subset, port);
    static const enum lb_kind kinds[] = {LB_LEAST, LB_ROUND_ROBIN, LB_RANDOM};
    const struct cluster *c = snapshot_find_cluster(s, bytes_of(name));

    assert_non_null(c);
    assert_int_equal(c->limits.max_connections, expected.pool != 0 ? expected.pool : LIMIT_NONE);
    assert_int_equal(c->connect_timeout, (expected.pool != 0 ? 10u : 5u) * NS_PER_S);
    assert_int_equal(c->outlier.consecutive_5xx,
                     expected.outlier != 0 ? expected.outlier : default_outlier.consecutive_5xx);
    assert_int_equal(c->outlier.max_ejection_percent, expected.outlier != 0 ? 10 : 20);
    assert_int_equal(c->panic.threshold, expected.outlier != 0 ? 0 : default_panic.threshold);
    assert_int_equal(c->lb, kinds[expected.balancer]);
    assert_int_equal(c->retry_share.given, percent != 0);
    if (percent != 0)
        assert_int_equal(c->retry_share.permille, percent * 10);
}

static void of_random_policies_the_one_of_the_reference_holds(void **state)
{
    (void)state;

    for (uint64_t seed = 1; seed <= 2000; seed++) {
        static const char base[] =
            "listeners: [{name: w, listen: 127.0.0.1:0, routes: [{cluster: a}]}]\nclusters:\n"
            "- {name: a, host: h.t, endpoints: [{address: 127.0.0.1:1}]}\n"
            "- {name: b, host: h.t, port: 81, endpoints: [{address: 127.0.0.1:1}]}\n---\n"
            "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nspec: {host: h.t, ";
        char room[4096];
        struct policy top, subset;
        struct config_source source = {.name = BYTES("f")};
        struct config_errors e;
        struct snapshot *s = NULL;
        struct rng rng;
        struct text t;

        rng_init(&rng, seed);
        top = some_policy(&rng);
        subset = some_policy(&rng);
        text_init(&t, room, sizeof(room));
        text_str(&t, base);
        put_policy(&t, &top);
        text_str(&t, "subsets: [{name: s, ");
        put_policy(&t, &subset);
        text_str(&t, "}]}\n");
        source.text = text_bytes(&t);
        config_errors_init(&e);
        if (config_parse(&source, 1, NULL, &e, &s) != CONFIG_OK)
            fail_msg("%.*s", (int)e.at[0].message.len, (const char *)e.at[0].message.data);
        check_cluster(s, "outbound|80||h.t", &top, NULL);
        check_cluster(s, "outbound|81||h.t", &top, NULL);
        check_cluster(s, "outbound|80|s|h.t", &top, &subset);
        check_cluster(s, "outbound|81|s|h.t", &top, &subset);
        config_errors_release(&e);
        snapshot_drop(s);
    }
}

/* --- size --- */

#define LARGE (4u << 20)

/* |clusters| with ten endpoints, a rule and two subsets each. */
static size_t write_large(char *to, unsigned clusters)
{
    size_t len = (size_t)sprintf(to, "listeners: [{name: w, listen: '0.0.0.0:1', routes: "
                                     "[{cluster: c0}]}]\nclusters:\n");

    for (unsigned i = 0; i < clusters; i++) {
        len += (size_t)sprintf(to + len, "- name: c%u\n  host: s%u.t\n  endpoints:\n", i, i);
        for (unsigned k = 0; k < 10; k++)
            len += (size_t)sprintf(to + len,
                                   "  - {address: '10.0.%u.%u:80', zone: z, labels: {p: p%u}}\n",
                                   i % 256, k + 1, k % 2);
    }
    for (unsigned i = 0; i < clusters; i++)
        len += (size_t)sprintf(to + len,
                               "---\napiVersion: networking.istio.io/v1\nkind: DestinationRule\n"
                               "spec: {host: s%u.t, trafficPolicy: {outlierDetection: {}},\n"
                               "  subsets: [{name: p0, labels: {p: p0}}, {name: all}]}\n",
                               i);
    assert_true(len < LARGE);
    return len;
}

static size_t memory_of(char *room, unsigned clusters)
{
    struct config_source source = {BYTES("f"), bytes_from(room, write_large(room, clusters))};
    struct config_errors e;
    struct config_loaded l;
    struct snapshot *s = NULL;
    size_t used;

    config_errors_init(&e);
    assert_int_equal(config_open_texts(&l, &source, 1, &e), CONFIG_OK);
    assert_int_equal(config_compile(&l, NULL, &s), CONFIG_OK);
    assert_int_equal(s->cluster_count, 3 * clusters);
    assert_int_equal(s->clusters[1].endpoint_count, 5);
    used = l.arena.held + s->arena.held;
    config_close(&l);
    config_errors_release(&e);
    snapshot_drop(s);
    return used;
}

static void memory_is_in_proportion_to_the_configuration(void **state)
{
    char *room = malloc(LARGE);
    size_t half, whole;
    (void)state;

    half = memory_of(room, 500);
    whole = memory_of(room, 1000);
    assert_true(whole <= 2 * half + (1 << 20));
    assert_true(whole < (size_t)64 << 20);
    free(room);
}

static void check_refused(const char *text, const char *part)
{
    struct config_source source = {BYTES("f"), bytes_of(text)};
    struct config_errors e;
    struct snapshot *s = NULL;

    config_errors_init(&e);
    assert_int_equal(config_parse(&source, 1, NULL, &e, &s), CONFIG_INVALID);
    assert_non_null(memmem(e.at[0].message.data, e.at[0].message.len, part, strlen(part)));
    assert_int_equal(e.count, 1);
    config_errors_release(&e);
}

/* A rule for every host times its subsets: less is written than is meant. */
static void subsets_that_multiply_are_refused_before_they_fill_the_memory(void **state)
{
    char *room = malloc(LARGE);
    size_t len = (size_t)sprintf(room, "listeners: [{name: w, listen: '0.0.0.0:1', routes: "
                                       "[{cluster: c0}]}]\nclusters:\n");
    (void)state;

    for (unsigned i = 0; i < 1001; i++)
        len += (size_t)sprintf(
            room + len, "- {name: c%u, host: s%u.t, endpoints: [{address: '127.0.0.1:1'}]}\n", i,
            i);
    len += (size_t)sprintf(room + len, "---\napiVersion: networking.istio.io/v1\n"
                                       "kind: DestinationRule\nspec:\n  host: '*'\n  subsets:\n");
    for (unsigned i = 0; i < 100; i++)
        len += (size_t)sprintf(room + len, "  - {name: s%u}\n", i);
    check_refused(room, "too many subsets: at most 100,000 clusters");
    free(room);
}

static void more_subsets_than_a_host_has_are_refused(void **state)
{
    char *room = malloc(LARGE);
    size_t len = (size_t)sprintf(room, "%s",
                                 "listeners: [{name: w, listen: '0.0.0.0:1', routes: "
                                 "[{cluster: a}]}]\n"
                                 "clusters: [{name: a, host: a, endpoints: [{address: "
                                 "'127.0.0.1:1'}]}]\n---\n"
                                 "apiVersion: networking.istio.io/v1\nkind: DestinationRule\n"
                                 "spec:\n  host: a\n  subsets:\n");
    (void)state;

    for (unsigned i = 0; i < 1001; i++)
        len += (size_t)sprintf(room + len, "  - {name: s%u}\n", i);
    check_refused(room, "more than 1000 subsets of one host");
    free(room);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_beginning_of_a_rule_is_taken_or_refused_with_a_place),
        cmocka_unit_test(no_damage_to_a_rule_breaks_the_law),
        cmocka_unit_test(of_random_policies_the_one_of_the_reference_holds),
        cmocka_unit_test(memory_is_in_proportion_to_the_configuration),
        cmocka_unit_test(subsets_that_multiply_are_refused_before_they_fill_the_memory),
        cmocka_unit_test(more_subsets_than_a_host_has_are_refused),
    };

    return cmocka_run_group_tests_name("config_istio_law", tests, read_examples, NULL);
}
