/* SPDX-License-Identifier: Apache-2.0 */
/* Panic is noted when it begins and when it ends, once each. */
#include "control/panic_note.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/list.h"

struct world {
    struct log log;
    unsigned lines;
    char event[40];
    char text[320];
    struct cluster cluster;
};

__attribute__((format(printf, 4, 0))) static void
remember(struct log *l, enum log_level level, const char *event, const char *format, va_list args)
{
    struct world *w = CONTAINER_OF(l, struct world, log);
    (void)level;

    w->lines++;
    snprintf(w->event, sizeof(w->event), "%s", event);
    vsnprintf(w->text, sizeof(w->text), format, args);
}

static void start(struct world *w, uint32_t hosts, enum panic_policy policy)
{
    *w = (struct world){.log = {.write = remember},
                        .cluster = {.name = BYTES("checkout"),
                                    .endpoint_count = hosts,
                                    .panic = {policy, 50},
                                    .state = cluster_state_create(hosts, 1)}};
}

static void set(struct world *w, uint32_t from, uint32_t to, enum host_health health)
{
    for (uint32_t i = from; i < to; i++)
        host_set_health(&w->cluster.state->hosts, i, health);
}

static mono_ns since(const struct world *w)
{
    return w->cluster.state->panic_since;
}

static void an_episode_is_logged_once_at_each_end(void **state)
{
    struct world w;
    (void)state;

    start(&w, 10, PANIC_SERVE_ALL);
    panic_note(&w.cluster, &w.log, 5 * NS_PER_S);
    set(&w, 0, 5, HOST_EJECTED);
    panic_note(&w.cluster, &w.log, 6 * NS_PER_S);
    assert_int_equal(w.lines, 0);
    assert_true(since(&w) == MONO_NEVER);
    set(&w, 5, 6, HOST_EJECTED);
    panic_note(&w.cluster, &w.log, 7 * NS_PER_S);
    assert_int_equal(w.lines, 1);
    assert_string_equal(w.event, "cluster.panic");
    assert_string_equal(w.text, "only 4 of 10 hosts of cluster checkout are healthy, fewer than "
                                "minHealthPercent 50%: every host serves, the ejected ones too "
                                "(panic: serveAll)");
    assert_int_equal(since(&w), 7 * NS_PER_S);
    set(&w, 6, 9, HOST_EJECTED);
    panic_note(&w.cluster, &w.log, 8 * NS_PER_S);
    assert_int_equal(w.lines, 1);
    assert_int_equal(since(&w), 7 * NS_PER_S);
    set(&w, 0, 9, HOST_HEALTHY);
    panic_note(&w.cluster, &w.log, 9500 * NS_PER_MS);
    assert_int_equal(w.lines, 2);
    assert_string_equal(w.event, "cluster.panic_over");
    assert_string_equal(w.text,
                        "enough hosts of cluster checkout are healthy again, after 2.5s of panic");
    assert_true(since(&w) == MONO_NEVER);
    panic_note(&w.cluster, &w.log, 10 * NS_PER_S);
    assert_int_equal(w.lines, 2);
    cluster_state_drop(w.cluster.state);
}

static void the_policy_says_what_is_done(void **state)
{
    static const char *const said[PANIC_POLICY_COUNT] = {"every host serves", "out for longest",
                                                         "refused with 503 UH"};
    (void)state;

    for (unsigned p = 0; p < PANIC_POLICY_COUNT; p++) {
        struct world w;

        start(&w, 2, (enum panic_policy)p);
        set(&w, 0, 2, HOST_EJECTED);
        panic_note(&w.cluster, &w.log, NS_PER_S);
        assert_non_null(strstr(w.text, said[p]));
        assert_non_null(strstr(w.text, panic_policy_text((enum panic_policy)p)));
        cluster_state_drop(w.cluster.state);
    }
}

static void a_threshold_that_changes_ends_it_too(void **state)
{
    struct world w;
    (void)state;

    start(&w, 4, PANIC_FAIL_FAST);
    set(&w, 0, 3, HOST_EJECTED);
    panic_note(&w.cluster, &w.log, NS_PER_S);
    assert_int_equal(w.lines, 1);
    w.cluster.panic.threshold = 25;
    panic_note(&w.cluster, &w.log, 2 * NS_PER_S);
    assert_int_equal(w.lines, 2);
    assert_string_equal(w.event, "cluster.panic_over");
    cluster_state_drop(w.cluster.state);
}

static void drained_hosts_are_not_counted(void **state)
{
    struct world w;
    (void)state;

    start(&w, 6, PANIC_SERVE_ALL);
    for (uint32_t i = 0; i < 4; i++)
        host_set_drain(&w.cluster.state->hosts, i);
    panic_note(&w.cluster, &w.log, NS_PER_S);
    assert_int_equal(w.lines, 0);
    set(&w, 4, 6, HOST_EJECTED);
    panic_note(&w.cluster, &w.log, NS_PER_S);
    assert_int_equal(w.lines, 1);
    assert_non_null(strstr(w.text, "only 0 of 2 hosts"));
    cluster_state_drop(w.cluster.state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_episode_is_logged_once_at_each_end),
        cmocka_unit_test(the_policy_says_what_is_done),
        cmocka_unit_test(a_threshold_that_changes_ends_it_too),
        cmocka_unit_test(drained_hosts_are_not_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
