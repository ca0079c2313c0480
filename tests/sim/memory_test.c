/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory runs out in the data plane, again and again, in every kind of object it makes: requests
 * are refused or cut, but none is lost, none is written down twice, no host is blamed, and nothing
 * leaks. The heap of the whole program is this file's.
 */
#include "sim/rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/memory.h"
#include "proxy/downstream.h"
#include "proxy/outbuf.h"
#include "proxy/stream.h"
#include "proxy/upstream.h"

static struct rig rig;
static struct rng dice;
static uint32_t permille;
static size_t victim;    /* the size of what cannot be had */
static uint64_t refused; /* so often */
static int64_t blocks;

static bool fails(size_t size)
{
    if (size != victim || rng_below(&dice, 1000) >= permille)
        return false;
    refused++;
    return true;
}

void *memory_take(size_t size)
{
    if (fails(size))
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
    if (fails(size))
        return NULL;
    blocks += old == NULL;
    return realloc(old, size == 0 ? 1 : size);
}

void memory_give(void *p)
{
    blocks -= p != NULL;
    free(p);
}

static struct ask draw(struct rng *rng)
{
    static const uint64_t sizes[] = {0, 100, 3000, 70000, 300000};
    struct ask a = ASK_PLAIN;

    a.method = rng_below(rng, 2) == 0 ? METHOD_GET : METHOD_PUT;
    a.answer = sizes[rng_below(rng, 5)];
    a.framing = rng_below(rng, 2) == 0 ? FRAMING_LENGTH : FRAMING_CHUNKED;
    if (a.method == METHOD_PUT) {
        a.upload = rng_below(rng, 2) == 0 ? FRAMING_LENGTH : FRAMING_CHUNKED;
        a.body = sizes[rng_below(rng, 5)];
    }
    if (rng_below(rng, 5) == 0)
        a.read_gap = 5 * NS_PER_MS;
    a.http10 = rng_below(rng, 10) == 0 && a.upload == FRAMING_LENGTH;
    return a;
}

static void nothing_is_left_active(void)
{
    assert_int_equal(rig_http_sum(&rig, HTTP_downstream_rq_active), 0);
    assert_int_equal(rig_cluster_sum(&rig, CLUSTER_upstream_rq_active), 0);
    assert_int_equal(rig_cluster_sum(&rig, CLUSTER_upstream_rq_pending_active), 0);
    /* All were answered but those whose client had left before. */
    assert_in_range(rig_http_sum(&rig, HTTP_downstream_rq_total) -
                        rig_http_sum(&rig, HTTP_downstream_rq_completed),
                    0, rig_http_sum(&rig, HTTP_downstream_rq_rx_reset));
    for (uint32_t i = 0; i < rig.settings.hosts; i++)
        assert_int_equal(host_health(rig_state(&rig)->hosts.at[i]), HOST_HEALTHY);
}

/* Bytes come in pieces; and the network's own buffers are of no size that is wanted here. */
static void narrow_road(struct net_site *site)
{
    site->path.cut = NET_CUT_SOME;
    site->path.window = 1024;
}

/* Bursts, so that ever more objects are wanted at once than were kept. */
static void run_short_of(size_t size, uint64_t seed, bool narrow)
{
    struct rig_settings s;

    rig_settings_init(&s, seed);
    s.hosts = 4;
    s.workers = 2;
    blocks = 0;
    refused = 0;
    rng_init(&dice, seed);
    assert_true(rig_start(&rig, &s));
    rig.client.lenient_since = 0;
    for (uint32_t i = 0; i < s.hosts && narrow; i++)
        narrow_road(rig.servers[i].site);
    if (narrow)
        narrow_road(net_site(&rig.net, &rig.address));
    victim = size;
    permille = 400;
    for (unsigned burst = 1; burst <= 30; burst++) {
        for (unsigned i = 0; i < burst; i++) {
            struct ask a = draw(&dice);

            (void)client_ask(&rig.client, &a);
        }
        world_run_for(&rig.world, 100 * NS_PER_MS);
        assert_string_equal(rig.world.failure, "");
    }
    victim = SIZE_MAX;
    world_run_for(&rig.world, 20 * NS_PER_S);
    assert_string_equal(rig.world.failure, "");
    assert_true(refused > 0);
    nothing_is_left_active();
    assert_int_equal(client_ask(&rig.client, &(struct ask)ASK_PLAIN) == 0, 0);
    world_run_for(&rig.world, NS_PER_S);
    assert_true(rig_drain(&rig, s.drain_timeout + NS_PER_S));
    rig_free_proxy(&rig);
    assert_int_equal(rig.process.descriptors, 0);
    rig_stop(&rig);
    assert_int_equal(blocks, 0);
}

static void short_of(size_t size, bool narrow)
{
    for (uint64_t seed = 1; seed <= 4; seed++)
        run_short_of(size, seed, narrow);
}

static void client_connections_cannot_be_had(void **state)
{
    (void)state;
    short_of(sizeof(struct downstream), false);
}

static void requests_cannot_be_had(void **state)
{
    (void)state;
    short_of(sizeof(struct stream), false);
}

static void heads_cannot_be_had(void **state)
{
    (void)state;
    short_of(SMALL_HEAD_SIZE, true);
}

static void host_connections_cannot_be_had(void **state)
{
    (void)state;
    short_of(sizeof(struct upstream), false);
}

static void buffers_for_what_a_link_did_not_take_cannot_be_had(void **state)
{
    (void)state;
    short_of(OUTBUF_SIZE, false);
}

static void buffers_for_parts_of_heads_cannot_be_had(void **state)
{
    (void)state;
    short_of(2048, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(client_connections_cannot_be_had),
        cmocka_unit_test(requests_cannot_be_had),
        cmocka_unit_test(heads_cannot_be_had),
        cmocka_unit_test(host_connections_cannot_be_had),
        cmocka_unit_test(buffers_for_what_a_link_did_not_take_cannot_be_had),
        cmocka_unit_test(buffers_for_parts_of_heads_cannot_be_had),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
