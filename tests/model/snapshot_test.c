/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a snapshot, and response flags as text. */
#include "model/snapshot.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/flags.h"

/* Two listeners, a cluster of three and one of one. */
static struct snapshot *made(void)
{
    struct snapshot *s = snapshot_create();
    struct listener_config *listeners;
    struct cluster *clusters;

    assert_non_null(s);
    listeners = arena_take(&s->arena, 2 * sizeof(*listeners));
    clusters = arena_take(&s->arena, 2 * sizeof(*clusters));
    clusters[0].endpoint_count = 3;
    clusters[1].endpoint_count = 1;
    s->listener_count = 2;
    s->listeners = listeners;
    s->cluster_count = 2;
    s->clusters = clusters;
    return s;
}

static void a_new_snapshot_is_empty(void **state)
{
    struct snapshot *s = snapshot_create();
    (void)state;

    assert_int_equal(s->refs, 1);
    assert_int_equal(s->listener_count, 0);
    assert_int_equal(s->cluster_count, 0);
    assert_int_equal(s->admin.kind, ADDRESS_NONE);
    assert_true(snapshot_attach_state(s, 2));
    snapshot_drop(s);
    snapshot_drop(NULL);
}

static void state_is_attached_for_every_worker(void **state)
{
    struct snapshot *s = made();
    (void)state;

    assert_true(snapshot_attach_state(s, 2));
    assert_int_equal(s->clusters[0].state->hosts.count, 3);
    assert_int_equal(s->clusters[1].state->hosts.count, 1);
    for (uint32_t i = 0; i < 2; i++) {
        struct listener_state *l = s->listeners[i].state;

        assert_int_equal(s->clusters[i].state->workers, 2);
        assert_int_equal(l->workers, 2);
        assert_int_equal(l->port, 0);
        for (uint32_t w = 0; w < 2; w++) {
            assert_int_equal((uintptr_t)l->cells[w] % 64, 0);
            memset((void *)l->cells[w], 1, sizeof(*l->cells[w]));
        }
        assert_int_equal(l->port, 0);
    }
    assert_ptr_not_equal(s->listeners[0].state, s->listeners[1].state);
    snapshot_drop(s);
}

static void attaching_twice_keeps_what_is_there(void **state)
{
    struct snapshot *s = made();
    struct cluster_state *cluster;
    struct listener_state *listener;
    (void)state;

    assert_true(snapshot_attach_state(s, 1));
    cluster = s->clusters[0].state;
    listener = s->listeners[0].state;
    assert_true(snapshot_attach_state(s, 1));
    assert_ptr_equal(s->clusters[0].state, cluster);
    assert_ptr_equal(s->listeners[0].state, listener);
    snapshot_drop(s);
}

static void the_last_reference_frees_it(void **state)
{
    struct snapshot *s = made();
    struct cluster_state *kept;
    (void)state;

    assert_true(snapshot_attach_state(s, 1));
    kept = cluster_state_take(s->clusters[0].state);
    assert_ptr_equal(snapshot_take(s), s);
    assert_int_equal(s->refs, 2);
    snapshot_drop(s);
    assert_int_equal(s->refs, 1);
    assert_int_equal(kept->refs, 2);
    snapshot_drop(s);
    assert_int_equal(kept->refs, 1); /* it outlives the snapshot */
    cluster_state_drop(kept);
}

static void what_protects_without_a_file_is_sane(void **state)
{
    (void)state;

    assert_true(default_outlier.enabled);
    assert_in_range(default_outlier.max_ejection_percent, 1, 50);
    assert_true(default_outlier.max_ejection >= default_outlier.base_ejection);
    assert_true(default_outlier.interval > 0 && default_outlier.base_ejection > 0);
    assert_true(default_limits.max_pending > 0);
    assert_true(default_http_limits.head_bytes > 0 && default_http_limits.fields > 0);
    assert_true(default_http_limits.buffer_bytes > 0);
}

static void flags_are_envoys_short_names(void **state)
{
    static const struct {
        uint32_t flags;
        const char *text;
    } rows[] = {
        {FLAG_NONE, "-"},
        {FLAG_UH, "UH"},
        {FLAG_UF, "UF"},
        {FLAG_DT, "DT"},
        {FLAG_UF | FLAG_UT, "UF,UT"},
        {FLAG_DPE | FLAG_UO | FLAG_DC, "UO,DPE,DC"},
        {(1u << FLAG_COUNT) - 1, "UH,UO,URX,UF,NR,NC,UT,UC,UPE,LR,SI,DPE,DC,OM,DT"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char room[100];
        struct text t;

        text_init(&t, room, sizeof(room));
        flags_write(&t, rows[i].flags);
        assert_string_equal(text_end(&t), rows[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_snapshot_is_empty),
        cmocka_unit_test(state_is_attached_for_every_worker),
        cmocka_unit_test(attaching_twice_keeps_what_is_there),
        cmocka_unit_test(the_last_reference_frees_it),
        cmocka_unit_test(what_protects_without_a_file_is_sane),
        cmocka_unit_test(flags_are_envoys_short_names),
    };

    return cmocka_run_group_tests_name("snapshot", tests, NULL, NULL);
}
