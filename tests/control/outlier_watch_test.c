/* SPDX-License-Identifier: Apache-2.0 */
/* The outlier watch: from a worker's message to health, counters and log, and back by the sweep. */
#include "control/outlier_watch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/list.h"
#include "base/rng.h"
#include "base/wheel.h"
#include "policy/host.h"

#define S            NS_PER_S
#define CLUSTERS_MAX 4
#define LINES_MAX    64

#define GATEWAY (UINT64_C(1) << OUTLIER_CONSECUTIVE_GATEWAY)
#define ANY_5XX (UINT64_C(1) << OUTLIER_CONSECUTIVE_5XX)
#define LOCAL   (UINT64_C(1) << OUTLIER_CONSECUTIVE_LOCAL_ORIGIN)

struct line {
    enum log_level level;
    char event[40];
    char text[240];
};

/* A log that remembers, a wheel, and the cluster states that outlive snapshots. */
struct world {
    struct log log;
    struct line lines[LINES_MAX];
    uint32_t line_count;
    struct wheel wheel;
    struct clock clock;
    struct event_log *events; /* may be NULL */
    mono_ns now;
    struct outlier_watch *watch;
    struct snapshot *snapshot;
    struct cluster_state *states[CLUSTERS_MAX];
};

__attribute__((format(printf, 4, 0))) static void
remember(struct log *l, enum log_level level, const char *event, const char *format, va_list args)
{
    struct world *w = CONTAINER_OF(l, struct world, log);
    struct line *line = &w->lines[w->line_count++ % LINES_MAX];

    line->level = level;
    snprintf(line->event, sizeof(line->event), "%s", event);
    vsnprintf(line->text, sizeof(line->text), format, args);
}

static const struct outlier_config ordinary = {
    .consecutive_5xx = 5,
    .enabled = true,
    .interval = 10 * S,
    .base_ejection = 30 * S,
    .max_ejection = 300 * S,
    .max_ejection_percent = 20,
    .enforcing = OUTLIER_ENFORCING_RUNS,
    .rates = OUTLIER_RATE_RULES,
};

static const char *const host_names[] = {"10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"};

/* Of the clusters whose bit is set in |which|; cluster k has 10 - k hosts. */
static struct snapshot *make(struct world *w, uint32_t which, const struct outlier_config *c)
{
    static const char *const names[CLUSTERS_MAX] = {"checkout", "cart", "search", "mail"};
    struct snapshot *s = snapshot_create();
    struct cluster *clusters = arena_take(&s->arena, CLUSTERS_MAX * sizeof(*clusters));

    for (uint32_t k = 0; k < CLUSTERS_MAX; k++) {
        uint32_t hosts = 10 - k;
        struct endpoint *endpoints = arena_take(&s->arena, hosts * sizeof(*endpoints));

        if ((which & 1u << k) == 0)
            continue;
        for (uint32_t i = 0; i < hosts; i++)
            endpoints[i] = (struct endpoint){.text = bytes_of(host_names[i % 3]), .slot = i};
        if (w->states[k] == NULL)
            w->states[k] = cluster_state_create(hosts, 1);
        clusters[s->cluster_count++] = (struct cluster){.name = bytes_of(names[k]),
                                                        .endpoint_count = hosts,
                                                        .endpoints = endpoints,
                                                        .outlier = *c,
                                                        .differences = c->differences,
                                                        .hosts = w->states[k]->hosts,
                                                        .state = cluster_state_take(w->states[k])};
    }
    s->clusters = clusters;
    return s;
}

static wall_ns wall(struct clock *c)
{
    (void)c;
    return UINT64_C(1800000000) * S;
}

static struct outlier_watch *create(struct world *w, struct log *log)
{
    const struct outlier_watch_setup setup = {
        .wheel = &w->wheel, .clock = &w->clock, .log = log, .events = w->events, .seed = 1};

    w->clock.wall = wall;
    return outlier_watch_create(&setup);
}

static void start(struct world *w, uint32_t which, const struct outlier_config *c)
{
    *w = (struct world){.log = {.write = remember}, .now = 1000 * S};
    wheel_init(&w->wheel, w->now);
    w->watch = create(w, &w->log);
    assert_non_null(w->watch);
    w->snapshot = make(w, which, c);
    assert_true(outlier_watch_adopt(w->watch, w->snapshot, w->now));
}

