/* SPDX-License-Identifier: Apache-2.0 */
/* The whole data plane, spoken to by hand: malformed, pipelined, tunnels; and how it ends. */
#include "sim/plane.h"

#include "control/control.h"
#include "sim/peers.h"

static struct plane p;

/* --- clients by hand: bytes as they are --- */

static struct peer raw_client;
static struct peer raw_host;

static void raw_dial(struct plane *plane, const char *text)
{
    const struct connect_options o = {.keepalive = false};

    memset(&raw_client, 0, sizeof(raw_client));
    assert_int_equal(poller_connect(actor_poller(&plane->rig.client_loop), &plane->rig.address, &o,
                                    &raw_client.link),
                     IO_OK);
    link_own(raw_client.link, &peer_events, &raw_client);
    link_read_start(raw_client.link);
    plane_run(plane, 10 * NS_PER_MS);
    assert_true(peer_write(&raw_client, bytes_of(text)) > 0);
    plane_run(plane, 100 * NS_PER_MS);
}

static const char *raw_got(struct peer *peer)
{
    peer->got[peer->len < PEER_BYTES ? peer->len : PEER_BYTES - 1] = 0;
    return (const char *)peer->got;
}

static void pipelined_requests_are_answered_in_order(void **state)
{
    const char *at;
    (void)state;

    plane_settings(&p, 1, 1);
    plane_go(&p);
    for (unsigned i = 0; i < 3; i++)
        (void)ledger_open(&p.rig.ledger);
    raw_dial(&p, "GET /r/1/5/l HTTP/1.1\r\nhost: a\r\n\r\nGET /r/2/5/c HTTP/1.1\r\nhost: a\r\n\r\n"
                 "GET /r/3/5/l HTTP/1.1\r\nhost: a\r\n\r\n");
    plane_run(&p, NS_PER_S);
    at = raw_got(&raw_client);
    for (unsigned i = 1; i <= 3; i++) {
        const char id[] = {'x', '-', 's', 'i', 'm', '-', 'i', 'd', ':', ' ', (char)('0' + i), '\0'};

        at = strstr(at, id);
        assert_non_null(at);
        ledger_end(&p.rig.ledger, i, OUTCOME_CANCELLED);
    }
    peer_close(&raw_client);
    plane_run(&p, NS_PER_S);
    plane_end(&p);
}

static void a_head_that_drips_in_is_408_in_time(void **state)
{
    (void)state;

    plane_settings(&p, 1, 1);
    p.settings.listener.head_timeout = 5 * NS_PER_S;
    plane_go(&p);
    raw_dial(&p, "GET / HT");
    for (unsigned i = 0; i < 10; i++) {
        if (raw_client.len == 0)
            peer_write(&raw_client, BYTES("x"));
        plane_run(&p, NS_PER_S);
    }
    assert_non_null(strstr(raw_got(&raw_client), "HTTP/1.1 408 "));
    assert_int_equal(raw_client.ended, 1);
    peer_close(&raw_client);
    plane_end(&p);
}

static void junk_is_400_and_the_connection_ends(void **state)
{
    (void)state;

    plane_settings(&p, 1, 1);
    plane_go(&p);
    raw_dial(&p, "\x16\x03\x01junk\r\n\r\n");
    plane_run(&p, 10 * NS_PER_S);
    assert_non_null(strstr(raw_got(&raw_client), "HTTP/1.1 400 "));
    assert_int_equal(raw_client.ended, 1);
    peer_close(&raw_client);
    plane_end(&p);
}

/* --- C045 e: a tunnel --- */

static void raw_accepted(void *owner, struct link *l, const struct address *peer)
{
    (void)owner;
    (void)peer;
    raw_host.link = l;
    link_own(l, &peer_events, &raw_host);
    link_read_start(l);
}

static void raw_troubled(void *owner, int error)
{
    (void)owner;
    (void)error;
}

static const struct listener_events raw_listens = {raw_accepted, raw_troubled};

