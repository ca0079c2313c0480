/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots put out of force: held while others hold them, then freed in pieces, to the last. */
#include "control/retired.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"

#define CLUSTERS 100

static struct snapshot *made(void)
{
    struct snapshot *s = snapshot_create();
    struct cluster *clusters = arena_take(&s->arena, CLUSTERS * sizeof(*clusters));

    for (uint32_t i = 0; i < CLUSTERS; i++)
        clusters[i].endpoint_count = 2;
    s->clusters = clusters;
    s->cluster_count = CLUSTERS;
    assert_true(snapshot_attach_state(s, 1));
    return s;
}

static uint32_t still_held(const struct retired *r)
{
    uint32_t n = 0;

    for (struct list *l = r->snapshots.next; l != &r->snapshots; l = l->next)
        n++;
    return n;
}

static void what_others_hold_stays_whole(void **state)
{
    struct snapshot *s = made();
    struct retired r;
    (void)state;

    retired_init(&r);
    assert_false(retired_free_some(&r));
    retired_add(&r, snapshot_take(s));
    assert_false(retired_free_some(&r));
    assert_int_equal(s->cluster_count, CLUSTERS);
    assert_int_equal(s->clusters[0].state->hosts.count, 2);
    retired_release(&r);
    assert_true(snapshot_is_unshared(s));
    snapshot_drop(s);
}

static void it_is_freed_in_pieces(void **state)
{
    struct snapshot *s = made();
    struct cluster_state *first = cluster_state_take(s->clusters[0].state);
    uint32_t pieces = 0, left = CLUSTERS;
    struct retired r;
    (void)state;

    retired_init(&r);
    retired_add(&r, s);
    while (still_held(&r) > 0) {
        assert_int_equal(first->refs, 2);
        assert_true(retired_free_some(&r));
        pieces++;
        assert_true(still_held(&r) == 0 || s->cluster_count < left);
        left = still_held(&r) == 0 ? 0 : s->cluster_count;
    }
    assert_true(pieces >= 3);
    assert_int_equal(first->refs, 1);
    assert_false(retired_free_some(&r));
    cluster_state_drop(first);
}

/* Whoever lets go when: it is freed by us, and not before. */
static void in_any_order_all_are_freed(void **state)
{
    struct rng rng;
    struct snapshot *held[8] = {0};
    struct cluster_state *states[8];
    struct retired r;
    (void)state;

    rng_init(&rng, 5);
    retired_init(&r);
    for (uint32_t i = 0; i < 8; i++) {
        held[i] = made();
        states[i] = cluster_state_take(held[i]->clusters[0].state);
        retired_add(&r, snapshot_take(held[i]));
    }
    for (uint32_t left = 8; left > 0;) {
        uint32_t i = rng_below(&rng, 8);

        if (held[i] == NULL)
            continue;
        snapshot_drop(held[i]);
        held[i] = NULL;
        left--;
        while (retired_free_some(&r))
            continue;
        for (i = 0; i < 8; i++)
            assert_int_equal(states[i]->refs, held[i] == NULL ? 1 : 2);
        assert_int_equal(still_held(&r), left);
    }
    for (uint32_t i = 0; i < 8; i++)
        cluster_state_drop(states[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_others_hold_stays_whole),
        cmocka_unit_test(it_is_freed_in_pieces),
        cmocka_unit_test(in_any_order_all_are_freed),
    };

    return cmocka_run_group_tests_name("retired", tests, NULL, NULL);
}