static void adopt(struct world *w, uint32_t which, const struct outlier_config *c)
{
    struct snapshot *next = make(w, which, c);

    assert_true(outlier_watch_adopt(w->watch, next, w->now));
    snapshot_drop(w->snapshot);
    w->snapshot = next;
}

static void stop(struct world *w)
{
    outlier_watch_free(w->watch);
    assert_true(wheel_next(&w->wheel) == MONO_NEVER);
    snapshot_drop(w->snapshot);
    for (uint32_t k = 0; k < CLUSTERS_MAX; k++)
        cluster_state_drop(w->states[k]);
}

static void tell(struct world *w, uint32_t cluster, uint32_t host, uint64_t triggers)
{
    const struct message m = {
        .index = host, .value = triggers, .at = w->now, .object = w->states[cluster]};

    outlier_watch_tell(w->watch, &m, w->now);
}

/* Time passes, and timers fire when they are due. */
static void pass(struct world *w, span_ns span)
{
    mono_ns end = w->now + span;

    while (wheel_next(&w->wheel) <= end) {
        w->now = wheel_next(&w->wheel) > w->now ? wheel_next(&w->wheel) : w->now;
        wheel_run(&w->wheel, w->now);
    }
    w->now = end;
}

static uint64_t stat(const struct world *w, uint32_t cluster, enum outlier_metric m)
{
    return cell_read(&w->states[cluster]->outlier[m]);
}

static struct host *host(struct world *w, uint32_t cluster, uint32_t index)
{
    return w->states[cluster]->hosts.at[index];
}

static bool out(struct world *w, uint32_t cluster, uint32_t index)
{
    return host_health(host(w, cluster, index)) == HOST_EJECTED;
}

static const struct line *last_line(const struct world *w)
{
    assert_true(w->line_count > 0);
    return &w->lines[(w->line_count - 1) % LINES_MAX];
}

static void a_trigger_becomes_an_ejection_seen_counted_and_logged(void **state)
{
    struct world w;
    uint32_t epoch;
    (void)state;

    start(&w, 1, &ordinary);
    epoch = w.states[0]->epoch;
    host(&w, 0, 1)->runs.run_5xx = 5;
    tell(&w, 0, 1, ANY_5XX);
    assert_true(out(&w, 0, 1));
    assert_int_not_equal(w.states[0]->epoch, epoch);
    assert_int_equal(host(&w, 0, 1)->runs.run_5xx, 0);
    assert_int_equal(host(&w, 0, 1)->ejections, 1);
    assert_int_equal(host(&w, 0, 1)->last_trigger, OUTLIER_CONSECUTIVE_5XX);
    assert_int_equal(host(&w, 0, 1)->ejected_at, 1000 * S);
    assert_int_equal(host(&w, 0, 1)->eject_until, 1030 * S);
    assert_int_equal(stat(&w, 0, OUTLIER_STAT_ejections_active), 1);
    assert_int_equal(stat(&w, 0, OUTLIER_STAT_ejections_enforced_total), 1);
    assert_int_equal(stat(&w, 0, OUTLIER_STAT_ejections_detected_consecutive_5xx), 1);
    assert_int_equal(stat(&w, 0, OUTLIER_STAT_ejections_enforced_consecutive_5xx), 1);
    assert_int_equal(stat(&w, 0, OUTLIER_STAT_ejections_total), 1);
    assert_int_equal(stat(&w, 0, OUTLIER_STAT_ejections_consecutive_5xx), 1);
    assert_int_equal(stat(&w, 0, OUTLIER_STAT_ejections_overflow), 0);
    assert_string_equal(last_line(&w)->event, "endpoint.ejected");
    assert_int_equal(last_line(&w)->level, LOG_WARNING);
    assert_string_equal(last_line(&w)->text,
                        "10.0.0.2:80 of cluster checkout is out for 30s after consecutive_5xx; "
                        "1 of 10 hosts out");
    stop(&w);
}