#define UPGRADE                                                                                    \
    "GET /chat HTTP/1.1\r\nhost: a\r\nconnection: Upgrade\r\nupgrade: websocket\r\n"               \
    "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n"
#define UPGRADED                                                                                   \
    "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\n"            \
    "sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\nhost first"

static struct listener *open_tunnel(struct plane *plane)
{
    const struct listen_options o = {.backlog = 0};
    struct listener *l;

    plane_settings(plane, 1, 1);
    plane->settings.route.timeout = 2 * NS_PER_S;
    plane->settings.route.idle_timeout = 30 * NS_PER_S;
    plane_go(plane);
    server_refuse(&plane->rig.servers[0]);
    memset(&raw_host, 0, sizeof(raw_host));
    assert_int_equal(poller_listen(actor_poller(&plane->rig.server_loop),
                                   &plane->rig.servers[0].address, &o, &l),
                     IO_OK);
    listener_own(l, &raw_listens, NULL);
    raw_dial(plane, UPGRADE);
    assert_non_null(strstr(raw_got(&raw_host), "GET /chat HTTP/1.1\r\n"));
    assert_true(peer_write(&raw_host, BYTES(UPGRADED)) > 0);
    plane_run(plane, NS_PER_S);
    assert_non_null(strstr(raw_got(&raw_client), "HTTP/1.1 101 "));
    assert_non_null(strstr(raw_got(&raw_client), "\r\n\r\nhost first"));
    raw_client.len = 0;
    raw_host.len = 0;
    return l;
}

static void a_tunnel_outlives_the_route_timeout_and_carries_both_ways(void **state)
{
    struct listener *l = open_tunnel(&p);
    (void)state;

    plane_run(&p, 20 * NS_PER_S);
    assert_int_equal(raw_client.ended + raw_client.failed, 0);
    peer_write(&raw_client, BYTES("ping"));
    peer_write(&raw_host, BYTES("pong"));
    plane_run(&p, NS_PER_S);
    assert_string_equal(raw_got(&raw_host), "ping");
    assert_string_equal(raw_got(&raw_client), "pong");
    link_shut(raw_client.link); /* half of it */
    plane_run(&p, NS_PER_S);
    assert_int_equal(raw_host.ended, 1);
    peer_write(&raw_host, BYTES(" bye"));
    plane_run(&p, NS_PER_S);
    assert_string_equal(raw_got(&raw_client), "pong bye");
    peer_close(&raw_host);
    plane_run(&p, NS_PER_S);
    assert_int_equal(raw_client.ended, 1);
    peer_close(&raw_client);
    listener_close(l);
    plane_run(&p, NS_PER_S);
    plane_end(&p);
}

static void a_silent_tunnel_ends_at_the_idle_timeout(void **state)
{
    struct listener *l = open_tunnel(&p);
    (void)state;

    plane_run(&p, 25 * NS_PER_S);
    assert_int_equal(raw_client.ended + raw_client.failed, 0);
    plane_run(&p, 10 * NS_PER_S);
    assert_int_equal(raw_client.ended + raw_client.failed, 1);
    assert_int_equal(raw_host.ended + raw_host.failed, 1);
    peer_close(&raw_client);
    peer_close(&raw_host);
    listener_close(l);
    plane_end(&p);
}

/* --- the end --- */

static void draining_finishes_what_is_under_way(void **state)
{
    uint64_t id;
    (void)state;

    plane_settings(&p, 2, 2);
    plane_go(&p);
    plane_traffic(&p, 10, 10 * NS_PER_MS);
    plane_plan(&p, 0)->delay = 3 * NS_PER_S;
    id = plane_get(&p);
    plane_run(&p, 100 * NS_PER_MS);
    assert_true(rig_drain(&p.rig, 10 * NS_PER_S));
    plane_expect(&p, id, 200);
    assert_true(world_elapsed(&p.rig.world) > 3 * NS_PER_S);
    plane_end(&p);
}

