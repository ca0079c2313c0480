/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The n-th allocation fails, for every n: control is not made, or a snapshot not adopted, and
 * nothing leaks or changes. The heap of the whole program is this file's.
 */
#include "control/control.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/memory.h"
#include "control/outlier_watch.h"

#define NEVER_FAIL UINT64_MAX

static uint64_t until_failure = NEVER_FAIL;
static int64_t blocks; /* taken and not given back */

static bool fails(void)
{
    if (until_failure == NEVER_FAIL)
        return false;
    if (until_failure == 0)
        return true;
    until_failure--;
    return false;
}

void *memory_take(size_t size)
{
    if (fails())
        return NULL;
    blocks++;
    return calloc(1, size == 0 ? 1 : size);
}

void *memory_take_array(size_t count, size_t size)
{
    return memory_take(count * size);
}

void *memory_resize(void *old, size_t size)
{
    if (fails())
        return NULL;
    blocks += old == NULL;
    return realloc(old, size);
}

void memory_give(void *p)
{
    blocks -= p != NULL;
    free(p);
}

/* |count| clusters of 10 hosts each. */
static struct snapshot *make(uint32_t count)
{
    struct snapshot *s = snapshot_create();
    struct cluster *clusters = arena_take(&s->arena, count * sizeof(*clusters));
    struct endpoint *endpoints = arena_take(&s->arena, 10 * sizeof(*endpoints));

    for (uint32_t i = 0; i < count; i++) {
        clusters[i].endpoint_count = 10;
        clusters[i].endpoints = endpoints;
        clusters[i].outlier = default_outlier;
    }
    s->clusters = clusters;
    s->cluster_count = count;
    assert_true(snapshot_attach_state(s, 1));
    return s;
}

static mono_ns read_clock(struct clock *c)
{
    (void)c;
    return NS_PER_S;
}

static void control_is_made_whole_or_not_at_all(void **state)
{
    struct clock clock = {.read = read_clock, .wall = read_clock};
    struct snapshot *s = make(3);
    static struct evidence_ring rings[2];
    static struct process_state process = {.workers = 2, .rings = rings};
    const struct control_setup setup = {
        .clock = &clock, .worker_count = 2, .process = &process, .snapshot = s};
    struct control *c = NULL;
    int64_t before = blocks;
    uint64_t n;
    (void)state;

    for (n = 0; c == NULL; n++) {
        until_failure = n;
        c = control_create(&setup);
        until_failure = NEVER_FAIL;
        if (c == NULL) {
            assert_int_equal(blocks, before);
            assert_int_equal(s->refs, 1);
            assert_int_equal(s->clusters[2].state->refs, 1);
        }
    }
    assert_true(n > 10);
    control_free(c);
    assert_int_equal(blocks, before);
    snapshot_drop(s);
}

static bool ejects(struct outlier_watch *w, struct snapshot *s, uint32_t cluster, uint32_t host)
{
    const struct message m = {.index = host,
                              .value = 1u << OUTLIER_CONSECUTIVE_5XX,
                              .object = s->clusters[cluster].state};

    outlier_watch_tell(w, &m, NS_PER_S);
    return host_health(s->clusters[cluster].state->hosts.at[host]) == HOST_EJECTED;
}

static void a_snapshot_that_finds_no_memory_leaves_the_old_one_watched(void **state)
{
    struct snapshot *old = make(2), *next = make(3);
    struct outlier_watch *w;
    struct wheel wheel;
    const struct outlier_watch_setup setup = {.wheel = &wheel, .seed = 1};
    bool adopted = false;
    int64_t before;
    uint64_t n;
    (void)state;

    wheel_init(&wheel, 0);
    w = outlier_watch_create(&setup);
    assert_true(outlier_watch_adopt(w, old, 0));
    before = blocks;
    for (n = 0; !adopted; n++) {
        until_failure = n;
        adopted = outlier_watch_adopt(w, next, 0);
        until_failure = NEVER_FAIL;
        if (!adopted) {
            assert_int_equal(blocks, before);
            assert_int_equal(next->clusters[0].state->refs, 1);
            assert_int_equal(wheel.armed, 2);
            assert_false(ejects(w, next, 0, 1));
        }
    }
    assert_true(n > 10);
    assert_int_equal(wheel.armed, 3);
    assert_true(ejects(w, next, 2, 1));
    assert_false(ejects(w, old, 0, 1));
    outlier_watch_free(w);
    snapshot_drop(old);
    snapshot_drop(next);
    assert_int_equal(wheel.armed, 0);
    assert_int_equal(blocks, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(control_is_made_whole_or_not_at_all),
        cmocka_unit_test(a_snapshot_that_finds_no_memory_leaves_the_old_one_watched),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
