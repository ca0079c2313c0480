/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/peers.h"

#define SEED 7

static struct ground g;

static void both_ends_talk(void **state)
{
    (void)state;

    ground_start(&g, SEED);
    ground_join(&g);
    assert_int_equal(g.a.opened, 1);
    assert_int_equal(g.b.opened, 0);
    assert_int_equal(g.accepted, 1);
    assert_int_equal(peer_write(&g.a, BYTES("ping")), 4);
    assert_int_equal(g.b.len, 0); /* nothing comes out of a call */
    world_run_for(&g.world, NS_PER_S);
    assert_memory_equal(g.b.got, "ping", 4);
    assert_int_equal(peer_write(&g.b, BYTES("pong!")), 5);
    world_run_for(&g.world, NS_PER_S);
    assert_int_equal(g.a.len, 5);
    assert_memory_equal(g.a.got, "pong!", 5);
    assert_false(g.world.failed);
    ground_stop(&g);
}

static void bytes_take_as_long_as_the_path_says(void **state)
{
    (void)state;

    ground_start(&g, SEED);
    g.site->path.latency = 10 * NS_PER_MS;
    ground_join(&g);
    peer_write(&g.a, BYTES("x"));
    world_run_for(&g.world, 10 * NS_PER_MS - 1);
    assert_int_equal(g.b.len, 0);
    world_run_for(&g.world, 1);
    assert_int_equal(g.b.len, 1);
    ground_stop(&g);
}

static void bandwidth_spreads_bytes_over_time(void **state)
{
    static uint8_t block[50000];
    (void)state;

    ground_start(&g, SEED);
    g.site->path.bandwidth = 100000;
    ground_join(&g);
    assert_int_equal(peer_write(&g.a, bytes_from(block, 50000)), 50000);
    world_run_for(&g.world, 499 * NS_PER_MS);
    assert_int_equal(g.b.len, 0);
    world_run_for(&g.world, 10 * NS_PER_MS);
    assert_int_equal(g.b.len, 50000);
    ground_stop(&g);
}

static void nobody_there_is_refused(void **state)
{
    (void)state;

    ground_start(&g, SEED);
    assert_int_equal(ground_dial(&g, &g.a), IO_OK);
    assert_int_equal(g.a.failed, 0);
    world_run_for(&g.world, NS_PER_S);
    assert_int_equal(g.a.failed, 1);
    assert_int_equal(g.a.error, IO_REFUSED);
    assert_int_equal(g.a.opened, 0);
    ground_stop(&g);
}

static void no_route_is_unreachable(void **state)
{
    (void)state;

    ground_start(&g, SEED);
    ground_listen(&g, 0);
    g.site->path.unreachable = true;
    ground_dial(&g, &g.a);
    world_run_for(&g.world, NS_PER_S);
    assert_int_equal(g.a.error, IO_UNREACHABLE);
    ground_stop(&g);
}

static void a_lost_syn_is_sent_again(void **state)
{
    (void)state;

    ground_start(&g, SEED);
    ground_listen(&g, 0);
    g.site->path.black_hole = true;
    ground_dial(&g, &g.a);
    world_run_for(&g.world, 2 * NS_PER_S); /* tries at 0, 1, 3 s */
    g.site->path.black_hole = false;
    world_run_for(&g.world, 990 * NS_PER_MS);
    assert_int_equal(g.a.opened, 0);
    world_run_for(&g.world, 20 * NS_PER_MS);
    assert_int_equal(g.a.opened, 1);
    ground_stop(&g);
}

static void a_black_hole_is_given_up_after_127_seconds(void **state)
{
    (void)state;

    ground_start(&g, SEED);
    ground_listen(&g, 0);
    g.site->path.black_hole = true;
    ground_dial(&g, &g.a);
    world_run_for(&g.world, 126 * NS_PER_S);
    assert_int_equal(g.a.failed, 0);
    world_run_for(&g.world, 2 * NS_PER_S);
    assert_int_equal(g.a.failed, 1);
    assert_int_equal(g.a.error, IO_TIMED_OUT);
    ground_stop(&g);
}