static void of_two_triggers_at_once_the_gateway_one_gets_the_host(void **state)
{
    struct world w;
    (void)state;

    start(&w, 1, &ordinary);
    tell(&w, 0, 0, GATEWAY | ANY_5XX);
    assert_int_equal(host(&w, 0, 0)->last_trigger, OUTLIER_CONSECUTIVE_GATEWAY);
    assert_int_equal(stat(&w, 0, OUTLIER_STAT_ejections_enforced_total), 1);
    assert_int_equal(stat(&w, 0, OUTLIER_STAT_ejections_enforced_consecutive_gateway_failure), 1);
    assert_int_equal(stat(&w, 0, OUTLIER_STAT_ejections_detected_consecutive_gateway_failure), 1);
    assert_int_equal(stat(&w, 0, OUTLIER_STAT_ejections_detected_consecutive_5xx), 0);
    assert_int_equal(stat(&w, 0, OUTLIER_STAT_ejections_total), 0);
    assert_int_equal(stat(&w, 0, OUTLIER_STAT_ejections_overflow), 0);
    tell(&w, 0, 1, LOCAL);
    assert_int_equal(stat(&w, 0, OUTLIER_STAT_ejections_enforced_consecutive_local_origin_failure),
                     1);
    assert_int_equal(stat(&w, 0, OUTLIER_STAT_ejections_detected_consecutive_local_origin_failure),
                     1);
    stop(&w);
}

static void a_refusal_is_counted_each_time_and_logged_once_a_second_a_host(void **state)
{
    struct world w;
    (void)state;

    start(&w, 1, &ordinary);
    tell(&w, 0, 0, ANY_5XX);
    tell(&w, 0, 1, ANY_5XX);
    assert_int_equal(w.line_count, 2);
    for (uint32_t i = 0; i < 5; i++) {
        host(&w, 0, 2)->runs.run_5xx = 5;
        tell(&w, 0, 2, ANY_5XX);
        assert_int_equal(host(&w, 0, 2)->runs.run_5xx, 0);
    }
    tell(&w, 0, 3, ANY_5XX);
    assert_false(out(&w, 0, 2));
    assert_int_equal(stat(&w, 0, OUTLIER_STAT_ejections_overflow), 6);
    assert_int_equal(stat(&w, 0, OUTLIER_STAT_ejections_detected_consecutive_5xx), 8);
    assert_int_equal(stat(&w, 0, OUTLIER_STAT_ejections_consecutive_5xx), 8);
    assert_int_equal(stat(&w, 0, OUTLIER_STAT_ejections_total), 2);
    assert_int_equal(stat(&w, 0, OUTLIER_STAT_ejections_active), 2);
    assert_int_equal(w.line_count, 4);
    pass(&w, S - 1);
    tell(&w, 0, 2, ANY_5XX);
    assert_int_equal(w.line_count, 4);
    pass(&w, 1);
    tell(&w, 0, 2, ANY_5XX);
    assert_int_equal(w.line_count, 5);
    assert_string_equal(last_line(&w)->event, "endpoint.ejection_refused");
    assert_int_equal(last_line(&w)->level, LOG_WARNING);
    assert_string_equal(
        last_line(&w)->text,
        "10.0.0.3:80 of cluster checkout stays in after consecutive_5xx because "
        "of cap; 2 of 10 hosts out, cap 20%; 5 refusals before this one not logged");
    pass(&w, S);
    tell(&w, 0, 2, ANY_5XX);
    assert_non_null(strstr(last_line(&w)->text, "; 0 refusals before"));
    stop(&w);
}

static void the_sweep_lets_a_host_back_in(void **state)
{
    struct world w;
    (void)state;

    start(&w, 1, &ordinary);
    pass(&w, 3 * S);
    tell(&w, 0, 0, ANY_5XX);
    pass(&w, 36 * S);
    assert_true(out(&w, 0, 0));
    pass(&w, S + 10 * NS_PER_MS); /* the fourth sweep, each up to 1 ms late */
    assert_false(out(&w, 0, 0));
    assert_int_equal(stat(&w, 0, OUTLIER_STAT_ejections_active), 0);
    assert_int_equal(stat(&w, 0, OUTLIER_STAT_ejections_enforced_total), 1);
    assert_string_equal(last_line(&w)->event, "endpoint.returned");
    assert_int_equal(last_line(&w)->level, LOG_INFO);
    assert_non_null(strstr(last_line(&w)->text, "10.0.0.1:80 of cluster checkout is in again"));
    assert_non_null(strstr(last_line(&w)->text, "; 0 of 10 hosts out"));
    tell(&w, 0, 0, ANY_5XX);
    assert_int_equal(host(&w, 0, 0)->eject_until - host(&w, 0, 0)->ejected_at, 60 * S);
    assert_int_equal(host(&w, 0, 0)->ejections, 2);
    stop(&w);
}

