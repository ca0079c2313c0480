/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks, and the run-time state of clusters and of the process. */
#include "model/cluster_state.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "model/block.h"
#include "model/process_state.h"

static void a_block_gives_lines_of_their_own(void **state)
{
    struct block b;
    uint8_t *first, *second, *third;
    (void)state;

    block_init(&b);
    assert_null(block_take(&b, 1, 1));
    assert_null(block_take(&b, 3, 50));
    assert_null(block_take(&b, 0, 50));
    assert_null(block_take(&b, 1, 64));
    assert_int_equal(b.used, 64 + 192 + 0 + 64);
    assert_true(block_allocate(&b));
    first = block_take(&b, 1, 1);
    second = block_take(&b, 3, 50);
    assert_non_null(block_take(&b, 0, 50));
    third = block_take(&b, 1, 64);
    assert_int_equal((uintptr_t)first % CACHE_LINE, 0);
    assert_ptr_equal(second, first + 64);
    assert_ptr_equal(third, second + 192);
    for (size_t i = 0; i < 64 + 192 + 64; i++) {
        assert_int_equal(first[i], 0);
        first[i] = 1; /* a sanitizer sees where it ends */
    }
    memory_give(b.raw);
}

static void a_block_that_cannot_be_is_refused(void **state)
{
    struct block b;
    (void)state;

    block_init(&b);
    block_take(&b, SIZE_MAX / 2, 3);
    assert_false(block_allocate(&b));
    block_init(&b);
    block_take(&b, 1, SIZE_MAX / 4);
    block_take(&b, 1, SIZE_MAX / 4);
    assert_false(block_allocate(&b));
    block_init(&b);
    for (int i = 0; i < 100; i++)
        block_take(&b, 1, SIZE_MAX / 4); /* the sum would come round */
    assert_false(block_allocate(&b));
    block_init(&b);
    block_take(&b, 1, SIZE_MAX);
    block_take(&b, 1, 1);
    assert_false(block_allocate(&b));
}

static void a_new_cluster_state_is_healthy_and_empty(void **state)
{
    struct cluster_state *s = cluster_state_create(3, 2);
    (void)state;

    assert_non_null(s);
    assert_int_equal(s->workers, 2);
    assert_int_equal(s->hosts.count, 3);
    assert_int_equal(limit_used(&s->connections), 0);
    assert_int_equal(limit_used(&s->pending), 0);
    assert_int_equal(limit_used(&s->requests), 0);
    for (uint32_t h = 0; h < 3; h++) {
        assert_int_equal(host_health(s->hosts.at[h]), HOST_HEALTHY);
        assert_int_equal(s->hosts.at[h]->in_flight, 0);
    }
    for (unsigned m = 0; m < CLUSTER_METRIC_COUNT; m++)
        assert_int_equal(cluster_state_sum(s, (enum cluster_metric)m), 0);
    cluster_state_drop(s);
}

static void what_workers_write_shares_no_cache_line(void **state)
{
    struct cluster_state *s = cluster_state_create(3, 3);
    (void)state;

    assert_int_equal((uintptr_t)s % 64, 0);
    for (uint32_t h = 0; h < 3; h++)
        assert_int_equal((uintptr_t)s->hosts.at[h] % 64, 0);
    for (uint32_t w = 0; w < 3; w++) {
        assert_int_equal((uintptr_t)s->cells[w] % 64, 0);
        memset((void *)s->cells[w], 1, sizeof(*s->cells[w]));
        for (uint32_t h = 0; h < 3; h++) {
            struct endpoint_cells *own = &host_state_of(s->hosts.at[h])->cells[w];

            assert_int_equal((uintptr_t)own % 64, 0);
            memset((void *)own, 1, sizeof(*own));
        }
    }
    assert_int_equal(s->hosts.at[2]->ejections, 0);
    cluster_state_drop(s);
}

static void sums_are_over_all_workers(void **state)
{
    struct cluster_state *s = cluster_state_create(2, 3);
    (void)state;

    for (uint32_t w = 0; w < 3; w++) {
        cell_add(&s->cells[w]->at[CLUSTER_upstream_rq_total], 1u << w);
        cell_add(&host_state_of(s->hosts.at[1])->cells[w].at[ENDPOINT_rq_total], 10u << w);
    }
    cell_sub(&s->cells[0]->at[CLUSTER_upstream_rq_active], 1); /* opened there, closed here */
    cell_add(&s->cells[2]->at[CLUSTER_upstream_rq_active], 3);
    assert_int_equal(cluster_state_sum(s, CLUSTER_upstream_rq_total), 7);
    assert_int_equal(cluster_state_sum(s, CLUSTER_upstream_rq_active), 2);
    assert_int_equal(cluster_state_sum(s, CLUSTER_upstream_cx_total), 0);
    assert_int_equal(host_state_sum(host_state_of(s->hosts.at[1]), ENDPOINT_rq_total), 70);
    assert_int_equal(host_state_sum(host_state_of(s->hosts.at[0]), ENDPOINT_rq_total), 0);
    cluster_state_drop(s);
}

static void *take_and_drop(void *of)
{
    for (int i = 0; i < 20000; i++) {
        struct cluster_state *s = cluster_state_take(of);

        assert_ptr_equal(s, of);
        cluster_state_drop(s);
    }
    cluster_state_drop(of); /* the thread's own */
    return NULL;
}

