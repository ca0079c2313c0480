/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The law of a link, on random histories: what is received is a prefix of what was taken, all of it
 * where the writer ended in peace; an end comes at most once and last; nothing comes after a close.
 */
#include <stdio.h>
#include <unistd.h>

#include "base/list.h"
#include "base/rng.h"
#include "os/loop.h"

#define PAIRS     8
#define STEPS     400
#define HISTORIES 100
#define CHUNK_MAX 40000

enum side_end { SIDE_OPEN, SIDE_SHUT, SIDE_CLOSED, SIDE_ABORTED };

struct side {
    struct end end;
    struct side *peer;
    enum side_end over;
    bool reading;
    bool broken; /* a write was refused for good */
    bool blocked;
    size_t taken;   /* of what we wrote */
    uint64_t state; /* of the generator of what we write */
    uint64_t check; /* the peer's generator, as far as we have received */
};

/* A stream of bytes that each side can make again. */
static uint8_t next_byte(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint8_t)(*state >> 56);
}

static struct side sides[PAIRS][2];
static struct rng rng;

static struct side *side_of(struct end *e)
{
    return CONTAINER_OF(e, struct side, end);
}

static void close_side(struct side *s, enum side_end how)
{
    if (s->over == SIDE_CLOSED || s->over == SIDE_ABORTED)
        return;
    if (how == SIDE_ABORTED)
        end_abort(&s->end);
    else
        end_close(&s->end);
    s->over = how;
}

/* Often exactly here, in the middle of a callback. */
static void act_inside(struct side *s)
{
    switch (rng_below(&rng, 60)) {
    case 0:
        close_side(s, SIDE_CLOSED);
        break;
    case 1:
        close_side(s->peer, SIDE_CLOSED);
        break;
    case 2:
        close_side(s, SIDE_ABORTED);
        break;
    case 3:
    case 4:
        link_read_stop(s->end.link);
        s->reading = false;
        break;
    case 5:
        link_read_stop(s->end.link);
        link_read_start(s->end.link);
        s->reading = true;
        break;
    }
}

static void received(struct end *e, struct bytes data)
{
    struct side *s = side_of(e);

    assert_true(s->reading);
    for (size_t i = 0; i < data.len; i++)
        assert_int_equal(data.data[i], next_byte(&s->check));
    act_inside(s);
}

static void writable(struct end *e)
{
    struct side *s = side_of(e);

    assert_true(s->blocked);
    s->blocked = false;
    act_inside(s);
}

static void write_some(struct side *s)
{
    static uint8_t chunk[CHUNK_MAX];
    struct bytes parts[3];
    size_t n = rng_below(&rng, 4) == 0 ? rng_below(&rng, CHUNK_MAX) : rng_below(&rng, 50);
    uint64_t state = s->state;
    ptrdiff_t taken;

    if (s->over != SIDE_OPEN)
        return;
    for (size_t i = 0; i < n; i++)
        chunk[i] = next_byte(&state);
    parts[0] = bytes_from(chunk, n / 3);
    parts[1] = bytes_from(chunk + n / 3, n / 2 - n / 3);
    parts[2] = bytes_from(chunk + n / 2, n - n / 2);
    taken = link_write(s->end.link, parts, 3);
    if (taken < 0) {
        /* Nothing more can be written, ever; and it takes a peer that has gone. */
        assert_true(s->peer->over >= SIDE_CLOSED);
        s->broken = true;
        return;
    }
    assert_false(s->broken && taken > 0);
    assert_true((size_t)taken <= n);
    s->blocked = s->blocked || (size_t)taken < n;
    s->taken += (size_t)taken;
    for (ptrdiff_t i = 0; i < taken; i++)
        next_byte(&s->state);
}