static void draining_ends_at_its_timeout_whatever_hangs(void **state)
{
    uint64_t id;
    (void)state;

    plane_settings(&p, 2, 2);
    p.settings.route.timeout = 1000 * NS_PER_S;
    p.settings.drain_timeout = 5 * NS_PER_S;
    plane_go(&p);
    plane_plan(&p, 0)->delay = MONO_NEVER;
    id = plane_get(&p);
    plane_run(&p, 100 * NS_PER_MS);
    assert_false(rig_drain(&p.rig, 4 * NS_PER_S));
    assert_true(rig_drain(&p.rig, 2 * NS_PER_S));
    plane_run(&p, NS_PER_S);
    assert_int_equal(plane_fact(&p, id)->outcome, OUTCOME_SILENCE);
    assert_int_equal(plane_fact(&p, id)->records, 1);
    plane_end(&p);
}

static void quitting_ends_at_once(void **state)
{
    (void)state;

    plane_settings(&p, 2, 4);
    plane_go(&p);
    plane_plan(&p, 0)->delay = MONO_NEVER;
    plane_get(&p);
    plane_run(&p, 100 * NS_PER_MS);
    p.rig.client.lenient_since = p.rig.world.now;
    control_quit(p.rig.control);
    world_loop_wake(&p.rig.control_loop);
    plane_run(&p, NS_PER_S / 10);
    assert_true(control_done(p.rig.control));
    plane_end(&p);
}

/* --- want of descriptors --- */

static void accepting_pauses_without_descriptors_and_recovers(void **state)
{
    uint64_t turns;
    uint64_t id;
    (void)state;

    plane_settings(&p, 1, 1);
    p.settings.descriptors = 64;
    plane_go(&p);
    id = plane_get(&p);
    plane_run(&p, NS_PER_S);
    plane_expect(&p, id, 200); /* its connection stays open */
    for (unsigned i = 0; i < 100; i++)
        assert_true(client_open_idle(&p.rig.client));
    plane_run(&p, NS_PER_S);
    turns = p.rig.workers[0].loop.turns;
    plane_run(&p, 20 * NS_PER_S);
    assert_true(p.rig.workers[0].loop.turns - turns < 2000); /* no spin */
    assert_true(p.rig.process.descriptors <= 64);
    client_close_idle(&p.rig.client);
    plane_run(&p, NS_PER_S);
    id = plane_get(&p);
    plane_run(&p, NS_PER_S);
    plane_expect(&p, id, 200);
    plane_end(&p);
}

static void the_wall_clock_may_step_as_it_likes(void **state)
{
    (void)state;

    plane_settings(&p, 3, 2);
    plane_go(&p);
    for (unsigned i = 0; i < 20; i++) {
        world_step_wall(&p.rig.world,
                        i % 2 == 0 ? 3600 * (int64_t)NS_PER_S : -7200 * (int64_t)NS_PER_S);
        plane_traffic(&p, 5, 10 * NS_PER_MS);
    }
    plane_run(&p, NS_PER_S);
    assert_int_equal(plane_answered(&p, 2), 100);
    plane_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pipelined_requests_are_answered_in_order),
        cmocka_unit_test(a_head_that_drips_in_is_408_in_time),
        cmocka_unit_test(junk_is_400_and_the_connection_ends),
        cmocka_unit_test(a_tunnel_outlives_the_route_timeout_and_carries_both_ways),
        cmocka_unit_test(a_silent_tunnel_ends_at_the_idle_timeout),
        cmocka_unit_test(draining_finishes_what_is_under_way),
        cmocka_unit_test(draining_ends_at_its_timeout_whatever_hangs),
        cmocka_unit_test(quitting_ends_at_once),
        cmocka_unit_test(accepting_pauses_without_descriptors_and_recovers),
        cmocka_unit_test(the_wall_clock_may_step_as_it_likes),
    };

    return cmocka_run_group_tests_name("plane_wire", tests, NULL, NULL);
}