static void references_are_counted_between_threads(void **state)
{
    struct cluster_state *s = cluster_state_create(1, 1);
    pthread_t threads[3];
    (void)state;

    for (int i = 0; i < 3; i++) {
        cluster_state_take(s);
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_drop, s), 0);
    }
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(s->refs, 1);
    cluster_state_drop(s);
    cluster_state_drop(NULL);
}

static struct address port(uint16_t number)
{
    return (struct address){.kind = ADDRESS_IPV4, .port = number, .ip = {127, 0, 0, 1}};
}

static void a_host_keeps_what_it_was_told_and_its_slot(void **state)
{
    struct cluster_state *s = cluster_state_create(0, 2);
    char path[] = "/run/x", name[] = "unix:/run/x";
    struct address unix_one = {.kind = ADDRESS_UNIX, .path = path};
    struct address at = port(80);
    (void)state;

    assert_int_equal(cluster_state_add(s, &at, BYTES("one")), 0);
    assert_int_equal(cluster_state_add(s, &unix_one, bytes_of(name)), 1);
    memset(path, 'z', sizeof(path) - 1);
    memset(name, 'z', sizeof(name) - 1);
    for (uint32_t i = 2; i < 100; i++)
        assert_int_equal(cluster_state_add(s, &at, BYTES("")), i);
    assert_true(bytes_equal(host_state_of(s->hosts.at[0])->text, BYTES("one")));
    assert_true(address_equal(&host_state_of(s->hosts.at[0])->address, &at));
    assert_string_equal(host_state_of(s->hosts.at[1])->address.path, "/run/x");
    assert_true(bytes_equal(host_state_of(s->hosts.at[1])->text, BYTES("unix:/run/x")));
    cluster_state_drop(s);
}

static void an_empty_slot_is_used_again_and_a_view_stays_as_it_was(void **state)
{
    struct cluster_state *s = cluster_state_create(5, 1);
    struct address at = port(80);
    struct host *first = s->hosts.at[0];
    struct host_set view;
    struct arena arena;
    (void)state;

    arena_init(&arena, 64, SIZE_MAX);
    assert_true(cluster_state_view(s, &arena, &view));
    cluster_state_vacate(s, 3);
    cluster_state_vacate(s, 1);
    cluster_state_vacate(s, 1);
    assert_null(s->hosts.at[1]);
    assert_int_equal(cluster_state_add(s, &at, BYTES("new")), 1);
    assert_int_equal(cluster_state_add(s, &at, BYTES("new")), 3);
    assert_int_equal(cluster_state_add(s, &at, BYTES("new")), 5);
    assert_int_equal(view.count, 5);
    assert_ptr_equal(view.at[0], first);
    assert_int_equal(host_health(s->hosts.at[1]), HOST_HEALTHY);
    host_set_health(&view, 0, HOST_EJECTED);
    assert_int_equal(*s->hosts.epoch, 1);
    arena_release(&arena);
    cluster_state_drop(s);
}

static void the_process_is_bounded_by_what_it_has(void **state)
{
    static const struct {
        uint64_t descriptors, memory;
        uint32_t downstream, upstream, requests;
    } rows[] = {
        {1000, UINT64_MAX, 700, 236, 700},
        {1024, UINT64_MAX, 716, 244, 716},
        {1000, (uint64_t)REQUEST_MEMORY_MAX * 100, 700, 236, 100},
        {1000, (uint64_t)REQUEST_MEMORY_MAX * 100 - 1, 700, 236, 99},
        {256, 0, 179, 45, 1}, /* nothing at all would be no proxy */
        {0, UINT64_MAX, 1, 1, 1},
        {UINT64_MAX, UINT64_MAX, LIMIT_NONE - 1, LIMIT_NONE - 1, LIMIT_NONE - 1},
        {UINT64_MAX, (uint64_t)REQUEST_MEMORY_MAX * 5, LIMIT_NONE - 1, LIMIT_NONE - 1, 5},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct process_state *p =
            process_state_create(2, rows[i].descriptors, rows[i].memory, 5 * NS_PER_S);

        assert_non_null(p);
        assert_int_equal(p->downstream_max, rows[i].downstream);
        assert_int_equal(p->upstream_max, rows[i].upstream);
        assert_int_equal(p->requests_max, rows[i].requests);
        assert_int_equal(p->started, 5 * NS_PER_S);
        assert_int_equal(p->workers, 2);
        assert_false(p->draining);
        assert_int_equal(limit_used(&p->requests), 0);
        assert_int_equal((uintptr_t)p % 64, 0);
        assert_int_equal((uintptr_t)&p->worker_cells[1] % 64, 0);
        cell_add(&p->worker_cells[1].at[WORKER_turns], 1);
        process_state_free(p);
    }
    process_state_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_gives_lines_of_their_own),
        cmocka_unit_test(a_block_that_cannot_be_is_refused),
        cmocka_unit_test(a_new_cluster_state_is_healthy_and_empty),
        cmocka_unit_test(what_workers_write_shares_no_cache_line),
        cmocka_unit_test(sums_are_over_all_workers),
        cmocka_unit_test(references_are_counted_between_threads),
        cmocka_unit_test(a_host_keeps_what_it_was_told_and_its_slot),
        cmocka_unit_test(an_empty_slot_is_used_again_and_a_view_stays_as_it_was),
        cmocka_unit_test(the_process_is_bounded_by_what_it_has),
    };

    return cmocka_run_group_tests_name("state", tests, NULL, NULL);
}
