/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks, medians and percentiles among peers, by example and against a witness that sorts. */
#include "policy/peer_pool.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"

#define HOSTS 5

struct world {
    struct peer_pool pool;
    struct peer_series series[HOSTS];
};

static struct world *world_new(uint32_t counted)
{
    struct world *w = calloc(1, sizeof(*w));

    assert_non_null(w);
    for (uint32_t i = 0; i < counted; i++)
        peer_set_counted(&w->pool, &w->series[i], true);
    return w;
}

static void add(struct world *w, uint32_t host, uint16_t bin)
{
    peer_add(&w->pool, &w->series[host], bin, 0);
}

static void assert_close(double is, double ought)
{
    if (fabs(is - ought) > 1e-9)
        fail_msg("%.12f, not %.12f", is, ought);
}

/* --- bins --- */

static void a_bin_is_a_sixteenth_of_an_octave(void **state)
{
    static const struct {
        uint32_t us;
        uint16_t bin;
    } rows[] = {{0, 0},      {1, 0},          {2, 16},          {3, 25},
                {1000, 159}, {1024, 160},     {1068, 160},      {1070, 161},
                {2048, 176}, {1u << 27, 432}, {UINT32_MAX, 447}};
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(peer_bin(rows[i].us), rows[i].bin);
}

static void a_bin_is_found_again_from_its_middle(void **state)
{
    (void)state;
    for (uint16_t bin = 100; bin < PEER_BINS; bin++)
        assert_int_equal(peer_bin((uint32_t)peer_bin_us(bin)), bin);
}

static void sixteen_bins_are_a_factor_of_two(void **state)
{
    (void)state;
    assert_close(peer_log_ratio(16), log(2));
    assert_close(peer_log_ratio(-32), -log(4));
}

/* --- by example --- */

static void a_rank_is_the_share_below_with_ties_as_half(void **state)
{
    struct world *w = world_new(2);
    (void)state;

    for (uint16_t bin = 10; bin < 20; bin++)
        add(w, 1, bin);
    assert_int_equal(peer_others(&w->pool, &w->series[0]), 10);
    assert_close(peer_rank(&w->pool, &w->series[0], 0), 0.5 / 11);
    assert_close(peer_rank(&w->pool, &w->series[0], 13), 4.0 / 11);
    assert_close(peer_rank(&w->pool, &w->series[0], 447), 10.5 / 11);
    free(w);
}

static void nobody_is_ranked_among_its_own(void **state)
{
    struct world *w = world_new(2);
    (void)state;

    for (uint32_t i = 0; i < 30; i++) {
        add(w, 0, 50);
        add(w, 1, 100);
    }
    assert_int_equal(peer_others(&w->pool, &w->series[0]), PEER_RECENT);
    assert_close(peer_rank(&w->pool, &w->series[0], 50), 0.5 / 21);
    assert_close(peer_rank(&w->pool, &w->series[1], 50), 10.5 / 21);
    free(w);
}

static void one_that_is_not_counted_is_ranked_but_ranks_nobody(void **state)
{
    struct world *w = world_new(1);
    (void)state;

    for (uint32_t i = 0; i < 40; i++) {
        add(w, 0, 50);
        add(w, 1, 100);
    }
    assert_int_equal(peer_others(&w->pool, &w->series[0]), 0);
    assert_int_equal(peer_others(&w->pool, &w->series[1]), PEER_RECENT);
    assert_close(peer_rank(&w->pool, &w->series[1], 100), 20.5 / 21);
    peer_set_counted(&w->pool, &w->series[1], true);
    assert_int_equal(peer_others(&w->pool, &w->series[0]), PEER_RECENT);
    free(w);
}

/* Of a copy: what is left is that of the others. */
static void what_is_left_out_counts_for_no_p99(void **state)
{
    struct world *w = world_new(3);
    struct peer_pool rest;
    (void)state;

    for (uint32_t i = 0; i < 200; i++) {
        add(w, 0, 100);
        add(w, 1, 300);
        add(w, 2, 290);
    }
    rest = w->pool;
    peer_leave_out(&rest, &w->series[1]);
    assert_int_equal(peer_p99(&rest, &w->series[3]), 290); /* not counted: nobody's */
    peer_leave_out(&rest, &w->series[3]);
    peer_leave_out(&rest, &w->series[2]);
    assert_int_equal(peer_p99(&rest, &w->series[3]), 100);
    assert_int_equal(peer_p99(&w->pool, &w->series[3]), 300);
    assert_int_equal(rest.kept_count, PEER_KEPT);
    free(w);
}