static void a_connect_can_be_given_up(void **state)
{
    (void)state;

    ground_start(&g, SEED);
    ground_listen(&g, 0);
    g.site->path.black_hole = true;
    ground_dial(&g, &g.a);
    world_run_for(&g.world, NS_PER_S / 2);
    peer_close(&g.a);
    assert_int_equal(g.near_loop.process.descriptors, 0);
    assert_int_equal(g.net.alive, 0);
    world_run_for(&g.world, 200 * NS_PER_S);
    assert_int_equal(g.a.calls_after_close, 0);
    ground_stop(&g);
}

static void what_is_lost_in_a_black_hole_arrives_when_it_heals(void **state)
{
    (void)state;

    ground_start(&g, SEED);
    ground_join(&g);
    g.site->path.black_hole = true;
    peer_write(&g.a, BYTES("late"));
    world_run_for(&g.world, 5 * NS_PER_S);
    assert_int_equal(g.b.len, 0);
    g.site->path.black_hole = false;
    world_run_for(&g.world, 10 * NS_PER_S);
    assert_int_equal(g.b.len, 4);
    ground_stop(&g);
}

static void a_black_hole_that_stays_times_out(void **state)
{
    struct link_info info;
    (void)state;

    ground_start(&g, SEED);
    ground_join(&g);
    g.site->path.black_hole = true;
    peer_write(&g.a, BYTES("lost"));
    world_run_for(&g.world, 60 * NS_PER_S);
    link_info(g.a.link, &info);
    assert_true(info.known);
    assert_true(info.retransmits > 3);
    assert_int_equal(info.unacked, 1);
    assert_int_equal(info.rtt, 400 * NS_PER_US);
    world_run_for(&g.world, 2000 * NS_PER_S);
    assert_int_equal(g.a.failed, 1);
    assert_int_equal(g.a.error, IO_TIMED_OUT);
    assert_int_equal(g.b.len, 0);
    assert_int_equal(g.b.failed, 0);
    ground_stop(&g);
}

static void half_close_leaves_the_other_way_open(void **state)
{
    (void)state;

    ground_start(&g, SEED);
    ground_join(&g);
    peer_write(&g.a, BYTES("all of it"));
    link_shut(g.a.link);
    world_run_for(&g.world, NS_PER_S);
    assert_int_equal(g.b.len, 9);
    assert_int_equal(g.b.ended, 1);
    assert_int_equal(peer_write(&g.b, BYTES("answer")), 6);
    world_run_for(&g.world, NS_PER_S);
    assert_int_equal(g.a.len, 6);
    assert_int_equal(g.a.ended, 0);
    peer_close(&g.b);
    world_run_for(&g.world, NS_PER_S);
    assert_int_equal(g.a.ended, 1);
    assert_int_equal(g.a.failed, 0);
    ground_stop(&g);
}

static void closing_delivers_what_was_taken(void **state)
{
    (void)state;

    ground_start(&g, SEED);
    ground_join(&g);
    peer_write(&g.a, BYTES("goodbye"));
    peer_close(&g.a);
    world_run_for(&g.world, NS_PER_S);
    assert_int_equal(g.b.len, 7);
    assert_int_equal(g.b.ended, 1);
    assert_int_equal(g.b.failed, 0);
    ground_stop(&g);
}

static void closing_with_unread_data_resets(void **state)
{
    (void)state;

    ground_start(&g, SEED);
    ground_join(&g);
    link_read_stop(g.b.link);
    peer_write(&g.a, BYTES("unread"));
    world_run_for(&g.world, NS_PER_S);
    peer_close(&g.b);
    world_run_for(&g.world, NS_PER_S);
    assert_int_equal(g.a.failed, 1);
    assert_int_equal(g.a.error, IO_RESET);
    assert_int_equal(g.a.ended, 0);
    ground_stop(&g);
}