static void act(struct side *s)
{
    unsigned what = rng_below(&rng, 100);

    if (s->over >= SIDE_CLOSED)
        return;
    if (what < 60) {
        write_some(s);
    } else if (what < 75) {
        link_read_stop(s->end.link);
        s->reading = false;
    } else if (what < 97) {
        link_read_start(s->end.link);
        s->reading = true;
    } else if (what == 97 && s->over == SIDE_OPEN && !s->end.failed) {
        link_shut(s->end.link);
        s->over = SIDE_SHUT;
    } else if (what == 98 && rng_below(&rng, 3) == 0) {
        close_side(s, SIDE_CLOSED);
    } else if (what == 99 && rng_below(&rng, 3) == 0) {
        close_side(s, SIDE_ABORTED);
    }
}

static void check(const struct side *s)
{
    const struct end *e = &s->end;

    assert_int_equal(e->late, 0);
    assert_true(e->received <= s->peer->taken);
    assert_true(e->ended <= 1 && e->failed <= 1);
    assert_true(!e->ended || s->peer->over != SIDE_OPEN);
    assert_true(!e->failed || s->peer->over >= SIDE_CLOSED);
    if (e->ended)
        assert_int_equal(e->received, s->peer->taken);
}

static void begin(struct loop *l, unsigned i, uint64_t seed)
{
    struct side *a = &sides[i][0];
    struct side *b = &sides[i][1];

    memset(sides[i], 0, sizeof(sides[i]));
    pair(l, &a->end, &b->end);
    for (unsigned k = 0; k < 2; k++) {
        struct side *s = &sides[i][k];

        s->peer = &sides[i][1 - k];
        s->state = seed + i * 2 + k;
        s->check = seed + i * 2 + 1 - k;
        s->reading = true;
        s->end.on_received = received;
        s->end.on_writable = writable;
    }
}

/* Whoever is left reads to the end: and it must come, without another push. */
static void finish(struct loop *l, struct side *s)
{
    if (s->over >= SIDE_CLOSED)
        return;
    s->end.on_received = NULL;
    close_side(s->peer, SIDE_CLOSED);
    link_read_start(s->end.link);
    UNTIL(l, s->end.ended || s->end.failed);
    check(s);
    close_side(s, SIDE_CLOSED);
}

static void history(const struct address *at, uint64_t seed)
{
    struct loop l;

    loop_init(&l);
    loop_listen(&l, at);
    rng_init(&rng, seed);
    for (unsigned i = 0; i < PAIRS; i++)
        begin(&l, i, seed);
    for (unsigned step = 0; step < STEPS; step++) {
        struct side *s = &sides[rng_below(&rng, PAIRS)][rng_below(&rng, 2)];

        act(s);
        if (rng_below(&rng, 3) == 0)
            poller_wait(l.poller, 0);
        if (rng_below(&rng, 3) == 0)
            turn(&l, 0);
        check(s);
        check(s->peer);
    }
    for (unsigned i = 0; i < PAIRS; i++) {
        finish(&l, &sides[i][0]);
        finish(&l, &sides[i][1]);
    }
    settle_down(&l);
    for (unsigned i = 0; i < PAIRS; i++) {
        check(&sides[i][0]);
        check(&sides[i][1]);
    }
    loop_stop(&l);
}

static void bytes_out_are_bytes_in_on_tcp(void **state)
{
    struct address at = loopback(0);
    (void)state;

    for (uint64_t seed = 1; seed <= HISTORIES; seed++)
        history(&at, seed);
}

static void bytes_out_are_bytes_in_on_unix_sockets(void **state)
{
    char path[64];
    struct address at = {.kind = ADDRESS_UNIX, .path = path};
    (void)state;

    snprintf(path, sizeof(path), "/tmp/fb-os-law-%d", (int)getpid());
    for (uint64_t seed = 1; seed <= HISTORIES; seed++)
        history(&at, seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_out_are_bytes_in_on_tcp),
        cmocka_unit_test(bytes_out_are_bytes_in_on_unix_sockets),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
