/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random configurations: whatever is found has a place, a reason and a remedy, the same each time;
 * and once every trap that was found is accepted, nothing is left but what was accepted.
 */
#include "lint_world.h"

#include "base/rng.h"

#define ROUNDS 3000

/* Of a list, one or the empty text. */
#define PICK(rng, list) (list)[rng_below(rng, (uint32_t)(sizeof(list) / sizeof((list)[0])))]

static const char *const timeouts[] = {"", "timeout: none, ", "timeout: 300ms, ", "timeout: 15s, "};
static const char *const tries[] = {"", "perTryTimeout: 100ms, ", "perTryTimeout: 20s, "};
static const char *const expects[] = {"", "expect: {p99: 1s}, ", "expect: {p99: 100ms}, "};
static const char *const pools[] = {"tcp: {maxConnections: 9, connectTimeout: 1s}, ",
                                    "tcp: {maxConnections: 0, connectTimeout: 20s}, ",
                                    "tcp: {connectTimeout: 1s}, "};
static const char *const https[] = {"http: {maxRequestsPerConnection: 1}",
                                    "http: {http1MaxPendingRequests: 2}",
                                    "http: {http2MaxRequests: 9, http1MaxPendingRequests: 0}"};
static const char *const caps[] = {"", "maxEjectionPercent: 0, ", "maxEjectionPercent: 34, ",
                                   "maxEjectionPercent: 100, "};
static const char *const runs[] = {"", "consecutive5xxErrors: 0, ", "consecutive5xxErrors: 1, ",
                                   "consecutiveGatewayErrors: 9, "};
static const char *const spans[] = {"", "interval: 1m, ", "baseEjectionTime: 5m, "};
static const char *const healths[] = {"", "minHealthPercent: 0", "minHealthPercent: 50",
                                      "minHealthPercent: 90"};
static const char *const splits[] = {"", "splitExternalLocalOriginErrors: on, "};
static const char *const semantics[] = {"", "semantics: envoy", "panic: failFast"};

struct random_parts {
    struct parts parts;
    char route[256], pool[256], outlier[512];
};

static void draw(struct rng *rng, struct random_parts *r)
{
    r->parts = (struct parts){.hosts = 1 + rng_below(rng, 12), .cluster = ""};
    snprintf(r->route, sizeof(r->route), "%s%s%s", PICK(rng, timeouts), PICK(rng, tries),
             PICK(rng, expects));
    snprintf(r->pool, sizeof(r->pool), "%s%s", PICK(rng, pools), PICK(rng, https));
    snprintf(r->outlier, sizeof(r->outlier), "%s%s%s%s%s", PICK(rng, caps), PICK(rng, runs),
             PICK(rng, spans), PICK(rng, splits), PICK(rng, healths));
    r->parts.route = r->route;
    r->parts.pool = rng_below(rng, 2) == 0 ? NULL : r->pool;
    r->parts.outlier = rng_below(rng, 4) == 0 ? NULL : r->outlier;
    r->parts.resilience = PICK(rng, semantics);
}

/* The line and the column exist, and the caret is under the place. */
static void check_place(const char *text, const struct config_error *place)
{
    for (uint32_t line = 1; line < place->line; line++) {
        text = strchr(text, '\n');
        assert_non_null(text);
        text++;
    }
    assert_true(place->line > 0 && place->column > 0);
    assert_true(place->column <= strcspn(text, "\n"));
    assert_true(place->caret < place->excerpt.len);
    assert_int_equal(place->excerpt.data[place->caret], text[place->column - 1]);
    assert_true(place->excerpt.data[place->caret] != ' ');
}

/* Writes "accept: [...]" of all that was found; how often something was. */
static void check_findings(const struct looked_at *w, const char *text, struct text *accept)
{
    text_str(accept, "accept: [");
    for (uint32_t i = 0; i < w->lint.kept; i++) {
        const struct lint_finding *f = &w->lint.findings[i];

        check_place(text, &f->place);
        assert_true(f->why.len > 0 && f->instead.len > 0 && !f->accepted);
        if (i > 0)
            text_str(accept, ", ");
        text_str(accept, "{trap: ");
        text_str(accept, f->trap);
        text_str(accept, ", reason: a test}");
    }
    text_str(accept, "]");
    assert_int_equal(lint_count(&w->lint), w->lint.kept);
}

static void check_one(struct rng *rng, uint64_t *found)
{
    struct random_parts r;
    struct looked_at w;
    char accept[4096], before[2048];
    struct text t;
    uint32_t kept;

    draw(rng, &r);
    text_init(&t, accept, sizeof(accept));
    look_at(&w, write_yaml(&r.parts), NULL);
    check_findings(&w, yaml, &t);
    kept = w.lint.kept;
    snprintf(before, sizeof(before), "%s", names(&w));
    *found += kept;
    look_away(&w);

    r.parts.file = text_end(&t);
    look_at(&w, write_yaml(&r.parts), NULL);
    assert_int_equal(lint_count(&w.lint), 0);
    assert_int_equal(w.lint.accepted, kept);
    assert_string_equal(names(&w), before);
    look_away(&w);
}

static void what_is_found_has_a_place_and_can_be_accepted(void **state)
{
    struct rng rng;
    uint64_t found = 0;
    (void)state;

    rng_init(&rng, 20261130);
    for (unsigned i = 0; i < ROUNDS; i++)
        check_one(&rng, &found);
    assert_true(found > ROUNDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_found_has_a_place_and_can_be_accepted),
    };

    return cmocka_run_group_tests_name("lint_law", tests, NULL, NULL);
}