static void data_before_a_reset_is_read_first(void **state)
{
    unsigned whole = 0;
    (void)state;

    for (uint64_t seed = 1; seed <= 40; seed++) {
        ground_start(&g, seed);
        ground_join(&g);
        peer_write(&g.b, BYTES("last words"));
        world_run_for(&g.world, NS_PER_S / 1000); /* they have arrived */
        g.a.len = 0;
        link_read_stop(g.a.link);
        peer_write(&g.b, BYTES("and more"));
        world_run_for(&g.world, NS_PER_S);
        link_read_start(g.a.link); /* told in the next turn, with the reset behind it */
        link_abort(g.b.link);
        g.b.link = NULL;
        world_run_for(&g.world, NS_PER_S);
        assert_int_equal(g.a.len, 8);
        assert_int_equal(g.a.failed, 1);
        assert_int_equal(g.a.error, IO_RESET);
        whole += g.a.len == 8;
        ground_stop(&g);
    }
    assert_int_equal(whole, 40);
}

static void a_reset_is_told_though_reading_is_stopped(void **state)
{
    (void)state;

    ground_start(&g, SEED);
    ground_join(&g);
    link_read_stop(g.a.link);
    link_abort(g.b.link);
    g.b.link = NULL;
    world_run_for(&g.world, NS_PER_S);
    assert_int_equal(g.a.failed, 1);
    assert_true(peer_write(&g.a, BYTES("x")) < 0);
    ground_stop(&g);
}

static void a_reset_waits_for_data_that_was_not_read(void **state)
{
    (void)state;

    for (uint64_t seed = 1; seed <= 20; seed++) {
        ground_start(&g, seed);
        ground_join(&g);
        link_read_stop(g.a.link);
        peer_write(&g.b, BYTES("last words"));
        world_run_for(&g.world, NS_PER_S);
        link_abort(g.b.link);
        g.b.link = NULL;
        world_run_for(&g.world, 100 * NS_PER_S);
        assert_int_equal(g.a.failed, 0);
        link_read_start(g.a.link);
        world_run_for(&g.world, NS_PER_S);
        assert_int_equal(g.a.len, 10);
        assert_int_equal(g.a.failed, 1);
        ground_stop(&g);
    }
}

static void what_was_sent_later_arrives_later(void **state)
{
    (void)state;

    ground_start(&g, SEED);
    g.site->path.latency = 10 * NS_PER_MS;
    ground_join(&g);
    peer_write(&g.a, BYTES("one"));
    world_run_for(&g.world, 5 * NS_PER_MS);
    peer_write(&g.a, BYTES("two"));
    world_run_for(&g.world, 5 * NS_PER_MS);
    assert_int_equal(g.b.len, 3);
    world_run_for(&g.world, 5 * NS_PER_MS);
    assert_int_equal(g.b.len, 6);
    ground_stop(&g);
}

static void lent_bytes_are_gone_after_the_call(void **state)
{
    (void)state;

    ground_start(&g, SEED);
    ground_join(&g);
    peer_write(&g.a, BYTES("borrowed"));
    world_run_for(&g.world, NS_PER_S);
    for (size_t i = 0; i < 8; i++)
        assert_int_not_equal(g.b.lent.data[i], "borrowed"[i]);
    ground_stop(&g);
}

static void writing_to_one_that_closed_is_answered_by_a_reset(void **state)
{
    (void)state;

    ground_start(&g, SEED);
    ground_join(&g);
    peer_close(&g.b);
    world_run_for(&g.world, NS_PER_S);
    assert_int_equal(g.a.ended, 1);
    assert_int_equal(peer_write(&g.a, BYTES("hello?")), 6);
    world_run_for(&g.world, NS_PER_S);
    assert_int_equal(g.a.failed, 1);
    assert_int_equal(g.a.error, IO_RESET);
    ground_stop(&g);
}

static void one_that_vanished_is_noticed_by_writing_only(void **state)
{
    (void)state;

    ground_start(&g, SEED);
    ground_join(&g);
    net_vanish(g.b.link);
    g.b.link = NULL;
    world_run_for(&g.world, 100 * NS_PER_S);
    assert_int_equal(g.a.failed + g.a.ended, 0);
    peer_write(&g.a, BYTES("hello?"));
    world_run_for(&g.world, NS_PER_S);
    assert_int_equal(g.a.error, IO_RESET);
    ground_stop(&g);
}