static void a_p99_has_at_most_a_hundredth_above_it(void **state)
{
    struct world *w = world_new(4);
    (void)state;

    assert_int_equal(peer_p99(&w->pool, &w->series[0]), PEER_BINS);
    for (uint32_t i = 0; i < PEER_KEPT; i++)
        for (uint32_t host = 1; host < 4; host++)
            add(w, host, 100);
    add(w, 1, 300); /* one of 192 */
    assert_int_equal(peer_p99(&w->pool, &w->series[0]), 100);
    add(w, 1, 200); /* two of them */
    assert_int_equal(peer_p99(&w->pool, &w->series[0]), 200);
    assert_int_equal(peer_p99(&w->pool, &w->series[1]), 100);
    free(w);
}

static void a_median_is_of_the_latest_twenty_or_of_all_since(void **state)
{
    struct world *w = world_new(0);
    struct peer_series *s = &w->series[0];
    (void)state;

    assert_true(peer_median(s, 0, 0) < 0);
    for (uint32_t i = 0; i < 30; i++)
        peer_add(&w->pool, s, (uint16_t)(i < 10 ? 10 : 20 + i), i);
    assert_close(peer_median(s, 100, 5), 39.5); /* 30 .. 49 */
    assert_close(peer_median(s, 0, 5), 34.5);   /* 10, and 30 .. 49 */
    assert_close(peer_median(s, 5, 5), 37);     /* five of them, and 30 .. 49 */
    assert_true(peer_median(s, 100, 21) < 0);
    free(w);
}

static void a_quantile_is_of_all_that_is_kept(void **state)
{
    struct world *w = world_new(0);
    struct peer_series *s = &w->series[0];
    (void)state;

    assert_true(peer_quantile(s, 0.5) < 0);
    for (uint16_t i = 0; i < 200; i++)
        add(w, 0, i); /* 136 .. 199 are kept */
    assert_close(peer_quantile(s, 0), 136);
    assert_close(peer_quantile(s, 0.5), 167);
    assert_close(peer_quantile(s, 0.51), 168);
    assert_close(peer_quantile(s, 1), 199);
    free(w);
}

static void what_is_forgotten_ranks_nobody(void **state)
{
    struct world *w = world_new(2);
    (void)state;

    for (uint32_t i = 0; i < 100; i++)
        add(w, 1, (uint16_t)(100 + i));
    peer_forget(&w->pool, &w->series[1]);
    assert_int_equal(peer_others(&w->pool, &w->series[0]), 0);
    assert_int_equal(peer_p99(&w->pool, &w->series[0]), PEER_BINS);
    assert_true(peer_median(&w->series[1], 0, 1) < 0);
    add(w, 1, 7);
    assert_int_equal(peer_others(&w->pool, &w->series[0]), 1);
    assert_close(peer_median(&w->series[1], 0, 1), 7);
    free(w);
}

static void what_is_shifted_ranks_as_if_it_had_come_so(void **state)
{
    struct world *w = world_new(2);
    (void)state;

    for (uint16_t bin = 100; bin < 100 + PEER_KEPT; bin++)
        add(w, 1, bin); /* 144 .. 163 are recent */
    peer_shift(&w->pool, &w->series[1], -40);
    assert_int_equal(peer_others(&w->pool, &w->series[0]), PEER_RECENT);
    assert_close(peer_rank(&w->pool, &w->series[0], 103), 0.5 / 21);
    assert_close(peer_rank(&w->pool, &w->series[0], 114), 11.0 / 21);
    assert_close(peer_rank(&w->pool, &w->series[0], 124), 20.5 / 21);
    assert_int_equal(peer_p99(&w->pool, &w->series[0]), 123);
    assert_close(peer_median(&w->series[1], 1, 1), 113.5);
    assert_close(peer_quantile(&w->series[1], 0), 60);
    free(w);
}

