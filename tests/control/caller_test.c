/* SPDX-License-Identifier: Apache-2.0 */
/* What this proxy itself has is never held against hosts. */
#include "control/caller.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/snapshot.h"

#define S            NS_PER_S
#define CLUSTERS_MAX 4

struct world {
    struct outlier_watch watch;
    struct watched watched[CLUSTERS_MAX];
    struct watched *all[CLUSTERS_MAX];
    struct cluster clusters[CLUSTERS_MAX];
    struct endpoint endpoints[CLUSTERS_MAX];
    mono_ns now;
};

/* Each cluster has one host; |shared|: the same in all. */
static void start(struct world *w, uint32_t clusters, const char *shared)
{
    static const char *const own[] = {"10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1", "10.0.0.4:1"};

    memset(w, 0, sizeof(*w));
    w->now = 100 * S;
    w->watch.all = w->all;
    w->watch.count = clusters;
    for (uint32_t i = 0; i < clusters; i++) {
        const char *at = shared != NULL ? shared : own[i];

        assert_true(address_parse(bytes_of(at), &w->endpoints[i].address));
        w->clusters[i].endpoints = &w->endpoints[i];
        w->clusters[i].endpoint_count = 1;
        w->watched[i].config = &w->clusters[i];
        w->watched[i].watch = &w->watch;
        w->all[i] = &w->watched[i];
    }
}

static void see(struct world *w, uint32_t cluster, enum evidence_outcome outcome, uint32_t n)
{
    const struct evidence e = {.outcome = (uint8_t)outcome, .flags = EVIDENCE_FRESH};

    while (n-- > 0)
        caller_learn(&w->watched[cluster], &e);
}

static bool cut_off(struct world *w)
{
    w->now += S;
    caller_look(&w->watch, w->now);
    return w->watch.cut_off;
}

/* What becomes of evidence of |outcome|. */
static bool believed(struct world *w, enum evidence_outcome outcome, uint8_t flags)
{
    struct evidence e = {.at = w->now, .outcome = (uint8_t)outcome, .flags = flags};

    return caller_believes(&w->watched[0], &e, w->now);
}

static void unrelated_clusters_that_cannot_be_reached_at_once_are_our_own_trouble(void **state)
{
    struct world w;
    (void)state;

    start(&w, 3, NULL);
    see(&w, 0, EVIDENCE_CONNECT_FAILED, 6);
    see(&w, 2, EVIDENCE_OK, 6);
    assert_false(cut_off(&w));
    see(&w, 0, EVIDENCE_CONNECT_FAILED, 4);
    see(&w, 1, EVIDENCE_CONNECT_FAILED, 4);
    assert_true(cut_off(&w));
    for (int i = 0; i < 12; i++)
        (void)cut_off(&w);
    assert_false(cut_off(&w));
}

static void a_host_in_common_may_be_what_is_wrong(void **state)
{
    struct world w;
    (void)state;

    start(&w, 3, "10.9.9.9:80");
    for (uint32_t i = 0; i < 3; i++)
        see(&w, i, EVIDENCE_CONNECT_FAILED, 9);
    assert_false(cut_off(&w));
}

static void refusals_and_partial_failures_are_not(void **state)
{
    struct world w;
    (void)state;

    start(&w, 2, NULL);
    see(&w, 0, EVIDENCE_REFUSED, 20);
    see(&w, 1, EVIDENCE_REFUSED, 20);
    assert_false(cut_off(&w));
    start(&w, 2, NULL);
    for (uint32_t i = 0; i < 2; i++) {
        see(&w, i, EVIDENCE_CONNECT_FAILED, 8);
        see(&w, i, EVIDENCE_OK, 4);
    }
    assert_false(cut_off(&w));
}

static void most_clusters_must_be_out_of_reach(void **state)
{
    struct world w;
    (void)state;

    start(&w, 4, NULL);
    for (uint32_t i = 0; i < 4; i++)
        see(&w, i, i < 2 ? EVIDENCE_CONNECT_FAILED : EVIDENCE_OK, 6);
    assert_false(cut_off(&w));
}

static void a_loop_that_is_late_voids_waits_and_no_answers(void **state)
{
    struct world w;
    (void)state;

    start(&w, 1, NULL);
    for (int o = 0; o < EVIDENCE_OUTCOME_COUNT; o++) {
        bool waits = o == EVIDENCE_TIMEOUT || o == EVIDENCE_LATE || o == EVIDENCE_ABANDONED ||
                     o == EVIDENCE_CONNECT_FAILED;

        assert_true(believed(&w, (enum evidence_outcome)o, 0));
        assert_int_equal(believed(&w, (enum evidence_outcome)o, EVIDENCE_DOUBTFUL), !waits);
    }
}

static void cut_off_what_broke_says_nothing_either(void **state)
{
    struct world w;
    (void)state;

    start(&w, 1, NULL);
    w.watch.cut_off = true;
    assert_false(believed(&w, EVIDENCE_RESET, 0));
    assert_false(believed(&w, EVIDENCE_CUT, 0));
    assert_false(believed(&w, EVIDENCE_TIMEOUT, 0));
    assert_true(believed(&w, EVIDENCE_ERROR, 0));
}

static void what_comes_from_a_stopped_worker_is_doubted(void **state)
{
    struct world w;
    struct evidence e = {.at = 97 * S, .outcome = EVIDENCE_OK};
    (void)state;

    start(&w, 1, NULL);
    assert_true(caller_believes(&w.watched[0], &e, w.now));
    assert_true((e.flags & EVIDENCE_DOUBTFUL) != 0);
    e = (struct evidence){.at = 97 * S, .outcome = EVIDENCE_TIMEOUT};
    assert_false(caller_believes(&w.watched[0], &e, w.now));
    e.at = 99 * S;
    e.flags = 0;
    assert_true(caller_believes(&w.watched[0], &e, w.now));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unrelated_clusters_that_cannot_be_reached_at_once_are_our_own_trouble),
        cmocka_unit_test(a_host_in_common_may_be_what_is_wrong),
        cmocka_unit_test(refusals_and_partial_failures_are_not),
        cmocka_unit_test(most_clusters_must_be_out_of_reach),
        cmocka_unit_test(a_loop_that_is_late_voids_waits_and_no_answers),
        cmocka_unit_test(cut_off_what_broke_says_nothing_either),
        cmocka_unit_test(what_comes_from_a_stopped_worker_is_doubted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