static void a_full_window_takes_no_more_until_it_is_read(void **state)
{
    static uint8_t block[3000];
    (void)state;

    ground_start(&g, SEED);
    g.site->path.window = 1000;
    ground_join(&g);
    link_read_stop(g.b.link);
    assert_int_equal(peer_write(&g.a, bytes_from(block, 3000)), 1000);
    assert_int_equal(peer_write(&g.a, bytes_from(block, 2000)), 0);
    world_run_for(&g.world, 10 * NS_PER_S);
    assert_int_equal(g.a.writable, 0);
    link_read_start(g.b.link);
    world_run_for(&g.world, NS_PER_S);
    assert_int_equal(g.a.writable, 1); /* once */
    assert_int_equal(g.b.len, 1000);
    assert_int_equal(peer_write(&g.a, bytes_from(block, 900)), 900);
    world_run_for(&g.world, NS_PER_S);
    assert_int_equal(g.a.writable, 1); /* only after a write that was not taken whole */
    ground_stop(&g);
}

static void stopped_reading_tells_nothing(void **state)
{
    (void)state;

    ground_start(&g, SEED);
    ground_join(&g);
    link_read_stop(g.b.link);
    peer_write(&g.a, BYTES("wait"));
    link_shut(g.a.link);
    world_run_for(&g.world, NS_PER_S);
    assert_int_equal(g.b.len + g.b.ended, 0);
    link_read_start(g.b.link);
    assert_int_equal(g.b.len, 0);
    world_run_for(&g.world, NS_PER_S);
    assert_int_equal(g.b.len, 4);
    assert_int_equal(g.b.ended, 1);
    ground_stop(&g);
}

static void nothing_is_told_after_a_close_inside_a_call(void **state)
{
    (void)state;

    for (uint64_t seed = 1; seed <= 50; seed++) {
        ground_start(&g, seed);
        ground_join(&g);
        g.site->path.cut = NET_CUT_BYTES;
        g.b.close_on_data = true;
        peer_write(&g.a, BYTES("more than one piece"));
        link_shut(g.a.link);
        world_run_for(&g.world, NS_PER_S);
        assert_int_equal(g.b.len, 1);
        assert_int_equal(g.b.calls_after_close, 0);
        assert_int_equal(g.b.ended, 0);
        ground_stop(&g);
        assert_int_equal(g.net.alive, 0);
    }
}

static void without_descriptors_connecting_fails_at_once(void **state)
{
    struct link *l = NULL;
    const struct connect_options o = {.keepalive = false};
    (void)state;

    ground_start(&g, SEED);
    ground_listen(&g, 0);
    g.near_loop.process.descriptors_max = 1;
    assert_int_equal(ground_dial(&g, &g.a), IO_OK);
    assert_int_equal(poller_connect(actor_poller(&g.near_loop), &g.address, &o, &l),
                     IO_NO_DESCRIPTORS);
    peer_close(&g.a);
    g.near_loop.process.ports_max = 0;
    assert_int_equal(poller_connect(actor_poller(&g.near_loop), &g.address, &o, &l), IO_NO_PORTS);
    g.near_loop.process.connect_fault = IO_NO_MEMORY;
    assert_int_equal(poller_connect(actor_poller(&g.near_loop), &g.address, &o, &l), IO_NO_MEMORY);
    assert_null(l);
    ground_stop(&g);
}

static void without_descriptors_accepting_pauses_until_resumed(void **state)
{
    (void)state;

    ground_start(&g, SEED);
    ground_listen(&g, 0);
    g.far_loop.process.descriptors_max = 1; /* the listener's own */
    ground_dial(&g, &g.a);
    world_run_for(&g.world, 10 * NS_PER_S);
    assert_int_equal(g.a.opened, 1); /* the kernel did that */
    assert_int_equal(g.accepted, 0);
    assert_int_equal(g.troubled, 1); /* no spin */
    assert_int_equal(g.trouble, IO_NO_DESCRIPTORS);
    g.far_loop.process.descriptors_max = 2;
    world_run_for(&g.world, 10 * NS_PER_S);
    assert_int_equal(g.accepted, 0);
    listener_resume(g.listener);
    world_run_for(&g.world, NS_PER_S);
    assert_int_equal(g.accepted, 1);
    ground_stop(&g);
}