/* Of its own it is no more than before, whatever its peers are. */
static void what_is_shifted_and_not_counted_ranks_nobody(void **state)
{
    struct world *w = world_new(1);
    (void)state;

    for (uint32_t i = 0; i < 30; i++) {
        add(w, 0, 50);
        add(w, 1, 100);
    }
    peer_shift(&w->pool, &w->series[1], 7);
    assert_int_equal(peer_others(&w->pool, &w->series[0]), 0);
    assert_int_equal(peer_p99(&w->pool, &w->series[1]), 50);
    assert_close(peer_rank(&w->pool, &w->series[1], 50), 10.5 / 21);
    peer_set_counted(&w->pool, &w->series[1], true);
    assert_int_equal(peer_p99(&w->pool, &w->series[0]), 107);
    assert_close(peer_rank(&w->pool, &w->series[0], 107), 10.5 / 21);
    peer_shift(&w->pool, &w->series[1], -7);
    peer_set_counted(&w->pool, &w->series[1], false);
    assert_int_equal(w->pool.recent[100] + w->pool.recent[107] + w->pool.kept[107], 0);
    free(w);
}

static void what_is_shifted_past_an_end_is_at_the_end(void **state)
{
    struct world *w = world_new(2);
    (void)state;

    add(w, 1, 3);
    add(w, 1, PEER_BINS - 5);
    peer_shift(&w->pool, &w->series[1], -4);
    assert_close(peer_quantile(&w->series[1], 0), 0);
    assert_close(peer_quantile(&w->series[1], 1), PEER_BINS - 9);
    assert_close(peer_rank(&w->pool, &w->series[0], 0), 1.0 / 3);
    peer_shift(&w->pool, &w->series[1], 9);
    assert_close(peer_quantile(&w->series[1], 0), 9);
    assert_close(peer_quantile(&w->series[1], 1), PEER_BINS - 1);
    assert_close(peer_rank(&w->pool, &w->series[0], PEER_BINS - 1), 2.0 / 3);
    peer_shift(&w->pool, &w->series[1], INT16_MAX);
    assert_close(peer_rank(&w->pool, &w->series[0], PEER_BINS - 1), 1.5 / 3);
    peer_shift(&w->pool, &w->series[1], INT16_MIN);
    assert_close(peer_rank(&w->pool, &w->series[0], 0), 1.5 / 3);
    free(w);
}

/* --- on random histories, against a witness --- */

#define HISTORY 4000

/* All that ever came of one host, since it was last forgotten. */
struct witness {
    bool counted;
    uint32_t count;
    uint16_t bin[HISTORY];
    uint32_t when[HISTORY];
};

static uint32_t least_of(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* The |n|-th latest. */
static uint32_t at(const struct witness *x, uint32_t n)
{
    return x->count - 1 - n;
}

static int by_bin(const void *a, const void *b)
{
    return (int)*(const uint16_t *)a - (int)*(const uint16_t *)b;
}

/* The latest |most| of each counted one but |own|, in order. */
static uint32_t gather(const struct witness *all, uint32_t own, uint32_t most, uint16_t *out)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < HOSTS; i++) {
        for (uint32_t k = 0; i != own && all[i].counted && k < least_of(all[i].count, most); k++)
            out[n++] = all[i].bin[at(&all[i], k)];
    }
    qsort(out, n, sizeof(*out), by_bin);
    return n;
}

static void check_rank(const struct world *w, const struct witness *all, uint32_t host,
                       uint16_t bin)
{
    uint16_t others[HOSTS * PEER_KEPT];
    uint32_t n = gather(all, host, PEER_RECENT, others);
    double below = 0;

    assert_int_equal(peer_others(&w->pool, &w->series[host]), n);
    for (uint32_t i = 0; i < n; i++)
        below += others[i] < bin ? 1 : others[i] == bin ? 0.5 : 0;
    if (n > 0)
        assert_close(peer_rank(&w->pool, &w->series[host], bin), (below + 0.5) / (n + 1));
}

static void check_p99(const struct world *w, const struct witness *all, uint32_t host)
{
    uint16_t others[HOSTS * PEER_KEPT];
    uint32_t n = gather(all, host, PEER_KEPT, others);

    assert_int_equal(peer_p99(&w->pool, &w->series[host]),
                     n == 0 ? PEER_BINS : others[n - 1 - n / 100]);
}