static void clusters_are_judged_apart(void **state)
{
    struct world w;
    (void)state;

    start(&w, 7, &ordinary);
    tell(&w, 2, 0, ANY_5XX); /* 8 hosts: one may go */
    tell(&w, 2, 1, ANY_5XX);
    tell(&w, 0, 1, ANY_5XX);
    assert_true(out(&w, 2, 0));
    assert_false(out(&w, 2, 1));
    assert_true(out(&w, 0, 1));
    assert_false(out(&w, 0, 0));
    assert_false(out(&w, 1, 0));
    assert_int_equal(stat(&w, 2, OUTLIER_STAT_ejections_overflow), 1);
    assert_int_equal(stat(&w, 1, OUTLIER_STAT_ejections_detected_consecutive_5xx), 0);
    stop(&w);
}

static void what_is_no_longer_there_is_ignored(void **state)
{
    struct cluster_state *stranger = cluster_state_create(3, 1);
    struct message m = {.index = 0, .value = ANY_5XX, .object = stranger};
    struct world w;
    (void)state;

    start(&w, 3, &ordinary);
    outlier_watch_tell(w.watch, &m, w.now);
    cluster_state_drop(stranger);
    tell(&w, 0, 10, ANY_5XX);
    tell(&w, 0, UINT32_MAX, ANY_5XX);
    tell(&w, 0, 0, 0);
    tell(&w, 0, 0, 1); /* OUTLIER_NONE */
    tell(&w, 0, 0, UINT64_MAX << OUTLIER_TRIGGER_COUNT);
    assert_int_equal(w.line_count, 0);
    adopt(&w, 1, &ordinary);
    tell(&w, 1, 0, ANY_5XX);
    assert_int_equal(w.line_count, 0);
    adopt(&w, 0, &ordinary);
    tell(&w, 0, 0, ANY_5XX);
    assert_int_equal(w.line_count, 0);
    stop(&w);
}

static void a_new_snapshot_keeps_who_is_out_and_how_often_he_was(void **state)
{
    struct outlier_config wider = ordinary;
    struct world w;
    (void)state;

    wider.max_ejection_percent = 30;
    start(&w, 3, &ordinary);
    tell(&w, 0, 0, ANY_5XX);
    tell(&w, 0, 1, ANY_5XX);
    tell(&w, 0, 2, ANY_5XX);
    assert_false(out(&w, 0, 2));
    pass(&w, 5 * S);
    adopt(&w, 5, &wider); /* 1 went, 2 came, 0 stays and may lose three */
    tell(&w, 0, 0, ANY_5XX);
    assert_int_equal(stat(&w, 0, OUTLIER_STAT_ejections_enforced_total), 2);
    tell(&w, 0, 2, ANY_5XX);
    assert_true(out(&w, 0, 2));
    tell(&w, 2, 0, ANY_5XX);
    assert_true(out(&w, 2, 0));
    pass(&w, 25 * S + 10 * NS_PER_MS); /* the sweeps went on at their old times */
    assert_false(out(&w, 0, 0));
    assert_false(out(&w, 0, 1));
    assert_true(out(&w, 0, 2));
    tell(&w, 0, 0, ANY_5XX);
    assert_int_equal(host(&w, 0, 0)->eject_until - host(&w, 0, 0)->ejected_at, 60 * S);
    stop(&w);
}

static void a_new_interval_holds_from_its_adoption(void **state)
{
    struct outlier_config quick = ordinary;
    struct world w;
    (void)state;

    quick.interval = S;
    quick.base_ejection = 2 * S;
    start(&w, 1, &ordinary);
    pass(&w, 5 * S);
    adopt(&w, 1, &quick);
    tell(&w, 0, 0, ANY_5XX);
    pass(&w, 2 * S + 5 * NS_PER_MS);
    assert_false(out(&w, 0, 0));
    stop(&w);
}

static void switched_off_all_come_back_and_nobody_goes(void **state)
{
    struct outlier_config off = ordinary;
    struct world w;
    (void)state;

    off.enabled = false;
    off.interval = 0;
    start(&w, 1, &ordinary);
    tell(&w, 0, 0, ANY_5XX);
    adopt(&w, 1, &off);
    assert_false(out(&w, 0, 0));
    assert_int_equal(stat(&w, 0, OUTLIER_STAT_ejections_active), 0);
    assert_true(wheel_next(&w.wheel) == MONO_NEVER);
    host(&w, 0, 0)->runs.run_5xx = 5;
    tell(&w, 0, 0, ANY_5XX); /* posted before the worker knew */
    assert_false(out(&w, 0, 0));
    assert_int_equal(host(&w, 0, 0)->runs.run_5xx, 0);
    adopt(&w, 1, &ordinary);
    tell(&w, 0, 0, ANY_5XX);
    assert_true(out(&w, 0, 0));
    pass(&w, 61 * S);
    assert_false(out(&w, 0, 0));
    stop(&w);
}