static void a_full_backlog_drops_the_syn(void **state)
{
    static struct peer others[3];
    (void)state;

    memset(others, 0, sizeof(others));
    ground_start(&g, SEED);
    ground_listen(&g, 2);
    listener_pause(g.listener);
    for (unsigned i = 0; i < 3; i++)
        ground_dial(&g, &others[i]);
    world_run_for(&g.world, NS_PER_S / 2);
    assert_int_equal(others[0].opened + others[1].opened + others[2].opened, 2);
    listener_resume(g.listener);
    world_run_for(&g.world, NS_PER_S);
    assert_int_equal(others[0].opened + others[1].opened + others[2].opened, 3);
    for (unsigned i = 0; i < 3; i++)
        peer_close(&others[i]);
    ground_stop(&g);
}

static void closing_a_listener_resets_who_was_not_accepted(void **state)
{
    (void)state;

    ground_start(&g, SEED);
    ground_listen(&g, 0);
    listener_pause(g.listener);
    ground_dial(&g, &g.a);
    world_run_for(&g.world, NS_PER_S);
    assert_int_equal(g.a.opened, 1);
    listener_close(g.listener);
    g.listener = NULL;
    world_run_for(&g.world, NS_PER_S);
    assert_int_equal(g.a.error, IO_RESET);
    ground_stop(&g);
}

static void an_address_is_taken_once_unless_shared(void **state)
{
    const struct listen_options alone = {.backlog = 0};
    const struct listen_options shared = {.reuse_port = true};
    struct listener *l = NULL;
    struct address real;
    (void)state;

    ground_start(&g, SEED);
    ground_listen(&g, 0);
    assert_int_equal(poller_listen(actor_poller(&g.far_loop), &g.address, &alone, &l),
                     IO_ADDRESS_IN_USE);
    assert_int_equal(poller_listen(actor_poller(&g.near_loop), &g.address, &shared, &l),
                     IO_ADDRESS_IN_USE);
    assert_int_equal(poller_listen(actor_poller(&g.far_loop), &g.address, &shared, &l), IO_OK);
    listener_close(l);
    g.address.port = 0;
    assert_int_equal(poller_listen(actor_poller(&g.far_loop), &g.address, &alone, &l), IO_OK);
    listener_address(l, &real);
    assert_true(real.port != 0);
    listener_close(l);
    ground_stop(&g);
}

static void a_middle_box_resets_both_after_so_many_bytes(void **state)
{
    (void)state;

    ground_start(&g, SEED);
    g.site->path.reset_after = 10;
    ground_join(&g);
    peer_write(&g.a, BYTES("123456789"));
    world_run_for(&g.world, NS_PER_S);
    assert_int_equal(g.a.failed, 0);
    peer_write(&g.a, BYTES("x"));
    world_run_for(&g.world, NS_PER_S);
    assert_int_equal(g.a.failed, 1);
    assert_int_equal(g.b.failed, 1);
    assert_int_equal(g.b.len, 10);
    ground_stop(&g);
}

static void misuse_of_a_link_is_noticed(void **state)
{
    struct link *held;
    (void)state;

    ground_start(&g, SEED);
    ground_listen(&g, 0);
    ground_dial(&g, &g.a);
    assert_true(peer_write(&g.a, BYTES("too early")) < 0);
    assert_true(g.world.failed);
    ground_stop(&g);

    ground_start(&g, SEED);
    ground_join(&g);
    link_shut(g.a.link);
    assert_true(peer_write(&g.a, BYTES("too late")) < 0);
    assert_true(g.world.failed);
    assert_non_null(strstr(g.world.failure, "[seed 7"));
    ground_stop(&g);

    ground_start(&g, SEED);
    ground_join(&g);
    held = g.a.link;
    peer_close(&g.a);
    assert_false(g.world.failed);
    link_close(held);
    assert_true(g.world.failed);
    ground_stop(&g);
}