static void check_median(const struct world *w, const struct witness *x, uint32_t host,
                         uint32_t since)
{
    uint16_t own[PEER_KEPT];
    uint32_t kept = least_of(x->count, PEER_KEPT);
    uint32_t n = least_of(x->count, PEER_RECENT);

    while (n < kept && x->when[at(x, n)] >= since)
        n++;
    for (uint32_t i = 0; i < n; i++)
        own[i] = x->bin[at(x, i)];
    qsort(own, n, sizeof(*own), by_bin);
    assert_close(peer_median(&w->series[host], since, 3),
                 n < 3 ? -1 : (own[(n - 1) / 2] + own[n / 2]) / 2.0);
}

/* As if all had come with the shifted bin. */
static void shift(struct world *w, struct witness *all, uint32_t host, int32_t bins)
{
    struct witness *x = &all[host];

    peer_shift(&w->pool, &w->series[host], bins);
    for (uint32_t i = 0; i < x->count; i++) {
        int32_t bin = x->bin[i] + bins;

        x->bin[i] = (uint16_t)(bin < 0 ? 0 : bin >= PEER_BINS ? PEER_BINS - 1 : bin);
    }
    check_rank(w, all, (host + 1) % HOSTS, 0);
    check_rank(w, all, (host + 1) % HOSTS, PEER_BINS - 1);
}

static void do_something(struct world *w, struct witness *all, struct rng *rng, uint32_t when)
{
    uint32_t host = rng_below(rng, HOSTS);
    struct witness *x = &all[host];
    uint32_t what = rng_below(rng, 200);

    if (what == 0) {
        peer_forget(&w->pool, &w->series[host]);
        x->count = 0;
    } else if (what < 5) {
        x->counted = rng_below(rng, 2) == 0;
        peer_set_counted(&w->pool, &w->series[host], x->counted);
    } else if (what < 8) {
        shift(w, all, host, (int32_t)rng_below(rng, 13) - 6);
    } else if (what == 8) {
        shift(w, all, host, (int32_t)rng_below(rng, 2 * PEER_BINS + 1) - PEER_BINS);
    } else {
        x->bin[x->count] = (uint16_t)(what < 100 ? rng_below(rng, PEER_BINS) : 200 + what % 5);
        x->when[x->count] = when;
        peer_add(&w->pool, &w->series[host], x->bin[x->count++], when);
    }
}

static void agrees_with_a_witness_that_sorts(void **state)
{
    struct witness *all = calloc(HOSTS, sizeof(*all));
    (void)state;

    assert_non_null(all);
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct world *w = world_new(0);
        struct rng rng;

        rng_init(&rng, seed);
        memset(all, 0, HOSTS * sizeof(*all));
        for (uint32_t step = 0; step < HISTORY; step++) {
            uint32_t host = rng_below(&rng, HOSTS);

            do_something(w, all, &rng, step / 20);
            check_rank(w, all, host, (uint16_t)(195 + rng_below(&rng, 15)));
            check_p99(w, all, host);
            check_median(w, &all[host], host, step / 20 - least_of(step / 20, rng_below(&rng, 12)));
        }
        free(w);
    }
    free(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bin_is_a_sixteenth_of_an_octave),
        cmocka_unit_test(a_bin_is_found_again_from_its_middle),
        cmocka_unit_test(sixteen_bins_are_a_factor_of_two),
        cmocka_unit_test(a_rank_is_the_share_below_with_ties_as_half),
        cmocka_unit_test(nobody_is_ranked_among_its_own),
        cmocka_unit_test(one_that_is_not_counted_is_ranked_but_ranks_nobody),
        cmocka_unit_test(what_is_left_out_counts_for_no_p99),
        cmocka_unit_test(a_p99_has_at_most_a_hundredth_above_it),
        cmocka_unit_test(a_median_is_of_the_latest_twenty_or_of_all_since),
        cmocka_unit_test(a_quantile_is_of_all_that_is_kept),
        cmocka_unit_test(what_is_forgotten_ranks_nobody),
        cmocka_unit_test(what_is_shifted_ranks_as_if_it_had_come_so),
        cmocka_unit_test(what_is_shifted_and_not_counted_ranks_nobody),
        cmocka_unit_test(what_is_shifted_past_an_end_is_at_the_end),
        cmocka_unit_test(agrees_with_a_witness_that_sorts),
    };

    return cmocka_run_group_tests_name("peer_pool", tests, NULL, NULL);
}