static void an_interval_of_zero_does_not_spin(void **state)
{
    struct outlier_config c = ordinary;
    struct world w;
    (void)state;

    c.interval = 0;
    start(&w, 1, &c);
    assert_true(wheel_next(&w.wheel) > w.now);
    pass(&w, 20 * NS_PER_MS);
    assert_true(wheel_next(&w.wheel) > w.now);
    stop(&w);
}

static void without_a_log_all_goes_on(void **state)
{
    struct world w = {.now = S};
    (void)state;

    wheel_init(&w.wheel, w.now);
    w.watch = create(&w, NULL);
    w.snapshot = make(&w, 1, &ordinary);
    assert_true(outlier_watch_adopt(w.watch, w.snapshot, w.now));
    tell(&w, 0, 0, ANY_5XX);
    assert_true(out(&w, 0, 0));
    pass(&w, 61 * S);
    assert_false(out(&w, 0, 0));
    stop(&w);
}

static uint32_t count_out(struct world *w, uint32_t cluster)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < w->states[cluster]->hosts.count; i++)
        n += out(w, cluster, i);
    return n;
}

/* What is shown agrees with what is, on random histories with reloads among them. */
static void health_gauges_and_counters_agree_on_random_histories(void **state)
{
    (void)state;

    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct rng random;
        struct world w;
        uint32_t which = 15;

        rng_init(&random, seed);
        start(&w, which, &ordinary);
        for (uint32_t step = 0; step < 400; step++) {
            struct outlier_config c = ordinary;
            uint32_t k = rng_below(&random, CLUSTERS_MAX);

            switch (rng_below(&random, 12)) {
            case 0:
                pass(&w, rng_below(&random, 20000) * NS_PER_MS);
                break;
            case 1:
                c.max_ejection_percent = 20 + rng_below(&random, 60);
                c.enabled = rng_below(&random, 4) != 0;
                which = rng_below(&random, 16);
                for (uint32_t i = 0; i < CLUSTERS_MAX; i++) {
                    if ((which & 1u << i) == 0) { /* comes back, if ever, as another */
                        cluster_state_drop(w.states[i]);
                        w.states[i] = NULL;
                    }
                }
                adopt(&w, which, &c);
                break;
            default:
                if (w.states[k] != NULL)
                    tell(&w, k, rng_below(&random, 10 - k), rng_below(&random, 16));
            }
            for (uint32_t i = 0; i < CLUSTERS_MAX; i++) {
                if (w.states[i] == NULL)
                    continue;
                assert_int_equal(count_out(&w, i), stat(&w, i, OUTLIER_STAT_ejections_active));
                assert_true(count_out(&w, i) < w.states[i]->hosts.count);
                assert_int_equal(
                    stat(&w, i, OUTLIER_STAT_ejections_enforced_total) +
                        stat(&w, i, OUTLIER_STAT_ejections_overflow),
                    stat(&w, i, OUTLIER_STAT_ejections_detected_consecutive_5xx) +
                        stat(&w, i, OUTLIER_STAT_ejections_detected_consecutive_gateway_failure) +
                        stat(&w, i,
                             OUTLIER_STAT_ejections_detected_consecutive_local_origin_failure));
            }
        }
        stop(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trigger_becomes_an_ejection_seen_counted_and_logged),
        cmocka_unit_test(of_two_triggers_at_once_the_gateway_one_gets_the_host),
        cmocka_unit_test(a_refusal_is_counted_each_time_and_logged_once_a_second_a_host),
        cmocka_unit_test(the_sweep_lets_a_host_back_in),
        cmocka_unit_test(clusters_are_judged_apart),
        cmocka_unit_test(what_is_no_longer_there_is_ignored),
        cmocka_unit_test(a_new_snapshot_keeps_who_is_out_and_how_often_he_was),
        cmocka_unit_test(a_new_interval_holds_from_its_adoption),
        cmocka_unit_test(switched_off_all_come_back_and_nobody_goes),
        cmocka_unit_test(an_interval_of_zero_does_not_spin),
        cmocka_unit_test(without_a_log_all_goes_on),
        cmocka_unit_test(health_gauges_and_counters_agree_on_random_histories),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