/* --- the law: what leaves is what came, in order, whatever the path does to it --- */

static uint8_t stream_byte(uint64_t seed, uint64_t i)
{
    return (uint8_t)((seed * 131 + i * 167 + (i >> 8) * 59) ^ (i >> 13));
}

static uint64_t check_stream(const struct peer *p, uint64_t seed)
{
    for (size_t i = 0; i < p->len && i < PEER_BYTES; i++)
        if (p->got[i] != stream_byte(seed, i))
            return i + 1;
    return 0;
}

static void random_path(struct net_path *path, struct rng *rng)
{
    path->latency = rng_below(rng, 5000) * NS_PER_US;
    path->jitter = rng_below(rng, 5000) * NS_PER_US;
    path->window = 1 + rng_below(rng, rng_below(rng, 2) == 0 ? 40 : 20000);
    path->cut = (enum net_cut)rng_below(rng, 3);
    path->short_write_permille = rng_below(rng, 2) * 300;
    path->loss_permille = rng_below(rng, 2) * 20;
    path->bandwidth = rng_below(rng, 3) == 0 ? 200000 : 0;
}

static void write_some(struct peer *p, uint64_t seed, uint64_t *sent, struct rng *rng)
{
    uint8_t block[400];
    uint32_t want = 1 + rng_below(rng, 400);
    uint32_t cut = rng_below(rng, want);
    struct bytes parts[2];
    ptrdiff_t took;

    for (uint32_t i = 0; i < want; i++)
        block[i] = stream_byte(seed, *sent + i);
    parts[0] = bytes_from(block, cut);
    parts[1] = bytes_from(block + cut, want - cut);
    took = link_write(p->link, parts, 2);
    assert_true(took >= 0 && took <= (ptrdiff_t)want);
    memset(block, 0, sizeof(block)); /* no back end keeps a pointer to it */
    *sent += (uint64_t)took;
}

static void random_step(uint64_t sent[2], uint64_t seed, struct rng *rng)
{
    switch (rng_below(rng, 8)) {
    case 0:
        link_read_stop(g.a.link);
        break;
    case 1:
        link_read_start(g.a.link);
        break;
    case 2:
        random_path(&g.site->path, rng);
        break;
    case 3:
        world_run_for(&g.world, rng_below(rng, 20) * NS_PER_MS);
        break;
    case 4:
        link_read_stop(g.b.link);
        break;
    case 5:
        link_read_start(g.b.link);
        break;
    case 6:
        write_some(&g.a, seed, &sent[0], rng);
        break;
    case 7:
        write_some(&g.b, seed + 1, &sent[1], rng);
        break;
    }
}

static void bytes_out_are_bytes_in_under_random_cuts_and_windows(void **state)
{
    (void)state;

    for (uint64_t seed = 1; seed <= 300; seed++) {
        uint64_t sent[2] = {0, 0};
        struct rng rng;

        rng_init(&rng, seed);
        ground_start(&g, seed);
        ground_join(&g);
        for (unsigned step = 0; step < 400; step++) {
            random_step(sent, seed, &rng);
            assert_int_equal(check_stream(&g.b, seed), 0);
            assert_int_equal(check_stream(&g.a, seed + 1), 0);
        }
        link_read_start(g.a.link);
        link_read_start(g.b.link);
        link_shut(g.a.link);
        peer_close(&g.b); /* may reset: b can have unread bytes */
        world_run_for(&g.world, 100 * NS_PER_S);
        assert_true(g.a.len <= sent[1] && g.b.len <= sent[0]);
        assert_true(g.a.len == sent[1] || g.a.failed == 1);
        assert_true(g.a.ended + g.a.failed >=
                    1); /* FIN, RST, or a RST for what came after the FIN */
        assert_true(g.a.ended <= 1 && g.a.failed <= 1);
        assert_int_equal(check_stream(&g.a, seed + 1), 0);
        assert_false(g.world.failed);
        ground_stop(&g);
        assert_int_equal(g.net.alive, 0);
    }
}

static uint64_t digest_of(uint64_t seed, uint64_t steps)
{
    uint64_t sent[2] = {0, 0};
    uint64_t digest;
    struct rng rng;

    rng_init(&rng, 99);
    ground_start(&g, seed);
    g.site->path.jitter = NS_PER_MS;
    ground_join(&g);
    for (uint64_t step = 0; step < steps; step++)
        random_step(sent, 5, &rng);
    digest = world_digest(&g.world);
    ground_stop(&g);
    return digest;
}

static void the_same_seed_gives_the_same_run(void **state)
{
    (void)state;

    for (uint64_t seed = 1; seed <= 20; seed++)
        assert_int_equal(digest_of(seed, 300), digest_of(seed, 300));
    assert_int_not_equal(digest_of(1, 300), digest_of(2, 300));
}

static void a_planted_fault_of_the_network_shows(void **state)
{
    static const enum net_plant plants[] = {NET_PLANT_FLIP_BYTE, NET_PLANT_LOSE_BYTES,
                                            NET_PLANT_REPEAT_BYTES};
    static const char *const seen[] = {"abcdefgi", "abcdefg", "abcdefghabcdefgh"};
    (void)state;

    for (unsigned i = 0; i < 3; i++) {
        ground_start(&g, SEED);
        ground_join(&g);
        g.net.plant = plants[i];
        g.net.plant_in = 0;
        peer_write(&g.a, BYTES("abcdefgh"));
        world_run_for(&g.world, NS_PER_S);
        assert_int_equal(g.b.len, strlen(seen[i]));
        assert_memory_equal(g.b.got, seen[i], strlen(seen[i]));
        ground_stop(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ends_talk),
        cmocka_unit_test(bytes_take_as_long_as_the_path_says),
        cmocka_unit_test(bandwidth_spreads_bytes_over_time),
        cmocka_unit_test(nobody_there_is_refused),
        cmocka_unit_test(no_route_is_unreachable),
        cmocka_unit_test(a_lost_syn_is_sent_again),
        cmocka_unit_test(a_black_hole_is_given_up_after_127_seconds),
        cmocka_unit_test(a_connect_can_be_given_up),
        cmocka_unit_test(what_is_lost_in_a_black_hole_arrives_when_it_heals),
        cmocka_unit_test(a_black_hole_that_stays_times_out),
        cmocka_unit_test(half_close_leaves_the_other_way_open),
        cmocka_unit_test(closing_delivers_what_was_taken),
        cmocka_unit_test(closing_with_unread_data_resets),
        cmocka_unit_test(data_before_a_reset_is_read_first),
        cmocka_unit_test(a_reset_is_told_though_reading_is_stopped),
        cmocka_unit_test(a_reset_waits_for_data_that_was_not_read),
        cmocka_unit_test(what_was_sent_later_arrives_later),
        cmocka_unit_test(lent_bytes_are_gone_after_the_call),
        cmocka_unit_test(writing_to_one_that_closed_is_answered_by_a_reset),
        cmocka_unit_test(one_that_vanished_is_noticed_by_writing_only),
        cmocka_unit_test(a_full_window_takes_no_more_until_it_is_read),
        cmocka_unit_test(stopped_reading_tells_nothing),
        cmocka_unit_test(nothing_is_told_after_a_close_inside_a_call),
        cmocka_unit_test(without_descriptors_connecting_fails_at_once),
        cmocka_unit_test(without_descriptors_accepting_pauses_until_resumed),
        cmocka_unit_test(a_full_backlog_drops_the_syn),
        cmocka_unit_test(closing_a_listener_resets_who_was_not_accepted),
        cmocka_unit_test(an_address_is_taken_once_unless_shared),
        cmocka_unit_test(a_middle_box_resets_both_after_so_many_bytes),
        cmocka_unit_test(misuse_of_a_link_is_noticed),
        cmocka_unit_test(bytes_out_are_bytes_in_under_random_cuts_and_windows),
        cmocka_unit_test(the_same_seed_gives_the_same_run),
        cmocka_unit_test(a_planted_fault_of_the_network_shows),
    };

    return cmocka_run_group_tests_name("net", tests, NULL, NULL);
}
